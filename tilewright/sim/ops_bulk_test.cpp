#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "tilewright/base/error.h"
#include "tilewright/sim/tensor_map.h"
#include "tilewright/sim/testing.h"

namespace tw::sim::testing {
namespace {

const std::vector<std::string> kSchedules = {"eager", "late", "random:1", "random:2", "random:77"};
using Type = TensorMapSpec::Type;
using Swizzle = TensorMapSpec::Swizzle;

// One thread issues, all read back. The map is the first parameter, `in` and `out` follow.
struct Scene {
  Dim3 grid{}, cluster{};
  std::string schedule = "eager";
  std::string arch = "sm_90a";
  std::vector<uint32_t> input = {};   // "in"
  std::vector<uint32_t> output = {};  // "out", as it begins
  std::function<TensorMapSpec(uint64_t in, uint64_t out)> map = [](uint64_t in, uint64_t) {
    TensorMapSpec s;
    s.type = Type::u32;
    s.rank = 1;
    s.address = in;
    s.dims = {4};
    s.strides = {4};
    s.box = {4};
    return s;
  };
  bool forged = false;  // the parameter is no tensor map
};

constexpr const char* kPrologue = R"(
  .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<48>; .reg .b64 %rd<16>; .reg .f32 %f<16>;
  .shared .align 1024 .b8 tile[16384]; .shared .align 8 .b64 bar;
  ld.param.u64 %rd0, [in]; ld.param.u64 %rd1, [out]; mov.b64 %rd7, map; cvta.param.u64 %rd7, %rd7; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
)";
// Copies `words` words of the tile to out, one thread each 32.
std::string epilogue(int words, std::string_view from = "tile") {
  return tw::format(R"(
  mov.u32 %r40, {}; mad.lo.u32 %r40, %r0, 4, %r40; mad.wide.u32 %rd8, %r0, 4, %rd1; mov.u32 %r41, 0;
  copy: ld.shared.u32 %r42, [%r40]; st.global.u32 [%rd8], %r42; add.u32 %r40, %r40, 128; add.u64 %rd8, %rd8, 128;
  add.u32 %r41, %r41, 32; setp.lt.u32 %p7, %r41, {}; @%p7 bra copy; exit;)",
                    from, words);
}
constexpr const char* kWait = "wait: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra wait;\n";

std::vector<uint32_t> run(const Scene& s, std::string_view body) {
  Program program = compile(module_text(".param .align 64 .b8 map[128], .param .u64 in, .param .u64 out",
                                        std::string(kPrologue) + std::string(body), s.arch),
                            small_machine(s.arch));
  GlobalMemory memory;
  Buffer<uint32_t> in(memory, s.input.empty() ? std::vector<uint32_t>(64, 7) : s.input, "in");
  Buffer<uint32_t> out(memory, s.output.empty() ? std::vector<uint32_t>(64, 0) : s.output, "out");
  TensorMapObject object = encode(s.map(in.address, out.address));
  if (s.forged) object[100] ^= std::byte{1};
  RunOptions options;
  options.schedule = parse_schedule(s.schedule);
  options.host_threads = 2;
  options.instruction_limit = 20'000'000;
  program.run(
      {s.grid, {32, 1, 1}, s.cluster, 0, Params().add(object).add(in.address).add(out.address).bytes()},
      memory, options);
  return out.get();
}

std::string fault_of(const Scene& s, std::string_view body) {
  try {
    run(s, body);
  } catch (const Error& e) {
    return e.message();
  }
  return "no fault";
}
void expect_fault(const Scene& s, std::string_view body, std::string_view text) {
  const std::string message = fault_of(s, body);
  EXPECT_NE(message.find(text), std::string::npos) << message;
}

std::vector<uint32_t> counting(size_t n) {
  std::vector<uint32_t> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<uint32_t>(1000 + i);
  return v;
}

