#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "tilewright/base/formats.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/lanes.h"
#include "tilewright/sim/memory_access.h"

// PTX ISA, "Warp-Level Matrix Instructions": ldmatrix, stmatrix, movmatrix, mma.sync on 16-bit, tf32,
// fp8 and 8-bit integer operands.
namespace tw::sim {

namespace {

// ---- ldmatrix, stmatrix: 8x8 matrices of 16-bit elements; lane 8k + r gives the address of row r of matrix
// k ----

struct MatrixAccess {
  uint32_t count = 1;
  bool transposed = false, wide = false, generic = false;
  std::array<Slot, 4> registers;
};

using Rows = std::array<std::array<uint16_t, 8>, 8>;  // [row][column]

// The element pair that lane l holds of a matrix.
uint32_t fragment(const Rows& m, uint32_t l, bool transposed) {
  const uint32_t row = l / 4, column = 2 * (l % 4);
  const uint32_t low = transposed ? m[column][row] : m[row][column];
  const uint32_t high = transposed ? m[column + 1][row] : m[row][column + 1];
  return high << 16 | low;
}
void set_fragment(Rows& m, uint32_t l, bool transposed, uint32_t value) {
  const uint32_t row = l / 4, column = 2 * (l % 4);
  (transposed ? m[column][row] : m[row][column]) = static_cast<uint16_t>(value);
  (transposed ? m[column + 1][row] : m[row][column + 1]) = static_cast<uint16_t>(value >> 16);
}

void require_whole_warp(Warp& w, uint32_t lanes, const char* what) {
  if (lanes != kAllLanes) w.fault(lanes, "{} needs all 32 lanes of the warp", what);
}

void resolve_rows(Warp& w, const Inst& i, const MatrixAccess& spec, AccessKind kind, LanePointers& p) {
  const Addresses a = lane_addresses(w, i.s[1], spec.wide, i.imm);
  const uint32_t rows = spec.count == 4 ? kAllLanes : (1u << (8 * spec.count)) - 1;
  resolve(w, rows, spec.generic ? AddressSpace::generic : AddressSpace::shared, a, 16, 16, kind, p);
}

Flow run_ldmatrix(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& spec = *static_cast<const MatrixAccess*>(i.extra);
  require_whole_warp(w, lanes, "ldmatrix");
  LanePointers p;
  resolve_rows(w, i, spec, AccessKind::read, p);
  std::array<Rows, 4> m;
  for (uint32_t k = 0; k < spec.count; ++k) {
    for (uint32_t r = 0; r < 8; ++r) std::memcpy(m[k][r].data(), p.lane[8 * k + r], 16);
  }
  for (uint32_t k = 0; k < spec.count; ++k) {
    auto* d = w.row<uint32_t>(spec.registers[k]);
    for (uint32_t l = 0; l < kLanes; ++l) d[l] = fragment(m[k], l, spec.transposed);
  }
  return Flow::next;
}

Flow run_stmatrix(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& spec = *static_cast<const MatrixAccess*>(i.extra);
  require_whole_warp(w, lanes, "stmatrix");
  LanePointers p;
  resolve_rows(w, i, spec, AccessKind::write, p);
  for (uint32_t k = 0; k < spec.count; ++k) {
    Rows m{};
    const auto* s = w.row<uint32_t>(spec.registers[k]);
    for (uint32_t l = 0; l < kLanes; ++l) set_fragment(m, l, spec.transposed, s[l]);
    for (uint32_t r = 0; r < 8; ++r) std::memcpy(p.lane[8 * k + r], m[r].data(), 16);
  }
  return Flow::next;
}

Flow run_movmatrix(Warp& w, const Inst& i, uint32_t lanes) {
  require_whole_warp(w, lanes, "movmatrix");
  Rows m{};
  const auto* s = w.row<uint32_t>(i.s[1]);
  for (uint32_t l = 0; l < kLanes; ++l) set_fragment(m, l, false, s[l]);
  auto* d = w.row<uint32_t>(i.s[0]);
  for (uint32_t l = 0; l < kLanes; ++l) d[l] = fragment(m, l, true);
  return Flow::next;
}

// A register or a vector of registers as slots.
std::vector<Slot> slots(Decoding& d, const ptx::Operand& o, bool destination) {
  std::vector<Slot> result;
  auto add = [&](const ptx::Operand& e) {
    result.push_back(destination ? d.destination(e, 4) : d.source(e, 4));
  };
  if (const auto* v = o.as<ptx::Vector>()) {
    for (const auto& e : v->elements) add(e);
  } else {
    add(o);
  }
  return result;
}

void decode_matrix_access(Decoding& d, bool load) {
  MatrixAccess spec;
  d.take("sync");
  d.take("aligned");
  const auto shape = d.take_one_of({"m8n8", "m8n16", "m16n16", "m16n8"});
  if (shape != "m8n8") d.unsupported(tw::format("the shape .{}", shape));
  const auto count = d.take_one_of({"x1", "x2", "x4"});
  spec.count = static_cast<uint32_t>(count[1] - '0');
  spec.transposed = d.take("trans");
  const bool shared = !d.take_one_of({"shared", "shared::cta"}).empty();
  if (d.take_type() != ptx::Type::b16) d.unsupported("this element type");
  const auto address = d.address(load ? 1 : 0);
  const auto registers = slots(d, d.operand(load ? 0 : 1), load);
  if (registers.size() != spec.count) d.unsupported("a vector of this length");
  std::copy(registers.begin(), registers.end(), spec.registers.begin());
  spec.wide = address.wide;
  spec.generic = !shared && address.variable != ptx::Space::shared;
  d.inst.s[1] = address.base;
  d.inst.imm = address.offset;
  d.inst.gather = Gather::aligned;
  d.inst.extra = d.keep(spec);
  d.inst.run = load ? &run_ldmatrix : &run_stmatrix;
}

// ---- mma.sync.m16n8: A 16 x k, B k x 8, C and D 16 x 8 ("Matrix Fragments for mma.m16n8k16" and its
// neighbours) ----

struct MmaSpec {
  DType a_type = DType::f16, b_type = DType::f16, result = DType::f32;
  int k = 16;
  bool saturate = false;
  std::vector<Slot> d, a, b, c;
};

// Element (m, n) of C and D: lane 4 * (m mod 8) + n / 2; register 2 * (m / 8) + n mod 2, two to a register
// when 16-bit.
double read_c(const Warp& w, const MmaSpec& s, int m, int n) {
  const int lane = 4 * (m % 8) + n / 2;
  if (s.result == DType::f16)
    return to_double(DType::f16,
                     w.row<uint32_t>(s.c[static_cast<size_t>(m / 8)])[lane] >> (16 * (n % 2)) & 0xFFFF);
  const Slot slot = s.c[static_cast<size_t>(2 * (m / 8) + n % 2)];
  if (s.result == DType::i32) return w.row<int32_t>(slot)[lane];
  return w.row<float>(slot)[lane];
}

void write_d(Warp& w, const MmaSpec& s, int m, int n, double value) {
  const int lane = 4 * (m % 8) + n / 2;
  if (s.result == DType::f16) {
    uint32_t& pair = w.row<uint32_t>(s.d[static_cast<size_t>(m / 8)])[lane];
    const uint32_t code = from_double(DType::f16, value);
    pair = n % 2 ? (pair & 0xFFFF) | code << 16 : (pair & 0xFFFF0000) | code;
    return;
  }
  const Slot slot = s.d[static_cast<size_t>(2 * (m / 8) + n % 2)];
  if (s.result == DType::f32) {
    w.row<float>(slot)[lane] = static_cast<float>(value);
  } else {  // exact so far; without .satfinite it wraps
    if (s.saturate) value = std::clamp(value, -0x1p31, 0x1p31 - 1);
    w.row<uint32_t>(slot)[lane] = static_cast<uint32_t>(static_cast<int64_t>(value));
  }
}

// Elements of A and B: a register holds as many neighbours along k as fit, the four lanes of a group as many
// registers side by side.
double read_operand(const Warp& w, DType type, const std::vector<Slot>& regs, int line, int lines, int k) {
  const int group = line % 8, half = line / 8, width = bits(type), packed = 32 / width;
  const size_t reg = static_cast<size_t>(k / (4 * packed) * lines + half);
  const uint32_t word = w.row<uint32_t>(regs[reg])[4 * group + k % (4 * packed) / packed];
  const uint32_t code = word >> (width * (k % packed)) & (width == 32 ? ~0u : (1u << width) - 1);
  if (type == DType::u8) return code;
  if (type == DType::i8) return static_cast<int8_t>(code);
  return to_double(type, code);
}

// Products are exact; the sum is formed in double and rounded once. A GPU adds in an order of its own.
Flow run_mma(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const MmaSpec*>(i.extra);
  require_whole_warp(w, lanes, "mma.sync");
  double a[16][32], b[32][8], sum[16][8];
  for (int k = 0; k < s.k; ++k) {
    for (int m = 0; m < 16; ++m) a[m][k] = read_operand(w, s.a_type, s.a, m, 2, k);
    for (int n = 0; n < 8; ++n) b[k][n] = read_operand(w, s.b_type, s.b, n, 1, k);
  }
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      sum[m][n] = read_c(w, s, m, n);
      for (int k = 0; k < s.k; ++k) sum[m][n] += a[m][k] * b[k][n];
    }
  }
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) write_d(w, s, m, n, sum[m][n]);
  }
  return Flow::next;
}

