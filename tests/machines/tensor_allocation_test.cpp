#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "tests/machines/random_operations.h"
#include "tests/machines/stepper.h"
#include "tests/machines/tensor_rules.h"
#include "tilewright/sim/ops_tcgen05.h"
#include "tilewright/sim/testing.h"

// tcgen05.alloc, tcgen05.dealloc and tcgen05.relinquish_alloc_permit, carried out by the warps of CTAs and of
// CTA pairs: who waits, who goes on, what is granted and what is refused, against a reference written from
// the PTX ISA ("tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit", "Issue Granularity").
//
// What the ISA leaves open:
// - Where an allocation lies. Any columns do that are contiguous, begin at a multiple of 32 ("The unit of
//   allocation and de-allocation is 32 columns") and belong to nobody. Both CTAs of a pair get the same
//   ones, since an operation of the pair names them by one address.
// - Whether "the requested amount is not available" when so many columns are free, but not in a row. Sizes
//   are powers of two that do not increase, so an allocator that aligns them never comes to that. Here an
//   allocation waits exactly while fewer columns are free than it asks for.
// - Who of several that wait is served first. In one CTA whoever runs first; in a pair the oldest request,
//   and none before it, not even when it has become illegal and its warps have yet to hear so.
// - Whether the first warp of a pair to deallocate or to relinquish waits for the second ("could block").
//   Here it does: a kernel must be right either way.
// - What a waiting allocation counts for in "should not increase between any two allocations in the
//   execution order", and in "illegal ... to perform tcgen05.alloc after" a relinquish. Here it is performed
//   when it gets its columns; so a smaller one that overtakes it, or a relinquish, make it illegal.
namespace tw::machines {
namespace {

constexpr uint32_t kColumns = 512, kUnit = 32, kSlots = 20;

enum class Kind : uint8_t { alloc, dealloc, relinquish, exit, resume };
constexpr const char* kNames[] = {"tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish_alloc_permit",
                                  "exit", "goes on"};

struct Op {
  Kind kind = Kind::alloc;
  uint32_t warp = 0;     // of the cluster
  uint32_t slot = 0;     // which allocation
  uint32_t columns = 0;  // nCols
  uint32_t offset = 0;   // of dealloc: added to the address
};
std::string describe(const Op& op) {
  return tw::format("warp {}: {}, {} columns, allocation {} + {}", op.warp, kNames[static_cast<int>(op.kind)],
                    op.columns, op.slot, op.offset);
}

// A cluster whose CTAs allocate alone (.cta_group::1) or in pairs.
struct Setting {
  uint32_t ctas, warps;  // warps of a CTA
  uint32_t members;      // CTAs that allocate together

  uint32_t all_warps() const { return ctas * warps; }
  uint32_t unit(uint32_t warp) const { return warp / warps / members; }
  uint32_t member(uint32_t warp) const { return warp / warps % members; }
};
const std::vector<Setting> kSettings = {{1, 5, 1}, {2, 3, 1}, {2, 4, 2}, {4, 3, 2}};

// --- the reference ---

// What a warp of each member asks for.
struct Request {
  static constexpr int kNobody = -1, kWentOn = -2;
  Op op;  // as the first asked
  std::array<int, 2> warp{kNobody, kNobody};
  bool performed = false;

  bool has(uint32_t w) const { return warp[0] == static_cast<int>(w) || warp[1] == static_cast<int>(w); }
};

// The tensor memory of one CTA; of a pair, both in step.
struct Unit {
  std::vector<Request> open;               // in the order of asking, until each of its warps has gone on
  std::array<uint32_t, kSlots> columns{};  // of each live allocation
  std::array<std::array<bool, kSlots>, 2> known{};  // whether a member's shared memory has the address
  std::optional<uint32_t> least;                    // allocated so far
  bool relinquished = false;

