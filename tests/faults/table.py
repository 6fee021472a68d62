#!/usr/bin/env python3
"""Brings the table of docs/faults.md up to date: for each fault the pairs of kernels that are there, or the tests, and
what is reported. A row without either keeps the reason that is written in it."""
import pathlib
import re

HERE = pathlib.Path(__file__).parent
TABLE = HERE / "../../docs/faults.md"


def expectation(path):
    kind = re.search(r"^// (expect|remark): ([^:\n]*)", path.read_text(), re.M)
    if not kind:
        return "clean"
    return ("remark: " if kind.group(1) == "remark" else "") + kind.group(2)


def where(fault):
    """Links and kinds."""
    links, kinds = [], []
    for path in sorted(HERE.glob(f"pairs/{fault}_*.ptx")):
        links.append(f"[{path.stem}](../tests/faults/pairs/{path.name})")
        kinds.append(expectation(path))
    for path in sorted([*HERE.glob("*_test.cpp"), *(HERE / "../error").glob("*_test.cpp")]):
        for suite, test in re.findall(rf"^TEST(?:_F|_P)?\((\w+), ({fault}_\w+)\)", path.read_text(), re.M):
            links.append(f"[{suite}.{test}](../tests/{path.resolve().parent.name}/{path.name})")
            kinds.append("refused" if suite.startswith("HostRules") else "test")
    return "<br>".join(links), "<br>".join(kinds)


def main():
    lines = TABLE.read_text().splitlines()
    for i, line in enumerate(lines):
        cells = [c.strip() for c in line.split("|")]
        if len(cells) != 7 or not re.fullmatch(r"[BN]\d+", cells[1]):
            continue
        links, kinds = where(cells[1])
        if links:
            cells[4:6] = [links, kinds]
        elif cells[4] != "none":
            cells[4:6] = ["none", "not yet"]
        lines[i] = " | ".join(cells).strip()
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
