#include "tilewright/sim/program_builder.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tilewright/base/error.h"
#include "tilewright/base/math.h"
#include "tilewright/sim/decode.h"
#include "tilewright/sim/shared_memory.h"

namespace tw::sim {

namespace {

constexpr uint32_t kRow = 128, kWideRow = 256;

struct NamedRow {
  std::string_view name;
  SpecialRow row;
};
constexpr NamedRow kNamedRows[] = {
    {"%tid.x", SpecialRow::tid_x},
    {"%tid.y", SpecialRow::tid_y},
    {"%tid.z", SpecialRow::tid_z},
    {"%ntid.x", SpecialRow::ntid_x},
    {"%ntid.y", SpecialRow::ntid_y},
    {"%ntid.z", SpecialRow::ntid_z},
    {"%ctaid.x", SpecialRow::ctaid_x},
    {"%ctaid.y", SpecialRow::ctaid_y},
    {"%ctaid.z", SpecialRow::ctaid_z},
    {"%nctaid.x", SpecialRow::nctaid_x},
    {"%nctaid.y", SpecialRow::nctaid_y},
    {"%nctaid.z", SpecialRow::nctaid_z},
    {"%laneid", SpecialRow::laneid},
    {"%warpid", SpecialRow::warpid},
    {"%nwarpid", SpecialRow::nwarpid},
    {"%smid", SpecialRow::smid},
    {"%nsmid", SpecialRow::nsmid},
    {"%gridid", SpecialRow::gridid},
    {"%lanemask_eq", SpecialRow::lanemask_eq},
    {"%lanemask_le", SpecialRow::lanemask_le},
    {"%lanemask_lt", SpecialRow::lanemask_lt},
    {"%lanemask_ge", SpecialRow::lanemask_ge},
    {"%lanemask_gt", SpecialRow::lanemask_gt},
    {"%clusterid.x", SpecialRow::clusterid_x},
    {"%clusterid.y", SpecialRow::clusterid_y},
    {"%clusterid.z", SpecialRow::clusterid_z},
    {"%nclusterid.x", SpecialRow::nclusterid_x},
    {"%nclusterid.y", SpecialRow::nclusterid_y},
    {"%nclusterid.z", SpecialRow::nclusterid_z},
    {"%cluster_ctaid.x", SpecialRow::cluster_ctaid_x},
    {"%cluster_ctaid.y", SpecialRow::cluster_ctaid_y},
    {"%cluster_ctaid.z", SpecialRow::cluster_ctaid_z},
    {"%cluster_nctaid.x", SpecialRow::cluster_nctaid_x},
    {"%cluster_nctaid.y", SpecialRow::cluster_nctaid_y},
    {"%cluster_nctaid.z", SpecialRow::cluster_nctaid_z},
    {"%cluster_ctarank", SpecialRow::cluster_ctarank},
    {"%cluster_nctarank", SpecialRow::cluster_nctarank},
    {"%dynamic_smem_size", SpecialRow::dynamic_smem_size},
    {"%total_smem_size", SpecialRow::total_smem_size},
    {"%aggr_smem_size", SpecialRow::aggr_smem_size},
    {"%reserved_smem_offset_begin", SpecialRow::reserved_smem_offset_begin},
    {"%reserved_smem_offset_end", SpecialRow::reserved_smem_offset_end},
    {"%reserved_smem_offset_cap", SpecialRow::reserved_smem_offset_cap},
};

bool is_module_variable(const ptx::Module::Item& item) { return std::holds_alternative<ptx::Variable>(item); }

}  // namespace

ProgramBuilder::ProgramBuilder(Program::Impl& program) : program_(program) { scope_parent_.push_back(-1); }

void ProgramBuilder::build() {
  lay_out_registers();
  lay_out_variables();
  number_statements();
  scope_ = 0;
  int next_scope = 0;
  for (const ptx::Statement& s : program_.entry->body) {
    if (std::holds_alternative<ptx::ScopeOpen>(s)) scope_ = ++next_scope;
    if (std::holds_alternative<ptx::ScopeClose>(s)) scope_ = scope_parent_[static_cast<size_t>(scope_)];
    if (auto* inst = std::get_if<ptx::Instruction>(&s)) decode(*inst);
  }
  // Falling off the end is an exit.
  static const ptx::Instruction kExit = [] {
    ptx::Instruction inst;
    inst.tokens = {"exit"};
    return inst;
  }();
  decode(kExit);
  program_.code.order = block_order(successors_);
  program_.code.loop = outermost_loops(successors_);
}

// ---- rows ----

Slot ProgramBuilder::new_row(uint32_t bytes) {
  const Slot slot{program_.register_bytes, Slot::registers};
  program_.register_bytes += bytes;
  return slot;
}

// Predicates first (the first is always true, the second is the carry flag of each lane), then scratch for
// results nobody wants, then the registers.
void ProgramBuilder::lay_out_registers() {
  const auto& regs = program_.entry->registers;
  registers_.resize(regs.size());
  new_row(4);
  new_row(4);
  for (size_t i = 0; i < regs.size(); ++i) {
    if (regs[i].type == ptx::Type::pred) registers_[i] = new_row(4);
  }
  program_.register_bytes = round_up(program_.register_bytes, 64u);
  scratch_ = new_row(2 * kWideRow);
  for (size_t i = 0; i < regs.size(); ++i) {
    if (regs[i].type == ptx::Type::pred) continue;
    const int bytes = ptx::bytes(regs[i].type);
    registers_[i] = new_row(bytes <= 4 ? kRow : bytes == 8 ? kWideRow : 2 * kWideRow);
  }
}

Slot ProgramBuilder::constant(uint64_t value, bool wide) {
  auto [it, fresh] = constants_.try_emplace({value, wide});
  if (!fresh) return it->second;
  auto& bytes = program_.constants;
  it->second = {static_cast<uint32_t>(bytes.size()), Slot::constants};
  const size_t size = wide ? 8 : 4;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), raw, raw + size);
  }
  return it->second;
}

