#include "tilewright/check/lane_order.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>

namespace tw::check {
namespace {

constexpr uint16_t kWhole = 0xFFFF;

ShadowEntry by(LaneOwner owner, bool write) { return {1, kWhole, write, false, owner}; }

// Of any size of the test.
auto below(uint32_t end) { return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<uint32_t>(0, end)); }

// ---- whose bytes ----

// What a shadow says of each byte is the lane that touched it, wherever the run of lanes begins and however
// much each has.
TEST(LaneRun, EachByteBelongsToItsLane) {
  EXPECT_TRUE(rc::check([] {
    const uint32_t bytes = 1u << *below(6), first = *below(32), count = 1 + *below(32 - first);
    const uint64_t begin = uint64_t{*below(64)} * bytes;
    Shadow shadow(4096);
    const auto never = [](ShadowEntry, ShadowEntry) { return false; };
    shadow.access(
        begin, uint64_t{count} * bytes, 1, true, false, [](ShadowEntry, ShadowEntry) {}, never,
        LaneRun(first, begin, bytes));
    std::map<uint64_t, int> lanes;
    shadow.each([&](uint64_t cell, ShadowEntry e) {
      for (uint32_t b = 0; b < 16; ++b)
        if (e.bytes() >> b & 1) lanes[cell * 16 + b] = e.owner().lane(b);
    });
    RC_ASSERT(lanes.size() == uint64_t{count} * bytes);
    for (const auto& [at, lane] : lanes) RC_ASSERT(lane == static_cast<int>(first + (at - begin) / bytes));
  }));
}

TEST(LaneRun, LanesThatTouchTheSameBytesAreSeveral) {
  ShadowEntry e = by(LaneOwner::one(3), false);
  EXPECT_TRUE(e.take_in(by(LaneOwner::one(3), false)));
  EXPECT_EQ(e.owner(), LaneOwner::one(3));
  EXPECT_TRUE(e.take_in(by(LaneOwner::one(4), false)));
  EXPECT_TRUE(e.owner().is_several());
  EXPECT_TRUE(e.take_in(by(LaneOwner::one(5), false)));
  // Other bytes of another lane need an entry of their own.
  ShadowEntry half(1, 0x00FF, false, false, LaneOwner::one(3));
  EXPECT_FALSE(half.take_in({1, 0xFF00, false, false, LaneOwner::one(4)}));
  EXPECT_TRUE(half.take_in({1, 0xFF00, false, false, LaneOwner::one(3)}));
  EXPECT_EQ(half.bytes(), kWhole);
}

// Also where each reads what it writes, so that an entry of the reads comes between.
TEST(LaneRun, LanesThatUpdateTheSameBytesByOneInstructionAreSeveral) {
  Shadow shadow(16);
  const auto none = [](ShadowEntry, ShadowEntry) {};
  const auto never = [](ShadowEntry, ShadowEntry) { return false; };
  for (uint32_t lane = 0; lane < 3; ++lane) {
    shadow.access(0, 16, 1, false, false, none, never, LaneRun(lane, 0, 16));
    shadow.access(0, 16, 2, true, false, none, never, LaneRun(lane, 0, 16));
  }
  int entries = 0;
  shadow.each([&](uint64_t, ShadowEntry e) {
    ++entries;
    EXPECT_TRUE(e.write() && e.owner().is_several());
  });
  EXPECT_EQ(entries, 1);
}

// ---- order ----

class Lanes : public ::testing::Test {
 protected:
  LaneEpochs next() { return {++epochs_[0], ++epochs_[1]}; }
  Stamp now(uint32_t part) const {
    Stamp s;
    s.actor = 6 + part;
    s.epoch = epochs_[part];
    return s;
  }
  bool race(int earlier, const Stamp& at, int later, bool write = true) const {
    return order_.unordered(by(LaneOwner::one(earlier), write), by(LaneOwner::one(later), true), at)
        .has_value();
  }
  LaneEpochs epochs_{1, 1};
  LaneOrder order_;
};

TEST_F(Lanes, AreApartUntilTheyMeet) {
  const Stamp s = now(1);
  EXPECT_FALSE(race(0, s, 0));
  EXPECT_TRUE(race(0, s, 1));
  order_.meet(0b11, next());
  EXPECT_FALSE(race(0, s, 1));
  EXPECT_TRUE(race(0, s, 2));
  order_.meet(0b110, next());  // lane 2 hears of it from lane 1
  EXPECT_FALSE(race(0, s, 2));
  EXPECT_TRUE(race(0, s, 3));
  const Stamp later = now(0);
  EXPECT_TRUE(race(0, later, 1));
  order_.meet_all(next());
  EXPECT_FALSE(race(0, s, 3));
  EXPECT_FALSE(race(0, later, 1));
}

// CUDA Programming Guide, "Warp Shuffle Functions": no memory barrier. A value that was read has been
// read.
TEST_F(Lanes, AShuffleOrdersNoWrites) {
  const Stamp s = now(0);
  order_.exchange_all(next());
  EXPECT_TRUE(race(0, s, 1));
  EXPECT_FALSE(race(0, s, 1, false));
}

TEST_F(Lanes, OfSeveralReadersOneIsAnother) {
  const Stamp s = now(0);
  const auto race = [&](int lane) {
    return order_.unordered(by(LaneOwner::several(), false), by(LaneOwner::one(lane), true), s).has_value();
  };
  EXPECT_TRUE(race(0));
  order_.hear(1, {s.epoch + 1, 0});
  EXPECT_FALSE(race(0));
  EXPECT_TRUE(race(1));
  order_.meet(0b11, next());  // who the readers were is not known any more
  EXPECT_FALSE(race(2));
}

TEST_F(Lanes, ACopyByAllFollowsAnEditByOneWhenAllHaveMet) {
  const Stamp s = now(1);
  const auto race = [&] {
    return order_.unordered(by(LaneOwner::one(0), true), by(LaneOwner::several(), false), s).has_value();
  };
  EXPECT_TRUE(race());
  order_.meet(0xFFFF, next());
  EXPECT_TRUE(race());
  order_.meet_all(next());
  EXPECT_FALSE(race());
}

// "bar.warp.sync": lanes of one mask may wait at different instructions, and pass one after the other.
TEST_F(Lanes, AMeetingInSeveralPlacesIsOne) {
  EXPECT_TRUE(order_.first_of(0xF, 0x3));
  EXPECT_FALSE(order_.first_of(0xF, 0x4));
  EXPECT_FALSE(order_.first_of(0xF, 0x8));
  EXPECT_TRUE(order_.first_of(0xF, 0xF));
  EXPECT_TRUE(order_.first_of(0xF, 0x8));
}

// Against sets of accesses that each lane knows of.
TEST(LaneOrder, KnowsWhatListsOfAccessesKnow) {
  EXPECT_TRUE(rc::check([] {
    struct Access {
      int lane;
      bool write;
      Stamp stamp;
    };
    struct Released {
      LaneEpochs before;
      size_t accesses;
    };
    std::vector<Access> all;
    std::vector<Released> released;
    std::array<std::set<size_t>, 32> known;
    LaneEpochs epochs{1, 1};
    LaneOrder order;
    const auto next = [&] { return LaneEpochs{++epochs[0], ++epochs[1]}; };
    const auto share = [&](uint32_t lanes, bool writes) {
      std::set<size_t> both;
      for (uint32_t l = 0; l < 32; ++l)
        if (lanes >> l & 1)
          for (const size_t a : known[l])
            if (writes || !all[a].write) both.insert(a);
      for (uint32_t l = 0; l < 32; ++l)
        if (lanes >> l & 1) known[l].insert(both.begin(), both.end());
    };
    for (int n = 0; n < 40; ++n) {
      const uint32_t lanes = *below(15) + 1;  // of lanes 0 to 3
      switch (*rc::gen::weightedElement<int>({{1, 0}, {4, 1}, {3, 2}, {3, 3}, {3, 4}, {8, 5}})) {
        case 0: order.meet_all(next()), share(~0u, true); break;
        case 1: order.meet(lanes, next()), share(lanes, true); break;
        case 2: order.exchange(lanes, next()), share(lanes, false); break;
        case 3: next(), released.push_back({epochs, all.size()}); break;
        case 4:
          if (released.empty()) break;
          {
            const Released& from = released[*below(static_cast<uint32_t>(released.size()))];
            order.hear(lanes, from.before);
            for (uint32_t l = 0; l < 32; ++l)
              if (lanes >> l & 1)
                for (size_t a = 0; a < from.accesses; ++a) known[l].insert(a);
            break;
          }
        default: {
          Access a{static_cast<int>(*below(4)), *below(2) == 1, {}};
          a.stamp.actor = *below(2);
          a.stamp.epoch = epochs[a.stamp.actor];
          known[static_cast<size_t>(a.lane)].insert(all.size());
          all.push_back(a);
        }
      }
      for (size_t i = 0; i < all.size(); ++i)
        for (int b = 0; b < 5; ++b) {
          const bool race = order
                                .unordered(by(LaneOwner::one(all[i].lane), all[i].write),
                                           by(LaneOwner::one(b), true), all[i].stamp)
                                .has_value();
          RC_ASSERT(race == !(b == all[i].lane || known[static_cast<size_t>(b)].contains(i)));
        }
    }
  }));
}

}  // namespace
}  // namespace tw::check
