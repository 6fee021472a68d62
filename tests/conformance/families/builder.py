"""What the families are written with: arrays, elementwise cases, free-form cases."""

import re
from dataclasses import dataclass, field

import values

VERSION = "8.6"  # the oldest PTX ISA that has every instruction used, so that older drivers take the cases too


@dataclass
class Case:
    name: str  # "family/name"
    title: str
    section: str  # of the PTX ISA, by name
    ptx: str
    inputs: list
    outputs: list
    block: list = field(default_factory=lambda: [32, 1, 1])
    grid: list = field(default_factory=lambda: [1, 1, 1])
    cluster: list = field(default_factory=lambda: [1, 1, 1])
    dynamic_shared: int = 0
    maps: list = field(default_factory=list)
    breaks: str = None  # the rule that the case breaks, in the simulator's words: a GPU may fault

    def json(self):
        maps = {"maps": self.maps} if self.maps else {}
        breaks = {"breaks": self.breaks} if self.breaks else {}
        return {"title": self.title, "section": self.section, "entry": entry_of(self.name), "grid": self.grid,
                "block": self.block, "cluster": self.cluster, "dynamic_shared": self.dynamic_shared,
                "inputs": self.inputs, "outputs": self.outputs, **maps, **breaks, "recorded": None, "expected": None}


CASES = {}


def add(case):
    if case.name in CASES:
        raise ValueError(f"two cases are named {case.name}")
    CASES[case.name] = case


def entry_of(name):
    return name.replace("/", "_").replace(".", "_")


# ---- arrays -----------------------------------------------------------------------------------------------------


def explicit(name, type_name, elements):
    """An array written out in full; elements are numbers, or bit patterns for the b types."""
    def bits(e):
        if type_name == "f32" and isinstance(e, float):
            return values.f32_bits(e)
        if type_name == "f64" and isinstance(e, float):
            return values.f64_bits(e)
        return e & ((1 << values.BITS[type_name]) - 1)
    patterns = [bits(e) for e in elements]
    return {"name": name, "type": type_name, "count": len(patterns), "values": values.encode(type_name, patterns)}


def choice(name, type_name, count, seed, table):
    """`count` draws from a table of bit patterns."""
    return {"name": name, "type": type_name, "count": count,
            "generator": {"kind": "choice", "seed": seed, "table": values.encode(type_name, table)}}


def random_bits(name, type_name, count, seed, keep=None, force=None):
    """`count` random bit patterns, each masked with `keep`, then or-ed with `force`."""
    rule = {"kind": "bits", "seed": seed}
    if keep is not None:
        rule["and"] = hex(keep)
    if force is not None:
        rule["or"] = hex(force)
    return {"name": name, "type": type_name, "count": count, "generator": rule}


def index(name, type_name, count, start=0, step=1):
    return {"name": name, "type": type_name, "count": count,
            "generator": {"kind": "index", "start": start, "step": step}}


def output(name, type_name, count, relative=None, absolute=None, initial=None):
    """Exact unless a tolerance is given: |got - want| <= relative * |want| + absolute."""
    array = {"name": name, "type": type_name, "count": count}
    if relative is not None or absolute is not None:
        array["compare"] = {"relative": relative or 0.0, "absolute": absolute or 0.0}
    else:
        array["compare"] = "exact"
    if initial is not None:
        array.update({k: v for k, v in initial.items() if k in ("values", "generator")})
    return array


def tensor_map(array, type_name, dims, strides, box, element_strides=None, swizzle="none", fill="zero"):
    """A tensor map over an array: the arguments of cuTensorMapEncodeTiled, innermost dimension first; `strides` in bytes,
    of all dimensions but the first."""
    return {"array": array["name"], "type": type_name, "dims": list(dims), "strides": list(strides), "box": list(box),
            "element_strides": list(element_strides or [1] * len(dims)), "swizzle": swizzle, "fill": fill}


def pairs(first, second):
    """All pairs of two lists, as two lists."""
    return [a for a in first for _ in second], [b for _ in first for b in second]


# ---- PTX --------------------------------------------------------------------------------------------------------


def module(title, section, entry, parameters, body, directives="", globals_=""):
    """The text of a module with one entry whose parameters are addresses, and tensor maps when named map_..."""
    params = ",\n".join(f"    .param .align 64 .b8 {p}[128]" if p.startswith("map_") else f"    .param .u64 {p}"
                        for p in parameters)
    lines = [f"// {title}"] + [f"// PTX ISA: {s}" for s in section.split("; ")]
    lines += [f".version {VERSION}", ".target sm_90a", ".address_size 64", ""]
    if globals_:
        lines += [globals_.strip("\n"), ""]
    head = f".visible .entry {entry}(\n{params})"
    lines += [head] + ([directives.strip("\n")] if directives else []) + ["{", body.strip("\n"), "}", ""]
    return "\n".join(lines)