Slot ProgramBuilder::special_row(SpecialRow what, bool wide, uint64_t value) {
  auto [it, fresh] = special_rows_.try_emplace({what, wide, value});
  if (fresh) {
    it->second = new_row(wide ? kWideRow : kRow);
    program_.rows.push_back({what, it->second, wide, value});
  }
  return it->second;
}

std::optional<Slot> ProgramBuilder::special(std::string_view name, bool wide) {
  if (name == "WARP_SZ") return constant(kLanes, wide);
  for (const NamedRow& r : kNamedRows) {
    if (r.name == name) return special_row(r.row, wide, 0);
  }
  return std::nullopt;
}

int ProgramBuilder::special_bytes(std::string_view name) {
  return name == "%clock64" || name == "%globaltimer" || name == "%gridid" || name.starts_with("%pm") ? 8 : 4;
}

// ---- variables ----

void ProgramBuilder::lay_out_variables() {
  const std::vector<uint32_t> offsets = ptx::parameter_offsets(*program_.entry);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const ptx::Variable& v = program_.entry->params[i];
    places_[v.name] = {ptx::Space::param, offsets[i], &v};
    program_.param_bytes = offsets[i] + static_cast<uint32_t>(v.size_bytes());
  }
  for (const auto& item : program_.module->items) {
    if (is_module_variable(item)) place_variable(std::get<ptx::Variable>(item));
  }
  for (const ptx::Statement& s : program_.entry->body) {
    if (auto* v = std::get_if<ptx::Variable>(&s)) place_variable(*v);
  }
  // Dynamic shared memory follows the static, aligned for any swizzle pattern its variables ask for.
  auto each_dynamic = [&](auto f) {
    auto visit = [&](const ptx::Variable& v) {
      if (v.space == ptx::Space::shared && v.size_bytes() == 0) f(v);
    };
    for (const auto& item : program_.module->items) {
      if (is_module_variable(item)) visit(std::get<ptx::Variable>(item));
    }
    for (const ptx::Statement& s : program_.entry->body) {
      if (auto* v = std::get_if<ptx::Variable>(&s)) visit(*v);
    }
  };
  uint32_t align = 16;
  bool any = false;
  each_dynamic([&](const ptx::Variable& v) { align = std::max(align, v.alignment()), any = true; });
  if (any) program_.static_shared = round_up(program_.static_shared, align);
  each_dynamic([&](const ptx::Variable& v) {
    places_[v.name] = {ptx::Space::shared, program_.static_shared, &v};
  });
}

