#include "tilewright/runtime/arguments.h"

#include <cmath>
#include <cstring>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/base/math.h"
#include "tilewright/runtime/storage.h"

namespace tw {
namespace {

bool takes_tensor(const Param& p) { return p.kind == Param::Kind::tensor; }
bool takes_argument(const Param& p) { return takes_tensor(p) || p.kind == Param::Kind::scalar; }

// "f16 [M, 64]", "f32"
std::string expected(const Param& param) {
  if (!takes_tensor(param)) return std::string(name(param.dtype));
  std::string shape;
  for (const Size& s : param.shape)
    shape += (shape.empty() ? "" : ", ") + (s.fixed() ? std::to_string(s.value) : s.symbol);
  return format("{} [{}]", name(param.dtype), shape);
}

std::string given(const Tensor& t) {
  return format("tensor '{}', {} {}", t.name(), name(t.dtype()), shape_text(t.shape()));
}

std::string number_text(const Argument& argument) {
  if (const auto* i = std::get_if<int64_t>(&argument)) return format("{}", *i);
  return format("{}", std::get<double>(argument));
}

void check_count(const Compiled& kernel, size_t count) {
  std::string list;
  size_t wanted = 0;
  for (const Param& p : kernel.params) {
    if (!takes_argument(p)) continue;
    list += format("{}{}: {}", list.empty() ? "" : ", ", p.name, expected(p));
    ++wanted;
  }
  if (count != wanted)
    user_error({}, "{} takes {} argument{} ({}), given {}", kernel.name, wanted, wanted == 1 ? "" : "s", list,
               count);
}

class Packer {
 public:
  void add(const void* value, size_t bytes) { add(value, bytes, bytes); }
  void add(const void* value, size_t bytes, size_t align) {
    block_.resize(round_up(block_.size(), align) + bytes);
    std::memcpy(block_.data() + block_.size() - bytes, value, bytes);
  }
  std::vector<std::byte> take() { return std::move(block_); }

