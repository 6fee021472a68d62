#include <limits>

#include "tilewright/base/error.h"
#include "tilewright/base/formats.h"
#include "tilewright/base/math.h"
#include "tilewright/runtime/storage.h"

namespace tw {
namespace {

void check_convertible(const Tensor& t) {
  if (t.dtype() == DType::b1 || t.dtype() == DType::u64 || t.dtype() == DType::i64)
    user_error({}, "tensor '{}': {} has no conversion to and from f32; move its bytes instead", t.name(),
               name(t.dtype()));
}

bool sub_byte(DType t) { return bits(t) < 8; }

}  // namespace

DType Tensor::dtype() const { return storage_->dtype; }
const std::vector<int64_t>& Tensor::shape() const { return storage_->shape; }
int64_t Tensor::elements() const { return storage_->elements; }
uint64_t Tensor::bytes() const { return storage_->bytes; }
uint64_t Tensor::address() const { return storage_->address; }
const std::string& Tensor::name() const { return storage_->name; }
Device& Tensor::device() const { return *storage_->device; }
void Tensor::poison() {
  if (bytes() != 0) storage_->poison();
}
uint64_t Tensor::unwritten() const { return bytes() == 0 ? 0 : storage_->unwritten(); }
uint64_t Tensor::first_unwritten() const { return bytes() == 0 ? 0 : storage_->first_unwritten(); }

void Tensor::upload(std::span<const std::byte> data) {
  if (data.size() != bytes())
    user_error({}, "upload to tensor '{}': {} {} takes {} bytes, given {}", name(), tw::name(dtype()),
               shape_text(shape()), bytes(), data.size());
  if (bytes() != 0) storage_->write(data);
}

std::vector<std::byte> Tensor::download() const {
  std::vector<std::byte> data(bytes());
  if (bytes() != 0) storage_->read(data);
  return data;
}

void Tensor::upload(std::span<const float> values) {
  if (values.size() != static_cast<size_t>(elements()))
    user_error({}, "upload to tensor '{}': {} {} takes {} values, given {}", name(), tw::name(dtype()),
               shape_text(shape()), elements(), values.size());
  check_convertible(*this);
  if (bytes() == 0) return;
  std::vector<std::byte> data(bytes());
  if (dtype() == DType::f64) {
    auto* to = reinterpret_cast<double*>(data.data());
    for (size_t i = 0; i < values.size(); ++i) to[i] = values[i];
  } else if (sub_byte(dtype())) {
    std::vector<uint8_t> codes(values.size());
    from_float(dtype(), values.data(), codes.data(), values.size());
    pack_codes(dtype(), codes.data(), data.data(), values.size());
  } else {
    from_float(dtype(), values.data(), data.data(), values.size());
  }
  storage_->write(data);
}

std::vector<float> Tensor::download_f32() const {
  check_convertible(*this);
  std::vector<std::byte> data = download();
  std::vector<float> values(static_cast<size_t>(elements()));
  if (dtype() == DType::f64) {
    const auto* from = reinterpret_cast<const double*>(data.data());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(from[i]);
  } else if (sub_byte(dtype())) {
    std::vector<uint8_t> codes(values.size());
    unpack_codes(dtype(), data.data(), codes.data(), values.size());
    to_float(dtype(), codes.data(), values.data(), values.size());
  } else {
    to_float(dtype(), data.data(), values.data(), values.size());
  }
  return values;
}

void describe_storage(Tensor::Storage& storage, std::shared_ptr<Device> device, DType dtype,
                      std::vector<int64_t> shape, std::string_view name) {
  constexpr int64_t kMaxBits = std::numeric_limits<int64_t>::max();
  int64_t total_bits = bits(dtype);
  if (shape.empty()) user_error({}, "tensor '{}': the shape has no extents", name);
  for (int64_t extent : shape) {
    if (extent < 0)
      user_error({}, "tensor '{}': extents must not be negative, given {}", name, shape_text(shape));
    if (__builtin_mul_overflow(total_bits, extent, &total_bits) || total_bits > kMaxBits - 7)
      user_error({}, "tensor '{}': {} {} is more than can be addressed", name, tw::name(dtype),
                 shape_text(shape));
  }
  storage.device = std::move(device);
  storage.dtype = dtype;
  storage.elements = total_bits / bits(dtype);
  storage.bytes = static_cast<uint64_t>(ceil_div<int64_t>(total_bits, 8));
  storage.shape = std::move(shape);
  storage.name = name.empty() ? "unnamed" : name;
}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text;
  for (int64_t extent : shape) text += format("{}{}", text.empty() ? "" : ", ", extent);
  return "[" + text + "]";
}

}  // namespace tw