  uint32_t free() const {
    uint32_t n = kColumns;
    for (const uint32_t c : columns) n -= c;
    return n;
  }
  bool busy(uint32_t slot) const {
    return std::any_of(open.begin(), open.end(),
                       [&](const Request& r) { return r.op.kind != Kind::relinquish && r.op.slot == slot; });
  }
  // What a warp of `member` takes part in when it asks for an operation of this kind.
  Request* to_join(Kind kind, uint32_t member) {
    for (Request& r : open)
      if (r.op.kind == kind && r.warp[member] == Request::kNobody) return &r;
    return nullptr;
  }
  Rule may(const Op& op) const {
    if (op.kind == Kind::dealloc) {
      if (columns[op.slot] == 0 || op.offset != 0) return Rule::no_allocation;
      return columns[op.slot] == op.columns ? Rule::none : Rule::other_columns;
    }
    if (op.kind == Kind::relinquish) return Rule::none;
    bool power = false;
    for (uint32_t p = kUnit; p <= kColumns; p *= 2) power |= op.columns == p;
    if (!power) return Rule::power;
    if (relinquished) return Rule::relinquished;
    return least && op.columns > *least ? Rule::increase : Rule::none;
  }
  // Of a request that may be performed.
  bool must_wait(const Request& r, bool in_order) const {
    if (r.op.kind != Kind::alloc) return false;
    if (free() < r.op.columns) return true;
    return in_order && std::any_of(open.data(), &r, [](const Request& older) {
             return older.op.kind == Kind::alloc && !older.performed;
           });
  }
  void perform(Request& r) {
    r.performed = true;
    switch (r.op.kind) {
      case Kind::alloc:
        columns[r.op.slot] = r.op.columns;
        least = r.op.columns;
        break;
      case Kind::dealloc: columns[r.op.slot] = 0; break;
      default: relinquished = true; break;
    }
  }
};

class World {
 public:
  struct Warp {
    bool exited = false, asks = false;
    bool woken = false;  // while it asks: it may go on
  };
  const Setting setting;
  std::vector<Unit> units;
  std::vector<Warp> warps;

  explicit World(const Setting& s) : setting(s), units(s.ctas / s.members), warps(s.all_warps()) {}

  bool gone(uint32_t cta) const {
    const auto first = warps.begin() + static_cast<ptrdiff_t>(cta * setting.warps);
    return std::all_of(first, first + setting.warps, [](const Warp& w) { return w.exited; });
  }
  bool all_gone() const {
    return std::all_of(warps.begin(), warps.end(), [](const Warp& w) { return w.exited; });
  }

  // Whether the kernel can be told to do this, and the reference knows what it means: an address that was
  // freed may be that of another allocation by now.
  bool meaningful(const Op& op) {
    const Warp& w = warps[op.warp];
    if (op.kind == Kind::resume) return w.asks && w.woken;
    if (w.asks || w.exited) return false;
    if (op.kind == Kind::exit || op.kind == Kind::relinquish) return true;
    Unit& unit = units[setting.unit(op.warp)];
    const uint32_t member = setting.member(op.warp);
    const Request* joined = unit.to_join(op.kind, member);
    if (op.kind == Kind::alloc) {
      for (const Request& r : unit.open)
        if (r.op.kind == Kind::dealloc && unit.columns[r.op.slot] == 0 && !r.performed) return false;
      return joined ? joined->op.slot == op.slot : !unit.busy(op.slot) && unit.columns[op.slot] == 0;
    }
    if (!unit.known[member][op.slot]) return false;
    if (!joined && unit.busy(op.slot)) return false;
    if (unit.columns[op.slot] != 0) return true;
    return unit.free() == kColumns && (joined || unit.open.empty());
  }

  Rule apply(const Op& op) {
    const Rule rule = step(op);
    if (rule == Rule::none) wake();
    return rule;
  }