 private:
  std::vector<std::byte> block_;
};

void pack_integer(Packer& packer, const Compiled& kernel, const Param& param, const Argument& argument) {
  const auto* value = std::get_if<int64_t>(&argument);
  if (!value)
    user_error(param.loc, "{}: parameter '{}' takes an integer of type {}, given {}, a floating-point number",
               kernel.name, param.name, name(param.dtype), number_text(argument));
  int width = bits(param.dtype);
  bool fits = is_signed(param.dtype)
                  ? width == 64 || (*value >> (width - 1) == 0 || *value >> (width - 1) == -1)
                  : *value >= 0 && (width == 64 || *value >> width == 0);
  if (!fits)
    user_error(param.loc, "{}: parameter '{}' takes {}, which cannot hold {}", kernel.name, param.name,
               name(param.dtype), *value);
  packer.add(value, static_cast<size_t>(width / 8));  // little endian: the low bytes come first
}

void pack_float(Packer& packer, const Compiled& kernel, const Param& param, const Argument& argument) {
  const auto* integer = std::get_if<int64_t>(&argument);
  double value = integer ? static_cast<double>(*integer) : std::get<double>(argument);
  if (param.dtype == DType::f64) return packer.add(&value, sizeof value);
  uint32_t code = from_double(param.dtype, value);
  if (std::isfinite(value) && !std::isfinite(to_double(param.dtype, code)))
    user_error(param.loc, "{}: parameter '{}' takes {}, which cannot hold {}", kernel.name, param.name,
               name(param.dtype), number_text(argument));
  packer.add(&code, static_cast<size_t>(bits(param.dtype) / 8));
}

void pack_scalar(Packer& packer, const Compiled& kernel, const Param& param, const Argument& argument) {
  if (bits(param.dtype) < 8)
    user_error(param.loc,
               "{}: parameter '{}': a scalar cannot be of type {}, PTX has no parameter of {} bits",
               kernel.name, param.name, name(param.dtype), bits(param.dtype));
  if (is_float(param.dtype)) return pack_float(packer, kernel, param, argument);
  pack_integer(packer, kernel, param, argument);
}

using MapType = sim::TensorMapSpec::Type;

// Types of one width that a copy does not tell apart share an element type of the tensor map.
MapType map_type(const Compiled& kernel, const Param& param, DType dtype) {
  switch (dtype) {
    case DType::b1:
    case DType::u8:
    case DType::i8:
    case DType::e4m3:
    case DType::e5m2:
    case DType::e8m0: return MapType::u8;
    case DType::u16:
    case DType::i16: return MapType::u16;
    case DType::u32: return MapType::u32;
    case DType::i32: return MapType::s32;
    case DType::u64: return MapType::u64;
    case DType::i64: return MapType::s64;
    case DType::f16: return MapType::f16;
    case DType::bf16: return MapType::bf16;
    case DType::f32: return MapType::f32;
    case DType::tf32: return MapType::tf32;
    case DType::f64: return MapType::f64;
    case DType::e2m3:
    case DType::e3m2:
    case DType::e2m1: break;
  }
  not_modelled(param.loc, "{}: parameter '{}': tensor maps of type {}", kernel.name, param.name, name(dtype));
}

}  // namespace

ArgumentBinder::ArgumentBinder(const Compiled& kernel, std::span<const Argument> arguments,
                               const Device& device)
    : kernel_(kernel), device_(device), arguments_(arguments) {
  check_count(kernel, arguments.size());
  size_t next = 0;
  for (const Param& param : kernel.params) {
    if (!takes_argument(param)) continue;
    const Argument& argument = arguments[next++];
    const auto* tensor = std::get_if<Tensor>(&argument);
    if (takes_tensor(param) && !tensor)
      user_error(param.loc, "{}: parameter '{}' takes a tensor, {}, given the number {}", kernel.name,
                 param.name, expected(param), number_text(argument));
    if (!takes_tensor(param) && tensor)
      user_error(param.loc, "{}: parameter '{}' takes a number of type {}, given {}", kernel.name, param.name,
                 expected(param), given(*tensor));
    if (tensor) check_tensor(param, *tensor, device);
  }
}

void ArgumentBinder::check_tensor(const Param& param, const Tensor& tensor, const Device& device) {
  if (&tensor.device() != &device) {
    if (tensor.device().name() == device.name())
      user_error(param.loc, "{}: parameter '{}': tensor '{}' lives on another {} than the launch",
                 kernel_.name, param.name, tensor.name(), device.name());
    user_error(param.loc, "{}: parameter '{}': tensor '{}' lives on {}, the launch is on {}", kernel_.name,
               param.name, tensor.name(), tensor.device().name(), device.name());
  }
  if (tensor.dtype() != param.dtype)
    user_error(param.loc, "{}: parameter '{}' takes {}, given {}: the element types differ", kernel_.name,
               param.name, expected(param), given(tensor));
  if (tensor.shape().size() != param.shape.size())
    user_error(param.loc, "{}: parameter '{}' takes {}, given {}: the numbers of dimensions differ",
               kernel_.name, param.name, expected(param), given(tensor));
  for (size_t axis = 0; axis < param.shape.size(); ++axis) check_extent(param, tensor, axis);
  if (tensor.address() % param.align != 0)
    user_error(param.loc,
               "{}: parameter '{}' needs an address that is a multiple of {} bytes, tensor '{}' is at {:#x}",
               kernel_.name, param.name, param.align, tensor.name(), tensor.address());
}

void ArgumentBinder::check_extent(const Param& param, const Tensor& tensor, size_t axis) {
  const Size& size = param.shape[axis];
  int64_t extent = tensor.shape()[axis];
  if (size.fixed()) {
    if (extent != size.value)
      user_error(param.loc, "{}: parameter '{}' takes {}, given {}: extent {} must be {}", kernel_.name,
                 param.name, expected(param), given(tensor), axis, size.value);
    return;
  }
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (sizes_[i].first != size.symbol) continue;
    if (sizes_[i].second == extent) return;
    throw Error(ErrorKind::user, param.loc,
                format("{}: parameter '{}' takes {}, given {}: this makes {} = {}, but '{}' made it {}",
                       kernel_.name, param.name, expected(param), given(tensor), size.symbol, extent,
                       origins_[i]->name, sizes_[i].second),
                {{origins_[i]->loc, format("'{}' is {}", origins_[i]->name, expected(*origins_[i]))}});
  }
  sizes_.emplace_back(size.symbol, extent);
  origins_.push_back(&param);
}

void ArgumentBinder::check_requirements() const {
  for (const Requirement& r : kernel_.requirements)
    if (!r.holds([this](const std::string& symbol) { return size(symbol); }))
      user_error(r.loc, "{} requires: {}; given {}", kernel_.name, r.text, sizes_text());
}

