#!/usr/bin/env python3
"""What the PTX ISA says the wgmma cases give, next to what was recorded: a third opinion when the simulator and a recording
differ. Written from the sections "Canonical Layouts", "Matrix Descriptor Format" and "Register Fragments". Doubles hold
every sum exactly; cases with a tolerance and f16 accumulators that round are left out.

    predict.py [FILTER...]
"""

import functools
import json
import os
import struct
import sys

import values
from families import wgmma

ROOT = os.path.dirname(os.path.abspath(__file__))


@functools.cache
def number(kind, bits):
    """An operand element's value."""
    if kind == "f16":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    if kind == "bf16":
        return values.f32_from_bits(bits << 16)
    if kind == "tf32":
        return values.f32_from_bits(bits & 0xFFFFE000)
    if kind in ("s8", "u8"):
        return float(bits - 256 if kind == "s8" and bits > 127 else bits)
    mantissa = {"e4m3": 3, "e5m2": 2}[kind]
    bias = {"e4m3": 7, "e5m2": 15}[kind]
    exponent, fraction = (bits & 0x7F) >> mantissa, bits & ((1 << mantissa) - 1)
    value = (fraction / (1 << mantissa) * 2.0 ** (1 - bias) if exponent == 0
             else (1 + fraction / (1 << mantissa)) * 2.0 ** (exponent - bias))
    return -value if bits & 0x80 else value


def address(operand, width, row, k, start):
    """Byte address of element (row, k) of a K chunk that starts at `start`; `row` is an index along M or N."""
    per16, swizzle = 16 // width, operand.swizzle
    if not operand.transposed and not swizzle:
        offset = row % 8 * 16 + row // 8 * operand.stride + k // per16 * operand.leading + k % per16 * width
    elif not operand.transposed:
        offset = row % 8 * swizzle + row // 8 * operand.stride + k * width
    elif not swizzle:
        offset = row % per16 * width + row // per16 * operand.stride + k % 8 * 16 + k // 8 * operand.leading
    else:
        wide = swizzle // width
        offset = row % wide * width + row // wide * operand.leading + k % 8 * swizzle + k // 8 * operand.stride
    plain = start + offset
    # The base offset shifts the phase of the pattern: what an H200 was seen to do.
    return plain ^ (((plain >> 7) - operand.base_offset & {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]) << 4)


def predict(plan, case):
    """The words of out_d for one case."""
    a_type, b_type = plan["a_type"], plan["b_type"] or plan["a_type"]
    n, groups, sample = plan["n"], plan["warpgroups"], plan["sample"]
    width = wgmma.BYTES[a_type]
    arrays = {a["name"]: values.to_bytes(a["type"], values.elements_of(a)) for a in case["inputs"]}

    def element(kind, data, at):
        return number(kind, int.from_bytes(data[at:at + width], "little"))

    packed = plan["d_type"] == "f16"
    registers = n // 4 if packed else n // 2
    words = []
    for thread in range(128 * groups):
        group, warp, lane = thread // 128, thread % 128 // 32, thread % 32
        found = []
        for value in range(n // 2):
            m = warp * 16 + lane // 4 + value // 2 % 2 * 8
            column = value // 4 * 8 + lane % 4 * 2 + value % 2
            total = 0.0
            if "accumulators" in arrays and plan["keep"]:
                size = 2 if packed else 4
                at = (thread * n // 2 + value) * size
                raw = int.from_bytes(arrays["accumulators"][at:at + size], "little")
                total = (number("f16", raw) if packed else values.f32_from_bits(raw) if plan["d_type"] == "f32"
                         else (raw - (1 << 32) if raw >> 31 else raw))
            for chunk in range(plan["chunks"]):
                for k in range(32 // width):
                    b, a = plan["b"], plan["a"]
                    y = element(b_type, arrays["smem"], address(b, width, column, k, b.offset + chunk * b.advance))
                    if a is not None:
                        start = a.offset + group * a.size + chunk * a.advance
                        x = element(a_type, arrays["smem"], address(a, width, m, k, start))
                    else:  # the A fragment: register r holds rows lane/4 and +8, and 4/width k's from (lane % 4)
                        per = 4 // width
                        owner = warp * 32 + m % 8 * 4 + k // per % 4
                        register = m % 16 // 8 + k // (4 * per) * 2
                        x = element(a_type, arrays["a"], owner * 16 + register * 4 + k % per * width)
                    total += plan["again"] * x * y * plan["scale"][0] * plan["scale"][1]
            found.append(total)
        for register in range(registers):
            if register % sample != thread % sample and sample > 1:
                continue
            if packed:
                low, high = (struct.unpack("<H", struct.pack("<e", float(v)))[0] for v in found[2 * register:2 * register + 2])
                words.append(high << 16 | low)
            elif plan["d_type"] == "f32":
                words.append(values.f32_bits(float(found[register])))
            else:
                total = int(found[register])
                words.append((min(max(total, -2**31), 2**31 - 1) if plan["satfinite"] else total) & 0xFFFFFFFF)
    return words


def main():
    wrong = 0
    for name, plan in wgmma.PLANS.items():
        if sys.argv[1:] and not any(f in name for f in sys.argv[1:]):
            continue
        with open(os.path.join(ROOT, name + ".json"), encoding="utf-8") as file:
            case = json.load(file)
        output = case["outputs"][0]
        if output["compare"] != "exact" or name == "wgmma/f16_f16_random":
            print(f"left out: {name}")
            continue
        want = predict(plan, case)
        if case["expected"] is None:
            print(f"not recorded: {name}")
            continue
        got = values.decode(output["type"], case["expected"]["d"])
        bad = [i for i, (w, g) in enumerate(zip(want, got)) if w != g]
        wrong += bool(bad) or len(want) != len(got)
        print(f"{'differs' if bad else 'agrees'}: {name}" + (f" ({len(bad)} of {len(got)}, first at {bad[0]})" if bad else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
