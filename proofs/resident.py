"""Compares the headline of `vestige memory` with what the system says was resident, for programs people really run.

    python proofs/resident.py --results proofs/results/resident.md
    python proofs/resident.py pandas_arrow numpy_arrays

Each program of resident_programs/ runs several times, bare and recorded. The table shows the run with the median peak.
While a program runs, its smaps are read whenever its resident set reaches a new maximum. They say which mappings are in
RAM. VmHWM of the recorded process is then made of

    peak          the headline: the most that was live at one time, by the trace
    files         pages of the interpreter, of libraries and other mapped files, but not of the trace
    stacks        of all threads
    before        what the interpreter had allocated when the recording began
    recording     pages of the trace, and what else recording added to the bare program's VmHWM
    loading       what libraries' constructors allocated before hooks were in them; measured where too much is left
    untouched     allocated and not in RAM, by smaps; taken off only as far as the others exceed VmHWM

The rest is what allocators keep. The exit status is 0 if it is at most a tenth of VmHWM for every program.
The interpreter that runs this file needs vestige and what resident-requirements.txt names.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from vestige.reading.memory import read_memory

PROGRAMS = Path(__file__).resolve().parent / "resident_programs"
MIB = 1 << 20
PAUSE = 0.004
LIMIT = 0.1
RISE = 1.01  # growth of the resident set after which smaps are read again
STACK = 8 << 20  # glibc's mapping for a thread
FIRST = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (....) \S+ \S+ \S+ *(.*)")

HEAD = """\
# What was resident, and what `vestige memory` says

`vestige memory` says how much memory a program had allocated at most. The system says how much of its memory was in
RAM at most (VmHWM). This table explains the difference between the two, program by program. All sizes are in MiB.

- *peak*: the headline of `vestige memory`, the most that was allocated at one time
- *reserved*: address space that was reserved and not used. It is not part of the peak
- *VmHWM*: what the system says about the recorded process
- *bare*: VmHWM of the same program without vestige
- *files*: pages of files in RAM, such as the interpreter and libraries
- *stacks*: pages of the threads' stacks in RAM
- *before*: what the interpreter had allocated before the recording began
- *recording*: what the recording itself took, which is VmHWM less *bare*
- *loading*: what libraries allocated while they were loaded, before vestige hooked them. It is measured only where the
  other columns leave more than a tenth of VmHWM unexplained, and is 0 elsewhere
- *untouched*: pages that were allocated and never written, so that they are not in RAM
- *left*: what the columns do not explain, as a share of VmHWM. Allocators keep such memory for later

So VmHWM = peak + files + stacks + before + recording + loading - untouched + left. *untouched* is not measured
independently. Where the other columns add up to more than VmHWM, the excess counts as untouched, but never more than
the pages that smaps shows as mapped and not in RAM. In these rows *left* is 0 because of that rule.
`python proofs/resident.py` makes this table.

