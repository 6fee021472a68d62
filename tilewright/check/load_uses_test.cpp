// Which loads of tensor memory count as used: those all of whose values have been read in all lanes.
#include "tilewright/check/load_uses.h"

#include <gtest/gtest.h>

#include "tilewright/ptx/parser.h"

namespace tw::check {
namespace {

constexpr uint32_t kAll = ~0u;
const Moment kNow{3, 7};

struct Warp {
  UnwaitedLoads loads;
  std::shared_ptr<Operation> load(const std::vector<uint32_t>& registers) {
    auto op = std::make_shared<Operation>();
    loads.issued(op, registers, kAll);
    return op;
  }
  void reads(std::vector<uint32_t> registers, uint32_t lanes = kAll) {
    loads.executed({std::move(registers), {}, false}, lanes, kNow);
  }
  void moves(uint32_t to, uint32_t from, uint32_t lanes = kAll) {
    loads.executed({{from}, {to}, true}, lanes, kNow);
  }
  // The load that may still fill it.
  std::shared_ptr<const Operation> writes(uint32_t reg, uint32_t lanes = kAll) {
    return loads.executed({{}, {reg}, false}, lanes, kNow);
  }
};

TEST(UnwaitedLoads, EveryValueHasToBeRead) {
  Warp w;
  const auto op = w.load({10, 11});
  w.reads({10, 10});
  EXPECT_FALSE(op->used);
  w.reads({11});
  ASSERT_TRUE(op->used);
  EXPECT_EQ(op->used->actor, kNow.actor);
  EXPECT_EQ(op->used->epoch, kNow.epoch);
  EXPECT_FALSE(w.loads.any());
}

TEST(UnwaitedLoads, InEveryLane) {
  Warp w;
  const auto op = w.load({10});
  w.reads({10}, 0x0000ffff);
  EXPECT_FALSE(op->used);
  w.reads({10}, 0xffff0000);
  EXPECT_TRUE(op->used);
}

TEST(UnwaitedLoads, ACopyIsNoUseButItsUseIs) {
  Warp w;
  const auto op = w.load({10});
  w.moves(20, 10);
  w.moves(21, 20);
  EXPECT_FALSE(op->used);
  w.reads({21});
  EXPECT_TRUE(op->used);
}

TEST(UnwaitedLoads, AnOverwrittenValueIsUsedByNobody) {
  Warp w;
  const auto op = w.load({10});
  EXPECT_EQ(w.writes(10), op);
  w.reads({10});
  EXPECT_FALSE(op->used);
  EXPECT_FALSE(w.loads.any());
}

TEST(UnwaitedLoads, ARegisterThatWasTouchedHasItsValue) {
  Warp w;
  const auto op = w.load({10, 11, 12});
  w.reads({10});
  EXPECT_EQ(w.writes(10), nullptr);
  w.moves(20, 11);
  EXPECT_EQ(w.writes(11), nullptr);
  w.reads({12}, 0x0000ffff);
  EXPECT_EQ(w.writes(12, 0x0000ffff), nullptr);
  EXPECT_EQ(w.writes(12), op);
}

TEST(UnwaitedLoads, ALaneThatOverwroteItsValueDoesNotReadIt) {
  Warp w;
  const auto op = w.load({10});
  w.moves(20, 10);
  w.writes(10, 1);
  w.reads({10});
  EXPECT_FALSE(op->used);
  w.reads({20}, 1);
  EXPECT_TRUE(op->used);
}

TEST(UnwaitedLoads, TwoLoadsDoNotWaitForEachOther) {
  Warp w;
  const auto one = w.load({10}), two = w.load({11});
  w.reads({11});
  EXPECT_FALSE(one->used);
  EXPECT_TRUE(two->used);
}

TEST(UnwaitedLoads, WhatIsWaitedForIsNoConcern) {
  Warp w;
  const auto op = w.load({10});
  w.loads.waited();
  w.reads({10});
  EXPECT_FALSE(op->used);
}

TEST(RegisterTable, AnInstructionWritesAndReadsWhatItsOperandsSay) {
  const ptx::Module m = ptx::parse(R"(
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k() {
  .reg .b32 %at, %a, %b;
  .reg .b64 %both;
  .reg .pred %p;
  @%p tcgen05.ld.sync.aligned.32x32b.x2.b32 {%a, %b}, [%at];
  mov.b64 %both, {%a, %b};
  ret;
}
)",
                                   "k.ptx");
  const auto& body = m.entries()[0]->body;
  std::vector<const ptx::Instruction*> code;
  for (const ptx::Statement& s : body)
    if (const auto* i = std::get_if<ptx::Instruction>(&s)) code.push_back(i);
  RegisterTable table;
  const RegisterUses &load = table.of(0, *code.at(0)), &move = table.of(1, *code.at(1));
  EXPECT_EQ(load.read, (std::vector<uint32_t>{4, 0}));
  EXPECT_EQ(load.written, (std::vector<uint32_t>{1, 2}));
  EXPECT_FALSE(load.copies);
  EXPECT_EQ(move.read, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(move.written, (std::vector<uint32_t>{3}));
  EXPECT_TRUE(move.copies);
}

}  // namespace
}  // namespace tw::check
