"""Typed arrays of a case as text, and the deterministic generators that stand for long inputs.

The text of an array is a list of lines; a line holds tokens separated by blanks; `token*n` repeats a token n times.
A token is hexadecimal for b8..b64, decimal for the integers, and for f32 and f64 the shortest decimal that gives the
value back, or the bits in hexadecimal for NaN and infinities. conformance/case.cpp reads the same text.
"""

import hashlib
import json
import re
import struct

BITS = {"b8": 8, "u8": 8, "s8": 8, "b16": 16, "u16": 16, "s16": 16, "b32": 32, "u32": 32, "s32": 32,
        "b64": 64, "u64": 64, "s64": 64, "f32": 32, "f64": 64}
MASK64 = (1 << 64) - 1


def size(type_name):
    return BITS[type_name] // 8


def f32_bits(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def f32_from_bits(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def f64_bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def f64_from_bits(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def token_of(type_name, bits):
    """One element, given as an unsigned bit pattern, as text."""
    width = BITS[type_name]
    if type_name[0] == "b":
        return hex(bits)
    if type_name[0] == "u":
        return str(bits)
    if type_name[0] == "s":
        return str(bits - (1 << width) if bits >> (width - 1) else bits)
    value = f32_from_bits(bits) if width == 32 else f64_from_bits(bits)
    if value != value or value in (float("inf"), float("-inf")):
        return hex(bits)
    if abs(value) < 1e7 and value == int(value):
        return "-0" if value == 0 and bits >> (width - 1) else str(int(value))
    for digits in range(1, 18):
        text = f"{value:.{digits}g}"
        try:
            if bits_of(type_name, text) == bits:
                return text
        except OverflowError:  # rounded up, the largest numbers leave the range
            continue
    raise ValueError(f"no decimal text for {hex(bits)}")


def bits_of(type_name, token):
    """The unsigned bit pattern of one token."""
    width = BITS[type_name]
    if token.startswith("0x"):
        return int(token, 16)
    if type_name[0] in "us":
        return int(token) & ((1 << width) - 1)
    if type_name == "f32":
        return f32_bits(float(token))
    if type_name == "f64":
        return f64_bits(float(token))
    raise ValueError(f"{token} is no {type_name}")


def encode(type_name, elements):
    """Bit patterns to lines of text."""
    tokens = []
    run = 0
    for index, bits in enumerate(elements):
        run += 1
        if index + 1 < len(elements) and elements[index + 1] == bits:
            continue
        token = token_of(type_name, bits)
        tokens.append(token if run == 1 else f"{token}*{run}")
        run = 0
    lines, line = [], ""
    for token in tokens:
        if line and len(line) + 1 + len(token) > 100:
            lines.append(line)
            line = ""
        line = f"{line} {token}" if line else token
    return lines + [line] if line else lines


def decode(type_name, lines):
    """Lines of text to bit patterns."""
    elements = []
    for line in lines:
        for token in line.split():
            token, _, repeat = token.partition("*")
            elements += [bits_of(type_name, token)] * int(repeat or 1)
    return elements


def to_bytes(type_name, elements):
    width = size(type_name)
    return b"".join(e.to_bytes(width, "little") for e in elements)


def from_bytes(type_name, data):
    width = size(type_name)
    return [int.from_bytes(data[i:i + width], "little") for i in range(0, len(data), width)]


def splitmix64(state):
    """Element `state` of the sequence (Steele, Lea, Flood 2014), as a function of the counter."""
    z = (state * 0x9E3779B97F4A7C15) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def elements_of(array):
    """The elements of an input, or of an output's initial contents; None when the array has none."""
    type_name, count = array["type"], array["count"]
    if "values" in array:
        elements = decode(type_name, array["values"])
        if len(elements) != count:
            raise ValueError(f"{array['name']}: {len(elements)} values, count {count}")
        return elements
    rule = array.get("generator")
    if rule is None:
        return None
    kind, start = rule["kind"], rule.get("seed", 0) * 0x10000000
    mask = (1 << BITS[type_name]) - 1
    if kind == "index":
        return [(rule.get("start", 0) + i * rule.get("step", 1)) & mask for i in range(count)]
    if kind == "choice":
        table = decode(type_name, rule["table"])
        return [table[splitmix64(start + i + 1) % len(table)] for i in range(count)]
    if kind == "bits":
        keep = int(rule.get("and", hex(mask)), 16)
        force = int(rule.get("or", "0x0"), 16)
        return [((splitmix64(start + i + 1) & keep) | force) & mask for i in range(count)]
    raise ValueError(f"unknown generator {kind}")


def mismatches(output, want, got):
    """Indices where `got` does not match `want` under the output's comparison."""
    rule = output.get("compare", "exact")
    if rule == "exact":
        return [i for i, (w, g) in enumerate(zip(want, got)) if w != g]
    read = f32_from_bits if output["type"] == "f32" else f64_from_bits

    def close(w, g):
        w, g = read(w), read(g)
        if w != w or g != g:
            return w != w and g != g
        if w == g:
            return True
        return abs(g - w) <= rule.get("relative", 0) * abs(w) + rule.get("absolute", 0)

    return [i for i, (w, g) in enumerate(zip(want, got)) if not close(w, g)]


def stripped(ptx):
    """A module without comments and layout: what decides whether recorded values still hold."""
    return " ".join(re.sub(r"//[^\n]*", "", ptx).split())


def digest(ptx, case):
    """Identifies everything a recording depends on."""
    arrays = [{k: v for k, v in a.items() if k != "compare"} for a in case["inputs"] + case["outputs"]]
    launch = [case[k] for k in ("entry", "grid", "block", "cluster", "dynamic_shared")]
    parts = [launch, arrays] + ([case["maps"]] if case.get("maps") else []) + (["breaks"] if "breaks" in case else [])
    text = stripped(ptx) + json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def case_text(case):
    """A case as JSON text: an array of numbers on one line, everything else on its own."""
    text = json.dumps(case, indent=1)
    return re.sub(r"\[\s+(-?\d+(?:,\s+-?\d+)*)\s+\]", lambda m: "[" + ", ".join(re.split(r",\s+", m[1])) + "]", text) + "\n"