void ProgramBuilder::place_variable(const ptx::Variable& v) {
  const uint64_t bytes = v.size_bytes();
  const uint32_t align = std::max(v.alignment(), 1u);
  auto place = [&](uint32_t& used) {
    used = round_up(used, align);
    const uint32_t at = used;
    used += static_cast<uint32_t>(bytes);
    return at;
  };
  switch (v.space) {
    case ptx::Space::shared:
      if (bytes == 0) return;
      places_[v.name] = {v.space, place(program_.static_shared), &v};
      program_.shared_symbols.push_back(
          {v.name, static_cast<uint32_t>(places_[v.name].offset), static_cast<uint32_t>(bytes)});
      return;
    case ptx::Space::local: places_[v.name] = {v.space, place(program_.local_bytes), &v}; return;
    case ptx::Space::const_: {
      const uint64_t at = round_up<uint64_t>(program_.const_memory.size(), align);
      program_.const_memory.resize(at + bytes);
      place_in_const_memory(v, at);
      places_[v.name] = {v.space, at, &v};
      return;
    }
    case ptx::Space::global: places_[v.name] = {v.space, 0, &v}; return;
    case ptx::Space::param:
      not_modelled({}, "call: the parameter variable {} of a call is not modelled by the simulator", v.name);
    default: return;
  }
}

void ProgramBuilder::place_in_const_memory(const ptx::Variable& v, uint64_t offset) {
  const auto element = static_cast<uint64_t>(ptx::bytes(v.type));
  for (size_t i = 0; i < v.init.size(); ++i) {
    auto* value = v.init[i].as<ptx::Immediate>();
    if (!value)
      not_modelled({}, "the initialiser of {}: only numbers are modelled in .const variables", v.name);
    std::memcpy(program_.const_memory.data() + offset + i * element, &value->bits, element);
  }
}

const ProgramBuilder::Place* ProgramBuilder::find(std::string_view name) const {
  auto it = places_.find(name);
  return it == places_.end() ? nullptr : &it->second;
}

ptx::Space ProgramBuilder::space_of(std::string_view variable) const {
  const Place* p = find(variable);
  return p ? p->space : ptx::Space::none;
}

std::optional<Slot> ProgramBuilder::symbol(std::string_view name, int64_t offset, bool wide, bool generic) {
  const Place* p = find(name);
  if (!p) return std::nullopt;
  const uint64_t at = p->offset + static_cast<uint64_t>(offset);
  switch (p->space) {
    case ptx::Space::shared:
      return special_row(generic ? SpecialRow::shared_symbol_generic : SpecialRow::shared_symbol, wide, at);
    case ptx::Space::global: {
      auto [it, fresh] = global_rows_.try_emplace({p->variable, offset});
      if (fresh) {
        it->second = {program_.launch_bytes, Slot::launch};
        program_.launch_bytes += kWideRow;
        program_.globals.push_back({p->variable, it->second, offset});
      }
      return it->second;
    }
    case ptx::Space::local: return constant(at + (generic ? kLocalWindow : 0), wide);
    case ptx::Space::param: return constant(at + (generic ? kParamWindow : 0), wide);
    case ptx::Space::const_: return constant(at + (generic ? kConstWindow : 0), wide);
    default: return std::nullopt;
  }
}

