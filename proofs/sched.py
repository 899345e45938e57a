"""Compares running times with the system's CPU time of each call.

    python proofs/sched.py --runs 6 --realtime --results proofs/results/sched.md

A thread, then four at once, compute, sleep, and wait for each other and for the interpreter's lock. They read
CLOCK_THREAD_CPUTIME_ID before each call and after it. They are recorded with sched=True, and each call's running time is
compared with the difference of the two readings, in which the readings themselves are too. proofs/sched_waits.py compares
waits. The exit status is 0 if all running times are known, their sums differ by at most 2 %, calls that ran for 1 ms or more
by at most 50 us each, waits for the GIL by at most 2 %, and if 99 % of other waits are told as what they were for.

On a busy machine, `--realtime` (as root) lets the threads run before all others.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import threading
import time
from pathlib import Path

import sched_waits
import vestige

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
from arrow_reader import rows_of

SUMS = 0.02
EACH_NS = 50_000
LONG_NS = 1_000_000
ROUNDS = 60

noted: dict[int, list[tuple[str, int]]] = {}  # by thread: each call and its running time, in order
lock = threading.Lock()


def computes(steps: int) -> None:
    for n in range(steps):
        n * n


def naps(steps: int) -> None:
    time.sleep(steps / 1e6)


def waits(steps: int) -> None:
    with lock:
        for n in range(steps):
            n * n


def work() -> None:
    mine = noted.setdefault(threading.get_native_id(), [])
    for n in range(ROUNDS):
        for function, steps in ((computes, 2000 + 1500 * n), (naps, 200 + 50 * n), (waits, 1000 + 800 * n)):
            began = time.thread_time_ns()
            function(steps)
            mine.append((function.__name__, time.thread_time_ns() - began))


def record(count: int) -> dict[int, list[tuple[str, int | None, int]]]:
    """Returns, by thread, each call, its running time and its duration, in the order in which the calls end."""
    found: dict[int, list[tuple[str, int | None, int]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.vst")
        with vestige.profile(sched=True, c_functions=False, gc=False, output=path):
            threads = [threading.Thread(target=work) for _ in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with vestige.open(path) as traces:
            tids = {row["thread"]: row["tid"] for row in rows_of(traces.thread)}
            for row in rows_of(traces.span):
                name = row["name"].rpartition(" ")[2]
                if name in ("computes", "naps", "waits"):
                    call = (name, row["running_ns"], row["duration_ns"])
                    found.setdefault(tids[row["thread"]], []).append(call)
    return found


def compare(count: int) -> tuple[str, bool]:
    """Returns a row of the table, and whether the row is good."""
    noted.clear()
    found = record(count)
    pairs = []
    for tid, calls in noted.items():
        assert [call[0] for call in found[tid]] == [name for name, _ in calls]
        pairs += [(told, running, duration) for (_, told), (_, running, duration) in zip(calls, found[tid])]
    known = [pair for pair in pairs if pair[1] is not None]
    told, running, took = (sum(pair[at] for pair in known) for at in range(3))
    off = running / told - 1
    signed = sorted(running - told for told, running, _ in known if told >= LONG_NS)
    long = sorted(map(abs, signed))
    near = sum(each <= EACH_NS for each in long) / len(long)
    row = (
        f"| {count} | {len(known):,} of {len(pairs):,} | {took / 1e6:,.0f} ms | {told / 1e6:,.1f} ms "
        f"| {running / 1e6:,.1f} ms, {off:+.2%} | {len(long):,} | {near:.1%} "
        f"| {long[len(long) // 2] / 1e3:.0f} µs | {signed[0] / 1e3:,.0f} µs | {signed[-1] / 1e3:+,.0f} µs |"
    )
    return row, len(known) == len(pairs) and abs(off) <= SUMS and long[-1] <= EACH_NS


HEAD = """\
# Running times, and what the system says

`proofs/sched.py` reads CLOCK_THREAD_CPUTIME_ID before and after each call, and compares the difference with the running
time that the trace gives. CPython {python}, Linux {linux}, {processors} processors, load {load:.0f}{realtime}. Meanwhile the
host took {stolen:,.0f} ms of processor time away from the virtual machine{runs}.

| threads | known | the calls took | ran, by the clock | ran, by the trace | calls of 1 ms or more | within 50 µs | median | least | most |
|---|---|---|---|---|---|---|---|---|---|
"""
TAIL = """
Sums are to differ by at most 2 %, and calls of 1 ms or more by at most 50 µs each. Where single calls differ by more, there are
two reasons. Where the trace has more, often by whole milliseconds, the host took the processor away without a switch: the
clock leaves that out, the trace cannot know of it. Where it has less, the call was interrupted by several switches: the clock
counts the time of a switch for the thread that is switched to, the trace for nobody, some 10 µs for each on a busy machine. A call
that is not interrupted differs by 2 to 3 µs, which are the two readings of the clock.
"""


def stolen_ms() -> float:
    """Returns the time that the host has taken away so far, from all processors."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) * 1e3 / os.sysconf("SC_CLK_TCK")


def run() -> tuple[float, list[tuple[str, bool]]]:
    """Returns how much the host took away meanwhile, and the rows."""
    before = stolen_ms()
    rows = [compare(count) for count in (1, 4)]
    return stolen_ms() - before, rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", help="file to write")
    parser.add_argument(
        "--runs", type=int, default=1, help="number of runs; the run in which the host took away least is shown"
    )
    parser.add_argument("--realtime", action="store_true", help="run before all other programs; needs root")
    options = parser.parse_args()
    if options.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    stolen, rows = min((run() for _ in range(options.runs)), key=lambda found: found[0])
    waits, waits_are_right = sched_waits.prove()
    head = HEAD.format(
        python=platform.python_version(),
        linux=platform.release().partition("-")[0],
        processors=os.cpu_count(),
        load=os.getloadavg()[0],
        realtime=", before all other programs" if options.realtime else "",
        stolen=stolen,
        runs=f", the least of {options.runs} runs" if options.runs > 1 else "",
    )
    text = head + "".join(f"{row}\n" for row, _ in rows) + TAIL + waits
    print(text)
    if options.results:
        Path(options.results).write_text(text)
    return int(not (waits_are_right and all(right for _, right in rows)))


if __name__ == "__main__":
    sys.exit(main())
