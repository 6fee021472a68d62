"""Loads, stores, state spaces, addresses, clusters and asynchronous copies."""

from families.builder import Op, elementwise, explicit, freeform, index, output, random_bits

MOVE = "Data Movement and Conversion Instructions: "
SYNC = "Parallel Synchronization and Communication Instructions: "
lanes = index("a", "u32", 64)
bytes16 = random_bits("m", "b8", 1024, 121)

THREAD = """
  .reg .b16 %h<8>;
  .reg .b32 %t<16>, %i;
  .reg .b64 %u<8>, %in, %out, %x;
  .reg .pred %p, %q;
  mov.u32 %i, %tid.x;
"""


def store(count, first=0):
    """Stores %t<first>.. as consecutive words of the thread's row of out_d."""
    return (f"\n  ld.param.u64 %out, [out_d];\n  mul.wide.u32 %x, %i, {4 * count};\n  add.s64 %out, %out, %x;\n"
            + "".join(f"  st.global.b32 [%out+{4 * k}], %t{first + k};\n" for k in range(count)) + "  ret;")


freeform("memory/sub_word_loads", "Loads narrower than their register: sign and zero extension", MOVE + "ld", THREAD + """
  ld.param.u64 %in, [in_m];
  mul.wide.u32 %x, %i, 8;
  add.s64 %in, %in, %x;
  ld.global.s8 %t0, [%in];
  ld.global.u8 %t1, [%in+1];
  ld.global.s16 %t2, [%in+2];
  ld.global.u16 %t3, [%in+4];
  ld.global.s8 %h0, [%in+6];
  cvt.u32.u16 %t4, %h0;
  ld.global.s16 %u0, [%in+6];
  mov.b64 {%t5, %t6}, %u0;
  ld.global.s32 %u1, [%in+4];
  mov.b64 {%t7, %t8}, %u1;
  ld.global.u8 %u2, [%in+7];
  mov.b64 {%t9, %t10}, %u2;
  ld.global.b8 %t11, [%in+3];
""" + store(12), [bytes16], [output("d", "b32", 12 * 64)], block=[64, 1, 1])
freeform("memory/sub_word_stores", "Stores narrower than their register leave the neighbours alone", MOVE + "st", THREAD + """
  ld.param.u64 %out, [out_d];
  mul.wide.u32 %x, %i, 16;
  add.s64 %out, %out, %x;
  mad.lo.u32 %t0, %i, 0x01020304, 0x89abcdef;
  mov.b64 %u0, {%t0, %t0};
  cvt.u16.u32 %h0, %t0;
  st.global.u8 [%out+1], %t0;
  st.global.b16 [%out+2], %t0;
  st.global.u8 [%out+4], %h0;
  st.global.s16 [%out+6], %u0;
  st.global.b32 [%out+8], %u0;
  st.global.s8 [%out+13], %u0;
  ret;""", [], [output("d", "b8", 16 * 32, initial={"generator": {"kind": "index"}})])
freeform("memory/vectors", "Vector loads and stores of every width", MOVE + "ld; " + MOVE + "st", THREAD + """
  ld.param.u64 %in, [in_m];
  ld.param.u64 %out, [out_d];
  mul.wide.u32 %x, %i, 64;
  add.s64 %in, %in, %x;
  add.s64 %out, %out, %x;
  ld.global.v4.b32 {%t0, %t1, %t2, %t3}, [%in];
  st.global.v4.b32 [%out], {%t3, %t2, %t1, %t0};
  ld.global.v2.b64 {%u0, %u1}, [%in+16];
  st.global.v2.b64 [%out+16], {%u1, %u0};
  ld.global.v2.b32 {%t4, %t5}, [%in+32];
  st.global.v2.b32 [%out+32], {%t5, %t4};
  ld.global.v4.u16 {%h0, %h1, %h2, %h3}, [%in+40];
  st.global.v4.u16 [%out+40], {%h3, %h2, %h1, %h0};
  ld.global.v2.u16 {%h0, %h1}, [%in+48];
  st.global.v2.u16 [%out+48], {%h1, %h0};
  ld.global.v4.u8 {%t0, %t1, %t2, %t3}, [%in+52];
  st.global.v4.u8 [%out+52], {%t3, %t2, %t1, %t0};
  ld.global.v2.s8 {%h0, %h1}, [%in+56];
  st.global.v2.s16 [%out+56], {%h1, %h0};
  ld.global.v2.u8 {%h0, %h1}, [%in+60];
  st.global.v2.u8 [%out+60], {%h1, %h0};
  ld.global.v2.u8 {%h0, %h1}, [%in+62];
  st.global.v2.u8 [%out+62], {%h1, %h0};
  ret;""", [bytes16], [output("d", "b8", 1024)], block=[16, 1, 1])
