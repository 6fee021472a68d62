#include <gtest/gtest.h>

#include "tilewright/base/error.h"
#include "tilewright/sim/matrix_testing.h"
#include "tilewright/sim/testing.h"

// wgmma as programs: chains, waits, registers and errors. Layouts and types are in matrix_multiply_test.cpp
// and, with values of an H200, in the conformance cases.
namespace tw::sim::testing {
namespace {

const std::vector<std::string> kSchedules = {"eager", "late", "random:1", "random:5", "random:9"};
constexpr int kM = 64, kN = 32, kChunks = 3, kDepth = kChunks * 64;
constexpr int kChunkBytes = (kM + kN) * 128;

// Threads copy the image to shared memory; then BODY with %adesc, %bdesc of the first k-step; the 16
// accumulator registers of each thread go to out.
std::string program_text(const std::string& body) {
  std::string list;
  for (int i = 0; i < 16; ++i) list += tw::format("st.global.f32 [%out+{}], %d{};\n", 4 * i, i);
  return module_text(".param .u64 in, .param .u64 out, .param .u32 bytes", R"(
  .reg .b32 %r<8>, %v<4>, %thread, %smem, %i, %a<4>; .reg .b64 %rd<4>, %in, %out, %adesc, %bdesc; .reg .pred %p<4>;
  .reg .f32 %d<16>, %e<16>;
  mov.u32 %thread, %tid.x; mov.u32 %smem, smem;
  ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %r0, [bytes];
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
  fence.proxy.async.shared::cta;
  bar.sync 0;
  shr.u32 %r2, %smem, 4; cvt.u64.u32 %rd1, %r2;
  add.u64 %adesc, %rd1, 0x4000004000010000;
  add.u64 %bdesc, %adesc, 512;
  mul.wide.u32 %rd2, %thread, 64; add.s64 %out, %out, %rd2;
)" + body + "\n" + list + "exit;",
                     "sm_90a", ".extern .shared .align 1024 .b8 smem[];");
}

std::string registers(const char* prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += tw::format("{}{}{}", i ? ", " : "", prefix, i);
  return text + "}";
}

std::string mma(int step, const char* scale_d = "1", const char* d = "%d", const char* a = "%adesc") {
  return tw::format("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {}, {}, %bdesc, {}, 1, 1, {}0;\n",
                    registers(d, 16), a, scale_d, std::string_view(a) == "%adesc" ? "0, " : "") +
         // the next k-step: 32 bytes on, or the next chunk
         tw::format("add.u64 %adesc, %adesc, {0}; add.u64 %bdesc, %bdesc, {0};\n",
                    step % 4 == 3 ? kChunkBytes / 16 - 6 : 2);
}

struct Problem {
  Matrix a, b;
  std::vector<std::byte> image = std::vector<std::byte>(kChunks * kChunkBytes);
  Problem() : Problem(std::mt19937(21)) {}
  explicit Problem(std::mt19937 random)
      : a(random_matrix(DType::bf16, kM, kDepth, random)), b(random_matrix(DType::bf16, kN, kDepth, random)) {
    for (int c = 0; c < kChunks; ++c) {
      Matrix ca = part(a, c), cb = part(b, c);
      for (int k = 0; k < 64; ++k) {
        for (int i = 0; i < kM; ++i)
          place(image, ca, SwizzleMode::b128, false, {16, 1024}, c * kChunkBytes, 0, i, k);
        for (int j = 0; j < kN; ++j)
          place(image, cb, SwizzleMode::b128, false, {16, 1024}, c * kChunkBytes + kM * 128, 0, j, k);
      }
    }
  }
  static Matrix part(const Matrix& m, int chunk) {
    Matrix p{m.type, m.mn, 64, {}, {}};
    for (int i = 0; i < m.mn; ++i) {
      for (int k = 0; k < 64; ++k) {
        p.codes.push_back(m.code(i, chunk * 64 + k));
        p.values.push_back(m.at(i, chunk * 64 + k));
      }
    }
    return p;
  }
  // Register `index` of thread `thread`, over k in [begin, end): figure 149.
  void expect(const std::vector<float>& got, int begin, int end, double start = 0, double factor = 1) const {
    for (int t = 0; t < 128; ++t) {
      for (int r = 0; r < 16; ++r) {
        int i = t / 32 * 16 + t % 32 / 4 + r / 2 % 2 * 8, j = r / 4 * 8 + t % 4 * 2 + r % 2;
        double sum = start, magnitude = std::fabs(start);
        for (int k = begin; k < end; ++k) {
          sum += factor * a.at(i, k) * b.at(j, k);
          magnitude += std::fabs(factor * a.at(i, k) * b.at(j, k));
        }
        ASSERT_NEAR(got[static_cast<size_t>(t * 16 + r)], sum, magnitude * (end - begin) * 0x1p-24)
            << "thread " << t << " d" << r;
      }
    }
  }
};

std::vector<float> run(const std::string& body, const Problem& p, std::string_view schedule = "eager",
                       uint32_t threads = 128, uint32_t copied = kChunks * kChunkBytes) {
  Program program = compile(program_text(body));
  GlobalMemory memory;
  Buffer<std::byte> in(memory, p.image, "in");
  Buffer<float> out(memory, std::vector<float>(256 * 16, 0), "out");
  Launch launch{{1, 1, 1},
                {threads, 1, 1},
                {},
                kChunks * kChunkBytes,
                Params().add(in.address).add(out.address).add(copied).bytes()};
  RunOptions options;
  options.schedule = parse_schedule(schedule);
  options.instruction_limit = 10'000'000;
  program.run(launch, memory, options);
  return out.get();
}

std::string fill(const char* prefix, const char* value) {
  std::string text;
  for (int i = 0; i < 16; ++i) text += tw::format("mov.f32 {}{}, {};\n", prefix, i, value);
  return text;
}
const std::string kFence = "wgmma.fence.sync.aligned;\n", kCommit = "wgmma.commit_group.sync.aligned;\n";
std::string wait(int n) { return tw::format("wgmma.wait_group.sync.aligned {};\n", n); }

TEST(Wgmma, MainLoopWithOneGroupInFlight) {
  Problem p;
  std::string body = fill("%d", "0f3F800000");  // accumulates onto 1
  for (int c = 0; c < kChunks; ++c) {
    body += kFence;
    for (int s = 0; s < 4; ++s) body += mma(s);
    body += kCommit + wait(1);
  }
  body += wait(0);
  for (const std::string& schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    p.expect(run(body, p, schedule), 0, kDepth, 1);
  }
}

// Registers change between groups: what a wait has covered belongs to the threads again.
TEST(Wgmma, AccumulatorsCanBeScaledBetweenGroups) {
  Problem p;
  std::string body = kFence + mma(0, "0") + mma(1) + kCommit + wait(0);
  for (int i = 0; i < 16; ++i) body += tw::format("mul.f32 %d{0}, %d{0}, 0f40000000;\n", i);
  body += kFence + "add.u64 %adesc, %adesc, -4; add.u64 %bdesc, %bdesc, -4;\n" + mma(0) + mma(1) + kCommit +
          wait(0);
  for (const std::string& schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    p.expect(run(body, p, schedule), 0, 32, 0, 3);  // 2 * AB + AB
  }
}

// Two accumulators in flight; the first group is read while the second may still run.
TEST(Wgmma, TwoAccumulators) {
  Problem p;
  std::string body = kFence + mma(0, "0", "%d") + kCommit + mma(1, "0", "%e") + kCommit + wait(1);
  std::string first = body + wait(0), second = first;
  for (int i = 0; i < 16; ++i) second += tw::format("mov.f32 %d{0}, %e{0};\n", i);
  for (const std::string& schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    p.expect(run(body, p, schedule), 0, 16);
    p.expect(run(second, p, schedule), 16, 32);
  }
}

// scale-d as a predicate, false for the first: NaN in the accumulator is not read.
TEST(Wgmma, ScaleDPredicate) {
  Problem p;
  std::string body = fill("%d", "0f7FC00000") +
                     "setp.ne.u32 %p1, %smem, %smem;\nsetp.eq.u32 %p2, %smem, %smem;\n" + kFence +
                     mma(0, "%p1") + mma(1, "%p2") + kCommit + wait(0);
  p.expect(run(body, p, "late"), 0, 32);
}

TEST(Wgmma, MatrixAFromRegisters) {
  Problem p;
  // Loads the fragment of figure 148 from the swizzled tile: row r, 16-byte chunk c lies at r * 128 + ((c ^ r
  // % 8) << 4).
  std::string body = R"(
    shr.u32 %r3, %thread, 5; shl.b32 %r3, %r3, 4; and.b32 %r4, %thread, 31; shr.u32 %r4, %r4, 2; add.u32 %r3, %r3, %r4;
    and.b32 %r5, %thread, 3; shl.b32 %r5, %r5, 2;
    mad.lo.u32 %r6, %r3, 128, %smem; add.u32 %r6, %r6, %r5;
    and.b32 %r4, %r3, 7; shl.b32 %r4, %r4, 4; add.u32 %r7, %r6, %r4;
    ld.shared.b32 %a0, [%r7]; ld.shared.b32 %a1, [%r7+1024];
    xor.b32 %r4, %r4, 16; add.u32 %r7, %r6, %r4;
    ld.shared.b32 %a2, [%r7]; ld.shared.b32 %a3, [%r7+1024];
  )" + kFence + mma(0, "0", "%d", "{%a0, %a1, %a2, %a3}") +
                     kCommit + wait(0);
  for (const std::string& schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    p.expect(run(body, p, schedule), 0, 16);
  }
}

