#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "tests/machines/random_operations.h"
#include "tests/machines/stepper.h"
#include "tilewright/sim/testing.h"

// mbarrier objects: the simulator against a reference that keeps every event of a phase and counts them anew
// for each question.
namespace tw::machines {
namespace {

constexpr int64_t kLimit = (int64_t{1} << 20) - 1;  // "Contents of the mbarrier object"
constexpr uint32_t kBarriers = 8, kTokens = 16;

enum class Kind : uint8_t {
  init,
  inval,
  arrive,
  arrive_no_complete,
  arrive_drop,
  arrive_drop_no_complete,
  arrive_expect_tx,
  arrive_drop_expect_tx,
  expect_tx,
  complete_tx,
  increase_pending,  // what cp.async.mbarrier.arrive without .noinc does first; not driven through PTX
  test_wait,
  test_wait_parity,
  pending_count,
};
constexpr const char* kNames[] = {"init",
                                  "inval",
                                  "arrive",
                                  "arrive.noComplete",
                                  "arrive_drop",
                                  "arrive_drop.noComplete",
                                  "arrive.expect_tx",
                                  "arrive_drop.expect_tx",
                                  "expect_tx",
                                  "complete_tx",
                                  "increase pending",
                                  "test_wait",
                                  "test_wait.parity",
                                  "pending_count"};

struct Op {
  Kind kind = Kind::init;
  uint32_t barrier = 0;
  uint32_t amount = 0;  // count, bytes, or parity
  uint32_t token = 0;   // where the state goes or comes from
};
std::string describe(const Op& op) {
  return tw::format("mbarrier[{}] {} {} (state {})", op.barrier, kNames[static_cast<int>(op.kind)], op.amount,
                    op.token);
}

// Words of the message that must name the rule an operation breaks.
enum class Rule : uint8_t {
  none,
  not_initialised,
  live,
  count_range,
  arrivals,
  no_complete,
  tx_range,
  last_drop,
  old_state
};
constexpr const char* kWords[] = {"",           "no mbarrier", "already",  "2^20-1",   "more arrivals",
                                  "noComplete", "tx-count",    "expected", "preceding"};

// --- the reference ---

class Reference {
 public:
  // "mbarrier.init": the lifecycle is that of "Lifecycle of the mbarrier object".
  explicit Reference(int64_t count) : at_start_(count) {}

  int64_t pending() const {  // "Arrive-on operation on mbarrier object"
    int64_t n = at_start_;
    for (const Event& e : events_) n += e.increase - e.arrivals;
    return n;
  }
  int64_t tx() const {  // "expect-tx operation", "complete-tx operation"
    int64_t n = 0;
    for (const Event& e : events_) n += e.expected_bytes - e.completed_bytes;
    return n;
  }
  int64_t expected() const {  // "mbarrier.arrive_drop"
    int64_t n = at_start_;
    for (const Event& e : events_) n -= e.dropped;
    return n;
  }
  uint64_t phase() const { return phase_; }

  // More bytes at once than the tx-count's range fault, wherever the count stood: recorded on an H200
  // (conformance cases barrier/large_tx and large_complete_tx).
  Rule expect(int64_t bytes) {
    if (bytes > kLimit) return Rule::tx_range;
    events_.push_back({.expected_bytes = bytes});
    return settle();
  }
  Rule complete(int64_t bytes) {
    if (bytes > kLimit) return Rule::tx_range;
    events_.push_back({.completed_bytes = bytes});
    return settle();
  }
  Rule arrive(int64_t count, bool drop, bool may_complete) {
    if (count > kLimit) return Rule::count_range;
    events_.push_back({.arrivals = count, .dropped = drop ? count : 0});
    if (!may_complete && done()) return Rule::no_complete;
    if (const Rule broken = in_range(); broken != Rule::none) return broken;
    return may_complete ? settle() : Rule::none;
  }
  Rule increase(int64_t count) {  // "cp.async.mbarrier.arrive"
    events_.push_back({.increase = count});
    return in_range();
  }