"""
COLUMNS = "program peak reserved VmHWM bare files stacks before recording loading untouched left".split()


@dataclass
class Mappings:
    """Bytes of a process that were resident, by kind."""

    resident: int = 0
    files: int = 0
    stacks: int = 0
    trace: int = 0
    others: int = 0
    untouched: int = 0


@dataclass
class Run:
    peak: int = 0  # VmHWM
    highest: Mappings = field(default_factory=Mappings)


def read_mappings(pid: int) -> Mappings:
    """Returns bytes by mapping; the mapping behind a guard page is the stack of a thread."""
    found = Mappings()
    guard_end = ""
    start = end = access = path = ""
    facts: dict[str, int] = {}

    def take(flags: list[str]) -> None:
        size, resident = facts.get("Size", 0), facts.get("Rss", 0)
        found.resident += resident
        is_stack = path == "[stack]" or (guard_end == start and size <= STACK and "nr" in flags and access[:2] == "rw")
        if is_stack:
            found.stacks += resident
        elif path.endswith(".vst") or ("vestige" in path and "memfd" in path):
            found.trace += resident
        elif path.startswith("/"):
            found.files += resident
        else:
            found.others += resident
            if access[:2] == "rw" and "nr" not in flags:
                found.untouched += size - resident

    with open(f"/proc/{pid}/smaps") as smaps:
        for line in smaps:
            if match := FIRST.match(line):
                if access == "---p" and facts.get("Size") == 4096:
                    guard_end = end
                start, end, access, path = match.groups()
                facts = {}
            elif line.startswith("VmFlags:"):
                take(line.split()[1:])
            else:
                name, _, rest = line.partition(":")
                facts[name] = int(rest.split()[0]) * 1024
    return found


def watch(command: list[str], folder: str) -> Run:
    """Runs a program; returns its VmHWM, and its mappings when most was resident."""
    run = Run()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    page = os.sysconf("SC_PAGESIZE")
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/statm") as statm:
                resident = int(statm.read().split()[1]) * page
            if resident > run.highest.resident * RISE:
                found = read_mappings(process.pid)
                run.highest = max(run.highest, found, key=lambda one: one.resident)
            with open(f"/proc/{process.pid}/status") as status:
                peaks = [int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")]
            run.peak = max([run.peak, *peaks])
        except (OSError, IndexError, ValueError):
            pass  # it ends
        time.sleep(PAUSE)
    assert process.stderr
    errors = process.stderr.read().decode()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{errors}")
    return run


def measure_loading(program: str, folder: str) -> int:
    """See inside/loading.py."""
    inside = str(PROGRAMS.parent / "inside" / "loading.py")
    done = subprocess.run([sys.executable, inside, program], cwd=folder, check=True, capture_output=True, text=True)
    return int(done.stderr.splitlines()[-1])


def prove(name: str, folder: str, count: int) -> tuple[list[str], bool]:
    """Returns a row of the table, and whether the unexplained rest is small."""
    from vestige._core import Trace

    program, trace = str(PROGRAMS / f"{name}.py"), os.path.join(folder, f"{name}.vst")
    bare = sorted(watch([sys.executable, program], folder).peak for _ in range(count))[count // 2]
    runs = []
    for _ in range(count):
        command = [sys.executable, "-m", "vestige", "memory", "-q", "--force", "-o", trace, program]
        run = watch(command, folder)
        runs.append((run.peak, run.highest, read_memory(Trace(trace), rows=0)))
    peak, highest, summary = sorted(runs, key=lambda one: one[0])[count // 2]
    told = summary.resident
    peak = max(peak, told["peak"])
    recording = highest.trace + max(0, peak - bare - highest.trace)
    views = summary.views
    slack = peak - views["peak"].bytes - highest.files - highest.stacks - told["before"] - recording
    loading = measure_loading(program, folder) if slack / peak > LIMIT else 0
    slack -= loading
    untouched = min(highest.untouched, max(0, -slack))
    left = (slack + untouched) / peak
    sizes = [views["peak"].bytes, views["reserved"].bytes, peak, bare, highest.files, highest.stacks]
    sizes += [told["before"], recording, loading, untouched]
    return [name, *(f"{size / MIB:.1f}" for size in sizes), f"{left:+.1%}"], abs(left) <= LIMIT


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="programs of resident_programs/ (default: all)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each program, bare and recorded (default: 3)")
    parser.add_argument("--results", type=Path, help="write a page of Markdown to this file")
    options = parser.parse_args()
    names = options.programs or sorted(path.stem for path in PROGRAMS.glob("*.py"))
    rows, failed = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            row, is_explained = prove(name, folder, options.runs)
            rows.append(row)
            failed += [] if is_explained else [name]
            print("  ".join(f"{column} {cell}" for column, cell in zip(COLUMNS, row)), flush=True)
    if options.results:
        version = ".".join(map(str, sys.version_info[:3]))
        table = [f"| {' | '.join(COLUMNS)} |", "|---" + "|--:" * (len(COLUMNS) - 1) + "|"]
        table += [f"| {' | '.join(row)} |" for row in rows]
        options.results.write_text(f"{HEAD}CPython {version}.\n\n" + "\n".join(table) + "\n")
    if failed:
        print(f"not explained: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
