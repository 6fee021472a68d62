#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tests/machines/random_operations.h"
#include "tests/machines/tensor_rules.h"
#include "tilewright/base/error.h"
#include "tilewright/sim/tensor_memory.h"

// The allocator of tensor memory ("tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit"): the
// simulator against a count of columns and an array with the owner of each. Where an allocation lies is the
// machine's choice; it must be free there.
namespace tw::machines {
namespace {

constexpr uint32_t kColumns = 512, kSlots = 20;

enum class Kind : uint8_t { alloc, dealloc, relinquish };
constexpr const char* kNames[] = {"tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish_alloc_permit"};

struct Op {
  Kind kind = Kind::alloc;
  uint32_t slot = 0;  // which allocation
  uint32_t columns = 0;
  uint32_t offset = 0;  // of dealloc: added to the address
};
std::string describe(const Op& op) {
  return tw::format("{} of {} columns, allocation {} + {}", kNames[static_cast<int>(op.kind)], op.columns,
                    op.slot, op.offset);
}

// --- the reference ---

class Columns {
 public:
  std::array<uint32_t, kSlots> slots{};  // columns of each live allocation

  uint32_t free() const {
    uint32_t n = kColumns;
    for (const uint32_t s : slots) n -= s;
    return n;
  }
  Rule may_allocate(uint32_t n) const {
    bool power = false;
    for (uint32_t p = 32; p <= kColumns; p *= 2) power |= n == p;
    if (!power) return Rule::power;
    if (relinquished) return Rule::relinquished;
    for (const uint32_t before : allocated_before) {
      if (n > before) return Rule::increase;
    }
    return Rule::none;
  }
  Rule may_release(const Op& op) const {
    if (slots[op.slot] == 0 || op.offset != 0) return Rule::no_allocation;
    return slots[op.slot] == op.columns ? Rule::none : Rule::other_columns;
  }
  void allocate(uint32_t slot, uint32_t n) {
    slots[slot] = n;
    if (std::find(allocated_before.begin(), allocated_before.end(), n) == allocated_before.end())
      allocated_before.push_back(n);
  }
  bool relinquished = false;
  std::vector<uint32_t> allocated_before;
};

// "" or how `allocated` (of a column) and the addresses of the live allocations contradict each other.
template <class Address, class Allocated>
std::string paint(const Columns& columns, Address address, Allocated allocated) {
  std::array<int, kColumns> owner;
  owner.fill(-1);
  for (uint32_t s = 0; s < kSlots; ++s) {
    for (uint32_t c = 0; c < columns.slots[s]; ++c) {
      const uint32_t at = address(s) + c;
      if (at >= kColumns) return tw::format("allocation {} reaches address {:#x}", s, at);
      if (owner[at] >= 0) return tw::format("column {} belongs to allocations {} and {}", at, owner[at], s);
      owner[at] = static_cast<int>(s);
    }
  }
  for (uint32_t c = 0; c < kColumns; ++c) {
    if (allocated(c) != (owner[c] >= 0))
      return tw::format("column {} is {}allocated by the reference, not so in the simulator", c,
                        owner[c] >= 0 ? "" : "not ");
  }
  return "";
}

uint32_t random_columns(Random& random, const Columns& columns) {
  if (random.one_in(400)) return random.of<uint32_t>({0, 1, 16, 31, 33, 48, 96, 384, 513, 1024, ~0u});
  uint32_t most = kColumns;
  for (const uint32_t n : columns.allocated_before) most = std::min(most, n);
  if (most < kColumns && random.one_in(400)) return 2 * most;
  // Small steps down, so that all sizes are met.
  while (most > 32 && random.one_in(most == kColumns ? 2 : 12)) most /= 2;
  return most;
}
std::optional<uint32_t> random_slot(Random& random, const Columns& columns, bool live) {
  std::vector<uint32_t> found;
  for (uint32_t s = 0; s < kSlots; ++s) {
    if ((columns.slots[s] != 0) == live) found.push_back(s);
  }
  if (found.empty()) return {};
  return random.of(found);
}
// A dealloc, rarely a wrong one. A freed address may belong to another allocation by now: that is asked of
// only where none is left.
std::optional<Op> random_release(Random& random, const Columns& columns) {
  const auto slot = random_slot(random, columns, true);
  if (!slot) {
    if (columns.allocated_before.empty() || !random.one_in(100)) return {};
    return Op{Kind::dealloc, random.below(kSlots), columns.allocated_before.back(), 0};
  }
  Op op{Kind::dealloc, *slot, columns.slots[*slot], 0};
  if (random.one_in(400)) op.offset = random.of<uint32_t>({1, 16, 31});
  if (random.one_in(400)) op.columns = op.columns == 32 ? 64 : op.columns / 2;
  return op;
}

// --- the class itself ---

std::vector<Op> class_episode(uint64_t seed, size_t count) {
  Random random(seed);
  Columns columns;
  std::vector<Op> ops;
  while (ops.size() < count) {
    Op op{Kind::alloc, 0, random_columns(random, columns), 0};
    if (random.one_in(2)) {
      const auto release = random_release(random, columns);
      if (!release) continue;
      op = *release;
    } else if (random.one_in(3000)) {
      op.kind = Kind::relinquish;
    } else {
      const auto slot = random_slot(random, columns, false);
      if (!slot) continue;
      op.slot = *slot;
    }
    ops.push_back(op);
    if (op.kind == Kind::relinquish) columns.relinquished = true;
    if (op.kind == Kind::dealloc) {
      if (columns.may_release(op) != Rule::none) break;
      columns.slots[op.slot] = 0;
    }
    if (op.kind == Kind::alloc) {
      if (columns.may_allocate(op.columns) != Rule::none) break;
      if (columns.free() >= op.columns) columns.allocate(op.slot, op.columns);
    }
  }
  return ops;
}

std::string compare_class(const std::vector<Op>& ops) {
  Columns columns;
  sim::TensorAllocator allocator(kColumns);
  std::array<uint32_t, kSlots> address{};
  for (const Op& op : ops) {
    if (op.kind == Kind::alloc && columns.slots[op.slot]) continue;
    const Rule rule = op.kind == Kind::alloc     ? columns.may_allocate(op.columns)
                      : op.kind == Kind::dealloc ? columns.may_release(op)
                                                 : Rule::none;
    std::string message;
    try {
      if (op.kind == Kind::alloc) {
        const std::optional<int> at = allocator.allocate(static_cast<int>(op.columns));
        if (at.has_value() != (columns.free() >= op.columns))
          return tw::format("{} columns of {} free ones: the simulator {}", op.columns, columns.free(),
                            at ? "has them" : "waits");
        if (at) {
          columns.allocate(op.slot, op.columns);
          address[op.slot] = static_cast<uint32_t>(*at);
        }
      } else if (op.kind == Kind::dealloc) {
        allocator.release(static_cast<int>(address[op.slot] + op.offset), static_cast<int>(op.columns));
        columns.slots[op.slot] = 0;
      } else {
        allocator.relinquish();
        columns.relinquished = true;
      }
    } catch (const Error& e) {
      message = e.message();
    }
    const std::string words = kRuleWords[static_cast<int>(rule)];
    if ((rule == Rule::none) != message.empty() || message.find(words) == std::string::npos)
      return tw::format("by the reference {}; the simulator says '{}'", words.empty() ? "legal" : words,
                        message);
    if (rule != Rule::none) return "";
    if (std::string d = paint(
            columns, [&](uint32_t s) { return address[s]; },
            [&](uint32_t c) { return allocator.allocated(static_cast<int>(c)); });
        !d.empty())
      return d;
    if (allocator.live().size() !=
        static_cast<size_t>(
            std::count_if(columns.slots.begin(), columns.slots.end(), [](uint32_t n) { return n != 0; })))
      return "the simulator counts other live allocations";
  }
  return "";
}

TEST(TensorAllocatorReference, AgreesWithTheClassOnAMillionOperations) {
  size_t done = 0;
  for (uint64_t seed = 1; done < 1'000'000; ++seed) {
    const std::vector<Op> ops = class_episode(seed, 10'000);
    const std::string report = disagreement<Op>(ops, seed, compare_class, describe);
    ASSERT_TRUE(report.empty()) << report;
    done += ops.size();
  }
}

}  // namespace
}  // namespace tw::machines
