#include <gtest/gtest.h>

#include <functional>

#include "tilewright/base/error.h"
#include "tilewright/sim/matrix_testing.h"
#include "tilewright/sim/testing.h"

// tcgen05 as programs; the arithmetic alone is tested in matrix_multiply_test.cpp.
namespace tw::sim::testing {
namespace {

const std::vector<std::string> kSchedules = {"eager", "late", "random:1", "random:5", "random:9"};

// 128 threads copy `in` to shared memory, thread 0 issues the products that `descriptors` lists, and all
// store the accumulator to out[lane][column]. `%taddr` is the allocation.
constexpr const char* kRegisters = R"(
  .reg .b32 %r<16>; .reg .b32 %v<16>; .reg .b64 %rd<16>; .reg .pred %p<8>;
  .reg .b32 %thread, %smem, %taddr, %idesc, %i, %count, %lanebase;
  .reg .b64 %in, %desc, %out, %adesc, %bdesc;
  .shared .align 8 .b64 bar;
  .shared .align 4 .b32 slot;
)";
constexpr const char* kParams =
    ".param .u64 in, .param .u64 descs, .param .u64 out, .param .u32 bytes, .param .u32 count, .param .u32 "
    "idesc";
constexpr const char* kStart = R"(
  mov.u32 %thread, %tid.x; mov.u32 %smem, smem;
  ld.param.u64 %in, [in]; ld.param.u64 %desc, [descs]; ld.param.u64 %out, [out];
  ld.param.u32 %r0, [bytes]; ld.param.u32 %count, [count]; ld.param.u32 %idesc, [idesc];
  shl.b32 %i, %thread, 4;
copy:
  setp.ge.u32 %p0, %i, %r0;
  @%p0 bra copied;
  cvt.u64.u32 %rd0, %i; add.s64 %rd0, %in, %rd0; add.u32 %r1, %smem, %i;
  ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%rd0];
  st.shared.v4.b32 [%r1], {%v0, %v1, %v2, %v3};
  add.u32 %i, %i, 2048;
  bra copy;
copied:
  setp.ne.u32 %p1, %thread, 0;
  @%p1 bra initialised;
  mbarrier.init.shared.b64 [bar], 1;
initialised:
  setp.ge.u32 %p2, %thread, 32;
  @%p2 bra allocated;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 256;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
allocated:
  fence.proxy.async.shared::cta;
  bar.sync 0;
  ld.shared.b32 %taddr, [slot];
  and.b32 %lanebase, %thread, 0xe0; shl.b32 %lanebase, %lanebase, 16; add.u32 %lanebase, %lanebase, %taddr;
)";
constexpr const char* kProducts = R"(
  @%p1 bra issued;
  mov.u32 %i, 0;
  shr.u32 %r2, %smem, 4; cvt.u64.u32 %rd1, %r2;
next:
  ld.global.v2.u64 {%adesc, %bdesc}, [%desc];
  add.u64 %adesc, %adesc, %rd1; add.u64 %bdesc, %bdesc, %rd1;
  setp.ne.u32 %p3, %i, 0;
  MMA
  add.s64 %desc, %desc, 16; add.u32 %i, %i, 1; setp.lt.u32 %p4, %i, %count;
  @%p4 bra next;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
issued:
wait:
  mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0;
  @!%p5 bra wait;
  tcgen05.fence::after_thread_sync;
)";
// 8 columns at a time; N = 64.
constexpr const char* kStore = R"(
  mov.u32 %i, 0;
  mul.wide.u32 %rd2, %thread, 256; add.s64 %out, %out, %rd2;
read:
  add.u32 %r3, %lanebase, %i;
  tcgen05.ld.sync.aligned.32x32b.x8.b32 {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}, [%r3];
  tcgen05.wait::ld.sync.aligned;
  st.global.v4.b32 [%out], {%v0, %v1, %v2, %v3};
  st.global.v4.b32 [%out+16], {%v4, %v5, %v6, %v7};
  add.s64 %out, %out, 32; add.u32 %i, %i, 8; setp.lt.u32 %p6, %i, 64;
  @%p6 bra read;
)";
constexpr const char* kEnd = R"(
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  @%p2 exit;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %taddr, 256;
  exit;
)";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

