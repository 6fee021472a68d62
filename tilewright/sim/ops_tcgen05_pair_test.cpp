#include <gtest/gtest.h>

#include "tilewright/base/error.h"
#include "tilewright/sim/matrix_testing.h"
#include "tilewright/sim/testing.h"

// CTA pairs: tcgen05 with .cta_group::2. Operands are placed element by element: the even CTA has the first
// half of A's rows and of B's columns (CUTLASS, SM100_MMA_*_2x1SM_SS: ALayout and BLayout), and D lies as
// layouts A and B of "Data Path Layout Organization" say (CUTLASS, tmem_frg_2sm).
namespace tw::sim::testing {
namespace {

const std::vector<std::string> kSchedules = {"eager", "late", "random:1", "random:5", "random:9"};

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

// 2 CTAs of 128 threads. Each copies its image to shared memory and allocates; after a cluster barrier the
// thread ISSUER issues MIDDLE, commits to both CTAs, and each CTA stores lanes x 64 columns to its half of
// `out`.
constexpr const char* kBody = R"(
  .reg .b32 %r<16>; .reg .b32 %v<16>; .reg .b64 %rd<16>; .reg .pred %p<8>; .reg .b16 %mask;
  .reg .b32 %thread, %smem, %taddr, %idesc, %i, %lanebase, %rank;
  .reg .b64 %in, %desc, %out, %adesc, %bdesc;
  .shared .align 8 .b64 bar;
  .shared .align 4 .b32 slot;
  mov.u32 %thread, %tid.x; mov.u32 %smem, smem; mov.u32 %rank, %cluster_ctarank;
  ld.param.u64 %in, [in]; ld.param.u64 %desc, [descs]; ld.param.u64 %out, [out];
  ld.param.u32 %r0, [bytes]; ld.param.u32 %idesc, [idesc];
  mul.wide.u32 %rd0, %rank, %r0; add.s64 %in, %in, %rd0;
  shl.b32 %i, %thread, 4;
copy:
  setp.ge.u32 %p0, %i, %r0;
  @%p0 bra copied;
  cvt.u64.u32 %rd0, %i; add.s64 %rd0, %in, %rd0; add.u32 %r1, %smem, %i;
  ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%rd0];
  and.b32 %r1, %r1, 0xffffff;
  cvta.shared.u64 %rd1, smem; cvt.u64.u32 %rd2, %i; add.s64 %rd1, %rd1, %rd2;
  st.v4.b32 [%rd1], {%v0, %v1, %v2, %v3};
  add.u32 %i, %i, 2048;
  bra copy;
copied:
  setp.ne.u32 %p1, %thread, 0;
  @%p1 bra initialised;
  mbarrier.init.shared.b64 [bar], 1;
initialised:
  setp.ge.u32 %p2, %thread, 32;
  @%p2 bra allocated;
  ALLOC
allocated:
  fence.proxy.async.shared::cta;
  fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ld.shared.b32 %taddr, [slot];
  and.b32 %lanebase, %thread, 0xe0; shl.b32 %lanebase, %lanebase, 16; add.u32 %lanebase, %lanebase, %taddr;
  setp.ne.or.u32 %p3, %rank, ISSUER, %p1;
  BEFORE
  @%p3 bra issued;
  mov.u32 %i, 0;
  and.b32 %r2, %smem, 0xffffff; shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd1, %r2;
next:
  ld.global.v2.u64 {%adesc, %bdesc}, [%desc];
  add.u64 %adesc, %adesc, %rd1; add.u64 %bdesc, %bdesc, %rd1;
  setp.ne.u32 %p4, %i, 0;
  MIDDLE
  add.s64 %desc, %desc, 16; add.u32 %i, %i, 1; setp.lt.u32 %p5, %i, 4;
  @%p5 bra next;
  mov.b16 %mask, 3;
  tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [bar], %mask;
issued:
wait:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p6, [bar], 0;
  @!%p6 bra wait;
  tcgen05.fence::after_thread_sync;
  mov.u32 %i, 0;
  mad.lo.u32 %r3, %rank, 128, %thread;
  mul.wide.u32 %rd2, %r3, 256; add.s64 %out, %out, %rd2;
read:
  add.u32 %r3, %lanebase, %i;
  tcgen05.ld.sync.aligned.32x32b.x8.b32 {%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}, [%r3];
  tcgen05.wait::ld.sync.aligned;
  st.global.v4.b32 [%out], {%v0, %v1, %v2, %v3};
  st.global.v4.b32 [%out+16], {%v4, %v5, %v6, %v7};
  add.s64 %out, %out, 32; add.u32 %i, %i, 8; setp.lt.u32 %p7, %i, COLUMNS;
  @%p7 bra read;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  @%p2 exit;
  FREE
  exit;
)";
constexpr const char* kAlloc =
    "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 128;\n"
    "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;";
