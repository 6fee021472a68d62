#include "tests/faults/pair.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/assemble.h"
#include "tilewright/ptx/parser.h"
#include "tools/ptx_check.h"

namespace tw::faults {

std::string Pair::kind() const {
  const std::string& text = expected();
  return text.substr(0, text.find(": "));
}

std::string Pair::message_part() const {
  const std::string& text = expected();
  const size_t colon = text.find(": ");
  return colon == std::string::npos ? "" : text.substr(colon + 2);
}

const std::string& Pair::launch(Variant v) const {
  const auto own = head.find("launch-faulty");
  return v == Variant::faulty && own != head.end() ? own->second : head.at("launch");
}

std::string Pair::text(Variant v) const {
  const std::string other = v == Variant::faulty ? "// mended" : "// faulty";
  std::string out;
  for (const std::string& line : lines) out += (line.ends_with(other) ? "" : line) + "\n";
  return out;
}

Pair read_pair(std::istream& in, std::string path, std::string_view end) {
  Pair p;
  p.path = std::move(path);
  for (std::string line; std::getline(in, line);) {
    if (!end.empty() && line == end) break;
    if (const size_t colon = line.find(": "); line.starts_with("// ") && colon != std::string::npos)
      p.head.emplace(line.substr(3, colon - 3), line.substr(colon + 2));
    p.lines.push_back(std::move(line));
  }
  if (!p.head.contains("launch")) throw std::runtime_error(p.path + " has no launch");
  return p;
}

check::CheckReport check_pair(const Pair& p, Variant v) {
  const ptx::Module module = ptx::parse(p.text(v), p.path);
  const tools::LaunchSpec launch = tools::parse_launch(p.launch(v), p.path);
  const auto device = Device::open(tools::default_device(module));
  report::Progress silent(false);
  // What is right stays right under other orders of synchronisation.
  const check::ExploreBudget explore{.runs = 100, .seconds = 0};
  return tools::check_ptx(module, launch, *device, {"eager", "late", "random:1", "random:2"}, silent,
                          explore);
}

namespace {

void expect_refused(const Pair& p) {
  try {
    check_pair(p, Variant::faulty);
    ADD_FAILURE() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::user) << e.what();
    EXPECT_NE(std::string(e.what()).find(p.message_part()), std::string::npos) << e.what();
  }
}

}  // namespace

void expect_named(const Pair& p) {
  if (p.kind() == "refused") return expect_refused(p);
  EXPECT_NE(p.message_part(), "") << p.path << " does not say what the message holds";
  const check::CheckReport report = check_pair(p, Variant::faulty);
  EXPECT_EQ(report.verdict, p.remark() ? check::Verdict::clean : check::Verdict::faults)
      << check::to_text(report);
  const std::vector<check::Fault>& found = p.remark() ? report.remarks : report.faults;
  EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                          [&](const check::Fault& f) {
                            return check::name(f.kind) == p.kind() &&
                                   f.message.find(p.message_part()) != std::string::npos;
                          }))
      << "expected " << p.expected() << "\n"
      << check::to_text(report);
}

void expect_clean(const Pair& p) {
  const check::CheckReport report = check_pair(p, Variant::mended);
  EXPECT_EQ(report.verdict, check::Verdict::clean) << check::to_text(report);
  EXPECT_TRUE(report.remarks.empty()) << check::to_text(report);
}

void expect_assembles(const Pair& p) {
  const auto arch = [](const std::string& text) {
    const size_t at = text.find(".target ") + 8;
    return text.substr(at, text.find_first_of(" ,\n", at) - at);
  };
  for (const Variant v : {Variant::mended, Variant::faulty}) {
    if (v == Variant::faulty && p.head.contains("assembles")) continue;
    EXPECT_TRUE(testing::assembles(p.text(v), arch(p.text(v))));
  }
}

}  // namespace tw::faults