freeform("memory/spaces", "The same data through shared, local, constant and module-scope global memory, by name and by generic address",
         MOVE + "cvta; State Spaces", THREAD + """
  .shared .align 8 .b32 mine[32];
  .local .align 8 .b32 stack[4];
  mad.lo.u32 %t0, %i, 17, 5;
  mov.u32 %t1, mine;
  mad.lo.u32 %t1, %i, 4, %t1;
  st.shared.b32 [%t1], %t0;
  bar.warp.sync 0xffffffff;
  cvta.shared.u64 %u0, mine;
  xor.b32 %t2, %i, 1;
  mul.wide.u32 %x, %t2, 4;
  add.s64 %u0, %u0, %x;
  ld.b32 %t0, [%u0];
  mov.u64 %u1, stack;
  st.local.b32 [%u1], %t0;
  add.u32 %t3, %t0, 1;
  st.local.b32 [%u1+8], %t3;
  cvta.local.u64 %u2, %u1;
  ld.b32 %t1, [%u2+8];
  mov.u64 %u3, table;
  and.b32 %t2, %i, 3;
  mul.wide.u32 %x, %t2, 4;
  add.s64 %u3, %u3, %x;
  ld.const.b32 %t2, [%u3];
  mov.u64 %u4, words;
  add.s64 %u4, %u4, %x;
  ld.global.b32 %t3, [%u4];
  mov.u64 %u5, letters;
  cvt.u64.u32 %x, %i;
  and.b64 %x, %x, 3;
  add.s64 %u5, %u5, %x;
  ld.global.u8 %t4, [%u5];
  ld.const.b32 %t5, [table+12];
  cvta.const.u64 %u6, %u3;
  ld.b32 %t6, [%u6];
  mov.u64 %u7, zeros;
  ld.global.b32 %t7, [%u7+4];
""" + store(8), [], [output("d", "b32", 8 * 32)], globals_=""".const .align 4 .b32 table[4] = {10, 20, 30, 0x80000000};
.global .align 4 .b32 words[4] = {-1, 2, 3, 4};
.global .align 1 .b8 letters[4] = {72, 105, 33, 10};
.global .align 4 .b32 zeros[2];""")
freeform("memory/isspacep", "isspacep tells the state space of a generic address", MOVE + "isspacep; " + MOVE + "cvta", THREAD + """
  .shared .align 8 .b32 mine[4];
  .local .align 8 .b32 stack[4];
  cvta.shared.u64 %u0, mine;
  mov.u64 %u4, stack;
  cvta.local.u64 %u1, %u4;
  cvta.const.u64 %u2, table;
  ld.param.u64 %u3, [out_d];
  cvta.to.global.u64 %u3, %u3;
  cvta.global.u64 %u3, %u3;
""" + "".join(f"""  mov.b32 %t{k}, 0;
""" + "".join(f"""  isspacep.{space} %p, %u{k};
  selp.b32 %t8, {1 << n}, 0, %p;
  or.b32 %t{k}, %t{k}, %t8;
""" for n, space in enumerate(("shared", "local", "const", "global", "shared::cluster"))) for k in range(4)) + """
  cvta.to.shared.u64 %u4, %u0;
  cvta.shared.u64 %u5, %u4;
  setp.eq.u64 %p, %u5, %u0;
  selp.b32 %t4, 1, 0, %p;
""" + store(5), [], [output("d", "b32", 5 * 32)], globals_=".const .align 4 .b32 table[4] = {1, 2, 3, 4};")
elementwise("memory/mov_pack", "mov packs and unpacks vectors", MOVE + "mov",
            [random_bits("a", "b32", 32, 122), random_bits("b", "b32", 32, 123)],
            [Op("mov.b32 {%h0, %h1}, $a;\nmov.b32 $d, {%h1, %h0};", "b32", name="halves"),
             Op("mov.b64 $d, {$b, $a};", "b64", name="words"), Op("mov.b64 %u0, {$b, $a};\nmov.b64 {_, $d}, %u0;", "b32", name="sink"),
             Op("mov.b32 {%h0, %h1}, $a;\nmov.b32 {%h2, %h3}, $b;\nmov.b64 $d, {%h0, %h1, %h2, %h3};", "b64", name="four")])
