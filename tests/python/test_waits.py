"""Calls that only wait: which functions these are on this Python, and reports with and without them."""

import json
import os
import queue
import re
import select
import socket
import subprocess
import threading
import time

import pytest

import vestige as package
from arrow_reader import rows_of
from in_process import vestige
from traces import family, record, record_alone
from vestige import profile
from vestige.reading.waits import CHILD, IO, LOCK, SLEEP

SHORT = 0.002


def spin(count=2000):
    return sum(number * number for number in range(count))


def every_wait():
    """Calls every waiting function, and functions with similar names."""
    lock, pipe, mine = threading.Lock(), os.pipe(), socket.socketpair()
    lock.acquire(timeout=SHORT)
    lock.acquire(timeout=SHORT)
    threading.Event().wait(SHORT)
    try:
        queue.SimpleQueue().get(timeout=SHORT)
    except queue.Empty:
        pass
    time.sleep(SHORT)
    select.select([], [], [], SHORT)
    select.poll().poll(1)
    select.epoll().poll(SHORT)
    mine[0].send(b"x")
    mine[1].recv(1)
    os.write(pipe[1], b"x")
    os.read(pipe[0], 1)
    process = subprocess.Popen(["true"])
    os.waitpid(process.pid, 0)
    ", ".join("ab")
    {}.get(1)
    with open(os.devnull, "rb") as file:
        file.read()


def test_the_table_has_the_names_that_this_python_has(tmp_path):
    path = record(tmp_path / "t.vst", every_wait)
    functions = json.loads(vestige("report", path, "--format", "json").out)["functions"]
    waits = {row["function"]: row["waits_for"] for row in functions if row["waits_for"]}
    for name, kind in {
        "acquire of _thread.lock object": LOCK,
        "get of _queue.SimpleQueue object": LOCK,
        "function sleep": SLEEP,
        "function select": IO,
        "poll of select.poll object": IO,
        "poll of select.epoll object": IO,
        "recv of _socket.socket object": IO,
        "function read": IO,
        "function waitpid": CHILD,
    }.items():
        assert [found for shown, found in waits.items() if f"{name}>" in shown] == [kind], name
    others = {row["function"] for row in functions if not row["waits_for"]}
    assert {"<built-in method join of str object>", "<built-in method get of dict object>"} <= others
    assert "<built-in method read of _io.BufferedReader object>" in others


