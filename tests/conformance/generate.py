#!/usr/bin/env python3
"""Writes the cases of families/ as PTX and JSON. Recorded values stay with a case whose code and data did not change.

    generate.py            write
    generate.py --check    write nothing; fail when the files are not what would be written
"""

import importlib
import json
import os
import sys

import values

ROOT = os.path.dirname(os.path.abspath(__file__))
FAMILIES = sorted(f[:-3] for f in os.listdir(os.path.join(ROOT, "families")) if f.endswith(".py") and f != "builder.py"
                  and f != "__init__.py")


def read(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def files_of(case):
    """The two files of a case, {path: text}."""
    base = os.path.join(ROOT, case.name)
    sidecar = case.json()
    old_ptx, old_text = read(base + ".ptx"), read(base + ".json")
    if old_ptx is not None and old_text is not None:
        old = json.loads(old_text)
        if values.digest(old_ptx, old) == values.digest(case.ptx, sidecar):
            sidecar["recorded"], sidecar["expected"] = old["recorded"], old["expected"]
    return {base + ".ptx": case.ptx, base + ".json": values.case_text(sidecar)}


def main():
    from families import builder
    for family in FAMILIES:
        importlib.import_module("families." + family)
    stale = 0
    for case in builder.CASES.values():
        for path, text in files_of(case).items():
            if read(path) == text:
                continue
            stale += 1
            print(("stale: " if "--check" in sys.argv else "wrote: ") + os.path.relpath(path, ROOT))
            if "--check" not in sys.argv:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
    known = {os.path.join(ROOT, name) for name in builder.CASES}
    for folder, _, files in os.walk(ROOT):
        for file in files:
            if file.endswith(".ptx") and os.path.join(folder, file[:-4]) not in known:
                print(f"no family writes {os.path.relpath(os.path.join(folder, file), ROOT)}")
                stale += 1
    print(f"{len(builder.CASES)} cases")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
