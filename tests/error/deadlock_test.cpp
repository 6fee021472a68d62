// What a user reads when nothing can move any more: who waits for what, who has come and who is missing, and
// the cycle of waits or the role that has left.
#include <gtest/gtest.h>

#include "tests/error/message.h"
#include "tilewright/base/format.h"
#include "tilewright/ptx/parser.h"
#include "tilewright/runtime/device.h"

namespace {

// Two mbarriers for one arrival each, initialised by thread 0; `body` begins on line 12 of user.ptx.
std::string run(std::string_view body, uint32_t threads, std::string_view schedule = "eager",
                std::string_view directives = "") {
  const std::string text = tw::format(
      ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k() {}\n{{\n"
      ".shared .align 8 .b64 full; .shared .align 8 .b64 empty;\n"
      ".reg .b32 %t, %i; .reg .pred %e, %q, %role;\n"
      "mov.u32 %t, %tid.x; setp.eq.u32 %e, %t, 0; setp.ge.u32 %role, %t, 32;\n"
      "@%e mbarrier.init.shared.b64 [full], 1;\n@%e mbarrier.init.shared.b64 [empty], 1;\nbar.sync 0;\n"
      "{}\nret;\n}}\n",
      directives, body);
  const tw::ptx::Module module = tw::ptx::parse(text, "user.ptx");
  const auto device = tw::Device::open("sim:h200");
  tw::sim::Launch launch;
  launch.block = {threads, 1, 1};
  tw::LaunchOptions options;
  options.sim.schedule = tw::sim::parse_schedule(schedule);
  const std::string what = tw::testing::text_of([&] { device->launch_ptx(module, "k", launch, options); });
  return what.substr(0, what.find("\nnote: in k"));
}

std::string wait(std::string_view label, std::string_view barrier, int parity) {
  return tw::format("{}: mbarrier.try_wait.parity.shared.b64 %q, [{}], {}; @!%q bra {};\n", label, barrier,
                    parity, label);
}

// B16: one role leaves after one tile, the other waits for two.
TEST(Deadlock, ThePeerHasLeft) {
  const std::string text =
      run("@%role bra consume;\n"
          "@%e mbarrier.arrive.shared.b64 _, [full];\n"
          "ret;\n"
          "consume:\n" +
              wait("a", "full", 0) + wait("b", "full", 1),
          64);
  EXPECT_EQ(
      text,
      "user.ptx:17:4: deadlock: nothing in the cluster can move\n"
      "  CTA (0, 0, 0), warp 1, user.ptx:17:4: mbarrier.try_wait.parity.shared.b64, waits for mbarrier full, "
      "parity 1: it is in phase 1 with 1 of 1 arrivals pending and 0 bytes outstanding\n"
      "  mbarrier full, phase 1:\n"
      "    nobody has come in this phase\n"
      "    missing: warp 0, which came in earlier phases; exited (user.ptx:14:1)");
}

// B23: each role waits for what the other would do next.
TEST(Deadlock, ACycleOfWaits) {
  const std::string text =
      run("@%role bra consume;\n"
          "@%e mbarrier.arrive.shared.b64 _, [full];\n"
          "bar.sync 3, 64;\n" +
              wait("a", "empty", 0) +
              "bar.sync 3, 64;\n"
              "ret;\n"
              "consume:\n" +
              wait("b", "full", 0) +
              "bar.sync 3, 64;\n"
              "bar.sync 3, 64;\n"
              "setp.eq.u32 %e, %t, 32;\n"
              "@%e mbarrier.arrive.shared.b64 _, [empty];\n",
          64);
  EXPECT_EQ(
      text,
      "user.ptx:15:4: deadlock: nothing in the cluster can move\n"
      "  CTA (0, 0, 0), warp 0, user.ptx:15:4: mbarrier.try_wait.parity.shared.b64, waits for mbarrier "
      "empty, "
      "parity 0: it is in phase 0 with 1 of 1 arrivals pending and 0 bytes outstanding\n"
      "  CTA (0, 0, 0), warp 1, user.ptx:21:1: bar.sync, waits for barrier 3: 32 of 64 threads have arrived\n"
      "  mbarrier empty, phase 0:\n"
      "    nobody has come in this phase\n"
      "  barrier 3:\n"
      "    missing: warp 0, which came in earlier phases\n"
      "  wait cycle, if the others are who should come: warp 0 waits at mbarrier empty for warp 1, which "
      "waits "
      "at barrier 3 for warp 0");
}

// B02: expect_tx where arrive.expect_tx was meant.
TEST(Deadlock, AnExpectIsNoArrival) {
  EXPECT_EQ(
      run("@%e mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [full], 128;\n" + wait("a", "full", 0), 32),
      "user.ptx:13:4: deadlock: nothing in the cluster can move\n"
      "  CTA (0, 0, 0), warp 0, user.ptx:13:4: mbarrier.try_wait.parity.shared.b64, waits for mbarrier full, "
      "parity 0: it is in phase 0 with 1 of 1 arrivals pending and 128 bytes outstanding\n"
      "  mbarrier full, phase 0:\n"
      "    armed: 128 bytes by warp 0, mbarrier.expect_tx.relaxed.cta.shared::cta.b64 at user.ptx:12:1\n"
      "    expect_tx only adds bytes: it is no arrival");
}

// B11: the next phase completes while a warp is still on its way to the one before.
TEST(Deadlock, APhaseHasLappedAWaiter) {
  const std::string text = run("@%e mbarrier.arrive.shared.b64 _, [full];\n" + wait("a", "full", 0) +
                                   "bar.sync 0;\n"
                                   "@%role bra late;\n"
                                   "@%e mbarrier.arrive.shared.b64 _, [full];\n"
                                   "@%e mbarrier.arrive.shared.b64 _, [full];\n"
                                   "bar.sync 1, 64;\n"
                                   "ret;\n"
                                   "late:\n"
                                   "bar.sync 1, 64;\n" +
                                   wait("b", "full", 1),
                               64);
  EXPECT_EQ(
      text,
      "user.ptx:22:4: deadlock: nothing in the cluster can move\n"
      "  CTA (0, 0, 0), warp 1, user.ptx:22:4: mbarrier.try_wait.parity.shared.b64, waits for mbarrier full, "
      "parity 1: it is in phase 3 with 1 of 1 arrivals pending and 0 bytes outstanding\n"
      "  mbarrier full, phase 3:\n"
      "    nobody has come in this phase\n"
      "    warp 1: saw 1 of its phases complete, 3 are: lapped\n"
      "    missing: warp 0, which came in earlier phases; exited (user.ptx:19:1)");
}

// B88: two warpgroups ask for registers that the third keeps.
TEST(Deadlock, RegistersThatNobodyGivesBack) {
  const std::string text =
      run("setp.lt.u32 %q, %t, 128;\n"
          "@%q bra keep;\n"
          "setmaxnreg.inc.sync.aligned.u32 232;\n"
          "keep:\n",
          384, "eager", ".reqntid 384, 1, 1");
  EXPECT_EQ(text,
            "user.ptx:14:1: deadlock: nothing in the cluster can move\n"
            "  CTA (0, 0, 0), warps 4 to 11, user.ptx:14:1: setmaxnreg.inc.sync.aligned.u32, waits for 2048 "
            "registers, the CTA's pool has 0 (setmaxnreg.inc)\n"
            "  the register pool:\n"
            "    168 registers a thread are held by warps 4 to 11\n"
            "    168 registers a thread went with warps 0 to 3; exited (user.ptx:17:1)");
}

}  // namespace
