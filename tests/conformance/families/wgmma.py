"""wgmma: operand layouts in shared memory, fragments, types, scaling, accumulators.

Shared memory is filled with draws from a table of small integers, so that every sum is exact and a value read from the
wrong place shows. The descriptors alone say where the operands are: what the hardware makes of them is recorded, no
layout code of ours takes part.
"""

import struct
from dataclasses import dataclass

from families.builder import choice, explicit, freeform, output, random_bits
import values

SECTION = "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions: wgmma.mma_async"
LAYOUT = "Asynchronous Warpgroup Level Matrix Shared Memory Layout"
FRAGMENT = "Register Fragments for wgmma.mma_async"
SWIZZLE_CODE = {0: 0, 128: 1, 64: 2, 32: 3}  # Matrix Descriptor Format, bits 63-62
BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}
PLANS = {}  # the arguments of every case, for predict.py
KBYTES = 32  # one wgmma's K, in bytes, for every type


def code(kind, number):
    """A small integer in an operand's format."""
    if kind == "f16":
        return struct.unpack("<H", struct.pack("<e", number))[0]
    if kind == "bf16":
        return values.f32_bits(float(number)) >> 16
    if kind == "tf32":
        return values.f32_bits(float(number))
    sign = 0x80 if number < 0 else 0
    return sign | {"e4m3": {0: 0, 1: 0x38, 2: 0x40, 3: 0x44, 4: 0x48},
                   "e5m2": {0: 0, 1: 0x3C, 2: 0x40, 3: 0x42, 4: 0x44}}[kind][abs(number)]


INTEGERS = [-4, -3, -2, -1, 1, 2, 3, 4]


