"""Tensor copies in tile mode: boxes, types, swizzles, elements outside the tensor, element strides, stores, reductions."""

import math

from families.builder import explicit, freeform, index, output, tensor_map
from values import f32_bits

MOVE = "Data Movement and Conversion Instructions: "
LOAD = MOVE + "cp.async.bulk.tensor"
STORE = LOAD + "; " + MOVE + "cp.async.bulk.wait_group"
REDUCE = MOVE + "cp.reduce.async.bulk.tensor"
BYTES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "f32": 4, "f64": 8, "bf16": 2, "f32_ftz": 4,
         "tf32": 4, "tf32_ftz": 4}
MARK = 0xA5A5A5A5  # what shared memory holds before a copy


def head(size):
    """128 threads; `size` bytes of shared memory, marked; an mbarrier for one arrival."""
    return f"""
  .shared .align 1024 .b8 tile[{size}];
  .shared .align 8 .b64 bar;
  .reg .b16 %h<4>;
  .reg .b32 %t<16>, %i, %at, %base;
  .reg .b64 %in, %out, %x, %map;
  .reg .pred %first, %p, %q;
  mov.u32 %i, %tid.x;
  mov.u32 %base, tile;
  setp.eq.u32 %first, %i, 0;
  shl.b32 %at, %i, 2;
  mov.u32 %t1, {hex(MARK)};
mark:
  add.u32 %t0, %base, %at;
  st.shared.b32 [%t0], %t1;
  add.u32 %at, %at, 512;
  setp.lt.u32 %p, %at, {size};
  @%p bra mark;
  @%first mbarrier.init.shared.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  fence.proxy.async.shared::cta;
  bar.sync 0;
"""


def generic(name):
    """%map: the generic address of a tensor map parameter, which is what tensor copies take."""
    return f"""  mov.b64 %map, {name};
  cvta.param.u64 %map, %map;
"""


# Waits for the barrier's first phase, but not for ever; %q: it has completed.
WAIT = """
  mov.u32 %t2, 0;
wait:
  mbarrier.test_wait.parity.shared.b64 %q, [bar], 0;
  @%q bra waited;
  nanosleep.u32 200;
  add.u32 %t2, %t2, 1;
  setp.lt.u32 %p, %t2, 4000;
  @%p bra wait;
waited:
"""


def dump(size):
    """Shared memory to out_tile."""
    return f"""
  ld.param.u64 %out, [out_tile];
  shl.b32 %at, %i, 2;
dump:
  add.u32 %t0, %base, %at;
  ld.shared.b32 %t1, [%t0];
  cvt.u64.u32 %x, %at;
  add.s64 %x, %out, %x;
  st.global.b32 [%x], %t1;
  add.u32 %at, %at, 512;
  setp.lt.u32 %p, %at, {size};
  @%p bra dump;
"""


DONE = """
  ld.param.u64 %out, [out_done];
  selp.b32 %t3, 1, 0, %q;
  @%first st.global.b32 [%out], %t3;
  ret;"""


def coordinates(at):
    return "{" + ", ".join(str(c) for c in at) + "}"


def packed_strides(type_name, dims, pad=0):
    strides, step = [], dims[0] * BYTES[type_name]
    for extent in dims[1:]:
        step = (step + 15) // 16 * 16 + pad
        strides.append(step)
        step *= extent
    return strides, step


def box_bytes(type_name, box, element_strides):
    count = box[0]
    for extent, stride in zip(box[1:], element_strides[1:]):
        count *= math.ceil(extent / stride)
    return count * BYTES[type_name]


def words(size):
    """Whole rounds of 512 bytes."""
    return (size + 511) // 512 * 512


