"""Integer arithmetic, extended precision, logic and shifts."""

import values
from families.builder import Op, elementwise, explicit, pairs, random_bits

EDGE32 = [0, 1, 2, 3, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x12345678, 0x7FFFFFFF, 0x80000000, 0x80000001,
          0xDEADBEEF, 0xFFFFFFFE, 0xFFFFFFFF]
EDGE64 = [0, 1, 2, 0xFFFFFFFF, 0x100000000, 0x123456789ABCDEF0, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000,
          0x8000000000000001, 0xFFFFFFFFFFFFFFFE, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF00000000]
EDGE16 = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0x8001, 0xFFFE, 0xFFFF]
INTEGER = "Integer Arithmetic Instructions: "
LOGIC = "Logic and Shift Instructions: "
EXTENDED = "Extended-Precision Integer Arithmetic Instructions: "

a32, b32 = pairs(EDGE32, EDGE32[:2] + EDGE32[4:8] + EDGE32[11:])
two32 = [explicit("a", "b32", a32), explicit("b", "b32", b32)]
a64, b64 = pairs(EDGE64, EDGE64)
two64 = [explicit("a", "b64", a64), explicit("b", "b64", b64)]
a16, b16 = pairs(EDGE16, EDGE16)
two16 = [explicit("a", "b16", a16), explicit("b", "b16", b16)]


def binary(kinds, bits):
    return [Op(f"{k} $d, $a, $b;", f"b{bits}") for k in kinds]


elementwise("integer/add_sub_32", "32-bit add and sub, saturating forms", INTEGER + "add; " + INTEGER + "sub", two32,
            binary(["add.u32", "add.sat.s32", "sub.u32", "sub.sat.s32"], 32))
elementwise("integer/mul_32", "32-bit products: low, high, wide", INTEGER + "mul", two32,
            binary(["mul.lo.s32", "mul.hi.s32", "mul.hi.u32"], 32) + binary(["mul.wide.s32", "mul.wide.u32"], 64))
elementwise("integer/div_rem_32", "32-bit quotients and remainders: by zero, and of the lowest number by -1",
            INTEGER + "div; " + INTEGER + "rem", two32,
            binary(["div.s32", "div.u32", "rem.s32", "rem.u32"], 32))
elementwise("integer/div_rem_64", "64-bit quotients and remainders: by zero, and of the lowest number by -1",
            INTEGER + "div; " + INTEGER + "rem", two64, binary(["div.s64", "div.u64", "rem.s64", "rem.u64"], 64))
elementwise("integer/mul_64", "64-bit sums and products", INTEGER + "add; " + INTEGER + "mul", two64,
            binary(["add.s64", "sub.s64", "mul.lo.s64", "mul.hi.s64", "mul.hi.u64"], 64))
elementwise("integer/ops_16", "16-bit arithmetic", INTEGER + "add; " + INTEGER + "mul; " + INTEGER + "div", two16,
            binary(["add.s16", "sub.s16", "mul.lo.s16", "mul.hi.s16", "mul.hi.u16", "div.s16", "rem.u16", "min.s16",
                    "max.u16"], 16) + binary(["mul.wide.s16", "mul.wide.u16"], 32))
elementwise("integer/min_max", "Minima and maxima", INTEGER + "min; " + INTEGER + "max", two32,
            binary(["min.s32", "min.u32", "max.s32", "max.u32", "min.relu.s32", "max.relu.s32"], 32))
elementwise("integer/min_max_packed", "Minima and maxima of packed 16-bit numbers", INTEGER + "min; " + INTEGER + "max",
            two32, binary(["min.s16x2", "min.u16x2", "max.s16x2", "max.u16x2", "min.relu.s16x2", "add.s16x2"], 32))

random3 = [random_bits("a", "b32", 96, 1), random_bits("b", "b32", 96, 2), random_bits("c", "b32", 96, 3)]
elementwise("integer/mad", "Multiply-add: low, high, wide", INTEGER + "mad",
            random3 + [random_bits("e", "b64", 96, 4)],
            [Op(f"mad.{k} $d, $a, $b, $c;", "b32") for k in ["lo.s32", "hi.s32", "hi.u32"]]
            + [Op(f"mad.wide.{k} $d, $a, $b, $e;", "b64") for k in ["s32", "u32"]])
elementwise("integer/mul24", "24-bit products", INTEGER + "mul24; " + INTEGER + "mad24", random3,
            [Op(f"mul24.{k} $d, $a, $b;", "b32") for k in ["lo.s32", "lo.u32", "hi.s32", "hi.u32"]]
            + [Op(f"mad24.{k} $d, $a, $b, $c;", "b32") for k in ["lo.s32", "hi.u32"]])
elementwise("integer/sad", "Sum of absolute differences", INTEGER + "sad", random3,
            [Op(f"sad.{k} $d, $a, $b, $c;", "b32") for k in ["s32", "u32"]])