// u32 [20, 38], which ends inside 16 bytes, in rows of 160 bytes; boxes of 8 rows of 32.
constexpr int kColumns = 38, kWholeColumns = 40;  // in whole 16 bytes
TensorMapSpec matrix(uint64_t address) {
  TensorMapSpec s;
  s.type = Type::u32;
  s.rank = 2;
  s.address = address;
  s.dims = {kColumns, 20};
  s.strides = {4, 160};
  s.box = {32, 8};
  s.swizzle = Swizzle::b128;
  return s;
}
// The box at (x, y) as it lies in a tile that begins at a multiple of 1024, with zeros outside.
std::vector<uint32_t> box_of(const std::vector<uint32_t>& tensor, int x, int y) {
  std::vector<uint32_t> tile(256, 0);
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 32; ++column) {
      const int gx = x + column, gy = y + row;
      if (gx < 0 || gx >= kColumns || gy < 0 || gy >= 20) continue;
      tile[static_cast<size_t>(row * 32 + ((column / 4) ^ row) * 4 + column % 4)] =
          tensor[static_cast<size_t>(gy * 40 + gx)];
    }
  }
  return tile;
}

std::string load_at(int x, int y) {
  return tw::format(R"(
  @!%p0 bra wait;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd7, {{{}, {}}}], [bar];
)",
                    x, y) +
         kWait;
}

Scene matrix_scene() {
  Scene s;
  s.input = counting(800);
  s.output.assign(256, 0);
  s.map = [](uint64_t in, uint64_t) { return matrix(in); };
  return s;
}

// PTX ISA, "Out of Boundary Access", "Swizzling Modes"; filled bytes count for the mbarrier.
TEST(TensorCopies, BoxesAtAndOverEveryEdge) {
  for (const std::string& schedule : kSchedules) {
    for (auto [x, y] :
         {std::pair{0, 0}, {8, 12}, {-4, 3}, {20, 17}, {36, 19}, {-32, 0}, {100, 100}, {4, -7}}) {
      Scene s = matrix_scene();
      s.schedule = schedule;
      EXPECT_EQ(run(s, load_at(x, y) + epilogue(256)), box_of(s.input, x, y))
          << schedule << " " << x << " " << y;
    }
  }
}

TEST(TensorCopies, TheMapMayLieInGlobalMemoryOrBeNamedByAGenericAddress) {
  Scene s = matrix_scene();
  const std::string generic = R"(
  @!%p0 bra wait;
  mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2; mov.u32 %r2, 8; mov.u32 %r3, 12;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
  prefetch.tensormap [%rd2];
  cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd2, {%r2, %r3}];
  cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [tile], [%rd2, {%r2, %r3}], [bar], %rd0;
)";
  EXPECT_EQ(run(s, generic + std::string(kWait) + epilogue(256)), box_of(s.input, 8, 12));
}

// Stores write whole 16 bytes: at the end of a row also what follows it there (conformance case
// store_clipped_odd, recorded on an H200).
TEST(TensorCopies, StoresLeaveOutWhatLiesOutside) {
  for (const std::string& schedule : kSchedules) {
    Scene s;
    s.schedule = schedule;
    s.input = counting(256);
    s.output.assign(800, 5);
    s.map = [](uint64_t, uint64_t out) { return matrix(out); };
    const auto out = run(s, R"(
  @!%p0 bra done;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 1024, [bar];
  wait: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra wait;
  cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd7, {20, 15}], [tile];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
  mov.u32 %r1, 99; st.shared.u32 [tile], %r1;   // the source has been read
  cp.async.bulk.wait_group 0;
  done: exit;)");
    for (int y = 0; y < 20; ++y) {
      for (int x = 0; x < 40; ++x) {
        uint32_t want = 5;
        if (x >= 20 && x < kWholeColumns && y >= 15) {
          const int row = y - 15, column = x - 20;
          want = s.input[static_cast<size_t>(row * 32 + ((column / 4) ^ row) * 4 + column % 4)];
        }
        ASSERT_EQ(out[static_cast<size_t>(y * 40 + x)], want) << x << " " << y << " " << schedule;
      }
    }
  }
}

