#pragma once
#include <memory>
#include <string_view>

#include "tilewright/machine/gpu.h"
#include "tilewright/runtime/device.h"

// What stands behind Device::open.
namespace tw {

std::shared_ptr<Device> open_sim(const machine::Gpu& gpu);
// The GPU of that number. Opening it again gives the same device while it is in use.
std::shared_ptr<Device> open_cuda(int ordinal);

}  // namespace tw
