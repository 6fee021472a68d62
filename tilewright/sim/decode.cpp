#include "tilewright/sim/decode.h"

#include <algorithm>
#include <bit>

#include "tilewright/base/dtype.h"
#include "tilewright/base/formats.h"
#include "tilewright/sim/program_builder.h"

namespace tw::sim {

Decoding::Decoding(ProgramBuilder& builder, const ptx::Instruction& source_inst, Inst& decoded)
    : ptx(source_inst), inst(decoded), builder_(builder), taken_(source_inst.tokens.size(), false) {
  taken_[0] = true;
}

// ---- modifiers ----

bool Decoding::take(std::string_view modifier) {
  for (size_t i = 1; i < taken_.size(); ++i) {
    if (!taken_[i] && ptx.tokens[i] == modifier) return taken_[i] = true;
  }
  return false;
}

std::string_view Decoding::take_one_of(std::initializer_list<std::string_view> modifiers) {
  for (size_t i = 1; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    for (std::string_view m : modifiers) {
      if (ptx.tokens[i] != m) continue;
      taken_[i] = true;
      return m;
    }
  }
  return {};
}

ptx::Type Decoding::take_type() {
  for (size_t i = 1; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    if (auto type = ptx::type_from_name(ptx.tokens[i])) {
      taken_[i] = true;
      return *type;
    }
  }
  return ptx::Type::none;
}

std::string_view Decoding::take_next() {
  for (size_t i = 1; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    taken_[i] = true;
    return ptx.tokens[i];
  }
  return {};
}

void Decoding::unsupported(std::string_view what) const {
  std::string where = ptx.line ? tw::format(" (line {} of the PTX)", ptx.line) : std::string();
  throw Error(ErrorKind::not_modelled, ptx.loc,
              tw::format("{}{}: {} is not modelled by the simulator", ptx.text(), where, what));
}

void Decoding::finish() const {
  for (size_t i = 1; i < taken_.size(); ++i) {
    if (!taken_[i]) unsupported(tw::format("the modifier .{}", ptx.tokens[i]));
  }
}

// ---- operands ----

const ptx::Operand& Decoding::operand(size_t i) const {
  if (i >= ptx.operands.size()) {
    throw Error(
        ErrorKind::user, ptx.loc,
        tw::format("{} has {} operands, but needs at least {}", ptx.text(), ptx.operands.size(), i + 1));
  }
  return ptx.operands[i];
}

namespace {
// Rows hold 32-bit elements for everything up to 32 bits.
bool same_row(int register_bytes, int bytes) {
  return register_bytes == bytes || (register_bytes <= 4 && bytes <= 4);
}
}  // namespace

int Decoding::register_bytes(const ptx::Operand& o) const {
  const auto type = register_type(o);
  return type == ptx::Type::none ? 0 : ptx::bytes(type);
}

ptx::Type Decoding::register_type(const ptx::Operand& o) const {
  if (auto* r = o.as<ptx::RegOperand>()) return builder_.function()[r->reg].type;
  if (auto* s = o.as<ptx::SpecialReg>())
    return builder_.special_bytes(s->name) == 8 ? ptx::Type::u64 : ptx::Type::u32;
  return ptx::Type::none;
}

Slot Decoding::source(const ptx::Operand& o, int bytes) {
  if (auto* r = o.as<ptx::RegOperand>()) {
    const int have = register_bytes(o);
    if (builder_.function()[r->reg].type == ptx::Type::pred) unsupported("a predicate as a value operand");
    if (!same_row(have, bytes)) {
      throw Error(ErrorKind::user, ptx.loc,
                  tw::format("{}: register {} has {} bytes, the operand needs {}", ptx.text(),
                             builder_.function()[r->reg].name, have, bytes));
    }
    return builder_.reg(r->reg);
  }
  if (auto* i = o.as<ptx::Immediate>()) {
    uint64_t bits = i->bits;
    if (bytes < 8) bits &= (uint64_t{1} << (8 * bytes)) - 1;
    return builder_.constant(bits, bytes > 4);
  }
  if (auto* s = o.as<ptx::SpecialReg>()) {
    if (auto slot = builder_.special(s->name, bytes > 4)) return *slot;
    unsupported(tw::format("the special register {} here", s->name));
  }
  if (auto* s = o.as<ptx::Symbol>()) {
    if (auto a = builder_.symbol(s->name, 0, bytes > 4, false)) return *a;
    throw Error(ErrorKind::user, ptx.loc, tw::format("{}: '{}' is not a variable", ptx.text(), s->name));
  }
  unsupported("an operand of this form");
}

Slot Decoding::float_source(const ptx::Operand& o, ptx::Type type) {
  const int bytes = ptx::bytes(type);
  auto* i = o.as<ptx::Immediate>();
  if (!i || i->kind == ptx::Immediate::Kind::integer) return source(o, bytes);
  const double value = i->kind == ptx::Immediate::Kind::f64
                           ? std::bit_cast<double>(i->bits)
                           : std::bit_cast<float>(static_cast<uint32_t>(i->bits));
  switch (type) {
    case ptx::Type::f64: return builder_.constant(std::bit_cast<uint64_t>(value), true);
    case ptx::Type::f32: {
      const uint32_t bits = i->kind == ptx::Immediate::Kind::f32
                                ? static_cast<uint32_t>(i->bits)
                                : std::bit_cast<uint32_t>(static_cast<float>(value));
      return builder_.constant(bits, false);
    }
    case ptx::Type::f16: return builder_.constant(from_double(DType::f16, value), false);
    case ptx::Type::bf16: return builder_.constant(from_double(DType::bf16, value), false);
    default: return builder_.constant(i->bits, bytes > 4);
  }
}

Slot Decoding::destination(const ptx::Operand& o, int bytes) {
  if (o.is<ptx::Sink>()) return builder_.scratch();
  auto* r = o.as<ptx::RegOperand>();
  if (!r) unsupported("a destination of this form");
  const int have = register_bytes(o);
  if (builder_.function()[r->reg].type == ptx::Type::pred) unsupported("a predicate as the destination");
  if (!same_row(have, bytes)) {
    throw Error(ErrorKind::user, ptx.loc,
                tw::format("{}: register {} has {} bytes, the result needs {}", ptx.text(),
                           builder_.function()[r->reg].name, have, bytes));
  }
  return builder_.reg(r->reg);
}

Slot Decoding::predicate(const ptx::Operand& o) {
  if (auto* r = o.as<ptx::RegOperand>(); r && builder_.function()[r->reg].type == ptx::Type::pred)
    return builder_.reg(r->reg);
  if (auto* i = o.as<ptx::Immediate>()) return builder_.constant(i->bits ? kAllLanes : 0, false);
  unsupported("an operand that is no predicate");
}

Slot Decoding::predicate_destination(const ptx::Operand& o) {
  if (o.is<ptx::Sink>()) return builder_.scratch();
  if (auto* r = o.as<ptx::RegOperand>(); r && builder_.function()[r->reg].type == ptx::Type::pred)
    return builder_.reg(r->reg);
  unsupported("a destination that is no predicate");
}

bool Decoding::negated(const ptx::Operand& o) {
  auto* r = o.as<ptx::RegOperand>();
  return r && r->negated;
}

Decoding::Address Decoding::address(const ptx::Operand& o) {
  Address result;
  auto* a = o.as<ptx::Address>();
  const ptx::Operand& base = a ? a->base.front() : o;
  result.offset = a ? a->offset : 0;
  if (auto* s = base.as<ptx::Symbol>()) {
    result.variable = builder_.space_of(s->name);
    result.wide = result.variable != ptx::Space::shared;
    auto slot = builder_.symbol(s->name, 0, result.wide, false);
    if (!slot)
      throw Error(ErrorKind::user, ptx.loc, tw::format("{}: '{}' is not a variable", ptx.text(), s->name));
    result.base = *slot;
    return result;
  }
  if (auto* i = base.as<ptx::Immediate>()) {
    result.wide = true;
    result.base = builder_.constant(i->bits, true);
    return result;
  }
  result.wide = register_bytes(base) == 8;
  result.base = source(base, result.wide ? 8 : 4);
  return result;
}

// ---- the program around it ----

uint32_t Decoding::pc() const { return builder_.pc(); }
uint32_t Decoding::label(const ptx::Operand& o) const {
  auto* s = o.as<ptx::Symbol>();
  if (!s) unsupported("a branch target that is no label");
  return builder_.label(*s, ptx);
}
std::vector<uint32_t> Decoding::branch_targets(const ptx::Operand& o) const {
  auto* s = o.as<ptx::Symbol>();
  if (!s) unsupported("a branch table that is no label");
  return builder_.branch_table(*s, ptx);
}
void Decoding::flow(std::vector<uint32_t> targets, bool falls_through) {
  builder_.flow(std::move(targets), falls_through);
}
std::optional<Decoding::CallVariable> Decoding::call_variable(std::string_view name) const {
  const auto range = builder_.call_variable(name);
  return range ? std::optional(CallVariable{range->offset, range->bytes}) : std::nullopt;
}
const Subroutine& Decoding::called(std::string_view name) { return builder_.called(name, ptx); }
bool Decoding::in_function() const { return builder_.in_function(); }
bool Decoding::returns() { return builder_.returns(); }
void Decoding::mark_ordered() { builder_.mark_ordered(); }
void Decoding::agree_on_cta_group(int group) {
  int& agreed = builder_.cta_group();
  if (agreed == 0) agreed = group;
  if (agreed == group) return;
  user_error(ptx.loc,
             "{}: other tcgen05 instructions of this kernel have .cta_group::{}; all must have the same",
             ptx.text(), agreed);
}
std::string_view Decoding::arch() const { return builder_.arch(); }
void Decoding::keep_alive(std::shared_ptr<const void> p) { builder_.keep(std::move(p)); }
std::optional<ptx::Space> Decoding::variable_space(std::string_view name) const {
  const auto space = builder_.space_of(name);
  return space == ptx::Space::none ? std::nullopt : std::optional(space);
}
Slot Decoding::symbol(std::string_view name, int64_t offset, bool wide) {
  auto slot = builder_.symbol(name, offset, wide, false);
  if (!slot)
    throw Error(ErrorKind::user, ptx.loc, tw::format("{}: '{}' is not a variable", ptx.text(), name));
  return *slot;
}
Slot Decoding::special_predicate() { return builder_.explicit_cluster(); }
Slot Decoding::constant(uint64_t value, bool wide) { return builder_.constant(value, wide); }

}  // namespace tw::sim
