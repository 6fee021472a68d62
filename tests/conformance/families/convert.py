"""Conversions: every rounding mode, saturation, all fp8 codes, edge values of every width."""

from families.builder import Op, elementwise, explicit, index, pairs, random_bits

CVT = "Data Movement and Conversion Instructions: cvt"


def f32_edges():
    """f32 values at the rounding boundaries of f16, bf16, tf32, e4m3 and e5m2."""
    bits = [0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
            0x7FC00000, 0xFFC12345, 0x7F800001]
    for low in [0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001, 0x17FFF, 0x18000, 0x18001]:
        bits.append(0x3F800000 | low)      # ties of f16 (bit 12), tf32 (bit 12) and bf16 (bit 15)
    for exponent in [0x33, 0x34, 0x37, 0x38, 0x39, 0x3B, 0x3C, 0x3E, 0x43, 0x44, 0x47]:
        bits += [exponent << 24, (exponent << 24) | 0x800000, (exponent << 24) | 0x80000001, (exponent << 24) | 0xC0000]
    bits += [0x43E00000, 0x43E80000, 0x43E7FFFF, 0x43F00000,  # 448, 464 (the tie above e4m3's largest), 480
             0x47600000, 0x47700000, 0x476FFFFF, 0x477FE000, 0x477FEFFF, 0x477FF000, 0xC77FF000,  # e5m2's and f16's largest
             0x3A800000, 0x3A800001, 0x3B000000, 0x3B400000, 0x3AC00000,  # e4m3's smallest subnormal, ties
             0x37000000, 0x37000001, 0x37800000, 0x37C00000, 0x33000000, 0x33000001, 0x33C00000, 0x387FC000, 0x387FE000,
             0x7F7F8000, 0x7F7F7FFF, 0xFF7F8000]
    return bits


EDGES = f32_edges()
a_edges = explicit("a", "b32", EDGES)
two_edges = [a_edges, explicit("b", "b32", EDGES[7:] + EDGES[:7])]
wide = random_bits("a", "b32", 128, 71)  # any bits: every exponent, NaN too


def cvt(kinds, type_name, operands="$a"):
    return [Op(f"cvt.{k} $d, {operands};", type_name) for k in kinds]


elementwise("convert/f32_to_f16", "f32 to f16: every rounding mode, ties, overflow, subnormals, NaN", CVT, [a_edges],
            cvt(["rn.f16.f32", "rz.f16.f32", "rm.f16.f32", "rp.f16.f32", "rn.ftz.f16.f32", "rn.sat.f16.f32",
                 "rn.relu.f16.f32", "rn.satfinite.f16.f32"], "b16"))
elementwise("convert/f32_to_bf16", "f32 to bf16: rn, rz, relu, satfinite", CVT, [a_edges],
            cvt(["rn.bf16.f32", "rz.bf16.f32", "rm.bf16.f32", "rp.bf16.f32", "rn.relu.bf16.f32", "rz.relu.bf16.f32",
                 "rn.satfinite.bf16.f32"], "b16"))
elementwise("convert/f32_to_f16_random", "f32 to f16 and bf16 over random bits", CVT, [wide],
            cvt(["rn.f16.f32", "rz.f16.f32", "rn.bf16.f32", "rz.bf16.f32"], "b16"))
elementwise("convert/f32_to_packed", "Two f32 to f16x2 and bf16x2: order of the halves, rn, rz, relu, satfinite", CVT, two_edges,
            cvt(["rn.f16x2.f32", "rz.f16x2.f32", "rn.relu.f16x2.f32", "rn.satfinite.f16x2.f32", "rn.bf16x2.f32",
                 "rz.bf16x2.f32", "rn.relu.bf16x2.f32", "rn.satfinite.bf16x2.f32"], "b32", "$a, $b"))
elementwise("convert/f32_to_tf32", "f32 to tf32: nearest with ties away, and even; relu, satfinite", CVT, [a_edges],
            cvt(["rna.tf32.f32", "rn.tf32.f32", "rz.tf32.f32", "rn.relu.tf32.f32", "rna.satfinite.tf32.f32"], "b32"))
elementwise("convert/f32_to_fp8", "Two f32 to e4m3x2 and e5m2x2: saturation, ties, subnormals, NaN, relu", CVT, two_edges,
            cvt(["rn.satfinite.e4m3x2.f32", "rn.satfinite.e5m2x2.f32", "rn.satfinite.relu.e4m3x2.f32",
                 "rn.satfinite.relu.e5m2x2.f32"], "b16", "$a, $b"))
