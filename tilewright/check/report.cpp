#include "tilewright/check/report.h"

#include <algorithm>
#include <set>

#include "tilewright/base/format.h"

namespace tw::check {

const char* name(Verdict v) {
  switch (v) {
    case Verdict::clean: return "clean";
    case Verdict::faults: return "faults";
    case Verdict::incomplete: return "incomplete";
  }
  return "?";
}

const char* name(FaultKind k) {
  switch (k) {
    case FaultKind::race: return "race";
    case FaultKind::scope: return "insufficient scope";
    case FaultKind::proxy_fence: return "missing proxy fence";
    case FaultKind::tensor_fence: return "missing tcgen05 fence";
    case FaultKind::init_fence: return "missing fence after mbarrier.init";
    case FaultKind::lapping: return "phase lapped";
    case FaultKind::registers: return "register hazard";
    case FaultKind::exit: return "exit too early";
    case FaultKind::undefined: return "undefined behaviour";
    case FaultKind::deadlock: return "deadlock";
    case FaultKind::wrong_result: return "wrong result";
    case FaultKind::unwritten: return "unwritten output";
    case FaultKind::bytes: return "bytes do not match";
    case FaultKind::unobserved: return "phase unobserved";
    case FaultKind::election: return "missing election";
    case FaultKind::overwritten: return "live barrier overwritten";
    case FaultKind::named_barrier: return "named barrier misused";
    case FaultKind::dependency: return "missing dependency wait";
    case FaultKind::not_waited_for: return "load not waited for";
    case FaultKind::not_handed_back: return "operands not handed back";
    case FaultKind::spare_registers: return "registers left over";
    case FaultKind::freed_elsewhere: return "freed by another warp";
  }
  return "?";
}

Severity severity(FaultKind k) {
  switch (k) {
    case FaultKind::not_waited_for:
    case FaultKind::not_handed_back:
    case FaultKind::spare_registers:
    case FaultKind::freed_elsewhere: return Severity::remark;
    default: return Severity::fault;
  }
}

const char* name(Severity s) { return s == Severity::remark ? "remark" : "fault"; }

std::string page(FaultKind k) {
  std::string file = name(k);
  for (char& c : file)
    if (c == ' ' || c == '.') c = '-';
  return format("docs/faults/{}.md", file);
}

namespace {

std::string to_text(const Exploration& e) {
  if (e.complete() && e.orders == 1) return "no other order of synchronisation can change the outcome\n";
  const std::string orders = format("{} order{} of synchronisation", e.orders, e.orders == 1 ? "" : "s");
  if (e.complete()) return format("explored all {} in {} runs\n", orders, e.runs);
  std::string text = format("explored {} in {} run{}; not explored: {} reversal{}\n", orders, e.runs,
                            e.runs == 1 ? "" : "s", e.left, e.left == 1 ? "" : "s");
  constexpr size_t kShown = 10;
  for (size_t i = 0; i < e.not_explored.size() && i < kShown; ++i)
    text += format("  not explored: {}\n", e.not_explored[i]);
  if (e.not_explored.size() > kShown) text += format("  and {} more\n", e.not_explored.size() - kShown);
  return text;
}

}  // namespace

std::string summary(const CheckReport& report) {
  const size_t n = report.remarks.size();
  if (n == 0) return name(report.verdict);
  return format("{}, {} remark{}", name(report.verdict), n, n == 1 ? "" : "s");
}

std::string to_text(const CheckReport& report, const std::function<std::string(const SourceLoc&)>& quote) {
  const auto source = [&](const SourceLoc& loc) { return quote && loc ? quote(loc) : std::string(); };
  std::string text;
  std::set<std::string> pages;
  const auto say = [&](const Fault& f) {
    const bool remark = severity(f.kind) == Severity::remark;
    text += format("{}{}{}: {}\n", f.loc ? to_string(f.loc) + ": " : "", remark ? "remark: " : "",
                   name(f.kind), f.message);
    text += source(f.loc);
    for (const Note& n : f.notes)
      text += format("  {}note: {}\n", n.loc ? to_string(n.loc) + ": " : "", n.message) + source(n.loc);
    text += f.schedule.starts_with("order ") ? format("  note: found in {}\n", f.schedule)
                                             : format("  note: found under schedule {}\n", f.schedule);
    pages.insert(page(f.kind));
  };
  std::for_each(report.faults.begin(), report.faults.end(), say);
  std::for_each(report.remarks.begin(), report.remarks.end(), say);
  for (const std::string& p : pages) text += format("see {}\n", p);
  for (const std::string& what : report.not_checked) text += format("not checked: {}\n", what);
  if (report.exploration) text += to_text(*report.exploration);
  std::string schedules;
  for (const std::string& s : report.schedules) schedules += (schedules.empty() ? "" : ", ") + s;
  return text + format("{} (schedules {})\n", summary(report), schedules);
}

}  // namespace tw::check
