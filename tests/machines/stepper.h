#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/sim/cluster.h"
#include "tilewright/sim/scheduler.h"

// Drives the simulator one operation of one warp at a time, through PTX: a kernel whose warps carry out what
// lists in memory tell them.
namespace tw::machines {

// What one warp does once. `result` is where the kernel leaves what its handler put into %r.
struct Record {
  uint32_t code = 0;   // which handler
  uint32_t lanes = 0;  // those for which %act holds in the handler
  std::array<uint32_t, 5> operands{};
  uint32_t result = 0;
};

// The kernel. Handler i is PTX text that may use the operands %o0 to %o4, the predicates %act and %p, the
// lane %lane, 32-bit %r and %t<8>, 64-bit %l<8>, and what `declarations` has. Its parameter `extra` is in
// %extra.
std::string interpreter(const std::vector<std::string>& handlers, std::string_view declarations,
                        std::string_view arch);

// How a sequence of operations is carried out and compared.
struct Steps {
  size_t count = 0;
  // The warp of the cluster that carries out operation i; -1: `act` says what happens instead.
  std::function<int(size_t)> warp;
  // Operation i is the rest of one that its warp was blocked in.
  std::function<bool(size_t)> resumes = [](size_t) { return false; };
  std::function<sim::Action(sim::Cluster&, size_t)> act = {};
  // After each operation: "" or what differs from the reference.
  std::function<std::string(sim::Cluster&, size_t)> compare;
};

struct Outcome {
  std::string difference;       // of Steps::compare; "" if there was none
  std::string fault;            // the simulator's message, if it stopped
  bool exited = false;          // all warps exited; the operation that did it is not in `done`
  size_t done = 0;              // operations that were carried out
  std::vector<Record> records;  // with results, in the order of `lists`
};

struct Shape {
  uint32_t ctas = 1, warps = 1;  // of the cluster, of a CTA
  uint64_t extra = 0;            // the kernel's %extra
};

// lists[w]: of warp w of the cluster, in order.
Outcome drive(const sim::Program& program, const Shape& shape, sim::GlobalMemory& memory,
              const std::vector<std::vector<Record>>& lists, const Steps& steps,
              sim::Observer* observer = nullptr);

}  // namespace tw::machines