// ---- code ----

void ProgramBuilder::number_statements() {
  uint32_t pc = 0;
  int scope = 0;
  std::string pending_label;
  for (const ptx::Statement& s : program_.entry->body) {
    if (std::holds_alternative<ptx::ScopeOpen>(s)) {
      scope_parent_.push_back(scope);
      scope = static_cast<int>(scope_parent_.size()) - 1;
    } else if (std::holds_alternative<ptx::ScopeClose>(s)) {
      scope = scope_parent_[static_cast<size_t>(scope)];
    } else if (auto* label = std::get_if<ptx::Label>(&s)) {
      labels_[{scope, label->name}] = pc;
      pending_label = label->name;
    } else if (auto* directive = std::get_if<ptx::Directive>(&s)) {
      if (directive->text.starts_with(".branchtargets")) tables_[pending_label] = directive->text.substr(14);
    } else if (std::holds_alternative<ptx::Instruction>(s)) {
      ++pc;
    }
  }
}

uint32_t ProgramBuilder::label(const ptx::Symbol& name, const ptx::Instruction& at) const {
  for (int scope = scope_; scope >= 0; scope = scope_parent_[static_cast<size_t>(scope)]) {
    auto it = labels_.find({scope, name.name});
    if (it != labels_.end()) return it->second;
  }
  user_error(at.loc, "{}: there is no label '{}' here", at.text(), name.name);
}

std::vector<uint32_t> ProgramBuilder::branch_table(const ptx::Symbol& name,
                                                   const ptx::Instruction& at) const {
  auto it = tables_.find(name.name);
  if (it == tables_.end()) user_error(at.loc, "{}: '{}' is no .branchtargets list", at.text(), name.name);
  std::vector<uint32_t> targets;
  std::string word;
  for (char c : it->second + ",") {
    if (c == ',' || c == ';') {
      if (!word.empty()) targets.push_back(label({word}, at));
      word.clear();
    } else if (c != ' ' && c != '\t' && c != '\n') {
      word += c;
    }
  }
  return targets;
}

void ProgramBuilder::flow(std::vector<uint32_t> targets, bool falls_through) {
  successors_.back() = {std::move(targets), falls_through};
}

void ProgramBuilder::decode(const ptx::Instruction& source) {
  Inst inst;
  if (source.guard) {
    inst.guard = reg(source.guard->predicate).offset;
    inst.guard_flip = source.guard->negated ? kAllLanes : 0;
  }
  successors_.emplace_back();
  Decoding decoding(*this, source, inst);
  DecodeFunction f = Registry::standard().find(source.opcode());
  if (!f) decoding.unsupported("this instruction");
  f(decoding);
  decoding.finish();
  require(inst.run != nullptr, "a decode function left no handler");
  if (source.guard) successors_.back().falls_through = true;
  program_.code.insts.push_back(inst);
  program_.code.source.push_back(&source);
  ++pc_;
}

void check_target(const ptx::Module& module, const Machine& machine) {
  const std::string_view target = module.arch();
  if (target.empty()) user_error({}, "module {} has no .target", module.name);
  auto number = [](std::string_view arch) {
    int n = 0;
    if (arch.starts_with("sm_")) std::from_chars(arch.data() + 3, arch.data() + arch.size(), n);
    return n;
  };
  const char kind = target.back();
  const int have = number(machine.arch), need = number(target);
  if (kind == 'a') {
    if (target == machine.arch) return;
    user_error({}, "module {} is for {}, which runs on no other architecture; {} is {}", module.name, target,
               machine.name, machine.arch);
  }
  if (kind == 'f') {
    if (have / 10 == need / 10 && have >= need) return;
    user_error({}, "module {} is for the family of {}; {} is {}", module.name, target, machine.name,
               machine.arch);
  }
  if (have < need)
    user_error({}, "module {} needs {} or newer; {} is {}", module.name, target, machine.name, machine.arch);
}

}  // namespace tw::sim
