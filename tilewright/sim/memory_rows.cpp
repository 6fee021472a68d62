#include "tilewright/sim/memory_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/global_memory_impl.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/lanes.h"

namespace tw::sim {

namespace {

// Where the lanes' bytes lie: the lowest address, and each lane's distance from it.
struct Footprint {
  uint64_t low;
  uint32_t reach;  // the largest distance
  uint32_t offset[32];
};

// False when the lanes are more than 2^30 bytes apart or one is not aligned to `bytes`.
template <bool wide, uint32_t bytes>
[[gnu::always_inline]] inline bool footprint(const Warp& w, const Inst& i, Footprint& f) {
  uint32_t any = 0;
  if constexpr (wide) {
    const auto* row = w.row<uint64_t>(i.s[0]);
    const uint64_t first = row[0];
    int32_t distance[32];
    uint64_t far = 0;
    for (int l = 0; l < 32; ++l) {
      const uint64_t d = row[l] - first;
      far |= d + (uint64_t{1} << 30);
      distance[l] = static_cast<int32_t>(d);
    }
    if (far >> 31) return false;
    int32_t low = distance[0], high = distance[0];
    for (int l = 0; l < 32; ++l) {
      low = distance[l] < low ? distance[l] : low;
      high = distance[l] > high ? distance[l] : high;
    }
    for (int l = 0; l < 32; ++l) {
      f.offset[l] = static_cast<uint32_t>(distance[l] - low);
      any |= f.offset[l];
    }
    f.low = first + static_cast<uint64_t>(i.imm) + static_cast<uint64_t>(int64_t{low});
    f.reach = static_cast<uint32_t>(high - low);
  } else {
    const auto* row = w.row<uint32_t>(i.s[0]);
    const auto add = static_cast<uint32_t>(i.imm);
    uint32_t low = ~0u, high = 0;
    for (int l = 0; l < 32; ++l) {
      const uint32_t a = row[l] + add;
      low = a < low ? a : low;
      high = a > high ? a : high;
    }
    for (int l = 0; l < 32; ++l) {
      f.offset[l] = row[l] + add - low;
      any |= f.offset[l];
    }
    f.low = low;
    f.reach = high - low;
  }
  return ((any | static_cast<uint32_t>(f.low)) & (bytes - 1)) == 0;
}

// The lanes fill the range from the lowest address without a gap, in any order.
template <uint32_t bytes>
[[gnu::always_inline]] inline bool fills(const Footprint& f) {
  if (f.reach != 31 * bytes) return false;
  uint32_t places = 0;
  for (int l = 0; l < 32; ++l) places |= 1u << (f.offset[l] / bytes);
  return places == kAllLanes;
}

// Reads: whether every byte has been written. Writes: marks them, and is true.
template <bool load, uint32_t bytes>
[[gnu::always_inline]] inline bool account(WrittenBytes& written, uint64_t start, const Footprint& f) {
  if (written.all_written()) return true;
  if (f.reach <= 63 * bytes && written.written(start, f.reach + bytes)) return true;
  if constexpr (load) {
    bool all = true;
    for (int l = 0; l < 32; ++l) all &= written.written_aligned(start + f.offset[l], bytes);
    return all;
  } else {
    if (fills<bytes>(f)) written.mark(start, 32 * bytes);
    else
      for (int l = 0; l < 32; ++l) written.mark_aligned(start + f.offset[l], bytes);
    return true;
  }
}
template <bool load, uint32_t bytes>
[[gnu::always_inline]] inline bool account(Allocation& memory, uint64_t start, const Footprint& f) {
  if (memory.all_written()) return true;
  if constexpr (load) {
    bool all = true;
    for (int l = 0; l < 32; ++l) all &= memory.written_aligned(start + f.offset[l], bytes);
    return all;
  } else {
    if (fills<bytes>(f)) {
      memory.mark(start, 32 * bytes);
    } else {
      uint64_t fresh = 0;
      for (int l = 0; l < 32; ++l) fresh += memory.mark_aligned(start + f.offset[l], bytes);
      memory.count_written(fresh);
    }
    return true;
  }
}

// The byte at f.low after all checks, or nullptr.
template <AddressSpace space, bool load, uint32_t bytes>
[[gnu::always_inline]] inline std::byte* resolve_rows(Warp& w, const Inst& i, const Footprint& f) {
  if constexpr (space == AddressSpace::shared) {
    Cta& cta = w.cta();
    const uint64_t start = f.low - shared_address(cta.rank, 0);  // wraps for addresses below
    if (!cta.shared.contains(start, uint64_t{f.reach} + bytes)) return nullptr;
    return account<load, bytes>(cta.shared.written(), start, f) ? cta.shared.data() + start : nullptr;
  } else {
    Allocation*& recent = w.recent[i.s[0].offset / 256 % 4];
    if (!recent || !recent->contains(f.low, uint64_t{f.reach} + bytes)) {
      Allocation* found = w.cluster().grid.memory.impl().find(f.low);
      if (!found || !found->contains(f.low, uint64_t{f.reach} + bytes)) return nullptr;
      recent = found;
    }
    const uint64_t start = f.low - recent->address;
    return account<load, bytes>(*recent, start, f) ? recent->data + start : nullptr;
  }
}

typedef uint32_t Quad __attribute__((vector_size(16), aligned(4), may_alias));

// Four rows of four words become four columns, and back.
[[gnu::always_inline]] inline void transpose(Quad (&v)[4]) {
  const Quad a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5),
             b = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5),
             c = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7),
             d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
  v[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  v[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  v[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  v[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
}

// Between `count` register rows of T and the lanes' bytes in memory.
template <bool load, class T, uint32_t count>
[[gnu::always_inline]] inline void move_rows(Warp& w, const MemoryOp& op, std::byte* base,
                                             const Footprint& f) {
  if constexpr (sizeof(T) == 4 && count == 4) {
    uint32_t* row[4];
    for (uint32_t n = 0; n < 4; ++n) row[n] = w.row<uint32_t>(op.registers[n]);
    for (int l = 0; l < 32; l += 4) {
      Quad v[4];
      for (int n = 0; n < 4; ++n)
        v[n] = *reinterpret_cast<const Quad*>(load ? base + f.offset[l + n]
                                                   : reinterpret_cast<std::byte*>(row[n] + l));
      transpose(v);
      for (int n = 0; n < 4; ++n)
        *reinterpret_cast<Quad*>(load ? reinterpret_cast<std::byte*>(row[n] + l) : base + f.offset[l + n]) =
            v[n];
    }
  } else {
    for (uint32_t n = 0; n < count; ++n) {
      auto* row = w.row<T>(op.registers[n]);
      std::byte* at = base + n * sizeof(T);
      for (int l = 0; l < 32; ++l) {
        if constexpr (load) std::memcpy(&row[l], at + f.offset[l], sizeof(T));
        else std::memcpy(at + f.offset[l], &row[l], sizeof(T));
      }
    }
  }
}

// Lane l's bytes follow those of lane l - 1.
template <uint32_t bytes>
[[gnu::always_inline]] inline bool in_order(const Footprint& f) {
  uint32_t differs = 0;
  for (uint32_t l = 0; l < 32; ++l) differs |= f.offset[l] ^ (l * bytes);
  return differs == 0;
}

template <bool load, AddressSpace space, bool wide, class T, uint32_t count>
struct Rows {
  [[gnu::always_inline]] static Flow run(Warp& w, const Inst& i, uint32_t lanes) {
    constexpr uint32_t bytes = sizeof(T) * count;
    Footprint f;
    std::byte* base = nullptr;
    if (lanes == kAllLanes && !w.cluster().observer() && footprint<wide, bytes>(w, i, f)) [[likely]]
      base = resolve_rows<space, load, bytes>(w, i, f);
    if (!base) [[unlikely]]
      return load ? run_load(w, i, lanes) : run_store(w, i, lanes);
    const auto& op = *static_cast<const MemoryOp*>(i.extra);
    if (count == 1 && in_order<bytes>(f)) {
      auto* row = w.row<T>(op.registers[0]);
      if constexpr (load) std::memcpy(row, base, 32 * sizeof(T));
      else std::memcpy(base, row, 32 * sizeof(T));
    } else {
      move_rows<load, T, count>(w, op, base, f);
    }
    return Flow::next;
  }
};

template <bool load, AddressSpace space, bool wide>
Handler of_type(uint32_t element, uint32_t count) {
  if (element == 4 && count == 1) return handler<Rows<load, space, wide, uint32_t, 1>>();
  if (element == 4 && count == 2) return handler<Rows<load, space, wide, uint32_t, 2>>();
  if (element == 4 && count == 4) return handler<Rows<load, space, wide, uint32_t, 4>>();
  if (element == 8 && count == 1) return handler<Rows<load, space, wide, uint64_t, 1>>();
  if (element == 8 && count == 2) return handler<Rows<load, space, wide, uint64_t, 2>>();
  return nullptr;
}

template <bool load>
Handler in_space(const MemoryOp& op, bool wide) {
  const uint32_t element = op.element.bytes;
  if (op.space == AddressSpace::shared && !wide)
    return of_type<load, AddressSpace::shared, false>(element, op.count);
  if (op.space == AddressSpace::global && wide)
    return of_type<load, AddressSpace::global, true>(element, op.count);
  return nullptr;
}

}  // namespace

Handler row_handler(const MemoryOp& op, bool load, bool wide_address) {
  const bool all_used = std::all_of(op.used.begin(), op.used.begin() + op.count, [](bool u) { return u; });
  if (op.strong || !all_used || op.element.bytes != op.element.register_bytes) return nullptr;
  return load ? in_space<true>(op, wide_address) : in_space<false>(op, wide_address);
}

}  // namespace tw::sim
