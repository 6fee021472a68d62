#include <gtest/gtest.h>

#include <map>

#include "tilewright/check/check.h"
#include "tilewright/check/elsewhere.h"
#include "tilewright/check/paged.h"
#include "tilewright/check/scope.h"
#include "tilewright/ptx/parser.h"
#include "tilewright/sim/testing.h"

namespace tw::check {
namespace {

using namespace sim::testing;

// ---- scopes ----

Semantics of(const std::string& instruction) {
  const ptx::Module m =
      ptx::parse(module_text("", ".reg .b32 %r; .reg .b64 %d; .reg .pred %p;\n" + instruction), "x");
  for (const ptx::Statement& s : m.entries()[0]->body)
    if (const auto* i = std::get_if<ptx::Instruction>(&s)) return semantics(*i);
  return {};
}

// The defaults are those of PTX ISA, "ld", "atom", "mbarrier.arrive", "barrier.cluster", "membar, fence".
TEST(Scopes, AreThoseOfTheInstruction) {
  EXPECT_FALSE(of("ld.global.u32 %r, [%d];").strong);
  const Semantics spin = of("ld.volatile.global.u32 %r, [%d];");
  EXPECT_TRUE(spin.strong && spin.observes && !spin.acquires);
  EXPECT_EQ(spin.scope, Scope::gpu);
  EXPECT_TRUE(of("ld.acquire.cluster.global.u32 %r, [%d];").acquires);
  EXPECT_EQ(of("ld.acquire.cluster.global.u32 %r, [%d];").scope, Scope::cluster);
  const Semantics atom = of("atom.global.add.u32 %r, [%d], 1;");
  EXPECT_TRUE(atom.strong && atom.observes && !atom.acquires && !atom.releases);
  EXPECT_EQ(atom.scope, Scope::gpu);
  const Semantics red = of("red.release.gpu.global.add.u32 [%d], 1;");
  EXPECT_TRUE(red.releases && !red.observes);
  const Semantics fence = of("membar.gl;");
  EXPECT_TRUE(fence.acquires && fence.releases);
  EXPECT_EQ(fence.scope, Scope::gpu);
  EXPECT_FALSE(of("fence.proxy.async;").releases);
  const Semantics arrive = of("mbarrier.arrive.shared::cluster.b64 _, [%r];");
  EXPECT_TRUE(arrive.releases);
  EXPECT_EQ(arrive.scope, Scope::cta);
  EXPECT_FALSE(of("barrier.cluster.arrive.relaxed;").releases);
  EXPECT_TRUE(of("barrier.cluster.wait;").acquires);
}

// ---- the shadow ----

// Against one entry a byte: which earlier accesses an access meets, where nothing is ordered but a stamp with
// itself.
TEST(PagedShadow, MeetsWhatAListOfAllBytesMeets) {
  constexpr uint64_t base = 3 * PagedShadow::kPage - 512;
  PagedShadow shadow([](uint64_t) { return std::pair<uint64_t, uint64_t>{0, 1 << 20}; });
  std::map<uint64_t, std::pair<uint32_t, std::vector<uint32_t>>> bytes;  // last write, reads since
  uint32_t seed = 1;
  const auto random = [&](uint32_t below) { return (seed = seed * 1664525 + 1013904223) / 65536 % below; };
  for (uint32_t stamp = 1; stamp <= 400; ++stamp) {
    const uint64_t begin = base + random(64) * 16, size = 16 * (1 + random(6));
    const bool write = random(4) == 0;
    bool expected = false, met = false;
    for (uint64_t b = begin; b < begin + size; ++b) {
      auto& [last, reads] = bytes[b];
      expected |= last != 0 || (write && !reads.empty());
      if (write) last = stamp, reads.clear();
      else reads.push_back(stamp);
    }
    shadow.access(
        begin, size, stamp, write, false, [&](Shadow::Entry) { met = true; },
        [](Shadow::Entry) { return false; });
    EXPECT_EQ(met, expected) << "access " << stamp;
  }
}

TEST(PagedShadow, RowsReadBeforeTheFirstWriteAreMet) {
  PagedShadow shadow([](uint64_t) { return std::pair<uint64_t, uint64_t>{0, 1 << 20}; });
  const auto never = [](Shadow::Entry) { return false; };
  std::vector<uint32_t> met;
  const auto note = [&](Shadow::Entry e) { met.push_back(e.stamp()); };
  shadow.read({256, 64, 1024, 8, 1, false}, note, never);
  shadow.access(256 + 3 * 1024 + 64, 64, 2, true, false, note, never);  // between two rows
  EXPECT_TRUE(met.empty());
  shadow.access(256 + 3 * 1024 + 60, 4, 3, true, false, note, never);
  EXPECT_EQ(met, std::vector<uint32_t>{1});
}

TEST(PagedShadow, TellsWhatIsNew) {
  PagedShadow shadow([](uint64_t) { return std::pair<uint64_t, uint64_t>{0, 1 << 20}; });
  const auto ignore = [](Shadow::Entry) {};
  const auto never = [](Shadow::Entry) { return false; };
  const auto told = [&](uint32_t since) {
    uint64_t written = 0, read = 0;
    shadow.each_since(
        since, [&](uint64_t, uint64_t n, uint32_t, bool write, bool) { (write ? written : read) += n; },
        [&](const PagedShadow::Rows& r) { read += r.bytes * r.count; });
    return std::pair{written, read};
  };
  shadow.access(4000, 200, 1, true, false, ignore, never);
  shadow.read({1 << 16, 128, 512, 4, 2, false}, ignore, never);
  EXPECT_EQ(told(1), (std::pair<uint64_t, uint64_t>{200, 128 * 4 + 0}));
  EXPECT_EQ(told(3), (std::pair<uint64_t, uint64_t>{0, 0}));
  shadow.access(4096, 16, 3, false, false, ignore, never);
  EXPECT_EQ(told(3), (std::pair<uint64_t, uint64_t>{0, 16}));
}

TEST(Elsewhere, MergesByCluster) {
  const auto known = [](uint64_t cluster, uint32_t epoch) {
    auto k = std::make_shared<Known>();
    k->ordinary.set(1, epoch);
    return std::make_shared<const ElsewhereMap>(ElsewhereMap{{cluster, k}});
  };
  const Elsewhere a = merged(known(2, 5), known(7, 1));
  ASSERT_EQ(a->size(), 2u);
  EXPECT_EQ(merged(a, known(2, 4)), a);  // nothing new
  const Elsewhere b = merged(a, known(2, 6));
  EXPECT_EQ(find(b, 2)->ordinary[1], 6u);
  EXPECT_EQ(find(b, 7)->ordinary[1], 1u);
  EXPECT_EQ(find(b, 3), nullptr);
  EXPECT_EQ(find(proxied(b, 4), 2)->proxied[4 + 1], 6u);  // behind the parts of shared memory
  EXPECT_EQ(find(proxied(b, 4), 2)->proxied[1], 0u);
  EXPECT_EQ(find(mapped(b), 2)->maps[1], 6u);
  EXPECT_EQ(find(mapped(b), 2)->proxied[1], 0u);
  EXPECT_EQ(find(merged(b, mapped(b)), 2)->maps[1], 6u);
}

// ---- several CTAs on several host threads ----

// CTA i adds i to a counter, and writes element i of `out`; the one that comes last sums up.
CheckReport last_of(int ctas, std::string_view before, std::string_view after, int host_threads) {
  sim::Program program =
      compile(module_text(".param .u64 out, .param .u64 count", tw::format(R"(
    .reg .b32 %b, %t, %v, %i; .reg .b64 %out, %count, %o; .reg .pred %p;
    mov.u32 %t, %tid.x; setp.ne.u32 %p, %t, 0; @%p ret;
    ld.param.u64 %out, [out]; ld.param.u64 %count, [count];
    mov.u32 %b, %ctaid.x; mul.wide.u32 %o, %b, 4; add.u64 %o, %o, %out;
    st.global.u32 [%o], %b;
    {}
    atom.global.add.u32 %v, [%count], 1;
    {}
    setp.ne.u32 %p, %v, {}; @%p ret;
    mov.u32 %i, 0;
more:
    ld.global.u32 %v, [%out]; add.u64 %out, %out, 4; add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, {}; @%p bra more;
    ret;)",
                                                                           before, after, ctas - 1, ctas)));
  return check::check([&](const sim::RunOptions& options) {
    sim::GlobalMemory memory;
    const uint64_t out = memory.allocate(4 * static_cast<uint64_t>(ctas), "out"),
                   count = memory.allocate(4, "count");
    memory.write(count, std::vector<std::byte>(4));
    sim::Launch launch;
    launch.grid = {static_cast<uint32_t>(ctas), 1, 1};
    launch.cluster = {1, 1, 1};
    launch.block = {32, 1, 1};
    const auto arguments = Params().add(out).add(count).bytes();
    launch.params = arguments;
    sim::RunOptions run = options;
    run.host_threads = host_threads;
    program.run(launch, memory, run);
  });
}

TEST(GlobalMemory, TheLastCtaSeesWhatFencesReleased) {
  const CheckReport right = last_of(40, "membar.gl;", "membar.gl;", 4);
  EXPECT_EQ(right.verdict, Verdict::clean) << to_text(right);
  EXPECT_EQ(last_of(40, "", "membar.gl;", 4).verdict, Verdict::faults);
  EXPECT_EQ(last_of(40, "membar.gl;", "", 4).verdict, Verdict::faults);
  EXPECT_EQ(last_of(40, "membar.cta;", "membar.gl;", 4).verdict, Verdict::faults);
  EXPECT_EQ(last_of(40, "membar.cta;", "membar.gl;", 4).faults[0].kind, FaultKind::scope);
}

TEST(GlobalMemory, WhatIsFoundDoesNotDependOnHostThreads) {
  const std::string one = to_text(last_of(60, "", "", 1));
  EXPECT_NE(one.find("out"), std::string::npos) << one;
  for (const int threads : {2, 3, 7}) EXPECT_EQ(to_text(last_of(60, "", "", threads)), one);
}

}  // namespace
}  // namespace tw::check
