#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/sim/simulator.h"
#include "tilewright/sim/tensor_map.h"

// A conformance case: a PTX module with inputs, and the outputs a GPU gave for them. README.md describes the
// files.
namespace tw::conformance {

// An array's element type: the kind decides how its text reads, the width how its bytes do.
struct Element {
  enum class Kind { bits, unsigned_integer, signed_integer, floating } kind = Kind::bits;
  int bits = 32;  // 8, 16, 32 or 64; floating: 32 or 64
  int bytes() const { return bits / 8; }
};
Element element_from_name(std::string_view name);  // "b32", "s8", "f64"; user error for any other

// Elements are bit patterns in the low bits.
using Elements = std::vector<uint64_t>;

// Text of an array ("1 2*3 0x7fc00000" over several lines) to elements and back. Encoding breaks lines at 100
// columns. User error: a token that is no value of the type.
Elements decode(Element type, std::span<const std::string> lines);
std::vector<std::string> encode(Element type, std::span<const uint64_t> elements);
std::string token_of(Element type, uint64_t bits);

// Mixes a counter to 64 random bits: element `n` of the SplitMix64 sequence of seed 0, counted from 1
// (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
uint64_t splitmix64(uint64_t n);

// |got - want| <= relative * |want| + absolute; NaN for NaN; equal infinities.
struct Tolerance {
  double relative = 0, absolute = 0;
};

struct Array {
  std::string name;
  Element type;
  uint64_t count = 0;
  std::optional<Elements> contents = {};    // an input's values, or an output's initial ones
  std::optional<Tolerance> tolerance = {};  // outputs; none: bit for bit
  std::optional<Elements> expected = {};    // outputs, once recorded
  uint64_t bytes() const { return count * static_cast<uint64_t>(type.bytes()); }
};

std::vector<std::byte> to_bytes(Element type, std::span<const uint64_t> elements);
Elements from_bytes(Element type, std::span<const std::byte> bytes);

// A tensor map parameter: which array it describes, and how. The address is filled in when the array has one.
struct Map {
  std::string array;
  sim::TensorMapSpec spec = {};
};

struct Case {
  std::string name;      // "wgmma/f16_128_kk"
  std::string ptx_path;  // for messages
  std::string ptx;
  std::string entry;
  sim::Launch launch = {};  // without parameters
  std::vector<Array> inputs = {}, outputs = {};
  std::vector<Map> maps = {};  // parameters after those of the arrays
  std::string breaks = {};     // the rule the case breaks, as the simulator words it; empty for most
  std::string fault =
      {};  // the driver's error where the GPU faulted; then nothing is expected of the outputs
  bool recorded() const;
};

std::vector<std::string> case_names(const std::string& root);
Case load_case(const std::string& root, const std::string& name);

// Where `got` differs from what is expected: "d[3] is 5, expected 4 (2 of 64 differ)"; empty when it does
// not.
std::string mismatch(const Array& output, const Elements& got);

struct Recording {
  std::string device, driver, date;
};
// Writes the outputs of a run as the expected values into the case's JSON file.
void record_case(const std::string& root, const std::string& name, std::span<const Elements> outputs,
                 const Recording& recording);

}  // namespace tw::conformance