 private:
  Rule step(const Op& op) {
    Warp& w = warps[op.warp];
    Unit& unit = units[setting.unit(op.warp)];
    const uint32_t member = setting.member(op.warp), cta = op.warp / setting.warps;
    if (op.kind == Kind::exit) {
      w.exited = true;
      return gone(cta) && unit.free() != kColumns ? Rule::leak : Rule::none;
    }
    if (op.kind == Kind::resume) {
      const auto r =
          std::find_if(unit.open.begin(), unit.open.end(), [&](const Request& q) { return q.has(op.warp); });
      if (!r->performed) return attempt(unit, *r, op.warp);
      go_on(unit, op.warp);
      return Rule::none;
    }
    if (setting.members == 2 && gone(cta ^ 1)) return Rule::peer_gone;
    Request* r = unit.to_join(op.kind, member);
    const bool alone = r == nullptr;
    if (alone) r = &unit.open.emplace_back(Request{op});
    r->warp[member] = static_cast<int>(op.warp);
    w.asks = true;
    if (op.kind == Kind::alloc) unit.known[member][op.slot] = false;
    if (alone && setting.members == 2) return Rule::none;
    const bool same_address =
        op.kind != Kind::dealloc || (r->op.slot == op.slot && r->op.offset == op.offset);
    if (r->op.columns != op.columns || !same_address) return Rule::differ;
    return attempt(unit, *r, op.warp);
  }
  // By `warp`, which goes on if it can be.
  Rule attempt(Unit& unit, Request& r, uint32_t warp) {
    warps[warp].woken = false;
    if (const Rule rule = unit.may(r.op); rule != Rule::none) return rule;
    if (unit.must_wait(r, setting.members == 2)) return Rule::none;
    unit.perform(r);
    go_on(unit, warp);
    return Rule::none;
  }
  void go_on(Unit& unit, uint32_t warp) {
    warps[warp].asks = warps[warp].woken = false;
    const uint32_t member = setting.member(warp);
    const auto r =
        std::find_if(unit.open.begin(), unit.open.end(), [&](const Request& q) { return q.has(warp); });
    if (r->op.kind == Kind::alloc) unit.known[member][r->op.slot] = true;
    r->warp[member] = Request::kWentOn;
    if (std::all_of(r->warp.begin(), r->warp.begin() + setting.members,
                    [](int w) { return w == Request::kWentOn; }))
      unit.open.erase(r);
  }
  bool met(const Request& r) const {
    return std::none_of(r.warp.begin(), r.warp.begin() + setting.members,
                        [](int w) { return w == Request::kNobody; });
  }
  // Who may go on: to get its columns, or to hear that it may not have them.
  void wake() {
    for (Unit& unit : units) {
      for (Request& r : unit.open) {
        if (!met(r)) continue;
        const bool legal = r.performed || unit.may(r.op) == Rule::none;
        if (legal && !r.performed) {
          if (unit.must_wait(r, setting.members == 2)) continue;
          if (setting.members == 2) unit.perform(r);
        }
        for (const int w : r.warp)
          if (w >= 0) warps[static_cast<size_t>(w)].woken = true;
      }
    }
  }
};

// --- random operations ---

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed), exits_(random_.one_in(3)) {}

  // Nothing when no warp can go on, or what was drawn is not to be asked.
  std::optional<Op> next(World& world) {
    std::vector<uint32_t> able;
    for (uint32_t w = 0; w < world.warps.size(); ++w) {
      const World::Warp& warp = world.warps[w];
      if (!warp.exited && (!warp.asks || warp.woken)) able.push_back(w);
    }
    if (able.empty()) return {};
    Op op;
    op.warp = random_.of(able);
    if (world.warps[op.warp].asks) {
      op.kind = Kind::resume;
    } else if (exits_ && leaves(world.units[world.setting.unit(op.warp)])) {
      op.kind = Kind::exit;
    } else {
      draw(op, world);
      if (random_.one_in(2000)) stray(op);
    }
    if (!world.meaningful(op)) return {};
    return op;
  }

 private:
  // More often where nothing is left to free.
  bool leaves(const Unit& unit) {
    return random_.one_in(unit.free() == kColumns && unit.open.empty() ? 4 : 100);
  }
  // Warps of the CTA that have nothing to wait for: the last one must not begin what only others can end.
  static uint32_t idle(const World& world, uint32_t warp) {
    const uint32_t each = world.setting.warps, first = warp / each * each;
    uint32_t n = 0;
    for (uint32_t w = first; w < first + each; ++w) n += !world.warps[w].asks && !world.warps[w].exited;
    return n;
  }
  void draw(Op& op, World& world) {
    Unit& unit = world.units[world.setting.unit(op.warp)];
    const uint32_t member = world.setting.member(op.warp);
    const bool last = idle(world, op.warp) == 1;
    std::vector<Op> joinable;
    for (const Kind kind : {Kind::alloc, Kind::dealloc, Kind::relinquish})
      if (const Request* r = unit.to_join(kind, member)) joinable.push_back(r->op);
    if (!joinable.empty() && (last || !random_.one_in(4))) {
      const uint32_t warp = op.warp;
      op = random_.of(joinable);
      op.warp = warp;
      return;
    }
    if (random_.one_in(3000)) {
      op.kind = Kind::relinquish;
      return;
    }
    op.columns = columns(unit);
    const bool waits = unit.free() < op.columns;
    op.kind = random_.one_in(2) || (last && waits) ? Kind::dealloc : Kind::alloc;
    std::vector<uint32_t> slots;
    for (uint32_t s = 0; s < kSlots; ++s) {
      if (unit.busy(s)) continue;
      if (op.kind == Kind::alloc ? unit.columns[s] == 0 : unit.columns[s] != 0) slots.push_back(s);
    }
    op.slot = slots.empty() ? random_.below(kSlots) : random_.of(slots);
    if (op.kind == Kind::dealloc) op.columns = unit.columns[op.slot] ? unit.columns[op.slot] : op.columns;
    // A dealloc where there is none ends the episode.
    if (op.kind == Kind::dealloc && slots.empty() && !random_.one_in(300)) op.kind = Kind::resume;
  }
  // Small steps down, so that all sizes are met; fewer while something waits, which a smaller one spoils.
  uint32_t columns(const Unit& unit) {
    uint32_t most = unit.least.value_or(kColumns);
    const bool waiting = std::any_of(unit.open.begin(), unit.open.end(), [](const Request& r) {
      return r.op.kind == Kind::alloc && !r.performed;
    });
    if (waiting && !random_.one_in(100)) return most;
    while (most > kUnit && random_.one_in(most == kColumns ? 3 : 40)) most /= 2;
    return most;
  }
  void stray(Op& op) {
    switch (random_.below(4)) {
      case 0: op.columns = random_.of<uint32_t>({0, 1, 16, 31, 33, 48, 96, 384, 513, 1024, ~0u}); break;
      case 1: op.columns *= 2; break;
      case 2: op.columns /= 2; break;
      default:
        if (op.kind == Kind::dealloc) op.offset = random_.of<uint32_t>({1, 16, 31});
        break;
    }
  }
  Random random_;
  bool exits_;
};

