#!/usr/bin/env python3
"""Compares vestige's declarations of CUPTI's records with the headers of every nvidia-cuda-cupti on PyPI from CUDA 12.0
on, and what its library takes for a record with both. Where that library works without a driver, it also walks the
buffers of a made-up recording, which must be read as the stub of the tests reads it.

Downloads each version by pip, 31 of them when it was last run, and keeps nothing. Results: proofs/results/cupti.md.

    .venv/3.11/bin/python proofs/cupti.py               # all
    .venv/3.11/bin/python proofs/cupti.py 12.9.79 …     # some, without writing results
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "cupti"), str(ROOT / "tests" / "python")]
import headers

PACKAGES = {"12": "nvidia-cuda-cupti-cu12", "13": "nvidia-cuda-cupti"}
RESULTS = ROOT / "proofs" / "results" / "cupti.md"
HEAD = """\
# CUPTI's records

`proofs/cupti.py` compares our declarations of CUPTI's records (`adapters/cupti/records.h`) with NVIDIA's headers, for
every version of nvidia-cuda-cupti-cu12 and nvidia-cuda-cupti on PyPI: where each member begins, how many bytes it has,
values of enumerations. *Sizes* says whether the library of that version takes for a record what its headers say.
*Walked* says whether the library walked the buffers of a made-up recording (`tests/cupti/stub.c`), and the file
exported from it was the same as where the stub walked them. Without a driver, 13.2 ends the process in its first call,
and from 13.3 on every call fails: there both are not known, here.

No kernel ran: this machine has no GPU.

| version | interface | compared | different | sizes | walked |
|---|--:|--:|--:|---|---|
"""


def versions():
    found = []
    for major, package in PACKAGES.items():
        command = [sys.executable, "-m", "pip", "index", "versions", package]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        listed = re.search(r"Available versions: (.*)", text)[1].split(", ")
        found += [version for version in listed if version.startswith(f"{major}.")]
    return sorted(found, key=lambda version: [int(part) for part in version.split(".")])


def fetch(version, folder):
    """Returns the folder of headers, and the library."""
    package = f"{PACKAGES[version.partition('.')[0]]}=={version}"
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", folder, package]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    for wheel in Path(folder).glob("*.whl"):
        with zipfile.ZipFile(wheel) as file:
            names = [name for name in file.namelist() if "/include/" in name or "libcupti.so" in name]
            file.extractall(folder, names)
        wheel.unlink()
    include = next(Path(folder).rglob("cupti_activity.h")).parent
    return include, next(Path(folder).rglob("libcupti.so.*"))


def recorded(interface, folder, real):
    """Returns the events of the made-up recording of tests/python/test_cupti.py, without their times."""
    import cupti_stub
    from test_cupti import PROGRAM

    path = Path(folder) / "t.vst"
    path.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "python")}
    words = [cupti_stub.build(), interface, path, real]
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), *map(str, words)]
    subprocess.run(command, check=True, env=environment)
    import vestige

    vestige.Trace(str(path)).export(str(path.with_suffix(".json")))
    events = json.loads(path.with_suffix(".json").read_text())["traceEvents"]
    kinds = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "cuda_sync", "overhead", "ac2g")
    kept = [event for event in events if event.get("cat") in kinds]
    for event in kept:
        for name in ("ts", "dur", "pid", "tid"):
            event.pop(name, None)
        event.get("args", {}).pop("memory bandwidth (GB/s)", None)
    return kept


def prove(version):
    with tempfile.TemporaryDirectory() as folder:
        include, library = fetch(version, folder)
        different, compared, interface, sizes = headers.compare(include, folder)
        measured = headers.measure(library, sizes)
        walked = None
        if measured is not None:
            events = recorded(interface, folder, library)
            walked = len(events) >= 10 and events == recorded(interface, folder, "")
    for line in different:
        print(f"{version}: {line}")
    said = {None: "not known", True: "the same", False: "DIFFERENT"}
    same = None if measured is None else measured == sizes
    row = f"| {version} | {interface} | {compared} | {len(different)} | {said[same]} | {said[walked]} |"
    return row, bool(different) or same is False or walked is False


def main():
    chosen = sys.argv[1:] or versions()
    rows, failed = [], False
    for version in chosen:
        row, is_wrong = prove(version)
        print(row, flush=True)
        rows.append(row)
        failed |= is_wrong
    if not sys.argv[1:]:
        RESULTS.write_text(HEAD + "\n".join(rows) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
