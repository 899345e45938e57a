"""`vestige diff --calls`: counts do not depend on the clock, so any change of them is the program's."""

import json
import queue
import sqlite3
import subprocess
import threading

import pytest

import vestige
from conftest import COMMAND, TIMEOUT
from diffs import diff_in
from traces import record
from vestige.cli.diff.command import EXCEEDED
from vestige.cli.diff.counts import steady_name

pytestmark = pytest.mark.any_python


def total_of(database, number):
    return database.execute("select ?", (number,)).fetchone()[0]


def parse(text):
    try:
        return int(text)
    except ValueError:
        return 0


def orders(queries, bad=0):
    """Returns a program that sums up orders by so many queries, and parses some bad numbers."""

    def run():
        database = sqlite3.connect(":memory:")
        total = sum(total_of(database, number) for number in range(queries))
        for _ in range(bad):
            total += parse("one")
        database.close()
        return total

    return run


def waits_for_threads(turns):
    """Returns a program that takes a lock and uses a queue so often: between threads, chance decides how often."""

    def run():
        lock, numbers = threading.RLock(), queue.Queue()
        for _ in range(turns):
            with lock:
                numbers.put(1)
            numbers.get()
        orders(3)()

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("counts")
    for name, program in {
        "few": orders(3),
        "again": orders(3),
        "many": orders(3000),
        "bad": orders(3, bad=40),
        "lock": waits_for_threads(5),
        "locks": waits_for_threads(500),
    }.items():
        with vestige.profile(output=path / f"{name}.vst", exceptions=True):
            program()
    record(path / "plain.vst", orders(3))
    with vestige.profile(output=path / "short.vst", min_duration="1s"):
        orders(3)()
    for side, names in {"main": ("few", "many"), "branch": ("few", "again")}.items():
        (path / side).mkdir()
        for name in names:
            (path / side / f"{name}.vst").write_bytes((path / f"{name}.vst").read_bytes())
    return path


@pytest.fixture
def diff(folder, monkeypatch, capsys):
    return diff_in(folder, monkeypatch, capsys)


def test_equal_runs_have_equal_counts(diff):
    out, err = diff("few.vst", "again.vst", "--calls", "--fail-on", "calls>0", "--fail-on", "queries>0")
    assert "no count differs" in out
    assert "queries  3 → 3, no change" in out
    assert err == ""


def test_a_job_fails_by_the_cause_in_a_sentence(diff):
    out, err = diff("few.vst", "many.vst", "--calls", "--fail-on", "queries>5%", code=EXCEEDED)
    assert "queries  3 → 3,000, 1000x" in out
    (line,) = err.splitlines()
    assert line.startswith("vestige: queries>5%: 3,000 queries, 3 before: ")
    assert line.endswith(": total_of is called 3,000 times, was 3: +2,997 queries")
    assert "test_diff_counts.py:" in line


def test_every_limit_that_is_exceeded_is_told(diff):
    _, err = diff("few.vst", "bad.vst", "--fail-on", "calls>5%", "--fail-on", "exceptions>39", code=EXCEEDED)
    calls, exceptions = err.splitlines()
    assert calls.startswith("vestige: calls>5%: ") and "parse is called 40 times, was 0: +" in calls
    assert exceptions.startswith("vestige: exceptions>39: ")
    assert exceptions.endswith("parse is called 40 times, was 0: +40 exceptions")


@pytest.mark.parametrize("limit", ["queries>2997", "queries>100000%", "imports>0", "operators>0", "time>1000000%"])
def test_a_change_within_the_limit_fails_no_job(diff, limit):
    assert diff("few.vst", "many.vst", "--fail-on", limit)[1] == ""


def test_fewer_calls_fail_no_job(diff):
    out, err = diff("many.vst", "few.vst", "--calls", "--fail-on", "calls>0")
    assert "queries  3,000 → 3, -100%" in out
    assert err == ""


@pytest.mark.parametrize("limit", ["ten", "calls>", "calls", "speed>5%", "calls>-1", "time>5", "calls<5%"])
def test_a_limit_that_cannot_be_read_is_refused(diff, limit):
    assert diff("few.vst", "many.vst", "--fail-on", limit, code=2)[1].startswith(
        f"vestige: --fail-on: not a limit: {limit!r}"
    )


