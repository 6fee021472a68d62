#include <bit>

#include "tilewright/check/scene.h"

// Global memory as one cluster sees it, and the words that threads synchronise over in global and in shared
// memory.
namespace tw::check {

// ---- accesses ----

void Checker::Scene::touch_global(const PagedShadow::Rows& rows, const View& view) {
  const GlobalStamp& s = global_.stamps[rows.stamp];
  if (dependency_waits_.any() && view.caused[spaces_.grid_before()] == 0)
    if (const auto at = dependency_waits_.needed(rows, s.write))
      dependency_waits_.missing(s.pc, *at, launch_.name_of(*at), describe(s));
  const auto how = [&](Shadow::Entry e) {
    return order(global_.stamps[e.stamp()], s, view, spaces_.global());
  };
  const auto conflict = [&](Shadow::Entry e) {
    if (const Order found = how(e); found != Order::ordered) [[unlikely]]
      report(found, global_.stamps[e.stamp()], s, spaces_.global(), launch_.name_of(rows.begin));
  };
  const auto ordered = [&](Shadow::Entry e) { return how(e) == Order::ordered; };
  if (s.op && !s.write) return global_.shadow.read(rows, conflict, ordered);
  for (uint32_t i = 0; i < rows.count; ++i)
    global_.shadow.access(rows.begin + i * rows.pitch, rows.bytes, rows.stamp, s.write, s.atomic, conflict,
                          ordered);
}

void Checker::Scene::access_global(const sim::Warp& warp, const sim::Access& access, Actor& a,
                                   const Semantics& how) {
  GlobalStamp s;
  s.actor = a.index;
  s.epoch = a.epoch;
  s.pc = warp.pc();
  s.warp = &warp;
  s.write = access.kind != sim::AccessKind::read;
  s.atomic = how.strong;
  s.scope = how.scope;
  s.updates = access.kind == sim::AccessKind::atomic;
  s.is_volatile = how.is_volatile;
  if (how.strong && cluster_.has_turn()) s.turn = launch_.next_turn();
  s.cluster = cluster_.index;
  s.rank = warp.cta().rank;
  s.warp_index = warp.index();
  s.elsewhere = a.view.elsewhere;
  const uint32_t id = global_.number(std::move(s));
  each_run(access, [&](uint64_t begin, uint64_t bytes, uint32_t) {
    touch_global({begin, bytes, 0, 1, id, how.strong}, a.view);
  });
}

// The current operation without what its issuer knew, which takes most of the space.
const std::shared_ptr<Operation>& Checker::Scene::lasting_operation() {
  if (!current_lasting_) {
    current_lasting_ = all_operations_.make();
    *current_lasting_ = *current_operation_;
    current_lasting_->start = nullptr;
  }
  return current_lasting_;
}

void Checker::Scene::access_global(const sim::AsyncOp& op, const sim::AsyncAccess& access) {
  GlobalStamp s;
  s.pc = op.pc;
  s.warp = op.warp;
  s.op = lasting_operation();
  s.proxy = access.tensor_map ? Proxy::tensor_map : s.op->ordinary ? Proxy::generic : Proxy::async;
  s.write = access.kind != sim::AccessKind::read;
  s.atomic = access.kind == sim::AccessKind::atomic;
  s.updates = s.atomic;
  s.scope = Scope::gpu;  // "cp.reduce.async.bulk": each reduction is relaxed at scope .gpu
  s.cluster = cluster_.index;
  s.rank = op.warp->cta().rank;
  s.warp_index = op.warp->index();
  s.elsewhere = current_operation_->start->elsewhere;
  const bool atomic = s.atomic;
  touch_global(
      {access.address, access.bytes, access.pitch, access.rows, global_.number(std::move(s)), atomic},
      *current_operation_->start);
}

// ---- flags ----

void Checker::Scene::synchronise(const sim::Warp& warp, const sim::Access& access, const Semantics& how) {
  const bool global = access.space == sim::MemorySpace::global;
  Flags& flags = global ? launch_.flags : flags_;
  Actor& a = actor(warp, access.lanes);
  const auto each_word = [&](auto f) {
    uint64_t before = ~uint64_t{0};
    for (uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
      const uint64_t word = access.addresses[std::countr_zero(rest)];
      if (word != before) f(word);
      before = word;
    }
  };
  if (how.observes && !flags.empty()) {
    each_word([&](uint64_t word) {
      for (const Flags::Entry& h : flags.read(word)) {
        hear(warp, access.lanes, *h);
        observe(warp, a, h, how);
      }
    });
    ++a.epoch;
  }
  if (access.kind == sim::AccessKind::read) {
    if (how.is_volatile && global && !launch_.single())
      each_word([&](uint64_t word) { note_volatile(warp, word); });
    return;
  }
  const std::vector<Flags::Entry> out = hand_out(warp, access.lanes, how);
  if (global && !out.empty() && cluster_.has_turn()) launch_.tell(global_);
  // Lanes that update a word together follow each other, in an order that nobody knows.
  if (access.kind == sim::AccessKind::atomic)
    for (const Flags::Entry& h : out) hear(warp, access.lanes, *h);
  if (out.empty() && flags.empty()) return;
  each_word([&](uint64_t word) {
    flags.write(word, out, access.kind == sim::AccessKind::atomic, cluster_.index, a.index);
  });
}

// Read again at the same place, or with an acquiring fence behind it: then threads wait for the word.
void Checker::Scene::note_volatile(const sim::Warp& warp, uint64_t word) {
  WarpKnowledge& w = knowledge(warp);
  auto& before = w.volatile_reads[warp.pc() % w.volatile_reads.size()];
  if (before == std::pair{warp.pc(), word}) launch_.waited_for(word);
  before = {warp.pc(), word};
}

// What a strong write by these lanes releases.
std::vector<Flags::Entry> Checker::Scene::hand_out(const sim::Warp& warp, uint32_t lanes,
                                                   const Semantics& how) {
  std::vector<Flags::Entry> out;
  if (how.releases) {
    View v(actors_);
    release(warp, lanes, [&](const View& given) { v.join(given); });
    out.push_back(handed(warp, actor(warp, lanes), std::move(v), how.scope));
    return out;
  }
  // Relaxed: what fences released before. The widest scope first; a narrower one only for what is beyond.
  const Actor& a = actor(warp, lanes);
  const Clock* wider = nullptr;
  for (size_t s = kFenceScopes; s-- > 0;) {
    const Clock& published = a.view.published[s];
    if (published.empty() || (wider && wider->covers(published))) continue;
    wider = &published;
    View v = a.view;
    v.ordinary = published;
    out.push_back(handed(warp, a, std::move(v), std::min(how.scope, static_cast<Scope>(s + 1))));
  }
  return out;
}

Flags::Entry Checker::Scene::handed(const sim::Warp& warp, const Actor& a, View view, Scope scope) const {
  auto h = std::make_shared<Handed>();
  h->cluster = cluster_.index;
  h->actor = a.index;
  h->rank = warp.cta().rank;
  h->scope = scope;
  h->pc = warp.pc();
  if (!launch_.single()) {
    auto known = std::make_shared<Known>(Known{view.ordinary, view.proxied, view.caused, view.maps});
    auto mine = std::make_shared<ElsewhereMap>();
    mine->emplace_back(cluster_.index, std::move(known));
    h->elsewhere = merged(view.elsewhere, mine);
  }
  h->view = std::move(view);
  return h;
}

// A strong read has read what `h` came with, or a read-modify-write behind it.
void Checker::Scene::observe(const sim::Warp& warp, Actor& a, const Flags::Entry& h, const Semantics& how) {
  const bool here = h->cluster == cluster_.index;
  if (here && h->actor == a.index) return;
  const Scope needed = !here ? Scope::gpu : h->rank != warp.cta().rank ? Scope::cluster : Scope::cta;
  const bool reaches = h->scope >= needed && how.scope >= needed;
  WarpKnowledge& w = knowledge(warp);
  if (!here) {
    if (!reaches) {
      const ptx::Instruction* inst = instruction(h->pc);
      const std::string writer =
          inst ? tw::format("{} at {}", inst->text(), to_string(inst->loc)) : "the write";
      launch_.too_narrow(
          cluster_.index, h,
          h->scope < needed ? tw::format("{} hands over at scope {}", writer, name(h->scope))
                            : tw::format("{} reads at scope {}", warp.instruction().text(), name(how.scope)));
    } else if (how.acquires) {
      take(a, *h);
    } else {
      std::erase_if(w.observed, [&](const Flags::Entry& e) {
        return e->cluster == h->cluster && e->actor == h->actor && e->scope == h->scope;
      });
      w.observed.push_back(h);
    }
    return;
  }
  a.view.join_all_but_ordinary(h->view);
  if (reaches && how.acquires) {
    a.view.ordinary.join(h->view.ordinary);
    return;
  }
  if (reaches) w.pending[static_cast<size_t>(needed) - 1].join(h->view.ordinary);
  else a.view.narrow.join(h->view.ordinary);
}

// Acquires what another cluster handed over.
void Checker::Scene::take(Actor& a, const Handed& h) {
  a.view.elsewhere = merged(a.view.elsewhere, h.elsewhere);
  if (const Known* mine = find(h.elsewhere, cluster_.index)) {
    a.view.ordinary.join(mine->ordinary);
    a.view.proxied.join(mine->proxied);
    a.view.caused.join(mine->caused);
    a.view.maps.join(mine->maps);
  }
  if (h.view.caused[spaces_.grid_before()] != 0) a.view.caused.set(spaces_.grid_before(), 1);
}

}  // namespace tw::check
