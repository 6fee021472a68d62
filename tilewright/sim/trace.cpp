#include "tilewright/sim/trace.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <vector>

#include "tilewright/base/format.h"
#include "tilewright/sim/cluster.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/program.h"

namespace tw::sim {

namespace {

constexpr uint32_t kEngineTracks = 100, kBarrierTrack = 1000;  // warps have tracks 0 to 31

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20) out += tw::format("\\u{:04x}", static_cast<int>(c));
    else out += c;
  }
  return out + '"';
}

// Instructions that hand work over or wait get slices of their own; the rest between them is one slice a
// line.
bool is_notable(const ptx::Instruction& inst) {
  constexpr std::array<std::string_view, 11> notable = {"mbarrier",   "bar",
                                                        "barrier",    "tcgen05",
                                                        "wgmma",      "cp",
                                                        "fence",      "clusterlaunchcontrol",
                                                        "setmaxnreg", "griddepcontrol",
                                                        "multimem"};
  return std::find(notable.begin(), notable.end(), inst.opcode()) != notable.end() || inst.has("async");
}

// "tcgen05.mma", "mbarrier.try_wait", "cp.async.bulk.tensor".
std::string short_name(const ptx::Instruction& inst) {
  std::string name(inst.opcode());
  for (size_t i = 1; i < inst.tokens.size() && i < 4; ++i) {
    const std::string_view t = inst.tokens[i];
    if (t != "async" && t != "bulk" && t != "tensor" && t != "reduce" && i > 1) break;
    name += '.';
    name += t;
    if (t != "async" && t != "bulk") break;
  }
  return name;
}

struct Slice {
  uint32_t track = 0;
  uint64_t begin = 0, end = 0;
  std::string name;
  const ptx::Instruction* inst = nullptr;  // where it comes from
  std::string details;                     // more JSON members of "args", each with a leading comma
  bool notable = false, instant = false;
};

}  // namespace

struct Trace::Recording {
  Recording(const Cluster& cluster, uint32_t first_rank, uint32_t end_rank, size_t limit)
      : program(cluster.grid.program), first(first_rank), end(end_rank), limit_(limit) {
    for (const auto& cta : cluster.ctas) ctas.push_back({cta->id, {}, {}, {}, {}, {}});
    numbered_from = cluster.index * cluster.ctas.size();
    for (auto& c : ctas) c.warps.resize(cluster.ctas.front()->warps.size());
  }

  struct WarpTrack {
    size_t last = kNone;     // its newest slice
    size_t waiting = kNone;  // the slice of its wait
    std::set<int> roles;
  };
  struct EngineTracks {
    std::string name;
    std::vector<const AsyncOp*> lanes;  // what each track of it carries now
    uint32_t first_track = 0;
  };
  struct CtaTracks {
    Dim3 id;
    std::vector<WarpTrack> warps;
    std::vector<EngineTracks> engines;
    std::vector<Slice> slices;
    std::unordered_map<const AsyncOp*, size_t> in_flight;  // slice of each
    bool has_barriers = false;
  };
  static constexpr size_t kNone = ~size_t{0};

  const Program::Impl& program;
  std::vector<CtaTracks> ctas;
  uint64_t numbered_from = 0;  // number of rank 0 in the grid
  const uint32_t first, end;   // ranks that are recorded
  uint64_t now = 0, dropped = 0;

  CtaTracks* cta(const Cta& c) { return c.rank >= first && c.rank < end ? &ctas[c.rank] : nullptr; }

  size_t add(CtaTracks& c, Slice slice) {
    if (recorded_ >= limit_) {
      ++dropped;
      return kNone;
    }
    ++recorded_;
    c.slices.push_back(std::move(slice));
    return c.slices.size() - 1;
  }
  std::string role_name(int role) const {
    return program.names && role >= 0 && static_cast<size_t>(role) < program.names->roles.size()
               ? program.names->roles[static_cast<size_t>(role)]
               : std::string();
  }

  std::string json(const CtaTracks& c, uint64_t pid) const;

 private:
  const size_t limit_;
  size_t recorded_ = 0;
};

Trace::Trace(const TraceOptions& options) : options_(options) {}
Trace::~Trace() = default;

Trace::Recording* Trace::of(const Warp& warp) const {
  return static_cast<Recording*>(warp.cluster().observer_data);
}

void Trace::cluster_begin(Cluster& cluster) {
  cluster.observer_data = nullptr;
  const uint64_t n = cluster.ctas.size(), mine = cluster.index * n;
  const uint64_t from = options_.ctas == 0 ? options_.first_cta / n * n : options_.first_cta;
  const uint64_t to = from + (options_.ctas == 0 ? n : options_.ctas);
  if (mine >= to || mine + n <= from) return;
  auto recording =
      std::make_unique<Recording>(cluster, static_cast<uint32_t>(from > mine ? from - mine : 0),
                                  static_cast<uint32_t>(std::min(n, to - mine)), options_.max_events);
  cluster.observer_data = recording.get();
  std::lock_guard lock(mutex_);
  recordings_[cluster.index] = std::move(recording);
}

