"""Single and double precision arithmetic, comparison and selection."""

from families.builder import Op, elementwise, explicit, pairs, random_bits

FLOAT = "Floating Point Instructions: "
COMPARE = "Comparison and Selection Instructions: "
EDGE = [0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x80800000, 0x33800000, 0x3F7FFFFF,
        0x3F800000, 0x3F800001, 0xBF800000, 0x40490FDB, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000,
        0xFFC12345, 0x7FA00001]
EDGE64 = [0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x000FFFFFFFFFFFFF, 0x0010000000000000,
          0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0xBFF0000000000001, 0x400921FB54442D18, 0x7FEFFFFFFFFFFFFF,
          0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x3CA0000000000000]

a, b = pairs(EDGE, EDGE)
two = [explicit("a", "b32", a), explicit("b", "b32", b)]
a, b = pairs(EDGE64, EDGE64)
two64 = [explicit("a", "b64", a), explicit("b", "b64", b)]
# Numbers of both signs with exponents from 2^-6 to 2^9: sums cancel, products round.
near = [random_bits(n, "b32", 96, s, keep=0x87FFFFFF, force=0x3C000000) for n, s in [("a", 51), ("b", 52), ("c", 53)]]
near64 = [random_bits(n, "b64", 96, s, keep=0x80FFFFFFFFFFFFFF, force=0x3F00000000000000)
          for n, s in [("a", 54), ("b", 55), ("c", 56)]]
ROUND = ["rn", "rz", "rm", "rp"]


def ops(forms, operands, type_name="b32"):
    return [Op(f"{f} $d, {operands};", type_name) for f in forms]


elementwise("floating/add_edge", "add and sub of signed zeros, subnormals, infinities, NaN", FLOAT + "add; " + FLOAT + "sub",
            two, ops(["add.rn.f32", "add.rn.ftz.f32", "add.sat.f32", "sub.rn.f32"], "$a, $b"))
elementwise("floating/mul_edge", "mul of signed zeros, subnormals, infinities, NaN", FLOAT + "mul", two,
            ops(["mul.rn.f32", "mul.rn.ftz.f32", "mul.sat.f32"], "$a, $b"))
elementwise("floating/add_mul_rounding", "add, sub and mul in every rounding mode",
            FLOAT + "add; " + FLOAT + "sub; " + FLOAT + "mul", near,
            ops([f"{k}.{r}.f32" for k in ["add", "sub", "mul"] for r in ROUND], "$a, $b"))
elementwise("floating/fma_rounding", "fma rounds once, in every rounding mode; saturation", FLOAT + "fma", near,
            ops([f"fma.{r}.f32" for r in ROUND] + ["fma.rn.sat.f32", "fma.rn.ftz.f32"], "$a, $b, $c"))
elementwise("floating/fma_edge", "fma of edge values: infinity times zero, cancellation, subnormal results", FLOAT + "fma",
            two, [Op("fma.rn.f32 $d, $a, $b, $b;", "b32", name="fma_abb"),
                  Op("fma.rn.ftz.f32 $d, $a, $b, $a;", "b32", name="fma_ftz_aba"),
                  Op("neg.f32 %t0, $b;\nfma.rn.f32 $d, $b, 0f3F800000, %t0;", "b32", name="fma_cancel")])
elementwise("floating/tiny_products", "Products that underflow: rounding at the subnormal boundary, ftz", FLOAT + "mul",
            [random_bits("a", "b32", 96, 57, keep=0x80FFFFFF, force=0x1F800000),
             random_bits("b", "b32", 96, 58, keep=0x80FFFFFF, force=0x1F800000),
             random_bits("c", "b32", 96, 59, keep=0x807FFFFF)],
            ops([f"mul.{r}.f32" for r in ROUND] + ["mul.rn.ftz.f32"], "$a, $b")
            + ops(["fma.rn.f32", "fma.rz.f32", "fma.rn.ftz.f32"], "$a, $b, $c"))
elementwise("floating/div", "Division: correctly rounded in every mode, and approximate", FLOAT + "div", near,
            ops([f"div.{r}.f32" for r in ROUND] + ["div.rn.ftz.f32"], "$a, $b")
            + [Op(f"div.{k}.f32 $d, $a, $b;", "f32", relative=2.0 ** -22) for k in ["full", "approx", "approx.ftz"]])