elementwise("memory/orders", "Loads and stores with orders, scopes and cache hints give the same values", MOVE + "ld; " + MOVE + "st; Cache Operators",
            [random_bits("a", "b32", 32, 124)],
            [Op(f"ld.param.u64 %u0, [in_a];\nmul.wide.u32 %u1, %i, 4;\nadd.s64 %u0, %u0, %u1;\nld{k}.b32 $d, [%u0];", "b32", name=f"ld{k}")
             for k in (".relaxed.gpu.global", ".acquire.gpu.global", ".volatile.global", ".global.nc", ".global.ca", ".global.cg", ".global.cs",
                       ".weak.global.L1::no_allocate", ".global.nc.L1::evict_last.L2::128B", ".relaxed.sys")]
            + [Op(f"mov.u32 %t0, cell;\nmad.lo.u32 %t0, %i, 4, %t0;\nst{k}.b32 [%t0], $a;\nld.shared.b32 $d, [%t0];", "b32", name=f"st{k}")
               for k in (".relaxed.cta.shared", ".release.cta.shared", ".volatile.shared", ".shared::cta")], prologue=".shared .align 4 .b8 cell[128];")

# ---- clusters ----------------------------------------------------------------------------------------------------------

CLUSTER = THREAD + """
  .shared .align 16 .b32 mine[32];
  mov.u32 %t15, %cluster_ctarank;
  mov.u32 %t14, mine;
  mad.lo.u32 %t14, %i, 4, %t14;
  mad.lo.u32 %t13, %t15, 100, %i;
  st.shared.b32 [%t14], %t13;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  xor.b32 %t12, %t15, 1;
"""
END = """
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %t12, %ctaid.x;
  mad.lo.u32 %i, %t12, 32, %i;
"""
PAIR = {"grid": [4, 1, 1], "cluster": [2, 1, 1], "directives": ".reqnctapercluster 2, 1, 1"}
freeform("memory/cluster_loads", "mapa and loads from the other CTA's shared memory, by shared::cluster and by generic address",
         MOVE + "mapa; " + MOVE + "getctarank; " + SYNC + "barrier.cluster", CLUSTER + """
  mapa.shared::cluster.u32 %t0, %t14, %t12;
  ld.shared::cluster.b32 %t1, [%t0];
  cvta.shared.u64 %u0, mine;
  mul.wide.u32 %x, %i, 4;
  add.s64 %u0, %u0, %x;
  mapa.u64 %u1, %u0, %t12;
  ld.b32 %t2, [%u1];
  getctarank.shared::cluster.u32 %t3, %t0;
  getctarank.u64 %t4, %u1;
  getctarank.shared::cluster.u32 %t5, %t14;
  mapa.shared::cluster.u32 %t0, %t14, %t15;
  ld.shared::cluster.b32 %t6, [%t0];
  isspacep.shared::cluster %p, %u1;
  isspacep.shared::cta %q, %u1;
  selp.b32 %t7, 1, 0, %p;
  selp.b32 %t8, 2, 0, %q;
  or.b32 %t7, %t7, %t8;
""" + END + store(7, 1), [], [output("d", "b32", 7 * 32 * 4)], **PAIR)
freeform("memory/cluster_stores", "Stores and atomics into the other CTA's shared memory", SYNC + "barrier.cluster; " + SYNC + "atom", CLUSTER + """
  mapa.shared::cluster.u32 %t0, %t14, %t12;
  atom.shared::cluster.add.u32 %t1, [%t0], 1000;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ld.shared.b32 %t2, [%t14];
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mul.lo.u32 %t3, %t13, 3;
  st.shared::cluster.b32 [%t0], %t3;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ld.shared.b32 %t3, [%t14];
""" + END + store(3, 1), [], [output("d", "b32", 3 * 32 * 4)], **PAIR)
freeform("memory/cluster_registers", "Special registers of a cluster", "Special Registers: %clusterid; Special Registers: %cluster_ctaid", THREAD
         + "".join(f"  mov.u32 %t{k}, %{name};\n" for k, name in enumerate(
             ("clusterid.x", "clusterid.y", "nclusterid.x", "nclusterid.y", "cluster_ctaid.x", "cluster_ctaid.y", "cluster_nctaid.x", "cluster_nctaid.y",
              "cluster_ctarank", "cluster_nctarank"))) + """
  mov.pred %p, %is_explicit_cluster;
  selp.b32 %t10, 1, 0, %p;
  mov.u32 %t12, %ctaid.y;
  mov.u32 %t13, %nctaid.x;
  mov.u32 %t14, %ctaid.x;
  mad.lo.u32 %i, %t12, %t13, %t14;
""" + store(11), [], [output("d", "u32", 11 * 16)], block=[1, 1, 1], grid=[4, 4, 1], cluster=[2, 2, 1], directives=".reqnctapercluster 2, 2, 1")

