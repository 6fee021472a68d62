#include <bit>
#include <cstring>

#include "tilewright/sim/call.h"
#include "tilewright/sim/lanes.h"

// PTX ISA, "Control Flow Instructions": call and ret, with "Function declarations and definitions" of
// "Abstracting the ABI": parameters are passed by value.
namespace tw::sim {

namespace {

template <class F>
void for_lanes(uint32_t lanes, F f) {
  for (; lanes; lanes &= lanes - 1) f(static_cast<uint32_t>(std::countr_zero(lanes)));
}

std::byte* row_element(Warp& w, Slot row, uint32_t bytes, uint32_t lane) {
  return w.row<std::byte>(row) + size_t{lane} * (bytes == 8 ? 8 : 4);
}

// ---- what a recursive call keeps: rows in full, then each lane's ranges ----

std::shared_ptr<const std::vector<std::byte>> keep_frame(Warp& w, const Subroutine& f, uint32_t lanes) {
  auto kept = std::make_shared<std::vector<std::byte>>();
  const auto append = [&](const std::byte* from, size_t bytes) {
    kept->insert(kept->end(), from, from + bytes);
  };
  for (const Subroutine::Row& r : f.rows)
    append(w.row<std::byte>(r.slot), r.lane_bytes == 0 ? 4 : size_t{kLanes} * r.lane_bytes);
  for (uint32_t l = 0; l < kLanes; ++l)
    for (const Subroutine::Range& r : f.ranges)
      append((lanes >> l & 1) ? w.local(l) + r.offset : w.local(0) + r.offset, r.bytes);
  return kept;
}

void bring_back_frame(Warp& w, const Subroutine& f, uint32_t lane, const std::vector<std::byte>& kept) {
  const std::byte* at = kept.data();
  for (const Subroutine::Row& r : f.rows) {
    if (r.lane_bytes == 0) {
      uint32_t mask = 0;
      std::memcpy(&mask, at, sizeof mask);
      w.mask(r.slot) = (w.mask(r.slot) & ~(1u << lane)) | (mask & 1u << lane);
      at += sizeof mask;
    } else {
      std::memcpy(w.row<std::byte>(r.slot) + size_t{lane} * r.lane_bytes, at + size_t{lane} * r.lane_bytes,
                  r.lane_bytes);
      at += size_t{kLanes} * r.lane_bytes;
    }
  }
  size_t per_lane = 0;
  for (const Subroutine::Range& r : f.ranges) per_lane += r.bytes;
  at += lane * per_lane;
  for (const Subroutine::Range& r : f.ranges) {
    std::memcpy(w.local(lane) + r.offset, at, r.bytes);
    at += r.bytes;
  }
}

// ---- call ----

Flow run_call(Warp& w, const Inst& i, uint32_t lanes) {
  const auto& site = *static_cast<const CallSite*>(i.extra);
  const Subroutine& f = *site.function;
  CallStack& stack = w.calls();
  for_lanes(lanes, [&](uint32_t l) {
    if (stack.lanes[l].size() == CallStack::kDepth)
      w.fault(1u << l, "call of {}: {} calls are open already; does the recursion end?", f.source->name,
              CallStack::kDepth);
  });
  // The arguments may be variables of the same function: all are read before anything changes.
  std::vector<std::byte> values;
  for_lanes(lanes, [&](uint32_t l) {
    for (const CallSite::Transfer& t : site.arguments) {
      const std::byte* from = t.in_memory ? w.local(l) + t.variable : row_element(w, t.row, t.bytes, l);
      values.insert(values.end(), from, from + t.bytes);
    }
  });
  const auto kept = f.recursive ? keep_frame(w, f, lanes) : nullptr;
  const std::byte* value = values.data();
  for_lanes(lanes, [&](uint32_t l) {
    stack.lanes[l].push_back({&site, kept});
    for (const CallSite::Transfer& t : site.arguments) {
      std::memcpy(w.local(l) + t.parameter, value, t.bytes);
      value += t.bytes;
    }
  });
  w.branch(f.begin, lanes);
  return Flow::jump;
}

// ret of a function: lanes that return to the same place go together, the others execute it again.
Flow run_return(Warp& w, const Inst&, uint32_t lanes) {
  CallStack& stack = w.calls();
  const CallSite& site = *stack.lanes[static_cast<size_t>(std::countr_zero(lanes))].back().site;
  uint32_t same = 0;
  for_lanes(lanes, [&](uint32_t l) { same |= stack.lanes[l].back().site == &site ? 1u << l : 0; });
  std::vector<std::byte> value;
  for_lanes(same, [&](uint32_t l) {
    value.clear();
    for (const CallSite::Transfer& t : site.results)
      value.insert(value.end(), w.local(l) + t.parameter, w.local(l) + t.parameter + t.bytes);
    const CallStack::Record record = std::move(stack.lanes[l].back());
    stack.lanes[l].pop_back();
    if (record.kept) bring_back_frame(w, *site.function, l, *record.kept);
    const std::byte* at = value.data();
    for (const CallSite::Transfer& t : site.results) {
      if (t.in_memory) {
        std::memcpy(w.local(l) + t.variable, at, t.bytes);
      } else {
        std::byte* to = row_element(w, t.row, t.bytes, l);
        std::memset(to, 0, t.bytes == 8 ? 8 : 4);
        std::memcpy(to, at, t.bytes);
      }
      at += t.bytes;
    }
  });
  w.branch_from(site.return_to, same, lanes);
  return Flow::jump;
}

// ---- decoding ----

CallSite::Transfer transfer(Decoding& d, const ptx::Operand& o, const ptx::Variable& parameter,
                            uint32_t offset, bool result) {
  CallSite::Transfer t;
  t.bytes = static_cast<uint32_t>(parameter.size_bytes());
  t.parameter = offset;
  if (const auto* s = o.as<ptx::Symbol>()) {
    const auto variable = d.call_variable(s->name);
    if (!variable) d.unsupported(tw::format("'{}', which is no .param variable of a call,", s->name));
    if (variable->bytes != t.bytes)
      user_error(d.ptx.loc, "{}: '{}' has {} bytes, the parameter '{}' has {}", d.ptx.text(), s->name,
                 variable->bytes, parameter.name, t.bytes);
    t.in_memory = true;
    t.variable = variable->offset;
    return t;
  }
  if (t.bytes > 8) d.unsupported("an argument of more than 8 bytes that is no variable");
  const int bytes = std::max(static_cast<int>(t.bytes), 2);
  t.row = result                   ? d.destination(o, bytes)
          : o.is<ptx::Immediate>() ? d.float_source(o, parameter.type)
                                   : d.source(o, bytes);
  return t;
}

std::vector<CallSite::Transfer> transfers(Decoding& d, const ptx::Operand* list,
                                          const std::vector<ptx::Variable>& parameters,
                                          const std::vector<uint32_t>& offsets, bool results) {
  static const std::vector<ptx::Operand> none;
  const auto& given = list ? list->as<ptx::List>()->elements : none;
  if (given.size() != parameters.size())
    user_error(d.ptx.loc, "{} with {} {}, the function has {}", d.ptx.text(), given.size(),
               results ? "results" : "arguments", parameters.size());
  std::vector<CallSite::Transfer> out;
  for (size_t n = 0; n < given.size(); ++n)
    out.push_back(transfer(d, given[n], parameters[n], offsets[n], results));
  return out;
}

void decode_call(Decoding& d) {
  d.take("uni");
  size_t next = 0;
  const ptx::Operand* results = d.operand(0).is<ptx::List>() ? &d.operand(next++) : nullptr;
  const auto* name = d.operand(next++).as<ptx::Symbol>();
  if (!name) d.unsupported("a call through a register");
  const ptx::Operand* arguments =
      next < d.operand_count() && d.operand(next).is<ptx::List>() ? &d.operand(next++) : nullptr;
  if (next < d.operand_count()) d.unsupported("a call with a list of targets or a prototype");
  const Subroutine& f = d.called(name->name);
  CallSite site;
  site.function = &f;
  site.return_to = d.pc() + 1;
  site.arguments = transfers(d, arguments, f.source->params, f.params, false);
  site.results = transfers(d, results, f.source->results, f.results, true);
  d.flow({f.begin}, false);
  d.inst.extra = d.keep(std::move(site));
  d.inst.run = &run_call;
}

Flow run_exit(Warp& w, const Inst&, uint32_t lanes) {
  w.leave(lanes);
  return Flow::jump;
}

// Threads that reach the end of the entry are done; those of a function return to its caller.
void decode_ret(Decoding& d) {
  d.take("uni");
  d.flow({}, false);
  d.inst.run = d.returns() ? &run_return : &run_exit;
}

}  // namespace

void register_call(Registry& r) {
  r.add("call", &decode_call);
  r.add("ret", &decode_ret);
}

}  // namespace tw::sim