std::string program_text(const std::string& middle) {
  return module_text(kParams, std::string(kRegisters) + kStart + middle + kEnd, "sm_100a",
                     ".extern .shared .align 1024 .b8 smem[];");
}

std::string mma_text(std::string_view kind, std::string_view rest = "%p3") {
  return replaced(
      kProducts, "MMA",
      tw::format("tcgen05.mma.cta_group::1.kind::{} [%taddr], %adesc, %bdesc, %idesc, {};", kind, rest));
}

struct Inputs {
  std::vector<std::byte> image;
  std::vector<uint64_t> descriptors = {0, 0};
  uint32_t idesc = 0;
  std::shared_ptr<const ptx::DebugMap> names = nullptr;
  uint32_t copied = ~0u;  // bytes of the image that reach shared memory
};

std::vector<uint32_t> run(const std::string& text, const Inputs& r, std::string_view schedule = "eager",
                          size_t words = 128 * 64) {
  Program program(std::make_shared<const ptx::Module>(ptx::parse(text, "test.ptx")), "k",
                  small_machine("sm_100a"), r.names);
  GlobalMemory memory;
  std::vector<std::byte> image = r.image;
  image.resize(std::max<size_t>(image.size(), 2048));
  Buffer<std::byte> in(memory, image, "in");
  Buffer<uint64_t> descs(memory, r.descriptors, "descs");
  Buffer<uint32_t> out(memory, std::vector<uint32_t>(words, 0), "out");
  const auto bytes = static_cast<uint32_t>(std::min<size_t>(image.size(), r.copied));
  Launch launch{{1, 1, 1},
                {128, 1, 1},
                {},
                static_cast<uint32_t>(image.size()),
                Params()
                    .add(in.address)
                    .add(descs.address)
                    .add(out.address)
                    .add(bytes)
                    .add(static_cast<uint32_t>(r.descriptors.size() / 2))
                    .add(r.idesc)
                    .bytes()};
  RunOptions options;
  options.schedule = parse_schedule(schedule);
  options.instruction_limit = 10'000'000;
  program.run(launch, memory, options);
  return out.get();
}

std::string error_of(const std::string& text, const Inputs& r) {
  try {
    run(text, r);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
#define EXPECT_CONTAINS(text, part) EXPECT_TRUE(contains(text, part)) << text

// Bits of the shared memory descriptor, Table 40; the start is relative to the image.
uint64_t descriptor(SwizzleMode mode, long start, Strides s) {
  uint64_t code = mode == SwizzleMode::none   ? 0
                  : mode == SwizzleMode::b128 ? 2
                  : mode == SwizzleMode::b64  ? 4
                                              : 6;
  return static_cast<uint64_t>(start) >> 4 | static_cast<uint64_t>(s.lbo) >> 4 << 16 |
         static_cast<uint64_t>(s.sbo) >> 4 << 32 | uint64_t{1} << 46 | code << 61;
}
constexpr uint32_t idesc(uint32_t d, uint32_t a, uint32_t b, uint32_t m, uint32_t n, uint32_t more = 0) {
  return d << 4 | a << 7 | b << 10 | n >> 3 << 17 | m >> 4 << 24 | more;
}

struct Problem {
  Matrix a, b;  // 128 x k, 64 x k, K-major, 128B swizzle, one 128-byte chunk of k
  Inputs run;
};

Problem problem(DType ta, DType tb, uint32_t seed) {
  std::mt19937 random(seed);
  const int width = bits(ta) == 32 ? 32 : bits(ta) == 16 ? 64 : 128, steps = 4;
  Problem p{random_matrix(ta, 128, width, random), random_matrix(tb, 64, width, random), {}};
  p.run.image.assign(128 * 128 + 64 * 128, std::byte{0});
  for (int k = 0; k < width; ++k) {
    for (int i = 0; i < 128; ++i) place(p.run.image, p.a, SwizzleMode::b128, false, {16, 1024}, 0, 0, i, k);
    for (int j = 0; j < 64; ++j)
      place(p.run.image, p.b, SwizzleMode::b128, false, {16, 1024}, 128 * 128, 0, j, k);
  }
  p.run.descriptors.clear();
  for (int s = 0; s < steps; ++s) {
    p.run.descriptors.push_back(descriptor(SwizzleMode::b128, s * 32, {16, 1024}));
    p.run.descriptors.push_back(descriptor(SwizzleMode::b128, 128 * 128 + s * 32, {16, 1024}));
  }
  return p;
}

void expect_product(const Problem& p, const std::vector<uint32_t>& got, bool integer, double sign = 1) {
  for (int i = 0; i < 128; ++i) {
    for (int j = 0; j < 64; ++j) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < p.a.k; ++k) {
        sum += p.a.at(i, k) * p.b.at(j, k);
        magnitude += std::fabs(p.a.at(i, k) * p.b.at(j, k));
      }
      uint32_t cell = got[static_cast<size_t>(i * 64 + j)];
      if (integer) ASSERT_EQ(static_cast<int32_t>(cell), static_cast<int32_t>(sum)) << i << ", " << j;
      else ASSERT_NEAR(std::bit_cast<float>(cell), sign * sum, magnitude * p.a.k * 0x1p-24) << i << ", " << j;
    }
  }
}