# ---- asynchronous copies -------------------------------------------------------------------------------------------------

freeform("memory/cp_async", "cp.async of 4, 8 and 16 bytes; a source size below the copy size fills with zeros; groups",
         MOVE + "cp.async; " + MOVE + "cp.async.commit_group; " + MOVE + "cp.async.wait_group", THREAD + """
  .shared .align 16 .b8 tile[2048];
  ld.param.u64 %in, [in_m];
  mul.wide.u32 %x, %i, 32;
  add.s64 %in, %in, %x;
  mov.u32 %t15, tile;
  mad.lo.u32 %t15, %i, 64, %t15;
  mov.b32 %t0, -1;
  st.shared.v4.b32 [%t15+48], {%t0, %t0, %t0, %t0};
  and.b32 %t1, %i, 15;
  cp.async.cg.shared.global [%t15], [%in], 16;
  cp.async.commit_group;
  cp.async.ca.shared.global [%t15+16], [%in+16], 8;
  cp.async.ca.shared.global [%t15+24], [%in+24], 4;
  cp.async.ca.shared.global [%t15+28], [%in+28], 4, 2;
  cp.async.commit_group;
  cp.async.cg.shared.global [%t15+32], [%in], 16, %t1;
  cp.async.ca.shared.global [%t15+48], [%in], 8, 0;
  cp.async.wait_group 1;
  ld.shared.v4.b32 {%t0, %t1, %t2, %t3}, [%t15];
  cp.async.wait_all;
  ld.shared.v4.b32 {%t4, %t5, %t6, %t7}, [%t15+16];
  ld.shared.v4.b32 {%t8, %t9, %t10, %t11}, [%t15+32];
  ld.shared.v2.b32 {%t12, %t13}, [%t15+48];
""" + store(14), [bytes16], [output("d", "b32", 14 * 32)])
BARRIER = """
  .shared .align 16 .b8 tile[1024];
  .shared .align 8 .b64 bar;
  setp.eq.u32 %p, %i, 0;
  @%p mbarrier.init.shared.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  bar.sync 0;
"""
WAIT = """
wait:
  mbarrier.try_wait.parity.shared.b64 %q, [bar], 0;
  @!%q bra wait;
"""
READ = """  mov.u32 %t15, tile;
  mad.lo.u32 %t15, %i, 16, %t15;
  ld.shared.v4.b32 {%t0, %t1, %t2, %t3}, [%t15];
"""
freeform("memory/bulk_load", "cp.async.bulk from global to shared memory, completion by transaction bytes", MOVE + "cp.async.bulk", THREAD + BARRIER + """
  ld.param.u64 %in, [in_m];
  @!%p bra wait;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%in+256], 384, [bar];
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+384], [%in], 128, [bar];
""" + WAIT + READ + store(4), [bytes16], [output("d", "b32", 4 * 32)])
freeform("memory/bulk_store", "cp.async.bulk from shared to global memory, and adding there; bulk groups",
         MOVE + "cp.async.bulk; " + MOVE + "cp.reduce.async.bulk; " + MOVE + "cp.async.bulk.wait_group", THREAD + """
  .shared .align 16 .b8 tile[512];
  ld.param.u64 %out, [out_d];
  mov.u32 %t15, tile;
  mad.lo.u32 %t14, %i, 4, %t15;
  mad.lo.u32 %t0, %i, 3, 7;
  st.shared.b32 [%t14], %t0;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.eq.u32 %p, %i, 0;
  @!%p ret;
  cp.async.bulk.global.shared::cta.bulk_group [%out], [tile], 128;
  cp.async.bulk.commit_group;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out+128], [tile], 128;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%out+256], [tile], 128;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 1;
  cp.async.bulk.wait_group 0;
  ret;""", [], [output("d", "b32", 96, initial={"generator": {"kind": "index", "start": 10, "step": 1}})])
