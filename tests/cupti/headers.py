"""Compares our declarations of CUPTI's records with NVIDIA's headers, and with the records that NVIDIA's library
accepts. Headers and library come from NVIDIA's packages on PyPI, which are deleted afterwards.
tests/clients/test_cupti.py uses it for one version, proofs/cupti.py for all.
"""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORDS = {  # printed by the macro of layouts.c: NVIDIA's name of a record, before a number
    "KERNEL": "CUpti_ActivityKernel",
    "MEMCPY": "CUpti_ActivityMemcpy",
    "PEER": "CUpti_ActivityMemcpyPtoP",
    "MEMSET": "CUpti_ActivityMemset",
    "SYNC": "CUpti_ActivitySynchronization",
    "EVENT": "CUpti_ActivityCudaEvent",
    "OVERHEAD": "CUpti_ActivityOverhead",
    "CONTEXT": "CUpti_ActivityContext",
    "DEVICE": "CUpti_ActivityDevice",
}


def newest(include):
    """Returns the name of the newest declaration of each record."""
    text = "".join(path.read_text(errors="replace") for path in include.glob("cupti_activity*.h"))
    names = {}
    for macro, stem in RECORDS.items():
        numbers = [int(number or 1) for number in re.findall(rf"\}}\s*{stem}(\d*)\s*;", text)]
        names[macro] = stem + (str(max(numbers)) if max(numbers) > 1 else "")
    return names


def compare(include, folder, compiler="cc"):
    """Returns the differences, the number of comparisons, the version, and the sizes of records by kind."""
    program = Path(folder) / "layouts"
    macros = [f"-D{macro}={name}" for macro, name in newest(include).items()]
    paths = [f"-I{HERE / 'shim'}", f"-I{include}"]
    subprocess.run([compiler, "-w", *macros, *paths, str(HERE / "layouts.c"), "-o", str(program)], check=True)
    lines = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()
    sizes = {int(line.split()[1]): int(line.split()[2]) for line in lines if line.startswith("size ")}
    facts = {line.split()[0]: int(line.split()[1]) for line in lines if re.match(r"(version|checked) ", line)}
    different = [line for line in lines if ": ours " in line]
    return different, facts["checked"], facts["version"], sizes


MEASURE = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
version = ctypes.c_uint32()
print("version", library.cuptiGetVersion(ctypes.byref(version)), version.value, flush=True)
walk = library.cuptiActivityGetNextRecord
for kind in map(int, sys.argv[2:]):
    words = (ctypes.c_uint64 * 512)(*[17] * 512)
    words[0] = kind
    record = ctypes.c_void_p(None)
    for _ in range(2):
        result = walk(words, ctypes.c_size_t(4096), ctypes.byref(record))
    print("size", kind, record.value - ctypes.addressof(words) if result == 0 else 0)
"""


def measure(library, kinds):
    """Returns the sizes of records that the library accepts, by kind; None if the library does not work without a
    driver (then it may end the process).
    """
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, str(library), *map(str, kinds)], capture_output=True, text=True
    )
    lines = [line.split() for line in result.stdout.splitlines()]
    if result.returncode or lines[0][1] != "0":
        return None
    return {int(line[1]): int(line[2]) for line in lines[1:]}


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
