"""ldmatrix, stmatrix and movmatrix."""

from families.builder import freeform, index, output, random_bits

SECTION = "Warp-level matrix load instruction: ldmatrix"
STORE = "Warp-level matrix store instruction: stmatrix"

START = """
  .reg .b32 %t<8>, %v<4>, %lane;
  .reg .b64 %in, %out, %x;
  mov.u32 %lane, %tid.x;
"""
COPY_IN = """
  ld.param.u64 %in, [in_a];
  mul.wide.u32 %x, %lane, 16;
  add.s64 %in, %in, %x;
  ld.global.v4.b32 {%t0, %t1, %t2, %t3}, [%in];
  mov.u32 %t4, tile;
  shl.b32 %t5, %lane, 4;
  add.u32 %t4, %t4, %t5;
  st.shared.v4.b32 [%t4], {%t0, %t1, %t2, %t3};
  bar.warp.sync 0xffffffff;
"""
# Row addresses in an order that is no identity: lane l reads the row of lane (5 * l + 3) mod 32.
ADDRESS = """
  mad.lo.u32 %t5, %lane, 5, 3;
  and.b32 %t5, %t5, 31;
  shl.b32 %t5, %t5, 4;
  mov.u32 %t4, tile;
  add.u32 %t4, %t4, %t5;
"""


def registers(count):
    return "{" + ", ".join(f"%v{i}" for i in range(count)) + "}"


for count in (1, 2, 4):
    for trans in ("", ".trans"):
        body = START + COPY_IN + ADDRESS + f"  ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {registers(count)}, [%t4];\n"
        body += f"  ld.param.u64 %out, [out_d];\n  mul.wide.u32 %x, %lane, {4 * count};\n  add.s64 %out, %out, %x;\n"
        body += "".join(f"  st.global.b32 [%out+{4 * i}], %v{i};\n" for i in range(count)) + "  ret;"
        freeform(f"matrix/ldmatrix_x{count}{trans.replace('.', '_')}", f"ldmatrix x{count}{trans}: which lane gets what from permuted row addresses",
                 SECTION, body, [index("a", "b16", 256)], [output("d", "b32", 32 * count)], globals_=".shared .align 16 .b8 tile[512];")
        body = START + COPY_IN.replace("[%t4], {%t0, %t1, %t2, %t3}", "[%t4], {%lane, %lane, %lane, %lane}") + ADDRESS
        body += "".join(f"  mov.b32 %v{i}, %t{i};\n" for i in range(count))
        body += f"  stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%t4], {registers(count)};\n  bar.warp.sync 0xffffffff;\n"
        body += """  mov.u32 %t4, tile;
  shl.b32 %t5, %lane, 4;
  add.u32 %t4, %t4, %t5;
  ld.shared.v4.b32 {%t0, %t1, %t2, %t3}, [%t4];
  ld.param.u64 %out, [out_d];
  mul.wide.u32 %x, %lane, 16;
  add.s64 %out, %out, %x;
  st.global.v4.b32 [%out], {%t0, %t1, %t2, %t3};
  ret;"""
        freeform(f"matrix/stmatrix_x{count}{trans.replace('.', '_')}", f"stmatrix x{count}{trans}: where each lane's halves go; the rest stays",
                 STORE, body, [index("a", "b16", 256, start=1000)], [output("d", "b32", 128)], globals_=".shared .align 16 .b8 tile[512];")
body = START + """  ld.param.u64 %in, [in_a];
  mul.wide.u32 %x, %lane, 4;
  add.s64 %in, %in, %x;
  ld.global.b32 %v0, [%in];
  movmatrix.sync.aligned.m8n8.trans.b16 %v1, %v0;
  ld.param.u64 %out, [out_d];
  add.s64 %out, %out, %x;
  st.global.b32 [%out], %v1;
  ret;"""
freeform("matrix/movmatrix", "movmatrix transposes an 8x8 fragment", "Warp-level matrix transpose instruction: movmatrix", body,
         [index("a", "b16", 64)], [output("d", "b32", 32)])
