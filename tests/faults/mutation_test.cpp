// Takes one synchronising instruction out of a kernel of the ladder, each in turn: the checker must
// notice. What may be taken out without harm is listed with the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "kernels/registry.h"
#include "tilewright/check/check.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/random.h"

namespace tw {
namespace {

struct Case {
  std::string kernel, device;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.kernel << " on " << c.device; }

bool synchronises(const ptx::Instruction& i) {
  const std::string text = i.text();
  for (const char* start : {"mbarrier.try_wait", "mbarrier.arrive", "fence", "tcgen05.commit",
                            "tcgen05.fence", "tcgen05.wait", "wgmma.wait_group", "wgmma.fence",
                            "cp.async.bulk.wait_group", "cp.async.bulk.commit_group", "barrier.", "bar."})
    if (text.starts_with(start)) return true;
  return false;
}

// Why the kernel is as right without the instruction at `at`, or nothing.
std::string harmless(const Case& c, const ptx::Function& entry, size_t at) {
  const auto instruction = [&](size_t n) { return std::get_if<ptx::Instruction>(&entry.body[n]); };
  const ptx::Instruction& i = *instruction(at);
  // What the compiler puts before and after the body stands at the kernel's own line, as its last instruction
  // does.
  const auto last = std::find_if(entry.body.rbegin(), entry.body.rend(), [](const ptx::Statement& x) {
    return std::holds_alternative<ptx::Instruction>(x);
  });
  const bool frame = i.loc == std::get<ptx::Instruction>(*last).loc;
  const std::string text = i.text();
  if (text.starts_with("tcgen05.fence") && frame)
    return "whoever uses tensor memory first, or read it last, fences in its own code too";
  if (text.starts_with("barrier.sync") && frame && c.kernel == "gemm.step6")
    return "each tile ends with the same barrier";
  if (text.starts_with("bar.warp.sync"))
    return "the warp's loads are operations of the whole warp, which all its lanes have waited for";
  if (!text.starts_with("tcgen05.wait::ld")) return {};
  for (size_t later = at + 1; later < entry.body.size(); ++later)
    if (const auto* next = instruction(later); next && next->text() == text && next->role == i.role)
      return "a later wait of the warp covers these loads";
  return {};
}

class Mutation : public ::testing::TestWithParam<Case> {};

TEST_P(Mutation, NoHandOffIsMissed) {
  const Case& c = GetParam();
  const auto device = Device::open(c.device);
  const bool blackwell = c.device == "sim:b200";
  // Several tiles for each worker, more chunks of K than stages.
  kernels::GemmShape s{blackwell ? 1100 : 384, 512, 320};
  s.sms = 2;
  const Compiled kernel = lower(kernels::gemm_kernel(c.kernel).build(s, device->target()));
  Tensor a = device->tensor(s.dtype, {s.m, s.k}, "A"), b = device->tensor(s.dtype, {s.n, s.k}, "B");
  Tensor d = device->tensor(s.dtype, {s.m, s.n}, "D");
  fill_normal(a, 1);
  fill_normal(b, 2);
  const auto check = [&](const Compiled& k) {
    check::CheckOptions options;
    options.schedules = {"late", "eager", "random:1"};
    options.stop_at_first = true;
    const auto run = [&](const sim::RunOptions& sim) {
      d.poison();
      LaunchOptions launch;
      launch.sim = sim;
      device->launch(k, {a, b, d}, launch);
    };
    return check::check(run, options);
  };
  const check::CheckReport whole = check(kernel);
  ASSERT_EQ(whole.verdict, check::Verdict::clean) << check::to_text(whole);

  int caught = 0, equivalent = 0;
  const ptx::Function& entry = *kernel.module->entries()[0];
  for (size_t at = 0; at < entry.body.size(); ++at) {
    const auto* i = std::get_if<ptx::Instruction>(&entry.body[at]);
    if (!i || !synchronises(*i)) continue;
    auto module = std::make_shared<ptx::Module>(*kernel.module);
    for (auto& item : module->items) {
      auto* f = std::get_if<ptx::Function>(&item);
      if (!f) continue;
      const auto first = f->body.begin() + static_cast<std::ptrdiff_t>(at);
      f->body.erase(first, first + (i->text().starts_with("mbarrier.try_wait") ? 2 : 1));  // and its branch
    }
    Compiled mutant = kernel;
    mutant.module = module;
    mutant.text = std::make_shared<const std::string>(ptx::print(*module));
    const bool found = !check(mutant).faults.empty();
    caught += found;
    if (found) continue;
    ++equivalent;
    EXPECT_NE(harmless(c, entry, at), "") << "without " << i->text() << " at " << to_string(i->loc);
  }
  EXPECT_GT(caught, 8);
  std::printf("%s on %s: caught %d of %d, the others are equivalent\n", c.kernel.c_str(), c.device.c_str(),
              caught, caught + equivalent);
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* step :
       {"gemm.step4", "gemm.step5", "gemm.step6", "gemm.step7", "gemm.step8", "gemm.step9"})
    for (const char* device : {"sim:b200", "sim:h200"}) out.push_back({step, device});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Ladder, Mutation, ::testing::ValuesIn(cases()), [](const auto& tested) {
  std::string name = tested.param.kernel + "_" + tested.param.device.substr(4);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

}  // namespace
}  // namespace tw
