#include "tools/gemm_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tilewright/base/format.h"
#include "tilewright/report/table.h"
#include "tools/compile.h"
#include "tools/gemm_run.h"

namespace tw::tools {

namespace {

double tflops(const kernels::GemmShape& s, double seconds) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) / seconds /
         1e12;
}

std::string verdict(const GemmBenchEntry& e) {
  std::string text = e.good() ? "right" : "WRONG";
  text += format(" (error {:.1e} in {} rows", e.sample.error, e.sampled_rows);
  if (e.from_cublas) text += format(", {:.1e} from cuBLAS", *e.from_cublas);
  return text + ")";
}

const std::vector<report::Column>& columns() {
  using report::Align;
  static const std::vector<report::Column> all{{"shape"},
                                               {"kernel"},
                                               {"time", Align::right},
                                               {"TFLOPS", Align::right},
                                               {"cuBLAS TFLOPS", Align::right},
                                               {"ratio", Align::right},
                                               {"result"}};
  return all;
}

// The cells of the table: a row for each shape and kernel.
std::vector<std::vector<std::string>> rows(const GemmReport& report) {
  std::vector<std::vector<std::string>> out;
  for (const GemmBenchResult& r : report.results)
    for (const GemmBenchEntry& e : r.entries) {
      const std::string cublas = r.cublas_seconds ? format("{:.4g}", tflops(r.shape, *r.cublas_seconds)) : "";
      if (!e.refusal.empty()) {
        out.push_back({to_string(r.shape), e.kernel, "", "", cublas, "", "not served: " + e.refusal});
        continue;
      }
      const auto ratio = r.ratio(e);
      out.push_back({to_string(r.shape), e.kernel, report::seconds(e.seconds),
                     format("{:.4g}", tflops(r.shape, e.seconds)), cublas,
                     ratio ? format("{:.3f}", *ratio) : "", verdict(e)});
    }
  return out;
}

std::vector<std::pair<std::string, std::string>> facts(const GemmReport& r) {
  std::vector<std::pair<std::string, std::string>> lines{
      {"device", format("{}, {} SMs, {}", r.device, r.sms, r.arch)}};
  if (r.simulated) lines.emplace_back("time", "of the host that simulates, not of a GPU");
  if (!r.driver.empty()) lines.emplace_back("driver", r.driver);
  lines.emplace_back("cuBLAS", r.cublas.empty() ? r.cublas_note : r.cublas);
  lines.emplace_back("date", r.date);
  lines.emplace_back("command", r.command);
  return lines;
}

// "gemm.step9: geometric mean of the ratios 1.012, the lowest 0.931"
std::vector<std::string> summary(const GemmReport& report) {
  std::vector<std::string> lines;
  for (const auto& [kernel, mean] : report.geometric_means())
    lines.push_back(format("{}: geometric mean of the ratios {:.3f}, the lowest {:.3f}", kernel, mean,
                           *report.worst_ratio(kernel)));
  return lines;
}

nlohmann::ordered_json to_json(const GemmBenchResult& r, const GemmBenchEntry& e) {
  nlohmann::ordered_json j{{"m", r.shape.m},
                           {"n", r.shape.n},
                           {"k", r.shape.k},
                           {"dtype", name(r.shape.dtype)},
                           {"kernel", e.kernel}};
  if (!e.refusal.empty()) {
    j["refusal"] = e.refusal;
  } else {
    j["seconds"] = e.seconds;
    j["fastest_seconds"] = e.fastest;
    j["tflops"] = tflops(r.shape, e.seconds);
  }
  if (r.cublas_seconds) {
    j["cublas_seconds"] = *r.cublas_seconds;
    j["cublas_tflops"] = tflops(r.shape, *r.cublas_seconds);
    j["cublas_error"] = *r.cublas_error;
  }
  if (!e.refusal.empty()) return j;
  if (const auto ratio = r.ratio(e)) j["ratio"] = *ratio;
  j["buffer_sets"] = r.buffer_sets;
  j["error"] = e.sample.error;
  j["error_rounded"] = e.sample.error_rounded;
  j["sampled_rows"] = e.sampled_rows;
  if (e.from_cublas) j["from_cublas"] = *e.from_cublas;
  j["right"] = e.good();
  return j;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

}  // namespace

bool GemmReport::good() const {
  for (const GemmBenchResult& r : results)
    for (const GemmBenchEntry& e : r.entries)
      if (e.refusal.empty() && !e.good()) return false;
  return true;
}

std::map<std::string, double> GemmReport::geometric_means() const {
  std::map<std::string, std::pair<double, int>> logarithms;
  for (const GemmBenchResult& r : results)
    for (const GemmBenchEntry& e : r.entries)
      if (const auto ratio = r.ratio(e)) {
        auto& [sum, count] = logarithms[e.kernel];
        sum += std::log(*ratio);
        ++count;
      }
  std::map<std::string, double> means;
  for (const auto& [kernel, l] : logarithms) means[kernel] = std::exp(l.first / l.second);
  return means;
}

std::optional<double> GemmReport::worst_ratio(const std::string& kernel) const {
  std::optional<double> worst;
  for (const GemmBenchResult& r : results)
    for (const GemmBenchEntry& e : r.entries)
      if (const auto ratio = r.ratio(e); ratio && e.kernel == kernel)
        worst = std::min(worst.value_or(*ratio), *ratio);
  return worst;
}

nlohmann::ordered_json to_json(const GemmReport& report) {
  nlohmann::ordered_json j{{"command", report.command}, {"date", report.date},
                           {"device", report.device},   {"arch", report.arch},
                           {"sms", report.sms},         {"simulated", report.simulated}};
  if (!report.driver.empty()) j["driver"] = report.driver;
  if (!report.cublas.empty()) j["cublas"] = report.cublas;
  else j["cublas_note"] = report.cublas_note;
  j["rounds"] = report.rounds;
  j["error_limit"] = error_limit;
  auto& list = j["results"] = nlohmann::ordered_json::array();
  for (const GemmBenchResult& r : report.results)
    for (const GemmBenchEntry& e : r.entries) list.push_back(to_json(r, e));
  if (const auto means = report.geometric_means(); !means.empty())
    for (const auto& [kernel, mean] : means)
      j["summary"][kernel] = {{"geometric_mean", mean}, {"worst_ratio", *report.worst_ratio(kernel)}};
  return j;
}

std::string to_text(const GemmReport& report, report::Style style) {
  report::Table table(columns());
  for (std::vector<std::string>& row : rows(report)) table.row(std::move(row));
  std::string text = report::fields(facts(report)) + "\n" + table.text(style);
  for (const std::string& line : summary(report)) text += "\n" + line;
  return text + "\n";
}

std::string to_markdown(const GemmReport& report) {
  std::string text = format("# GEMM on {}\n\n", report.device);
  for (const auto& [what, value] : facts(report))
    text += what == "command" ? format("- {}: `{}`\n", what, value) : format("- {}: {}\n", what, value);
  std::vector<std::string> titles, rules;
  for (const report::Column& c : columns()) {
    titles.push_back(c.title);
    rules.push_back(c.align == report::Align::right ? "---:" : "---");
  }
  text += "\n" + markdown_row(titles) + markdown_row(rules);
  for (const auto& row : rows(report)) text += markdown_row(row);
  for (const std::string& line : summary(report)) text += "\n" + line + "\n";
  return text;
}

}  // namespace tw::tools
