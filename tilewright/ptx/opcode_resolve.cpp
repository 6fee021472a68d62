#include "tilewright/ptx/opcode_resolve.h"

#include <algorithm>
#include <charconv>

#include "tilewright/base/error.h"

namespace tw::ptx {
namespace {

// Opcode text together with the row it took.
struct Choice {
  const OpcodeText& text;
  const OpcodeText::Candidate& candidate;
  std::string_view modifier(std::string_view group) const { return text.modifier(candidate, group); }
};

// "m64n128k16" -> {64, 128, 16}
struct Shape {
  int m = 0, n = 0, k = 0;
};
Shape shape_of(const Choice& inst) {
  Shape out;
  const std::string_view text = inst.modifier("shape");
  const size_t n = text.find('n'), k = text.find('k');
  if (text.empty() || text.front() != 'm' || n == text.npos || k == text.npos) return out;
  std::from_chars(text.data() + 1, text.data() + n, out.m);
  std::from_chars(text.data() + n + 1, text.data() + k, out.n);
  std::from_chars(text.data() + k + 1, text.data() + text.size(), out.k);
  return out;
}

int tail_number(std::string_view text) {  // "v4", "x16"
  int n = 0;
  if (text.size() > 1) std::from_chars(text.data() + 1, text.data() + text.size(), n);
  return n;
}

int multiplicand_bits(const Choice& inst, std::string_view type) {
  // The f8f6f4 kinds keep each element, also of 4 or 6 bits, in a byte ("Matrix Fragments for mma.m16n8k32").
  if (const auto kind = inst.modifier("kind"); kind == "kind::f8f6f4" || kind == "kind::mxf8f6f4") return 8;
  if (type == "f64") return 64;
  if (type == "tf32") return 32;
  if (type == "f16" || type == "bf16") return 16;
  if (type == "e4m3" || type == "e5m2" || type == "s8" || type == "u8") return 8;
  if (type == "s4" || type == "u4" || type == "e2m1") return 4;
  return 1;
}

// Registers of one thread for a fragment of mma ("Matrix Fragments for mma"): elements spread evenly over 32
// lanes.
int mma_count(const Choice& inst, Count which) {
  const Shape s = shape_of(inst);
  const std::string_view a = inst.modifier("atype");
  if (s.m == 8 && s.k == 4 && a == "f16") {  // four independent quad-pair products
    if (which == Count::mma_a || which == Count::mma_b) return 2;
    return inst.modifier(which == Count::mma_c ? "ctype" : "dtype") == "f32" ? 8 : 4;
  }
  if (which == Count::mma_a || which == Count::mma_b) {
    const int bits = multiplicand_bits(inst, a);
    int elements = (which == Count::mma_a ? s.m : s.n) * s.k / 32;
    if (which == Count::mma_a && !inst.modifier("sparse").empty()) elements /= 2;
    return a == "f64" ? elements : std::max(1, elements * bits / 32);
  }
  const int elements = s.m * s.n / 32;
  return inst.modifier(which == Count::mma_c ? "ctype" : "dtype") == "f16" ? elements / 2 : elements;
}

// "Matrix Fragments for WMMA".
int wmma_count(const Choice& inst, const OperandSpec& spec) {
  const Shape s = shape_of(inst);
  std::string_view which = inst.modifier("operand"), type = inst.modifier("type");
  if (which.empty()) {
    which = spec.name;
    type = inst.modifier(which == "d" ? "dtype" : which == "c" ? "ctype" : "atype");
    if (type.empty()) type = "f16";  // wmma.mma with f16 multiplicands does not name them
  }
  if (which == "c" || which == "d") return type == "f16" ? 4 : s.m * s.n / 32;
  if (type == "f16") return 8;
  const int rows = which == "a" ? s.m : s.n;
  if (type == "f64") return rows * s.k / 32;
  return rows * s.k * multiplicand_bits(inst, type) / (32 * 32);
}

int wgmma_d_count(const Choice& inst) {
  const int n = shape_of(inst).n;
  return inst.modifier("dtype") == "f16" ? n / 4 : n / 2;
}

int tmem_count(const Choice& inst) {
  const std::string_view shape = inst.modifier("shape");
  const int factor = shape == "16x128b" ? 2 : shape == "16x256b" ? 4 : 1;
  return factor * tail_number(inst.modifier("num"));
}

int element_count(const Choice& inst, const OperandSpec& spec) {
  switch (spec.count) {
    case Count::scalar: return 0;
    case Count::fixed: return spec.fixed_count;
    case Count::vec: return tail_number(inst.modifier("vec"));
    case Count::num:  // a 16x16 tile of bytes is twice an 8x8 tile of halves
      return tail_number(inst.modifier("num")) * (inst.modifier("shape") == "m16n16" ? 2 : 1);
    case Count::mma_a:
    case Count::mma_b:
    case Count::mma_c:
    case Count::mma_d: return mma_count(inst, spec.count);
    case Count::wmma: return wmma_count(inst, spec);
    case Count::wgmma_a: return 4;
    case Count::wgmma_d: return wgmma_d_count(inst);
    case Count::tmem: return tmem_count(inst);
    case Count::pack:
    case Count::any: return -1;
  }
  return 0;
}

std::string_view operand_type(const Choice& inst, const OperandSpec& spec) {
  if (spec.count == Count::pack) return "";
  std::string_view group = spec.type;
  if (group.empty()) {  // accumulators: named by their modifier, f16 packed in pairs
    switch (spec.count) {
      case Count::mma_d:
      case Count::wgmma_d: group = "dtype"; break;
      case Count::mma_c: group = "ctype"; break;
      case Count::wmma: group = spec.name == "d" ? "dtype" : spec.name == "c" ? "ctype" : "type"; break;
      default: return "";
    }
    const std::string_view type = inst.modifier(group);
    return type == "f16" ? "f16x2" : type;
  }
  for (const ModifierGroup& g : inst.candidate.form->modifiers)
    if (g.name == group) return inst.modifier(group);
  return group;
}

// The candidate an instruction was built from.
const OpcodeText::Candidate& candidate_of(const Instruction& inst, const OpcodeText*& text) {
  require(inst.form != nullptr, "an instruction without a form");
  text = find_opcode(inst.text());
  if (text)
    for (const auto& candidate : text->candidates)
      if (candidate.form == inst.form) return candidate;
  internal_error(inst.loc, "'{}' does not fit its form '{}'", inst.text(), inst.form->text);
}

}  // namespace

void resolve_operands(const OpcodeText& text, OpcodeText::Candidate& candidate) {
  const Choice choice{text, candidate};
  for (const OperandSpec& spec : candidate.form->operands) {
    const auto there = [&](std::string_view m) {
      return std::find(text.tokens.begin() + 1, text.tokens.end(), m) != text.tokens.end();
    };
    if (!spec.only_if.empty() && std::none_of(spec.only_if.begin(), spec.only_if.end(), there)) continue;
    candidate.operands.push_back({&spec, operand_type(choice, spec), element_count(choice, spec)});
  }
}

std::string_view OpcodeText::modifier(const Candidate& candidate, std::string_view group) const {
  const auto& groups = candidate.form->modifiers;
  for (size_t g = 0; g < groups.size(); ++g)
    if (groups[g].name == group && candidate.assignment[g] >= 0)
      return tokens[size_t(candidate.assignment[g])];
  return {};
}

std::string_view modifier(const Instruction& inst, std::string_view group) {
  const OpcodeText* text = nullptr;
  const auto& candidate = candidate_of(inst, text);
  return text->modifier(candidate, group);
}

std::vector<ResolvedOperand> resolved_operands(const Instruction& inst) {
  const OpcodeText* text = nullptr;
  const auto& all = candidate_of(inst, text).operands;
  size_t mandatory = 0;
  for (const ResolvedOperand& r : all) mandatory += !r.spec->optional;
  size_t spare = inst.operands.size() - std::min(mandatory, inst.operands.size());
  std::vector<ResolvedOperand> out;
  for (const ResolvedOperand& r : all) {
    if (r.spec->optional) {
      // tcgen05.mma has two optional operands; only the lanes it masks are a vector.
      const size_t at = out.size();
      if (spare == 0 || at >= inst.operands.size() || (r.count < 0) != inst.operands[at].is<Vector>())
        continue;
      --spare;
    }
    out.push_back(r);
  }
  require(out.size() == inst.operands.size(), "operands do not fit the instruction's form");
  return out;
}

namespace {

void visit_operand(const Operand& o, Access access, const std::function<void(RegId, Access)>& visit) {
  const auto each = [&](const std::vector<Operand>& operands, Access a) {
    for (const Operand& e : operands) visit_operand(e, a, visit);
  };
  if (const auto* r = o.as<RegOperand>()) visit(r->reg, access);
  else if (const auto* v = o.as<Vector>()) each(v->elements, access);
  else if (const auto* p = o.as<Pair>()) each(p->both, access);
  else if (const auto* l = o.as<List>()) each(l->elements, access);
  else if (const auto* a = o.as<Address>()) each(a->base, Access::read);
  else if (const auto* t = o.as<TensorAddress>()) {
    each(t->map, Access::read);
    each(t->coordinates, Access::read);
  }
}

}  // namespace

void visit_registers(const Instruction& inst, const std::function<void(RegId, Access)>& visit) {
  if (inst.guard) visit(inst.guard->predicate, Access::read);
  const auto operands = resolved_operands(inst);
  for (size_t i = 0; i < operands.size(); ++i) {
    const OperandSpec& s = *operands[i].spec;
    const bool writes = s.kind == OperandKind::value || s.kind == OperandKind::list ? s.written : false;
    visit_operand(inst.operands[i],
                  !writes  ? Access::read
                  : s.read ? Access::read_write
                           : Access::write,
                  visit);
  }
}

}  // namespace tw::ptx
