#include "tilewright/sim/block_order.h"

#include <algorithm>

namespace tw::sim {

namespace {

struct Block {
  uint32_t begin = 0, end = 0;
  std::vector<uint32_t> successors;
};

std::vector<Block> basic_blocks(const std::vector<Successors>& code) {
  const auto n = static_cast<uint32_t>(code.size());
  std::vector<char> leader(n + 1, 0);
  if (n) leader[0] = 1;
  for (uint32_t pc = 0; pc < n; ++pc) {
    for (uint32_t t : code[pc].targets) leader[t] = 1;
    if (!code[pc].targets.empty() || !code[pc].falls_through) leader[pc + 1] = 1;
  }
  std::vector<Block> blocks;
  std::vector<uint32_t> block_of(n);
  for (uint32_t pc = 0; pc < n; ++pc) {
    if (leader[pc]) blocks.push_back({pc, pc, {}});
    blocks.back().end = pc + 1;
    block_of[pc] = static_cast<uint32_t>(blocks.size()) - 1;
  }
  for (Block& b : blocks) {
    const Successors& last = code[b.end - 1];
    if (last.falls_through && b.end < n) b.successors.push_back(block_of[b.end]);
    for (uint32_t t : last.targets) b.successors.push_back(block_of[t]);
  }
  return blocks;
}

// Bourdoncle's algorithm: Tarjan's strongly connected components, applied again inside each component without
// its head. Written with an explicit stack, because unrolled kernels have thousands of blocks.
class WeakTopologicalOrder {
 public:
  explicit WeakTopologicalOrder(const std::vector<Block>& blocks)
      : blocks_(blocks), component_(blocks.size(), 0) {}

  std::vector<uint32_t> order() {
    std::vector<uint32_t> all(blocks_.size());
    for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    // Components are emitted last to first; a component of several blocks is its head, then the order of the
    // rest.
    struct Task {
      std::vector<uint32_t> members;
    };
    std::vector<Task> tasks;
    tasks.push_back({std::move(all)});
    std::vector<uint32_t> result;
    while (!tasks.empty()) {
      Task task = std::move(tasks.back());
      tasks.pop_back();
      if (task.members.size() == 1) {
        result.push_back(task.members.front());
        continue;
      }
      auto parts = components(task.members);  // in reverse topological order: the last runs first
      for (auto& part : parts) {
        if (part.size() == 1) {
          tasks.push_back({std::move(part)});
          continue;
        }
        std::vector<uint32_t> rest(part.begin() + 1, part.end());
        tasks.push_back({std::move(rest)});
        tasks.push_back({{part.front()}});
      }
    }
    return result;
  }

  // Strongly connected components of the whole graph: its outermost loops, and single blocks.
  std::vector<std::vector<uint32_t>> outermost() {
    std::vector<uint32_t> all(blocks_.size());
    for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    return components(all);
  }

 private:
  // Strongly connected components of the subgraph of `members`, in reverse topological order; in each the
  // block through which depth-first search entered comes first. members.front() is searched first.
  std::vector<std::vector<uint32_t>> components(const std::vector<uint32_t>& members) {
    const uint32_t mark = ++generation_;
    for (uint32_t m : members) component_[m] = mark;
    index_.assign(blocks_.size(), 0);
    low_.assign(blocks_.size(), 0);
    on_stack_.assign(blocks_.size(), 0);
    uint32_t counter = 0;
    std::vector<std::vector<uint32_t>> result;
    std::vector<uint32_t> stack;
    struct Frame {
      uint32_t block;
      size_t next;
    };
    std::vector<Frame> frames;
    for (uint32_t root : members) {
      if (index_[root]) continue;
      frames.push_back({root, 0});
      while (!frames.empty()) {
        Frame& f = frames.back();
        const uint32_t v = f.block;
        if (f.next == 0) {
          index_[v] = low_[v] = ++counter;
          stack.push_back(v);
          on_stack_[v] = 1;
        }
        bool descended = false;
        while (f.next < blocks_[v].successors.size()) {
          const uint32_t w = blocks_[v].successors[f.next++];
          if (component_[w] != mark) continue;
          if (!index_[w]) {
            frames.push_back({w, 0});
            descended = true;
            break;
          }
          if (on_stack_[w]) low_[v] = std::min(low_[v], index_[w]);
        }
        if (descended) continue;
        if (low_[v] == index_[v]) {
          std::vector<uint32_t> part;
          while (true) {
            const uint32_t w = stack.back();
            stack.pop_back();
            on_stack_[w] = 0;
            part.push_back(w);
            if (w == v) break;
          }
          std::reverse(part.begin(), part.end());
          result.push_back(std::move(part));
        }
        frames.pop_back();
        if (!frames.empty()) low_[frames.back().block] = std::min(low_[frames.back().block], low_[v]);
      }
    }
    return result;
  }

  const std::vector<Block>& blocks_;
  std::vector<uint32_t> component_, index_, low_;
  std::vector<char> on_stack_;
  uint32_t generation_ = 0;
};

}  // namespace

std::vector<uint32_t> block_order(const std::vector<Successors>& instructions) {
  const std::vector<Block> blocks = basic_blocks(instructions);
  std::vector<uint32_t> position(instructions.size());
  uint32_t next = 0;
  for (uint32_t b : WeakTopologicalOrder(blocks).order()) {
    for (uint32_t pc = blocks[b].begin; pc < blocks[b].end; ++pc) position[pc] = next++;
  }
  return position;
}

std::vector<uint32_t> outermost_loops(const std::vector<Successors>& instructions) {
  const std::vector<Block> blocks = basic_blocks(instructions);
  std::vector<uint32_t> loop(instructions.size());
  uint32_t number = 0;
  for (const auto& component : WeakTopologicalOrder(blocks).outermost()) {
    for (uint32_t b : component)
      std::fill(loop.begin() + blocks[b].begin, loop.begin() + blocks[b].end, number);
    ++number;
  }
  return loop;
}

}  // namespace tw::sim
