"""Atomics and reductions: results that do not depend on the order of the threads."""

from families.builder import explicit, freeform, output, random_bits

SYNC = "Parallel Synchronization and Communication Instructions: "
ATOM, RED = SYNC + "atom", SYNC + "red"
HEAD = """
  .reg .b16 %h<4>;
  .reg .b32 %t<8>, %i;
  .reg .f32 %f<6>;
  .reg .f64 %g<2>;
  .reg .b64 %u<4>, %in, %out, %old, %x;
  .reg .pred %p;
  mov.u32 %i, %tid.x;
"""


def own_cell(name, title, kinds, type_name, register, initial, operands, note=""):
    """Each thread on its own cell, one row of cells an operation: old values and new ones."""
    width = {"b32": 4, "b64": 8}[type_name]
    body = HEAD + f"  ld.param.u64 %in, [in_b];\n  mul.wide.u32 %x, %i, {width};\n  add.s64 %in, %in, %x;\n  ld.global.{type_name} {register}0, [%in];\n"
    body += f"  mul.wide.u32 %x, %i, {width};\n  ld.param.u64 %out, [out_cells];\n  add.s64 %out, %out, %x;\n  ld.param.u64 %old, [out_old];\n  add.s64 %old, %old, %x;\n"
    for row, kind in enumerate(kinds):
        offset = row * 32 * width
        extra = f", {register}2" if ".cas" in kind else ""
        if extra:
            body += f"  mov.{type_name} {register}2, {note};\n"
        body += f"  atom.{kind} {register}1, [%out+{offset}], {register}0{extra};\n  st.global.{type_name} [%old+{offset}], {register}1;\n"
    count = 32 * len(kinds)
    freeform(f"atomic/{name}", title, ATOM, body + "  ret;", [operands],
             [output("cells", type_name, count, initial=explicit("i", type_name, initial * (count // len(initial)))), output("old", type_name, count)])


cells = [0, 1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678, 100] * 4
own_cell("global_32", "32-bit atomics on global memory: what they return and what they leave",
         [f"global.{k}" for k in ("add.u32", "min.s32", "min.u32", "max.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "exch.b32", "inc.u32", "dec.u32", "cas.b32")],
         "b32", "%t", cells, explicit("b", "b32", [0, 1, 5, 0xFFFFFFFF] * 4 + [100, 0x80000000, 7, 0x12345678] * 4), note="99")
own_cell("global_64", "64-bit atomics on global memory",
         [f"global.{k}" for k in ("add.u64", "min.s64", "max.u64", "and.b64", "xor.b64", "exch.b64", "cas.b64")], "b64", "%u",
         [c << 20 | 3 for c in cells], random_bits("b", "b64", 32, 131), note="77")
FLOATS = [0x3F800000, 0xBF800000, 0x4B800000, 0x00000001, 0x7F7FFFFF, 0x80000000, 0x7F800000, 0x7FC00000] * 4
own_cell("global_f32", "Floating-point additions to global memory: one rounding, subnormals, overflow", ["global.add.f32", "relaxed.gpu.global.add.f32"], "b32", "%t",
         FLOATS, explicit("b", "b32", FLOATS[:8] + FLOATS[3:11] + [0x33800001] * 8 + [0x3F800000] * 8))
own_cell("global_half", "Packed half additions to global memory", ["global.add.noftz.f16x2", "global.add.noftz.bf16x2"], "b32", "%t",
         [0x3C003C00, 0x00017BFF, 0x80000000, 0x7E00FC00] * 8, explicit("b", "b32", [0x3C013C00, 0x00017BFF, 0x80008000, 0x14003C00] * 4 + [0x1] * 16))
own_cell("global_f64", "Double additions to global memory", ["global.add.f64"], "b64", "%u",
         [0x3FF0000000000000, 0x0000000000000001, 0x7FEFFFFFFFFFFFFF, 0x8000000000000000] * 8,
         explicit("b", "b64", [0x3CA0000000000001, 1, 0x7FEFFFFFFFFFFFFF, 0x8000000000000000] * 8))
freeform("atomic/contended_global", "All threads of four CTAs on the same cells: sums, extrema, bits, a wrapping counter", ATOM + "; " + RED, HEAD + """
  ld.param.u64 %out, [out_cells];
  mov.u32 %t0, %ctaid.x;
  mad.lo.u32 %t0, %t0, 128, %i;
  mad.lo.u32 %t1, %t0, 2654435, 12345;
  red.global.add.u32 [%out], %t1;
  red.global.min.s32 [%out+4], %t1;
  red.global.max.s32 [%out+8], %t1;
  red.global.xor.b32 [%out+12], %t1;
  red.global.or.b32 [%out+16], %t0;
  red.global.and.b32 [%out+20], %t1;
  atom.global.inc.u32 %t2, [%out+24], 99;
  atom.global.dec.u32 %t2, [%out+28], 1000;
  cvt.rn.f32.u32 %f0, %t0;
  red.global.add.f32 [%out+32], %f0;
  atom.global.add.u32 %t3, [%out+36], 1;
  red.global.add.u32 [%out+40], %t3;
retry:
  ld.relaxed.gpu.global.b32 %t4, [%out+44];
  mad.lo.u32 %t5, %t4, 1, %t0;
  atom.global.cas.b32 %t6, [%out+44], %t4, %t5;
  setp.ne.u32 %p, %t6, %t4;
  @%p bra retry;
  ret;""", [], [output("cells", "b32", 12, initial=explicit("i", "b32", [0, 0x7FFFFFFF, 0x80000000, 0, 0, 0xFFFFFFFF, 0, 5, 0, 0, 0, 0]))],
         grid=[4, 1, 1], block=[128, 1, 1])
freeform("atomic/shared", "Atomics on shared memory: contended sums, own cells, compare-and-swap under contention", ATOM + "; " + RED, HEAD + """
  .shared .align 8 .b8 cell[64];
  setp.lt.u32 %p, %i, 16;
  mov.u32 %t7, cell;
  mad.lo.u32 %t6, %i, 4, %t7;
  @%p st.shared.b32 [%t6], 0;
  bar.sync 0;
  mad.lo.u32 %t1, %i, 40503, 77;
  atom.shared.add.u32 %t2, [cell], %t1;
  red.shared.max.u32 [cell+4], %t1;
  red.shared.xor.b32 [cell+8], %t1;
  atom.shared.inc.u32 %t2, [cell+12], 99;
  cvt.rn.f32.u32 %f0, %i;
  red.shared.add.f32 [cell+16], %f0;
  mul.wide.u32 %u0, %t1, 65537;
  red.shared.add.u64 [cell+24], %u0;
  atom.shared.exch.b32 %t3, [cell+32], %i;
  red.shared.add.u32 [cell+36], %t3;
retry:
  ld.volatile.shared.b32 %t4, [cell+40];
  xor.b32 %t5, %t4, %t1;
  atom.shared.cas.b32 %t6, [cell+40], %t4, %t5;
  setp.ne.u32 %p, %t6, %t4;
  @%p bra retry;
  bar.sync 0;
  setp.eq.u32 %p, %i, 0;
  @%p ld.shared.b32 %t3, [cell+32];
  @%p ld.shared.b32 %t4, [cell+36];
  @%p add.u32 %t3, %t3, %t4;
  @%p st.shared.b32 [cell+32], %t3;
  @%p st.shared.b32 [cell+36], 0;
  bar.sync 0;
  setp.ge.u32 %p, %i, 16;
  @%p ret;
  mad.lo.u32 %t6, %i, 4, %t7;
  ld.shared.b32 %t0, [%t6];
  ld.param.u64 %out, [out_cells];
  mul.wide.u32 %x, %i, 4;
  add.s64 %out, %out, %x;
  st.global.b32 [%out], %t0;
  ret;""", [], [output("cells", "b32", 16)], block=[128, 1, 1])
freeform("atomic/vector_red", "Vector reductions to global memory", RED, HEAD + """
  ld.param.u64 %out, [out_cells];
  mul.wide.u32 %x, %i, 16;
  add.s64 %out, %out, %x;
  cvt.rn.f32.u32 %f0, %i;
  mul.f32 %f1, %f0, 0f3F000000;
  add.f32 %f2, %f0, 0f3F800000;
  neg.f32 %f3, %f0;
  red.global.add.v4.f32 [%out], {%f0, %f1, %f2, %f3};
  red.global.add.v2.f32 [%out+8], {%f0, %f1};
  ret;""".replace("red.global.add.v4.f32", "red.global.v4.f32.add").replace("red.global.add.v2.f32", "red.global.v2.f32.add"), [],
         [output("cells", "f32", 128, initial={"generator": {"kind": "choice", "seed": 5, "table": ["1 2 -0.5 100"]}})])