TEST(TensorCopies, MulticastFillsAndSignalsEveryCtaOfTheMask) {
  for (const std::string& schedule : kSchedules) {
    Scene s = matrix_scene();
    s.schedule = schedule;
    s.grid = {4, 1, 1};
    s.cluster = {4, 1, 1};
    s.output.assign(1024, 0);
    // Rank 1 sends to ranks 0, 2 and 3; rank 1 gets nothing and writes zeros.
    const auto out = run(s, R"(
  mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p2, %r1, 1; mul.wide.u32 %rd9, %r1, 1024; add.u64 %rd1, %rd1, %rd9;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @%p2 bra sender;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
  bra wait;
  sender: @!%p0 bra done; mov.b16 %h0, 13;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd7, {8, 12}], [bar], %h0;
  done: barrier.cluster.arrive; barrier.cluster.wait; exit;
  )" + std::string(kWait) + "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n" +
                                epilogue(256));
    const auto want = box_of(s.input, 8, 12);
    for (size_t rank : {0, 2, 3}) {
      EXPECT_EQ(std::vector<uint32_t>(out.begin() + rank * 256, out.begin() + (rank + 1) * 256), want)
          << rank << " " << schedule;
    }
    EXPECT_EQ(std::vector<uint32_t>(out.begin() + 256, out.begin() + 512), std::vector<uint32_t>(256, 0));
  }
}

// PTX ISA, "cp.async.bulk.tensor": with .cta_group::2 the signal of each destination goes to the CTA of its
// pair that has the parity of the CTA in which `mbar` lies.
TEST(TensorCopies, APairSignalsTheEvenOrTheOddCta) {
  Scene s = matrix_scene();
  s.arch = "sm_100a";
  s.grid = s.cluster = {2, 1, 1};
  s.output.assign(64, 0);
  const auto out = run(s, R"(
  mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p2, %r1, 0;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  mov.u32 %r5, bar; and.b32 %r5, %r5, 0xFEFFFFFF;
  @!%p0 bra meet;
  @%p2 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 2048;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 [tile], [%rd7, {0, 0}], [%r5];
  @!%p2 bra meet;
  wait: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra wait;
  meet: barrier.cluster.arrive; barrier.cluster.wait;
  mov.u32 %r6, tile; ld.shared.u32 %r7, [%r6+4];
  mad.wide.u32 %rd9, %r1, 128, %rd1; mad.wide.u32 %rd9, %r0, 4, %rd9; st.global.u32 [%rd9], %r7; exit;)");
  EXPECT_EQ(out, std::vector<uint32_t>(64, 1001));
}

