#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/ptx/verify.h"
#include "tools/ptx_launch.h"
#include "tools/ptx_values.h"

// Launch descriptions on a device: memory, parameters, results.
namespace tw::tools {
namespace {

bool is_float_type(ptx::Type t) { return t == ptx::Type::f16 || t == ptx::Type::f32 || t == ptx::Type::f64; }

// What the module's compiler took for granted of a pointer: the N of ".ptr .global .align N".
uint64_t pointee_alignment(const ptx::Variable& parameter) {
  constexpr std::string_view key = ".align ";
  for (const std::string& a : parameter.attributes) {
    if (!a.starts_with(".ptr")) continue;
    const size_t at = a.find(key);
    uint64_t align = 1;
    if (at != a.npos) std::from_chars(a.data() + at + key.size(), a.data() + a.size(), align);
    return std::max<uint64_t>(align, 1);
  }
  return 1;
}

// Writes one argument into its place in the parameter block.
class Packer {
 public:
  Packer(const LaunchSpec& spec, Device& device, BoundLaunch& bound)
      : spec_(spec), device_(device), bound_(bound) {}

  void pack(const ArgumentSpec& argument, const ptx::Variable& parameter, std::byte* to) {
    argument_ = &argument, parameter_ = &parameter, to_ = to;
    if (!argument.parameter.empty() && argument.parameter != parameter.name)
      user_error(argument.loc,
                 "the argument is for parameter '{}', but the entry's parameter in this place is '{}'",
                 argument.parameter, parameter.name);
    std::visit([this](const auto& v) { put(v); }, argument.value);
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    user_error(argument_->loc, "parameter '{}' ({}): {}", parameter_->name, parameter_text(*parameter_),
               tw::vformat(text, fmt::make_format_args(args...)));
  }

  void put(const ScalarArgument& scalar) {
    if (parameter_->is_array) refuse("a number cannot fill an array; give its \"bytes\"");
    const auto width = static_cast<size_t>(ptx::bytes(parameter_->type));
    if (is_float_type(parameter_->type)) return put_float(scalar, width);
    const auto* value = std::get_if<int64_t>(&scalar.value);
    if (!value) refuse("it takes an integer, given {}", std::get<double>(scalar.value));
    const int unused = 64 - static_cast<int>(width) * 8;
    // PTX types of parameters do not tell signed from unsigned: an int is .u32 too.
    const bool fits = unused <= 0 || (*value << unused) >> unused == *value ||
                      static_cast<int64_t>((static_cast<uint64_t>(*value) << unused) >> unused) == *value;
    if (!fits) refuse("{} bits cannot hold {}", width * 8, *value);
    std::memcpy(to_, value, std::min<size_t>(width, 8));
  }

  void put_float(const ScalarArgument& scalar, size_t width) {
    const double value = std::visit([](auto number) { return static_cast<double>(number); }, scalar.value);
    if (width == 8) {
      std::memcpy(to_, &value, width);
      return;
    }
    const DType type = width == 4 ? DType::f32 : DType::f16;
    const uint32_t code = from_double(type, value);
    if (std::isfinite(value) && !std::isfinite(to_double(type, code))) refuse("it cannot hold {}", value);
    std::memcpy(to_, &code, width);
  }

  void put(const BufferArgument& argument) {
    if (parameter_->size_bytes() != 8)
      refuse("it has no room for the address of buffer '{}'", argument.buffer);
    const Tensor& tensor = find(argument.buffer);
    if (static_cast<uint64_t>(argument.offset) >= tensor.bytes())
      refuse("offset {} lies past the {} bytes of buffer '{}'", argument.offset, tensor.bytes(),
             argument.buffer);
    const uint64_t address = tensor.address() + static_cast<uint64_t>(argument.offset);
    if (const uint64_t align = pointee_alignment(*parameter_); address % align != 0)
      refuse("its address must be a multiple of {}, buffer '{}' plus {} bytes is at {:#x}", align,
             argument.buffer, argument.offset, address);
    std::memcpy(to_, &address, sizeof address);
  }

  void put(const BytesArgument& argument) {
    if (argument.bytes.size() != parameter_->size_bytes())
      refuse("it takes {} bytes, given {}", parameter_->size_bytes(), argument.bytes.size());
    std::memcpy(to_, argument.bytes.data(), argument.bytes.size());
  }