std::string error_of(const std::string& body, uint32_t threads = 128,
                     uint32_t copied = kChunks * kChunkBytes) {
  try {
    run(body, Problem(), "eager", threads, copied);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
#define EXPECT_CONTAINS(text, part) EXPECT_TRUE(contains(text, part)) << text

TEST(Wgmma, ErrorsNameTheRule) {
  const std::string one = kFence + mma(0, "0") + kCommit + wait(0);
  EXPECT_CONTAINS(error_of(one, 96), "belongs to no warpgroup");
  EXPECT_CONTAINS(
      error_of("and.b32 %r3, %thread, 96; cvt.u64.u32 %rd3, %r3; add.u64 %bdesc, %bdesc, %rd3;\n" + one),
      "the matrix descriptors differ between the warps of the warpgroup");
  EXPECT_CONTAINS(error_of("cvt.u64.u32 %rd3, %thread; add.u64 %bdesc, %bdesc, %rd3;\n" + one),
                  "b-desc differs between the threads of the warp");
  EXPECT_CONTAINS(error_of("add.u64 %bdesc, %bdesc, 0x0000400000000000;\n" + one), "bits 46-48 are reserved");
  EXPECT_CONTAINS(error_of("add.u64 %bdesc, %bdesc, 0x3000;\n" + one), "matrix B at shared address");
  std::string unwritten = error_of(one, 128, 64 * 128 + 8 * 128);
  EXPECT_CONTAINS(unwritten, "matrix B: element (n 8, k 0) is read but nothing has written it");
  EXPECT_CONTAINS(unwritten, "at wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16");
  EXPECT_CONTAINS(error_of("setp.lt.u32 %p1, %thread, 32;\n@%p1 bra skip;\n" + one + "skip:"), "deadlock");
}

TEST(Wgmma, NeedsHopper) {
  try {
    compile(module_text("", "wgmma.fence.sync.aligned;\nexit;", "sm_90a"), small_machine("sm_100a"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_CONTAINS(std::string(e.what()), "sm_90a");
  }
}

}  // namespace
}  // namespace tw::sim::testing