TEST(Tcgen05, ChainOfKStepsOfEveryKindOnEverySchedule) {
  struct Kind {
    const char* name;
    DType a, b;
    uint32_t descriptor;
  };
  for (const Kind& k : {Kind{"f16", DType::f16, DType::f16, idesc(1, 0, 0, 128, 64)},
                        Kind{"f16", DType::bf16, DType::bf16, idesc(1, 1, 1, 128, 64)},
                        Kind{"tf32", DType::tf32, DType::tf32, idesc(1, 2, 2, 128, 64)},
                        Kind{"f8f6f4", DType::e4m3, DType::e5m2, idesc(1, 0, 1, 128, 64)},
                        Kind{"f8f6f4", DType::e2m3, DType::e2m1, idesc(1, 3, 5, 128, 64)},
                        Kind{"i8", DType::i8, DType::u8, idesc(2, 1, 0, 128, 64)}}) {
    Problem p = problem(k.a, k.b, 3);
    p.run.idesc = k.descriptor;
    std::vector<uint32_t> first;
    for (const std::string& schedule : kSchedules) {
      SCOPED_TRACE(tw::format("{} {} {}", k.name, name(k.a), schedule));
      std::vector<uint32_t> got = run(program_text(mma_text(k.name) + kStore), p.run, schedule);
      if (first.empty()) expect_product(p, got, is_integer(k.a));
      else ASSERT_EQ(got, first);
      if (HasFatalFailure()) return;
      first = got;
    }
  }
}

TEST(Tcgen05, NegateB) {
  Problem p = problem(DType::f16, DType::f16, 5);
  p.run.idesc = idesc(1, 0, 0, 128, 64, 1 << 14);
  expect_product(p, run(program_text(mma_text("f16") + kStore), p.run), false, -1);
}

// "scale-input-d": D = A * B + D * 2^-n; four equal steps of one k-step give A * B * (1 + 1/2 + 1/4 + 1/8).
TEST(Tcgen05, ScaleInputD) {
  Problem p = problem(DType::f16, DType::f16, 6);
  p.run.idesc = idesc(1, 0, 0, 128, 64);
  for (size_t s = 2; s < 8; ++s) p.run.descriptors[s] = p.run.descriptors[s % 2];
  std::vector<uint32_t> got = run(program_text(mma_text("f16", "%p3, 1") + kStore), p.run);
  for (int i = 0; i < 128; i += 7) {
    for (int j = 0; j < 64; j += 5) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < 16; ++k) {
        sum += p.a.at(i, k) * p.b.at(j, k);
        magnitude += std::fabs(p.a.at(i, k) * p.b.at(j, k));
      }
      EXPECT_NEAR(std::bit_cast<float>(got[static_cast<size_t>(i * 64 + j)]), sum * 1.875,
                  magnitude * 0x1p-18);
    }
  }
}

TEST(Tcgen05, DisabledLanesStayUnwritten) {
  Problem p = problem(DType::f16, DType::f16, 7);
  p.run.idesc = idesc(1, 0, 0, 128, 64);
  std::string text = program_text("mov.u32 %v8, 0; mov.u32 %v9, 8;\n" +
                                  mma_text("f16", "{%v8, %v8, %v9, %v8}, %p3") + kStore);
  std::string error = error_of(text, p.run);
  EXPECT_CONTAINS(error,
                  "matrix D: tensor memory lane 67, column 0 is accumulated to but nothing has written it");
}