  void put(const TensorMapArgument& argument) {
    sim::TensorMapSpec map = argument.spec;
    const Tensor& tensor = find(argument.buffer);
    map.address = tensor.address();
    uint64_t reach = map.element_bytes();
    for (uint32_t i = 0; i < map.rank; ++i) reach += (map.dims[i] - 1) * map.strides[i];
    if (reach > tensor.bytes())
      refuse("the map's dimensions and strides reach over {} bytes, buffer '{}' has {}", reach,
             argument.buffer, tensor.bytes());
    const sim::TensorMapObject object = device_.tensor_map(map);
    if (parameter_->size_bytes() == object.size()) {
      if (parameter_->alignment() % sim::kTensorMapAlign != 0)
        refuse("a tensor map needs a parameter aligned to {} bytes", sim::kTensorMapAlign);
      std::memcpy(to_, object.data(), object.size());
      return;
    }
    if (parameter_->size_bytes() != 8) refuse("it takes no tensor map, which has {} bytes", object.size());
    Tensor holder = device_.tensor(DType::u8, {static_cast<int64_t>(object.size())},
                                   format("tensor map of {}", argument.buffer));
    holder.upload(std::span<const std::byte>(object));
    const uint64_t address = holder.address();
    std::memcpy(to_, &address, sizeof address);
    bound_.maps.push_back(std::move(holder));
  }

  const Tensor& find(const std::string& buffer) const {
    const auto at = static_cast<size_t>(spec_.find(buffer) - spec_.buffers.data());
    return bound_.buffers[at];
  }

