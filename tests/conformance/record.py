#!/usr/bin/env python3
"""Records on a GPU what the cases of this folder give, with nothing but the CUDA driver library and Python.

    record.py run   --out DIR [--device N] [FILTER...]   run the cases, write DIR/conformance-recorded.json
    record.py merge FILE...                              write recorded values into the cases' JSON files
    record.py check [--device N] [FILTER...]             run the cases and compare with the stored values
    record.py list  [FILTER...]                          which cases have recorded values

A FILTER keeps the cases whose name contains it. Every case runs in a worker process, twice, over two different fillings
of its outputs: a case that leaves an output unwritten or is not deterministic is reported and not recorded. A worker
that fails or hangs is ended and replaced; the other cases go on. Of a case that breaks a rule a fault is recorded too:
the driver's words and error code.
"""

import argparse
import ctypes
import datetime
import json
import os
import queue
import subprocess
import sys
import threading

import values

ROOT = os.path.dirname(os.path.abspath(__file__))
RESULT_FILE = "conformance-recorded.json"
FILLINGS = (0xCB, 0x34)


def all_cases(filters):
    names = []
    for folder, _, files in os.walk(ROOT):
        for file in files:
            if file.endswith(".json") and os.path.exists(os.path.join(folder, file[:-5] + ".ptx")):
                names.append(os.path.relpath(os.path.join(folder, file[:-5]), ROOT))
    return sorted(n for n in names if not filters or any(f in n for f in filters))


def load(name):
    with open(os.path.join(ROOT, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def ptx_of(name):
    with open(os.path.join(ROOT, name + ".ptx"), encoding="utf-8") as file:
        return file.read()


def save(name, case):
    with open(os.path.join(ROOT, name + ".json"), "w", encoding="utf-8") as file:
        file.write(values.case_text(case))


# ---- the GPU ----------------------------------------------------------------------------------------------------


class CudaError(Exception):
    pass


class Fault(CudaError):
    """The driver's error of a kernel that was launched and did not end well. The context is lost."""


class Gpu:
    """The few driver calls a case needs."""

    MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES = 5, 6

    LIBRARIES = ("libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
                 "/usr/lib/wsl/lib/libcuda.so.1")

    def __init__(self, ordinal):
        for library in self.LIBRARIES:
            try:
                self.cuda = ctypes.CDLL(library)
                break
            except OSError:
                continue
        else:
            raise CudaError(f"no CUDA driver; looked for {', '.join(self.LIBRARIES)}")
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), ordinal)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'error').decode()} ({status})")

    def name(self):
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, self.device)
        return text.value.decode()

    def driver(self):
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        cuda = f"CUDA {number.value // 1000}.{number.value % 1000 // 10}"
        try:
            done = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                                  capture_output=True, text=True, timeout=20, check=True)
            return f"{done.stdout.split()[0]} ({cuda})"
        except (OSError, subprocess.SubprocessError, IndexError):
            return cuda

    def load_entry(self, ptx, entry, dynamic_shared):
        log = ctypes.create_string_buffer(16384)
        options = (ctypes.c_int * 2)(self.JIT_ERROR_LOG, self.JIT_ERROR_LOG_BYTES)
        option_values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        module = ctypes.c_void_p()
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), ptx.encode() + b"\0", 2, options, option_values)
        except CudaError as error:
            raise CudaError(f"{error}: {log.value.decode(errors='replace').strip()}") from None
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        if dynamic_shared:
            self.call("cuFuncSetAttribute", function, self.MAX_DYNAMIC_SHARED, dynamic_shared)
        return function

    def buffer(self, data):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(len(data), 1)))
        self.write(address, data)
        return address

    def write(self, address, data):
        self.call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))

    def read(self, address, count):
        data = ctypes.create_string_buffer(count)
        self.call("cuMemcpyDtoH_v2", data, address, ctypes.c_size_t(count))
        return data.raw

    # cuda.h, CUtensorMapDataType and CUtensorMapSwizzle
    MAP_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz")
    MAP_SWIZZLES = ("none", "32B", "64B", "128B")

    def tensor_map(self, description, address):
        """A tensor map object, 128 bytes at a multiple of 64, as a ctypes array."""
        rank = len(description["dims"])
        memory = ctypes.create_string_buffer(128 + 64)
        result = (ctypes.c_char * 128).from_buffer(memory, -ctypes.addressof(memory) % 64)

        def array(kind, field, count):
            return (kind * max(count, 1))(*description[field])

        self.call("cuTensorMapEncodeTiled", result, self.MAP_TYPES.index(description["type"]), rank, address,
                  array(ctypes.c_uint64, "dims", rank), array(ctypes.c_uint64, "strides", rank - 1),
                  array(ctypes.c_uint32, "box", rank), array(ctypes.c_uint32, "element_strides", rank), 0,
                  self.MAP_SWIZZLES.index(description["swizzle"]), 0, int(description["fill"] == "nan"))
        return result

    def launch(self, function, grid, block, dynamic_shared, parameters):
        pointers = (ctypes.c_void_p * len(parameters))(
            *[ctypes.cast(ctypes.pointer(p), ctypes.c_void_p) for p in parameters])
        self.call("cuLaunchKernel", function, *grid, *block, dynamic_shared, None, pointers, None)
        try:
            self.call("cuCtxSynchronize")
        except CudaError as error:
            raise Fault(str(error).removeprefix("cuCtxSynchronize: ")) from None