// A in tensor memory: stored by all warps, 32 bytes of k in 8 columns of each lane ("tcgen05.st" then
// "tcgen05.mma").
TEST(Tcgen05, OperandInTensorMemory) {
  Problem p = problem(DType::bf16, DType::bf16, 8);
  p.run.idesc = idesc(1, 1, 1, 128, 64);
  p.run.descriptors.resize(2);
  std::vector<std::byte> rows(128 * 32);
  for (int i = 0; i < 128; ++i) {
    for (int k = 0; k < 16; ++k) {
      uint32_t code = p.a.code(i, k);
      std::memcpy(&rows[static_cast<size_t>(i * 32 + k * 2)], &code, 2);
    }
  }
  // The copy of A to shared memory is replaced by its rows, one after the other.
  std::copy(rows.begin(), rows.end(), p.run.image.begin());
  std::string store_a = R"(
    shl.b32 %r4, %thread, 5; add.u32 %r4, %r4, %smem;
    ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%r4];
    ld.shared.v4.b32 {%v4, %v5, %v6, %v7}, [%r4+16];
    add.u32 %r5, %lanebase, 128;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5], {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    add.u32 %r6, %taddr, 128;
  )";
  std::string mma =
      replaced(kProducts, "MMA", "tcgen05.mma.cta_group::1.kind::f16 [%taddr], [%r6], %bdesc, %idesc, %p3;");
  p.a.k = p.b.k = 16;
  Matrix a = p.a, b = p.b;
  for (int i = 0; i < 128; ++i)
    for (int k = 0; k < 16; ++k)
      a.values[static_cast<size_t>(i * 16 + k)] = p.a.values[static_cast<size_t>(i * 64 + k)];
  for (int j = 0; j < 64; ++j)
    for (int k = 0; k < 16; ++k)
      b.values[static_cast<size_t>(j * 16 + k)] = p.b.values[static_cast<size_t>(j * 64 + k)];
  p.a = a, p.b = b;
  for (const std::string& schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    expect_product(p, run(program_text(store_a + mma + kStore), p.run, schedule), false);
  }
  EXPECT_CONTAINS(
      error_of(program_text(replaced(store_a, "tcgen05.st.sync", "@%p7 tcgen05.st.sync") + mma + kStore),
               p.run),
      "matrix A: tensor memory lane 0, column 128 is read but nothing has written it");
}

// tcgen05.cp, then the commit that tracks it.
TEST(Tcgen05, CopyFromSharedMemory) {
  Inputs r;
  r.image.resize(32 * 16);
  for (uint32_t i = 0; i < 32 * 4; ++i) std::memcpy(&r.image[i * 4], &i, 4);
  r.descriptors = {descriptor(SwizzleMode::none, 0, {16, 128}), 0};
  std::string copy = replaced(kProducts, "MMA", "tcgen05.cp.cta_group::1.32x128b.warpx4 [%taddr], %adesc;");
  std::string store = replaced(replaced(kStore, "32x32b.x8", "32x32b.x4"),
                               "{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}", "{%v0, %v1, %v2, %v3}");
  store =
      replaced(replaced(store, "st.global.v4.b32 [%out+16], {%v4, %v5, %v6, %v7};", ""), "%i, 64;", "%i, 1;");
  for (const std::string& schedule : kSchedules) {
    std::vector<uint32_t> got = run(program_text(copy + store), r, schedule);
    for (uint32_t lane = 0; lane < 128; ++lane) {
      for (uint32_t c = 0; c < 4; ++c) ASSERT_EQ(got[lane * 64 + c], lane % 32 * 4 + c) << schedule;
    }
  }
}

// A loop whose elected thread issues the products and waits behind the other lanes of its warp, which come
// back to the aligned barrier first.
TEST(Tcgen05, ElectedThreadLagsBehindAnAlignedBarrierInALoop) {
  Problem p = problem(DType::f16, DType::f16, 11);
  p.run.idesc = idesc(1, 0, 0, 128, 64);
  std::string loop = R"(
    mov.u32 %i, 0; shr.u32 %r2, %smem, 4; cvt.u64.u32 %rd1, %r2;
again:
    barrier.sync.aligned 0;
    @%p1 bra skip;
    ld.global.v2.u64 {%adesc, %bdesc}, [%desc];
    add.u64 %adesc, %adesc, %rd1; add.u64 %bdesc, %bdesc, %rd1;
    setp.ne.u32 %p3, %i, 0;
    tcgen05.mma.cta_group::1.kind::f16 [%taddr], %adesc, %bdesc, %idesc, %p3;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
skip:
    and.b32 %r4, %i, 1;
poll:
    mbarrier.try_wait.parity.shared.b64 %p5, [bar], %r4;
    @!%p5 bra poll;
    add.s64 %desc, %desc, 16; add.u32 %i, %i, 1; setp.lt.u32 %p4, %i, %count;
    @%p4 bra again;
    tcgen05.fence::after_thread_sync;
  )";
  for (const std::string& schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    expect_product(p, run(program_text(loop + kStore), p.run, schedule), false);
  }
}