elementwise("integer/dp4a_dp2a", "Packed dot products", INTEGER + "dp4a; " + INTEGER + "dp2a", random3,
            [Op(f"dp4a.{x}.{y} $d, $a, $b, $c;", "b32") for x in ["s32", "u32"] for y in ["s32", "u32"]]
            + [Op(f"dp2a.{m}.{x}.{y} $d, $a, $b, $c;", "b32") for m in ["lo", "hi"] for x in ["s32", "u32"]
               for y in ["s32", "u32"]])

one32 = [explicit("a", "b32", EDGE32 + [1 << k for k in range(4, 31, 3)] + [0xFFFFFFFF >> k for k in range(1, 31, 5)])]
one64 = [explicit("a", "b64", EDGE64 + [1 << k for k in range(3, 63, 6)])]
elementwise("integer/unary_32", "abs, neg, popc, clz, brev, not, cnot",
            INTEGER + "abs; " + INTEGER + "neg; " + INTEGER + "popc; " + INTEGER + "clz; " + INTEGER + "brev; "
            + LOGIC + "not; " + LOGIC + "cnot", one32,
            [Op(f"{k} $d, $a;", "b32") for k in ["abs.s32", "neg.s32", "popc.b32", "clz.b32", "brev.b32", "not.b32",
                                                 "cnot.b32"]])
elementwise("integer/unary_64", "64-bit abs, neg, popc, clz, brev",
            INTEGER + "abs; " + INTEGER + "neg; " + INTEGER + "popc; " + INTEGER + "clz; " + INTEGER + "brev", one64,
            [Op(f"{k} $d, $a;", "b64") for k in ["abs.s64", "neg.s64", "brev.b64", "not.b64"]]
            + [Op(f"{k} $d, $a;", "b32") for k in ["popc.b64", "clz.b64"]])
elementwise("integer/bfind", "Most significant non-sign bit, position and shift amount", INTEGER + "bfind",
            one32 + [explicit("e", "b64", (one64[0] and EDGE64 + [1 << k for k in range(3, 63, 3)]
                                           + [0xFFFF0000FFFF])[:one32[0]["count"]])],
            [Op(f"bfind{s}.{k} $d, $a;", "b32") for s in ["", ".shiftamt"] for k in ["u32", "s32"]]
            + [Op(f"bfind{s}.{k} $d, $e;", "b32") for s in ["", ".shiftamt"] for k in ["u64", "s64"]])

# Field positions and lengths at, inside and beyond the register, within the 0..255 that the ISA allows.
POSITIONS = [0, 1, 5, 16, 30, 31, 32, 33, 63, 64, 255]
pos, length = pairs(POSITIONS, POSITIONS)


def drawn(name, type_name, seed):
    """Random elements, on a 13x13 grid of which the positions take the first 11x11."""
    elements = values.elements_of(random_bits(name, type_name, 169, seed))
    return explicit(name, type_name, [elements[13 * row + column] for row in range(11) for column in range(11)])


places = [explicit("s", "b32", pos), explicit("n", "b32", length)]
elementwise("integer/bfe", "Bit field extract at edge positions and lengths", INTEGER + "bfe",
            [drawn("a", "b32", 11)] + places + [drawn("e", "b64", 13)],
            [Op(f"bfe.{k} $d, $a, $s, $n;", "b32") for k in ["u32", "s32"]]
            + [Op(f"bfe.{k} $d, $e, $s, $n;", "b64") for k in ["u64", "s64"]])
elementwise("integer/bfi", "Bit field insert at edge positions and lengths", INTEGER + "bfi",
            [drawn("a", "b32", 11), drawn("b", "b32", 12)] + places + [drawn("e", "b64", 14), drawn("f", "b64", 15)],
            [Op("bfi.b32 $d, $a, $b, $s, $n;", "b32"), Op("bfi.b64 $d, $e, $f, $s, $n;", "b64")])
wide, step = pairs([0, 1, 7, 15, 31], [0, 1, 2, 3, 5, 40, -1, -2, -3, -7])
elementwise("integer/fns", "The n-th set bit from a base, upwards and downwards", INTEGER + "fns",
            [random_bits("a", "b32", len(wide), 16), explicit("b", "b32", wide), explicit("n", "s32", step)],
            [Op("fns.b32 $d, $a, $b, $n;", "b32")])
at, count = pairs([0, 1, 8, 31, 32, 40], [0, 1, 8, 24, 31, 32])
elementwise("integer/bmsk", "Bit masks, clamped and wrapped", INTEGER + "bmsk",
            [explicit("a", "b32", at), explicit("b", "b32", count)],
            [Op(f"bmsk.{k}.b32 $d, $a, $b;", "b32") for k in ["clamp", "wrap"]])
value, bits = pairs([0x12345678, 0xFEDCBA98, 0xFFFFFFFF, 0x80808080], [0, 1, 4, 8, 16, 31, 32, 33, 40, 64, 255])
elementwise("integer/szext", "Sign and zero extension from N bits", INTEGER + "szext",
            [explicit("a", "b32", value), explicit("b", "b32", bits)],
            [Op(f"szext.{m}.{k} $d, $a, $b;", "b32") for m in ["clamp", "wrap"] for k in ["s32", "u32"]])

