"""Bulk copies and their groups; multicast, copies and asynchronous stores between the CTAs of a cluster; remote mbarriers."""

from families.builder import explicit, freeform, index, output, tensor_map
from families.tma import BF16S, EDGES32, EDGES64, HALVES, SINGLES

MOVE = "Data Movement and Conversion Instructions: "
SYNC = "Parallel Synchronization and Communication Instructions: "
TENSOR = MOVE + "cp.async.bulk.tensor"
BULK = MOVE + "cp.async.bulk"
GROUP = BULK + "; " + MOVE + "cp.async.bulk.commit_group; " + MOVE + "cp.async.bulk.wait_group"


def head(size, arrivals=1):
    """32 threads a CTA; `size` bytes of shared memory that hold 0x5000 * rank + word index; an mbarrier; the CTAs meet."""
    return f"""
  .shared .align 1024 .b8 tile[{size}];
  .shared .align 8 .b64 bar;
  .reg .b16 %h<4>;
  .reg .b32 %t<16>, %i, %at, %base, %rank, %peer, %far, %farbar;
  .reg .b64 %in, %out, %x, %y, %map;
  .reg .pred %first, %p, %q, %r<4>;
  mov.u32 %i, %tid.x;
  mov.u32 %base, tile;
  mov.u32 %rank, %cluster_ctarank;
  setp.eq.u32 %first, %i, 0;
  setp.eq.u32 %r0, %rank, 0;
  setp.eq.u32 %r1, %rank, 1;
  shl.b32 %at, %i, 2;
mark:
  shr.u32 %t1, %at, 2;
  mad.lo.u32 %t1, %rank, 0x5000, %t1;
  add.u32 %t0, %base, %at;
  st.shared.b32 [%t0], %t1;
  add.u32 %at, %at, 128;
  setp.lt.u32 %p, %at, {size};
  @%p bra mark;
  @%first mbarrier.init.shared.b64 [bar], {arrivals};
  fence.mbarrier_init.release.cluster;
  fence.proxy.async.shared::cta;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
"""


WAIT = """
wait:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [bar], 0;
  @!%q bra wait;
"""
MEET = """
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
"""
# %far, %farbar: this CTA's tile and bar in the CTA with the rank %peer.
FAR = """  mapa.shared::cluster.u32 %far, %base, %peer;
  mov.u32 %farbar, bar;
  mapa.shared::cluster.u32 %farbar, %farbar, %peer;
"""
PEER = "  xor.b32 %peer, %rank, 1;\n" + FAR


def next_of(n):
    return f"  add.u32 %peer, %rank, 1;\n  and.b32 %peer, %peer, {n - 1};\n" + FAR


def dump(size):
    """Every CTA's shared memory to out_tile, one after the other."""
    return f"""
  ld.param.u64 %out, [out_tile];
  mov.u32 %t2, %ctaid.x;
  mul.wide.u32 %x, %t2, {size};
  add.s64 %out, %out, %x;
  shl.b32 %at, %i, 2;
dump:
  add.u32 %t0, %base, %at;
  ld.shared.b32 %t1, [%t0];
  cvt.u64.u32 %x, %at;
  add.s64 %x, %out, %x;
  st.global.b32 [%x], %t1;
  add.u32 %at, %at, 128;
  setp.lt.u32 %p, %at, {size};
  @%p bra dump;
"""


