#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "tilewright/sim/decode.h"
#include "tilewright/sim/inst.h"
#include "tilewright/sim/vector_level.h"
#include "tilewright/sim/warp.h"

// Handlers over the 32 lanes of a warp, in a form that the compiler vectorises.
namespace tw::sim {

// How a row stores a value of type T: 8- and 16-bit values sit in 32-bit elements, zero-extended.
template <class T>
using Stored = std::conditional_t<sizeof(T) <= 2, uint32_t, T>;

template <class T>
[[gnu::always_inline]] inline T load_lane(const Stored<T>* row, int lane) {
  return static_cast<T>(row[lane]);
}
template <class T>
[[gnu::always_inline]] inline Stored<T> stored(T value) {
  if constexpr (sizeof(T) <= 2) {
    return static_cast<Stored<T>>(static_cast<std::make_unsigned_t<T>>(value));
  } else {
    return value;
  }
}

// d[lane] = f(lane) for the lanes of the mask. f is evaluated for all lanes, so it must be defined for any
// value.
template <class D, class F>
[[gnu::always_inline]] inline void each_lane(uint32_t lanes, D* d, F f) {
  if (lanes == kAllLanes) [[likely]] {
#pragma GCC ivdep
    for (int l = 0; l < 32; ++l) d[l] = f(l);
    return;
  }
  D value[32];
  for (int l = 0; l < 32; ++l) value[l] = f(l);
  for (int l = 0; l < 32; ++l) d[l] = (lanes >> l & 1) ? value[l] : d[l];
}

// A mask of the lanes for which f holds; other bits of `old` stay.
template <class F>
[[gnu::always_inline]] inline uint32_t each_lane_mask(uint32_t lanes, uint32_t old, F f) {
  uint32_t bit[32];
  for (int l = 0; l < 32; ++l) bit[l] = f(l) ? 1u << l : 0u;
  uint32_t mask = 0;
  for (int l = 0; l < 32; ++l) mask |= bit[l];
  return (mask & lanes) | (old & ~lanes);
}

// A kernel K has `static void run(Warp&, const Inst&, uint32_t lanes)`, or a run that answers a Flow. Several
// handlers are made of it: one for any x86-64, one for processors with AVX2 and FMA, one for those with
// AVX-512; handler<K>() answers the one for this machine. All give the same bits: no level contracts a * b +
// c.
template <class K>
[[gnu::always_inline]] inline Flow run_kernel(Warp& w, const Inst& i, uint32_t lanes) {
  if constexpr (std::is_void_v<decltype(K::run(w, i, lanes))>) {
    K::run(w, i, lanes);
    return Flow::next;
  } else {
    return K::run(w, i, lanes);
  }
}
template <class K>
Flow plain_handler(Warp& w, const Inst& i, uint32_t lanes) {
  return run_kernel<K>(w, i, lanes);
}
#if defined(__x86_64__)
template <class K>
[[gnu::target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")]] Flow wide_handler(Warp& w, const Inst& i,
                                                                         uint32_t lanes) {
  return run_kernel<K>(w, i, lanes);
}
template <class K>
[[gnu::target("avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")]] Flow
widest_handler(Warp& w, const Inst& i, uint32_t lanes) {
  return run_kernel<K>(w, i, lanes);
}
template <class K>
Handler handler() {
#if defined(__SANITIZE_ADDRESS__)  // sanitizers look at the source, which is the same for all levels
  return &plain_handler<K>;
#endif
  switch (vector_level()) {
    case VectorLevel::avx512: return &widest_handler<K>;
    case VectorLevel::avx2: return &wide_handler<K>;
    default: return &plain_handler<K>;
  }
}
// For kernels that call functions written for a level.
template <template <VectorLevel> class K>
Handler level_handler() {
  switch (vector_level()) {
    case VectorLevel::avx512: return &widest_handler<K<VectorLevel::avx512>>;
    case VectorLevel::avx2: return &wide_handler<K<VectorLevel::avx2>>;
    default: return &plain_handler<K<VectorLevel::plain>>;
  }
}
#else
template <class K>
Handler handler() {
  return &plain_handler<K>;
}
template <template <VectorLevel> class K>
Handler level_handler() {
  return &plain_handler<K<VectorLevel::plain>>;
}
#endif

// Kernels of one to three operands of type T (result R). F has `static R apply(T a, ...)`.
template <class F, class T, class R = T>
struct Unary {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto* a = w.row<Stored<T>>(i.s[1]);
    each_lane(
        lanes, w.row<Stored<R>>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          return stored<R>(F::apply(load_lane<T>(a, l)));
        });
  }
};
template <class F, class T, class R = T>
struct Binary {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto* a = w.row<Stored<T>>(i.s[1]);
    const auto* b = w.row<Stored<T>>(i.s[2]);
    each_lane(
        lanes, w.row<Stored<R>>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          return stored<R>(F::apply(load_lane<T>(a, l), load_lane<T>(b, l)));
        });
  }
};
template <class F, class T, class C = T>  // c and the result may be wider (mad.wide)
struct Ternary {
  [[gnu::always_inline]] static void run(Warp& w, const Inst& i, uint32_t lanes) {
    const auto* a = w.row<Stored<T>>(i.s[1]);
    const auto* b = w.row<Stored<T>>(i.s[2]);
    const auto* c = w.row<Stored<C>>(i.s[3]);
    each_lane(
        lanes, w.row<Stored<C>>(i.s[0]), [&](int l) __attribute__((always_inline)) {
          return stored<C>(F::apply(load_lane<T>(a, l), load_lane<T>(b, l), load_lane<C>(c, l)));
        });
  }
};

// Calls f with a value of the C++ type of a PTX integer type; false if `t` is none.
template <class F>
bool with_integer(ptx::Type t, F f) {
  switch (t) {
    case ptx::Type::u16:
    case ptx::Type::b16: f(uint16_t{}); return true;
    case ptx::Type::s16: f(int16_t{}); return true;
    case ptx::Type::u32:
    case ptx::Type::b32: f(uint32_t{}); return true;
    case ptx::Type::s32: f(int32_t{}); return true;
    case ptx::Type::u64:
    case ptx::Type::b64: f(uint64_t{}); return true;
    case ptx::Type::s64: f(int64_t{}); return true;
    default: return false;
  }
}

// Decodes "op d, a, b, ..." whose operands all have `bytes`.
inline void plain_operands(Decoding& d, int bytes, size_t count) {
  d.inst.s[0] = d.destination(0, bytes);
  for (size_t i = 1; i < count; ++i) d.inst.s[i] = d.source(i, bytes);
}

inline constexpr Slot kCarry{4, Slot::registers};  // the condition code register CC.CF, one bit a lane

}  // namespace tw::sim
