#include "tests/machines/stepper.h"

#include <span>

#include "tilewright/base/error.h"
#include "tilewright/sim/grid.h"
#include "tilewright/sim/testing.h"

namespace tw::machines {

using namespace tw::sim;

std::string interpreter(const std::vector<std::string>& handlers, std::string_view declarations,
                        std::string_view arch) {
  std::string body = tw::format(
      ".reg .pred %act, %p; .reg .b32 %code, %lanes, %lane, %o<5>, %r, %ignored, %t<8>;\n"
      ".reg .b64 %at, %lists, %extra, %l<8>;\n"
      "ld.param.u64 %lists, [lists]; ld.param.u64 %extra, [extra];\n"
      "mov.u32 %lane, %laneid;\n{}\nmov.u32 %t0, %ctaid.x; mov.u32 %t1, %ntid.x; mov.u32 %t2, %tid.x;\n"
      "mad.lo.u32 %t0, %t0, %t1, %t2; shr.u32 %t0, %t0, 5; mov.u32 %r, 0;\n"
      "mad.wide.u32 %lists, %t0, 8, %lists; ld.global.u64 %at, [%lists];\n"
      "PAUSE: nanosleep.u32 0;\n"  // ends the warp's slice: it rests between two operations
      "HEAD: ld.global.v4.u32 {{%code, %lanes, %o0, %o1}}, [%at];\n"
      "ld.global.v4.u32 {{%o2, %o3, %o4, %ignored}}, [%at+16];\n"
      "add.u64 %at, %at, 32; shr.u32 %t0, %lanes, %lane; and.b32 %t0, %t0, 1; setp.ne.u32 %act, %t0, 0;\n"
      "TABLE: .branchtargets H0",
      declarations);
  for (size_t i = 1; i < handlers.size(); ++i) body += tw::format(", H{}", i);
  body += ";\nbrx.idx %code, TABLE;\n";
  for (size_t i = 0; i < handlers.size(); ++i) body += tw::format("H{}: {}\nbra DONE;\n", i, handlers[i]);
  body += "DONE: st.global.u32 [%at-4], %r; bra PAUSE;\n";
  return sim::testing::module_text(".param .u64 lists, .param .u64 extra", body, arch);
}

namespace {

struct Finished {};

class Stepper final : public Scheduler {
 public:
  Stepper(const Steps& steps, Outcome& outcome) : steps_(steps), outcome_(outcome) {}

  Action next(Cluster& cluster) override {
    if (head_ == 0) find_head(cluster);
    for (; started_ < cluster.warps.size(); ++started_) {
      if (Warp* warp = cluster.warps[started_]; !at_head(*warp)) return run(warp);
    }
    while (true) {
      if (under_way_) {
        if (Warp* warp = current(cluster); warp && !rests(*warp)) return run(warp);
        finish(cluster);
      }
      if (outcome_.done == steps_.count) throw Finished{};
      const int who = steps_.warp(outcome_.done);
      if (who < 0) {
        under_way_ = true;
        return steps_.act(cluster, outcome_.done);
      }
      Warp* warp = cluster.warps[static_cast<size_t>(who)];
      if (!warp->runnable()) differ(tw::format("warp {} is blocked or has exited", who));
      under_way_ = at_head(*warp) || steps_.resumes(outcome_.done);
      return run(warp);  // to the head first, if it comes out of a wait
    }
  }

 private:
  static Action run(Warp* warp) { return {Action::Kind::run, warp, 1000, nullptr, {}}; }
  Warp* current(const Cluster& cluster) const {
    const int who = steps_.warp(outcome_.done);
    return who < 0 ? nullptr : cluster.warps[static_cast<size_t>(who)];
  }
  void find_head(const Cluster& cluster) {
    const auto& source = cluster.grid.program.code.source;
    while (!source[head_] || source[head_]->text() != "ld.global.v4.u32") ++head_;
  }
  bool at_head(const Warp& warp) const {
    const auto& all = warp.fragments();
    return all.size() == 1 && all[0].pc == head_ && warp.runnable();
  }
  bool rests(const Warp& warp) const { return !warp.runnable() || at_head(warp); }
  [[noreturn]] void differ(std::string what) {
    outcome_.difference = std::move(what);
    throw Finished{};
  }
  void finish(Cluster& cluster) {
    under_way_ = false;
    if (std::string what = steps_.compare(cluster, outcome_.done); !what.empty()) differ(std::move(what));
    ++outcome_.done;
  }

  const Steps& steps_;
  Outcome& outcome_;
  uint32_t head_ = 0;
  size_t started_ = 0;  // warps that have been brought to the head
  bool under_way_ = false;
};

class Factory final : public SchedulerFactory {
 public:
  Factory(const Steps& steps, Outcome& outcome) : steps_(steps), outcome_(outcome) {}
  std::unique_ptr<Scheduler> make(Cluster&) override { return std::make_unique<Stepper>(steps_, outcome_); }

 private:
  const Steps& steps_;
  Outcome& outcome_;
};

}  // namespace

Outcome drive(const Program& program, const Shape& shape, GlobalMemory& memory,
              const std::vector<std::vector<Record>>& lists, const Steps& steps, Observer* observer) {
  Outcome outcome;
  std::vector<uint64_t> offsets;
  for (const auto& list : lists) {
    offsets.push_back(outcome.records.size() * sizeof(Record));
    outcome.records.insert(outcome.records.end(), list.begin(), list.end());
    outcome.records.emplace_back();  // what its warp would read next
  }
  const uint64_t records = memory.allocate(outcome.records.size() * sizeof(Record), "records");
  const uint64_t starts = memory.allocate(offsets.size() * 8, "lists");
  for (uint64_t& o : offsets) o += records;
  memory.write(records, std::as_bytes(std::span(outcome.records)));
  memory.write(starts, std::as_bytes(std::span(offsets)));

  Launch launch;
  launch.grid = launch.cluster = {shape.ctas, 1, 1};
  launch.block = {32 * shape.warps, 1, 1};
  launch.params = sim::testing::Params().add(starts).add(shape.extra).bytes();
  Factory factory(steps, outcome);
  RunOptions options;
  options.host_threads = 1;
  options.schedulers = &factory;
  options.observer = observer;
  try {
    program.run(launch, memory, options);
    outcome.exited = true;
  } catch (const Finished&) {
  } catch (const Error& e) {
    outcome.fault = e.message();
  }
  memory.read(records, std::as_writable_bytes(std::span(outcome.records)));
  memory.free(records);
  memory.free(starts);
  return outcome;
}

}  // namespace tw::machines
