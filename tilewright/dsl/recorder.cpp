#include "tilewright/dsl/recorder.h"

#include "tilewright/base/error.h"

namespace tw::dsl {
namespace {
thread_local Recorder recorder;
thread_local bool recording = false;
}  // namespace

void Recorder::open(ir::Kernel& kernel, const SourceLoc& loc) {
  if (recording) {
    throw Error(ErrorKind::user, loc, "another kernel is being built on this thread; finish it first",
                {{recorder.kernel_->loc, "it begins here"}});
  }
  recording = true;
  recorder.kernel_ = &kernel;
  recorder.open_ = {&kernel.body};
}

void Recorder::close() { recording = false; }

Recorder& Recorder::current(const SourceLoc& loc) {
  if (!recording) user_error(loc, "no kernel is being built here: create a KernelBuilder first");
  return recorder;
}

void Recorder::add(decltype(ir::Stmt::node) node, const SourceLoc& loc) {
  open_.back()->push_back({std::move(node), loc});
}

std::shared_ptr<ir::Block> Recorder::block(const std::function<void()>& body) {
  auto b = std::make_shared<ir::Block>();
  open_.push_back(b.get());
  body();
  open_.pop_back();
  return b;
}

}  // namespace tw::dsl