def busy_and_idle():
    """Four threads that work a little and wait much."""

    def work():
        for _ in range(5):
            spin()
            time.sleep(SHORT)

    threads = [threading.Thread(target=work, name=f"worker {number}") for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return record_alone(tmp_path_factory.mktemp("waits") / "t.vst", busy_and_idle)


def as_json(*words):
    return json.loads(vestige("report", *words, "--format", "json").out)


@pytest.mark.parametrize("view", ["--flat", "--tree", "--threads", "--gc"])
@pytest.mark.parametrize("more", [[], ["--no-waits"]])
def test_nothing_is_more_than_all(trace, tmp_path, view, more):
    family(tmp_path, 2000, 2001)
    for path in (trace, tmp_path / "t.vst"):
        text = vestige("report", path, view, *more, "--min", "0").out
        shares = [float(share) for share in re.findall(r"([\d.]+)%", text)]
        assert all(share <= 100 for share in shares), text
    head = vestige("report", trace, view, *more).out.splitlines()[1]
    wanted = {"--gc": "", "--threads": r"% is of the .* that passed"}.get(
        view, r"% is of .*, the time of 5 threads added up"
    )
    assert re.fullmatch(wanted, head) or view in ("--gc", "--tree")


def test_shares_are_of_the_time_of_all_threads(trace):
    rows = as_json(trace, "--threads")["threads"]
    document = as_json(trace)
    assert document["threads_ns"] == sum(row["time_ns"] for row in rows)
    assert abs(document["threads_ns"] - sum(row["self_ns"] for row in document["functions"])) <= len(rows)
    assert sum(document["waiting_ns"].values()) == sum(row["waiting_ns"] for row in rows)


def test_without_waits_their_time_is_nobodys(trace):
    with_waits, without = as_json(trace), as_json(trace, "--no-waits")
    assert without["without_waits"] and not with_waits["without_waits"]
    assert without["waiting_ns"] == with_waits["waiting_ns"]
    assert set(without["waiting_ns"]) == {SLEEP, LOCK}
    assert without["threads_ns"] == with_waits["threads_ns"] - sum(with_waits["waiting_ns"].values())
    before = {row["function"]: row for row in with_waits["functions"]}
    after = {row["function"]: row for row in without["functions"]}
    assert {name for name in before if name not in after} == {n for n, row in before.items() if row["waits_for"]}
    assert all(row["self_ns"] == before[name]["self_ns"] for name, row in after.items())
    (work,) = [name for name in after if name.endswith((" work", ".work"))]
    (sleep,) = [row for name, row in before.items() if name.endswith("function sleep>")]
    assert after[work]["total_ns"] == before[work]["total_ns"] - sleep["total_ns"]
    assert after[work]["calls"] == before[work]["calls"] == 4


def test_a_tree_without_waits_adds_up(trace):
    rows = as_json(trace, "--tree", "--no-waits")["tree"]
    assert rows and not any(row["waits_for"] for row in rows)
    for row in rows:
        below = sum(other["total_ns"] for other in rows if other["parent"] == row["id"])
        assert row["total_ns"] == row["self_ns"] + below, row


def test_a_report_says_how_much_was_waiting(trace):
    lines = vestige("report", trace).out.splitlines()
    assert re.fullmatch(r"\d+% of it is waiting \((sleep|locks) .*\); see --no-waits", lines[2])
    lines = vestige("report", trace, "--no-waits").out.splitlines()
    assert re.fullmatch(r"waiting is left out: (sleep|locks) .*", lines[2])


@pytest.mark.any_python
def test_the_end_of_a_run_shows_waits_where_they_happen(workplace):
    workplace.write(
        "idle.py",
        """\
        import threading, time
        def idle():
            start = time.perf_counter()
            time.sleep(0.3)
            print(time.perf_counter() - start)
        def busy():
            start = time.thread_time()
            while time.thread_time() - start < 0.6:
                sum(number * number for number in range(1000))
        threads = [threading.Thread(target=idle) for _ in range(3)]
        for thread in threads:
            thread.start()
        busy()
        """,
    )
    result = workplace.vestige("run", "-o", "t.vst", "idle.py")
    said = result.stderr
    tree = [line for line in said.splitlines() if re.match(r" *[\d.]+ \w+ +\d+%  ", line)]
    assert tree[0].endswith("idle.py:1: <module>") and int(tree[0].split()[2].rstrip("%")) > 90
    assert "idle.py:6: busy" in "".join(tree)
    workers = re.findall(r"^  Thread-\d .*: worked .*, waited ([\d.]+) (ms|s), most in sleep$", said, re.MULTILINE)
    waited = sorted(float(number) / {"ms": 1000, "s": 1}[unit] for number, unit in workers)
    slept = sorted(map(float, result.stdout.split()))  # a loaded machine wakes threads late
    assert len(waited) == len(slept) == 3
    assert all(0.3 <= told <= real * 1.01 for told, real in zip(waited, slept, strict=True))


LIBRARY = """\
import time
def run(callback):
    plumbing(callback)
def plumbing(callback):
    more_plumbing(callback)
def more_plumbing(callback):
    first()
    second()
    callback()
def first():
    inner_first()
def inner_first():
    time.sleep(0.2)
def second():
    time.sleep(0.15)
"""


def test_a_library_that_takes_most_of_the_time_is_shown_where_its_time_goes_separate_ways(workplace):
    workplace.write("site-packages/lib.py", LIBRARY)
    source = "import sys; sys.path.insert(0, 'site-packages')\nimport lib, time\ndef mine(): time.sleep(0.05)\nlib.run(mine)\n"
    workplace.write("own.py", source)
    assert workplace.trace("own.py").returncode == 0
    lines = workplace.vestige("report", "t.vst", "--tree").stdout.splitlines()
    tree = [line.split("%  ")[1] for line in lines if re.match(r" *[\d.]+ \w+ +\d+%  ", line)]
    shown = [re.sub(r"^[│├└─ ]*", "", line).partition("  [")[0] for line in tree]
    names = [name.rpartition(": ")[2] for name in shown]
    # On a busy machine, any of the three naps may be the longest.
    assert names[names.index("run") + 1] in ("first", "second", "mine")
    assert names[names.index("first") + 1] == "<built-in function sleep>"
    assert {"second", "mine"} <= set(names)
    assert not {"plumbing", "more_plumbing", "inner_first"} & set(names)


def rests(seconds):
    time.sleep(seconds)


def test_waits_that_go_on_last_until_the_stop(tmp_path):
    for seconds in (0.02, 0.5, 10):  # until the threads wait, even on a busy machine
        lock, (end, other) = threading.Lock(), os.pipe()
        lock.acquire()
        targets = {"locked": lock.acquire, "reads": lambda end=end: os.read(end, 1)}
        threads = [threading.Thread(target=target, name=name) for name, target in targets.items()]
        path = str(tmp_path / f"{seconds}.vst")
        with profile(output=path):
            for thread in threads:
                thread.start()
            rests(seconds)
        lock.release()
        os.write(other, b"x")
        for thread in threads:
            thread.join()
        os.close(end)
        os.close(other)
        with package.open(path) as traces:
            names = {row["thread"]: row["name"] for row in rows_of(traces.thread)}
            waits = {(names[row["thread"]], row["reason"]): row for row in rows_of(traces.wait)}
            (rested,) = [row for row in rows_of(traces.span) if row["name"].endswith("rests")]
        found = [waits.get(key) for key in (("locked", "lock"), ("reads", "io"))]
        if all(row and row["duration_ns"] > seconds * 5e8 for row in found):
            break
    stopped = rested["start_ns"] + rested["duration_ns"]
    assert all(row["start_ns"] + row["duration_ns"] >= stopped for row in found)
