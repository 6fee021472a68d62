#include "tilewright/sim/program_builder.h"

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>

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

std::string readable(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0) return name;
  const std::string plain = text.get();
  const size_t colons = plain.rfind("::");
  return colons == plain.npos ? plain : plain.substr(colons + 2);
}

ProgramBuilder::ProgramBuilder(Program::Impl& program) : program_(program) {}

void ProgramBuilder::build() {
  find_functions();
  find_recursion();
  lay_out_registers();
  lay_out_variables();
  number_statements();
  for (part_ = 0; part_ < program_.functions.size(); ++part_) decode_body();
  connect_returns();
  program_.code.order = block_order(successors_);
  program_.code.loop = outermost_loops(successors_);
}

void ProgramBuilder::decode_body() {
  scope_ = ++last_scope_;
  scope_places_.assign(1, {});
  for (const ptx::Statement& s : part().source->body) {
    if (std::holds_alternative<ptx::ScopeOpen>(s)) {
      scope_ = ++last_scope_;
      scope_places_.emplace_back();
    } else if (std::holds_alternative<ptx::ScopeClose>(s)) {
      scope_ = scope_parent_[static_cast<size_t>(scope_)];
      scope_places_.pop_back();
    } else if (auto* v = std::get_if<ptx::Variable>(&s)) {
      if (v->space == ptx::Space::param) place_call_variable(*v);
    } else if (auto* inst = std::get_if<ptx::Instruction>(&s)) {
      decode(*inst);
    }
  }
  // Falling off the end.
  static const ptx::Instruction kReturn = [] {
    ptx::Instruction inst;
    inst.tokens = {"ret"};
    return inst;
  }();
  decode(kReturn);
}

// ---- functions ----

void ProgramBuilder::find_functions() {
  auto& parts = program_.functions;
  parts.push_back(std::make_unique<Subroutine>());
  parts.front()->source = program_.entry;
  for (size_t p = 0; p < parts.size(); ++p) {
    for (const ptx::Statement& s : parts[p]->source->body) {
      const auto* inst = std::get_if<ptx::Instruction>(&s);
      if (!inst || inst->opcode() != "call") continue;
      for (const ptx::Operand& o : inst->operands) {
        const auto* name = o.as<ptx::Symbol>();
        const ptx::Function* f = name ? program_.module->function(name->name) : nullptr;
        if (!f) continue;
        auto known = std::ranges::find(parts, f, [](const auto& part) { return part->source; });
        if (known == parts.end()) {
          parts.push_back(std::make_unique<Subroutine>());
          parts.back()->source = f;
          known = parts.end() - 1;
        }
        parts[p]->callees.push_back(known->get());
      }
    }
  }
}

void ProgramBuilder::find_recursion() {
  for (const auto& f : program_.functions) {
    std::vector<const Subroutine*> reached(f->callees);
    for (size_t n = 0; n < reached.size(); ++n)
      for (const Subroutine* next : reached[n]->callees)
        if (std::ranges::find(reached, next) == reached.end()) reached.push_back(next);
    f->recursive = std::ranges::find(reached, f.get()) != reached.end();
  }
}

// A ret goes to wherever its function was called, or is executed again by lanes that return elsewhere.
void ProgramBuilder::connect_returns() {
  for (const auto& f : program_.functions) {
    for (const uint32_t pc : f->returns) {
      successors_[pc].targets = f->return_sites;
      successors_[pc].targets.push_back(pc);
    }
  }
}

const Subroutine& ProgramBuilder::called(std::string_view name, const ptx::Instruction& at) {
  const ptx::Function* source = program_.module->function(name);
  if (!source) user_error(at.loc, "{}: '{}' is no function", at.text(), name);
  if (!source->has_body)
    not_modelled(at.loc, "{}: {} has no body in this module; calls of it are not modelled by the simulator",
                 at.text(), name);
  for (const auto& f : program_.functions) {
    if (f->source != source) continue;
    f->return_sites.push_back(pc_ + 1);
    return *f;
  }
  internal_error(at.loc, "{} was not found before decoding", name);
}