elementwise("convert/f32_to_fp8_random", "f32 with exponents around the range of fp8 to e4m3x2 and e5m2x2", CVT,
            [random_bits("a", "b32", 256, 72, keep=0x8FFFFFFF, force=0x38000000),
             random_bits("b", "b32", 256, 73, keep=0x87FFFFFF, force=0x38000000)],
            cvt(["rn.satfinite.e4m3x2.f32", "rn.satfinite.e5m2x2.f32"], "b16", "$a, $b"))
elementwise("convert/fp8_to_f16", "All 256 codes of e4m3 and e5m2 to f16x2, and relu", CVT,
            [explicit("a", "b16", [(255 - k) << 8 | k for k in range(256)])],
            cvt(["rn.f16x2.e4m3x2", "rn.f16x2.e5m2x2", "rn.relu.f16x2.e4m3x2", "rn.relu.f16x2.e5m2x2"], "b32"))
HALVES = [0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x3555, 0x3BFF, 0x3C00, 0x3C01, 0xBC00, 0x4248, 0x7BFF, 0xFBFF, 0x7C00,
          0xFC00, 0x7E00, 0xFE01, 0x7C01, 0x5F00, 0x5F40, 0x5F3F, 0x5F80, 0x7B00, 0x7B80, 0x1800, 0x1400, 0x1600, 0x0100,
          0x0080, 0x00C0, 0x0180, 0x5640, 0xD6C0]
elementwise("convert/f16x2_to_fp8", "f16x2 to e4m3x2 and e5m2x2 over edge halves", CVT,
            [explicit("a", "b32", [h << 16 | HALVES[(k + 5) % len(HALVES)] for k, h in enumerate(HALVES)])],
            cvt([f"rn.satfinite{r}.{f}.f16x2" for r in ["", ".relu"] for f in ["e4m3x2", "e5m2x2"]], "b16"))
elementwise("convert/f16_to_wider", "f16 and bf16 to f32 and f64", CVT, [explicit("a", "b16", HALVES + [0x7F80, 0xFF80, 0x7FC1])],
            cvt(["f32.f16", "f32.bf16", "ftz.f32.f16"], "b32") + cvt(["f64.f16"], "b64"))
elementwise("convert/f16_to_integer", "f16 to integers in every rounding mode; out of range, NaN", CVT,
            [explicit("a", "b16", HALVES + [0x3800, 0x3E00, 0x4100, 0xB800, 0xBE00, 0xC100])],
            cvt([f"{r}.{t}.f16" for r in ["rni", "rzi", "rmi", "rpi"] for t in ["s32", "u32"]], "b32")
            + cvt(["rni.s16.f16", "rzi.u16.f16"], "b16") + cvt(["rzi.s64.f16"], "b64"))
INTEGRAL = [0x3F000000, 0xBF000000, 0x3FC00000, 0xBFC00000, 0x40200000, 0xC0200000, 0x3EFFFFFF, 0x3F000001, 0x4B000000,
            0x4B000001, 0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF, 0x4F800000, 0x5EFFFFFF, 0x5F000000,
            0xDF000000, 0x5F7FFFFF, 0x5F800000, 0x42FE0000, 0x43000000, 0xC3000000, 0xC3010000, 0x437F0000, 0x43800000,
            0x46FFFE00, 0x47000000, 0xC7000100, 0x477FFF00, 0x47800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001,
            0x00000001, 0x80000001, 0x00000000, 0x80000000, 0x7F7FFFFF, 0xFF7FFFFF]
integral = explicit("a", "b32", INTEGRAL)
elementwise("convert/f32_to_integer", "f32 to 32-bit integers in every rounding mode; out of range, NaN", CVT, [integral],
            cvt([f"{r}.{t}.f32" for r in ["rni", "rzi", "rmi", "rpi"] for t in ["s32", "u32"]]
                + ["rpi.ftz.s32.f32", "rmi.ftz.s32.f32"], "b32"))
elementwise("convert/f32_to_integer_sizes", "f32 to 8, 16 and 64-bit integers", CVT, [integral],
            [Op(f"cvt.rni.{t}.f32 $d, $a;", "b16") for t in ["s16", "u16"]]
            + [Op(f"cvt.rzi.{t}.f32 %t0, $a;\ncvt.u16.u32 $d, %t0;", "b16", name=f"cvt_rzi_{t}_f32") for t in ["s8", "u8"]]
            + cvt([f"{r}.{t}.f32" for r in ["rni", "rzi"] for t in ["s64", "u64"]], "b64"))
elementwise("convert/f32_round", "f32 rounded to an integral f32; saturation", CVT, [integral],
            cvt(["rni.f32.f32", "rzi.f32.f32", "rmi.f32.f32", "rpi.f32.f32", "rni.ftz.f32.f32", "sat.f32.f32",
                 "rzi.sat.f32.f32"], "b32"))