 private:
  struct Event {
    int64_t arrivals = 0, dropped = 0, increase = 0, expected_bytes = 0, completed_bytes = 0;
  };
  Rule in_range() const {  // the table of "Contents of the mbarrier object"
    if (tx() < -kLimit || tx() > kLimit) return Rule::tx_range;
    if (pending() < 0) return Rule::arrivals;
    if (pending() > kLimit) return Rule::count_range;
    if (expected() < 1) return Rule::last_drop;
    return Rule::none;
  }
  bool done() const { return pending() == 0 && tx() == 0; }
  Rule settle() {  // "Phase Completion of the mbarrier object"
    if (const Rule broken = in_range(); broken != Rule::none) return broken;
    if (done()) {
      at_start_ = expected();
      events_.clear();
      ++phase_;
    }
    return Rule::none;
  }
  int64_t at_start_;  // arrivals that the phase began with
  std::vector<Event> events_;
  uint64_t phase_ = 0;
};

struct State {  // what an arrive returned
  uint32_t barrier = 0;
  uint64_t life = 0, phase = 0;
  int64_t pending = 0;
  bool counts = false;  // from a .noComplete form: mbarrier.pending_count may ask
};

// All barriers and states.
class World {
 public:
  std::array<std::optional<Reference>, kBarriers> barriers;
  std::array<std::optional<State>, kTokens> states;

  // Whether the operation can be asked of both: states must exist, and be of this barrier's life.
  bool meaningful(const Op& op) const {
    const auto& state = states[op.token];
    if (op.kind == Kind::test_wait)
      return state && state->barrier == op.barrier && state->life == lives_[op.barrier] &&
             barriers[op.barrier].has_value();
    if (op.kind == Kind::pending_count) return state && state->counts;
    return true;
  }

  Rule apply(const Op& op, uint32_t& result) {
    if (op.kind == Kind::pending_count) {
      result = static_cast<uint32_t>(states[op.token]->pending);
      return Rule::none;
    }
    auto& barrier = barriers[op.barrier];
    if (op.kind == Kind::init) {
      if (op.amount < 1 || op.amount > kLimit) return Rule::count_range;
      if (barrier) return Rule::live;
      barrier.emplace(op.amount);
      ++lives_[op.barrier];
      return Rule::none;
    }
    if (!barrier) return Rule::not_initialised;
    switch (op.kind) {
      case Kind::inval: barrier.reset(); return Rule::none;
      case Kind::arrive: keep(op, false); return barrier->arrive(op.amount, false, true);
      case Kind::arrive_no_complete: keep(op, true); return barrier->arrive(op.amount, false, false);
      case Kind::arrive_drop: keep(op, false); return barrier->arrive(op.amount, true, true);
      case Kind::arrive_drop_no_complete: keep(op, true); return barrier->arrive(op.amount, true, false);
      case Kind::arrive_expect_tx:
      case Kind::arrive_drop_expect_tx: {
        const Rule broken = barrier->expect(op.amount);
        if (broken != Rule::none) return broken;
        keep(op, false);  // the phase "prior to the arrive-on operation", which follows the expect-tx
        return barrier->arrive(1, op.kind == Kind::arrive_drop_expect_tx, true);
      }
      case Kind::expect_tx: return barrier->expect(op.amount);
      case Kind::complete_tx: return barrier->complete(op.amount);
      case Kind::increase_pending: return barrier->increase(op.amount);
      case Kind::test_wait: {
        const uint64_t phase = states[op.token]->phase;
        if (phase + 1 < barrier->phase()) return Rule::old_state;
        result = phase != barrier->phase();
        return Rule::none;
      }
      case Kind::test_wait_parity:  // of the current phase: False; of the one before: True
        result = op.amount != barrier->phase() % 2;
        return Rule::none;
      default: return Rule::none;
    }
  }

