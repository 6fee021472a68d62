#!/usr/bin/env python3
"""Computes what each kernel must leave in its output, in double precision, and writes expected/*.txt.

Inputs are what the launch files (*.json) say; `random` is implemented here a second time.
"""

import json
import math
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
MASK = (1 << 64) - 1


def splitmix64(seed, i):
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def normal(count, seed):
    """Box-Muller on splitmix64, rounded to f32."""
    start = splitmix64(seed, 0)
    unit = lambda i: ((splitmix64(start, i) >> 11) + 0.5) * 2.0**-53
    out = []
    for i in range(0, count, 2):
        radius = math.sqrt(-2 * math.log(unit(i)))
        angle = 2 * math.pi * unit(i + 1)
        out += [radius * math.cos(angle), radius * math.sin(angle)]
    return [rounded("f", v) for v in out[:count]]


def rounded(code, value):
    return struct.unpack("<" + code, struct.pack("<" + code, value))[0]


def uniform(count, seed, low, high):
    return [low + splitmix64(seed, i) % (high - low + 1) for i in range(count)]


def load(name):
    return json.loads((HERE / f"{name}.json").read_text())


def buffer(name, which):
    """The initial values of a buffer of a launch file, flat."""
    spec = load(name)["buffers"][which]
    count = math.prod(spec["shape"])
    kind, *words = spec["init"].split(":")
    if kind == "iota":
        start, step = (float(w) for w in (words + ["0", "1"][len(words):]))
        return [start + step * i for i in range(count)]
    if len(words) == 3:
        return uniform(count, *(int(w) for w in words))
    if spec["type"] == "u8":
        return [splitmix64(int(words[0]), i) % 256 for i in range(count)]
    values = normal(count, int(words[0]))
    return [rounded("e", v) for v in values] if spec["type"] == "f16" else values


def value(name, argument):
    return load(name)["arguments"][argument]["value"]


def shape(name, which):
    return load(name)["buffers"][which]["shape"]


def product(name):
    a, b = buffer(name, "a"), buffer(name, "b")
    (m, k), (n, _) = shape(name, "a"), shape(name, "b")
    return [math.fsum(a[i * k + x] * b[j * k + x] for x in range(k)) for i in range(m) for j in range(n)]


def reduce():
    return [math.fsum(buffer("reduce", "in"))]


def transpose():
    rows, cols = shape("transpose", "in")
    values = buffer("transpose", "in")
    return [values[r * cols + c] for c in range(cols) for r in range(rows)]


def double_buffer():
    values = buffer("double_buffer", "in")
    return [math.fsum(values[t] for t in range(x, len(values), 64)) for x in range(64)]


def tma_pipeline():
    values = buffer("tma_pipeline", "matrix")
    rows, columns = shape("tma_pipeline", "matrix")
    each = rows // load("tma_pipeline")["grid"][0]
    return [math.fsum(values[r * columns + c] for r in range(first, first + each))
            for first in range(0, rows, each) for c in range(columns)]


def cluster_exchange():
    values = buffer("cluster_exchange", "in")
    out = []
    for block in range(len(values) // 64):
        neighbour = block // 4 * 4 + (block + 1) % 4
        out += [10 * values[block * 64 + t] + values[neighbour * 64 + 63 - t] for t in range(64)]
    return out


def last_block():
    return [math.fsum(v * v for v in buffer("last_block", "in"))]


def specialised():
    values, scale = buffer("specialised", "in"), value("specialised", 3)
    return [math.fsum(scale * values[t] for t in range(x, len(values), 96)) for x in range(96)]


def scan():
    values, out = buffer("scan", "in"), []
    for i, v in enumerate(values):
        out.append(v if i % 512 == 0 else out[-1] + v)
    return out


def histogram():
    bins = [0] * 256
    for v in buffer("histogram", "in"):
        bins[v] += 1
    return bins


def softmax():
    values, out = buffer("softmax", "in"), []
    rows, n = shape("softmax", "in")
    for r in range(rows):
        row = values[r * n:(r + 1) * n]
        powers = [math.exp(v - max(row)) for v in row]
        out += [p / math.fsum(powers) for p in powers]
    return out


def bulk_copy():
    slope, offset = struct.unpack("<ff", bytes.fromhex(load("bulk_copy")["arguments"][2]["bytes"]))
    return [slope * v + offset for v in buffer("bulk_copy", "x")]


def named_barriers():
    values, rounds = buffer("named_barriers", "in"), value("named_barriers", 2)
    return [sum((r + 1) * values[(r * 2 + pair) * 32 + 31 - lane] for r in range(rounds))
            for pair in range(2) for lane in range(32)]


def main():
    (HERE / "expected").mkdir(exist_ok=True)
    kernels = [reduce, transpose, double_buffer, tma_pipeline, cluster_exchange, last_block, specialised, scan,
               histogram, softmax, bulk_copy, named_barriers]
    results = {k.__name__: k() for k in kernels}
    for name in ("wgmma_tile", "tcgen05_tile", "matrix_product"):
        results[name] = product(name)
    results["wmma_tile"] = [v / 2 for v in product("wmma_tile")]
    for name, values in results.items():
        lines = [" ".join(f"{v:.9g}" for v in values[i:i + 8]) for i in range(0, len(values), 8)]
        (HERE / "expected" / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
