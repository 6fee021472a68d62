#pragma once
#include <istream>
#include <map>
#include <string>
#include <vector>

#include "tilewright/check/report.h"

// A fault that people really made, as a pair of kernels in one PTX text: the faulty one is reported with the
// right kind, the mended one is clean. A text without a fault is a control, correct code that must stay
// silent. Where the checker has a remark about correct code, the "faulty" kernel is the one that has it. The
// head of a text says
//   // B31: what the fault is, or what the control shows
//   // expect: KIND: text that the message holds      KIND as in check::name, or "refused" before anything
//   runs
//   // remark: KIND: text                             likewise, of a remark: the verdict is clean all the
//   same
//   // launch: a launch file in one line              docs/foreign-ptx.md
//   // launch-faulty: another one, for the faulty kernel alone; no line of the text need differ then
//   // assembles: no                                  where ptxas refuses the faulty kernel too
// Lines that end in "// faulty" or "// mended" belong to that kernel alone.
namespace tw::faults {

enum class Variant { faulty, mended };

struct Pair {
  std::string path;                         // for messages
  std::map<std::string, std::string> head;  // "expect", "launch"
  std::vector<std::string> lines;

  bool remark() const { return head.contains("remark"); }
  bool control() const { return !head.contains("expect") && !remark(); }
  // What is expected of the faulty kernel: "missing proxy fence", "cp.async.bulk".
  std::string kind() const;
  std::string message_part() const;
  const std::string& expected() const { return head.at(remark() ? "remark" : "expect"); }
  const std::string& launch(Variant v) const;
  // Lines of the other variant stay as empty ones, so that messages name lines of the text.
  std::string text(Variant v) const;
};

// Reads up to the end, or up to a line that is `end`. Throws std::runtime_error when there is no launch.
Pair read_pair(std::istream& in, std::string path, std::string_view end = {});

check::CheckReport check_pair(const Pair& pair, Variant v);

// The assertions: that the faulty kernel is reported as the head says; that the mended one is clean, without
// remarks; that ptxas takes both.
void expect_named(const Pair& pair);
void expect_clean(const Pair& pair);
void expect_assembles(const Pair& pair);

}  // namespace tw::faults
