#include "tilewright/sim/deadlock.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/program.h"

namespace tw::sim {

namespace {

using Object = Awaited::Object;
using Part = BarrierLog::Part;

constexpr size_t kMaxLines = 64;

struct Blocked {
  const Warp* warp;
  const Fragment* fragment;
  Awaited awaited;
};

class Diagnosis {
 public:
  explicit Diagnosis(const Cluster& cluster) : cluster_(cluster) {
    for (const Warp* w : cluster.warps)
      for (const Fragment& f : w->fragments()) blocked_.push_back({w, &f, awaited(*w, f)});
  }

  std::string text() const;
  SourceLoc loc() const;

 private:
  struct Missing {
    std::vector<const Warp*> warps;
    bool certain = false;  // they came in the phase before, or all must come
  };

  static Awaited awaited(const Warp& w, const Fragment& f);
  const ptx::Instruction* instruction(uint32_t pc) const { return cluster_.grid.program.code.source[pc]; }
  std::string place(uint32_t pc) const;
  std::string role(uint32_t pc) const;
  std::string role(const Warp& w) const;
  std::string name(const Warp& first, const Warp& last) const;
  std::string name(const Warp& w) const { return name(w, w); }
  std::string names(std::vector<const Warp*> warps) const;
  std::string name(const Awaited& a) const;
  std::string describe(const Blocked& b) const;
  std::vector<std::string> waits() const;
  std::vector<std::string> about(const Awaited& a) const;
  void about_mbarrier(const Awaited& a, const LoggedMBarrier& b, std::vector<std::string>& lines) const;
  void about_waiters(const Awaited& a, const LoggedMBarrier& b, std::vector<std::string>& lines) const;
  void about_registers(const Awaited& a, std::vector<std::string>& lines) const;
  void about_named(const Awaited& a, std::vector<std::string>& lines) const;
  void about_missing(const Awaited& a, std::vector<std::string>& lines) const;
  Missing missing(const Awaited& a) const;
  Missing missing_at_mbarrier(const LoggedMBarrier& b) const;
  Missing missing_at_named(const Awaited& a) const;
  const Blocked* blocked(const Warp& w) const;
  std::vector<const Warp*> cycle_through(const Warp& start, bool certain) const;
  std::string cycle() const;

