#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What the machine that tw runs on has.
namespace tw::tools {

struct Cpu {
  std::string model;
  int usable_cores = 0;           // those this process may run on
  std::vector<std::string> simd;  // of the instruction sets that matter to the simulator
  std::vector<std::string> simd_lack;
};
Cpu host_cpu();

uint64_t host_memory_bytes();       // installed
uint64_t host_free_memory_bytes();  // available to new processes

// "580.159.03, CUDA 13.0": the NVIDIA driver and the newest CUDA that it serves; empty where there is none.
std::string nvidia_driver();

// Where a program lies: on PATH, else in one of `more`.
std::optional<std::string> find_program(const std::string& name, const std::vector<std::string>& more = {});
// The first line that `path --version` prints and that contains `with`.
std::string program_version(const std::string& path, const std::string& with = "");

}  // namespace tw::tools
