#pragma once
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tilewright/check/history.h"
#include "tilewright/ptx/module.h"

// Loads of tensor memory that a warp does not wait for, but whose values it uses. "Register dependencies,
// same thread": who reads a register that tcgen05.ld fills gets the loaded value without tcgen05.wait::ld;
// that orders no memory access behind the load.
namespace tw::check {

struct RegisterUses {
  std::vector<uint32_t> read, written;
  bool copies = false;  // it only hands values on (mov)
};

// Of the instructions of a program, found when first asked for.
class RegisterTable {
 public:
  const RegisterUses& of(uint32_t pc, const ptx::Instruction& inst);

 private:
  std::unordered_map<uint32_t, RegisterUses> of_;
};

// Those of one warp.
class UnwaitedLoads {
 public:
  // Each of `lanes` loads into these registers.
  void issued(std::shared_ptr<Operation> load, const std::vector<uint32_t>& registers, uint32_t lanes);
  // Executed by `lanes`. A load all of whose values have been read is used `now`; a copy of a value reads
  // nothing, it is read where the copy is. Answers a load that may still fill a register which is written
  // here: nothing has touched the value, so nothing shows that it has come.
  std::shared_ptr<const Operation> executed(const RegisterUses& uses, uint32_t lanes, Moment now);
  void waited() { values_.clear(); }
  bool any() const { return !values_.empty(); }

 private:
  struct Load {
    std::shared_ptr<Operation> operation;
    std::vector<uint32_t> unread;     // by value: in which lanes
    std::vector<uint32_t> untouched;  // neither read nor copied
    size_t values_left;
  };
  // A register holds this value of a load, in these lanes.
  struct Value {
    std::shared_ptr<Load> load;
    size_t index;
    uint32_t lanes;
  };
  void read(uint32_t reg, uint32_t lanes, Moment now);
  std::shared_ptr<const Operation> overwrite(uint32_t reg, uint32_t lanes);
  void forget(const Load* load);

  std::unordered_map<uint32_t, std::vector<Value>> values_;  // by register
};

}  // namespace tw::check
