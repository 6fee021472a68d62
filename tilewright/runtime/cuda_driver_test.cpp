#include "tilewright/runtime/cuda_driver.h"

#include <gtest/gtest.h>

#include "tilewright/runtime/testing.h"

namespace tw {
namespace {

TEST(Driver, AMissingLibrarySaysWhatWasLookedFor) {
  EXPECT_EQ(testing::message_of([] { cuda::load_driver("libcuda-of-nowhere.so.1"); }),
            "error: no CUDA driver: looked for libcuda-of-nowhere.so.1 in the library search path "
            "(libcuda-of-nowhere.so.1: cannot open shared object file: No such file or directory); install "
            "the NVIDIA "
            "driver, in a container pass the GPU through, or run on a simulated device such as sim:h200");
}

TEST(Driver, AnotherLibraryIsNotTakenForIt) {
  EXPECT_EQ(testing::message_of([] { cuda::load_driver("libc.so.6"); }),
            "error: the CUDA driver libc.so.6 has no cuInit; a driver of CUDA 12 or newer (version 525 on) "
            "is needed");
}

}  // namespace
}  // namespace tw