def freeform(name, title, section, body, inputs=(), outputs=(), directives="", globals_="", **launch):
    """A case whose body is written out. Parameters are in_NAME for inputs, out_NAME for outputs and map_NAME for tensor
    maps (NAME being the array's), in this order."""
    inputs, outputs = list(inputs), list(outputs)
    parameters = [f"in_{a['name']}" for a in inputs] + [f"out_{a['name']}" for a in outputs]
    parameters += [f"map_{m['array']}" for m in launch.get("maps", [])]
    text = module(title, section, entry_of(name), parameters, body, directives, globals_)
    add(Case(name, title, section, text, inputs, outputs, **launch))


@dataclass
class Op:
    """One instruction under test of an elementwise case. In `body`, $NAME is an input's register and $d the result; %t0
    to %t3 (.b32), %u0 to %u3 (.b64), %h0 to %h3 (.b16) and %p, %q (.pred) are free for use."""
    body: str
    type_name: str
    name: str = ""
    relative: float = None
    absolute: float = None

    def title(self):
        text = self.name or self.body.split(";")[0].split()[0]
        return re.sub(r"[^A-Za-z0-9]+", "_", text)


REGISTER = {8: "h", 16: "h", 32: "t", 64: "u"}


def elementwise(name, title, section, inputs, ops, prologue="", directives="", globals_="", **launch):
    """Every op applied by thread i to element i of the inputs; one output an op. `prologue` stands before the first op:
    declarations, and code that the ops share."""
    inputs = list(inputs)
    count = inputs[0]["count"]
    if any(a["count"] != count for a in inputs) or count > 1024:
        raise ValueError(f"{name}: inputs of {[a['count'] for a in inputs]} elements")
    titles = [op.title() for op in ops]
    if len(set(titles)) != len(titles):
        raise ValueError(f"{name}: ops share a name")
    outputs = [output(t, op.type_name, count, op.relative, op.absolute) for t, op in zip(titles, ops)]
    parameters = [f"in_{a['name']}" for a in inputs] + [f"out_{t}" for t in titles]

    def move(direction, type_name, address, register):
        bits = values.BITS[type_name]
        kind = "u8" if bits == 8 else f"b{bits}"
        return (f"  ld.global.{kind} {register}, [{address}];" if direction == "ld"
                else f"  st.global.{kind} [{address}], {register};")

    body = ["  .reg .pred %p, %q, %outside;", "  .reg .b16 %h<4>;", "  .reg .b32 %t<4>, %i;",
            "  .reg .b64 %u<4>, %address, %offset;"]
    for a in inputs:
        bits = values.BITS[a["type"]]
        body.append(f"  .reg .b{max(bits, 16)} %{a['name']};")
    body.append("  .reg .b16 %d16;\n  .reg .b32 %d32;\n  .reg .b64 %d64;\n")
    body += ["  mov.u32 %i, %tid.x;", f"  setp.ge.u32 %outside, %i, {count};", "  @%outside ret;"]
    for a in inputs:
        body += [f"  ld.param.u64 %address, [in_{a['name']}];",
                 f"  mul.wide.u32 %offset, %i, {values.size(a['type'])};", "  add.s64 %address, %address, %offset;",
                 move("ld", a["type"], "%address", f"%{a['name']}")]
    body += ["  " + line.strip() for line in prologue.strip().splitlines()]
    for t, op in zip(titles, ops):
        register = f"%d{max(values.BITS[op.type_name], 16)}"
        text = op.body.replace("$d", register)
        for a in sorted(inputs, key=lambda x: -len(x["name"])):
            text = text.replace(f"${a['name']}", f"%{a['name']}")
        body.append("")
        body += ["  " + line.strip() for line in text.strip().splitlines()]
        body += [f"  ld.param.u64 %address, [out_{t}];",
                 f"  mul.wide.u32 %offset, %i, {values.size(op.type_name)};", "  add.s64 %address, %address, %offset;",
                 move("st", op.type_name, "%address", register)]
    body.append("  ret;")
    text = module(title, section, entry_of(name), parameters, "\n".join(body), directives, globals_)
    add(Case(name, title, section, text, inputs, outputs, **{"block": [(count + 31) // 32 * 32, 1, 1], **launch}))
