#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tilewright/base/formats.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/memory_access.h"

// PTX ISA, "Warp-Level Matrix Multiply-Accumulate Instructions" using wmma: load, store, mma.
//
// Which lane holds which element is unspecified. Here the slots of a fragment, lane by lane, hold the
// elements in row-major order, again from the start where there are more slots than elements.
namespace tw::sim {

namespace {

struct Fragment {
  DType type = DType::f16;
  uint32_t rows = 0, columns = 0;
  std::vector<Slot> registers;

  uint32_t width() const { return static_cast<uint32_t>(bits(type)) / 8; }  // bytes of an element
  uint32_t packed() const { return width() < 4 ? 4 / width() : 1; }         // elements a register
  uint32_t per_lane() const { return static_cast<uint32_t>(registers.size()) * packed(); }
  uint32_t bytes() const { return per_lane() * width(); }  // of a lane
  uint32_t elements() const { return rows * columns; }
};

uint64_t read_code(const Warp& w, const Fragment& f, uint32_t lane, uint32_t element) {
  const Slot slot = f.registers[element / f.packed()];
  if (f.width() == 8) return w.row<uint64_t>(slot)[lane];
  const uint32_t word = w.row<uint32_t>(slot)[lane];
  if (f.width() == 4) return word;
  return word >> (8 * f.width() * (element % f.packed())) & ((1u << (8 * f.width())) - 1);
}

void write_code(Warp& w, const Fragment& f, uint32_t lane, uint32_t element, uint64_t code) {
  const Slot slot = f.registers[element / f.packed()];
  if (f.width() == 8) {
    w.row<uint64_t>(slot)[lane] = code;
    return;
  }
  const uint32_t shift = 8 * f.width() * (element % f.packed());
  const uint32_t mask = (f.width() == 4 ? ~0u : (1u << (8 * f.width())) - 1) << shift;
  uint32_t& word = w.row<uint32_t>(slot)[lane];
  word = (word & ~mask) | (static_cast<uint32_t>(code) << shift & mask);
}

double value_of(DType type, uint64_t code) {
  switch (type) {
    case DType::f64: return std::bit_cast<double>(code);
    case DType::i32: return static_cast<int32_t>(code);
    case DType::i8: return static_cast<int8_t>(code);
    case DType::u8: return static_cast<double>(code);
    default: return to_double(type, static_cast<uint32_t>(code));
  }
}

// Row-major values of the whole matrix.
std::vector<double> matrix(const Warp& w, const Fragment& f) {
  std::vector<double> out(f.elements());
  for (uint32_t p = 0; p < f.elements(); ++p)
    out[p] = value_of(f.type, read_code(w, f, p / f.per_lane(), p % f.per_lane()));
  return out;
}

void require_whole_warp(Warp& w, uint32_t lanes, std::string_view what) {
  if (lanes != kAllLanes) w.fault(lanes, "wmma.{} needs all 32 lanes of the warp", what);
}

// ---- load and store ----

struct WmmaAccess {
  Fragment fragment;
  AddressSpace space = AddressSpace::generic;
  bool load = true, wide = false, row_major = true;
};

// The first element's address and the stride in elements, the same in all lanes and aligned ("Matrix Storage
// for WMMA").
uint64_t check_place(Warp& w, const Inst& i, const WmmaAccess& s, uint64_t& stride) {
  const std::string_view what = s.load ? "load" : "store";
  const Addresses base = lane_addresses(w, i.s[0], s.wide, i.imm);
  const auto* strides = w.row<uint32_t>(i.s[1]);
  for (uint32_t l = 1; l < kLanes; ++l)
    if (base.lane[l] != base.lane[0] || strides[l] != strides[0])
      w.fault(1u << l, "wmma.{} takes one address and one stride for the whole warp", what);
  stride = strides[0];
  const uint32_t line = s.row_major ? s.fragment.columns : s.fragment.rows;
  if (stride < line)
    w.fault(kAllLanes, "wmma.{}: the stride {} is below the {} elements of a line", what, stride, line);
  const uint64_t align = s.fragment.bytes();
  if (base.lane[0] % align || stride * s.fragment.width() % align)
    w.fault(kAllLanes,
            "wmma.{}: address {:#x} and stride of {} bytes must be multiples of the fragment's {} bytes",
            what, base.lane[0], stride * s.fragment.width(), align);
  return base.lane[0];
}

Flow run_access(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const WmmaAccess*>(i.extra);
  const Fragment& f = s.fragment;
  require_whole_warp(w, lanes, s.load ? "load" : "store");
  uint64_t stride = 0;
  const uint64_t base = check_place(w, i, s, stride);
  for (uint32_t e = 0; e < f.per_lane(); ++e) {
    Addresses at;
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t p = (l * f.per_lane() + e) % f.elements(), row = p / f.columns, column = p % f.columns;
      at.lane[l] = base + (s.row_major ? row * stride + column : column * stride + row) * f.width();
    }
    LanePointers p;
    resolve(w, kAllLanes, s.space, at, f.width(), f.width(), s.load ? AccessKind::read : AccessKind::write,
            p);
    for (uint32_t l = 0; l < kLanes; ++l) {
      uint64_t code = s.load ? 0 : read_code(w, f, l, e);
      if (s.load) {
        std::memcpy(&code, p.lane[l], f.width());
        write_code(w, f, l, e, code);
      } else {
        std::memcpy(p.lane[l], &code, f.width());
      }
    }
  }
  return Flow::next;
}

// ---- mma ----

struct WmmaSpec {
  Fragment a, b, c, d;
  bool saturate = false;
};

uint64_t code_of(DType type, double value, bool saturate) {
  if (type == DType::f64) return std::bit_cast<uint64_t>(value);
  if (type != DType::i32) return from_double(type, value);
  if (saturate) value = std::clamp(value, -0x1p31, 0x1p31 - 1);
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

// Products of narrow types are exact and their sum is rounded once; f64 rounds each step.
Flow run_mma(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const WmmaSpec*>(i.extra);
  require_whole_warp(w, lanes, "mma");
  const std::vector<double> a = matrix(w, s.a), b = matrix(w, s.b);
  std::vector<double> sum = matrix(w, s.c);
  const uint32_t depth = s.a.columns, columns = s.d.columns;
  for (uint32_t m = 0; m < s.d.rows; ++m)
    for (uint32_t n = 0; n < columns; ++n)
      for (uint32_t k = 0; k < depth; ++k)
        sum[m * columns + n] = std::fma(a[m * depth + k], b[k * columns + n], sum[m * columns + n]);
  for (uint32_t p = 0; p < s.d.elements(); ++p)
    write_code(w, s.d, p / s.d.per_lane(), p % s.d.per_lane(), code_of(s.d.type, sum[p], s.saturate));
  return Flow::next;
}

// ---- decoding ----

struct Shape {
  uint32_t m, n, k;
};

Shape take_shape(Decoding& d) {
  const auto shape = d.take_one_of({"m16n16k16", "m8n32k16", "m32n8k16", "m16n16k8", "m8n8k4"});
  if (shape == "m16n16k16") return {16, 16, 16};
  if (shape == "m8n32k16") return {8, 32, 16};
  if (shape == "m32n8k16") return {32, 8, 16};
  if (shape == "m16n16k8") return {16, 16, 8};
  if (shape == "m8n8k4") return {8, 8, 4};
  d.unsupported("this shape");
}

DType take_type(Decoding& d) {
  const std::string_view name = d.take_next();
  if (name == "s8") return DType::i8;
  if (name == "s32") return DType::i32;
  for (DType t : {DType::f16, DType::bf16, DType::tf32, DType::f32, DType::f64, DType::u8})
    if (name == tw::name(t)) return t;
  d.unsupported(tw::format("elements of type .{}", name));
}

Fragment fragment(Decoding& d, DType type, char which, const Shape& s, const ptx::Operand& operand,
                  bool written) {
  Fragment f{type, which == 'b' ? s.k : s.m, which == 'a' ? s.k : s.n, {}};
  const int bytes = type == DType::f64 ? 8 : 4;
  const auto add = [&](const ptx::Operand& o) {
    f.registers.push_back(written ? d.destination(o, bytes) : d.source(o, bytes));
  };
  if (const auto* v = operand.as<ptx::Vector>()) std::for_each(v->elements.begin(), v->elements.end(), add);
  else add(operand);
  if (kLanes * f.per_lane() % f.elements() != 0) d.unsupported("a fragment of this length");
  return f;
}

void decode_access(Decoding& d, bool load) {
  WmmaAccess s;
  s.load = load;
  const auto which = d.take_one_of({"a", "b", "c", "d"});
  d.take("sync");
  d.take("aligned");
  s.row_major = d.take_one_of({"row", "col"}) == "row";
  const Shape shape = take_shape(d);
  const auto space = d.take_one_of({"global", "shared", "shared::cta"});
  const DType type = take_type(d);
  const auto address = d.address(load ? 1 : 0);
  s.fragment = fragment(d, type, which.front(), shape, d.operand(load ? 0 : 1), load);
  s.wide = address.wide;
  s.space = space == "global"                                          ? AddressSpace::global
            : !space.empty() || address.variable == ptx::Space::shared ? AddressSpace::shared
                                                                       : AddressSpace::generic;
  d.inst.s[0] = address.base;
  d.inst.imm = address.offset;
  d.inst.s[1] =
      d.operand_count() > 2 ? d.source(2, 4) : d.constant(s.row_major ? s.fragment.columns : s.fragment.rows);
  d.inst.gather = Gather::aligned;
  d.inst.extra = d.keep(std::move(s));
  d.inst.run = &run_access;
}

void decode_mma(Decoding& d) {
  if (!d.take_one_of({"xor", "and"}).empty()) d.unsupported("a product of single bits");
  d.take("sync");
  d.take("aligned");
  // The layouts say how A and B lay in memory; fragments do not depend on it here.
  const auto a_layout = d.take_next(), b_layout = d.take_next();
  if ((a_layout != "row" && a_layout != "col") || (b_layout != "row" && b_layout != "col"))
    d.unsupported("this operand order");
  const Shape shape = take_shape(d);
  d.take("rn");
  const DType result = take_type(d), second = take_type(d);
  // Two types: those of D and C, with A and B of f16; four: D, A, B, C.
  const bool half = second == DType::f16 || second == DType::f32;
  const DType a = half ? DType::f16 : second, b = half ? DType::f16 : take_type(d),
              c = half ? second : take_type(d);
  WmmaSpec s;
  s.saturate = d.take("satfinite");
  s.d = fragment(d, result, 'd', shape, d.operand(0), true);
  s.a = fragment(d, a, 'a', shape, d.operand(1), false);
  s.b = fragment(d, b, 'b', shape, d.operand(2), false);
  s.c = fragment(d, c, 'c', shape, d.operand(3), false);
  d.inst.gather = Gather::aligned;
  d.inst.extra = d.keep(std::move(s));
  d.inst.run = &run_mma;
}

}  // namespace

void register_wmma(Registry& r) {
  r.add("wmma", [](Decoding& d) {
    if (d.take("load")) decode_access(d, true);
    else if (d.take("store")) decode_access(d, false);
    else if (d.take("mma")) decode_mma(d);
    else d.unsupported("this operation");
  });
}

}  // namespace tw::sim