def test_locks_are_shown_but_not_judged(diff):
    out, err = diff("lock.vst", "locks.vst", "--calls", "--fail-on", "calls>0")
    assert err == ""
    assert "counts not judged" in out
    rows = json.loads(diff("lock.vst", "locks.vst", "--calls", "--format", "json")[0])["counts"]
    assert {row["doubt"] for row in rows} == {"depends on threads"}
    names = {row["function"] for row in rows if row["change"] == 495}
    assert {"queue.py: Queue.put", "<built-in method append of collections.deque object>, for threads"} <= names


def test_counts_that_differ_between_runs_of_a_side_are_not_judged(diff):
    out, err = diff("main", "branch", "--calls", "--format", "json", "--fail-on", "queries>0")
    assert err == ""
    doubts = {row["doubt"] for row in json.loads(out)["counts"] if "total_of" in row["function"]}
    assert doubts == {"differs between runs of a side"}


def test_programs_read_the_counts(diff):
    document = json.loads(
        diff("few.vst", "many.vst", "--calls", "--format", "json", "--fail-on", "calls>1", code=EXCEEDED)[0]
    )
    assert document["totals"]["queries"] == {"before": 3, "after": 3000}
    assert len(document["exceeded"]) == 1
    row = next(row for row in document["counts"] if row["what"] == "calls" and row["function"].endswith(": total_of"))
    assert (row["change"], row["before"], row["after"]) == (2997, 3, 3000)
    assert "doubt" not in row
    lines = diff("few.vst", "many.vst", "--calls", "--format", "csv")[0].splitlines()
    assert lines[0].split(",") == ["change", "before", "after", "what", "doubt", "function"]


@pytest.mark.parametrize(
    ("file", "limit", "reason"),
    [
        ("plain.vst", "exceptions>0", "exceptions were not recorded; --exceptions records them"),
        ("plain.vst", "bytes>0", "allocations were not recorded; vestige memory records them"),
        ("short.vst", "calls>0", "calls were left out by their times"),
    ],
)
def test_counts_that_were_not_recorded_are_not_judged(diff, file, limit, reason):
    _, err = diff("few.vst" if limit != "bytes>0" else file, file, "--fail-on", limit, code=1)
    assert err == f"vestige: {file}: {reason}, so --fail-on cannot judge counts\n"


ALLOCATES = """\
def keep(count):
    return [bytes(100) for _ in range(count)]

keep({count})
"""


def test_allocations_are_compared_without_recording_calls(tmp_path):
    for name, count in (("a", 10), ("b", 10), ("more", 5000)):
        (tmp_path / "app.py").write_text(ALLOCATES.format(count=count))
        command = [COMMAND, "memory", "-q", "-o", f"{name}.vst", "app.py"]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=TIMEOUT)
    limits = ["--fail-on", "allocations>5%", "--fail-on", "bytes>5%"]

    def compare(*files):
        command = [COMMAND, "diff", *files, *limits]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT)

    same = compare("a.vst", "b.vst")
    assert (same.returncode, same.stderr) == (0, "")
    more = compare("a.vst", "more.vst")
    assert more.returncode == EXCEEDED
    allocations, size = more.stderr.splitlines()
    assert ": keep: +" in allocations.replace(".<locals>.<listcomp>", "") and allocations.endswith(" allocations")
    assert size.startswith("vestige: bytes>5%: ")


@pytest.mark.parametrize(
    ("name", "steady"),
    [
        ("<function f at 0x7f3a1c2b>", "<function f at 0x*>"),
        ("/tmp/tmpab12cd_9/mod.py: f", "/tmp/tmp*/mod.py: f"),
        ("/tmp/pytest-of-me/pytest-12/a.py: f", "/tmp/pytest-of-me/pytest-*/a.py: f"),
        ("<graph_3f2504e0-4f89-11d3-9a0c-0305e82c3301>", "<graph_*>"),
        ("/proc/4711/fd: f", "/proc/*/fd: f"),
        ("app.py: template", "app.py: template"),
    ],
)
def test_names_have_no_addresses_ids_or_temporary_folders(name, steady):
    assert steady_name(name) == steady


PROGRAM = """\
import random

def leaf(text):
    return len(text)

words = {"a", "b", "c", "d", "e"}
first = next(iter(words))  # differs by the hash seed
for word in sorted(words):
    leaf(word)
random.random()
"""


def test_separate_processes_with_other_hash_seeds_have_equal_counts(tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    for name in ("a", "b"):
        command = [COMMAND, "run", "-q", "-o", f"{name}.vst", "app.py"]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=TIMEOUT)
    command = [COMMAND, "diff", "a.vst", "b.vst", "--calls", "--fail-on", "calls>0", "--fail-on", "imports>0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
