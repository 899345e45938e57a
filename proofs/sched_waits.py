"""Compares recorded waits with the threads' own logs: the second half of proofs/sched.py.

Two threads, each on a processor of its own, take turns on the GIL in C: each holds it for a while, gives it back, asks for it again, and notes how long
it waited. Another thread sleeps, reads a pipe, takes a lock that is held, and waits for a child, and notes how long each
call was off the processor. Both are compared with the table `wait`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import vestige

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
import compiled
from arrow_reader import rows_of

SUMS = 0.02
ATTRIBUTED = 0.99
INTERVALS = (0.005, 0.0005)  # seconds; see sys.setswitchinterval
HOLD_NS = {0.005: 6_000_000, 0.0005: 2_000_000}
TURNS = {0.005: 150, 0.0005: 400}
WAITS = 25

ORACLE = """
#include <Python.h>
#include <time.h>

static long long now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* turns(count, hold_ns): holds the GIL for so long, gives it back and asks for it again; how long that took in all. */
static PyObject *turns(PyObject *module, PyObject *args)
{
    long long hold, all = 0;
    int count;

    (void)module;
    if (!PyArg_ParseTuple(args, "iL", &count, &hold))
        return NULL;
    while (count-- > 0) {
        long long began = now(), asked;
        PyThreadState *state;

        while (now() - began < hold)
            ;
        asked = now();
        state = PyEval_SaveThread();
        PyEval_RestoreThread(state);
        all += now() - asked;
    }
    return PyLong_FromLongLong(all);
}

static PyMethodDef methods[] = {{"turns", turns, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "gil_oracle", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_gil_oracle(void)
{
    return PyModule_Create(&definition);
}
"""


def record(work):
    """Returns the rows of `wait` and `thread`."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.vst")
        with vestige.profile(sched=True, gc=False, output=path):
            work()
        with vestige.open(path) as traces:
            return list(rows_of(traces.wait)), list(rows_of(traces.thread))


# ---- the GIL ------------------------------------------------------------------


def take_turns(interval: float) -> tuple[str, bool]:
    """Returns a row of the table, and whether the row is good."""
    oracle = compiled.module("gil_oracle", ORACLE)
    logged: dict[int, int] = {}
    gate = threading.Barrier(2)
    processors = (sorted(os.sched_getaffinity(0)) * 2)[:2]

    def work(processor: int) -> None:
        os.sched_setaffinity(0, {processor})  # on one processor, the threads would mostly wait for the processor
        gate.wait()
        logged[threading.get_native_id()] = oracle.turns(TURNS[interval], HOLD_NS[interval])

    def both() -> None:
        threads = [threading.Thread(target=work, args=(processor,)) for processor in processors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    before = sys.getswitchinterval()
    sys.setswitchinterval(interval)
    waits, threads = record(both)
    sys.setswitchinterval(before)
    tids = {row["thread"]: row["tid"] for row in threads}
    mine = [row for row in waits if row["reason"] == "gil" and (row["name"] or "").endswith(" turns>")]
    found = sum(row["duration_ns"] for row in mine if tids[row["thread"]] in logged)
    told = sum(logged.values())
    off = found / told - 1
    other = sum(row["holder"] is not None and tids[row["holder"]] in logged for row in mine) / max(len(mine), 1)
    row = (
        f"| {interval * 1e3:g} ms, {HOLD_NS[interval] / 1e6:g} ms | {len(mine):,} | {told / 1e6:,.1f} ms | {found / 1e6:,.1f} ms, {off:+.2%} "
        f"| {other:.1%} |"
    )
    return row, abs(off) <= SUMS


# ---- other waits ----------------------------------------------------------------


def sleeps() -> None:
    time.sleep(0.01)


def reads(pipe: int) -> None:
    os.read(pipe, 1)


def locks(lock: threading.Lock) -> None:
    lock.acquire()


def waits_for_child(pid: int) -> None:
    os.waitpid(pid, 0)


def _later(seconds: float, act) -> threading.Thread:
    def wait() -> None:
        time.sleep(seconds)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def _one(kind: str) -> tuple[object, ...]:
    """A function that waits, its argument, and a function to call after it."""
    if kind == "io":
        ends = os.pipe()
        other = _later(0.01, lambda: os.write(ends[1], b"x"))
        return reads, ends[0], lambda: (other.join(), os.close(ends[0]), os.close(ends[1]))
    if kind == "lock":
        lock = threading.Lock()
        lock.acquire()
        other = _later(0.01, lock.release)
        return locks, lock, other.join
    child = subprocess.Popen(["sleep", "0.01"])
    return waits_for_child, child.pid, lambda: setattr(child, "returncode", 0)


def wait_for(kind: str) -> tuple[str, bool]:
    """Returns the row for a kind of wait, and whether the row is good."""
    off_processor = 0

    def work() -> None:
        nonlocal off_processor
        for _ in range(WAITS):
            function, *given, after = (sleeps, int) if kind == "sleep" else _one(kind)
            began, ran = time.perf_counter_ns(), time.thread_time_ns()
            function(*given)
            ran = time.thread_time_ns() - ran
            off_processor += time.perf_counter_ns() - began - ran
            after()

    names = {"sleep": "sleep", "io": "read", "lock": "acquire", "child": "waitpid"}
    waits, threads = record(work)
    main = {row["thread"] for row in threads if row["name"] == "MainThread"}
    calls = [row for row in waits if row["thread"] in main and row["reason"] == kind]
    calls = [row for row in calls if f" {names[kind]}" in row["name"] and row["duration_ns"] > 5_000_000]
    found = sum(row["waiting_ns"] for row in calls)
    share = found / off_processor
    row = f"| {kind} | {WAITS} | {off_processor / 1e6:,.1f} ms | {found / 1e6:,.1f} ms | {share:.2%} |"
    return row, share >= ATTRIBUTED


HEAD_GIL = """
## Waits for the GIL

Two threads, each on a processor of its own, hold the GIL for longer than the switch interval, give it back and ask for it again. They note how long that takes,
which is compared with the table `wait`. Each turn is two waits: until the other one has taken the GIL, which has no holder,
and until it is given back. What they note also has some 20 µs a turn in which they wake each other.

| switch interval, and held for | waits | they noted | by the trace | waits whose holder is the other |
|---|---|---|---|---|
"""
HEAD_REST = """
## Other waits

A thread notes how long calls were off the processor. The trace says how long it waited in them for what they wait for.

| for | calls | off the processor | by the trace | of that |
|---|---|---|---|---|
"""


def prove() -> tuple[str, bool]:
    """Returns the tables, and whether all rows are good."""
    turns = [take_turns(interval) for interval in INTERVALS]
    others = [wait_for(kind) for kind in ("sleep", "io", "lock", "child")]
    text = HEAD_GIL + "".join(f"{row}\n" for row, _ in turns) + HEAD_REST + "".join(f"{row}\n" for row, _ in others)
    return text, all(right for _, right in turns + others)