  const Cluster& cluster_;
  std::vector<Blocked> blocked_;
};

Awaited Diagnosis::awaited(const Warp& w, const Fragment& f) {
  const Wait& wait = f.state == Fragment::State::runnable ? w.polled : f.wait;
  if (f.state != Fragment::State::waiting && f.state != Fragment::State::runnable) return {};
  return wait.kind && wait.kind->awaited ? wait.kind->awaited(w, wait) : Awaited{};
}

SourceLoc Diagnosis::loc() const {
  for (const Blocked& b : blocked_)
    if (const ptx::Instruction* inst = instruction(b.fragment->pc)) return inst->loc;
  return {};
}

// ---- words ----

std::string Diagnosis::place(uint32_t pc) const {
  const ptx::Instruction* inst = instruction(pc);
  if (!inst) return "at the end";
  return inst->loc ? to_string(inst->loc) : tw::format("line {} of the PTX", inst->line);
}

std::string Diagnosis::role(uint32_t pc) const {
  const ptx::Instruction* inst = instruction(pc);
  const auto& all = cluster_.grid.program.names;
  if (!inst || !all || inst->role < 0 || static_cast<size_t>(inst->role) >= all->roles.size()) return "";
  return tw::format(" (role {})", all->roles[static_cast<size_t>(inst->role)]);
}

std::string Diagnosis::role(const Warp& w) const {
  const Blocked* b = blocked(w);
  return role(b ? b->fragment->pc : w.exited_at());
}

// "warp 4 (role mma)", "warps 0 to 3 of CTA rank 1": neighbours of one CTA and role.
std::string Diagnosis::name(const Warp& first, const Warp& last) const {
  std::string text = &first == &last ? tw::format("warp {}", first.index())
                                     : tw::format("warps {} to {}", first.index(), last.index());
  if (cluster_.ctas.size() > 1) text += tw::format(" of CTA rank {}", first.cta().rank);
  return text + role(first);
}

std::string Diagnosis::names(std::vector<const Warp*> warps) const {
  std::sort(warps.begin(), warps.end(),
            [&](const Warp* a, const Warp* b) { return cluster_.position(*a) < cluster_.position(*b); });
  warps.erase(std::unique(warps.begin(), warps.end()), warps.end());
  const auto follows = [&](const Warp& a, const Warp& b) {
    return &a.cta() == &b.cta() && b.index() == a.index() + 1 && role(a) == role(b);
  };
  std::string text;
  for (size_t i = 0; i < warps.size();) {
    size_t last = i;
    while (last + 1 < warps.size() && follows(*warps[last], *warps[last + 1])) ++last;
    text += (text.empty() ? "" : ", ") + name(*warps[i], *warps[last]);
    i = last + 1;
  }
  return text;
}

std::string Diagnosis::name(const Awaited& a) const {
  switch (a.object) {
    case Object::mbarrier:
      if (!a.cta) return "an mbarrier";
      return tw::format("mbarrier {}{}", a.cta->name_of_shared(a.id),
                        cluster_.ctas.size() > 1 ? tw::format(" of CTA rank {}", a.cta->rank) : "");
    case Object::named: return tw::format("barrier {}", a.id);
    case Object::cluster: return "barrier.cluster";
    case Object::registers: return "the register pool";
    case Object::none: break;
  }
  return "the other lanes of its warp";
}

// Where lanes of a warp stand and what they wait for.
std::string Diagnosis::describe(const Blocked& b) const {
  const Fragment& f = *b.fragment;
  const Warp& w = *b.warp;
  std::string text = w.role_and_lanes_of(f);
  if (const ptx::Instruction* inst = instruction(f.pc)) {
    if (inst->loc) text += ", " + to_string(inst->loc);
    text += tw::format(": {}", inst->text());
    if (inst->line && inst->line != inst->loc.line) text += tw::format(" (line {} of the PTX)", inst->line);
  }
  switch (f.state) {
    case Fragment::State::waiting: return text + ", waits for " + f.wait.kind->describe(w, f.wait);
    case Fragment::State::reconverging:
      return text + tw::format(", waits for lanes {:#010x} of its warp", f.members & w.live() & ~f.lanes);
    case Fragment::State::runnable:
      return text + ", polls" + (w.polled.kind ? " for " + w.polled.kind->describe(w, w.polled) : "");
    case Fragment::State::ordering: return text + ", accesses global memory";
  }
  return text;
}

// Neighbours of one CTA that wait alike share a line.
std::vector<std::string> Diagnosis::waits() const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < blocked_.size();) {
    const std::string what = describe(blocked_[i]);
    const Warp *first = blocked_[i].warp, *last = first;
    for (++i; i < blocked_.size(); ++i) {
      const Warp* next = blocked_[i].warp;
      if (&next->cta() != &first->cta() || next->index() != last->index() + 1 ||
          describe(blocked_[i]) != what)
        break;
      last = next;
    }
    lines.push_back(first == last ? tw::format("{}, warp {}{}", first->cta().name(), first->index(), what)
                                  : tw::format("{}, warps {} to {}{}", first->cta().name(), first->index(),
                                               last->index(), what));
  }
  return lines;
}

// ---- who is missing ----

const Blocked* Diagnosis::blocked(const Warp& w) const {
  for (const Blocked& b : blocked_)
    if (b.warp == &w) return &b;
  return nullptr;
}

Diagnosis::Missing Diagnosis::missing_at_mbarrier(const LoggedMBarrier& b) const {
  // Bytes that are outstanding come by copies, arrivals from threads and commits.
  const auto brings = [&](const BarrierLog::Entry& e) {
    if (b.pending() == 0) return e.part == Part::delivers;
    return e.part == Part::arrives || e.part == Part::signals;
  };
  Missing m;
  for (const BarrierLog::Entry& e : b.log.entries()) {
    if (!brings(e) || e.phase == b.phase()) continue;
    const bool came = std::any_of(b.log.entries().begin(), b.log.entries().end(), [&](const auto& other) {
      return brings(other) && other.warp == e.warp && other.phase == b.phase();
    });
    if (!came) m.warps.push_back(e.warp);
  }
  m.certain = !m.warps.empty();
  return m;
}

Diagnosis::Missing Diagnosis::missing_at_named(const Awaited& a) const {
  const NamedBarrier& b = a.cta->barriers[a.id];
  Missing m;
  for (const Warp& w : a.cta->warps) {
    const uint32_t bit = 1u << w.index();
    if (b.warps & bit) continue;
    if (b.everyone ? !w.done() : (b.earlier & bit) != 0) m.warps.push_back(&w);
  }
  m.certain = !m.warps.empty();
  return m;
}

Diagnosis::Missing Diagnosis::missing(const Awaited& a) const {
  Missing m;
  switch (a.object) {
    case Object::mbarrier:
      if (const LoggedMBarrier* b = a.cta ? a.cta->find_mbarrier(a.id) : nullptr) m = missing_at_mbarrier(*b);
      break;
    case Object::named: m = missing_at_named(a); break;
    case Object::cluster:
      for (const Warp* w : cluster_.warps)
        if ((w->live() & ~cluster_.at_cluster_barrier(*w)) != 0) m.warps.push_back(w);
      m.certain = true;
      break;
    case Object::registers:
    case Object::none: break;
  }
  if (m.certain) return m;
  // Nobody has come yet: it could be anyone who does not wait for the same.
  for (const Blocked& b : blocked_)
    if (b.awaited.object != a.object || b.awaited.cta != a.cta || b.awaited.id != a.id)
      m.warps.push_back(b.warp);
  return m;
}

