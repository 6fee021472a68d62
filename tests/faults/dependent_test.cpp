// Dependent launches from C++: what the checker says of a kernel in the language, by its roles and lines.
#include <gtest/gtest.h>

#include "tilewright/base/format.h"
#include "tilewright/check/check.h"
#include "tilewright/dsl/dsl.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"

namespace tw::faults {
namespace {

using namespace tw::dsl;

enum class Waits { none, load, both, load_then_barrier };

// Two roles read the offsets, which the grid before writes.
Compiled read_offsets(Waits waits) {
  KernelBuilder k("read_offsets", Arch::sm_90a);
  k.launch({.threads = 64});
  auto offs = k.global(i32, {2}, "offs"), D = k.global(i32, {2}, "D");
  k.role("load", warp(0), [&] {
    if (waits != Waits::none) dsl::ptx::griddepcontrol_wait();
    elected([&] { D.store({0}, offs.load({0})); });
  });
  if (waits == Waits::load_then_barrier) cta.sync();
  k.role("mma", warp(1), [&] {
    if (waits == Waits::both) dsl::ptx::griddepcontrol_wait();
    elected([&] { D.store({1}, offs.load({1})); });
  });
  dsl::ptx::griddepcontrol_launch_dependents();
  return lower(k.finish());
}

class Dependent : public ::testing::Test {
 protected:
  void SetUp() override {
    offs_.upload(std::vector<float>{3, 5});
    d_.poison();
  }
  check::CheckReport check(Waits waits, DependentLaunch dependent) {
    const Compiled kernel = read_offsets(waits);
    return check::check([&](const sim::RunOptions& sim) {
      device_->launch(kernel, {offs_, d_}, {.sim = sim, .dependent = dependent});
    });
  }

  std::shared_ptr<Device> device_ = Device::open("sim:h200");
  Tensor offs_ = device_->tensor(DType::i32, {2}, "offs"), d_ = device_->tensor(DType::i32, {2}, "D");
};

TEST_F(Dependent, TheRoleThatDoesNotWaitIsNamed) {
  const check::CheckReport report = check(Waits::load, {.written_before = {offs_}, .read_before = {}});
  ASSERT_EQ(report.faults.size(), 1u) << check::to_text(report);
  const check::Fault& f = report.faults[0];
  EXPECT_EQ(f.kind, check::FaultKind::dependency);
  EXPECT_TRUE(f.message.starts_with("offs + 4 bytes: ld.global")) << f.message;
  EXPECT_TRUE(f.message.ends_with(
      "reads it (CTA (0, 0, 0), warp 1, role mma) before any dependency wait; the grid before this one "
      "writes it, and may not have ended"))
      << f.message;
  ASSERT_EQ(f.notes.size(), 2u);
  EXPECT_EQ(f.notes[0].message, "role load waits here, and nothing puts the access behind it");
  EXPECT_EQ(f.notes[0].loc.line + 6, f.loc.line);  // in the kernel above
}

TEST_F(Dependent, WithoutAnyWaitAllAreNamed) {
  const check::CheckReport report = check(Waits::none, {.written_before = {offs_}, .read_before = {d_}});
  ASSERT_EQ(report.faults.size(), 2u) << check::to_text(report);  // one a line
  for (const check::Fault& f : report.faults)
    EXPECT_TRUE(f.message.ends_with("and may not have ended; the kernel has no wait")) << f.message;
}

TEST_F(Dependent, EachRoleWaitsOrIsHandedOverTo) {
  for (const Waits waits : {Waits::both, Waits::load_then_barrier}) {
    const check::CheckReport report = check(waits, {.written_before = {offs_}, .read_before = {d_}});
    EXPECT_EQ(report.verdict, check::Verdict::clean) << check::to_text(report);
  }
  EXPECT_EQ(d_.download_f32(), (std::vector<float>{3, 5}));
}

TEST_F(Dependent, WhatTheGridBeforeLeavesAloneNeedsNoWait) {
  EXPECT_EQ(check(Waits::none, {}).verdict, check::Verdict::clean);
  EXPECT_EQ(check(Waits::none, {.written_before = {}, .read_before = {offs_}}).verdict,
            check::Verdict::clean);  // both read it
}

}  // namespace
}  // namespace tw::faults
