// What is refused before anything runs, of kernels in the language and of launches: the faults of public
// reports (docs/faults.md) that no simulation is needed for.
#include <gtest/gtest.h>

#include <limits>

#include "tests/error/message.h"
#include "tilewright/dsl/dsl.h"
#include "tilewright/lower/lower.h"
#include "tilewright/ptx/parser.h"
#include "tilewright/runtime/device.h"
#include "tilewright/runtime/storage.h"
#include "tilewright/runtime/testing.h"
#include "tools/ptx_launch.h"

namespace {

using namespace tw::dsl;
using tw::lower;
using tw::Tensor;
using tw::testing::message_of;

// ---- integer ranges of offsets ----

std::string store_rows(int64_t rows, int64_t stride, bool wide) {
  const int base = __LINE__;
  return message_of(base, [&] {
    KernelBuilder k("rows", Arch::sm_90a);
    auto D = k.global(f32, {4096}, "D");
    for_range(rows,
              [&](const Expr& i) { D.store({wide ? tw::ir::cast(i64, i) * stride : i * stride}, 1.0f); });
    lower(k.finish());
  });
}

TEST(HostRules, B167_RowTimesStride) {
  EXPECT_EQ(store_rows(2097152, 1024, false), "no error");  // 2^31 - 1024 is the last
  EXPECT_EQ(store_rows(2097153, 1024, false),
            "+5 the index 'i * 1024' lies between 0 and 2147483648, which 32 bits cannot hold; "
            "cast(i64, ...) one of its terms");
  EXPECT_EQ(store_rows(2097153, 1024, true), "no error");
}

// Without any wish of the author: the address of an element is computed in 64 bits, also where strides are
// known only at run time.
TEST(HostRules, B166_AddressesAreWide) {
  KernelBuilder k("rows", Arch::sm_90a);
  auto M = k.size("M"), N = k.size("N");
  auto D = k.global(f32, {M, N}, "D");
  k.launch({.grid = {M}, .threads = 128});
  D.store({cta_id.x, 0}, 1.0f);
  const std::string text = *lower(k.finish()).text;
  EXPECT_NE(text.find("mul.wide.u32"), std::string::npos) << text;
  EXPECT_EQ(text.find("mul.lo.s32"), std::string::npos) << text;
}

TEST(HostRules, B166_IndexThatSizesMakeTooLarge) {
  const int base = __LINE__;
  KernelBuilder k("chunks", Arch::sm_90a);
  auto B = k.size("B"), T = k.size("T");
  k.launch({.grid = {B}, .threads = 128});
  k.global(u8, {B}, "batches");
  k.global(u8, {T}, "times");
  auto D = k.global(f32, {4096}, "D");
  if_(thread_id == 0, [&] { D.store({(cta_id.x * T) % 4096}, 1.0f); });
  const tw::Compiled kernel = lower(k.finish());
  auto device = tw::Device::open("sim:h200");
  const auto launch = [&](int64_t b, int64_t t) {
    return message_of(base, [&] {
      device->launch(kernel, {device->tensor(u8, {b}, "b"), device->tensor(u8, {t}, "t"),
                              device->tensor(f32, {4096}, "d")});
    });
  };
  EXPECT_EQ(launch(4, 65536), "no error");
  const std::string refused = launch(32769, 65536);  // 32768 * 65536 = 2^31
  EXPECT_TRUE(refused.starts_with("+7 chunks requires: the index '")) << refused;
  EXPECT_NE(
      refused.find(
          "fits 32 bits; cast(i64, ...) one of its terms where it does not; given B = 32769, T = 65536"),
      std::string::npos)
      << refused;
}

// The grid is a whole number of tiles, so its last rows are not there; up to row 2147583 it is
// 2147583 * 1000 + 999 > 2^31 - 1.
std::string store_guarded_rows(int64_t rows, bool on_the_row) {
  const int base = __LINE__;
  return message_of(base, [&] {
    KernelBuilder k("rows", Arch::sm_90a);
    k.launch({.grid = {ceil_div(rows, int64_t{128})}, .threads = 128});
    auto D = k.global(f32, {4096}, "D");
    const Expr row = cta_id.x * 128 + thread_id;
    if_(on_the_row ? row < rows : thread_id < 100, [&] { D.store({(row * 1000 + 999) % 4093}, 1.0f); });
    lower(k.finish());
  });
}

TEST(HostRules, B167_AGuardKeepsTheIndexSmall) {
  EXPECT_EQ(store_guarded_rows(2147483, true), "no error");  // 2147482999 is the last
  const std::string index = "+6 the index 'thread * 1000 + cta_x * 128000 + 999' lies between 999 and ",
                    rule = ", which 32 bits cannot hold; cast(i64, ...) one of its terms";
  EXPECT_EQ(store_guarded_rows(2147484, true), index + "2147483999" + rule);
  EXPECT_EQ(store_guarded_rows(2147483, false), index + "2147555999" + rule);  // row 2147456 + 99
}

// Memory that nobody has: only its description is looked at.
struct NoMemory : Tensor::Storage {
  void write(std::span<const std::byte>) override {}
  void read(std::span<std::byte>) const override {}
  void poison() override {}
  uint64_t unwritten() const override { return 0; }
  uint64_t first_unwritten() const override { return bytes; }
};

TEST(HostRules, SizesAreSigned) {
  const int base = __LINE__;
  KernelBuilder k("long", Arch::sm_90a);
  auto M = k.size("M");
  auto D = k.global(u8, {M}, "D");
  D.store({thread_id}, tw::ir::integer(u8, 1));
  const tw::Compiled kernel = lower(k.finish());
  auto host = std::make_shared<tw::testing::HostDevice>();
  const auto bind = [&](int64_t m) {
    auto storage = std::make_shared<NoMemory>();
    describe_storage(*storage, host, u8, {m}, "d");
    storage->address = 0x1000;
    std::vector<tw::Argument> arguments{Tensor(storage)};
    return message_of(base, [&] { tw::bind_arguments(kernel, arguments, *host); });
  };
  EXPECT_EQ(bind(2147483647), "no error");
  EXPECT_EQ(bind(2147483648), "+2 long: M = 2147483648; a size is at most 2147483647");
}

// What a launch refuses, too: only rows below M are computed with.
TEST(HostRules, B166_AGuardKeepsTheIndexOfALaunchSmall) {
  const int base = __LINE__;
  KernelBuilder k("rows", Arch::sm_90a);
  auto M = k.size("M");
  k.launch({.grid = {ceil_div(M, 128)}, .threads = 128});
  k.global(u8, {M}, "rows");
  auto D = k.global(f32, {4096}, "D");
  const Expr row = cta_id.x * 128 + thread_id;
  if_(row < M, [&] { D.store({(row * 1000 + 999) % 4093}, 1.0f); });
  const tw::Compiled kernel = lower(k.finish());
  auto host = std::make_shared<tw::testing::HostDevice>();
  const auto bind = [&](int64_t m) {
    auto storage = std::make_shared<NoMemory>();
    describe_storage(*storage, host, u8, {m}, "rows");
    storage->address = 0x1000;
    std::vector<tw::Argument> arguments{Tensor(storage), host->tensor(f32, {4096}, "d")};
    return message_of(base, [&] { tw::bind_arguments(kernel, arguments, *host); });
  };
  EXPECT_EQ(bind(2147483), "no error");
  EXPECT_TRUE(bind(2147484).starts_with("+7 rows requires: the index '")) << bind(2147484);
}

// ---- budgets ----

TEST(HostRules, B89_RolesTakeMoreRegistersThanTheLaunchGives) {
  const auto roles = [](int producer, int consumers) {
    const int base = __LINE__;
    return message_of(base, [&] {
      KernelBuilder k("k", Arch::sm_90a);
      k.launch({.threads = 384});
      k.role("load", {0, 4}, producer, [] { warpgroup.sync(); });
      k.role("mma", {4, 8}, consumers, [] { warpgroup.sync(); });
      lower(k.finish());
    });
  };
  EXPECT_EQ(roles(40, 232), "no error");  // 40 + 2 * 232 = 504 = 3 * 168
  EXPECT_EQ(roles(24, 232), "no error");  // less than there is
  EXPECT_EQ(
      roles(48, 232),
      "+2 'k' starts with 168 registers a thread, 504 over its warpgroups; its roles take 512: an increase "
      "would never be granted\n"
      "+4 role 'load' takes 48 in 1 warpgroup\n+5 role 'mma' takes 232 in 2 warpgroups");
}

// ---- launches of foreign PTX ----

std::string launch_of(const std::string& ptx, const std::string& json) {
  return message_of(0, [&] {
    const tw::ptx::Module module =
        tw::ptx::parse(".version 8.7\n.target sm_90a\n.address_size 64\n" + ptx, "k.ptx");
    auto device = tw::Device::open("sim:h200");
    const auto bound = tw::tools::bind_launch(tw::tools::parse_launch(json, "k.json"), module, *device);
    device->launch_ptx(module, bound.entry->name, bound.launch);
  });
}

TEST(HostRules, StaticSharedMemory) {
  const auto needs = [](int bytes) {
    return launch_of(tw::format(".visible .entry k() {{ .shared .align 16 .b8 tile[{}]; ret; }}\n", bytes),
                     "{}");
  };
  EXPECT_EQ(needs(49152), "no error");
  EXPECT_EQ(needs(49168),
            " k: a CTA has 49168 bytes of static shared memory; more than 49152 must be dynamic");
}

TEST(HostRules, PointerThatIsLessAlignedThanItsParameterSays) {
  const auto at = [](int offset) {
    return launch_of(".visible .entry k(.param .u64 .ptr .global .align 16 p) { ret; }\n",
                     tw::format(R"({{"buffers": {{"in": {{"type": "f32", "shape": [64]}}}},
"arguments": [{{"buffer": "in", "offset": {}}}]}})",
                                offset));
  };
  EXPECT_EQ(at(64), "no error");
  const std::string refused = at(8);
  EXPECT_NE(
      refused.find("parameter 'p' (.u64 .ptr .global .align 16 p): its address must be a multiple of 16, "
                   "buffer 'in' plus 8 bytes is at 0x"),
      std::string::npos)
      << refused;
}

}  // namespace