constexpr const char* kFree = "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %taddr, 128;";
constexpr const char* kMma = "tcgen05.mma.cta_group::2.kind::f16 [%taddr], %adesc, %bdesc, %idesc, %p4;";

struct Text {
  std::string middle = kMma, before, alloc = kAlloc, free = kFree;
  int issuer = 0, columns = 64;
  std::string str() const {
    std::string body = replaced(kBody, "MIDDLE", middle);
    body = replaced(replaced(replaced(body, "BEFORE", before), "ALLOC", alloc), "FREE", free);
    body = replaced(body, "ISSUER", std::to_string(issuer));
    body = replaced(body, "COLUMNS", std::to_string(columns));
    return module_text(
        ".param .u64 in, .param .u64 descs, .param .u64 out, .param .u32 bytes, .param .u32 idesc", body,
        "sm_100a", ".extern .shared .align 1024 .b8 smem[];");
  }
};

struct Problem {
  Matrix a, b;
  std::vector<std::byte> image;  // of CTA 0, then of CTA 1
  std::vector<uint64_t> descriptors;
  uint32_t idesc = 0;
  int m, n;
};

uint64_t descriptor(long start) {  // K-major, 128B swizzle, 1024 bytes from 8 rows to the next
  return static_cast<uint64_t>(start) >> 4 | uint64_t{1} << 16 | uint64_t{64} << 32 | uint64_t{1} << 46 |
         uint64_t{2} << 61;
}

// f16 or bf16, K = 64: four k-steps.
Problem problem(int m, int n, DType type, uint32_t seed) {
  std::mt19937 random(seed);
  Problem p{random_matrix(type, m, 64, random), random_matrix(type, n, 64, random), {}, {}, 0, m, n};
  const int a_rows = m / 2, b_rows = n / 2;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::byte> image(static_cast<size_t>(a_rows + (b_rows + 7) / 8 * 8) * 128);
    Matrix a{type, a_rows, 64, {}, {}}, b{type, b_rows, 64, {}, {}};
    a.codes.assign(p.a.codes.begin() + rank * a_rows * 64, p.a.codes.begin() + (rank + 1) * a_rows * 64);
    b.codes.assign(p.b.codes.begin() + rank * b_rows * 64, p.b.codes.begin() + (rank + 1) * b_rows * 64);
    for (int k = 0; k < 64; ++k) {
      for (int i = 0; i < a_rows; ++i) place(image, a, SwizzleMode::b128, false, {16, 1024}, 0, 0, i, k);
      for (int j = 0; j < b_rows; ++j)
        place(image, b, SwizzleMode::b128, false, {16, 1024}, a_rows * 128, 0, j, k);
    }
    p.image.insert(p.image.end(), image.begin(), image.end());
  }
  for (int step = 0; step < 4; ++step) {
    p.descriptors.push_back(descriptor(step * 32));
    p.descriptors.push_back(descriptor(a_rows * 128 + step * 32));
  }
  const uint32_t code = type == DType::bf16 ? 1 : 0;
  p.idesc = 1u << 4 | code << 7 | code << 10 | static_cast<uint32_t>(n) >> 3 << 17 |
            static_cast<uint32_t>(m) >> 4 << 24;
  return p;
}

