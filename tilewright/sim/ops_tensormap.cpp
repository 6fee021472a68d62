#include <bit>
#include <cstring>

#include "tilewright/sim/bulk.h"
#include "tilewright/sim/memory_access.h"
#include "tilewright/sim/tensor_map.h"

// PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy".
namespace tw::sim {

namespace {

enum class Field : uint8_t {
  global_address,
  rank,
  box_dim,
  global_dim,
  global_stride,
  element_stride,
  elemtype,
  interleave_layout,
  swizzle_mode,
  fill_mode,
};
constexpr std::string_view kFields[] = {"global_address", "rank",           "box_dim",  "global_dim",
                                        "global_stride",  "element_stride", "elemtype", "interleave_layout",
                                        "swizzle_mode",   "fill_mode"};

struct ReplaceSpec {
  Field field = Field::rank;
  AddressSpace space = AddressSpace::generic;
  AddressRow object;
  uint32_t ordinal = 0;
  bool wide = false;
  Slot value;
};

// "Tensormap new_val validity": numbers of element types, which are not the driver's.
std::optional<TensorMapSpec::Type> element_type(uint64_t number) {
  using enum TensorMapSpec::Type;
  constexpr TensorMapSpec::Type types[] = {u8,  u16,     u32, s32,  u64,  s64,     f16,
                                           f32, f32_ftz, f64, bf16, tf32, tf32_ftz};
  return number < std::size(types) ? std::optional(types[number]) : std::nullopt;
}

// Whether the fields fit together is checked when the map is used: several are replaced one after the other.
bool replace(TensorMapSpec& map, Field field, uint32_t ordinal, uint64_t value) {
  switch (field) {
    case Field::global_address: map.address = value; return true;
    case Field::rank:
      if (value >= kMaxTensorRank) return false;
      map.rank = static_cast<uint32_t>(value) + 1;
      return true;
    case Field::box_dim: map.box[ordinal] = static_cast<uint32_t>(value); return value <= 256;
    // A dimension of 2^32 elements does not fit the operand.
    case Field::global_dim: map.dims[ordinal] = value; return value != 0;
    // The strides begin with that of dimension 1, as in cuTensorMapEncodeTiled.
    case Field::global_stride:
      if (ordinal + 1 >= kMaxTensorRank) return false;
      map.strides[ordinal + 1] = value;
      return true;
    case Field::element_stride:
      map.element_strides[ordinal] = static_cast<uint32_t>(value);
      return value <= 8;
    case Field::elemtype:
      if (const auto type = element_type(value)) return map.type = *type, true;
      return false;
    case Field::interleave_layout:
      map.interleave = static_cast<TensorMapSpec::Interleave>(value);
      return value <= 2;
    case Field::swizzle_mode: map.swizzle = static_cast<TensorMapSpec::Swizzle>(value); return value <= 3;
    case Field::fill_mode: map.nan_fill = value == 1; return value <= 1;
  }
  return false;
}

Flow run_replace(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const ReplaceSpec*>(i.extra);
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint32_t one = 1u << lane;
    Addresses a{};
    a.lane[lane] = s.object.of(w, lane);
    LanePointers p;
    resolve(w, one, s.space, a, kTensorMapBytes, kTensorMapAlign, AccessKind::read, p);
    const auto bytes = std::span<std::byte, kTensorMapBytes>(p.lane[lane], kTensorMapBytes);
    auto map = decode(bytes);
    if (!map) w.fault(one, "the 128 bytes at {:#x} are no tensor map", a.lane[lane]);
    const uint64_t value = s.wide ? w.row<uint64_t>(s.value)[lane] : w.row<uint32_t>(s.value)[lane];
    if (!replace(*map, s.field, s.ordinal, value))
      w.fault(one, "the field {} of a tensor map cannot be {}", kFields[static_cast<size_t>(s.field)], value);
    resolve(w, one, s.space, a, kTensorMapBytes, kTensorMapAlign, AccessKind::write, p);
    const TensorMapObject object = encode_unchecked(*map);
    std::memcpy(bytes.data(), object.data(), object.size());
  }
  return Flow::next;
}

AddressSpace take_space(Decoding& d) {
  const std::string_view space = d.take_one_of({"global", "shared::cta"});
  return space.empty()       ? AddressSpace::generic
         : space == "global" ? AddressSpace::global
                             : AddressSpace::shared;
}

void decode_replace(Decoding& d) {
  ReplaceSpec s;
  d.take("tile");
  size_t found = std::size(kFields);
  for (size_t f = 0; f < std::size(kFields); ++f) {
    if (d.take(kFields[f])) found = f;
  }
  if (found == std::size(kFields)) d.unsupported("this field of a tensor map");
  s.field = static_cast<Field>(found);
  s.space = take_space(d);
  d.take("b1024");
  s.wide = d.take_type() == ptx::Type::b64;
  s.object = address_row(d, 0);
  size_t next = 1;
  if (s.field >= Field::box_dim && s.field <= Field::element_stride) {
    const auto* ordinal = d.operand(next++).as<ptx::Immediate>();
    if (!ordinal || ordinal->bits >= kMaxTensorRank)
      d.unsupported("an ordinal that is no constant from 0 to 4");
    s.ordinal = static_cast<uint32_t>(ordinal->bits);
  }
  s.value = d.source(next, s.wide ? 8 : 4);
  d.inst.extra = d.keep(s);
  d.inst.run = &run_replace;
}

// s[0], s[1]: rows of 64-bit or 32-bit addresses; all threads of the warp together copy 128 bytes.
struct CopySpec {
  AddressRow to, from;
};

Flow run_copy_fence(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& s = *static_cast<const CopySpec*>(i.extra);
  const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto other = static_cast<uint32_t>(std::countr_zero(rest));
    if (s.to.of(w, other) != s.to.of(w, lane) || s.from.of(w, other) != s.from.of(w, lane))
      w.raise(ErrorKind::not_modelled, lanes,
              "tensormap.cp_fenceproxy with addresses that differ between threads");
  }
  Addresses from{}, to{};
  from.lane[lane] = s.from.of(w, lane);
  to.lane[lane] = s.to.of(w, lane);
  LanePointers source, target;
  resolve(w, 1u << lane, AddressSpace::shared, from, kTensorMapBytes, kTensorMapAlign, AccessKind::read,
          source);
  resolve(w, 1u << lane, AddressSpace::global, to, kTensorMapBytes, kTensorMapAlign, AccessKind::write,
          target);
  std::memcpy(target.lane[lane], source.lane[lane], kTensorMapBytes);
  return Flow::next;
}

void decode_tensormap(Decoding& d) {
  if (d.take("replace")) return decode_replace(d);
  if (!d.take("cp_fenceproxy")) d.unsupported("this operation");
  for (std::string_view word : {"global", "shared::cta", "tensormap::generic", "release", "sync"})
    d.take(word);
  d.take_one_of({"cta", "cluster", "gpu", "sys"});
  d.inst.gather = d.take("aligned") ? Gather::aligned : Gather::none;
  const auto* size = d.operand(2).as<ptx::Immediate>();
  if (!size || size->bits != kTensorMapBytes) d.unsupported("a size other than 128");
  d.inst.extra = d.keep(CopySpec{address_row(d, 0), address_row(d, 1)});
  d.inst.run = &run_copy_fence;
}

}  // namespace

void register_tensormap(Registry& r) { r.add("tensormap", &decode_tensormap); }

}  // namespace tw::sim
