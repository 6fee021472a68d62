#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/runtime/device.h"

namespace tw {

// What a tensor is to the device that holds it. A device derives from this; the destructor frees the memory.
struct Tensor::Storage {
  std::shared_ptr<Device> device;
  DType dtype = DType::u8;
  std::vector<int64_t> shape;
  std::string name;
  int64_t elements = 0;
  uint64_t bytes = 0;
  uint64_t address = 0;

  virtual ~Storage() = default;
  virtual void write(std::span<const std::byte> data) = 0;  // all bytes
  virtual void read(std::span<std::byte> data) const = 0;   // all bytes
  virtual void poison() = 0;
  virtual uint64_t unwritten() const = 0;
  virtual uint64_t first_unwritten() const = 0;  // offset of a byte; `bytes` if there is none
};

// Fills the descriptive fields. User errors: no extents, an extent below 1, more bytes than a device can
// address.
void describe_storage(Tensor::Storage& storage, std::shared_ptr<Device> device, DType dtype,
                      std::vector<int64_t> shape, std::string_view name);

// "[128, 64]"
std::string shape_text(std::span<const int64_t> shape);

}  // namespace tw