INTS = [0, 1, -1, 2, 127, 128, 255, 256, 32767, 65504, 65519, 65520, 65535, 65536, 16777215, 16777216, 16777217, 16777219,
        33554435, -16777217, 2147483583, 2147483584, 2147483647, -2147483648, -2147483647, 0x55555555]
elementwise("convert/integer_to_float", "32-bit integers to f32, f16, bf16, f64 in every rounding mode", CVT,
            [explicit("a", "s32", INTS)],
            cvt([f"{r}.f32.{t}" for r in ["rn", "rz", "rm", "rp"] for t in ["s32", "u32"]], "b32")
            + cvt(["rn.f16.s32", "rz.f16.s32", "rn.f16.u32", "rn.bf16.s32"], "b16") + cvt(["rn.f64.s32", "rn.f64.u32"], "b64"))
LONGS = [0, 1, -1, 1 << 24, (1 << 24) + 1, (1 << 53) + 1, (1 << 53) + 3, -(1 << 53) - 1, (1 << 63) - 1, -(1 << 63),
         0x7FFFFFBFFFFFFFFF, 0x7FFFFFC000000000, 0x8000008000000001]
elementwise("convert/long_to_float", "64-bit integers to f32, f64 and f16", CVT, [explicit("a", "b64", LONGS)],
            cvt([f"{r}.f32.{t}" for r in ["rn", "rz", "rp"] for t in ["s64", "u64"]], "b32")
            + cvt([f"{r}.f64.{t}" for r in ["rn", "rz"] for t in ["s64", "u64"]], "b64") + cvt(["rn.f16.s64"], "b16"))
DOUBLES = [0, 1 << 63, 1, 0x3FF0000000000000, 0x3FF0000010000000, 0x3FF0000010000001, 0x3FF0000030000000, 0xBFF0000010000000,
           0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x47EFFFFFEFFFFFFF, 0x36A0000000000000, 0x3690000000000000,
           0x3690000000000001, 0x380FFFFFF0000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000,
           0x3FE0000000000000, 0x3FF8000000000000, 0xC004000000000000, 0x41DFFFFFFFC00000, 0x41E0000000000000,
           0xC1E0000000200000, 0x43E0000000000000, 0xC3E0000000000000, 0x43F0000000000000, 0x40EFFE0000000000]
elementwise("convert/f64", "f64 to f32, f16 and integers in every rounding mode; f32 to f64", CVT,
            [explicit("a", "b64", DOUBLES), explicit("b", "b32", INTEGRAL[:len(DOUBLES)])],
            cvt([f"{r}.f32.f64" for r in ["rn", "rz", "rm", "rp"]] + ["rn.ftz.f32.f64", "rn.sat.f32.f64"], "b32")
            + cvt(["rn.f16.f64"], "b16") + cvt(["rni.s32.f64", "rzi.u32.f64"], "b32")
            + cvt(["rzi.s64.f64", "rpi.u64.f64", "rni.f64.f64"], "b64") + cvt(["f64.f32"], "b64", "$b"))
elementwise("convert/integer_sizes", "Between integer sizes: truncation, sign and zero extension, saturation", CVT,
            [explicit("a", "b32", [0, 1, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000,
                                   0xFFFFFF80, 0xFFFFFF7F, 0xFFFF8000, 0xFFFF7FFF, 0xFFFFFFFF, 0x12345678])],
            [Op(f"cvt.{t}.{s} %t0, $a;\nmov.b32 $d, %t0;", "b32", name=f"cvt_{t}_{s}")
             for t, s in [("s32", "s8"), ("u32", "u8"), ("s32", "s16"), ("u32", "u16"), ("sat.s8", "s32"), ("sat.u8", "s32"),
                          ("sat.u8", "u32"), ("sat.s16", "s32"), ("sat.u16", "s32"), ("sat.s32", "u32"), ("sat.u32", "s32")]]
            + cvt(["s64.s32", "u64.u32"], "b64"))
elementwise("convert/pack", "cvt.pack: two integers saturated into halves, bytes with a third operand",
            "Data Movement and Conversion Instructions: cvt.pack",
            [explicit("a", "s32", [0, 1, 127, 128, -128, -129, 255, 256, 32767, 32768, -32768, -32769, 65535, 70000, -1, 5]),
             explicit("b", "s32", [5, -1, 70000, 65535, -32769, -32768, 32768, 32767, 256, 255, -129, -128, 128, 127, 1, 0]),
             random_bits("c", "b32", 16, 74)],
            [Op(f"cvt.pack.sat.{k}.s32 $d, $a, $b;", "b32") for k in ["s16", "u16"]]
            + [Op(f"cvt.pack.sat.{k}.s32.b32 $d, $a, $b, $c;", "b32") for k in ["s8", "u8"]])