elementwise("floating/div_edge", "Division of edge values", FLOAT + "div", two, ops(["div.rn.f32", "div.rn.ftz.f32"], "$a, $b"))
elementwise("floating/rcp_sqrt_rounding", "rcp and sqrt, correctly rounded in every mode", FLOAT + "rcp; " + FLOAT + "sqrt",
            [random_bits("a", "b32", 64, 60, keep=0x3FFFFFFF, force=0x20000000)],
            ops([f"{k}.{r}.f32" for k in ["rcp", "sqrt"] for r in ROUND], "$a"))
elementwise("floating/unary_edge", "rcp, sqrt, abs and neg of edge values",
            FLOAT + "rcp; " + FLOAT + "sqrt; " + FLOAT + "abs; " + FLOAT + "neg", [explicit("a", "b32", EDGE)],
            ops(["rcp.rn.f32", "sqrt.rn.f32", "sqrt.rn.ftz.f32", "abs.f32", "abs.ftz.f32", "neg.f32", "neg.ftz.f32"], "$a"))

# min and max: NaN gives the other operand, or NaN with .NaN; -0 is below +0.
elementwise("floating/min_max", "min and max with NaN and signed zeros; NaN, ftz and xorsign.abs forms",
            FLOAT + "min; " + FLOAT + "max", two,
            ops([f"{k}{m}.f32" for k in ["min", "max"] for m in ["", ".ftz", ".NaN", ".xorsign.abs"]], "$a, $b"))
elementwise("floating/f64", "Double precision: add, mul, fma, div in every rounding mode",
            FLOAT + "add; " + FLOAT + "mul; " + FLOAT + "fma; " + FLOAT + "div", near64,
            ops([f"{k}.{r}.f64" for k in ["add", "mul", "div"] for r in ROUND], "$a, $b", "b64")
            + ops([f"fma.{r}.f64" for r in ROUND], "$a, $b, $c", "b64"))
elementwise("floating/f64_edge", "Double precision edge values: add, mul, min, max", FLOAT + "add; " + FLOAT + "min", two64,
            ops(["add.rn.f64", "mul.rn.f64", "min.f64", "max.f64"], "$a, $b", "b64"))
elementwise("floating/f64_unary", "Double precision rcp, sqrt, abs, neg", FLOAT + "rcp; " + FLOAT + "sqrt",
            [explicit("a", "b64", EDGE64)], ops(["rcp.rn.f64", "sqrt.rn.f64", "abs.f64", "neg.f64"], "$a", "b64"))

KINDS = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"]
elementwise("floating/testp_copysign", "testp of every class; copysign", FLOAT + "testp; " + FLOAT + "copysign", two,
            [Op(f"testp.{k}.f32 %p, $a;\nselp.b32 %t0, 1, 0, %p;\ncvt.u8.u32 $d, %t0;", "u8", name=f"testp_{k}") for k in KINDS]
            + ops(["copysign.f32"], "$a, $b"))

# Approximations: the ISA bounds the error; the tolerance here is that bound, or a little above it.
positive = random_bits("a", "b32", 96, 61, keep=0x7FFFFFFF & 0x1FFFFFFF, force=0x30000000)
elementwise("floating/approx", "rcp, rsqrt, sqrt, lg2 within the bounds of the ISA",
            FLOAT + "rcp; " + FLOAT + "rsqrt; " + FLOAT + "sqrt; " + FLOAT + "lg2", [positive],
            [Op(f"rcp.approx{f}.f32 $d, $a;", "f32", relative=2.0 ** -22) for f in ["", ".ftz"]]
            + [Op("rsqrt.approx.f32 $d, $a;", "f32", relative=2.0 ** -22),
               Op("sqrt.approx.f32 $d, $a;", "f32", relative=2.0 ** -22),
               Op("lg2.approx.f32 $d, $a;", "f32", relative=2.0 ** -21, absolute=2.0 ** -21)])
elementwise("floating/approx_exp", "ex2 and tanh within the bounds of the ISA", FLOAT + "ex2; " + FLOAT + "tanh",
            [random_bits("a", "b32", 96, 62, keep=0x83FFFFFF, force=0x3E000000)],
            [Op("ex2.approx.f32 $d, $a;", "f32", relative=2.0 ** -21),
             Op("ex2.approx.ftz.f32 $d, $a;", "f32", relative=2.0 ** -21),
             Op("tanh.approx.f32 $d, $a;", "f32", relative=2.0 ** -10)])