  const LaunchSpec& spec_;
  Device& device_;
  BoundLaunch& bound_;
  const ArgumentSpec* argument_ = nullptr;
  const ptx::Variable* parameter_ = nullptr;
  std::byte* to_ = nullptr;
};

Tensor make_buffer(const BufferSpec& spec, Device& device) {
  Tensor tensor = device.tensor(spec.dtype, {spec.extent()}, spec.name);
  tensor.poison();
  const std::vector<std::byte> logical = [&] {
    try {
      return initial_bytes(spec);
    } catch (const Error& e) {
      if (e.loc()) throw;
      throw Error(e.kind(), spec.loc, format("buffer '{}': {}", spec.name, e.message()));
    }
  }();
  if (logical.empty()) return tensor;
  tensor.upload(std::span<const std::byte>(scatter(spec, logical, std::vector<std::byte>(tensor.bytes()))));
  return tensor;
}

// The extents that the entry itself prescribes, where the description leaves them out.
void prescribe(const ptx::Function& entry, std::string_view directive, bool given, sim::Dim3& extents) {
  const std::vector<int64_t> v = entry.directive(directive);
  if (given || v.empty()) return;
  const auto extent = [&](size_t axis) { return axis < v.size() ? static_cast<uint32_t>(v[axis]) : 1; };
  extents = {extent(0), extent(1), extent(2)};
}

DependentLaunch dependent_launch(const LaunchSpec& spec, const std::vector<Tensor>& buffers) {
  using Use = BufferSpec::GridBefore;
  DependentLaunch out;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (spec.buffers[i].grid_before == Use::writes) out.written_before.push_back(buffers[i]);
    if (spec.buffers[i].grid_before == Use::reads) out.read_before.push_back(buffers[i]);
  }
  return out;
}

void check_count(const LaunchSpec& spec, const ptx::Function& entry) {
  if (spec.arguments.size() == entry.params.size()) return;
  std::string list;
  for (const ptx::Variable& p : entry.params)
    list += format("{}{}", list.empty() ? "" : "; ", parameter_text(p));
  user_error(spec.loc, "entry {} has {} parameter{} ({}), the launch gives {}", entry.name,
             entry.params.size(), entry.params.size() == 1 ? "" : "s", list.empty() ? "none" : list,
             spec.arguments.size());
}

// ---- results ----

std::vector<std::byte> read_back(const BufferSpec& spec, const Tensor& tensor) {
  return gather(spec, tensor.download());
}

void compare_bits(BufferOutcome& outcome, const std::vector<std::byte>& given,
                  const std::vector<std::byte>& wanted) {
  const int width = bits(outcome.spec->dtype);
  for (size_t i = 0; i < outcome.values.size(); ++i) {
    bool same;
    if (width < 8) {
      same = outcome.values[i] == outcome.expected[i];
    } else {
      const size_t bytes = static_cast<size_t>(width) / 8;
      same = std::memcmp(&given[i * bytes], &wanted[i * bytes], bytes) == 0;
    }
    if (same || outcome.different++ > 0) continue;
    outcome.first_different = static_cast<int64_t>(i);
  }
}

std::vector<std::byte> wanted_bytes(const LaunchSpec& spec, const BoundLaunch& bound,
                                    const BufferSpec& buffer) {
  const Expectation& expect = *buffer.expect;
  if (!expect.file.empty()) return read_values(expect.file, buffer.dtype, buffer.elements(), expect.loc);
  if (!expect.numbers.empty()) {
    std::vector<double> values(static_cast<size_t>(buffer.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = expect.numbers[i % expect.numbers.size()];
    return encode_values(buffer.dtype, values);
  }
  const BufferSpec& other = *spec.find(expect.buffer);
  std::vector<std::byte> bytes =
      read_back(other, bound.buffers[static_cast<size_t>(&other - spec.buffers.data())]);
  if (other.dtype == buffer.dtype) return bytes;
  return encode_values(buffer.dtype, decode_values(other.dtype, bytes, other.elements()));
}

}  // namespace

const ptx::Function& find_entry(const ptx::Module& module, std::string_view name, const SourceLoc& loc) {
  const std::vector<const ptx::Function*> all = module.entries();
  if (all.empty()) user_error(loc, "{} has no entry", module.name);
  if (name.empty() && all.size() == 1) return *all.front();
  std::vector<const ptx::Function*> found;
  std::string known;
  for (const ptx::Function* f : all) {
    const std::string plain = demangled(f->name);
    if (f->name == name || plain == name || plain.substr(0, plain.find('(')) == name) found.push_back(f);
    known += format("{}{}", known.empty() ? "" : ", ", f->name);
  }
  if (found.size() == 1) return *found.front();
  if (name.empty()) user_error(loc, "{} has {} entries, say which: {}", module.name, all.size(), known);
  if (found.empty()) user_error(loc, "{} has no entry '{}'; it has {}", module.name, name, known);
  user_error(loc, "{} has {} entries '{}', give the whole name: {}", module.name, found.size(), name, known);
}

std::string default_device(const ptx::Module& module) {
  if (module.arch().starts_with("sm_103")) return "sim:b300";
  return module.arch().starts_with("sm_9") ? "sim:h200" : "sim:b200";
}

BoundLaunch bind_launch(const LaunchSpec& spec, const ptx::Module& module, Device& device) {
  ptx::verify(module);
  BoundLaunch bound;
  bound.entry = &find_entry(module, spec.entry, spec.loc);
  const ptx::Function& entry = *bound.entry;
  check_count(spec, entry);
  for (const BufferSpec& b : spec.buffers) bound.buffers.push_back(make_buffer(b, device));
  bound.launch = {.grid = spec.grid,
                  .block = spec.block,
                  .cluster = spec.cluster,
                  .dynamic_shared = spec.dynamic_shared,
                  .params = {}};
  if (spec.dependent) bound.dependent = dependent_launch(spec, bound.buffers);
  prescribe(entry, "reqntid", spec.has_block, bound.launch.block);
  prescribe(entry, "reqnctapercluster", spec.has_cluster, bound.launch.cluster);
  const std::vector<uint32_t> offsets = ptx::parameter_offsets(entry);
  if (!offsets.empty()) bound.launch.params.resize(offsets.back() + entry.params.back().size_bytes());
  Packer packer(spec, device, bound);
  for (size_t i = 0; i < offsets.size(); ++i)
    packer.pack(spec.arguments[i], entry.params[i], bound.launch.params.data() + offsets[i]);
  return bound;
}

bool BufferOutcome::good() const {
  if (!comparison) return true;
  if (spec->expect->tolerance == 0) return different == 0 && comparison->unwritten == 0;
  return comparison->good(spec->expect->tolerance);
}

std::string BufferOutcome::verdict() const {
  const std::string_view word = good() ? "right" : "WRONG";
  if (spec->expect->tolerance != 0)
    return format("{}: {} (tolerance {:g})", word, to_string(*comparison), spec->expect->tolerance);
  std::string text = format("{}: ", word);
  if (different == 0) {
    text += format("all {} elements are the expected ones", values.size());
  } else {
    text += format("{} of {} elements differ, the first at {}: {} for {}", different, values.size(),
                   first_different, values[static_cast<size_t>(first_different)],
                   expected[static_cast<size_t>(first_different)]);
  }
  if (comparison->unwritten) text += format(", {} bytes were never written", comparison->unwritten);
  return text;
}

std::vector<BufferOutcome> judge(const LaunchSpec& spec, const BoundLaunch& bound) {
  std::vector<BufferOutcome> out;
  for (size_t i = 0; i < spec.buffers.size(); ++i) {
    const BufferSpec& buffer = spec.buffers[i];
    if (!buffer.print && buffer.keep.empty() && !buffer.expect) continue;
    const std::vector<std::byte> bytes = read_back(buffer, bound.buffers[i]);
    BufferOutcome o;
    o.spec = &buffer;
    o.values = decode_values(buffer.dtype, bytes, buffer.elements());
    if (buffer.expect) {
      const std::vector<std::byte> wanted = wanted_bytes(spec, bound, buffer);
      o.expected = decode_values(buffer.dtype, wanted, buffer.elements());
      const std::vector<float> values(o.values.begin(), o.values.end());
      o.comparison = compare(values, buffer.dtype, o.expected);
      if (buffer.dense() && buffer.init.kind == Initialiser::Kind::none)
        o.comparison->unwritten = bound.buffers[i].unwritten(),
        o.first_unwritten = bound.buffers[i].first_unwritten();
      compare_bits(o, bytes, wanted);
    }
    if (!buffer.keep.empty()) write_values(buffer.keep, buffer.dtype, bytes, buffer.elements());
    out.push_back(std::move(o));
  }
  return out;
}

}  // namespace tw::tools
