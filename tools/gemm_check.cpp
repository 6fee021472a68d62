#include "tools/gemm_check.h"

#include <nlohmann/json.hpp>
#include <set>

#include "tilewright/base/format.h"
#include "tilewright/check/check.h"

namespace tw::tools {

using nlohmann::ordered_json;

check::CheckReport check_gemm(GemmProblem& problem, const std::vector<std::string>& schedules,
                              const check::ExploreBudget& explore) {
  if (!problem.device().simulated())
    user_error({}, "{} cannot be checked; only a simulated device can", problem.device().name());
  check::CheckOptions options;
  options.schedules = schedules;
  options.explore = explore;
  options.progress = [&](const std::string& schedule) {
    problem.progress().stage(format("{}: checking, schedule {}", problem.label(), schedule));
  };
  options.judge = [&]() -> std::vector<check::Fault> {
    GemmJudgement judgement = problem.judge();
    if (judgement.good()) return {};
    return {std::move(*judgement.fault)};
  };
  const auto run = [&](const sim::RunOptions& sim) {
    LaunchOptions launch;
    launch.sim = sim;
    problem.launch(launch);
  };
  check::CheckReport report = check::check(run, options);
  problem.progress().clear();
  return report;
}

namespace {

ordered_json place(const SourceLoc& loc) {
  if (!loc) return nullptr;
  return {{"file", shown_file(loc)}, {"line", loc.line}, {"column", loc.column}};
}

ordered_json sarif_location(const SourceLoc& loc, const std::string& message) {
  ordered_json j{
      {"physicalLocation",
       {{"artifactLocation", {{"uri", shown_file(loc)}}},
        {"region", {{"startLine", loc.line}, {"startColumn", std::max<uint32_t>(1, loc.column)}}}}}};
  if (!message.empty()) j["message"] = {{"text", message}};
  return j;
}

ordered_json to_json(const std::vector<check::Fault>& faults) {
  auto all = ordered_json::array();
  for (const check::Fault& f : faults) {
    auto notes = ordered_json::array();
    for (const Note& n : f.notes) notes.push_back({{"message", n.message}, {"at", place(n.loc)}});
    all.push_back({{"kind", check::name(f.kind)},
                   {"message", f.message},
                   {"at", place(f.loc)},
                   {"notes", notes},
                   {"schedule", f.schedule},
                   {"explained_in", check::page(f.kind)}});
  }
  return all;
}

// The results of a SARIF run, and the rules that they name.
class Sarif {
 public:
  void add(const check::Fault& f);
  ordered_json file() const;

 private:
  void add_rule(check::FaultKind kind);
  std::set<check::FaultKind> known_;
  ordered_json results_ = ordered_json::array(), rules_ = ordered_json::array();
};

void Sarif::add_rule(check::FaultKind kind) {
  if (known_.insert(kind).second)
    rules_.push_back({{"id", check::name(kind)}, {"help", {{"text", "see " + check::page(kind)}}}});
}

void Sarif::add(const check::Fault& f) {
  add_rule(f.kind);
  const bool remark = check::severity(f.kind) == check::Severity::remark;
  ordered_json r{{"ruleId", check::name(f.kind)}, {"level", remark ? "note" : "error"}};
  std::string text = f.message;
  auto related = ordered_json::array();
  for (const Note& n : f.notes) {
    if (n.loc) related.push_back(sarif_location(n.loc, n.message));
    else text += "\n" + n.message;
  }
  r["message"] = {{"text", text}};
  if (f.loc) r["locations"] = ordered_json::array({sarif_location(f.loc, "")});
  if (!related.empty()) r["relatedLocations"] = related;
  results_.push_back(std::move(r));
}

ordered_json Sarif::file() const {
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs", ordered_json::array({{{"tool", {{"driver", {{"name", "tilewright"}, {"rules", rules_}}}}},
                                         {"results", results_}}})}};
}

}  // namespace

ordered_json to_json(const check::CheckReport& report) {
  ordered_json j{{"verdict", check::name(report.verdict)},
                 {"faults", to_json(report.faults)},
                 {"remarks", to_json(report.remarks)},
                 {"not_checked", report.not_checked},
                 {"schedules", report.schedules}};
  if (const auto& e = report.exploration)
    j["exploration"] = {{"runs", e->runs},
                        {"orders", e->orders},
                        {"left", e->left},
                        {"complete", e->complete()},
                        {"not_explored", e->not_explored}};
  return j;
}

ordered_json to_sarif(const check::CheckReport& report) {
  Sarif sarif;
  for (const check::Fault& f : report.faults) sarif.add(f);
  for (const check::Fault& f : report.remarks) sarif.add(f);
  return sarif.file();
}

}  // namespace tw::tools