def run_case(gpu, name):
    """The outputs of a case as bytes; raises CudaError, or ValueError when the two runs differ."""
    case = load(name)
    function = gpu.load_entry(ptx_of(name), case["entry"], case["dynamic_shared"])
    inputs = [gpu.buffer(values.to_bytes(a["type"], values.elements_of(a))) for a in case["inputs"]]
    outputs = [gpu.buffer(bytes(a["count"] * values.size(a["type"]))) for a in case["outputs"]]
    place = {a["name"]: address for a, address in zip(case["inputs"] + case["outputs"], inputs + outputs)}
    maps = [gpu.tensor_map(m, place[m["array"]]) for m in case.get("maps", [])]
    runs = []
    for filling in FILLINGS:
        for array, address in zip(case["outputs"], outputs):
            initial = values.elements_of(array)
            count = array["count"] * values.size(array["type"])
            gpu.write(address, bytes([filling]) * count if initial is None
                      else values.to_bytes(array["type"], initial))
        gpu.launch(function, case["grid"], case["block"], case["dynamic_shared"], inputs + outputs + maps)
        runs.append({array["name"]: gpu.read(address, array["count"] * values.size(array["type"]))
                     for array, address in zip(case["outputs"], outputs)})
    for array in case["outputs"]:
        first, second = (values.from_bytes(array["type"], run[array["name"]]) for run in runs)
        wrong = [i for i, (x, y) in enumerate(zip(first, second)) if x != y]
        if wrong:
            raise ValueError(f"{array['name']}[{wrong[0]}] is unwritten or not deterministic: "
                             f"{hex(first[wrong[0]])}, then {hex(second[wrong[0]])} ({len(wrong)} elements)")
    return runs[0]


def worker(ordinal):
    """Reads case names from standard input; answers each with one line of JSON. Ends at the first driver error."""
    gpu = Gpu(ordinal)
    print(json.dumps({"device": gpu.name(), "driver": gpu.driver()}), flush=True)
    for line in sys.stdin:
        name = line.strip()
        try:
            answer = {"outputs": {k: v.hex() for k, v in run_case(gpu, name).items()}}
        except (CudaError, ValueError) as error:
            expected = isinstance(error, Fault) and "breaks" in load(name)
            answer = {"fault" if expected else "error": str(error)}
        print(json.dumps(answer), flush=True)
        if "outputs" not in answer:
            return  # after a driver error the context may be lost


class Worker:
    """A worker process; ask() gives None when it dies or does not answer in time."""

    def __init__(self, ordinal):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "worker", "--device", str(ordinal)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.hello = self._answer(60)

    def _read(self):
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put(None)

    def _answer(self, timeout):
        try:
            line = self.answers.get(timeout=timeout)
        except queue.Empty:
            return None
        return json.loads(line) if line else None

    def ask(self, name, timeout):
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
        except OSError:
            return None
        return self._answer(timeout)

    def end(self):
        self.process.kill()
        self.process.wait()