TEST(TensorCopies, Faults) {
  Scene s = matrix_scene();
  const std::string load = load_at(0, 0);
  auto with = [&](std::string_view from, std::string_view to) {
    std::string text = load;
    text.replace(text.find(from), from.size(), to);
    return text + epilogue(256);
  };
  expect_fault(s, with("[%rd7,", "[map,"), "takes the generic address of a tensor map, in a register");
  expect_fault(s, with("[tile]", "[tile+64]"), "is not a multiple of 128 bytes");
  expect_fault(
      s, "mov.b64 %rd2, map; cvta.param.u64 %rd2, %rd2; add.u64 %rd2, %rd2, 32;\n" + with("[%rd7,", "[%rd2,"),
      "is not aligned to the 64 bytes");
  Scene forged = s;
  forged.forged = true;
  expect_fault(forged, load + epilogue(256), "are no tensor map");
  Scene other = s;
  other.map = [](uint64_t in, uint64_t) {
    TensorMapSpec m = matrix(in);
    m.rank = 3, m.dims[2] = 1, m.strides[2] = 3200, m.box[2] = 1;
    return m;
  };
  expect_fault(other, load + epilogue(256), "takes a tensor of 2 dimensions, its tensor map has 3");
  Scene past = s;
  past.map = [](uint64_t in, uint64_t) {
    TensorMapSpec m = matrix(in);
    m.dims[1] = 30;
    return m;
  };
  expect_fault(past, load_at(0, 16) + epilogue(256), "past the end of in, 3200 bytes");
  Scene tail = s;  // a vector that ends inside 16 bytes, and its memory with it
  tail.output.assign(38, 0);
  tail.map = [](uint64_t, uint64_t out) {
    TensorMapSpec m = matrix(out);
    m.rank = 1, m.dims[0] = 38, m.swizzle = Swizzle::none;
    return m;
  };
  expect_fault(tail, "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd7, {8}], [tile]; exit;",
               "past the end of out, 152 bytes");
  for (int x : {-5, 1, 2, 39, 101})
    expect_fault(
        s, load_at(x, 0) + epilogue(256),
        tw::format("coordinate 0 is {}, with elements of u32 {} bytes: the innermost coordinate of a "
                   "tensor copy must be a multiple of 16 bytes",
                   x, 4 * x));
  for (std::string_view operation : {"cp.async.bulk.tensor.2d", "cp.reduce.async.bulk.tensor.2d"})
    expect_fault(s,
                 tw::format("{}.global.shared::cta{}.tile.bulk_group [%rd7, {{2, 0}}], [tile]; exit;",
                            operation, operation.starts_with("cp.reduce") ? ".add" : ""),
                 "coordinate 0 is 2, with elements of u32 8 bytes");
  expect_fault(s, R"(
  cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd7, {-4, 0}], [tile]; exit;)",
               "coordinate 0 of a tensor store is -4; it must not be negative");
  expect_fault(s, R"(
  @%p0 mbarrier.inval.shared.b64 [bar];
  @%p0 mbarrier.init.shared.b64 [tile+512], 1;
  @!%p0 exit;
  cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd7, {0, 0}], [tile+512]; exit;)",
               "holds the mbarrier tile + 512 bytes");
}

// ---- bulk copies ----

TEST(BulkCopies, AGroupIsReadBeforeItIsWritten) {
  // PTX ISA, "cp.async.bulk.wait_group": after .read the source may be written again; the destination has its
  // bytes only after the whole wait.
  for (const std::string& schedule : kSchedules) {
    Scene s;
    s.schedule = schedule;
    s.output.assign(64, 0);
    const auto out = run(s, R"(
  mov.u32 %r5, tile; mad.lo.u32 %r5, %r0, 4, %r5; st.shared.u32 [%r5], %r0; bar.warp.sync 0xffffffff;
  @!%p0 bra done;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 128;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
  mov.u32 %r6, 77; st.shared.u32 [tile], %r6;
  cp.async.bulk.global.shared::cta.bulk_group [%rd1+128], [tile], 128;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ld.global.u32 %r7, [%rd1+128]; st.global.u32 [%rd1+252], %r7;
  done: exit;)");
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i) << schedule;
    EXPECT_EQ(out[32], 77u) << schedule;
    EXPECT_EQ(out[63], 77u) << schedule;
  }
}

TEST(BulkCopies, ReductionsOfManyClustersAddUp) {
  for (const std::string& schedule : kSchedules) {
    Scene s;
    s.schedule = schedule;
    s.grid = {16, 1, 1};
    s.output.assign(32, 5);
    const auto out = run(s, R"(
  mov.u32 %r5, tile; mad.lo.u32 %r5, %r0, 4, %r5; st.shared.u32 [%r5], %r0; bar.warp.sync 0xffffffff;
  @!%p0 exit;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [tile], 128;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; exit;)");
    for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], 5 + 16 * i) << schedule;
  }
}