// ---- what is known of a barrier ----

void Diagnosis::about_mbarrier(const Awaited& a, const LoggedMBarrier& b,
                               std::vector<std::string>& lines) const {
  const auto& entries = b.log.entries();
  struct Side {
    std::vector<const Warp*> warps;
    int64_t amount = 0;
  };
  std::map<std::pair<Part, uint32_t>, Side> sides;  // by part and instruction
  for (const BarrierLog::Entry& e : entries) {
    if (e.phase != b.phase() || e.part == Part::waits) continue;
    Side& side = sides[{e.part, e.pc}];
    side.warps.push_back(e.warp);
    side.amount += e.amount;
  }
  bool expected = false, arrived = false;
  for (const auto& [key, side] : sides) {
    const auto& [part, pc] = key;
    const char* verb = part == Part::arrives || part == Part::signals ? "arrived"
                       : part == Part::expects                        ? "armed"
                                                                      : "delivered";
    const char* unit = part == Part::arrives || part == Part::signals
                           ? (side.amount == 1 ? "arrival" : "arrivals")
                           : "bytes";
    expected |= part == Part::expects;
    arrived |= part == Part::arrives || part == Part::signals;
    lines.push_back(tw::format("{}: {} {} by {}, {} at {}", verb, side.amount, unit, names(side.warps),
                               instruction(pc) ? instruction(pc)->text() : "", place(pc)));
  }
  const int64_t armed = b.log.amount(Part::expects, b.phase()),
                came = b.log.amount(Part::delivers, b.phase());
  if (came > armed)
    lines.push_back(
        tw::format("{} bytes more than it was armed with: the phase cannot complete", came - armed));
  if (expected && !arrived && b.pending() != 0)
    lines.push_back("expect_tx only adds bytes: it is no arrival");
  if (sides.empty()) lines.push_back("nobody has come in this phase");
  about_waiters(a, b, lines);
}

// Whether those who wait have kept up with the phases.
void Diagnosis::about_waiters(const Awaited& a, const LoggedMBarrier& b,
                              std::vector<std::string>& lines) const {
  std::map<std::pair<uint64_t, uint32_t>, std::vector<const Warp*>> late;
  for (const Blocked& w : blocked_) {
    if (w.awaited.object != Object::mbarrier || w.awaited.cta != a.cta || w.awaited.id != a.id) continue;
    uint64_t seen = 0;
    for (const BarrierLog::Entry& e : b.log.entries())
      if (e.part == Part::waits && e.warp == w.warp) seen = std::max(seen, e.phase);
    if (seen < b.phase() || (seen & 1) != w.awaited.parity) late[{seen, w.awaited.parity}].push_back(w.warp);
  }
  for (const auto& [key, warps] : late) {
    const auto& [seen, parity] = key;
    std::string text = names(warps) + ": ";
    if (seen == 0)
      text += tw::format("no wait on it has ended before; {} of its phases are complete", b.phase());
    else if (seen < b.phase())
      text += tw::format("saw {} of its phases complete, {} are: lapped", seen, b.phase());
    else
      text += tw::format("saw {} of its phases complete; the next has parity {}, it waits for parity {}",
                         seen, seen & 1, parity);
    lines.push_back(std::move(text));
  }
}

void Diagnosis::about_registers(const Awaited& a, std::vector<std::string>& lines) const {
  std::map<std::pair<bool, uint32_t>, std::vector<const Warp*>> held;
  for (const Warp& w : a.cta->warps) held[{w.done(), w.registers}].push_back(&w);
  for (const auto& [key, warps] : held)
    lines.push_back(key.first ? tw::format("{} registers a thread went with {}; exited ({})", key.second,
                                           names(warps), place(warps.front()->exited_at()))
                              : tw::format("{} registers a thread are held by {}", key.second, names(warps)));
}

void Diagnosis::about_named(const Awaited& a, std::vector<std::string>& lines) const {
  std::vector<const Warp*> gone_on;
  for (const Warp& w : a.cta->warps) {
    const Blocked* b = blocked(w);
    const bool waits_here = b && b->awaited.object == Object::named && b->awaited.id == a.id;
    if ((a.cta->barriers[a.id].warps >> w.index() & 1) != 0 && !waits_here) gone_on.push_back(&w);
  }
  if (!gone_on.empty()) lines.push_back(tw::format("arrived and went on: {}", names(gone_on)));
}