// The operand types of mma, in families that may be mixed.
struct MmaType {
  std::string_view name;
  DType type;
  int family;
};
constexpr MmaType kMmaTypes[] = {{"f16", DType::f16, 0},   {"bf16", DType::bf16, 1}, {"tf32", DType::tf32, 2},
                                 {"e4m3", DType::e4m3, 3}, {"e5m2", DType::e5m2, 3}, {"s8", DType::i8, 4},
                                 {"u8", DType::u8, 4}};

const MmaType& mma_type(Decoding& d, std::string_view name) {
  for (const MmaType& t : kMmaTypes)
    if (t.name == name) return t;
  d.unsupported(tw::format("operands of type .{}", name));
}

void decode_mma(Decoding& d) {
  MmaSpec s;
  d.take("sync");
  d.take("aligned");
  if (!d.take_one_of({"sp", "sp::ordered_metadata"}).empty()) d.unsupported("a sparse operand");
  const auto shape = d.take_one_of({"m16n8k32", "m16n8k16", "m16n8k8", "m16n8k4"});
  if (shape.empty()) d.unsupported("this shape");
  s.k = shape == "m16n8k32" ? 32 : shape == "m16n8k16" ? 16 : shape == "m16n8k8" ? 8 : 4;
  if (!d.take("row") || !d.take("col")) d.unsupported("this operand order");
  if (!d.take_one_of({"kind::f8f6f4", "kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"}).empty())
    d.unsupported("this kind of operand");
  s.saturate = d.take("satfinite");
  const auto result = d.take_next();
  const MmaType &a = mma_type(d, d.take_next()), &b = mma_type(d, d.take_next());
  if (a.family != b.family || result != d.take_next()) d.unsupported("mixed types");
  s.a_type = a.type;
  s.b_type = b.type;
  s.result = result == "s32" ? DType::i32 : result == "f16" ? DType::f16 : DType::f32;
  // Registers of B: k elements over four lanes.
  const size_t b_count = static_cast<size_t>(s.k * bits(s.b_type) / 128);
  if (b_count < 1 || b_count > 2) d.unsupported("this shape with these types");
  s.d = slots(d, d.operand(0), true);
  s.a = slots(d, d.operand(1), false);
  s.b = slots(d, d.operand(2), false);
  s.c = slots(d, d.operand(3), false);
  if (s.a.size() != 2 * b_count || s.b.size() != b_count ||
      s.c.size() != (s.result == DType::f16 ? 2u : 4u) || s.d.size() != s.c.size())
    d.unsupported("fragments of these lengths");
  d.inst.gather = Gather::aligned;
  d.inst.extra = d.keep(std::move(s));
  d.inst.run = &run_mma;
}

}  // namespace

void register_matrix(Registry& r) {
  r.add("ldmatrix", [](Decoding& d) { decode_matrix_access(d, true); });
  r.add("stmatrix", [](Decoding& d) { decode_matrix_access(d, false); });
  r.add("movmatrix", [](Decoding& d) {
    d.take("sync");
    d.take("aligned");
    d.take("m8n8");
    d.take("trans");
    d.take_type();
    d.inst.s[0] = d.destination(0, 4);
    d.inst.s[1] = d.source(1, 4);
    d.inst.gather = Gather::aligned;
    d.inst.run = &run_movmatrix;
  });
  r.add("mma", &decode_mma);
}

}  // namespace tw::sim