struct Episode {
  std::vector<Op> ops;
  Rule rule = Rule::none;  // that the last operation breaks
};
const Setting& setting_of(uint64_t seed) { return kSettings[seed % kSettings.size()]; }

Episode episode(uint64_t seed, size_t count) {
  Episode e;
  World world(setting_of(seed));
  Generator generator(seed);
  for (size_t tries = 0; e.ops.size() < count && e.rule == Rule::none && tries < 4 * count; ++tries) {
    const auto op = generator.next(world);
    if (!op) continue;
    e.rule = world.apply(*op);
    e.ops.push_back(*op);
    if (world.all_gone()) break;
  }
  return e;
}

// --- through PTX ---

const sim::Program& program(uint32_t members) {
  const auto made = [](uint32_t group) {
    const std::string place = "mov.u32 %t1, slots; mad.lo.u32 %t1, %o1, 4, %t1; ";
    const std::string form = tw::format(".cta_group::{}.sync.aligned", group);
    return sim::testing::compile(
        interpreter(
            {
                place + "tcgen05.alloc" + form + ".shared::cta.b32 [%t1], %o0;",
                place + "ld.shared.u32 %t2, [%t1]; add.u32 %t2, %t2, %o2; tcgen05.dealloc" + form +
                    ".b32 %t2, %o0;",
                "tcgen05.relinquish_alloc_permit" + form + ";",
                "exit;",
            },
            tw::format(".shared .align 4 .b32 slots[{}];", kSlots), "sm_100a"),
        sim::testing::small_machine("sm_100a"));
  };
  static const sim::Program alone = made(1), pair = made(2);
  return members == 1 ? alone : pair;
}

uint32_t address(const sim::Cta& cta, uint32_t slot) {
  uint32_t value;
  std::memcpy(&value, cta.shared.data() + sizeof value * slot, sizeof value);
  return value;
}

// "" or how the CTA's tensor memory contradicts the reference.
std::string compare_columns(const Unit& unit, uint32_t member, sim::Cta& cta) {
  const sim::TensorAllocator& allocator = sim::Tcgen05::of(cta).memory.allocator;
  std::array<int, kColumns> owner;
  owner.fill(-1);
  for (uint32_t s = 0; s < kSlots; ++s) {
    if (unit.columns[s] == 0 || !unit.known[member][s]) continue;
    const uint32_t first = address(cta, s);
    if (first % kUnit != 0 || first + unit.columns[s] > kColumns)
      return tw::format("{} columns at address {:#x}", unit.columns[s], first);
    for (uint32_t c = first; c < first + unit.columns[s]; ++c) {
      if (owner[c] >= 0) return tw::format("column {} belongs to allocations {} and {}", c, owner[c], s);
      if (!allocator.allocated(static_cast<int>(c))) return tw::format("column {} is not allocated", c);
      owner[c] = static_cast<int>(s);
    }
  }
  uint32_t allocated = 0;
  for (uint32_t c = 0; c < kColumns; ++c) allocated += allocator.allocated(static_cast<int>(c));
  if (allocated == kColumns - unit.free()) return "";
  return tw::format("{} columns are allocated by the reference, {} in the simulator", kColumns - unit.free(),
                    allocated);
}