void Trace::issue(const Warp& warp, const ptx::Instruction& inst, uint32_t, uint32_t lanes) {
  Recording* r = of(warp);
  if (!r) return;
  const uint64_t at = r->now++;
  auto* c = r->cta(warp.cta());
  if (!c || lanes == 0) return;
  auto& track = c->warps[warp.index()];
  if (inst.role >= 0) track.roles.insert(inst.role);
  if (track.waiting != Recording::kNone) {  // other lanes of the warp go on
    c->slices[track.waiting].end = at;
    track.waiting = Recording::kNone;
  }
  const bool notable = is_notable(inst);
  if (!notable && track.last != Recording::kNone) {
    Slice& last = c->slices[track.last];
    if (!last.notable && last.end == at && last.inst->loc == inst.loc && last.inst->role == inst.role) {
      last.end = at + 1;
      return;
    }
  }
  Slice s{warp.index(), at, at + 1, {}, &inst, {}, notable, false};
  if (notable) s.name = short_name(inst);
  else s.name = inst.loc ? to_string(inst.loc) : std::string(inst.opcode());
  track.last = r->add(*c, std::move(s));
}

void Trace::warp_state(const Warp& warp, WarpState state, uint32_t) {
  Recording* r = of(warp);
  if (!r || !r->cta(warp.cta())) return;
  auto* c = r->cta(warp.cta());
  auto& track = c->warps[warp.index()];
  if (state == WarpState::suspended && track.waiting == Recording::kNone) {
    const Wait& wait = warp.wait();
    std::string what = wait.kind->describe(warp, wait);
    Slice s{warp.index(), r->now, r->now, {}, wait.inst ? &warp.instruction() : nullptr, {}, true, false};
    s.name = "waits for " + what.substr(0, what.find(':'));
    s.details = ",\"at first\":" + quoted(what);
    track.waiting = r->add(*c, std::move(s));
  } else if (state == WarpState::resumed && track.waiting != Recording::kNone) {
    c->slices[track.waiting].end = r->now;
    track.waiting = Recording::kNone;
  }
}

void Trace::async_issued(const AsyncOp& op) {
  Recording* r = of(*op.warp);
  if (!r) return;
  auto* c = r->cta(op.warp->cta());
  if (!c) return;
  auto engine = std::find_if(c->engines.begin(), c->engines.end(),
                             [&](const auto& e) { return e.name == op.engine->name; });
  if (engine == c->engines.end()) {
    c->engines.push_back(
        {op.engine->name, {}, kEngineTracks + 32 * static_cast<uint32_t>(c->engines.size())});
    engine = c->engines.end() - 1;
  }
  // Operations that overlap go to different tracks.
  auto lane = std::find(engine->lanes.begin(), engine->lanes.end(), nullptr);
  if (lane == engine->lanes.end() && engine->lanes.size() < 32) {
    engine->lanes.push_back(nullptr);
    lane = engine->lanes.end() - 1;
  }
  if (lane == engine->lanes.end()) {
    ++r->dropped;
    return;
  }
  const auto& source = r->program.code.source;
  Slice s{engine->first_track + static_cast<uint32_t>(lane - engine->lanes.begin()),
          r->now,
          r->now,
          op.describe(),
          op.pc < source.size() ? source[op.pc] : nullptr,
          {},
          true,
          false};
  s.details = ",\"issued by\":" + quoted(op.warp->where(kAllLanes));
  const size_t index = r->add(*c, std::move(s));
  if (index == Recording::kNone) return;
  *lane = &op;
  c->in_flight[&op] = index;
}

void Trace::async_reached(const AsyncOp& op, Milestone milestone) {
  Recording* r = of(*op.warp);
  if (!r) return;
  const uint64_t at = r->now++;
  auto* c = r->cta(op.warp->cta());
  if (!c) return;
  const auto it = c->in_flight.find(&op);
  if (it == c->in_flight.end()) return;
  Slice& s = c->slices[it->second];
  s.end = at + 1;
  s.details += tw::format(",\"{}\":{}", name(milestone), at);
  if (milestone != Milestone::signalled) return;
  for (auto& e : c->engines)
    std::replace(e.lanes.begin(), e.lanes.end(), &op, static_cast<const AsyncOp*>(nullptr));
  c->in_flight.erase(it);
}

namespace {

std::string_view verb(BarrierEvent::Kind kind) {
  switch (kind) {
    case BarrierEvent::Kind::init: return "init";
    case BarrierEvent::Kind::invalidate: return "inval";
    case BarrierEvent::Kind::arrive: return "arrive on";
    case BarrierEvent::Kind::arrive_drop: return "arrive_drop on";
    case BarrierEvent::Kind::expect_tx: return "expect_tx on";
    case BarrierEvent::Kind::wait:
    case BarrierEvent::Kind::passed: return "wait on";
    default: return {};
  }
}

std::string name_of(const BarrierEvent& e) {
  switch (e.object) {
    case BarrierEvent::Object::mbarrier: return e.cta->name_of_shared(e.id);
    case BarrierEvent::Object::named: return tw::format("barrier {}", e.id);
    case BarrierEvent::Object::cluster: return "cluster barrier";
    case BarrierEvent::Object::warp: break;
  }
  return "warp barrier";
}

}  // namespace