# Shifts: the amount is unsigned and clamps at the register's width.
value, amount = pairs([0x12345678, 0x80000001, 0xFFFFFFFF, 0x7FFFFFFF],
                      [0, 1, 4, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x80000000, 0xFFFFFFFF])
shift = [explicit("a", "b32", value), explicit("b", "b32", amount),
         explicit("e", "b64", [v * 0x100000001 for v in value]), explicit("h", "b16", [v >> 16 for v in value])]
elementwise("integer/shift", "Shifts by less than, by and beyond the width", LOGIC + "shl; " + LOGIC + "shr", shift,
            [Op(f"{k} $d, $a, $b;", "b32") for k in ["shl.b32", "shr.u32", "shr.s32"]]
            + [Op(f"{k} $d, $e, $b;", "b64") for k in ["shl.b64", "shr.u64", "shr.s64"]]
            + [Op(f"{k} $d, $h, $b;", "b16") for k in ["shl.b16", "shr.u16", "shr.s16"]])
elementwise("integer/shf", "Funnel shifts, wrapped and clamped", LOGIC + "shf",
            [random_bits("a", "b32", len(amount), 21), random_bits("b", "b32", len(amount), 22),
             explicit("c", "b32", amount)],
            [Op(f"shf.{d}.{m}.b32 $d, $a, $b, $c;", "b32") for d in ["l", "r"] for m in ["wrap", "clamp"]])
elementwise("integer/logic", "and, or, xor, lop3 over all kinds of tables", LOGIC + "and; " + LOGIC + "lop3",
            [random_bits("a", "b32", 32, 31), random_bits("b", "b32", 32, 32), random_bits("c", "b32", 32, 33)],
            [Op(f"{k}.b32 $d, $a, $b;", "b32") for k in ["and", "or", "xor"]]
            + [Op(f"lop3.b32 $d, $a, $b, $c, {t:#x};", "b32", name=f"lop3_{t:02x}")
               for t in [0x00, 0x01, 0x1A, 0x3C, 0x80, 0x96, 0xCA, 0xE8, 0xF0, 0xFE, 0xFF]])
selectors = [0x0000, 0x3210, 0x7654, 0x0123, 0x5410, 0x7632, 0x1054, 0xFEDC, 0x89AB, 0x8C40, 0xFFFF3210, 0x12348765]
elementwise("integer/prmt", "Byte permute: every mode, sign replication", "Data Movement and Conversion Instructions: prmt",
            [explicit("a", "b32", [0x83828180] * 12), explicit("b", "b32", [0x07F6F504] * 12),
             explicit("c", "b32", selectors)],
            [Op("prmt.b32 $d, $a, $b, $c;", "b32")]
            + [Op(f"prmt.b32.{m} $d, $a, $b, $c;", "b32") for m in ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]])

# Carry chains: the carry flag survives between consecutive instructions.
chain = [random_bits("a", "b32", 64, 41, force=0xC0000000), random_bits("b", "b32", 64, 42, keep=0x7FFFFFFF),
         random_bits("c", "b32", 64, 43), random_bits("e", "b32", 64, 44)]
elementwise("integer/carry", "Addition and subtraction with carry; multiply-add with carry",
            EXTENDED + "add.cc; " + EXTENDED + "addc; " + EXTENDED + "sub.cc; " + EXTENDED + "subc; " + EXTENDED
            + "mad.cc; " + EXTENDED + "madc", chain,
            [Op("add.cc.u32 %t0, $a, $b;\naddc.u32 $d, $c, $e;", "b32", name="addc_u32"),
             Op("add.cc.u32 %t0, $a, $b;\naddc.cc.u32 %t1, $c, $e;\naddc.u32 $d, $a, $c;", "b32", name="addc_cc_u32"),
             Op("sub.cc.u32 %t0, $b, $a;\nsubc.u32 $d, $c, $e;", "b32", name="subc_u32"),
             Op("sub.cc.u32 %t0, $b, $a;\nsubc.cc.u32 %t1, $e, $c;\nsubc.u32 $d, $a, $c;", "b32", name="subc_cc_u32"),
             Op("mad.lo.cc.u32 %t0, $a, $b, $c;\nmadc.hi.u32 $d, $a, $b, $e;", "b32", name="madc_hi_u32"),
             Op("mad.lo.cc.u32 %t0, $a, $c, $e;\nmadc.hi.cc.u32 %t1, $a, $c, $b;\naddc.u32 $d, $e, 0;", "b32",
                name="madc_hi_cc_u32"),
             Op("add.cc.u32 %t0, $a, $c;\nmadc.lo.s32 $d, $b, $c, $e;", "b32", name="madc_lo_s32"),
             Op("mov.b64 %u0, {$a, $b};\nmov.b64 %u1, {$c, $e};\nadd.cc.u64 %u2, %u0, %u1;\naddc.u64 $d, %u0, %u1;",
                "b64", name="addc_u64")])