std::string compare_state(const World& world, const sim::Cluster& cluster) {
  for (uint32_t w = 0; w < world.warps.size(); ++w) {
    const World::Warp& warp = world.warps[w];
    const bool goes_on = !warp.exited && (!warp.asks || warp.woken);
    if (cluster.warps[w]->runnable() != goes_on)
      return tw::format("warp {} {} by the reference, not so in the simulator", w,
                        goes_on ? "can go on" : "waits");
  }
  const Setting& s = world.setting;
  for (uint32_t c = 0; c < s.ctas; ++c) {
    if (world.gone(c)) continue;
    const Unit& unit = world.units[c / s.members];
    if (std::string d = compare_columns(unit, c % s.members, *cluster.ctas[c]); !d.empty())
      return tw::format("CTA {}: {}", c, d);
    for (uint32_t slot = 0; slot < kSlots && c % s.members == 1; ++slot)
      if (unit.columns[slot] && unit.known[0][slot] && unit.known[1][slot] &&
          address(*cluster.ctas[c - 1], slot) != address(*cluster.ctas[c], slot))
        return tw::format("allocation {} lies elsewhere in the other CTA of the pair", slot);
  }
  return "";
}

std::string compare(const Setting& setting, const std::vector<Op>& ops) {
  World world(setting), replay(setting);
  std::vector<Op> asked;
  std::vector<std::vector<Record>> lists(setting.all_warps());
  Rule last = Rule::none;
  for (const Op& op : ops) {
    if (!world.meaningful(op)) continue;
    asked.push_back(op);
    if (op.kind != Kind::resume)
      lists[op.warp].push_back({.code = static_cast<uint32_t>(op.kind),
                                .lanes = ~0u,
                                .operands = {op.columns, op.slot, op.offset, 0, 0}});
    last = world.apply(op);
    if (last != Rule::none || world.all_gone()) break;
  }
  const bool ends = world.all_gone() && last == Rule::none;
  sim::GlobalMemory memory;
  const Steps steps{.count = asked.size(),
                    .warp = [&](size_t i) { return static_cast<int>(asked[i].warp); },
                    .resumes = [&](size_t i) { return asked[i].kind == Kind::resume; },
                    .compare = [&](sim::Cluster& cluster, size_t i) -> std::string {
                      if (replay.apply(asked[i]) != Rule::none)
                        return "illegal by the reference, legal in the simulator: " + describe(asked[i]);
                      return compare_state(replay, cluster);
                    }};
  const Outcome outcome =
      drive(program(setting.members), {.ctas = setting.ctas, .warps = setting.warps}, memory, lists, steps);
  if (!outcome.difference.empty())
    return tw::format("after {} operations: {}", outcome.done, outcome.difference);
  if (outcome.done != asked.size() - (last != Rule::none || ends) || outcome.exited != ends)
    return tw::format("after {} of {} operations: {}", outcome.done, asked.size(), outcome.fault);
  if (last == Rule::none) return "";
  // Only an allocation goes on to hear that it is illegal.
  const Kind kind = asked.back().kind == Kind::resume ? Kind::alloc : asked.back().kind;
  const std::string words = kRuleWords[static_cast<int>(last)];
  const std::string place = tw::format("at {}", kNames[static_cast<int>(kind)]);
  if (outcome.fault.find(words) != std::string::npos && outcome.fault.find(place) != std::string::npos)
    return "";
  return tw::format("illegal ({}, {}) by the reference; the simulator says '{}'", words, place,
                    outcome.fault);
}

TEST(TensorAllocationReference, AgreesWithTheInstructionsOnAMillionOperations) {
  constexpr size_t kOperations = 1'000'000;
  size_t done = 0, waited = 0;
  std::array<size_t, std::size(kRuleWords)> broken{};
  for (uint64_t seed = 1; done < kOperations; ++seed) {
    const Setting& setting = setting_of(seed);
    const Episode e = episode(seed, 1500);
    const std::string report = disagreement<Op>(
        e.ops, seed, [&](const std::vector<Op>& ops) { return compare(setting, ops); }, describe);
    ASSERT_TRUE(report.empty()) << setting.ctas << " CTAs of " << setting.warps
                                << " warps, .cta_group::" << setting.members << ", " << report;
    done += e.ops.size();
    waited += static_cast<size_t>(
        std::count_if(e.ops.begin(), e.ops.end(), [](const Op& op) { return op.kind == Kind::resume; }));
    ++broken[static_cast<size_t>(e.rule)];
  }
  EXPECT_GT(waited, kOperations / 20);
  for (size_t rule = 0; rule < broken.size(); ++rule) EXPECT_GT(broken[rule], 5u) << kRuleWords[rule];
}

}  // namespace
}  // namespace tw::machines