void Trace::barrier(const BarrierEvent& e) {
  const Warp* warp = e.warp;
  Recording* r = nullptr;
  if (warp) r = of(*warp);
  else if (e.cta) r = static_cast<Recording*>(e.cta->cluster.observer_data);
  if (!r) return;
  // What a warp did names its newest slice.
  if (warp && !e.op && !verb(e.kind).empty()) {
    if (auto* c = r->cta(warp->cta())) {
      auto& track = c->warps[warp->index()];
      if (track.last != Recording::kNone && c->slices[track.last].notable) {
        c->slices[track.last].name = tw::format("{} {}", verb(e.kind), name_of(e));
        if (e.kind == BarrierEvent::Kind::expect_tx)
          c->slices[track.last].name += tw::format(", {} bytes", e.amount);
      }
    }
  }
  if (e.kind != BarrierEvent::Kind::complete || !e.cta) return;
  if (auto* c = r->cta(*e.cta)) {
    Slice s{kBarrierTrack, r->now, r->now, tw::format("{}: phase {} complete", name_of(e), e.phase),
            nullptr,       {},     true,   true};
    c->has_barriers = true;
    r->add(*c, std::move(s));
  }
}

std::string Trace::Recording::json(const CtaTracks& c, uint64_t pid) const {
  std::string out;
  auto meta = [&](const char* what, uint32_t track, const std::string& value) {
    out += tw::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"name":{}}}}},)", pid, track, what,
                      quoted(value));
    out += '\n';
  };
  meta("process_name", 0, tw::format("CTA ({}, {}, {})", c.id.x, c.id.y, c.id.z));
  for (uint32_t w = 0; w < c.warps.size(); ++w) {
    std::string roles;
    for (int role : c.warps[w].roles) {
      if (const std::string n = role_name(role); !n.empty()) roles += (roles.empty() ? "" : ", ") + n;
    }
    meta("thread_name", w, roles.empty() ? tw::format("warp {}", w) : tw::format("{} (warp {})", roles, w));
  }
  for (const EngineTracks& e : c.engines) {
    for (uint32_t lane = 0; lane < e.lanes.size(); ++lane)
      meta("thread_name", e.first_track + lane, lane == 0 ? e.name : tw::format("{} #{}", e.name, lane + 1));
  }
  if (c.has_barriers) meta("thread_name", kBarrierTrack, "barriers");

  std::set<size_t> open;
  for (const auto& [op, slice] : c.in_flight) open.insert(slice);
  for (const WarpTrack& w : c.warps) {
    if (w.waiting != kNone) open.insert(w.waiting);
  }
  for (size_t i = 0; i < c.slices.size(); ++i) {
    const Slice& s = c.slices[i];
    const bool unfinished = open.count(i) != 0;
    const uint64_t end_time = unfinished ? now : s.end;
    if (s.instant)
      out += tw::format(R"({{"ph":"i","s":"t","pid":{},"tid":{},"ts":{},"name":{}}},)", pid, s.track, s.begin,
                        quoted(s.name));
    else {
      std::string args;
      if (s.inst) {
        args = "\"instruction\":" + quoted(s.inst->text());
        if (s.inst->line) args += tw::format(",\"PTX line\":{}", s.inst->line);
        if (s.inst->loc) args += ",\"source\":" + quoted(to_string(s.inst->loc));
        if (const std::string role = role_name(s.inst->role); !role.empty())
          args += ",\"role\":" + quoted(role);
      }
      args += s.details;
      if (unfinished) args += ",\"unfinished\":true";
      if (args.starts_with(',')) args.erase(0, 1);
      out += tw::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"args":{{{}}}}},)", pid,
                        s.track, s.begin, std::max(end_time, s.begin) - s.begin, quoted(s.name), args);
    }
    out += '\n';
  }
  return out;
}

std::string Trace::json() const {
  std::lock_guard lock(mutex_);
  std::string events;
  uint64_t dropped = 0;
  for (const auto& [index, r] : recordings_) {
    dropped += r->dropped;
    for (uint32_t rank = r->first; rank < r->end; ++rank)
      events += r->json(r->ctas[rank], r->numbered_from + rank + 1);
  }
  if (events.size() >= 2) events.erase(events.size() - 2, 1);  // the last comma
  return tw::format(
      "{{\"displayTimeUnit\":\"ns\",\n\"otherData\":{{\"time\":\"order: one microsecond is one warp "
      "instruction "
      "or milestone of the cluster\",\"events left out\":{}}},\n\"traceEvents\":[\n{}]}}\n",
      dropped, events);
}

}  // namespace tw::sim