bool ProgramBuilder::returns() {
  if (in_function()) part().returns.push_back(pc_);
  return in_function();
}

std::optional<Subroutine::Range> ProgramBuilder::call_variable(std::string_view name) const {
  const Place* p = find(name);
  if (!p || p->space != ptx::Space::local || p->variable->space != ptx::Space::param) return std::nullopt;
  return Subroutine::Range{static_cast<uint32_t>(p->offset),
                           static_cast<uint32_t>(p->variable->size_bytes())};
}

// ---- rows ----

Slot ProgramBuilder::new_row(uint32_t bytes) {
  const Slot slot{program_.register_bytes, Slot::registers};
  program_.register_bytes += bytes;
  return slot;
}

// Predicates first (the first is always true, the second is the carry flag of each lane), then scratch for
// results nobody wants, then the registers; the entry's, then each function's.
void ProgramBuilder::lay_out_registers() {
  new_row(4);
  new_row(4);
  for (const auto& f : program_.functions) lay_out_registers_of(*f);
}

void ProgramBuilder::lay_out_registers_of(Subroutine& f) {
  const auto& regs = f.source->registers;
  f.first_register = static_cast<uint32_t>(registers_.size());
  registers_.resize(registers_.size() + regs.size());
  Slot* slots = registers_.data() + f.first_register;
  for (size_t i = 0; i < regs.size(); ++i) {
    if (regs[i].type != ptx::Type::pred) continue;
    slots[i] = new_row(4);
    f.rows.push_back({slots[i], 0});
  }
  program_.register_bytes = round_up(program_.register_bytes, 64u);
  if (&f == program_.functions.front().get()) scratch_ = new_row(2 * kWideRow);
  for (size_t i = 0; i < regs.size(); ++i) {
    if (regs[i].type == ptx::Type::pred) continue;
    const int bytes = ptx::bytes(regs[i].type);
    slots[i] = new_row(bytes <= 4 ? kRow : bytes == 8 ? kWideRow : 2 * kWideRow);
    f.rows.push_back({slots[i], bytes <= 4 ? 4u : 8u});
    if (bytes == 16) f.rows.push_back({{slots[i].offset + kWideRow, slots[i].base}, 8});
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
  part_places_.resize(program_.functions.size());
  const std::vector<uint32_t> offsets = ptx::parameter_offsets(*program_.entry);
  for (size_t i = 0; i < offsets.size(); ++i) {
    const ptx::Variable& v = program_.entry->params[i];
    part_places_.front()[v.name] = {ptx::Space::param, offsets[i], &v};
    program_.param_bytes = offsets[i] + static_cast<uint32_t>(v.size_bytes());
  }
  // Every variable, with the names it belongs to.
  auto each_variable = [&](auto f) {
    for (const auto& item : program_.module->items) {
      if (is_module_variable(item)) f(std::get<ptx::Variable>(item), places_);
    }
    for (size_t p = 0; p < program_.functions.size(); ++p) {
      for (const ptx::Statement& s : program_.functions[p]->source->body) {
        if (auto* v = std::get_if<ptx::Variable>(&s)) f(*v, part_places_[p]);
      }
    }
  };
  each_variable([&](const ptx::Variable& v, Places& places) { place_variable(v, places); });
  for (size_t p = 1; p < program_.functions.size(); ++p) {
    Subroutine& f = *program_.functions[p];
    auto place = [&](const std::vector<ptx::Variable>& from, std::vector<uint32_t>& to) {
      for (const ptx::Variable& v : from) {
        f.ranges.push_back(place_in_local_memory(v));
        to.push_back(f.ranges.back().offset);
        part_places_[p][v.name] = {ptx::Space::local, to.back(), &v};
      }
    };
    place(f.source->params, f.params);
    place(f.source->results, f.results);
    // Its caller may hold an address in it, which another call of the same function would have to keep apart.
    for (const auto& [name, at] : part_places_[p])
      if (f.recursive && at.variable->space == ptx::Space::local)
        not_modelled({}, "{}, a variable of the recursive function {}, is not modelled by the simulator",
                     name, f.source->name);
  }
  // Dynamic shared memory follows the static, aligned for any swizzle pattern its variables ask for.
  auto each_dynamic = [&](auto f) {
    each_variable([&](const ptx::Variable& v, Places& places) {
      if (v.space == ptx::Space::shared && v.size_bytes() == 0) f(v, places);
    });
  };
  uint32_t align = 16;
  bool any = false;
  each_dynamic([&](const ptx::Variable& v, Places&) { align = std::max(align, v.alignment()), any = true; });
  if (any) program_.static_shared = round_up(program_.static_shared, align);
  each_dynamic([&](const ptx::Variable& v, Places& places) {
    places[v.name] = {ptx::Space::shared, program_.static_shared, &v};
  });
}

Subroutine::Range ProgramBuilder::place_in_local_memory(const ptx::Variable& v) {
  const uint32_t at = round_up(program_.local_bytes, std::max(v.alignment(), 1u));
  const auto bytes = static_cast<uint32_t>(v.size_bytes());
  program_.local_bytes = at + bytes;
  return {at, bytes};
}

void ProgramBuilder::place_call_variable(const ptx::Variable& v) {
  const Subroutine::Range range = place_in_local_memory(v);
  part().ranges.push_back(range);
  scope_places_.back()[v.name] = {ptx::Space::local, range.offset, &v};
}

void ProgramBuilder::place_variable(const ptx::Variable& v, Places& places) {
  const uint64_t bytes = v.size_bytes();
  const uint32_t align = std::max(v.alignment(), 1u);
  switch (v.space) {
    case ptx::Space::shared: {
      if (bytes == 0) return;
      const uint32_t at = round_up(program_.static_shared, align);
      program_.static_shared = at + static_cast<uint32_t>(bytes);
      places[v.name] = {v.space, at, &v};
      program_.shared_symbols.push_back({readable(v.name), at, static_cast<uint32_t>(bytes)});
      return;
    }
    case ptx::Space::local: places[v.name] = {v.space, place_in_local_memory(v).offset, &v}; return;
    case ptx::Space::const_: {
      const uint64_t at = round_up<uint64_t>(program_.const_memory.size(), align);
      program_.const_memory.resize(at + bytes);
      place_in_const_memory(v, at);
      places[v.name] = {v.space, at, &v};
      return;
    }
    case ptx::Space::global: places[v.name] = {v.space, 0, &v}; return;
    default: return;  // .param variables of calls have their place where they are declared
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
  auto in = [&](const Places& places) -> const Place* {
    auto it = places.find(name);
    return it == places.end() ? nullptr : &it->second;
  };
  for (auto scope = scope_places_.rbegin(); scope != scope_places_.rend(); ++scope)
    if (const Place* p = in(*scope)) return p;
  if (const Place* p = in(part_places_[part_])) return p;
  return in(places_);
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
  for (const auto& f : program_.functions) {
    f->begin = pc;
    scope_parent_.push_back(-1);
    int scope = static_cast<int>(scope_parent_.size()) - 1;
    std::string pending_label;
    for (const ptx::Statement& s : f->source->body) {
      if (std::holds_alternative<ptx::ScopeOpen>(s)) {
        scope_parent_.push_back(scope);
        scope = static_cast<int>(scope_parent_.size()) - 1;
      } else if (std::holds_alternative<ptx::ScopeClose>(s)) {
        scope = scope_parent_[static_cast<size_t>(scope)];
      } else if (auto* label = std::get_if<ptx::Label>(&s)) {
        labels_[{scope, label->name}] = pc;
        pending_label = label->name;
      } else if (auto* directive = std::get_if<ptx::Directive>(&s)) {
        if (directive->text.starts_with(".branchtargets"))
          tables_[pending_label] = directive->text.substr(14);
      } else if (std::holds_alternative<ptx::Instruction>(s)) {
        ++pc;
      }
    }
    ++pc;  // the return at the end
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