// out[rank][lane][64 columns]
std::vector<uint32_t> run(const Text& text, const Problem& p, std::string_view schedule = "eager",
                          uint32_t ctas = 2) {
  Program program = compile(text.str(), small_machine("sm_100a"));
  GlobalMemory memory;
  Buffer<std::byte> in(memory, p.image, "in");
  Buffer<uint64_t> descs(memory, p.descriptors, "descs");
  Buffer<uint32_t> out(memory, std::vector<uint32_t>(2 * 128 * 64, 0), "out");
  const auto bytes = static_cast<uint32_t>(p.image.size() / 2);
  Launch launch{{ctas, 1, 1},
                {128, 1, 1},
                {ctas, 1, 1},
                bytes,
                Params().add(in.address).add(descs.address).add(out.address).add(bytes).add(p.idesc).bytes()};
  RunOptions options;
  options.schedule = parse_schedule(schedule);
  options.instruction_limit = 10'000'000;
  program.run(launch, memory, options);
  return out.get();
}

std::string error_of(const Text& text, const Problem& p, std::string_view schedule = "eager",
                     uint32_t ctas = 2) {
  try {
    run(text, p, schedule, ctas);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

void expect_element(const Problem& p, uint32_t cell, int row, int column, double times = 1) {
  double sum = 0, magnitude = 0;
  for (int k = 0; k < 64; ++k) {
    sum += p.a.at(row, k) * p.b.at(column, k);
    magnitude += std::fabs(p.a.at(row, k) * p.b.at(column, k));
  }
  ASSERT_NEAR(std::bit_cast<float>(cell), times * sum, magnitude * 64 * 0x1p-24) << row << ", " << column;
}

// Layout A: CTA r has rows 128 r to 128 r + 127 in its lanes, column n in column n.
TEST(Tcgen05Pair, RowsOf256OverBothCtas) {
  for (DType type : {DType::f16, DType::bf16}) {
    Problem p = problem(256, 64, type, 3);
    for (int issuer : {0, 1}) {
      Text text;
      text.issuer = issuer;
      for (const std::string& schedule : kSchedules) {
        SCOPED_TRACE(tw::format("{} issued by {} {}", name(type), issuer, schedule));
        std::vector<uint32_t> got = run(text, p, schedule);
        for (int row = 0; row < 256; ++row) {
          for (int n = 0; n < 64; ++n) {
            expect_element(p, got[static_cast<size_t>(row * 64 + n)], row, n);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// Layout B: CTA r has rows 64 r to 64 r + 63, the first half of the columns in lanes 0 to 63, the second in
// lanes 64 to 127. N = 80 makes halves of 40 columns, which no vector length divides.
TEST(Tcgen05Pair, RowsOf128InTwoHalves) {
  for (int columns : {128, 80}) {
    Problem p = problem(128, columns, DType::f16, 4);
    Text text;
    text.columns = columns / 2;
    for (const std::string& schedule : kSchedules) {
      SCOPED_TRACE(tw::format("N {} {}", columns, schedule));
      std::vector<uint32_t> got = run(text, p, schedule);
      for (int r = 0; r < 2; ++r) {
        for (int lane = 0; lane < 128; ++lane) {
          for (int c = 0; c < columns / 2; ++c) {
            // A thread's row in `out` has as many columns as it stored.
            expect_element(p, got[static_cast<size_t>((r * 128 + lane) * 64 + c)], r * 64 + lane % 64,
                           c + lane / 64 * columns / 2);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// M = 128 reads A for lanes 64 to 127 from those lanes: the rows are there twice (CUTLASS,
// TmemAllocMode::Duplicated). M = 256: a row a lane.
TEST(Tcgen05Pair, OperandInTensorMemory) {
  for (int m : {128, 256}) {
    Problem p = problem(m, 64, DType::f16, 5);
    // Rows of A for the first k-step, 32 bytes each, instead of the swizzled tile.
    const size_t half = p.image.size() / 2;
    for (int row = 0; row < m; ++row) {
      for (int k = 0; k < 16; ++k) {
        const uint32_t code = p.a.code(row, k);
        std::memcpy(&p.image[static_cast<size_t>(row / (m / 2)) * half +
                             static_cast<size_t>(row % (m / 2) * 32 + k * 2)],
                    &code, 2);
      }
    }
    Text text;
    text.before = tw::format(R"(
      and.b32 %r4, %thread, {}; shl.b32 %r4, %r4, 5; add.u32 %r4, %r4, %smem;
      ld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%r4];
      ld.shared.v4.b32 {{%v4, %v5, %v6, %v7}}, [%r4+16];
      add.u32 %r5, %lanebase, 96;
      tcgen05.st.sync.aligned.32x32b.x8.b32 [%r5], {{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}};
      tcgen05.wait::st.sync.aligned;
      tcgen05.fence::before_thread_sync;
      barrier.cluster.arrive.aligned;
      barrier.cluster.wait.aligned;
      tcgen05.fence::after_thread_sync;
      add.u32 %r6, %taddr, 96;)",
                             m / 2 - 1);
    text.middle =
        "@%p4 bra skip; tcgen05.mma.cta_group::2.kind::f16 [%taddr], [%r6], %bdesc, %idesc, %p4;\nskip:";
    text.columns = m == 128 ? 32 : 64;
    Problem first = p;  // only the first k-step
    for (int i = 0; i < m; ++i)
      for (int k = 16; k < 64; ++k) first.a.values[static_cast<size_t>(i * 64 + k)] = 0;
    for (const std::string& schedule : kSchedules) {
      std::vector<uint32_t> got = run(text, p, schedule);
      for (int r = 0; r < 2; ++r) {
        for (int lane = 0; lane < 128; ++lane) {
          for (int c = 0; c < text.columns; ++c) {
            expect_element(first, got[static_cast<size_t>((r * 128 + lane) * 64 + c)],
                           m == 256 ? r * 128 + lane : r * 64 + lane % 64, m == 256 ? c : c + lane / 64 * 32);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

// tcgen05.cp copies each CTA's shared memory to its own tensor memory.
TEST(Tcgen05Pair, CopyIntoBothCtas) {
  Problem p = problem(256, 64, DType::f16, 6);
  for (size_t i = 0; i < p.image.size() / 4; ++i) {
    const auto word = static_cast<uint32_t>(i);
    std::memcpy(&p.image[i * 4], &word, 4);
  }
  const auto words = static_cast<uint32_t>(p.image.size() / 8);
  // No swizzle, 8 rows of 16 bytes after each other.
  p.descriptors.assign(8, uint64_t{1} << 16 | uint64_t{8} << 32 | uint64_t{1} << 46);
  Text text;
  text.middle = "tcgen05.cp.cta_group::2.32x128b.warpx4 [%taddr], %adesc;";
  for (const std::string& schedule : kSchedules) {
    Text t = text;
    t.columns = 1;
    // Only four columns are written.
    std::string source = replaced(t.str(), "32x32b.x8", "32x32b.x4");
    source = replaced(source, "{%v0, %v1, %v2, %v3, %v4, %v5, %v6, %v7}", "{%v0, %v1, %v2, %v3}");
    source = replaced(source, "st.global.v4.b32 [%out+16], {%v4, %v5, %v6, %v7};", "");
    Program program = compile(source, small_machine("sm_100a"));
    GlobalMemory memory;
    Buffer<std::byte> in(memory, p.image, "in");
    Buffer<uint64_t> descs(memory, p.descriptors, "descs");
    Buffer<uint32_t> out(memory, std::vector<uint32_t>(2 * 128 * 64, 0), "out");
    const auto bytes = static_cast<uint32_t>(p.image.size() / 2);
    Launch launch{
        {2, 1, 1},
        {128, 1, 1},
        {2, 1, 1},
        bytes,
        Params().add(in.address).add(descs.address).add(out.address).add(bytes).add(p.idesc).bytes()};
    RunOptions options;
    options.schedule = parse_schedule(schedule);
    program.run(launch, memory, options);
    const auto got = out.get();
    for (uint32_t r = 0; r < 2; ++r) {
      for (uint32_t lane = 0; lane < 128; ++lane) {
        for (uint32_t c = 0; c < 4; ++c)
          ASSERT_EQ(got[(r * 128 + lane) * 64 + c], r * words + lane % 32 * 4 + c) << schedule;
      }
    }
  }
}

TEST(Tcgen05Pair, AllocationNeedsBothCtas) {
  Problem p = problem(256, 64, DType::f16, 7);
  Text text;
  text.alloc = "setp.ne.u32 %p0, %rank, 0;\n@%p0 bra allocated;\n" + std::string(kAlloc);
  std::string error = error_of(text, p);
  EXPECT_CONTAINS(error, "deadlock");
  EXPECT_CONTAINS(error,
                  "waits for a warp of the peer CTA (rank 1) to perform tcgen05.alloc.cta_group::2 as well");

  text.alloc = "setp.ne.u32 %p0, %rank, 0;\n@%p0 exit;\n" + std::string(kAlloc);
  error = error_of(text, p, "late");
  EXPECT_CONTAINS(error, "deadlock");

  text.alloc =
      "shl.b32 %r7, %rank, 5; add.u32 %r7, %r7, 32;\n"
      "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], %r7;";
  EXPECT_CONTAINS(error_of(text, p), "of 32 columns at 0 by the even CTA of the pair, of 64 at 0 by the odd");

  text.alloc =
      "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 512;\n"
      "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 32;";
  EXPECT_CONTAINS(
      error_of(text, p),
      "waits for 32 free columns of tensor memory in both CTAs of the pair; allocated are [0, 512)");
}

// Table 48: a dealloc of one CTA before the barrier that the other CTA's dealloc follows may hang.
TEST(Tcgen05Pair, DeallocationBeforeABarrierThatThePeersFollows) {
  Problem p = problem(256, 64, DType::f16, 8);
  Text text;
  text.free = "setp.ne.u32 %p0, %rank, 0;\n@%p0 bra odd;\nbarrier.cluster.arrive; barrier.cluster.wait;\n" +
              std::string(kFree) + "\nexit;\nodd:\n" + kFree +
              "\nbarrier.cluster.arrive; barrier.cluster.wait;";
  std::string error = error_of(text, p);
  EXPECT_CONTAINS(error, "deadlock");
  EXPECT_CONTAINS(error, "(rank 0) to perform tcgen05.dealloc.cta_group::2 as well");
}

TEST(Tcgen05Pair, FaultsNameTheRule) {
  Problem p = problem(256, 64, DType::f16, 9);
  Text mixed;
  mixed.middle = replaced(kMma, "cta_group::2", "cta_group::1");
  EXPECT_CONTAINS(error_of(mixed, p), "other tcgen05 instructions of this kernel have .cta_group::2");

  EXPECT_CONTAINS(error_of({}, p, "eager", 1), ".cta_group::2 in a cluster of 1: CTA rank 0 has no peer CTA");

  Problem wrong = p;
  wrong.idesc = (p.idesc & ~(31u << 24)) | 4u << 24;
  EXPECT_CONTAINS(error_of({}, wrong), "M = 64 (bits 24-28); .kind::f16 with .cta_group::2 allows 128, 256");
  wrong.idesc = (p.idesc & ~(63u << 17)) | 3u << 17;
  EXPECT_CONTAINS(error_of({}, wrong), "N = 24 (bits 17-22)");

  Text gone;
  gone.before = "setp.eq.u32 %p0, %rank, 1;\n@%p0 exit;";
  const std::string error = error_of(gone, p, "late");
  EXPECT_TRUE(error.find("the peer CTA (rank 1) has exited") != error.npos ||
              error.find("still allocated when the CTA ends") != error.npos)
      << error;
}

TEST(Tcgen05Pair, UnwrittenOperandOfThePeerIsNamed) {
  Problem p = problem(256, 64, DType::f16, 10);
  Text text;
  // The odd CTA copies nothing.
  std::string source = replaced(text.str(), "  shl.b32 %i, %thread, 4;",
                                "  setp.ne.u32 %p0, %rank, 0; @%p0 mov.u32 %r0, 0; shl.b32 %i, %thread, 4;");
  Program program = compile(source, small_machine("sm_100a"));
  GlobalMemory memory;
  Buffer<std::byte> in(memory, p.image, "in");
  Buffer<uint64_t> descs(memory, p.descriptors, "descs");
  Buffer<uint32_t> out(memory, std::vector<uint32_t>(2 * 128 * 64, 0), "out");
  const auto bytes = static_cast<uint32_t>(p.image.size() / 2);
  Launch launch{{2, 1, 1},
                {128, 1, 1},
                {2, 1, 1},
                bytes,
                Params().add(in.address).add(descs.address).add(out.address).add(bytes).add(p.idesc).bytes()};
  try {
    program.run(launch, memory, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_CONTAINS(std::string(e.what()), "matrix A: element (m 0, k 0) is read but nothing has written it");
    EXPECT_CONTAINS(std::string(e.what()), "of CTA rank 1");
  }
}

}  // namespace
}  // namespace tw::sim::testing