void Diagnosis::about_missing(const Awaited& a, std::vector<std::string>& lines) const {
  const Missing m = missing(a);
  if (!m.certain) return;
  std::vector<const Warp*> left, here;
  for (const Warp* w : m.warps) (w->done() ? left : here).push_back(w);
  const bool all =
      a.object == Object::cluster || (a.object == Object::named && a.cta->barriers[a.id].everyone);
  const char* before = all ? "" : ", which came in earlier phases";
  if (!here.empty()) lines.push_back(tw::format("missing: {}{}", names(here), before));
  if (!left.empty())
    lines.push_back(
        tw::format("missing: {}{}; exited ({})", names(left), before, place(left.front()->exited_at())));
}

std::vector<std::string> Diagnosis::about(const Awaited& a) const {
  std::vector<std::string> lines;
  const LoggedMBarrier* b = a.object == Object::mbarrier && a.cta ? a.cta->find_mbarrier(a.id) : nullptr;
  if (b) about_mbarrier(a, *b, lines);
  if (a.object == Object::registers) about_registers(a, lines);
  if (a.object == Object::named) about_named(a, lines);
  about_missing(a, lines);
  return lines;
}

// ---- why ----

// The shortest cycle through `start`, each warp before the one that it waits for; empty: none. Breadth first.
std::vector<const Warp*> Diagnosis::cycle_through(const Warp& start, bool certain) const {
  std::map<const Warp*, const Warp*> reached_from;
  std::vector<const Warp*> queue{&start};
  for (size_t i = 0; i < queue.size(); ++i) {
    const Blocked* b = blocked(*queue[i]);
    if (!b || b->awaited.object == Object::none) continue;
    const Missing m = missing(b->awaited);
    if (certain && !m.certain) continue;
    for (const Warp* next : m.warps) {
      if (next == &start) {
        std::vector<const Warp*> path{queue[i]};
        while (path.back() != &start) path.push_back(reached_from.at(path.back()));
        std::reverse(path.begin(), path.end());
        return path;
      }
      if (!next->done() && reached_from.emplace(next, queue[i]).second) queue.push_back(next);
    }
  }
  return {};
}

// "warp 0 (role load) waits at mbarrier empty[0] for warp 4, which waits at barrier 3 for warp 0 (role load)"
std::string Diagnosis::cycle() const {
  for (const bool certain : {true, false}) {
    for (const Blocked& start : blocked_) {
      const std::vector<const Warp*> path = cycle_through(*start.warp, certain);
      if (path.empty()) continue;
      std::string text = certain ? "wait cycle: " : "wait cycle, if the others are who should come: ";
      text += name(*path[0]);
      for (size_t i = 0; i < path.size(); ++i) {
        const std::string at = name(blocked(*path[i])->awaited);
        const bool last = i + 1 == path.size();
        text += tw::format("{} waits at {} for {}", i == 0 ? "" : ", which", at,
                           path.size() == 1 ? "itself"
                           : last           ? name(*path[0])
                                            : name(*path[i + 1]));
      }
      return text;
    }
  }
  return "";
}

std::string Diagnosis::text() const {
  std::string text;
  const std::vector<std::string> lines = waits();
  for (size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) text += "\n  " + lines[i];
  if (lines.size() > kMaxLines) text += tw::format("\n  and {} more", lines.size() - kMaxLines);
  std::set<std::tuple<Object, const Cta*, uint32_t>> told;
  for (const Blocked& b : blocked_) {
    const Awaited& a = b.awaited;
    if (a.object == Object::none || told.size() >= kMaxLines) continue;
    if (!told.emplace(a.object, a.cta, a.id).second) continue;
    const std::vector<std::string> known = about(a);
    if (known.empty()) continue;
    const LoggedMBarrier* m = a.object == Object::mbarrier ? a.cta->find_mbarrier(a.id) : nullptr;
    text += "\n  " + name(a) + (m ? tw::format(", phase {}", m->phase()) : "") + ":";
    for (const std::string& line : known) text += "\n    " + line;
  }
  if (const std::string why = cycle(); !why.empty()) text += "\n  " + why;
  for (const auto& engine : cluster_.engines())
    for (const auto& op : engine->in_flight())
      text += tw::format("\n  in flight: {} ({})", op->describe(), tw::sim::name(op->milestone()));
  return text;
}

}  // namespace

void report_deadlock(const Cluster& cluster, const char* headline) {
  const Diagnosis diagnosis(cluster);
  throw Error(ErrorKind::deadlock, diagnosis.loc(), headline + diagnosis.text());
}

}  // namespace tw::sim
