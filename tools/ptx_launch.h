#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/ptx/debug_map.h"
#include "tilewright/ptx/module.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/reference.h"
#include "tilewright/sim/simulator.h"
#include "tilewright/sim/tensor_map.h"

// How an entry of a foreign PTX module is launched, as a launch file says it: docs/foreign-ptx.md has the
// format.
namespace tw::tools {

// What a buffer holds before the launch.
struct Initialiser {
  enum class Kind { none, zeros, ones, iota, random, values, file } kind = Kind::none;  // none: poison
  uint64_t seed = 0;                                                                    // random
  double start = 0, step = 1;                                                           // iota
  std::optional<int64_t> low, high;  // random integers; else all of the type
  std::vector<double> numbers;       // values: repeated to fill the buffer
  std::string path;                  // file
};

// What a buffer must hold after it.
struct Expectation {
  SourceLoc loc;
  std::string file, buffer;     // one of them
  std::vector<double> numbers;  // or these, repeated
  double tolerance = 0;         // of the relative Frobenius error; 0: every element is the same
};

struct BufferSpec {
  SourceLoc loc;
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;    // logical
  std::vector<int64_t> strides;  // elements, one for each dimension
  Initialiser init;
  bool print = false;
  std::string keep;  // file to write; empty: none
  std::optional<Expectation> expect;
  // What the grid before a dependent launch may still do with it.
  enum class GridBefore { nothing, reads, writes } grid_before = GridBefore::nothing;

  int64_t elements() const;  // of the shape
  int64_t extent() const;    // elements from the first to the last one, with gaps
  bool dense() const;        // row-major without gaps
};

struct ScalarArgument {
  std::variant<int64_t, double> value;
};
struct BufferArgument {
  std::string buffer;
  int64_t offset = 0;  // bytes
};
struct BytesArgument {
  std::vector<std::byte> bytes;
};
struct TensorMapArgument {
  std::string buffer;
  sim::TensorMapSpec spec;  // without its address
};

struct ArgumentSpec {
  SourceLoc loc;
  std::string parameter;  // empty, or the name that the entry's parameter must have
  std::variant<ScalarArgument, BufferArgument, BytesArgument, TensorMapArgument> value;
};

struct LaunchSpec {
  SourceLoc loc;
  std::string entry;  // empty: the module's only one
  sim::Dim3 grid, block, cluster;
  bool has_cluster = false, has_block = false;
  uint32_t dynamic_shared = 0;
  bool dependent = false;  // programmatic dependent launch
  std::vector<BufferSpec> buffers;
  std::vector<ArgumentSpec> arguments;
  ptx::DebugMap names;

  const BufferSpec* find(std::string_view buffer) const;
};

// Reads a launch file; paths in it start from the folder that it lies in. User errors name the line and what
// is expected there.
LaunchSpec parse_launch(std::string_view text, const std::string& file_name);

// Appends an argument in the form of the command line: "42", "f32[128, 64]=random:7" (a new buffer, called
// `name`), or an object as in a launch file.
void add_argument(LaunchSpec& launch, const std::string& text, const std::string& name);

// The entry that `name` calls for; a user error that lists those that exist.
const ptx::Function& find_entry(const ptx::Module& module, std::string_view name, const SourceLoc& loc);

// The simulated device that the module's .target is for.
std::string default_device(const ptx::Module& module);

// A launch with its memory on a device.
struct BoundLaunch {
  const ptx::Function* entry = nullptr;
  sim::Launch launch;
  std::vector<Tensor> buffers;  // in the order of LaunchSpec::buffers; flat, extent() elements each
  std::vector<Tensor> maps;     // tensor maps that parameters point to
  std::optional<DependentLaunch> dependent;  // for LaunchOptions
};
// Allocates and fills the buffers, encodes tensor maps, packs the parameters. User errors: a module that
// ptx::verify refuses, arguments that do not match the entry's parameters, a pointer that is less aligned
// than its parameter says.
BoundLaunch bind_launch(const LaunchSpec& spec, const ptx::Module& module, Device& device);

// What a launch left in a buffer.
struct BufferOutcome {
  const BufferSpec* spec = nullptr;
  std::vector<double> values;            // logical, row-major
  std::vector<double> expected;          // the same, where something was
  std::optional<Comparison> comparison;  // where something was expected
  int64_t different = 0;                 // elements that are not the expected ones bit for bit
  int64_t first_different = 0;
  uint64_t first_unwritten = 0;  // byte, where comparison->unwritten is not 0

  bool good() const;
  std::string verdict() const;  // one line; of one that was compared
};
// Reads back the buffers that are to be printed, kept or compared; compares them and writes the files to
// keep.
std::vector<BufferOutcome> judge(const LaunchSpec& spec, const BoundLaunch& bound);

// "reduce(float const*, float*, int)" for "_Z6reducePKfPfi"; the name itself where it is not mangled.
std::string demangled(const std::string& name);
// What a parameter is: ".u64 .ptr .global .align 16 reduce_param_0".
std::string parameter_text(const ptx::Variable& parameter);
// A launch file for `entry`, to fill in: types, sizes and launch extents as far as the text of the entry
// tells.
std::string launch_template(const ptx::Function& entry);

}  // namespace tw::tools
