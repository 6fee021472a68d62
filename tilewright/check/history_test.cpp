#include "tilewright/check/history.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

namespace tw::check {
namespace {

Clock knows(uint32_t first, uint32_t second) {
  Clock c(2);
  c.set(0, first);
  c.set(1, second);
  return c;
}

TEST(Stream, WhoeverWaitedForALaterOperationKnowsOfTheEarlier) {
  Stream s;
  s.acquired(0, 5, 3);
  EXPECT_TRUE(s.over(3, knows(5, 0)));
  EXPECT_TRUE(s.over(1, knows(6, 0)));
  EXPECT_FALSE(s.over(4, knows(9, 9)));
  EXPECT_FALSE(s.over(3, knows(4, 9)));
}

// What keep() forgets makes no difference to those operations.
TEST(Stream, ForgettingChangesNoAnswer) {
  EXPECT_TRUE(rc::check([] {
    Stream whole;
    std::array<std::pair<uint32_t, uint64_t>, 2> now{};  // by actor: epoch, and what it knows to be over
    const auto events = *rc::gen::container<std::vector<std::tuple<bool, uint8_t, uint8_t>>>(rc::gen::tuple(
        rc::gen::arbitrary<bool>(), rc::gen::inRange<uint8_t>(1, 4), rc::gen::inRange<uint8_t>(0, 3)));
    for (const auto& [actor, later, more] : events) {
      auto& [epoch, over] = now[actor];
      epoch += later, over += more;
      whole.acquired(actor, epoch, over);
    }
    auto alive = *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(1, 20));
    std::sort(alive.begin(), alive.end());
    Stream kept = whole;
    kept.keep(alive);
    RC_ASSERT(kept.size() <= 2 * alive.size());
    for (const uint64_t index : alive)
      for (uint32_t a = 0; a < 30; ++a)
        for (uint32_t b = 0; b < 30; ++b)
          RC_ASSERT(kept.over(index, knows(a, b)) == whole.over(index, knows(a, b)));
  }));
}

TEST(Stamps, OneAccessTwiceIsOneStamp) {
  Stamps stamps;
  Stamp s;
  s.pc = 7;
  const uint32_t first = stamps.number(s);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(stamps.number(s), first);
  s.write = true;
  const uint32_t write = stamps.number(s);
  EXPECT_NE(write, first);
  // One lane after the other reads and writes.
  s.write = false;
  EXPECT_EQ(stamps.number(s), first);
  s.write = true;
  EXPECT_EQ(stamps.number(s), write);
  s.epoch = 1;
  EXPECT_GT(stamps.number(s), write);
}

// A million accesses of 64 bytes: the table holds those that the bytes still remember.
TEST(Stamps, ARunOfAnyLengthNeedsTheMemoryOfItsLastAccesses) {
  Stamps stamps;
  Shadow shadow(64);
  const auto none = [](Shadow::Entry, Shadow::Entry) {};
  const auto ordered = [](Shadow::Entry, Shadow::Entry) { return true; };
  size_t most = 0;
  for (uint32_t n = 0; n < 1'000'000; ++n) {
    if (stamps.full()) stamps.prune({&shadow});
    Stamp s;
    s.epoch = n;
    s.write = true;
    shadow.access(n % 4 * 16, 16, stamps.number(s), true, false, none, ordered);
    most = std::max(most, stamps.size());
  }
  EXPECT_LE(most, size_t{1} << 16);
  stamps.prune({&shadow});
  EXPECT_EQ(stamps.size(), 4u);
  // Each cell still names its own last access.
  std::vector<uint32_t> epochs;
  shadow.each_stamp([&](uint32_t& stamp) { epochs.push_back(stamps[stamp].epoch); });
  EXPECT_EQ(epochs, (std::vector<uint32_t>{999'996, 999'997, 999'998, 999'999}));
}

TEST(Operations, OnesThatAreGoneAreForgotten) {
  Operations all;
  Stream lasting;
  lasting.acquired(0, 1, 1);
  auto op = all.make();
  op->done = std::make_shared<Stream>();
  op->index = 1;
  for (uint32_t epoch = 1; epoch < 100; ++epoch) op->done->acquired(0, epoch, epoch);
  all.prune({&lasting});
  EXPECT_EQ(all.size(), 1u);
  EXPECT_EQ(op->done->size(), 1u);
  EXPECT_EQ(lasting.size(), 0u);
  op.reset();
  all.prune({});
  EXPECT_EQ(all.size(), 0u);
}

// The same accesses of one cell in order, cell by cell against every access that came before.
TEST(Shadow, EveryEarlierAccessOfTheSameBytesIsHeardOf) {
  EXPECT_TRUE(rc::check([] {
    const auto accesses = *rc::gen::container<std::vector<std::tuple<uint8_t, uint8_t, bool>>>(rc::gen::tuple(
        rc::gen::inRange<uint8_t>(0, 48), rc::gen::inRange<uint8_t>(1, 16), rc::gen::arbitrary<bool>()));
    Shadow shadow(64);
    struct Past {
      uint32_t begin, end;
      bool write;
    };
    std::vector<Past> past(1);
    for (const auto& [begin, bytes, write] : accesses) {
      const Past now{begin, uint32_t{begin} + bytes, write};
      const auto id = static_cast<uint32_t>(past.size());
      std::set<uint32_t> heard;
      shadow.access(
          begin, bytes, id, write, false, [&](Shadow::Entry e, Shadow::Entry) { heard.insert(e.stamp()); },
          [](Shadow::Entry, Shadow::Entry) { return false; });
      // By byte: the last write and the reads since are what it must hear of, if one of the two writes.
      std::set<uint32_t> due;
      for (uint32_t at = now.begin; at < now.end; ++at)
        for (uint32_t n = id - 1; n > 0; --n) {
          if (at < past[n].begin || at >= past[n].end) continue;
          if (past[n].write || write) due.insert(n);
          if (past[n].write) break;
        }
      for (const uint32_t n : due) RC_ASSERT(heard.contains(n));
      for (const uint32_t n : heard)
        RC_ASSERT(past[n].begin < now.end && now.begin < past[n].end && (past[n].write || write));
      past.push_back(now);
    }
  }));
}

}  // namespace
}  // namespace tw::check