freeform("memory/bulk_cluster", "cp.async.bulk from one CTA's shared memory to the other's", MOVE + "cp.async.bulk", THREAD + BARRIER + """
  mov.u32 %t15, %cluster_ctarank;
  mov.u32 %t14, tile;
  mad.lo.u32 %t13, %i, 4, %t14;
  mad.lo.u32 %t0, %t15, 1000, %i;
  st.shared.b32 [%t13+512], %t0;
  fence.proxy.async.shared::cta;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  xor.b32 %t12, %t15, 1;
  @!%p bra wait;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
  add.u32 %t11, %t14, 512;
  mapa.shared::cluster.u32 %t10, %t14, %t12;
  mov.u32 %t9, bar;
  mapa.shared::cluster.u32 %t8, %t9, %t12;
  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%t10], [%t11], 128, [%t8];
""" + WAIT + """
  ld.shared.b32 %t0, [%t13];
""" + END + store(1), [], [output("d", "b32", 32 * 4)], **PAIR)
freeform("memory/st_async", "st.async and red.async into the other CTA, completion by transaction bytes",
         MOVE + "st.async; " + SYNC + "red.async", THREAD + BARRIER + """
  mov.u32 %t15, %cluster_ctarank;
  mov.u32 %t14, tile;
  mad.lo.u32 %t13, %i, 4, %t14;
  st.shared.b32 [%t13], %i;
  add.u32 %t0, %i, 500;
  st.shared.b32 [%t13+128], %t0;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  xor.b32 %t12, %t15, 1;
  @%p mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
  mapa.shared::cluster.u32 %t10, %t13, %t12;
  mov.u32 %t9, bar;
  mapa.shared::cluster.u32 %t8, %t9, %t12;
  mad.lo.u32 %t7, %t15, 1000, %i;
  st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%t10], %t7, [%t8];
  red.async.relaxed.cluster.global.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%t10+128], %t7, [%t8];
""".replace(".relaxed.cluster.global", ".relaxed.cluster") + WAIT + """
  ld.shared.b32 %t0, [%t13];
  ld.shared.b32 %t1, [%t13+128];
""" + END + store(2), [], [output("d", "b32", 2 * 32 * 4)], **PAIR)