TEST(BulkCopies, Faults) {
  const Scene s;
  const auto load = [](std::string_view operands) {
    return tw::format(
        "@!%p0 exit; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {}, [bar]; exit;",
        operands);
  };
  expect_fault(s, load("[tile], [%rd0], 24"), "bulk copy of 24 bytes; the size must be a multiple of 16");
  expect_fault(s, load("[tile+8], [%rd0], 16"), "is not a multiple of 16 bytes");
  expect_fault(s, load("[tile], [%rd0+4], 16"), "is not a multiple of 16 bytes");
  expect_fault(s, load("[tile], [%rd0+128], 256"), "reaches 128 bytes past the end of in, 256 bytes");
  expect_fault(s, load("[tile+32768], [%rd0], 16"), "lies outside the CTA's shared memory");
  expect_fault(s, "@!%p0 exit; cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16; exit;",
               "read of shared memory that nothing has written: tile");
  expect_fault(s, R"(
  @!%p0 exit; cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [tile+16], [tile], 16, [bar]; exit;)",
               "a copy to .shared::cluster goes to another CTA");
  expect_fault(s, R"(
  @!%p0 exit; mov.b16 %h0, 2;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile], [%rd0], 16, [bar], %h0; exit;)",
               "the CTA mask 0x0002 names CTA rank 1, in a cluster of 1");
  expect_fault(
      s, "@!%p0 exit; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [tile], %r0, [bar]; exit;",
      "an asynchronous store in a cluster of one CTA");
}

// The phase of an mbarrier ends only when all bytes of all copies have arrived.
TEST(BulkCopies, AMissingByteIsADeadlockThatSaysSo) {
  const Scene s;
  expect_fault(s,
               std::string(R"(
  @!%p0 bra wait;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 48;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 32, [bar];)") +
                   kWait + "exit;",
               "16 bytes outstanding");
}

// ---- tensormap.replace, tensormap.cp_fenceproxy ----

// PTX ISA, "tensormap.cp_fenceproxy", example: a map is edited in shared memory, copied to global memory and
// used.
TEST(TensorMapEdits, AnEditedMapIsUsedFromGlobalMemory) {
  for (const std::string& schedule : kSchedules) {
    Scene s = matrix_scene();
    s.schedule = schedule;
    s.map = [](uint64_t, uint64_t out) {
      TensorMapSpec m = matrix(out);  // of the wrong tensor, with the wrong extents
      m.dims = {7, 3};
      m.strides[1] = 32;
      return m;
    };
    const auto out = run(s, R"(
  .shared .align 128 .b8 edited[128];
  mov.u32 %r5, edited; mad.lo.u32 %r5, %r0, 4, %r5; mad.wide.u32 %rd2, %r0, 4, 0;
  mov.b64 %rd3, map; add.u64 %rd3, %rd3, %rd2; ld.param.u32 %r6, [%rd3]; st.shared.u32 [%r5], %r6;
  bar.warp.sync 0xffffffff;
  mov.u32 %r5, edited;
  @%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r5], %rd0;
  mov.u32 %r7, 38; mov.u32 %r8, 20; mov.u64 %rd4, 160;
  @%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r5], 0, %r7;
  @%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r5], 1, %r8;
  @%p0 tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r5], 0, %rd4;
  bar.warp.sync 0xffffffff;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r5], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
  @!%p0 bra wait;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {8, 12}], [bar];
)" + std::string(kWait) + epilogue(256));
    EXPECT_EQ(out, box_of(s.input, 8, 12)) << schedule;
  }
}

TEST(TensorMapEdits, RulesHoldWhenTheMapIsUsed) {
  Scene s = matrix_scene();
  const auto edited = [](std::string_view edit) {
    return tw::format(R"(
  .shared .align 128 .b8 edited[128];
  mov.u32 %r5, edited; mad.lo.u32 %r5, %r0, 4, %r5; mad.wide.u32 %rd2, %r0, 4, 0;
  mov.b64 %rd3, map; add.u64 %rd3, %rd3, %rd2; ld.param.u32 %r6, [%rd3]; st.shared.u32 [%r5], %r6;
  bar.warp.sync 0xffffffff; mov.u32 %r5, edited; mov.u64 %rd4, 24; mov.u32 %r9, 7;
  @%p0 {};
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r5], 128;
  @!%p0 exit;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {{8, 12}}], [bar]; exit;)",
                      edit);
  };
  expect_fault(s, edited("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r5], 0, %rd4"),
               "tensor map: the stride of dimension 1 is 24 bytes; strides must be multiples of 16");
  expect_fault(s, edited("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r5], %r9"),
               "the field rank of a tensor map cannot be 7");
}

}  // namespace
}  // namespace tw::sim::testing
