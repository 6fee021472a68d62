#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tilewright/check/view.h"

// Words of memory that threads synchronise over: PTX ISA, "Release and Acquire Patterns".
namespace tw::check {

// What a strong write hands to those who observe it.
struct Handed {
  uint64_t cluster = 0;
  uint32_t actor = 0, rank = 0;  // of the writer; its CTA in the cluster
  Scope scope = Scope::none;     // of the whole release pattern
  uint32_t pc = 0;
  View view;
  Elsewhere elsewhere;  // the same, for other clusters
};

class Flags {
 public:
  using Entry = std::shared_ptr<const Handed>;

  bool empty() const {
    std::lock_guard lock(mutex_);
    return words_.empty();
  }
  // A strong write. `continues`: a read-modify-write, behind which earlier writes of others are still
  // observed
  // ("Observation Order"); any other write ends what others handed over here.
  void write(uint64_t word, const std::vector<Entry>& handed, bool continues, uint64_t cluster,
             uint32_t actor) {
    std::lock_guard lock(mutex_);
    if (handed.empty() && words_.empty()) return;
    const auto at = words_.find(word);
    if (at == words_.end()) {
      if (!handed.empty()) words_[word] = handed;
      return;
    }
    auto& all = at->second;
    if (!continues)
      std::erase_if(all, [&](const Entry& e) { return e->cluster != cluster || e->actor != actor; });
    for (const Entry& h : handed) {
      std::erase_if(all, [&](const Entry& e) {
        return e->cluster == h->cluster && e->actor == h->actor && e->scope == h->scope;
      });
      all.push_back(h);
    }
  }
  std::vector<Entry> read(uint64_t word) const {
    std::lock_guard lock(mutex_);
    const auto at = words_.find(word);
    return at == words_.end() ? std::vector<Entry>() : at->second;
  }

 private:
  mutable std::mutex mutex_;  // clusters run on several host threads
  std::unordered_map<uint64_t, std::vector<Entry>> words_;
};

}  // namespace tw::check
