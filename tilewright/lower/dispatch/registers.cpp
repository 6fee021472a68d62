#include "tilewright/base/error.h"
#include "tilewright/lower/address.h"
#include "tilewright/lower/dispatch/dispatch.h"
#include "tilewright/lower/register_tile.h"

namespace tw::lowering {
namespace {

using ir::Expr;

// Moves the elements of one run between registers and memory.
void emit_run(Context& c, const Fragment& f, const Run& run, int64_t n, const ir::Tile& registers,
              const ir::Tile& memory, bool store) {
  Emitter& e = c.emit;
  int width = bits(registers.buffer->dtype);
  const char* space = memory.buffer->space == ir::Space::global ? "global" : "shared";
  int64_t first = f.slots[run.first].element;
  ptx::Operand address = e.address(run.address);
  auto send = [&](const std::string& opcode, const ptx::Operand& value) {
    std::vector<ptx::Operand> operands = store ? std::vector{address, value} : std::vector{value, address};
    if (run.in_bounds.is(1)) e.emit(opcode, operands);
    else e.emit_if(e.value(run.in_bounds), opcode, operands);
  };
  std::string op = format("{}.{}", store ? "st" : "ld", space);
  if (width * n < 32) {  // a 16-bit element on its own
    ptx::RegId half = store ? read_element(c, *registers.buffer, first) : e.fresh(ptx::Type::b16);
    if (!store && !run.in_bounds.is(1)) e.emit("mov.b16", {ptx::reg(half), ptx::integer(0)});
    send(format("{}.b{}", op, width), ptx::reg(half));
    if (!store) write_element(c, *registers.buffer, first, half);
    return;
  }
  std::vector<ptx::Operand> words;
  const auto& regs = c.registers.at(registers.buffer.get());
  for (int64_t w = 0; w < n * width / 32; ++w)
    words.push_back(ptx::reg(regs[static_cast<size_t>(first * width / 32 + w)]));
  if (!store && !run.in_bounds.is(1))
    for (const auto& w : words) e.emit("mov.b32", {w, ptx::integer(0)});
  if (words.size() == 1) send(op + ".b32", words[0]);
  else send(format("{}.v{}.b32", op, words.size()), ptx::vector(words));
}

}  // namespace

Answer copy_registers(Context& c, const Site& site) {
  const ir::Tile &dst = site.op.operands[0], &src = site.op.operands[1];
  bool store = src.buffer->space == ir::Space::registers;
  const ir::Tile &registers = store ? src : dst, &memory = store ? dst : src;
  auto in_memory = [](const ir::Tile& t) {
    return t.buffer->space == ir::Space::global || t.buffer->space == ir::Space::shared;
  };
  if (registers.buffer->space != ir::Space::registers || !in_memory(memory))
    return std::string("moves between registers and global or shared memory");
  int width = bits(registers.buffer->dtype);
  if (width != 16 && width != 32)
    return format("register tiles hold 16- or 32-bit elements, not {}", name(registers.buffer->dtype));
  auto f = fragment_of(c, registers, site.op.scope, site.loc);
  if (auto* why = std::get_if<std::string>(&f)) return *why;
  return Plan{10, [&c, f = std::get<Fragment>(f), registers, memory, store] {
                Runs runs = vectorize(c, f, memory);
                for (const Run& r : runs.runs) emit_run(c, f, r, runs.elements, registers, memory, store);
              }};
}

Answer fill_registers(Context& c, const Site& site) {
  const ir::Tile& dst = site.op.operands[0];
  if (dst.buffer->space != ir::Space::registers) return std::string("fills register tiles");
  auto f = fragment_of(c, dst, site.op.scope, site.loc);
  if (auto* why = std::get_if<std::string>(&f)) return *why;
  return Plan{1, [&c, f = std::get<Fragment>(f), dst, value = site.op.value] {
                for (const Fragment::Slot& s : f.slots)
                  write_element(c, *dst.buffer, s.element, c.emit.reg(value));
              }};
}

Answer compute_registers(Context& c, const Site& site) {
  std::vector<Fragment> fragments;
  for (const ir::Tile& t : site.op.operands) {
    if (t.buffer->space != ir::Space::registers) return format("'{}' is not in registers", t.buffer->name);
    auto f = fragment_of(c, t, site.op.scope, site.loc);
    if (auto* why = std::get_if<std::string>(&f)) return *why;
    fragments.push_back(std::move(std::get<Fragment>(f)));
    const Fragment &a = fragments.front(), &b = fragments.back();
    bool alike = a.slots.size() == b.slots.size();
    for (size_t d = 0; alike && d < a.thread.size(); ++d) alike = same(a.thread[d], b.thread[d]);
    for (size_t s = 0; alike && s < a.slots.size(); ++s)
      alike = a.slots[s].coordinate == b.slots[s].coordinate;
    if (!alike)
      return format("'{}' and '{}' are spread over the threads in different ways",
                    site.op.operands[0].buffer->name, t.buffer->name);
  }
  return Plan{1, [&c, fragments, op = site.op] {
                const Fragment& out = fragments[0];
                const ir::Buffer& dst = *op.operands[0].buffer;
                auto at = [&](size_t slot) {
                  return instantiate(op.value, [&](const Expr& leaf) -> Expr {
                    if (leaf->op == ir::Op::coordinate) {
                      size_t d = static_cast<size_t>(leaf->index);
                      return out.thread[d] + Expr(out.slots[slot].coordinate[d]);
                    }
                    size_t i = static_cast<size_t>(leaf->index);
                    return element_value(c, *op.operands[i].buffer, fragments[i].slots[slot].element);
                  });
                };
                for (size_t s = 0; s < out.slots.size(); ++s) {
                  bool pair = bits(dst.dtype) == 16 && s + 1 < out.slots.size() &&
                              out.slots[s].element % 2 == 0 &&
                              out.slots[s + 1].element == out.slots[s].element + 1;
                  if (pair) {
                    write_pair(c, dst, out.slots[s].element, at(s), at(s + 1));
                    ++s;
                  } else {
                    write_element(c, dst, out.slots[s].element, c.emit.reg(c.resolve(at(s))));
                  }
                }
              }};
}

}  // namespace tw::lowering
