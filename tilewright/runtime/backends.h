#pragma once
#include <memory>
#include <string_view>

#include "tilewright/machine/gpu.h"
#include "tilewright/runtime/cuda_driver.h"
#include "tilewright/runtime/device.h"

// What stands behind Device::open.
namespace tw {

std::shared_ptr<Device> open_sim(const machine::Gpu& gpu);
// The GPU of that number behind the system's driver. Opening it again gives the same device while it is in
// use.
std::shared_ptr<Device> open_cuda(int ordinal);
// The same behind a given driver, which must outlive the device.
std::shared_ptr<Device> make_cuda_device(const cuda::Driver& driver, int ordinal);

}  // namespace tw
