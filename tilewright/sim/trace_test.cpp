#include "tilewright/sim/trace.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tilewright/base/error.h"
#include "tilewright/sim/testing.h"

// The trace of a run, and the schedule that starves a role: both need the roles of a debug map.
namespace tw::sim::testing {
namespace {

// Instructions after a label ROLE_x belong to role x.
Program with_roles(std::string_view text, const std::vector<std::string>& roles,
                   std::vector<ptx::Region> shared = {}) {
  ptx::Module module = ptx::parse(text, "test.ptx");
  for (auto& item : module.items) {
    auto* f = std::get_if<ptx::Function>(&item);
    if (!f) continue;
    int role = -1;
    for (ptx::Statement& s : f->body) {
      if (auto* label = std::get_if<ptx::Label>(&s); label && label->name.starts_with("ROLE_")) {
        const auto at = std::find(roles.begin(), roles.end(), label->name.substr(5));
        role = at == roles.end() ? -1 : static_cast<int>(at - roles.begin());
      }
      if (auto* inst = std::get_if<ptx::Instruction>(&s)) inst->role = role;
    }
  }
  auto names = std::make_shared<ptx::DebugMap>();
  names->roles = roles;
  names->shared = std::move(shared);
  return Program(std::make_shared<const ptx::Module>(std::move(module)), "k", small_machine(), names);
}

// Three warps, one a role: each counts to 50 and takes a ticket.
const char* const kTickets = R"(
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .shared .align 4 .b32 next;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r7, %r0, 31; setp.ne.u32 %p3, %r7, 0;
  setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [next], 1; bar.sync 0; mov.u32 %r2, 0;
  setp.eq.u32 %p1, %r1, 0; @%p1 bra ROLE_load; setp.eq.u32 %p1, %r1, 1; @%p1 bra ROLE_mma; bra ROLE_store;
  ROLE_load: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 50; @%p2 bra ROLE_load;
  @!%p3 atom.shared.add.u32 %r3, [next], 1; bra ROLE_end;
  ROLE_mma: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 50; @%p2 bra ROLE_mma;
  @!%p3 atom.shared.add.u32 %r3, [next], 1; bra ROLE_end;
  ROLE_store: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 50; @%p2 bra ROLE_store;
  @!%p3 atom.shared.add.u32 %r3, [next], 1;
  ROLE_end: mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd0, %rd1; @!%p3 st.global.u32 [%rd1], %r3; exit;)";
const std::vector<std::string> kRoles = {"load", "mma", "store"};

std::vector<uint32_t> tickets(std::string_view schedule, Observer* observer = nullptr) {
  Program program = with_roles(module_text(".param .u64 out", kTickets), kRoles);
  GlobalMemory memory;
  Buffer<uint32_t> out(memory, std::vector<uint32_t>(3, 0), "out");
  RunOptions options;
  options.schedule = parse_schedule(schedule);
  options.observer = observer;
  program.run({{}, {96, 1, 1}, {}, 0, Params().add(out.address).bytes()}, memory, options);
  return out.get();
}

TEST(Starve, TheRoleComesLast) {
  for (size_t role = 0; role < 3; ++role) EXPECT_EQ(tickets("starve:" + kRoles[role])[role], 3u) << role;
}

TEST(Starve, NamesItself) {
  EXPECT_EQ(to_string(parse_schedule("starve:mma")), "starve:mma");
  auto message = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  };
  EXPECT_EQ(message([] { tickets("starve:epilogue"); }),
            "schedule starve:epilogue: kernel k has no role 'epilogue'; its roles are load, mma, store");
  EXPECT_NE(message([] { parse_schedule("starve:"); }).find("starve:ROLE"), std::string::npos);
}

