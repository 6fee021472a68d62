"""f16 and bf16 arithmetic and comparison, scalar and packed."""

from families.builder import Op, elementwise, explicit, pairs, random_bits

HALF = "Half Precision Floating Point Instructions: "
EDGE16 = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3BFF, 0x3C00, 0xBC01, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01]
EDGEBF = [0x0000, 0x8000, 0x0001, 0x8001, 0x007F, 0x0080, 0x3F7F, 0x3F80, 0xBF81, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0xFFC1]


def edge_pairs(edges):
    a, b = pairs(edges, edges)
    return [explicit("a", "b16", a), explicit("b", "b16", b)]


def packed(seed, keep, force):
    return [random_bits(n, "b32", 64, seed + k, keep=keep, force=force) for k, n in enumerate("abc")]


near16 = packed(81, 0x8FFF8FFF, 0x30003000)
nearbf = packed(84, 0x83FF83FF, 0x3C003C00)


def ops(kinds, operands, type_name):
    return [Op(f"{k} $d, {operands};", type_name) for k in kinds]


elementwise("half/f16_edge", "f16 add, sub, mul of edge values: subnormals, overflow, ftz, sat", HALF + "add; " + HALF + "sub; " + HALF + "mul",
            edge_pairs(EDGE16), ops(["add.rn.f16", "add.ftz.f16", "add.sat.f16", "sub.rn.f16", "mul.rn.f16", "mul.ftz.f16", "mul.sat.f16"],
                                    "$a, $b", "b16"))
elementwise("half/f16_min_max", "f16 min and max with NaN and signed zeros", HALF + "min; " + HALF + "max", edge_pairs(EDGE16),
            ops([f"{k}{m}.f16" for k in ["min", "max"] for m in ["", ".ftz", ".NaN", ".xorsign.abs"]], "$a, $b", "b16"))
elementwise("half/bf16_edge", "bf16 add, sub, mul of edge values", HALF + "add; " + HALF + "sub; " + HALF + "mul", edge_pairs(EDGEBF),
            ops(["add.rn.bf16", "sub.rn.bf16", "mul.rn.bf16"], "$a, $b", "b16"))
elementwise("half/bf16_min_max", "bf16 min and max with NaN and signed zeros", HALF + "min; " + HALF + "max", edge_pairs(EDGEBF),
            ops([f"{k}{m}.bf16" for k in ["min", "max"] for m in ["", ".NaN", ".xorsign.abs"]], "$a, $b", "b16"))
elementwise("half/f16x2", "Packed f16 add, sub, mul, fma: rounding, ftz, sat, relu", HALF + "add; " + HALF + "mul; " + HALF + "fma", near16,
            ops(["add.rn.f16x2", "sub.rn.f16x2", "mul.rn.f16x2", "add.rn.ftz.sat.f16x2"], "$a, $b", "b32")
            + ops(["fma.rn.f16x2", "fma.rn.sat.f16x2", "fma.rn.relu.f16x2", "fma.rn.ftz.f16x2"], "$a, $b, $c", "b32"))
elementwise("half/bf16x2", "Packed bf16 add, sub, mul, fma: rounding, relu", HALF + "add; " + HALF + "mul; " + HALF + "fma", nearbf,
            ops(["add.rn.bf16x2", "sub.rn.bf16x2", "mul.rn.bf16x2"], "$a, $b", "b32")
            + ops(["fma.rn.bf16x2", "fma.rn.relu.bf16x2"], "$a, $b, $c", "b32"))
elementwise("half/fma_scalar", "Scalar f16 and bf16 fma round once", HALF + "fma",
            [random_bits(n, "b16", 96, 87 + k, keep=0x8FFF, force=0x3000) for k, n in enumerate("abc")],
            ops(["fma.rn.f16", "fma.rn.sat.f16", "fma.rn.relu.f16", "fma.rn.bf16", "fma.rn.relu.bf16"], "$a, $b, $c", "b16"))
elementwise("half/min_max_packed", "Packed f16 and bf16 min and max over random bits", HALF + "min; " + HALF + "max",
            [random_bits("a", "b32", 96, 91), random_bits("b", "b32", 96, 92)],
            ops([f"{k}{m}.{t}" for k in ["min", "max"] for m in ["", ".NaN"] for t in ["f16x2", "bf16x2"]], "$a, $b", "b32"))
elementwise("half/abs_neg", "abs and neg of halves, packed and scalar", HALF + "abs; " + HALF + "neg", [random_bits("a", "b32", 64, 93)],
            ops(["abs.f16x2", "neg.f16x2", "abs.bf16x2", "neg.bf16x2", "neg.ftz.f16x2", "abs.ftz.f16x2"], "$a", "b32"))
elementwise("half/approx", "ex2 and tanh of halves within the bounds of the ISA", HALF + "ex2; " + HALF + "tanh",
            [random_bits("a", "b16", 96, 94, keep=0x8FFF, force=0x3000)],
            [Op(f"{k} %h0, $a;\ncvt.f32.{k.split('.')[-1]} $d, %h0;", "f32", name=k, relative=r)
             for k, r in [("ex2.approx.f16", 2.0 ** -9), ("tanh.approx.f16", 2.0 ** -9), ("ex2.approx.ftz.bf16", 2.0 ** -6.5),
                          ("tanh.approx.bf16", 2.0 ** -7)]])
CMP = ["eq", "lt", "ge", "neu", "ltu", "nan", "num"]
few = [0x0000, 0x8000, 0x0001, 0x3C00, 0xBC00, 0x7C00, 0x7E00]
elementwise("half/setp", "Comparisons of f16 and bf16, ordered and unordered", "Half Precision Comparison Instructions: setp", edge_pairs(few),
            [Op(f"setp.{c}.{t} %p, $a, $b;\nselp.b32 %t0, 1, 0, %p;\ncvt.u8.u32 $d, %t0;", "u8", name=f"setp_{c}_{t}")
             for t in ["f16", "bf16"] for c in CMP])
elementwise("half/set_packed", "Packed comparisons: setp with a predicate a half, set to masks and ones",
            "Half Precision Comparison Instructions: setp; Half Precision Comparison Instructions: set",
            [random_bits("a", "b32", 64, 95, keep=0x80018001, force=0x3C003C00), random_bits("b", "b32", 64, 96, keep=0x80018001, force=0x3C003C00)],
            [Op("setp.lt.f16x2 %p|%q, $a, $b;\nselp.b32 %t0, 1, 0, %p;\nselp.b32 %t1, 2, 0, %q;\nor.b32 %t0, %t0, %t1;\ncvt.u8.u32 $d, %t0;",
                "u8", name="setp_lt_f16x2"),
             Op("set.le.f16x2.f16x2 $d, $a, $b;", "b32"),
             Op("set.gt.bf16x2.bf16x2 $d, $a, $b;", "b32")])
