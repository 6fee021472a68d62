#include "tilewright/sim/global_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/sim/global_memory_impl.h"

namespace tw::sim {

namespace {
constexpr uint64_t kAlign = 256, kHugePage = 2 << 20,
                   kGap = 1 << 16;  // no access of one warp's neighbours reaches over a gap

template <class F>
void each_word(uint64_t begin, uint64_t bytes, F f) {
  const uint64_t end = begin + bytes;
  while (begin < end) {
    const uint64_t bit = begin & 63, n = std::min<uint64_t>(64 - bit, end - begin);
    const uint64_t mask = (n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1) << bit;
    if (!f(begin >> 6, mask)) return;
    begin += n;
  }
}
}  // namespace

Allocation::Allocation(uint64_t where, uint64_t size, std::string label)
    : address(where), bytes(size), name(std::move(label)), unwritten_(size) {
  // Tiles jump from row to row, and with small pages every row costs a walk of the page table.
  const bool large = size >= 2 * kHugePage;
  const uint64_t align = large ? kHugePage : kAlign, rounded = round_up(std::max<uint64_t>(size, 1), align);
  data = static_cast<std::byte*>(std::aligned_alloc(align, rounded));
  if (!data) throw std::bad_alloc();
  if (large) madvise(data, rounded, MADV_HUGEPAGE);  // a wish: without it all works the same
  std::memset(data, 0xFF, size);
  bits_ = std::make_unique<std::atomic<uint64_t>[]>((size + 63) / 64);
}

Allocation::~Allocation() { std::free(data); }

void Allocation::mark(uint64_t offset, uint64_t n) {
  if (all_written()) return;
  uint64_t fresh = 0;
  each_word(offset, n, [&](uint64_t word, uint64_t mask) {
    if ((bits_[word].load(std::memory_order_relaxed) & mask) != mask) {
      const uint64_t before = bits_[word].fetch_or(mask, std::memory_order_relaxed);
      fresh += static_cast<uint64_t>(std::popcount(mask & ~before));
    }
    return true;
  });
  if (fresh) unwritten_.fetch_sub(fresh, std::memory_order_relaxed);
}

void Allocation::unmark(uint64_t offset, uint64_t n) {
  each_word(offset, n, [&](uint64_t word, uint64_t mask) {
    const uint64_t before = bits_[word].fetch_and(~mask, std::memory_order_relaxed);
    unwritten_.fetch_add(static_cast<uint64_t>(std::popcount(mask & before)), std::memory_order_relaxed);
    return true;
  });
}

uint64_t Allocation::count_unwritten(uint64_t offset, uint64_t n) const {
  if (all_written()) return 0;
  uint64_t count = 0;
  each_word(offset, n, [&](uint64_t word, uint64_t mask) {
    count += static_cast<uint64_t>(std::popcount(mask & ~bits_[word].load(std::memory_order_relaxed)));
    return true;
  });
  return count;
}

uint64_t Allocation::first_unwritten(uint64_t offset, uint64_t n) const {
  uint64_t result = offset + n;
  if (all_written()) return result;
  each_word(offset, n, [&](uint64_t word, uint64_t mask) {
    const uint64_t missing = mask & ~bits_[word].load(std::memory_order_relaxed);
    if (missing == 0) return true;
    result = word * 64 + static_cast<uint64_t>(std::countr_zero(missing));
    return false;
  });
  return result;
}

Allocation* GlobalMemory::Impl::find(uint64_t address) const {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin()) return nullptr;
  Allocation* a = std::prev(it)->second.get();
  return a->contains(address, 1) ? a : nullptr;
}

const Allocation* GlobalMemory::Impl::nearest(uint64_t address) const {
  auto it = allocations.upper_bound(address);
  return it == allocations.begin() ? nullptr : std::prev(it)->second.get();
}

GlobalMemory::GlobalMemory() : impl_(std::make_unique<Impl>()) {}
GlobalMemory::~GlobalMemory() = default;

uint64_t GlobalMemory::allocate(uint64_t bytes, std::string_view name) {
  std::lock_guard lock(impl_->mutex);
  const uint64_t address = impl_->next;
  auto allocation = std::make_unique<Allocation>(address, bytes, std::string(name));
  impl_->next += round_up(bytes, kAlign) + kGap;
  impl_->allocations.emplace(address, std::move(allocation));
  return address;
}

void GlobalMemory::free(uint64_t address) {
  std::lock_guard lock(impl_->mutex);
  if (impl_->allocations.erase(address) == 0)
    user_error({}, "{:#x} is not the start of an allocation", address);
}

namespace {
Allocation& holder(const GlobalMemory::Impl& impl, uint64_t address, uint64_t bytes) {
  auto it = impl.allocations.upper_bound(address);
  if (it != impl.allocations.begin()) {
    Allocation& a = *std::prev(it)->second;
    if (a.contains(address, bytes)) return a;
  }
  user_error({}, "{} bytes at {:#x} do not lie in one allocation of the simulated device", bytes, address);
}
}  // namespace

void GlobalMemory::write(uint64_t address, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  std::lock_guard lock(impl_->mutex);
  Allocation& a = holder(*impl_, address, bytes.size());
  std::memcpy(a.data + (address - a.address), bytes.data(), bytes.size());
  a.mark(address - a.address, bytes.size());
}

void GlobalMemory::read(uint64_t address, std::span<std::byte> bytes) const {
  if (bytes.empty()) return;
  std::lock_guard lock(impl_->mutex);
  const Allocation& a = holder(*impl_, address, bytes.size());
  std::memcpy(bytes.data(), a.data + (address - a.address), bytes.size());
}

void GlobalMemory::poison(uint64_t address, uint64_t bytes) {
  if (bytes == 0) return;
  std::lock_guard lock(impl_->mutex);
  Allocation& a = holder(*impl_, address, bytes);
  std::memset(a.data + (address - a.address), 0xFF, bytes);
  a.unmark(address - a.address, bytes);
}

uint64_t GlobalMemory::unwritten(uint64_t address, uint64_t bytes) const {
  if (bytes == 0) return 0;
  std::lock_guard lock(impl_->mutex);
  const Allocation& a = holder(*impl_, address, bytes);
  return a.count_unwritten(address - a.address, bytes);
}

uint64_t GlobalMemory::first_unwritten(uint64_t address, uint64_t bytes) const {
  if (bytes == 0) return 0;
  std::lock_guard lock(impl_->mutex);
  const Allocation& a = holder(*impl_, address, bytes);
  return a.first_unwritten(address - a.address, bytes) - (address - a.address);
}

}  // namespace tw::sim