def cluster_case(name, title, section, ctas, size, body, inputs=(), maps=(), arrivals=1):
    text = head(size, arrivals) + body + MEET + dump(size) + "  ret;"
    freeform(name, title, section, text, list(inputs), [output("tile", "b32", ctas * size // 4)], maps=list(maps),
             grid=[ctas, 1, 1], cluster=[ctas, 1, 1], directives=f".reqnctapercluster {ctas}, 1, 1")


# ---- multicast ----

ROWS = index("t", "b32", 16 * 24, 0x01000001, 0x00010203)  # f16 [24, 32]
MAP = "  mov.b64 %map, map_t;\n  cvta.param.u64 %map, %map;\n"


def rows_map(swizzle="64B", box=(32, 8)):
    return tensor_map(ROWS, "f16", (32, 24), [64], box, swizzle=swizzle)


def multicast(name, title, ctas, issue, mask, expected=512, at=(0, 4), **map_options):
    """CTAs for which `issue` holds send a box to those of `mask`; the CTAs of `mask` wait for `expected` bytes."""
    body = MAP + f"""  mov.b16 %h0, {mask};
  mov.u32 %t4, {mask};
  shr.u32 %t4, %t4, %rank;
  and.b32 %t4, %t4, 1;
  setp.eq.u32 %r3, %t4, 1;
  and.pred %p, %first, %r3;
  @%p mbarrier.arrive.expect_tx.shared.b64 _, [bar], {expected};
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  {issue}
  @!%r3 bra met;
""" + WAIT + "met:\n"
    cluster_case("copies/" + name, title, TENSOR, ctas, 1024, body, [ROWS], [rows_map(**map_options)])


COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
ONE = "and.pred %p, %first, %r{0};\n  @%p " + COPY + " [tile{1}], [%map, {{{2}}}], [bar], %h0;"
multicast("multicast_2", "One CTA sends a box to both", 2, ONE.format(0, "", "0, 4"), 3)
multicast("multicast_2_other", "One CTA sends a box to the other only", 2, ONE.format(0, "+256", "0, 8"), 2)
multicast("multicast_4", "One CTA sends a box to all four, behind the start of the tile", 4, ONE.format(1, "+512", "0, 12"), 15)
multicast("multicast_4_some", "A box for ranks 1 and 3, sent by rank 0", 4, ONE.format(0, "", "0, 4"), 10)
multicast("multicast_4_outside", "A box over the edges, for four CTAs", 4, ONE.format(0, "", "-8, 20"), 15)
multicast("multicast_4_slices", "Each of four CTAs sends its rows of one tile to all", 4, """shl.b32 %t5, %rank, 7;
  add.u32 %t6, %base, %t5;
  shl.b32 %t7, %rank, 1;
  @%first """ + COPY + " [%t6], [%map, {0, %t7}], [bar], %h0;", 15, box=(32, 2))
multicast("multicast_2_halves", "Each of two CTAs sends half of a tile to both, swizzled", 2, """shl.b32 %t5, %rank, 8;
  add.u32 %t6, %base, %t5;
  mad.lo.u32 %t7, %rank, 4, 8;
  @%first """ + COPY + " [%t6], [%map, {0, %t7}], [bar], %h0;", 3, box=(32, 4))
cluster_case("copies/tensor_to_peer", "A box into the other CTA's shared memory, its barrier there", TENSOR, 2, 1024, MAP + PEER + """
  @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
  mad.lo.u32 %t5, %rank, 8, 3;
  @%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%far], [%map, {0, %t5}], [%farbar];
""" + WAIT, [ROWS], [rows_map()])
for ctas, mask in [(2, 3), (4, 15), (4, 6)]:
    cluster_case(f"copies/bulk_multicast_{ctas}_{mask}", f"A bulk copy to the CTAs {mask:#06b} of {ctas}", BULK, ctas, 1024, f"""
  ld.param.u64 %in, [in_t];
  mov.u32 %t4, {mask};
  shr.u32 %t4, %t4, %rank;
  and.b32 %t4, %t4, 1;
  setp.eq.u32 %r3, %t4, 1;
  mov.b16 %h0, {mask};
  and.pred %p, %first, %r3;
  @%p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 336;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  and.pred %p, %first, %r1;
  @%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [tile+48], [%in+16], 336, [bar], %h0;
  @!%r3 bra met;
""" + WAIT + "met:\n", [ROWS])
cluster_case("copies/bulk_to_peer", "A bulk copy from global memory into the other CTA, its barrier there", BULK, 2, 1024, PEER + """
  ld.param.u64 %in, [in_t];
  mul.wide.u32 %x, %rank, 256;
  add.s64 %in, %in, %x;
  @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 192;
  @%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%far+64], [%in], 192, [%farbar];
""" + WAIT, [ROWS])

# ---- between the CTAs of a cluster ----

for ctas in [2, 4]:
    cluster_case(f"copies/ring_{ctas}", f"Shared memory to the next of {ctas} CTAs", BULK, ctas, 1024, next_of(ctas) + """
  @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
  @%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%far+496], [tile], 496, [%farbar];
  @%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%far+1008], [tile+32], 16, [%farbar];
""" + WAIT)
for operation, kind in [("add", "u32"), ("add", "s32"), ("add", "u64"), ("min", "u32"), ("min", "s32"), ("max", "u32"), ("max", "s32"),
                        ("inc", "u32"), ("dec", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b32")]:
    table = EDGES64 if kind.endswith("64") else EDGES32
    element = "b64" if kind.endswith("64") else "b32"
    count = 512 // int(kind[1:]) * 8
    values = explicit("s", element, [table[(i * 7 + i // 12) % len(table)] for i in range(2 * count)])
    cluster_case(f"copies/reduce_{operation}_{kind}", f"cp.reduce.async.bulk.{operation}.{kind} into the other CTA",
                 MOVE + "cp.reduce.async.bulk", 2, 1024, PEER + f"""
  ld.param.u64 %in, [in_s];
  mul.wide.u32 %x, %rank, 512;
  add.s64 %x, %in, %x;
  shl.b32 %at, %i, 2;
fill:
  cvt.u64.u32 %y, %at;
  add.s64 %y, %x, %y;
  ld.global.b32 %t1, [%y];
  add.u32 %t0, %base, %at;
  st.shared.b32 [%t0], %t1;
  ld.global.b32 %t1, [%in];
  st.shared.b32 [%t0+512], %t1;
  add.s64 %in, %in, 12;
  add.u32 %at, %at, 128;
  setp.lt.u32 %p, %at, 512;
  @%p bra fill;
  @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
  fence.proxy.async.shared::cta;
""" + MEET + f"""
  @%first cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{operation}.{kind} [%far+512], [tile], 512, [%farbar];
""" + WAIT, [values])

# ---- st.async, red.async ----

for suffix, registers, width, make in [
        ("b64", "%x", 8, "mul.wide.u32 %x, %t4, 0x10001;"),
        ("v2.b32", "{%t4, %t5}", 8, ""),
        ("v4.b32", "{%t4, %t5, %t6, %t7}", 16, ""),
        ("v2.u64", "{%x, %y}", 16, "mul.wide.u32 %x, %t4, 0x10001; cvt.u64.u32 %y, %t5;"),
        ("v4.f32", "{%t4, %t5, %t6, %t7}", 16, "")]:
    cluster_case(f"copies/st_async_{suffix.replace('.', '_')}", f"st.async.{suffix} into the next of four CTAs", MOVE + "st.async", 4, 1024,
                 next_of(4) + f"""
  mad.lo.u32 %t4, %rank, 1000, %i;
  add.u32 %t5, %t4, 0x10000;
  add.u32 %t6, %t4, 0x20000;
  add.u32 %t7, %t4, 0x30000;
  {make}
  @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], {32 * width};
  mad.lo.u32 %t8, %i, {width}, %far;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.{suffix} [%t8+128], {registers}, [%farbar];
""" + WAIT)
for operation, kind in [("inc", "u32"), ("dec", "u32"), ("min", "s32"), ("max", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b32"), ("add", "u64")]:
    wide = kind == "u64"
    cluster_case(f"copies/red_async_{operation}_{kind}", f"red.async.{operation}.{kind} into the other CTA", SYNC + "red.async", 2, 512, PEER + f"""
  mad.lo.u32 %t4, %i, 0x15000007, 40;
  mul.wide.u32 %x, %t4, 0x7fff0001;
  @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], {256 if wide else 128};
  mad.lo.u32 %t8, %i, {8 if wide else 4}, %far;
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{operation}.{kind} [%t8], {"%x" if wide else "%t4"}, [%farbar];
""" + WAIT)

# ---- remote mbarriers ----

MBAR = SYNC + "mbarrier"
REMOTE = {
    "count": (9, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%farbar], 7;", "mbarrier.arrive.shared.b64 _, [bar], 2;"),
    "drop": (4, "mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%farbar];", "mbarrier.arrive.shared.b64 _, [bar], 3;"),
    "expect": (1, "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%farbar], 64;",
               "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 64;"),
    "tx": (1, "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%farbar], 48;\n  @%first mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%farbar], 48;",
           "mbarrier.arrive.shared.b64 _, [bar];"),
    "relaxed": (2, "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%farbar];", "mbarrier.arrive.shared.b64 _, [bar];")}
for name, (count, remote, local) in REMOTE.items():
    cluster_case(f"copies/remote_{name}", "The other CTA's mbarrier: whether the phase is complete before and after", MBAR + ".arrive; " + MBAR + ".expect_tx; "
                 + MBAR + ".complete_tx; " + MBAR + ".arrive_drop", 2, 128, PEER + f"""
  @%first {remote}
{MEET}
  mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %q, [bar], 0;
  selp.b32 %t9, 1, 0, %q;
  bar.warp.sync 0xffffffff;
  @%first {local}
  bar.warp.sync 0xffffffff;
  mbarrier.test_wait.parity.shared.b64 %q, [bar], 0;
  selp.b32 %t10, 2, 0, %q;
  mbarrier.test_wait.parity.shared.b64 %q, [bar], 1;
  selp.b32 %t11, 4, 0, %q;
  add.u32 %t9, %t9, %t10;
  add.u32 %t9, %t9, %t11;
  shl.b32 %at, %i, 2;
  add.u32 %t0, %base, %at;
  st.shared.b32 [%t0], %t9;
""", arrivals=count)
cluster_case("copies/remote_ring", "Four CTAs pass a token round three times; each waits on its own mbarrier", MBAR + ".try_wait; " + MBAR + ".arrive", 4, 128, next_of(4) + """
  mov.u32 %t4, 0;
turn:
  and.b32 %t5, %t4, 1;
  setp.eq.u32 %p, %t4, 0;
  and.pred %p, %p, %r0;
  @%p bra send;
  mov.u32 %t6, %t5;
  xor.b32 %t7, %t5, 1;
  @%r0 mov.u32 %t6, %t7;
hold:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q, [bar], %t6;
  @!%q bra hold;
  shl.b32 %at, %i, 2;
  add.u32 %t0, %base, %at;
  ld.shared.b32 %t8, [%t0];
send:
  @%p add.u32 %t8, %i, 100;
  mad.lo.u32 %t8, %t8, 3, %rank;
  shl.b32 %at, %i, 2;
  add.u32 %t0, %far, %at;
  st.shared::cluster.b32 [%t0], %t8;
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%farbar];
  add.u32 %t4, %t4, 1;
  setp.lt.u32 %p, %t4, 3;
  @%p bra turn;
""", arrivals=32)
for name, arrive, wait in [("relaxed", "fence.acq_rel.cluster;\n  barrier.cluster.arrive.relaxed.aligned;", "barrier.cluster.wait.aligned;\n  fence.acq_rel.cluster;"),
                           ("unaligned", "barrier.cluster.arrive.release;", "barrier.cluster.wait.acquire;")]:
    cluster_case(f"copies/cluster_barrier_{name}", "Values exchanged through shared memory over two cluster barriers", SYNC + "barrier.cluster", 4, 256, next_of(4) + f"""
  mad.lo.u32 %t4, %rank, 777, %i;
  mad.lo.u32 %t8, %i, 4, %far;
  st.shared::cluster.b32 [%t8+128], %t4;
  {arrive}
  {wait}
  mad.lo.u32 %t9, %i, 4, %base;
  ld.shared.b32 %t5, [%t9+128];
  {arrive}
  {wait}
  mad.lo.u32 %t5, %t5, 5, %rank;
  st.shared::cluster.b32 [%t8], %t5;
""")

# ---- bulk copies of one CTA ----


def single(name, title, section, body, inputs, outputs):
    text = head(2048) + body
    freeform("copies/" + name, title, section, text, inputs, outputs)


VALUES = index("t", "b32", 512, 0x01000001, 0x00010203)
single("load_sizes", "Bulk loads of 16 to 1024 bytes for one phase, sizes in registers, cache policy, prefetch", BULK + "; " + MOVE + "cp.async.bulk.prefetch", """
  ld.param.u64 %in, [in_t];
  @!%first bra wait;
  mov.u32 %t4, 1024;
  mov.u32 %t5, 48;
  createpolicy.fractional.L2::evict_first.b64 %x, 1.0;
  cp.async.bulk.prefetch.L2.global [%in], %t4;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1088;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+16], [%in+512], %t4, [bar];
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [tile+1056], [%in+32], %t5, [bar], %x;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+2032], [%in+16], 16, [bar];
""" + WAIT + dump(2048) + "  ret;", [VALUES], [output("tile", "b32", 512)])
single("load_before_expect", "Bytes that complete before they are expected", BULK + "; Phase Completion of the mbarrier object", """
  ld.param.u64 %in, [in_t];
  @!%first bra wait;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], 256, [bar];
  nanosleep.u32 20000;
  nanosleep.u32 20000;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
""" + WAIT + dump(2048) + "  ret;", [VALUES], [output("tile", "b32", 512)])
single("load_by_every_thread", "Every thread copies its 16 bytes", BULK, """
  ld.param.u64 %in, [in_t];
  @%first mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
  bar.warp.sync 0xffffffff;
  mul.wide.u32 %x, %i, 32;
  add.s64 %in, %in, %x;
  mad.lo.u32 %t4, %i, 48, %base;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%t4], [%in], 16, [bar];
""" + WAIT + dump(2048) + "  ret;", [VALUES], [output("tile", "b32", 512)])
DEST = output("d", "b32", 256, initial=index("d", "b32", 256, 0x7E000000, 1))
single("groups", "Four groups of stores; waits for the oldest, then for all", GROUP, """
  ld.param.u64 %out, [out_d];
  @!%first ret;
  cp.async.bulk.global.shared::cta.bulk_group [%out+768], [tile], 128;
  cp.async.bulk.commit_group;
  cp.async.bulk.global.shared::cta.bulk_group [%out], [tile+512], 256;
  cp.async.bulk.global.shared::cta.bulk_group [%out+256], [tile+1024], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.commit_group;
  cp.async.bulk.global.shared::cta.bulk_group [%out+400], [tile+16], 48;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 3;
  cp.async.bulk.wait_group.read 1;
  cp.async.bulk.wait_group 0;
  ret;""", [], [DEST])
single("groups_read", "A source that is written again once it has been read", GROUP, """
  ld.param.u64 %out, [out_d];
  mov.u32 %t4, 0;
  mad.lo.u32 %t5, %i, 4, %base;
again:
  mad.lo.u32 %t6, %t4, 1000, %i;
  st.shared.b32 [%t5], %t6;
  fence.proxy.async.shared::cta;
  bar.warp.sync 0xffffffff;
  @%first cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 128;
  @%first cp.async.bulk.commit_group;
  @%first cp.async.bulk.wait_group.read 0;
  bar.warp.sync 0xffffffff;
  add.s64 %out, %out, 128;
  add.u32 %t4, %t4, 1;
  setp.lt.u32 %p, %t4, 8;
  @%p bra again;
  cp.async.bulk.wait_group 0;
  ret;""", [], [DEST])
single("groups_by_thread", "Every thread has groups of its own", GROUP, """
  ld.param.u64 %out, [out_d];
  mul.wide.u32 %x, %i, 32;
  add.s64 %out, %out, %x;
  mad.lo.u32 %t4, %i, 16, %base;
  and.b32 %t5, %i, 1;
  setp.eq.u32 %p, %t5, 1;
  @%p cp.async.bulk.global.shared::cta.bulk_group [%out], [%t4], 16;
  cp.async.bulk.commit_group;
  @!%p cp.async.bulk.global.shared::cta.bulk_group [%out+16], [%t4+1024], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 1;
  cp.async.bulk.wait_group 0;
  ret;""", [], [DEST])
REDUCTIONS = [("add", "f32", "b32", SINGLES), ("add", "f64", "b64", [0, 1 << 63, 1, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FD5555555555555, 0x7FE0000000000000]),
              ("add.noftz", "f16", "b16", HALVES), ("add.noftz", "bf16", "b16", BF16S), ("min", "f16", "b16", HALVES), ("max", "bf16", "b16", BF16S),
              ("add", "u64", "b64", EDGES64), ("min", "s64", "b64", EDGES64), ("max", "u64", "b64", EDGES64), ("min", "u32", "b32", EDGES32),
              ("inc", "u32", "b32", EDGES32), ("dec", "u32", "b32", EDGES32), ("and", "b32", "b32", EDGES32), ("or", "b64", "b64", EDGES64),
              ("xor", "b64", "b64", EDGES64)]
for operation, kind, element, table in REDUCTIONS:
    count = 1024 * 8 // int(element[1:])
    row = 16
    first = explicit("s", element, [table[(i + i // row) % len(table)] for i in range(count)])
    second = explicit("d", element, [table[i % row % len(table)] for i in range(count)])
    single(f"global_{operation.split('.')[0]}_{kind}", f"cp.reduce.async.bulk.{operation}.{kind} to global memory", MOVE + "cp.reduce.async.bulk", f"""
  ld.param.u64 %in, [in_s];
  ld.param.u64 %out, [out_d];
  @!%first ret;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in], 1024, [bar];
{WAIT}
  cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation}.{kind} [%out], [tile], 1024;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;""", [first], [output("d", element, count, initial=second)])
