#pragma once
#include <cstdint>
#include <vector>

#include "tilewright/ptx/module.h"

// PTX ISA, "Memory Consistency Model": which threads a strong operation may synchronise with, and how.
namespace tw::check {

enum class Scope : uint8_t { none, cta, cluster, gpu };  // gpu: .sys too
constexpr size_t kFenceScopes = 3;                       // all but none
const char* name(Scope s);                               // ".cta"

// What an instruction is to the memory model: a load, store, atomic, fence or barrier operation.
struct Semantics {
  bool strong = false;  // volatile, or with an order and a scope
  bool is_volatile = false;
  bool acquires = false, releases = false;
  bool observes = false;  // a strong read that may begin an acquire pattern: not `red`
  Scope scope = Scope::none;
};
Semantics semantics(const ptx::Instruction& inst);

// The same, found once for each instruction of a program.
class SemanticsTable {
 public:
  const Semantics& of(uint32_t pc, const ptx::Instruction& inst) {
    if (known_.size() <= pc) known_.resize(pc + 1), table_.resize(pc + 1);
    if (!known_[pc]) known_[pc] = 1, table_[pc] = semantics(inst);
    return table_[pc];
  }

 private:
  std::vector<uint8_t> known_;
  std::vector<Semantics> table_;
};

}  // namespace tw::check