// A ring of one buffer: the load role writes, signals with an expected count; the mma role waits.
const char* const kRing = R"(
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .shared .align 8 .b64 full; .shared .align 4 .b32 word;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared.b64 [full], 1; bar.sync 0;
  setp.lt.u32 %p1, %r0, 32; @%p1 bra ROLE_load; bra ROLE_mma;
  ROLE_load: mov.u32 %r1, 7; @%p0 st.shared.u32 [word], %r1; @%p0 mbarrier.arrive.shared.b64 _, [full]; exit;
  ROLE_mma: mbarrier.try_wait.parity.shared.b64 %p2, [full], PARITY; @!%p2 bra ROLE_mma;
  ld.shared.u32 %r2, [word]; st.global.u32 [%rd0], %r2; exit;)";

std::string trace_of(std::string body, const char* parity, std::string_view schedule,
                     const TraceOptions& options = {}, uint32_t grid = 1) {
  body.replace(body.find("PARITY"), 6, parity);
  ptx::Region full;
  full.name = "full";
  full.begin = 0, full.end = 8;
  full.is_barrier = true;
  Program program = with_roles(module_text(".param .u64 out", body), {"load", "mma"}, {full});
  GlobalMemory memory;
  Buffer<uint32_t> out(memory, std::vector<uint32_t>(1, 0), "out");
  Trace trace(options);
  RunOptions run;
  run.schedule = parse_schedule(schedule);
  run.observer = &trace;
  try {
    program.run({{grid, 1, 1}, {64, 1, 1}, {}, 0, Params().add(out.address).bytes()}, memory, run);
  } catch (const Error&) {
  }
  return trace.json();
}
std::string ring_trace(const char* parity, std::string_view schedule, const TraceOptions& options = {},
                       uint32_t grid = 1) {
  return trace_of(kRing, parity, schedule, options, grid);
}
size_t count(const std::string& text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Trace, NamesRolesBarriersAndWaits) {
  const std::string json = ring_trace("0", "starve:load");
  EXPECT_EQ(count(json, R"x("name":"thread_name","args":{"name":"load (warp 0)"})x"), 1u) << json;
  EXPECT_EQ(count(json, R"x("args":{"name":"mma (warp 1)"})x"), 1u);
  EXPECT_EQ(count(json, R"("name":"arrive on full")"), 1u);
  EXPECT_EQ(count(json, R"("name":"full: phase 0 complete")"), 1u);
  // The consumer came first, waited, and passed after the arrival.
  EXPECT_EQ(count(json, R"("name":"waits for mbarrier full, parity 0")"), 1u);
  EXPECT_EQ(count(json, R"("name":"wait on full")"), 1u);
  EXPECT_EQ(count(json, R"("name":"barrier 0: phase 0 complete")"), 1u);
  EXPECT_EQ(count(json, "\"unfinished\""), 0u);
  // The same run writes the same trace.
  EXPECT_EQ(ring_trace("0", "starve:load"), json);
}

// A wait for a phase that never completes: the trace ends with it.
TEST(Trace, OfADeadlockShowsWhatWasUnderWay) {
  std::string body = kRing;
  body.replace(body.find("@%p0 mbarrier.arrive.shared.b64 _, [full];"), 42, "");
  const std::string json = trace_of(body, "0", "eager");
  EXPECT_GE(count(json, R"("name":"waits for mbarrier full, parity 0")"), 1u) << json;
  EXPECT_EQ(count(json, "\"unfinished\":true"), 1u);
}

TEST(Trace, CoversTheChosenCtasAndStaysBounded) {
  EXPECT_EQ(count(ring_trace("0", "eager", {}, 4), "process_name"), 1u);
  const std::string two = ring_trace("0", "eager", {.first_cta = 1, .ctas = 2}, 4);
  EXPECT_EQ(count(two, "process_name"), 2u);
  EXPECT_EQ(count(two, "CTA (2, 0, 0)"), 1u);
  const std::string small = ring_trace("0", "eager", {.max_events = 5});
  EXPECT_EQ(count(small, "\"ph\":\"X\"") + count(small, "\"ph\":\"i\""), 5u);
  EXPECT_EQ(count(small, "\"events left out\":0"), 0u);
}

}  // namespace
}  // namespace tw::sim::testing