 private:
  void keep(const Op& op, bool counts) {
    const Reference& b = *barriers[op.barrier];
    states[op.token] = State{op.barrier, lives_[op.barrier], b.phase(), b.pending(), counts};
  }
  std::array<uint64_t, kBarriers> lives_{};
};

// --- random operations ---

// Draws what may come next: mostly what moves phases on, at times what breaks a rule.
class Generator {
 public:
  Generator(uint64_t seed, bool through_ptx) : random_(seed), through_ptx_(through_ptx) {}
  Op next(const World& world) {
    Op op;
    op.barrier = random_.below(kBarriers);
    op.token = random_.below(kTokens);
    const auto& barrier = world.barriers[op.barrier];
    if (!barrier) {
      op.kind = random_.one_in(500) ? static_cast<Kind>(random_.below(10)) : Kind::init;
      op.amount = op.kind == Kind::init ? first_count() : 1;
      return op;
    }
    if (random_.one_in(60)) return {Kind::inval, op.barrier, 0, op.token};
    if (random_.one_in(4000)) return {Kind::init, op.barrier, 1, op.token};
    fill(op, *barrier);
    return op;
  }

 private:
  uint32_t first_count() {
    if (random_.one_in(400)) return random_.of<uint32_t>({0, kLimit + 1, 0xffffffffu});
    if (random_.one_in(8)) return static_cast<uint32_t>(kLimit - random_.below(3));
    return 1 + random_.below(6);
  }
  bool stray() { return random_.one_in(1500); }  // breaks a limit
  uint32_t arrivals(const Reference& b) {
    const int64_t pending = b.pending();
    if (stray() || pending == 0) return static_cast<uint32_t>(pending + 1);
    if (random_.one_in(3)) return static_cast<uint32_t>(pending);
    if (pending > 100 && random_.one_in(2)) return static_cast<uint32_t>(pending - random_.below(3));
    return 1 + random_.below(std::min<int64_t>(pending, 4));
  }
  uint32_t bytes(int64_t room) {  // at most `room`, mostly little
    if (stray()) return static_cast<uint32_t>(room + 1);
    if (room <= 0) return 0;
    if (random_.one_in(20)) return static_cast<uint32_t>(room);
    return static_cast<uint32_t>(std::min<int64_t>(room, 16 * (1 + random_.below(8))));
  }
  void fill(Op& op, const Reference& b) {
    const int64_t pending = b.pending(), tx = b.tx();
    // Nothing but bytes can move a phase whose arrivals are all in.
    const bool bytes_only = pending == 0 && !stray();
    const uint32_t choice = random_.below(100);
    if (bytes_only ? choice < 60 : choice < 22) {
      op.kind = tx > 0 || random_.one_in(2) ? Kind::complete_tx : Kind::expect_tx;
      if (pending == 0 && tx < 0) op.kind = random_.one_in(2) ? Kind::complete_tx : Kind::expect_tx;
      const int64_t room = op.kind == Kind::complete_tx ? kLimit + tx : kLimit - tx;
      op.amount = bytes(room);
      if (tx != 0 && random_.one_in(2)) {
        op.kind = tx > 0 ? Kind::complete_tx : Kind::expect_tx;
        op.amount = static_cast<uint32_t>(tx > 0 ? tx : -tx);
      }
    } else if (!bytes_only && choice < 75) {
      pick_arrival(op, b);
    } else if (!through_ptx_ && choice < 80) {
      op.kind = Kind::increase_pending;
      op.amount = static_cast<uint32_t>(random_.one_in(8) ? kLimit - pending : 1);
      if (stray()) op.amount = static_cast<uint32_t>(kLimit - pending + 1);
    } else {
      op.kind = choice < 85 ? Kind::test_wait : choice < 95 ? Kind::test_wait_parity : Kind::pending_count;
      op.amount = random_.below(2);
    }
  }
  void pick_arrival(Op& op, const Reference& b) {
    const bool may_drop = b.expected() > 1 || random_.one_in(60);
    const uint32_t choice = random_.below(20);
    if (choice < 9) {
      op.kind = Kind::arrive;
    } else if (choice < 12) {
      op.kind = Kind::arrive_no_complete;
    } else if (choice < 15) {
      op.kind = Kind::arrive_expect_tx;
      op.amount = bytes(kLimit - b.tx());
      return;
    } else if (!may_drop) {
      op.kind = Kind::arrive;
    } else {
      op.kind = choice == 15   ? Kind::arrive_drop_expect_tx
                : choice == 16 ? Kind::arrive_drop_no_complete
                               : Kind::arrive_drop;
      if (op.kind == Kind::arrive_drop_expect_tx) {
        op.amount = bytes(kLimit - b.tx());
        return;
      }
    }
    op.amount = arrivals(b);
    const bool drops = op.kind != Kind::arrive && op.kind != Kind::arrive_no_complete;
    if (drops && op.amount >= b.expected() && !random_.one_in(60))
      op.amount = static_cast<uint32_t>(std::max<int64_t>(1, b.expected() - 1));
    const bool careful = op.kind == Kind::arrive_no_complete || op.kind == Kind::arrive_drop_no_complete;
    if (careful && b.tx() == 0 && op.amount >= b.pending() && !random_.one_in(60)) {
      if (b.pending() > 1) op.amount = static_cast<uint32_t>(b.pending() - 1);
      else op.kind = Kind::arrive;
    }
  }
  Random random_;
  bool through_ptx_;
};

struct Episode {
  std::vector<Op> ops;
  bool broken = false;
};
// Until `count` operations or the first that breaks a rule.
Episode episode(uint64_t seed, size_t count, bool through_ptx) {
  Episode e;
  World world;
  Generator generator(seed, through_ptx);
  while (e.ops.size() < count && !e.broken) {
    const Op op = generator.next(world);
    if (!world.meaningful(op)) continue;
    uint32_t ignored = 0;
    e.broken = world.apply(op, ignored) != Rule::none;
    e.ops.push_back(op);
  }
  return e;
}

std::string counts(uint64_t phase, int64_t pending, int64_t expected, int64_t tx) {
  return tw::format("phase {}, pending {}, expected {}, tx-count {}", phase, pending, expected, tx);
}
std::string counts(const std::optional<Reference>& b) {
  return b ? counts(b->phase(), b->pending(), b->expected(), b->tx()) : "none";
}
std::string counts(const sim::MBarrier* b) {
  return b ? counts(b->phase(), b->pending(), b->expected(), b->tx()) : "none";
}
bool same(const std::optional<Reference>& a, const sim::MBarrier* b) {
  if (!a || !b) return !a && !b;
  return a->phase() == b->phase() && a->pending() == b->pending() && a->expected() == b->expected() &&
         a->tx() == b->tx();
}
std::string compare_message(Rule rule, const std::string& message) {
  const std::string words = kWords[static_cast<int>(rule)];
  if ((rule == Rule::none) == message.empty() && message.find(words) != std::string::npos) return "";
  return tw::format("by the reference {}; the simulator says '{}'",
                    rule == Rule::none ? "legal" : "illegal (" + words + ")", message);
}

// --- the class itself ---

std::string carry_out(const Op& op, std::array<std::optional<sim::MBarrier>, kBarriers>& all,
                      std::array<uint64_t, kTokens>& states, uint32_t& result) {
  auto& b = all[op.barrier];
  switch (op.kind) {
    case Kind::init: b.emplace(op.amount); return "";
    case Kind::inval: b.reset(); return "";
    case Kind::test_wait: result = sim::MBarrier::phase_of(states[op.token]) != b->phase(); return "";
    case Kind::test_wait_parity: result = b->passes_parity(op.amount); return "";
    case Kind::pending_count: result = sim::MBarrier::pending_of(states[op.token]); return "";
    case Kind::expect_tx: return b->expect_tx(op.amount);
    case Kind::complete_tx: return b->complete_tx(op.amount);
    case Kind::increase_pending: return b->increase_pending(op.amount);
    default: break;
  }
  const bool expects = op.kind == Kind::arrive_expect_tx || op.kind == Kind::arrive_drop_expect_tx;
  if (expects) {
    const std::string broken = b->expect_tx(op.amount);
    if (!broken.empty()) return broken;
  }
  states[op.token] = b->state();
  switch (op.kind) {
    case Kind::arrive: return b->arrive(op.amount);
    case Kind::arrive_no_complete: return b->arrive_no_complete(op.amount);
    case Kind::arrive_drop: return b->arrive_drop(op.amount);
    case Kind::arrive_expect_tx: return b->arrive(1);
    case Kind::arrive_drop_expect_tx: return b->arrive_drop(1);
    default: return "";
  }
}

// What only the instructions check, and the class has no form of.
bool beyond_class(const Op& op, const World& world) {
  if (op.kind == Kind::arrive_drop_no_complete) return true;
  const auto& b = world.barriers[op.barrier];
  if (op.kind == Kind::pending_count) return false;
  if (op.kind == Kind::init) return b.has_value() || op.amount < 1 || op.amount > kLimit;
  return !b || (op.kind == Kind::test_wait && world.states[op.token]->phase + 1 < b->phase());
}

std::string compare_class(const std::vector<Op>& ops) {
  World world;
  std::array<std::optional<sim::MBarrier>, kBarriers> all;
  std::array<uint64_t, kTokens> states{};
  for (const Op& op : ops) {
    if (!world.meaningful(op) || beyond_class(op, world)) continue;
    uint32_t want = 0, got = 0;
    const Rule rule = world.apply(op, want);
    const std::string message = carry_out(op, all, states, got);
    if (std::string d = compare_message(rule, message); !d.empty()) return d;
    if (rule != Rule::none) return "";
    if (want != got) return tw::format("the result is {} by the reference, {} in the simulator", want, got);
    for (uint32_t i = 0; i < kBarriers; ++i) {
      const sim::MBarrier* b = all[i] ? &*all[i] : nullptr;
      if (!same(world.barriers[i], b))
        return tw::format("mbarrier[{}]: {} by the reference, {} in the simulator", i,
                          counts(world.barriers[i]), counts(b));
    }
  }
  return "";
}

// --- through PTX ---

sim::Program& program() {
  auto handler = [](std::string_view text) {  // %t1: the barrier; the state goes to or comes from [%t2]
    return "mov.u32 %t1, bars; mad.lo.u32 %t1, %o0, 8, %t1; mov.u32 %t2, states; mad.lo.u32 %t2, %o2, 8, "
           "%t2;\n"
           "mov.u32 %r, 0;\n" +
           std::string(text);
  };
  const std::string keep = " st.shared.b64 [%t2], %l0;";
  static sim::Program made = sim::testing::compile(interpreter(
      {
          handler("mbarrier.init.shared.b64 [%t1], %o1;"),
          handler("mbarrier.inval.shared.b64 [%t1];"),
          handler("mbarrier.arrive.shared.b64 %l0, [%t1], %o1;" + keep),
          handler("mbarrier.arrive.noComplete.shared.b64 %l0, [%t1], %o1;" + keep),
          handler("mbarrier.arrive_drop.shared.b64 %l0, [%t1], %o1;" + keep),
          handler("mbarrier.arrive_drop.noComplete.shared.b64 %l0, [%t1], %o1;" + keep),
          handler("mbarrier.arrive.expect_tx.shared.b64 %l0, [%t1], %o1;" + keep),
          handler("mbarrier.arrive_drop.expect_tx.shared.b64 %l0, [%t1], %o1;" + keep),
          handler("mbarrier.expect_tx.relaxed.cta.shared.b64 [%t1], %o1;"),
          handler("mbarrier.complete_tx.relaxed.cta.shared.b64 [%t1], %o1;"),
          handler("trap;"),
          handler("ld.shared.b64 %l0, [%t2]; mbarrier.test_wait.shared.b64 %p, [%t1], %l0; selp.u32 %r, 1, "
                  "0, %p;"),
          handler("mbarrier.test_wait.parity.shared.b64 %p, [%t1], %o1; selp.u32 %r, 1, 0, %p;"),
          handler("ld.shared.b64 %l0, [%t2]; mbarrier.pending_count.b64 %r, %l0;"),
      },
      tw::format(".shared .align 8 .b64 bars[{}]; .shared .align 8 .b64 states[{}];\n"
                 "setp.ne.u32 %p, %lane, 0; @%p exit;",
                 kBarriers, kTokens),
      "sm_90a"));
  return made;
}

std::string compare_ptx(const std::vector<Op>& ops) {
  World world;
  std::vector<Record> list;
  std::vector<uint32_t> results;
  std::vector<Op> asked;
  Rule last = Rule::none;
  World replay;
  for (const Op& op : ops) {
    if (!world.meaningful(op)) continue;
    uint32_t result = 0;
    last = world.apply(op, result);
    asked.push_back(op);
    results.push_back(result);
    list.push_back({.code = static_cast<uint32_t>(op.kind),
                    .lanes = 1,
                    .operands = {op.barrier, op.amount, op.token, 0, 0}});
    if (last != Rule::none) break;
  }
  sim::GlobalMemory memory;
  const Steps steps{.count = list.size(),
                    .warp = [](size_t) { return 0; },
                    .compare = [&](sim::Cluster& cluster, size_t i) -> std::string {
                      uint32_t ignored = 0;
                      const Rule rule = replay.apply(asked[i], ignored);
                      if (rule != Rule::none) return compare_message(rule, "");
                      for (uint32_t b = 0; b < kBarriers; ++b) {
                        const sim::MBarrier* got = cluster.ctas[0]->find_mbarrier(8 * b);
                        if (!same(replay.barriers[b], got))
                          return tw::format("mbarrier[{}]: {} by the reference, {} in the simulator", b,
                                            counts(replay.barriers[b]), counts(got));
                      }
                      return "";
                    }};
  const Outcome outcome = drive(program(), {}, memory, {list}, steps);
  if (!outcome.difference.empty()) return outcome.difference;
  const bool to_the_end = outcome.done == list.size() - (last != Rule::none);
  if (!to_the_end) return tw::format("after {} operations: {}", outcome.done, outcome.fault);
  if (std::string d = compare_message(last, outcome.fault); !d.empty()) return d;
  for (size_t i = 0; i < outcome.done; ++i) {
    if (outcome.records[i].result != results[i])
      return tw::format("operation {}: the result is {} by the reference, {} in the simulator", i, results[i],
                        outcome.records[i].result);
  }
  return "";
}

// Episodes until a million operations are through; what they met is counted, so that none passes by accident.
void million(bool through_ptx, const Compare<Op>& compare) {
  constexpr size_t kOperations = 1'000'000;
  size_t done = 0, broken = 0;
  for (uint64_t seed = 1; done < kOperations; ++seed) {
    const Episode e = episode(seed, 20'000, through_ptx);
    const std::string report = disagreement<Op>(e.ops, seed, compare, describe);
    ASSERT_TRUE(report.empty()) << report;
    done += e.ops.size();
    broken += e.broken;
  }
  EXPECT_GT(broken, 500u);
}

TEST(MBarrierReference, AgreesWithTheClassOnAMillionOperations) { million(false, compare_class); }
TEST(MBarrierReference, AgreesWithTheInstructionsOnAMillionOperations) { million(true, compare_ptx); }

}  // namespace
}  // namespace tw::machines
