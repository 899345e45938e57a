"""Measures the cost of the trace file compared with plain memory, and the time to open a torn file.

record_file.c records 200 million records (1.6 GB) through the real recorder, each time in a fresh process: into a trace
file, which it stops and finishes, and into fresh anonymous memory with chunks of the same size, every page of which is
touched for the first time. Twice: the memory is kept, so that like the file it holds all of the records at the end; or
it is given back chunk by chunk, which leaves the kernel with a single warm MiB, and nothing with the records. The first
is what a recording in memory costs and what the bar compares with; the second stands beside it. The three take turns;
the least CPU time of each counts, user and system, from the start of the process to the end of its exit. The
kernel writes the pages to the disk later; no figure includes that.

A bounded file of 64 MiB gets 50 million records: of one thread, of 8 at once, and of one while 2,000 others that recorded
a little wait. What it keeps is the share of its size that is words of records.

Memory is all that the process has mapped and touched, pages of the file too, of this program and of a Python program
that records as much.

A torn file is what SIGKILL leaves of a process that recorded 100 million records: of one thread, of 8 at once, of
10,000 that came and went. Opening it is the whole of the command `vestige info`, start of the interpreter included;
the file is in the page cache.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import child
import file
from report import Table, at_most, say

RECORDS = 200_000_000
TORN_RECORDS = 100_000_000
RING_RECORDS = 50_000_000
PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build/bench/bench/record_file")
HOWS = {"file": "file", "memory": "kept", "memory given back": "fresh"}


def run_command(command):
    """Returns the output, the exit code and the CPU seconds."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return printed, process.returncode, usage.ru_utime + usage.ru_stime


def run_program(how, records, threads, path):
    return run_command([PROGRAM, how, str(records), str(threads), path])


def record_once(how, records, path):
    """Returns CPU time, growth of memory and size of the file, for a run of the program."""
    printed, code, cpu = run_program(how, records, 1, path)
    assert code == 0, (how, code)
    facts = json.loads(printed)
    assert facts["lost"] == 0, facts
    size = os.path.getsize(path) if os.path.exists(path) else 0
    if size:
        os.unlink(path)
    growth = max(facts["peak_kib"], facts["after_kib"]) - facts["before_kib"]
    return {"cpu": cpu, "growth_mib": growth / 1024, "size": size}


def cost_table(folder, quick):
    records = RECORDS // 10 if quick else RECORDS
    runs = {name: [] for name in HOWS}
    for round_ in range(2 if quick else 7):
        for name, how in HOWS.items():
            runs[name].append(record_once(how, records, os.path.join(folder, "t.vst")))
        say(f"round {round_ + 1}: " + ", ".join(f"{name} {result[-1]['cpu']:.2f} s" for name, result in runs.items()))
    cpu = {name: min(run["cpu"] for run in results) for name, results in runs.items()}
    growth = {name: max(run["growth_mib"] for run in results) for name, results in runs.items()}
    say(f"{records:,} records of a Python program")
    python = child.run(file.record, name="vestige", path=os.path.join(folder, "p.vst"), calls=records // 2)
    os.unlink(os.path.join(folder, "p.vst"))
    assert python["lost"] == 0 and python["records"] >= records, python

    table = Table(f"Recording {records:,} records", list(HOWS))
    ratio = {name: cpu["file"] / cpu[name] for name in HOWS}
    table.add("CPU, s", cpu, digits=2)
    table.add("CPU, ns a record", {name: taken * 1e9 / records for name, taken in cpu.items()})
    check = at_most(f"{ratio['memory']:.3f} x memory", ratio["memory"], 1.25)
    table.add("the file's over it", ratio, [check], digits=3)
    table.add("memory growth, MiB", growth, [at_most("MiB", growth["file"], 32)])
    grown = python["growth_mib"]
    table.add("the same, in Python", {"file": grown}, [at_most("MiB", grown, 32)])
    return table


def time_info(path):
    """Returns the elapsed and CPU seconds of `vestige info`, and its output."""
    begin = time.perf_counter()
    printed, code, cpu = run_command([sys.executable, "-m", "vestige", "info", "--json", path])
    taken = time.perf_counter() - begin
    assert code == 0, code
    return taken, cpu, json.loads(printed)


def ring_table(folder, quick):
    records = RING_RECORDS // 10 if quick else RING_RECORDS
    ways = {"1 thread": ("ring", 1), "8 at once": ("ring", 8), "1 beside 2,000": ("crowd", 2000)}
    table = Table(f"Recording {records:,} records into 64 MiB", list(ways))
    cpu, kept = {}, {}
    for name, (how, threads) in ways.items():
        path = os.path.join(folder, "ring.vst")
        taken = []
        for _ in range(2 if quick else 7):
            printed, code, seconds = run_program(how, records, threads, path)
            assert code == 0 and json.loads(printed)["lost"] == 0, (how, code, printed)
            taken.append(seconds)
            facts = time_info(path)[2]
            kept[name] = 100 * facts["records"] * 8 / facts["bytes"]
            os.unlink(path)
        cpu[name] = min(taken)
        say(f"{name}: {cpu[name]:.2f} s, {kept[name]:.0f} % kept")
    table.add("CPU, ns a record", {name: taken * 1e9 / records for name, taken in cpu.items()})
    table.add("of the file, % records", kept)
    return table


def torn_table(folder, quick):
    records = TORN_RECORDS // 10 if quick else TORN_RECORDS
    counts = {"1 thread": 1, "8 at once": 8, "10,000 in turn": 10_000}
    table = Table(f"vestige info on a torn file of {records:,} records", list(counts), unit="s")
    taken, cpu = {}, {}
    for name, threads in counts.items():
        path = os.path.join(folder, "torn.vst")
        _, code, _ = run_program("torn", records, threads, path)
        assert code == -signal.SIGKILL, code
        runs = [time_info(path) for _ in range(3 if quick else 15)]
        os.unlink(path)
        facts = runs[0][2]
        assert facts["ended"] == "torn" and facts["threads"] == threads and facts["records"] >= records, facts
        taken[name] = [elapsed for elapsed, _, _ in runs]
        cpu[name] = min(seconds for _, seconds, _ in runs)
        say(f"torn, {name}: {min(taken[name]):.2f} to {max(taken[name]):.2f} s")
    least = {name: min(times) for name, times in taken.items()}
    table.add("elapsed, fastest", least, [at_most("s", max(least.values()), 1)], digits=3)
    table.add("elapsed, slowest", {name: max(times) for name, times in taken.items()}, digits=3)
    table.add("CPU, least", cpu, digits=3)
    return table


def measure(quick):
    if not os.path.exists(PROGRAM):
        sys.exit("build/bench has no record_file; `make bench` builds it")
    with tempfile.TemporaryDirectory(prefix="vestige-bench-") as folder:
        return [cost_table(folder, quick), ring_table(folder, quick), torn_table(folder, quick)]