// --- errors ---

TEST(Tcgen05, UnwrittenOperandNamesElementAndBuffer) {
  Problem p = problem(DType::f16, DType::f16, 9);
  p.run.idesc = idesc(1, 0, 0, 128, 64);
  p.run.copied = 128 * 128 + 32 * 128;  // half of B
  ptx::DebugMap names;
  ptx::Region region;
  region.name = "Bs";
  region.begin = 16384, region.end = 16384 + 65536;
  region.dtype = DType::f16;
  names.shared.push_back(region);
  p.run.names = std::make_shared<const ptx::DebugMap>(names);
  std::string error = error_of(program_text(mma_text("f16") + kStore), p.run);
  EXPECT_CONTAINS(error, "matrix B: element (n 32, k 0) is read but nothing has written it: Bs");
  EXPECT_CONTAINS(error, "at tcgen05.mma.cta_group::1.kind::f16");
}

TEST(Tcgen05, FaultsNameTheRule) {
  Problem p = problem(DType::f16, DType::f16, 10);
  p.run.idesc = idesc(1, 0, 0, 96, 64);
  EXPECT_CONTAINS(error_of(program_text(mma_text("f16") + kStore), p.run), "M = 96 (bits 24-28)");
  p.run.idesc = idesc(1, 0, 0, 128, 64);
  EXPECT_CONTAINS(error_of(program_text(mma_text("f16", "1") + kStore), p.run),
                  "set enable-input-d to false for the first product");
  EXPECT_CONTAINS(error_of(program_text(replaced(kStore, "%lanebase, %i", "%taddr, %i")), p.run),
                  "of a warpgroup can access lanes");
  EXPECT_CONTAINS(error_of(replaced(program_text(""), "%taddr, 256", "%taddr, 128"), p.run),
                  "where 256 were allocated");
  EXPECT_CONTAINS(error_of(replaced(program_text(""), "[slot], 256", "[slot], 100"), p.run),
                  "power of two in [32, 512]");
  p.run.descriptors[0] ^= uint64_t{1} << 46;
  EXPECT_CONTAINS(error_of(program_text(mma_text("f16") + kStore), p.run),
                  "bits 46-48 must be the constant 0b001");
}

TEST(Tcgen05, AllocationThatIsNeverFreed) {
  std::string text =
      replaced(program_text(""), "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %taddr, 256;", "");
  EXPECT_CONTAINS(error_of(text, {}), "tensor memory columns [0, 256) are still allocated when the CTA ends");
}

TEST(Tcgen05, AllocationWaitsForColumns) {
  std::string twice = replaced(program_text(""), "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
                               "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 256;\n"
                               "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;");
  std::string error = error_of(twice, {});
  EXPECT_CONTAINS(error, "deadlock");
  EXPECT_CONTAINS(error, "waits for 32 free columns of tensor memory; allocated are [0, 256) [256, 512)");
}

TEST(Tcgen05, WrongArchitectureAndUnmodelledForms) {
  auto decode_error = [](const std::string& text, const std::string& arch) -> std::string {
    try {
      compile(text, small_machine(arch));
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_CONTAINS(decode_error(module_text("", "tcgen05.wait::ld.sync.aligned;\nexit;", "sm_100a"), "sm_90a"),
                  "sm_100a");
  std::string shift = ".reg .b32 %r0;\ntcgen05.shift.cta_group::1.down [%r0];\nexit;";
  EXPECT_CONTAINS(decode_error(module_text("", shift, "sm_100a"), "sm_100a"),
                  "tcgen05.shift is not modelled");
}

}  // namespace
}  // namespace tw::sim::testing
