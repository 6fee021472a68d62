#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/report/terminal.h"
#include "tools/gemm_bench.h"

// What a run of `tw bench gemm` found, as JSON, as a table and as a Markdown page (bench/results).
namespace tw::tools {

struct GemmReport {
  std::string command, date;  // date: UTC, ISO 8601
  std::string device, arch;   // "NVIDIA H200", "sm_90a"
  uint32_t sms = 0;
  bool simulated = false;
  std::string driver = {}, cublas = {};  // versions; empty: there is none
  std::string cublas_note = {};          // why there is none
  int rounds = 0;
  std::vector<GemmBenchResult> results = {};

  bool good() const;  // every result that there is is right
  // Of the ratios of each kernel over the shapes that it serves.
  std::map<std::string, double> geometric_means() const;
  std::optional<double> worst_ratio(const std::string& kernel) const;
};

nlohmann::ordered_json to_json(const GemmReport& report);
std::string to_text(const GemmReport& report, report::Style style);
std::string to_markdown(const GemmReport& report);

}  // namespace tw::tools