def run_all(names, ordinal, workers, timeout):
    """{case: answer} and the device's description."""
    todo = queue.Queue()
    for name in names:
        todo.put(name)
    answers, device = {}, {}

    def serve():
        process = None
        while True:
            try:
                name = todo.get_nowait()
            except queue.Empty:
                break
            process = process or Worker(ordinal)
            if process.hello is None:
                answers[name] = {"error": "the worker did not start"}
            else:
                device.update(process.hello)
                answers[name] = process.ask(name, timeout) or {"error": f"no answer in {timeout} s"}
            answer = answers[name]
            if "outputs" not in answer:
                process.end()
                process = None
            print(f"{'FAIL' if 'error' in answer else 'ok  '} {name} {answer.get('error', answer.get('fault', ''))}".rstrip(),
                  flush=True)
        if process:
            process.end()

    threads = [threading.Thread(target=serve) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers, device


# ---- commands ---------------------------------------------------------------------------------------------------


def command_run(options):
    answers, device = run_all(all_cases(options.filters), options.device, options.workers, options.timeout)
    good = {name: {"digest": values.digest(ptx_of(name), load(name)), **answer}
            for name, answer in sorted(answers.items()) if "error" not in answer}
    bad = {name: answer["error"] for name, answer in sorted(answers.items()) if "error" in answer}
    os.makedirs(options.out, exist_ok=True)
    with open(os.path.join(options.out, RESULT_FILE), "w", encoding="utf-8") as file:
        json.dump({"device": device.get("device"), "driver": device.get("driver"),
                   "date": datetime.date.today().isoformat(), "cases": good, "failed": bad}, file)
    print(f"{len(good)} cases recorded, {len(bad)} failed")
    for name, error in bad.items():
        print(f"failed: {name}: {error}")
    return 1 if bad else 0


def same(case, one, other):
    """Whether two recordings hold the same bits; a number may be written in several ways."""
    if "fault" in one or "fault" in other:
        return one == other
    return all(values.decode(a["type"], one[a["name"]]) == values.decode(a["type"], other[a["name"]]) for a in case["outputs"])


def command_merge(options):
    changed = merged = confirmed = 0
    for path in options.filters:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        for name, recorded in result["cases"].items():
            if not os.path.exists(os.path.join(ROOT, name + ".ptx")):
                print(f"gone: {name}")
                continue
            case = load(name)
            if recorded["digest"] != values.digest(ptx_of(name), case):
                print(f"not merged, the case has changed since: {name}")
                continue
            expected = {"fault": recorded["fault"]} if "fault" in recorded else {
                a["name"]: values.encode(a["type"], values.from_bytes(a["type"], bytes.fromhex(recorded["outputs"][a["name"]])))
                for a in case["outputs"]}
            if case["expected"] is not None:
                if same(case, case["expected"], expected):
                    confirmed += 1
                    continue
                print(f"changed: {name}")
                changed += 1
            case["expected"] = expected
            case["recorded"] = {"device": result["device"], "driver": result["driver"], "date": result["date"]}
            save(name, case)
            merged += 1
        print(f"{path}: {merged} cases merged, {changed} of them differ from what was stored; {confirmed} were stored with the same "
              "values")
        for name, error in result["failed"].items():
            print(f"not recorded: {name}: {error}")
    return 0


def command_check(options):
    answers, _ = run_all(all_cases(options.filters), options.device, options.workers, options.timeout)
    wrong = 0
    for name, answer in sorted(answers.items()):
        case = load(name)
        if "error" in answer or case["expected"] is None:
            print(f"{name}: {answer.get('error', 'nothing stored')}")
            wrong += 1
            continue
        want, got = (a.get("fault", "no fault") for a in (case["expected"], answer))
        if want != got:
            print(f"{name}: {got}, stored {want}")
            wrong += 1
        if "fault" in case["expected"] or "fault" in answer:
            continue
        for array in case["outputs"]:
            want = values.decode(array["type"], case["expected"][array["name"]])
            got = values.from_bytes(array["type"], bytes.fromhex(answer["outputs"][array["name"]]))
            bad = values.mismatches(array, want, got)
            if bad:
                wrong += 1
                print(f"{name}: {array['name']}[{bad[0]}] is {values.token_of(array['type'], got[bad[0]])}, stored "
                      f"{values.token_of(array['type'], want[bad[0]])} ({len(bad)} of {len(want)} differ)")
    print(f"{len(answers)} cases checked, {wrong} outputs or cases differ")
    return 1 if wrong else 0


def command_list(options):
    names = all_cases(options.filters)
    missing = [name for name in names if load(name)["expected"] is None]
    for name in missing:
        print(f"not recorded: {name}")
    print(f"{len(names)} cases, {len(names) - len(missing)} recorded")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["run", "merge", "check", "list", "worker"])
    parser.add_argument("filters", nargs="*")
    parser.add_argument("--out", default=".")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--timeout", type=float, default=15, help="seconds a case may take")
    options = parser.parse_intermixed_args()
    if options.command == "worker":
        return worker(options.device)
    return globals()["command_" + options.command](options)


if __name__ == "__main__":
    sys.exit(main())
