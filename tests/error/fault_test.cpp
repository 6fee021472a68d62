// What a kernel that is wrong in itself meets in the simulator. The report says which thread, which
// instruction, which line of the kernel, which buffer, and which rule.
#include <gtest/gtest.h>

#include <functional>
#include <regex>

#include "tests/error/message.h"
#include "tilewright/dsl/dsl.h"
#include "tilewright/lower/lower.h"
#include "tilewright/runtime/device.h"

namespace {

using namespace tw::dsl;
using tw::testing::text_of;

// What `text` says of the lowered PTX (line numbers) and of the device (addresses from `d` on), put in words
// that hold for every lowering and every allocator.
std::string in_words(std::string text, const tw::Tensor& d) {
  text = std::regex_replace(text, std::regex(R"( \(line \d+ of the PTX\))"), "");
  static const std::regex address("0x1[0-9a-f]{9}");
  for (std::smatch m; std::regex_search(text, m, address);) {
    const uint64_t offset = std::stoull(m[0], nullptr, 16) - d.address();
    text = m.prefix().str() + (offset == 0 ? "D" : tw::format("D + {}", offset)) + m.suffix().str();
  }
  return text;
}

// Runs a kernel over A and D, f32 [128, 32], of which A is written; `body` begins on line `base`. The note
// that repeats the launch is pinned in launch_test.cpp and left out here.
using Body = std::function<void(KernelBuilder& k, const Tile& A, const Tile& D)>;
std::string run(int base, const Body& body, const char* schedule = "eager") {
  KernelBuilder k("k", Arch::sm_100a);
  k.launch({.threads = 128});
  auto A = k.global(f32, {128, 32}, "A"), D = k.global(f32, {128, 32}, "D");
  body(k, A, D);
  auto device = tw::Device::open("sim:b200");
  tw::Tensor a = device->tensor(f32, {128, 32}, "a"), d = device->tensor(f32, {128, 32}, "d");
  a.upload(std::vector<float>(size_t{128} * 32, 1));
  tw::LaunchOptions options;
  options.sim.schedule = tw::sim::parse_schedule(schedule);
  const std::string text = text_of(base, [&] { device->launch(tw::lower(k.finish()), {a, d}, options); });
  return in_words(text.substr(0, text.find("\nnote: in k(")), d);
}

TEST(Fault, BarrierThatSomeDoNotArriveOn) {
  const std::string text = run(__LINE__, [](KernelBuilder& k, const Tile&, const Tile&) {
    Barrier ready(k, 2, 128, "ready");
    if_(warp_id < 3, [&] { ready.arrive(1); });
    ready.wait(1, 0);
  });
  EXPECT_EQ(text,
            "+3: deadlock: nothing in the cluster can move\n"
            "  CTA (0, 0, 0), warps 0 to 3, +3: mbarrier.try_wait.parity.shared::cta.b64, waits for mbarrier "
            "ready[1], "
            "parity 0: it is in phase 0 with 32 of 128 arrivals pending and 0 bytes outstanding\n"
            "  mbarrier ready[1], phase 0:\n"
            "    arrived: 96 arrivals by warps 0 to 2, mbarrier.arrive.shared::cta.b64 at +2");
}

TEST(Fault, NamedBarrierThatOneWarpDoesNotReach) {
  const std::string text = run(__LINE__, [](KernelBuilder&, const Tile&, const Tile&) {
    if_(warp_id < 2, [&] { ptx::instruction("barrier.sync.aligned", {1, 96}, tw::ir::Scope::warp); });
  });
  EXPECT_EQ(text,
            "+1: deadlock: nothing in the cluster can move\n"
            "  CTA (0, 0, 0), warps 0 to 1, +1: barrier.sync.aligned, waits for barrier 1: 64 of 96 threads "
            "have arrived");
}

TEST(Fault, BarrierThatPartOfAWarpReaches) {
  const std::string text = run(__LINE__, [](KernelBuilder&, const Tile&, const Tile&) {
    if_(lane_id < 5, [&] { ptx::instruction("barrier.sync.aligned", {0}); });
  });
  EXPECT_EQ(text,
            "+1: fault: an .aligned instruction is executed by 5 of the warp's 32 live lanes; the others "
            "have passed it\n"
            "  at barrier.sync.aligned\n"
            "  in CTA (0, 0, 0), warp 0, lanes 0x0000001f");
}

TEST(Fault, SharedMemoryThatNobodyWrote) {
  const std::string text = run(__LINE__, [](KernelBuilder& k, const Tile& A, const Tile& D) {
    auto As = k.shared(f32, {128, 32}, swizzle_128B, "As");
    cta.copy(As.tile({0, 0}, {64, 32}), A.tile({0, 0}, {64, 32}));
    cta.sync();
    cta.copy(D, As);
  });
  EXPECT_EQ(text,
            "+4: fault: read of shared memory that nothing has written: As + 9792 bytes (offset 9792) of CTA "
            "rank 0\n"
            "  at ld.shared.v4.b32\n"
            "  in CTA (0, 0, 0), warp 3");
}

TEST(Fault, OutputReadBeforeItIsWritten) {
  const std::string text = run(__LINE__, [](KernelBuilder& k, const Tile&, const Tile& D) {
    auto As = k.shared(f32, {128, 32}, swizzle_128B, "As");
    cta.copy(As, D);
  });
  EXPECT_EQ(text,
            "+2: fault: read of global memory that nothing has written: byte 0 of d (address D)\n"
            "  at ld.global.v4.b32\n"
            "  in CTA (0, 0, 0), warp 0");
}

TEST(Fault, ElementOutsideOfItsTensor) {
  const std::string text = run(__LINE__, [](KernelBuilder&, const Tile& A, const Tile& D) {
    D.store({thread_id + 1, 31}, A.load({thread_id, 0}));
  });
  EXPECT_EQ(text,
            "+1: fault: global address D + 16508 (4 bytes) lies in no allocation; the last one below is d, "
            "16384 bytes at D, "
            "which ends 124 bytes before\n"
            "  at st.global.b32\n"
            "  in CTA (0, 0, 0), warp 3, lane 31");
}

}  // namespace