def fill(kind, name, count_bytes, seed):
    """Random operand elements, `count_bytes` of them."""
    count = count_bytes // BYTES[kind]
    if kind in ("s8", "u8"):
        return random_bits(name, "b32", count_bytes // 4, seed)
    return choice(name, f"b{8 * BYTES[kind]}", count, seed, [code(kind, i) for i in INTEGERS])


def covering(array, count_bytes):
    """The array made as long as shared memory: drawn further, or padded with zeros."""
    count = count_bytes // values.size(array["type"])
    if "values" in array:
        return explicit(array["name"], array["type"], values.elements_of(array) + [0] * (count - array["count"]))
    return {**array, "count": count}


@dataclass
class Operand:
    """Where an operand is: what a matrix descriptor holds, how far a K chunk advances it, and its size in bytes."""
    swizzle: int  # 0, 32, 64, 128
    leading: int
    stride: int
    advance: int
    size: int
    transposed: int = 0
    offset: int = 0  # of the start address in shared memory
    base_offset: int = 0


def k_major(swizzle, rows, chunks):
    if swizzle:
        return Operand(swizzle, 16, 8 * swizzle, KBYTES, rows * swizzle)
    column = rows // 8 * 128
    return Operand(0, column, 128, 2 * column, 2 * chunks * column)


def mn_major(swizzle, rows, chunks):
    """For 16-bit types: 16 k's a chunk, two groups of eight."""
    if swizzle:
        atom = 8 * swizzle
        return Operand(swizzle, 2 * chunks * atom, atom, 2 * atom, rows * 2 // swizzle * 2 * chunks * atom, 1)
    column = rows // 8 * 128
    return Operand(0, column, 128, 2 * column, 2 * chunks * column, 1)


def high_word(operand):
    """Bits 63-32 of a descriptor."""
    return SWIZZLE_CODE[operand.swizzle] << 30 | operand.base_offset << 17 | (operand.stride & 0x3FFFF) >> 4


def descriptor(register, operand, chunk, base="%smem"):
    """PTX that makes a descriptor from a 32-bit shared address."""
    start = operand.offset + chunk * operand.advance
    return [f"  add.u32 %t0, {base}, {start};", "  and.b32 %t0, %t0, 0x3FFFF;", "  shr.u32 %t0, %t0, 4;",
            f"  or.b32 %t0, %t0, {((operand.leading & 0x3FFFF) >> 4) << 16:#x};",
            f"  mov.b64 {register}, {{%t0, {high_word(operand):#x}}};"]


def wgmma(name, title, a_type="f16", b_type=None, d_type="f32", n=16, a=None, b=None, chunks=1, scale=(1, 1), satfinite=False,
          accumulators=None, keep=True, sample=1, smem=None, seed=1, fragments=None, relative=None, absolute=None,
          section=SECTION, again=1, warpgroups=1):
    """One case. `a`, `b`: operands in shared memory; `a` None takes A from registers. `accumulators`: input array of the
    initial D; without one the first wgmma has scale-d false. `keep` false: scale-d false although there are initial values.
    `sample` s: thread t stores only registers r with r % s == t % s. With two `warpgroups`, each has its own A."""
    PLANS["wgmma/" + name] = dict(locals())
    b_type = b_type or a_type
    if a is not None:
        b.offset = b.offset or (a.offset + warpgroups * a.size + 1023) // 1024 * 1024
    threads = 128 * warpgroups
    total = (b.offset + b.size + 16 * threads - 1) // (16 * threads) * (16 * threads)
    registers = n // 2 if d_type in ("f32", "s32") else n // 4
    k = KBYTES // BYTES[a_type]
    d_register = "f32" if d_type == "f32" else "b32"
    smem = covering(smem or fill(a_type, "smem", total, seed), total)
    inputs = [smem]
    body = [f"  .reg .{d_register} %d<{registers}>;", "  .reg .b32 %t<8>, %a<4>, %thread, %smem, %i;",
            "  .reg .b64 %in, %out, %x, %adesc, %bdesc;", "  .reg .pred %p, %keep, %take;", "",
            "  mov.u32 %thread, %tid.x;", "  mov.u32 %smem, smem;", "  ld.param.u64 %in, [in_smem];",
            "  mul.wide.u32 %x, %thread, 16;", "  add.s64 %in, %in, %x;", "  shl.b32 %i, %thread, 4;", "copy:",
            "  ld.global.v4.b32 {%t0, %t1, %t2, %t3}, [%in];", "  add.u32 %t4, %smem, %i;",
            "  st.shared.v4.b32 [%t4], {%t0, %t1, %t2, %t3};", "  add.s64 %in, %in, TURN;", "  add.u32 %i, %i, TURN;",
            f"  setp.lt.u32 %p, %i, {total};", "  @%p bra copy;", "  fence.proxy.async.shared::cta;", "  bar.sync 0;", ""]
    body = [line.replace("TURN", str(16 * threads)) for line in body]
    a_base = "%smem"
    if warpgroups > 1:
        a_base = "%mine"
        body += ["  .reg .b32 %mine;", "  shr.u32 %mine, %thread, 7;", f"  mad.lo.u32 %mine, %mine, {a.size}, %smem;"]
    if accumulators is not None:
        inputs.append(accumulators)
        body += ["  ld.param.u64 %in, [in_accumulators];", f"  mul.wide.u32 %x, %thread, {registers * 4};",
                 "  add.s64 %in, %in, %x;"]
        body += [f"  ld.global.{d_register} %d{r}, [%in+{4 * r}];" for r in range(registers)]
    else:
        zero = "0f00000000" if d_type == "f32" else "0"
        body += [f"  mov.{d_register} %d{r}, {zero};" for r in range(registers)]
    if a is None:
        inputs.append(fragments or fill(a_type, "a", 128 * 16, seed + 100))
        body += ["  ld.param.u64 %in, [in_a];", "  mul.wide.u32 %x, %thread, 16;", "  add.s64 %in, %in, %x;",
                 "  ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%in];"]
    body += ["", "  wgmma.fence.sync.aligned;"]
    d_list = "{" + ", ".join(f"%d{r}" for r in range(registers)) + "}"
    integer = d_type == "s32"
    for turn in range(again):
        for chunk in range(chunks):
            first = turn == 0 and chunk == 0 and (accumulators is None or not keep)
            body += descriptor("%bdesc", b, chunk)
            body += [f"  setp.ne.u32 %keep, {0 if first else 1}, 0;"]
            if a is not None:
                body += descriptor("%adesc", a, chunk, a_base)
            tail = "" if integer else f", {scale[0]}, {scale[1]}"
            if a_type in ("f16", "bf16"):
                tail += (f", {a.transposed}" if a is not None else "") + f", {b.transposed}"
            types = f"{'satfinite.' if satfinite else ''}{d_type}.{a_type}.{b_type}"
            a_operand = "%adesc" if a is not None else "{%a0, %a1, %a2, %a3}"
            body += [f"  wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types}", f"    {d_list},",
                     f"    {a_operand}, %bdesc, %keep{tail};"]
    stored = registers // sample
    body += ["  wgmma.commit_group.sync.aligned;", "  wgmma.wait_group.sync.aligned 0;", "",
             "  ld.param.u64 %out, [out_d];", f"  mul.wide.u32 %x, %thread, {4 * stored};", "  add.s64 %out, %out, %x;"]
    if sample == 1:
        body += [f"  st.global.{d_register} [%out+{4 * r}], %d{r};" for r in range(registers)]
    else:
        body += [f"  and.b32 %i, %thread, {sample - 1};"]
        for rest in range(sample):
            body += [f"  setp.eq.u32 %take, %i, {rest};"]
            body += [f"  @%take st.global.{d_register} [%out+{4 * (r // sample)}], %d{r};"
                     for r in range(rest, registers, sample)]
    body += ["  ret;"]
    d_output = output("d", {"f32": "f32", "s32": "s32", "f16": "b32"}[d_type], threads * stored, relative, absolute)
    freeform("wgmma/" + name, title, section, "\n".join(body), inputs, [d_output],
             globals_=".extern .shared .align 1024 .b8 smem[];", block=[threads, 1, 1], dynamic_shared=total)


# ---- f16: every swizzle mode with every pair of majors -----------------------------------------------------------------

for swizzle in (0, 32, 64, 128):
    chunks = {0: 2, 32: 1, 64: 2, 128: 4}[swizzle]
    for a_major in "km":
        for b_major in "kn":
            n = 16 if b_major == "k" or swizzle in (0, 32) else swizzle // 2 if swizzle == 128 else 64
            if b_major == "n" and swizzle == 32:
                n = 32  # two repeats of the pattern along N
            make_a = k_major if a_major == "k" else mn_major
            make_b = k_major if b_major == "k" else mn_major
            text = f"{swizzle}B swizzle" if swizzle else "no swizzle"
            wgmma(f"f16_{swizzle or 'none'}_{a_major}{b_major}",
                  f"f16, {text}, A {a_major.upper()}-major, B {b_major.upper()}-major, {chunks} K chunks", n=n,
                  a=make_a(swizzle, 64, chunks), b=make_b(swizzle, n, chunks), chunks=chunks, sample=4 if n == 64 else 1,
                  seed=swizzle + ord(a_major) + ord(b_major), section=SECTION + "; " + LAYOUT)

wgmma("f16_two_warpgroups", "Two warpgroups, each with its own A and a common B", n=16, a=k_major(128, 64, 4), b=k_major(128, 16, 4),
      chunks=4, warpgroups=2)

# ---- strides, start addresses, base offsets ----------------------------------------------------------------------------


def moved(operand, **changes):
    for key, value in changes.items():
        setattr(operand, key, value)
    return operand


wgmma("f16_128_stride", "f16, 128B swizzle, groups of eight rows 2048 bytes apart", chunks=4,
      a=moved(k_major(128, 64, 4), stride=2048, size=16384), b=moved(k_major(128, 16, 4), stride=3072, size=6144), section=LAYOUT)
wgmma("f16_none_strides", "f16, no swizzle, K-major: core matrices apart by odd multiples of 16 bytes",
      a=Operand(0, 144, 400, 288, 4096), b=Operand(0, 208, 592, 416, 2048), chunks=2, section=LAYOUT)
wgmma("f16_none_strides_mn", "f16, no swizzle, M- and N-major: core matrices apart by odd multiples of 16 bytes", n=32,
      a=Operand(0, 1296, 144, 2592, 8192, 1), b=Operand(0, 656, 160, 1312, 4096, 1), chunks=2, section=LAYOUT)
wgmma("f16_128_mn_strides", "f16, 128B swizzle, M- and N-major with gaps between the repeats", n=128, sample=8, chunks=2,
      a=moved(mn_major(128, 64, 2), stride=2048, advance=4096, size=8192),
      b=moved(mn_major(128, 128, 2), leading=9216, stride=2048, advance=4096, size=18432), section=LAYOUT)
wgmma("f16_64_start", "f16, 64B swizzle, operands that start 512 bytes into a 1024-byte block", chunks=2,
      a=moved(k_major(64, 64, 2), offset=512), b=moved(k_major(64, 16, 2), offset=8192 + 512), section=LAYOUT)
wgmma("f16_32_start", "f16, 32B swizzle, operands that start 256 bytes into a 1024-byte block",
      a=moved(k_major(32, 64, 1), offset=256), b=moved(k_major(32, 16, 1), offset=4096 + 768), section=LAYOUT)
for swizzle, shift in ((128, 256), (128, 640), (64, 128), (32, 128)):
    wgmma(f"f16_{swizzle}_base_{shift}",
          f"f16, {swizzle}B swizzle, pattern that starts {shift} bytes past its natural boundary, with the base offset",
          a=moved(k_major(swizzle, 64, 1), offset=shift, base_offset=shift >> 7 & 7),
          b=moved(k_major(swizzle, 16, 1), offset=16384 + shift, base_offset=shift >> 7 & 7), section=LAYOUT)

# ---- shapes ------------------------------------------------------------------------------------------------------------

for n, sample in ((8, 1), (24, 1), (40, 4), (128, 8), (192, 16), (256, 16)):
    wgmma(f"f16_n{n}", f"f16, N = {n}", n=n, a=k_major(128, 64, 2), b=k_major(128, n, 2), chunks=2, sample=sample, seed=n,
          section=SECTION + "; " + FRAGMENT)


def index_image(n):
    """A row m is (m, 1, 0, ...), column n of B is (32, n, 0, ...): D = 32 * m + n, exact. No swizzle, K-major."""
    image = [0] * ((64 * 16) + n * 16)
    for m in range(64):
        image[m // 8 * 64 + m % 8 * 8] = code("f16", m)
        image[m // 8 * 64 + m % 8 * 8 + 1] = code("f16", 1)
    for column in range(n):
        image[1024 + column // 8 * 64 + column % 8 * 8] = code("f16", 32)
        image[1024 + column // 8 * 64 + column % 8 * 8 + 1] = code("f16", column)
    return explicit("smem", "b16", image)


for n in (8, 32):
    b = k_major(0, n, 1)
    b.offset = 2048
    wgmma(f"fragment_n{n}", f"Accumulator fragment: D[m][n] = 32 m + n for N = {n}", n=n, a=k_major(0, 64, 1), b=b,
          smem=index_image(n), section=FRAGMENT)
b = k_major(0, 32, 1)
b.offset = 2048
wgmma("fragment_n32_f16", "Accumulator fragment with f16 accumulators: D[m][n] = 32 m + n, packed by two", n=32, d_type="f16",
      a=k_major(0, 64, 1), b=b, smem=index_image(32), section=FRAGMENT)

# ---- scaling and accumulators ------------------------------------------------------------------------------------------


def initial(registers, seed=77):
    return choice("accumulators", "f32", 128 * registers, seed, [values.f32_bits(float(i)) for i in range(-50, 51, 7)])


for scale, label in (((-1, 1), "a"), ((1, -1), "b"), ((-1, -1), "ab")):
    wgmma(f"f16_negate_{label}", f"f16, imm-scale-a {scale[0]}, imm-scale-b {scale[1]}, onto initial accumulators", scale=scale,
          a=k_major(128, 64, 1), b=k_major(128, 16, 1), accumulators=initial(8))
wgmma("f16_accumulate", "f16, D = A*B + D from given accumulators, two instructions in a row", a=k_major(128, 64, 4),
      b=k_major(128, 16, 4), chunks=4, again=2, accumulators=initial(8))
wgmma("f16_discard", "scale-d false: NaN and infinities in D do not matter", a=k_major(64, 64, 1), b=k_major(64, 16, 1), keep=False,
      accumulators=choice("accumulators", "b32", 128 * 8, 78, [0x7FC00000, 0x7F800000, 0xFF800000, 0x3F800000]))
wgmma("f16_f16", "f16 accumulators, packed by two", d_type="f16", n=32, a=k_major(128, 64, 4), b=k_major(128, 32, 4), chunks=4)
wgmma("f16_f16_accumulate", "f16 accumulators from given values, negated A", d_type="f16", n=16, a=k_major(128, 64, 2),
      b=k_major(128, 16, 2), chunks=2, scale=(-1, 1),
      accumulators=choice("accumulators", "b16", 128 * 8, 79, [code("f16", i) for i in range(-60, 61, 11)]))

# ---- types -------------------------------------------------------------------------------------------------------------

for a_major in "km":
    for b_major in "kn":
        wgmma(f"bf16_128_{a_major}{b_major}", f"bf16, 128B swizzle, A {a_major.upper()}-major, B {b_major.upper()}-major", "bf16", n=64,
              sample=4, a=(k_major if a_major == "k" else mn_major)(128, 64, 4),
              b=(k_major if b_major == "k" else mn_major)(128, 64, 4), chunks=4, section=SECTION + "; " + LAYOUT)
for swizzle in (0, 32, 64, 128):
    wgmma(f"tf32_{swizzle or 'none'}", f"tf32, swizzle {swizzle or 'none'}", "tf32", n=16, a=k_major(swizzle, 64, 2),
          b=k_major(swizzle, 16, 2), chunks={0: 2, 32: 1, 64: 2, 128: 4}[swizzle])
low = choice("smem", "b32", 2560, 5, [values.f32_bits(float(i)) | 0x1FFF for i in INTEGERS])
wgmma("tf32_low_bits", "tf32: the low 13 bits of the operands are cut off", "tf32", n=16, a=k_major(128, 64, 4),
      b=k_major(128, 16, 4), chunks=4, smem=low)
for x in ("e4m3", "e5m2"):
    for y in ("e4m3", "e5m2"):
        mixed = None if x == y else choice("smem", "b8", 10240, 6, [0x38, 0xB8, 0x3C, 0xBC, 0x40, 0xC0])
        wgmma(f"{x}_{y}", f"{x} times {y}, 128B swizzle", x, y, n=16, a=k_major(128, 64, 4), b=k_major(128, 16, 4), chunks=4, smem=mixed)
wgmma("e4m3_64", "e4m3, 64B swizzle", "e4m3", n=32, a=k_major(64, 64, 2), b=k_major(64, 32, 2), chunks=2)
wgmma("e5m2_none", "e5m2, no swizzle", "e5m2", n=8, a=k_major(0, 64, 2), b=k_major(0, 8, 2), chunks=2)
wgmma("e4m3_f16", "e4m3 with f16 accumulators", "e4m3", d_type="f16", n=16, a=k_major(128, 64, 2), b=k_major(128, 16, 2), chunks=2)
for x in ("s8", "u8"):
    for y in ("s8", "u8"):
        wgmma(f"{x}_{y}", f"{x} times {y}, 128B swizzle, full range", x, y, "s32", n=16, a=k_major(128, 64, 4), b=k_major(128, 16, 4), chunks=4)
near_limits = choice("accumulators", "s32", 128 * 8, 80, [0x7FFFFFFF, 0x7FFFF000, 0x80000000, 0x80001000, 0])
wgmma("s8_wrap", "s8 onto accumulators near the limits: wraps", "s8", None, "s32", n=16, a=k_major(64, 64, 1), b=k_major(64, 16, 1),
      accumulators=near_limits)
wgmma("s8_satfinite", "s8 onto accumulators near the limits: saturates", "s8", None, "s32", n=16, a=k_major(64, 64, 1),
      b=k_major(64, 16, 1), accumulators=near_limits, satfinite=True)

# ---- A from registers --------------------------------------------------------------------------------------------------

for kind in ("f16", "bf16", "tf32", "e4m3", "s8", "u8"):
    wgmma(f"{kind}_register_a", f"{kind}, A from registers", kind, None, "s32" if kind in ("s8", "u8") else "f32", n=16,
          b=k_major(128, 16, 1), section=SECTION + "; " + FRAGMENT)
wgmma("f16_register_a_n_major", "f16, A from registers, B N-major", n=64, sample=4, b=mn_major(128, 64, 1))
wgmma("f16_register_a_negate", "f16, A from registers, negated, f16 accumulators", d_type="f16", n=16, scale=(-1, 1),
      b=k_major(32, 16, 1))
column = explicit("a", "b16", [code("f16", i % 64 * 16 + i // 64) for i in range(1024)])
ones = explicit("smem", "b16", [code("f16", 1) if i // 8 % 8 == i % 8 else 0 for i in range(64)] + [0] * 64
                + [0] * 64 + [code("f16", 1) if i // 8 % 8 == i % 8 else 0 for i in range(64)])
wgmma("fragment_a", "A fragment: index values times the identity give A back, N = 16", n=16, b=Operand(0, 256, 128, 512, 512), fragments=column,
      smem=ones, section=FRAGMENT)

# ---- rounding: random values, within a tolerance -------------------------------------------------------------------------

wgmma("f16_random", "f16 of random magnitude, f32 accumulators", n=16, a=k_major(128, 64, 4), b=k_major(128, 16, 4), chunks=4,
      smem=random_bits("smem", "b16", 5120, 91, keep=0x8FFF, force=0x3000), relative=1e-5, absolute=2e-4)
wgmma("f16_f16_random", "f16 of random magnitude, f16 accumulators", d_type="f16", n=16, a=k_major(128, 64, 1), b=k_major(128, 16, 1),
      smem=choice("smem", "b16", 5120, 92, [code("f16", i / 4) for i in range(-8, 9)]))
wgmma("bf16_random", "bf16 of random magnitude", "bf16", n=16, a=k_major(128, 64, 4), b=k_major(128, 16, 4), chunks=4,
      smem=random_bits("smem", "b16", 5120, 93, keep=0x81FF, force=0x3E00), relative=1e-5, absolute=2e-4)
wgmma("tf32_random", "tf32 of random magnitude, all mantissa bits set at random", "tf32", n=16, a=k_major(128, 64, 4), b=k_major(128, 16, 4), chunks=4,
      smem=random_bits("smem", "b32", 2560, 94, keep=0x81FFFFFF, force=0x3E000000), relative=1e-5, absolute=2e-4)
wgmma("e4m3_random", "e4m3 of random magnitude: the hardware keeps fewer bits while it adds", "e4m3", n=16, a=k_major(128, 64, 4),
      b=k_major(128, 16, 4), chunks=4, smem=random_bits("smem", "b8", 10240, 95, keep=0x9F, force=0x20), relative=1e-3, absolute=2e-2)