def load(name, title, type_name="f16", dims=(64, 24), box=(32, 8), at=(0, 0), swizzle="none", fill="zero", strides=None,
         element_strides=None, offset=0, pad=0, contents=None, issue=None, room=None, section=LOAD, globals_="",
         prologue="", breaks=None):
    """One box, and what becomes of shared memory; whether its bytes, filled ones included, complete the phase."""
    element_strides = element_strides or [1] * len(dims)
    packed, reach = packed_strides(type_name, dims, pad)
    strides = packed if strides is None else strides
    array = contents or index("t", "b32", (reach + 3) // 4, 0x01000001, 0x00010203)
    counted = box_bytes(type_name, box, element_strides)
    size = words(room or counted + offset)
    target = f"[tile+{offset}]" if offset else "[tile]"
    rank = len(dims)
    copy = issue or (f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes {target}, "
                     f"[%map, {coordinates(at)}], [bar];")
    body = head(size) + generic("map_t") + prologue + f"""
  @!%first bra wait_for_it;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], {counted};
  {copy}
wait_for_it:
""" + WAIT + dump(size) + DONE
    freeform("tma/" + name, title, section, body, [array], [output("tile", "b32", size // 4), output("done", "u32", 1)],
             block=[128, 1, 1], globals_=globals_,
             maps=[tensor_map(array, type_name, dims, strides, box, element_strides, swizzle, fill)], breaks=breaks)


# ---- swizzles and where the pattern begins ----

for mode, width in [("none", 64), ("32B", 16), ("64B", 32), ("128B", 64)]:
    load(f"load_swizzle_{mode.lower()}", f"A box of rows as wide as the span of swizzle {mode}", box=(width, 16), at=(0, 4),
         swizzle=mode, section=LOAD + "; Swizzling Modes")
for mode, width, offset in [("128B", 64, 128), ("128B", 64, 640), ("64B", 32, 128), ("64B", 32, 384), ("32B", 16, 128)]:
    load(f"load_swizzle_{mode.lower()}_at_{offset}", "The pattern is anchored to addresses, not to where the box begins",
         box=(width, 12), at=(0, 4), swizzle=mode, offset=offset, section=LOAD + "; Swizzling Modes")
for mode, width in [("128B", 8), ("128B", 16), ("128B", 32), ("128B", 48), ("64B", 8), ("64B", 16), ("32B", 8)]:
    load(f"load_narrow_{mode.lower()}_{2 * width}", f"Rows of {2 * width} bytes under swizzle {mode}", box=(width, 12), at=(0, 4),
         swizzle=mode, room=2048, section=LOAD + "; Swizzling Modes")
load("load_narrow_outside", "Rows of 48 bytes under swizzle 128B over the end of rows that end inside 16 bytes", box=(24, 12),
     dims=(37, 16), at=(16, 8), swizzle="128B", room=2048, section=LOAD + "; Swizzling Modes")

# ---- types ----

for kind in ["u8", "u16", "u32", "s32", "u64", "s64", "bf16", "f32", "f64"]:
    width = 128 // BYTES[kind]
    load(f"load_{kind}", f"Elements of type {kind}, swizzled", kind, (width + 16 // BYTES[kind], 20), (width, 8),
         (-16 // BYTES[kind], 14), "128B", section=LOAD + "; Tensor Dimension, size and format")

# Subnormals, halves between two tf32 values, NaNs and infinities, both signs.
FLOATS = [0, 0x80000000, 1, 0x807FFFFF, 0x00800000, f32_bits(1.0), 0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F803000, 0xBF801000,
          0x3F802FFF, 0x7F7FFFFF, 0x7F7FE000, 0x7F7FF000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0x00001000,
          0x00000FFF, 0x00003000, 0x807FF000, 0x40490FDB, 0xC02DF854, 0x3EAAAAAB, 0x42F6E979, 0x7FA00000, 0x00400000, 0x3F7FFFFF,
          0x3F7FF000]
for kind in ["f32", "f32_ftz", "tf32", "tf32_ftz"]:
    load(f"load_values_{kind}", f"What becomes of special values in a load of type {kind}", kind, (32, 4), (32, 4), (0, 0),
         contents=explicit("t", "b32", FLOATS * 4), section=LOAD + "; Tensor Dimension, size and format")

# ---- ranks ----

load("load_1d", "A box of a vector", dims=(200,), box=(64,), at=(72,))
load("load_1d_tail", "A box over the end of a vector", dims=(200,), box=(128,), at=(152,))
load("load_3d", "Three dimensions", dims=(40, 6, 5), box=(32, 4, 3), at=(8, 1, 2))
load("load_3d_swizzled", "Three dimensions, swizzled; every dimension sticks out", dims=(37, 6, 5), box=(32, 4, 3), at=(24, 4, -1),
     swizzle="64B")
load("load_4d", "Four dimensions", dims=(24, 5, 4, 3), box=(16, 3, 3, 2), at=(8, 1, 2, 1), swizzle="32B")
load("load_5d", "Five dimensions", dims=(16, 3, 3, 3, 3), box=(8, 2, 2, 2, 2), at=(8, 1, 2, 0, 1))
load("load_5d_outside", "Five dimensions, all with negative coordinates", dims=(16, 3, 3, 3, 3), box=(16, 2, 2, 2, 2),
     at=(-8, -1, -1, -1, -1), pad=16)

# ---- elements outside the tensor ----

for name, at in {"left": (-8, 3), "top": (8, -5), "right": (48, 0), "bottom": (8, 19), "corner": (40, 21), "low_corner": (-24, -7),
                 "beyond": (64, 24), "far": (1 << 30, -(1 << 30)), "before": (-32, 0)}.items():
    load(f"outside_{name}", f"A box at {at} of a tensor of 64 x 24: zeros outside, all bytes count for the mbarrier",
         at=at, swizzle="64B", section=LOAD + "; Out of Boundary Access")
load("outside_odd", "A row that ends inside 16 bytes", dims=(37, 11), box=(32, 8), at=(16, 5), strides=[80], pad=6, swizzle="64B",
     section=LOAD + "; Out of Boundary Access")
for kind in ["f16", "bf16", "f32", "f64", "tf32"]:
    piece = 16 // BYTES[kind]  # the boxes begin one piece before the rows, which end one element into their third
    load(f"nan_fill_{kind}", f"What fills elements of type {kind} outside the tensor", kind, (2 * piece + 1, 10), (4 * piece, 8),
         (-piece, 5), "64B", "nan", section=LOAD + "; Out of Boundary Access", contents=explicit("t", "b32", [0] * (2 * 64 * 10 // 4)))

# ---- element strides ----

for name, options in {
        "rows": dict(element_strides=[1, 2], box=(32, 16)),
        "rows_ceil": dict(element_strides=[1, 3], box=(32, 16), swizzle="64B"),
        "rows_negative": dict(element_strides=[1, 3], box=(32, 16), at=(0, -4)),
        "rows_tail": dict(element_strides=[1, 4], box=(32, 24), at=(8, 13)),
        "planes": dict(dims=(32, 6, 12), box=(32, 4, 8), element_strides=[1, 1, 3], at=(0, 1, 2)),
        "both": dict(dims=(32, 9, 9), box=(32, 8, 8), element_strides=[1, 2, 5], at=(0, -1, -2)),
        "columns": dict(element_strides=[2, 1], box=(32, 8))}.items():
    load("element_stride_" + name, f"Element strides {options['element_strides']}", **options, section=LOAD + "; Traversal-Stride")

# ---- forms ----

load("load_wide_box", "256 elements along the innermost dimension", "u8", (300, 5), (256, 4), (32, 1))
load("load_tall_box", "256 rows", dims=(16, 300), box=(8, 256), at=(8, 40))
load("load_padded", "Rows with padding between them", dims=(40, 20), box=(32, 8), at=(8, 4), pad=48, swizzle="64B")
load("load_to_cta", "The form .shared::cta, with a cache policy", swizzle="64B", at=(16, 2), issue="""createpolicy.fractional.L2::evict_last.b64 %x, 1.0;
  cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [tile], [%map, {16, 2}], [bar], %x;""")
load("load_generic", "The map by its generic address, coordinates in registers; prefetches before", swizzle="64B",
     section=LOAD + "; " + MOVE + "cp.async.bulk.prefetch.tensor", issue="""prefetch.tensormap [%map];
  mov.u32 %t4, 16;
  mov.u32 %t5, -2;
  cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%map, {%t4, %t5}];
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%map, {%t4, %t5}], [bar];""")
load("load_map_in_global", "A map that the kernel copies to global memory", swizzle="64B", at=(0, 4),
     section=LOAD + "; Parallel Synchronization and Communication Instructions: membar, fence",
     globals_=".global .align 64 .b8 copied_map[128];", prologue="""
  setp.lt.u32 %p, %i, 16;
  mov.b64 %map, map_t;
  mul.wide.u32 %x, %i, 8;
  add.s64 %map, %map, %x;
  @%p ld.param.b64 %in, [%map];
  mov.u64 %map, copied_map;
  add.s64 %x, %map, %x;
  @%p st.global.b64 [%x], %in;
  fence.acq_rel.gpu;
  bar.sync 0;
  cvta.global.u64 %map, %map;
  fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
""", issue="cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%map, {0, 4}], [bar];")
load("load_twice", "Two boxes for one phase", at=(0, 0), room=1024, issue="""mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 512;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%map, {0, 4}], [bar];
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile+512], [%map, {40, -1}], [bar];""")

# ---- stores ----


def store(name, title, type_name="f16", dims=(64, 24), box=(32, 8), at=(0, 0), swizzle="none", element_strides=None, pad=0,
          operation=None, source=None, initial=None, offset=0, room=None, section=None, breaks=None):
    """Shared memory, filled from the input, into a box of the output."""
    element_strides = element_strides or [1] * len(dims)
    strides, reach = packed_strides(type_name, dims, pad)
    counted = box_bytes(type_name, box, element_strides)
    size = words(room or counted + offset)
    source = source or index("s", "b32", size // 4, 0x01000001, 0x00010203)
    initial = initial or index("d", "b32", (reach + 3) // 4, 0x7E000000, 1)
    target = output("d", initial["type"], initial["count"], initial=initial)
    kind = f"cp.reduce.async.bulk.tensor.{len(dims)}d.global.shared::cta.{operation}.tile" if operation else (
        f"cp.async.bulk.tensor.{len(dims)}d.global.shared::cta.tile")
    body = head(size) + generic("map_d") + f"""
  ld.param.u64 %in, [in_s];
  shl.b32 %at, %i, 2;
copy:
  cvt.u64.u32 %x, %at;
  add.s64 %x, %in, %x;
  ld.global.b32 %t1, [%x];
  add.u32 %t0, %base, %at;
  st.shared.b32 [%t0], %t1;
  add.u32 %at, %at, 512;
  setp.lt.u32 %p, %at, {size};
  @%p bra copy;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @!%first ret;
  {kind}.bulk_group [%map, {coordinates(at)}], [tile{f"+{offset}" if offset else ""}];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ret;"""
    freeform("tma/" + name, title, section or (REDUCE if operation else STORE), body, [source], [target], block=[128, 1, 1],
             maps=[tensor_map(target, type_name, dims, strides, box, element_strides, swizzle)], breaks=breaks)


for mode, width in [("none", 64), ("32B", 16), ("64B", 32), ("128B", 64)]:
    store(f"store_swizzle_{mode.lower()}", f"A box from shared memory under swizzle {mode}", dims=(72, 24), box=(width, 8), at=(8, 3),
          swizzle=mode)
store("store_swizzle_128b_at_384", "The pattern is anchored to addresses", box=(64, 8), at=(0, 3), swizzle="128B", offset=384)
for mode, width in [("128B", 16), ("64B", 8)]:
    store(f"store_narrow_{mode.lower()}_{2 * width}", f"Rows of {2 * width} bytes under swizzle {mode}", box=(width, 8), at=(8, 3),
          swizzle=mode, room=1024)
for kind in ["f32_ftz", "tf32", "tf32_ftz"]:
    store(f"store_values_{kind}", f"What becomes of special values in a store of type {kind}", kind, (32, 4), (32, 4),
          source=explicit("s", "b32", FLOATS * 4))
for kind in ["u8", "f32", "f64", "s64"]:
    width = 64 // BYTES[kind]
    store(f"store_{kind}", f"Elements of type {kind}", kind, (width + 32 // BYTES[kind], 12), (width, 8), (16 // BYTES[kind], 2), "64B")
for name, at in {"right": (48, 0), "bottom": (8, 19), "corner": (40, 21), "beyond": (64, 24)}.items():
    store(f"store_clipped_{name}", f"A box at {at} of a tensor of 64 x 24: what lies outside is not written", at=at, swizzle="64B")
store("store_clipped_odd", "A row that ends inside 16 bytes", dims=(37, 11), box=(32, 8), at=(16, 5), pad=16, swizzle="64B")
store("store_1d", "A vector", dims=(200,), box=(64,), at=(152,))
store("store_3d", "Three dimensions, clipped", dims=(37, 6, 5), box=(32, 4, 3), at=(24, 3, 3), swizzle="64B")
store("store_5d", "Five dimensions", dims=(16, 3, 3, 3, 3), box=(8, 2, 2, 2, 2), at=(8, 1, 2, 0, 1))
store("store_element_stride", "Element strides in a store", box=(32, 16), element_strides=[1, 3], at=(0, 4))

# ---- reductions ----

EDGES32 = [0, 1, 2, 3, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0x12345678, 0x87654321, 100]
EDGES64 = [0, 1, 2, 3, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, 0x00000000FFFFFFFF, 0xFFFFFFFF00000000, 0x123456789ABCDEF0]
HALVES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x3555, 0x7BFF, 0xFBFF, 0x4248, 0x7C00]
BF16S = [0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x3F80, 0xBF80, 0x3EAB, 0x7F7F, 0xFF7F, 0x4049, 0x7F80]
SINGLES = [0, 0x80000000, 1, 0x807FFFFF, 0x00800000, 0x80800001, f32_bits(1.0), f32_bits(-1.0), 0x33800000, 0x3EAAAAAB, 0x7F7FFFFF,
           0x40490FDB]
TABLES = {"u32": ("b32", EDGES32), "s32": ("b32", EDGES32), "u64": ("b64", EDGES64), "s64": ("b64", EDGES64), "f16": ("b16", HALVES),
          "bf16": ("b16", BF16S), "f32": ("b32", SINGLES)}


def reduction(operation, kind, breaks=None):
    width = 128 // BYTES[kind]
    element, table = TABLES[kind]
    count = 1024 // BYTES[kind]
    # The source repeats a row shifted by one element each time, so that every value meets every other.
    a = [table[(i + i // width) % len(table)] for i in range(count)]
    b = [table[i % len(table)] for i in range(width * 12)]
    store(f"reduce_{operation}_{kind}", f"Reduction {operation} on elements of type {kind}", kind, (width, 12), (width, 8), (0, 4), "none",
          operation=operation, source=explicit("s", element, a), initial=explicit("d", element, b), breaks=breaks)


for operation, kinds in {"add": ["u32", "s32", "u64", "f32", "f16", "bf16"], "min": ["u32", "s32", "u64", "s64", "f16", "bf16"],
                         "max": ["u32", "s32", "u64", "s64", "f16", "bf16"], "inc": ["u32"], "dec": ["u32"], "and": ["u32", "u64"],
                         "or": ["u32"], "xor": ["s32", "u64"]}.items():
    for kind in kinds:
        reduction(operation, kind)
store("reduce_clipped", "A reduction leaves out what lies outside", "u32", (19, 9), (16, 8), (8, 5), "64B", operation="add",
      initial=index("d", "u32", 180, 7, 3), source=index("s", "u32", 128, 1000, 1))

# ---- copies that fault ----

COORDINATE = "the innermost coordinate of a tensor copy must be a multiple of 16 bytes"
for name, kind, dims, box, at in [("negative", "f16", (64, 24), (32, 8), (-5, 3)), ("half_piece", "f16", (64, 24), (32, 8), (4, 0)),
                                  ("outside", "f32", (40, 24), (16, 8), (41, 25)), ("3d", "u8", (64, 6, 5), (32, 4, 3), (1, 1, 2))]:
    load(f"fault_load_{name}", "A load whose innermost coordinate is no multiple of 16 bytes", kind, dims, box, at, breaks=COORDINATE)
load("fault_prefetch", "A prefetch whose innermost coordinate is no multiple of 16 bytes, before a load", at=(8, 2), breaks=COORDINATE,
     section=LOAD + "; " + MOVE + "cp.async.bulk.prefetch.tensor", issue="""cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%map, {5, 2}];
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%map, {8, 2}], [bar];""")
store("fault_store", "A store whose innermost coordinate is no multiple of 16 bytes", at=(13, 5), swizzle="64B", breaks=COORDINATE)
store("fault_reduce", "A reduction whose innermost coordinate is no multiple of 16 bytes", "u32", (20, 9), (16, 8), (2, 1), operation="add",
      breaks=COORDINATE)
store("fault_store_negative", "A store of a box that begins before the tensor", at=(-8, -3), swizzle="64B",
      breaks="of a tensor store is -8; it must not be negative", section=STORE + "; " + MOVE + "Restriction on Tensor Copy instructions")
for operation in ["add", "and", "xor"]:
    reduction(operation, "s64", breaks="this reduction does not exist for tensors of type s64")