std::vector<std::byte> ArgumentBinder::pack() const {
  Packer packer;
  size_t next = 0;
  for (const Param& param : kernel_.params) {
    switch (param.kind) {
      case Param::Kind::tensor: {
        uint64_t address = std::get<Tensor>(arguments_[next++]).address();
        packer.add(&address, sizeof address);
        break;
      }
      case Param::Kind::size: {
        int64_t value = size(param.name);
        if (value > INT32_MAX)  // indices are signed
          user_error(param.loc, "{}: {} = {}; a size is at most {}", kernel_.name, param.name, value,
                     INT32_MAX);
        packer.add(&value, sizeof(uint32_t));
        break;
      }
      case Param::Kind::scalar: pack_scalar(packer, kernel_, param, arguments_[next++]); break;
      case Param::Kind::tensor_map: {
        const sim::TensorMapObject object = tensor_map(param);
        packer.add(object.data(), object.size(), sim::kTensorMapAlign);
        break;
      }
    }
  }
  return packer.take();
}

const Tensor& ArgumentBinder::tensor(size_t param) const {
  size_t next = 0;
  for (size_t i = 0; i < param; ++i) next += takes_argument(kernel_.params[i]);
  return std::get<Tensor>(arguments_[next]);
}

sim::TensorMapObject ArgumentBinder::tensor_map(const Param& param) const {
  const TensorMap& map = kernel_.maps.at(param.map);
  if (map.tensor >= kernel_.params.size() || !takes_tensor(kernel_.params[map.tensor]))
    internal_error(param.loc, "{}: tensor map '{}' describes parameter {}, which is no tensor", kernel_.name,
                   param.name, map.tensor);
  const Tensor& source = tensor(map.tensor);
  const auto value = [this](const std::string& symbol) { return size(symbol); };
  const auto fail = [&](const std::string& rule) {
    user_error(param.loc, "{}: parameter '{}' describes {} for boxes of tensor copies: {}", kernel_.name,
               param.name, given(source), rule);
  };
  sim::TensorMapSpec spec;
  spec.type = map_type(kernel_, param, map.dtype);
  spec.rank = static_cast<uint32_t>(map.dims.size());
  spec.address = source.address();
  if (spec.rank == 0 || spec.rank > sim::kMaxTensorRank || map.box.size() != map.dims.size() ||
      map.strides.size() + 1 != map.dims.size())
    internal_error(param.loc, "{}: tensor map '{}' has {} dimensions, {} strides and a box of {}",
                   kernel_.name, param.name, map.dims.size(), map.strides.size(), map.box.size());
  uint64_t reach = spec.element_bytes();
  for (uint32_t i = 0; i < spec.rank; ++i) {
    const int64_t extent = map.dims[i](value),
                  stride = i == 0 ? spec.element_bytes() : map.strides[i - 1](value);
    if (extent < 1) fail(format("dimension {} has {} elements; a dimension must have 1 to 2^32", i, extent));
    if (stride < 0)
      fail(format("the stride of dimension {} is {} bytes; strides must not be negative", i, stride));
    spec.dims[i] = static_cast<uint64_t>(extent);
    spec.strides[i] = static_cast<uint64_t>(stride);
    spec.box[i] = map.box[i];
    reach += (spec.dims[i] - 1) * spec.strides[i];
  }
  spec.swizzle = static_cast<sim::TensorMapSpec::Swizzle>(map.swizzle);
  spec.l2 = static_cast<sim::TensorMapSpec::L2Promotion>(map.l2);
  spec.nan_fill = map.nan_fill;
  if (const std::string broken = sim::broken_rule(spec); !broken.empty()) fail(broken);
  if (reach > source.bytes())
    fail(format("its dimensions and strides reach over {} bytes, the tensor has {}", reach, source.bytes()));
  return device_.tensor_map(spec);
}

int64_t ArgumentBinder::size(const std::string& symbol) const {
  for (const auto& [name, value] : sizes_)
    if (name == symbol) return value;
  user_error({}, "{}: the size {} is in no tensor parameter's shape, so no argument can give it",
             kernel_.name, symbol);
}

std::string ArgumentBinder::sizes_text() const {
  std::string text;
  for (const auto& [name, value] : sizes_) text += format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  return text.empty() ? "no run-time sizes" : text;
}

std::string argument_text(const Argument& argument) {
  if (const auto* t = std::get_if<Tensor>(&argument))
    return format("{} {} at {:#x}", name(t->dtype()), shape_text(t->shape()), t->address());
  return number_text(argument);
}

}  // namespace tw
