#include "tilewright/check/lane_order.h"

#include <algorithm>
#include <bit>

namespace tw::check {
namespace {

template <class F>
void each(uint32_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<uint32_t>(std::countr_zero(lanes)));
}

void raise(LaneEpochs& to, const LaneEpochs& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

// ---- knowledge ----

void LaneKnowledge::meet_all(const LaneEpochs& now) {
  raise(all_, now);
  of_.reset();  // all of it is older
}

void LaneKnowledge::meet(uint32_t lanes, const LaneEpochs& now) {
  if (!of_) of_ = std::make_unique<Pairs>();
  LaneEpochs heard{};
  std::array<LaneEpochs, 32> known{};
  each(lanes, [&](uint32_t l) {
    raise(heard, heard_[l]);
    for (uint32_t a = 0; a < 32; ++a) raise(known[a], (*of_)[l][a]);
  });
  each(lanes, [&](uint32_t l) { raise(known[l], now); });
  each(lanes, [&](uint32_t l) {
    heard_[l] = heard;
    (*of_)[l] = known;
  });
}

void LaneKnowledge::hear(uint32_t lanes, const LaneEpochs& before) {
  each(lanes, [&](uint32_t l) { raise(heard_[l], before); });
}

void LaneKnowledge::hear_all(const LaneEpochs& before) { raise(all_, before); }

bool LaneKnowledge::knows(uint32_t b, uint32_t a, uint32_t actor, uint32_t epoch) const {
  return a == b || epoch < all_[actor] || epoch < heard_[b][actor] || (of_ && epoch < (*of_)[b][a][actor]);
}

std::optional<bool> LaneKnowledge::knows_any(uint32_t b, uint32_t actor, uint32_t epoch) const {
  if (epoch < all_[actor] || epoch < heard_[b][actor]) return true;
  if (of_) return std::nullopt;
  return false;
}

// ---- order ----

void LaneOrder::meet_all(const LaneEpochs& now) {
  writes_.meet_all(now);
  reads_.meet_all(now);
  apart_ = false;
}

void LaneOrder::meet(uint32_t lanes, const LaneEpochs& now) {
  writes_.meet(lanes, now);
  reads_.meet(lanes, now);
}

void LaneOrder::hear(uint32_t lanes, const LaneEpochs& before) {
  writes_.hear(lanes, before);
  reads_.hear(lanes, before);
}

void LaneOrder::hear_all(const LaneEpochs& before) {
  writes_.hear_all(before);
  reads_.hear_all(before);
}

std::optional<LaneOrder::Pair> LaneOrder::unordered(ShadowEntry earlier, ShadowEntry later,
                                                    const Stamp& by) const {
  const uint32_t actor = part(by), epoch = by.epoch;
  const LaneKnowledge& known = of(earlier.write());
  const LaneOwner before = earlier.owner(), now = later.owner();
  if (!before.known() || !now.known() || known.all_know(actor, epoch)) return std::nullopt;
  // Of lanes that write the same bytes at once nobody knows whose value stays; reports are kept to what is
  // sure.
  if (before.is_several() && (earlier.write() || now.is_several())) return std::nullopt;
  if (before == now) return std::nullopt;
  for (uint32_t rest = earlier.bytes() & later.bytes(); rest != 0; rest &= rest - 1) {
    const auto byte = static_cast<uint32_t>(std::countr_zero(rest));
    if (before.is_several()) {
      const int b = now.lane(byte);
      if (known.knows_any(static_cast<uint32_t>(b), actor, epoch) == false) return Pair{kSeveral, b};
    } else if (now.is_several()) {
      const auto a = static_cast<uint32_t>(before.lane(byte));
      for (uint32_t b = 0; b < 32; ++b)
        if (!known.knows(b, a, actor, epoch)) return Pair{static_cast<int>(a), static_cast<int>(b)};
    } else {
      const int a = before.lane(byte), b = now.lane(byte);
      if (!known.knows(static_cast<uint32_t>(b), static_cast<uint32_t>(a), actor, epoch)) return Pair{a, b};
    }
  }
  return std::nullopt;
}

bool LaneOrder::first_of(uint32_t members, uint32_t lanes) {
  if ((lanes & ~due_) == 0) {
    due_ &= ~lanes;
    return false;
  }
  due_ = (due_ | members) & ~lanes;
  return true;
}

}  // namespace tw::check
