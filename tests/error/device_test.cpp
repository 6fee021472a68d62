// Machines that are not there.
#include "tilewright/runtime/device.h"

#include <gtest/gtest.h>

#include "tests/error/message.h"
#include "tilewright/runtime/cuda_driver.h"

namespace {

using tw::Device;
using tw::testing::text_of;

TEST(DeviceError, UnknownNameListsTheKnownOnes) {
  for (const char* name : {"b200", "sim:a100", "cuda:x", "cuda:-1", "cuda:", "rocm:0", ""})
    EXPECT_EQ(
        text_of([&] { Device::open(name); }),
        tw::format(
            "error: unknown device '{}'; known: sim:h100, sim:h200, sim:b200, sim:b300, and cuda:N for GPU "
            "number N",
            name));
}

TEST(DeviceError, MissingDriver) {
  EXPECT_EQ(text_of([] { tw::cuda::load_driver("libcuda-of-nowhere.so.1"); }),
            "error: no CUDA driver: looked for libcuda-of-nowhere.so.1 in the library search path "
            "(libcuda-of-nowhere.so.1: cannot open shared object file: No such file or directory); install "
            "the NVIDIA driver, in a container pass the GPU through, or run on a simulated device such as "
            "sim:h200");
}

TEST(DeviceError, AnotherLibraryIsNotTakenForTheDriver) {
  EXPECT_EQ(text_of([] { tw::cuda::load_driver("libc.so.6"); }),
            "error: the CUDA driver libc.so.6 has no cuInit; a driver of CUDA 12 or newer (version 525 on) "
            "is needed");
}

// On a machine without GPU, as most are that run this test.
TEST(DeviceError, NoGpu) {
  const std::string text = text_of([] { Device::open("cuda:0"); });
  if (text == "no error") GTEST_SKIP() << "this machine has a GPU";
  EXPECT_TRUE(
      text.starts_with("error: no CUDA driver: looked for libcuda.so.1 in the library search path (") ||
      text.starts_with("error: the CUDA driver libcuda.so.1 finds no usable GPU: "))
      << text;
}

TEST(DeviceError, NumberBeyondTheLastGpu) {
  if (text_of([] { Device::open("cuda:0"); }) != "no error") GTEST_SKIP() << "no GPU here";
  const std::string text = text_of([] { Device::open("cuda:99"); });
  EXPECT_TRUE(text.starts_with("error: no GPU cuda:99: the CUDA driver of this machine shows ")) << text;
}

}  // namespace