elementwise("floating/approx_trig", "sin and cos on [-pi, pi]", FLOAT + "sin; " + FLOAT + "cos",
            [explicit("a", "f32", [k * 3.14159 / 40 for k in range(-40, 41)])],
            [Op(f"{k}.approx.f32 $d, $a;", "f32", absolute=2.0 ** -20) for k in ["sin", "cos"]])
elementwise("floating/approx_edge", "Approximations at zeros, subnormals, infinities and NaN",
            FLOAT + "rcp; " + FLOAT + "rsqrt; " + FLOAT + "lg2; " + FLOAT + "ex2; " + FLOAT + "tanh",
            [explicit("a", "b32", [e for e in EDGE if e not in (0x33800000, 0x3F7FFFFF, 0x3F800001, 0x40490FDB)])],
            [Op(f"{k}.f32 $d, $a;", "f32", relative=2.0 ** -21, absolute=2.0 ** -148)
             for k in ["rcp.approx", "rcp.approx.ftz", "rsqrt.approx", "rsqrt.approx.ftz", "sqrt.approx", "lg2.approx",
                       "lg2.approx.ftz", "ex2.approx", "ex2.approx.ftz"]]
            + [Op("tanh.approx.f32 $d, $a;", "f32", relative=2.0 ** -10)])

# Comparisons: the ordered ones are false and the unordered ones true when an operand is NaN.
CMP = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
small = [0x00000000, 0x80000000, 0x00000001, 0x3F800000, 0xBF800000, 0x7F800000, 0x7FC00000]
a, b = pairs(small, small)
ordered = [explicit("a", "b32", a), explicit("b", "b32", b)]
elementwise("floating/setp", "Every comparison of setp, ordered and unordered", COMPARE + "setp", ordered,
            [Op(f"setp.{c}.f32 %p, $a, $b;\nselp.b32 %t0, 1, 0, %p;\ncvt.u8.u32 $d, %t0;", "u8", name=f"setp_{c}") for c in CMP])
elementwise("floating/setp_combined", "setp with two results and a combined predicate; ftz", COMPARE + "setp", ordered,
            [Op(f"setp.gt.f32 %q, $b, 0f00000000;\nsetp.{c}.{m}.f32 %p|%q, $a, $b, %q;\nselp.b32 %t0, 1, 0, %p;\n"
                f"selp.b32 %t1, 2, 0, %q;\nor.b32 %t0, %t0, %t1;\ncvt.u8.u32 $d, %t0;", "u8", name=f"setp_{c}_{m}")
             for c in ["lt", "neu"] for m in ["and", "or", "xor"]]
            + [Op("setp.eq.ftz.f32 %p, $a, $b;\nselp.b32 %t0, 1, 0, %p;\ncvt.u8.u32 $d, %t0;", "u8", name="setp_eq_ftz"),
               Op("setp.ge.f32 %q, $a, $b;\nsetp.ne.and.f32 %p, $a, $b, !%q;\nselp.b32 %t0, 1, 0, %p;\ncvt.u8.u32 $d, %t0;",
                  "u8", name="setp_not_q")])
elementwise("floating/set_slct", "set to integers and floats; slct by sign", COMPARE + "set; " + COMPARE + "slct", ordered,
            [Op("set.lt.u32.f32 $d, $a, $b;", "b32"), Op("set.leu.f32.f32 $d, $a, $b;", "b32"),
             Op("set.ge.s32.s32 $d, $a, $b;", "b32"), Op("slct.b32.s32 $d, $a, $b, $a;", "b32"),
             Op("slct.b32.f32 $d, 1, 2, $a;", "b32"), Op("slct.ftz.b32.f32 $d, 1, 2, $a;", "b32")])
edges = [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
a, b = pairs(edges, edges)
elementwise("integer/setp", "Every comparison of setp on signed and unsigned integers", COMPARE + "setp",
            [explicit("a", "b32", a), explicit("b", "b32", b)],
            [Op(f"setp.{c} %p, $a, $b;\nselp.b32 %t0, 1, 0, %p;\ncvt.u8.u32 $d, %t0;", "u8", name=f"setp_{c}")
             for c in [f"{k}.s32" for k in ["eq", "ne", "lt", "le", "gt", "ge"]]
             + [f"{k}.u32" for k in ["lt", "gt", "lo", "ls", "hi", "hs"]]])
