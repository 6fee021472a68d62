#pragma once
#include <functional>
#include <source_location>
#include <string_view>

#include "tilewright/ir/kernel.h"

// Where the language's calls go: the block that is open on this host thread.
namespace tw::dsl {

class Recorder {
 public:
  // Opens and closes recording for a kernel.
  static void open(ir::Kernel& kernel, const SourceLoc& loc);
  static void close();

  // The recorder in use; a user error when no KernelBuilder is alive.
  static Recorder& current(const SourceLoc& loc);

  void add(decltype(ir::Stmt::node) node, const SourceLoc& loc);
  // Records what `body` does into a block of its own.
  std::shared_ptr<ir::Block> block(const std::function<void()>& body);
  ir::Kernel& kernel() { return *kernel_; }

 private:
  ir::Kernel* kernel_ = nullptr;
  std::vector<ir::Block*> open_;
};

}  // namespace tw::dsl
