#include "tilewright/ptx/module.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <utility>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/ptx/opcode.h"
#include "tilewright/ptx/special_registers.h"

namespace tw::ptx {
namespace {

struct TypeInfo {
  std::string_view name;
  int bytes;
};
constexpr std::array<TypeInfo, 22> types{
    {{"none", 0},  {"pred", 1}, {"b8", 1},     {"b16", 2}, {"b32", 4},   {"b64", 8}, {"b128", 16}, {"u8", 1},
     {"u16", 2},   {"u32", 4},  {"u64", 8},    {"s8", 1},  {"s16", 2},   {"s32", 4}, {"s64", 8},   {"f16", 2},
     {"f16x2", 4}, {"bf16", 2}, {"bf16x2", 4}, {"f32", 4}, {"f32x2", 8}, {"f64", 8}}};
static_assert(types.size() == size_t(Type::f64) + 1);

constexpr std::array<std::string_view, 7> spaces{"none",  "reg",   "const", "global",
                                                 "local", "param", "shared"};

}  // namespace

std::string_view name(Type t) { return types[size_t(t)].name; }
int bytes(Type t) { return types[size_t(t)].bytes; }
std::optional<Type> type_from_name(std::string_view text) {
  for (size_t i = 1; i < types.size(); ++i)
    if (types[i].name == text) return Type(i);
  return std::nullopt;
}
std::string_view name(Space s) { return spaces[size_t(s)]; }

bool Address::operator==(const Address& o) const { return offset == o.offset && base == o.base; }
bool TensorAddress::operator==(const TensorAddress& o) const {
  return map == o.map && coordinates == o.coordinates;
}
bool Vector::operator==(const Vector& o) const { return elements == o.elements; }
bool Pair::operator==(const Pair& o) const { return both == o.both; }
bool List::operator==(const List& o) const { return elements == o.elements; }

Operand reg(RegId r) { return {RegOperand{r, false}}; }
Operand negated(RegId predicate) { return {RegOperand{predicate, true}}; }
Operand special(std::string_view wanted) {
  const SpecialRegister* r = find_special_register(wanted);
  if (!r) internal_error({}, "'{}' is not a special register", wanted);
  return {SpecialReg{r->name}};
}
Operand integer(int64_t value) { return {Immediate{Immediate::Kind::integer, uint64_t(value), false}}; }
Operand f32(float value) { return {Immediate{Immediate::Kind::f32, std::bit_cast<uint32_t>(value), false}}; }
Operand f64(double value) { return {Immediate{Immediate::Kind::f64, std::bit_cast<uint64_t>(value), false}}; }
Operand symbol(std::string_view name) { return {Symbol{std::string(name)}}; }
Operand sink() { return {Sink{}}; }
namespace {
template <class... T>
std::vector<Operand> operands(T&&... all) {
  std::vector<Operand> out;
  out.reserve(sizeof...(all));
  (out.push_back(std::forward<T>(all)), ...);
  return out;
}
}  // namespace
Operand address(Operand base, int64_t offset) { return {Address{operands(std::move(base)), offset}}; }
Operand tensor_address(Operand map, std::vector<Operand> coordinates) {
  return {TensorAddress{operands(std::move(map)), std::move(coordinates)}};
}
Operand vector(std::vector<Operand> elements) { return {Vector{std::move(elements)}}; }
Operand pair(Operand first, Operand second) { return {Pair{operands(std::move(first), std::move(second))}}; }

bool Instruction::has(std::string_view modifier) const {
  return std::find(tokens.begin() + 1, tokens.end(), modifier) != tokens.end();
}

std::string Instruction::text() const {
  std::string out(tokens.front());
  for (size_t i = 1; i < tokens.size(); ++i) out.append(1, '.').append(tokens[i]);
  return out;
}

uint64_t Variable::size_bytes() const {
  uint64_t n = uint64_t(bytes(type)) * vector;
  for (const int64_t d : dims) n = d < 0 ? 0 : n * uint64_t(d);
  return n;
}

uint32_t Variable::alignment() const { return align ? align : static_cast<uint32_t>(bytes(type)) * vector; }

std::vector<uint32_t> parameter_offsets(const Function& entry) {
  std::vector<uint32_t> offsets;
  uint32_t end = 0;
  for (const Variable& v : entry.params) {
    offsets.push_back(round_up(end, std::max(v.alignment(), 1u)));
    end = offsets.back() + static_cast<uint32_t>(v.size_bytes());
  }
  return offsets;
}

std::vector<int64_t> Function::directive(std::string_view wanted) const {
  for (const std::string& text : directives) {
    if (text.size() <= wanted.size() || text[0] != '.' || text.compare(1, wanted.size(), wanted) != 0)
      continue;
    if (text.size() > wanted.size() + 1 && text[wanted.size() + 1] != ' ') continue;
    std::vector<int64_t> out;
    const char *at = text.data() + wanted.size() + 1, *end = text.data() + text.size();
    while (at < end) {
      int64_t value = 0;
      const auto [next, error] = std::from_chars(at, end, value);
      if (error == std::errc()) out.push_back(value);
      at = error == std::errc() ? next : at + 1;
    }
    return out;
  }
  return {};
}

const Function* Module::function(std::string_view wanted) const {
  const Function* found = nullptr;  // a definition is preferred to a declaration
  for (const Item& item : items)
    if (const auto* f = std::get_if<Function>(&item); f && f->name == wanted && (!found || f->has_body))
      found = f;
  return found;
}

std::vector<const Function*> Module::entries() const {
  std::vector<const Function*> out;
  for (const Item& item : items)
    if (const auto* f = std::get_if<Function>(&item); f && f->is_entry && f->has_body) out.push_back(f);
  return out;
}

Instruction make(std::string_view opcode, std::vector<Operand> operands, SourceLoc loc) {
  const OpcodeText* text = find_opcode(opcode);
  if (!text) internal_error(loc, "{}", explain_opcode(opcode).message);
  OperandComplaint complaint;
  Instruction inst;
  inst.form = match_operands(*text, operands, {}, complaint);
  if (!inst.form) {
    std::string forms;
    for (const auto& c : text->candidates) forms += tw::format("\n  {}", syntax(*c.form));
    internal_error(loc, "'{}': operand {} should be {}; the forms are{}", opcode, complaint.operand + 1,
                   complaint.message, forms);
  }
  inst.tokens = text->tokens;
  inst.operands = std::move(operands);
  inst.loc = loc;
  return inst;
}

}  // namespace tw::ptx
