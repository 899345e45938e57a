"""Analyses of recorded allocations: the numbers, the command, and files for other tools."""

import csv
import gzip
import io
import json
import pickle
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vestige
from conftest import COMMAND
from histories import FREES, UNKNOWN, History, is_ours
from on_terminal import on_terminal
from vestige import _core, memory
from vestige.reading.memory import read_memory

pytestmark = pytest.mark.any_python

PROGRAM = """\
    import threading

    keep = [None] * 40


    def leak(n):
        return bytes(n)


    def churn():
        for _ in range(50):
            bytes(2000)


    def main():
        for i in range(40):
            keep[i] = leak(7000)
        churn()
        big = bytes(3_000_000)
        del big
        worker = threading.Thread(target=churn, name="a worker")
        worker.start()
        worker.join()


    main()
    """
LEAK_LINE, CHURN_LINE, BIG_LINE = 7, 12, 19
EACH = sys.getsizeof(bytes(7000))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """One recording of the program, for all tests that only read it."""
    from conftest import Workplace

    workplace = Workplace(tmp_path_factory.mktemp("recorded"))
    workplace.write("app.py", PROGRAM)
    result = workplace.vestige("memory", "-q", "-o", "m.vst", "app.py")
    assert result.returncode == 0, result.stderr
    return workplace


def summary_of(path, **options):
    return read_memory(vestige.Trace(str(path)), **{"rows": -1, **options})


def at_line(summary, view, line, file="app.py"):
    """Returns (count, bytes) of a line."""
    for amount, frame in summary.lines[view]:
        if (frame.shown_file, frame.line) == (file, line):
            return amount.count, amount.bytes
    return (0, 0)


# ---- truth -----------------------------------------------------------------


def test_a_known_leak_has_its_exact_count_and_bytes(recorded):
    summary = summary_of(recorded.path / "m.vst")
    assert at_line(summary, "leaks", LEAK_LINE) == (40, 40 * EACH)
    rows = [(amount, frames) for amount, frames in summary.stacks["leaks"] if frames[0].line == LEAK_LINE]
    assert [[frame.function for frame in frames] for _, frames in rows] == [["leak", "main", "<module>"]]
    assert rows[0][0] == (40, 40 * EACH, 0)


def test_a_view_has_its_first_rows_and_says_how_many_there_are(recorded):
    summary, few = summary_of(recorded.path / "m.vst"), summary_of(recorded.path / "m.vst", rows=2)
    for whole, cut, counts in (
        (summary.stacks, few.stacks, few.stack_counts),
        (summary.lines, few.lines, few.line_counts),
    ):
        assert any(len(rows) > 2 for rows in whole.values())
        for view, rows in whole.items():
            assert cut[view] == rows[:2] and counts[view] == len(rows)
            assert [amount.bytes for amount, _ in rows] == sorted((amount.bytes for amount, _ in rows), reverse=True)


def test_the_peak_is_held_by_the_lines_that_held_it(recorded):
    summary = summary_of(recorded.path / "m.vst")
    size = sys.getsizeof(bytes(3_000_000))
    assert at_line(summary, "peak", BIG_LINE) == (1, size)
    assert at_line(summary, "peak", LEAK_LINE) == (40, 40 * EACH)
    assert size + 40 * EACH <= summary.views["peak"].bytes < 1.5 * (size + 40 * EACH)
    assert at_line(summary, "leaks", BIG_LINE) == (0, 0)


def test_what_is_freed_at_once_is_temporary_on_every_thread(recorded):
    summary = summary_of(recorded.path / "m.vst")
    assert at_line(summary, "temporary", CHURN_LINE) == (100, 100 * sys.getsizeof(bytes(2000)))
    assert at_line(summary, "temporary", LEAK_LINE)[1] < EACH
    assert len(summary.threads) == 2


def test_the_profilers_own_frames_are_not_shown(recorded):
    for _, frames in summary_of(recorded.path / "m.vst").stacks["total"]:
        assert not [frame for frame in frames if is_ours(frame[1]) or frame[1].endswith("bin/vestige")]


def test_native_frames_are_named_and_stand_where_they_were_called(workplace):
    workplace.write("app.py", "def f():\n    return bytearray(3_000_000)\n\n\nkeep = f()\n")
    assert workplace.vestige("memory", "-q", "--native", "-o", "m.vst", "app.py").returncode == 0
    summary = summary_of(workplace.path / "m.vst")
    _, frames = summary.stacks["peak"][0]
    if not any(frame.native for _, each in summary.stacks["total"] for frame in each):
        pytest.skip("built without libunwind: there are no native frames")
    names = [frame[0] for frame in frames]
    at = names.index("f")
    assert at > 0
    assert all(frame[4] for frame in frames[:at])
    assert [frame[0] for frame in frames if not frame[4]] == ["f", "<module>"]
    assert names[-1] == "<module>"  # frames that started the program are not shown
    assert not [name for name in names if "_PyEval_EvalFrameDefault" in name]
    assert at_line(summary, "peak", 2)[1] >= 3_000_000


def model(events, k):
    """Brute force: adds up the live blocks after every event."""
    live, most, held = {}, 0, {}
    recent, temporary, total = {}, Counter(), Counter()
    for event in events:
        last = recent.setdefault(event.thread, [])
        if event.flags & UNKNOWN:
            continue
        if event.flags & FREES:
            del live[event.serial]
            if event.serial in last:
                temporary[event.stack] += event.size
        else:
            live[event.serial] = (event.size, event.stack)
            total[event.stack] += event.size
            last.append(event.serial)
            del last[:-k]
        bytes_now = sum(size for size, _ in live.values())
        if bytes_now > most:
            most, held = bytes_now, dict(live)
    return {
        "peak": (len(held), sum(size for size, _ in held.values())),
        "leaks": (len(live), sum(size for size, _ in live.values())),
        "temporary": sum(temporary.values()),
        "total": sum(total.values()),
        "sizes": Counter(e.size.bit_length() for e in events if not e.flags & FREES),
    }


OPERATIONS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5000)), max_size=60)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(operations=OPERATIONS, k=st.integers(1, 5))
def test_random_programs_come_to_what_a_model_says(tmp_path_factory, operations, k):
    path = tmp_path_factory.mktemp("random") / "m.vst"
    places = [None] * 10
    with memory.track(path, native_allocators=False):
        for place, size in operations:
            places[place] = bytes(size) if places[place] is None else None
    trace = vestige.Trace(str(path))
    expected = model(History(trace).events, k)
    summary = read_memory(trace, rows=-1, temporary=k)
    views = summary.views
    assert views["peak"][:2] == expected["peak"]
    assert views["leaks"][:2] == expected["leaks"]
    assert views["temporary"][1] == expected["temporary"]
    assert views["total"][1] == expected["total"]
    assert {size.least.bit_length(): size.count for size in summary.sizes} == expected["sizes"]
    assert max((point.max_bytes for point in summary.timeline), default=0) == views["peak"][1]
    for view in views:
        for table in (summary.stacks, summary.lines):
            assert sum(amount.bytes for amount, _ in table[view]) == views[view].bytes
            assert sum(amount.count for amount, _ in table[view]) == views[view].count


def test_what_many_threads_leak_is_counted_by_thread_and_line(tmp_path):
    kept = []

    def leak():
        kept.append(bytes(9000))

    path = tmp_path / "m.vst"
    with memory.track(path):
        threads = [threading.Thread(target=leak, name=f"leaking {i}") for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    summary = summary_of(path)
    leaks = [amount.bytes for amount, frames in summary.stacks["leaks"] if frames[0].function.endswith("leak")]
    assert sum(leaks) >= 12 * sys.getsizeof(bytes(9000))
    allocated = [thread.allocated for thread in summary.threads]
    assert len(allocated) == 13
    assert all(amount[1] >= 9000 for amount in allocated)
    assert [sum(part) for part in zip(*allocated)][:2] == list(summary.views["total"][:2])


def test_estimates_from_samples_are_right_within_their_error(tmp_path):
    path = tmp_path / "m.vst"
    rng = random.Random(1)
    sizes = [rng.choice((100, 600, 3000)) for _ in range(20000)]
    kept = [None] * len(sizes)
    with memory.track(path, sample=8000, native_allocators=False):
        for i, size in enumerate(sizes):
            kept[i] = bytes(size)
    summary = summary_of(path)
    true = sum(sys.getsizeof(one) for one in kept)
    count, estimate, error = summary.views["leaks"]
    assert summary.facts["sampled"]
    assert 0 < error < true / 10
    assert abs(estimate - true) < 6 * error + 0.02 * true  # other live blocks are few
    assert abs(count - len(kept)) < 6 * summary.count_errors["leaks"] + 500
    assert summary.views["temporary"] == (0, 0, 0)


# ---- the command -----------------------------------------------------------


def report(workplace, *args, code=0):
    result = workplace.vestige("memory-report", *args)
    assert result.returncode == code, result.stderr
    return result.stdout if code == 0 else result.stderr


def test_the_report_is_readable_in_80_columns(recorded):
    text = on_terminal([COMMAND, "memory-report", "m.vst"], columns=80, cwd=recorded.path)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("high-water mark: ", "alive at the end: ", "temporary (freed ", "sizes", "lines that allocated most"):
        assert part in text
    assert "app.py:7 leak" in text
    assert "by main app.py:17 < <module> app.py:26" in text


def test_the_report_draws_what_was_in_use_over_time(tmp_path):
    with memory.track(tmp_path / "m.vst"):
        kept = [bytearray(1_000_000) for _ in range(8)]
        time.sleep(0.2)
        kept.clear()
        time.sleep(0.2)
        bytes(2000)
    lines = vestige_said("memory-report", str(tmp_path / "m.vst"))
    at = next(number for number, line in enumerate(lines) if line.startswith("in use, over "))
    assert re.search(r", at most 7\.\d\d MiB:$", lines[at])
    curve = lines[at + 1].strip()
    assert len(curve) == 60 and curve[15] == "█" and curve[50] == "▁"
    assert not any(
        line.startswith("in use") for line in vestige_said("memory-report", "--leaks", str(tmp_path / "m.vst"))
    )


def vestige_said(*words):
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, check=True).stdout.splitlines()


def test_parts_of_the_report_can_be_asked_for(recorded):
    text = report(recorded, "m.vst", "--leaks", "-n", "1")
    assert "high-water" not in text
    assert "app.py:7 leak" in text
    assert "more stacks" in text
    assert "allocated 3 more" in report(recorded, "--temporary", "3", "m.vst")
    assert "allocated again" in report(recorded, "--temporary", "m.vst")
    assert "MainThread" in report(recorded, "m.vst", "--threads")
    assert "PyObject_Malloc" in report(recorded, "m.vst", "--allocators")


def test_the_report_as_json_and_csv_and_the_exports_agree(recorded):
    document = json.loads(report(recorded, "m.vst", "--format", "json", "-n", "100000"))["processes"][0]
    rows = list(csv.DictReader(io.StringIO(report(recorded, "m.vst", "--format", "csv"))))
    report(recorded, "m.vst", "-o", "m.csv", "--force")
    report(recorded, "m.vst", "-o", "m.json.gz", "--force")
    with open(recorded.path / "m.csv", newline="") as file:
        events = list(csv.DictReader(file))
    exported = json.loads(gzip.decompress((recorded.path / "m.json.gz").read_bytes()))["processes"][0]

    # Compute the results again from the rows of the CSV file.
    live, now, most, leaks = {}, 0, 0, Counter()
    for event in events:
        if event["action"] == "alloc":
            live[event["serial"]] = event
            now += int(event["size"])
        elif event["serial"] != "0":
            now -= int(live.pop(event["serial"])["size"])
        assert now == int(event["live_bytes"])
        most = max(most, now)
    for event in live.values():
        leaks[event["stack"]] += int(event["size"])
    assert document["peak"]["bytes"] == exported["peak"]["bytes"] == most
    assert document["leaks"] == {"count": len(live), "bytes": sum(leaks.values())} == exported["leaks"]
    assert {row["stack"]: int(row["bytes"]) for row in rows if row["part"] == "leaks"} == leaks
    from_json = {";".join(map(place, reversed(row["frames"]))): row["bytes"] for row in document["stacks"]["leaks"]}
    assert from_json == leaks

    # Compute the results again from the JSON file.
    columns = exported["columns"]
    total = Counter()
    for row in exported["events"]:
        event = dict(zip(columns, row))
        if event["action"] == "alloc":
            total[event["stack"]] += event["size"]
    assert sum(total.values()) == document["total"]["bytes"]
    heaviest = max(total, key=lambda stack: total[stack])
    assert exported["frames"][exported["stacks"][heaviest][1]][2] == BIG_LINE


def place(frame):
    return f"{frame['file']}:{frame['line']} {frame['function']}" if frame["file"] else frame["function"]


def test_folded_stacks_are_those_of_the_part_asked_for(recorded):
    report(recorded, "m.vst", "-o", "m.folded", "--leaks", "--force")
    lines = dict(line.rsplit(" ", 1) for line in (recorded.path / "m.folded").read_text().splitlines())
    assert lines["<module> (app.py:26);main (app.py:17);leak (app.py:7)"] == str(40 * EACH)


def test_wrong_use_is_told_in_one_line(recorded, workplace):
    assert report(recorded, "m.vst", "-o", "x.txt", code=2) == (
        "vestige: x.txt: no format has this suffix; there are .html, .pickle, .json, .csv, .folded\n"
    )
    report(recorded, "m.vst", "-o", "there.csv")
    assert "already exists; --force" in report(recorded, "m.vst", "-o", "there.csv", code=2)
    assert "-n must be at least 1" in report(recorded, "m.vst", "-n", "0", code=2)
    assert "--temporary must be from 1 to 65536" in report(recorded, "m.vst", "--temporary=0", code=2)
    assert "No such file" in report(recorded, "absent.vst", code=1)
    workplace.write("quiet.py", "pass\n")
    workplace.trace("quiet.py")
    assert report(workplace, "t.vst", code=1) == (
        "vestige: t.vst: there are no records of memory in it; `vestige memory script.py` records them\n"
    )


def test_packed_and_torn_files_are_reported_too(recorded, workplace):
    data = (recorded.path / "m.vst").read_bytes()
    whole = report(recorded, "m.vst")
    (workplace.path / "m.vst").write_bytes(data)
    assert workplace.vestige("pack", "m.vst").returncode == 0
    packed = report(workplace, "m.vst")
    assert packed == whole
    workplace.write("killed.py", "import os, signal\nkeep = bytes(123456)\nos.kill(os.getpid(), signal.SIGKILL)\n")
    workplace.vestige("memory", "-q", "-o", "torn.vst", "killed.py")
    text = report(workplace, "torn.vst")
    assert "torn.vst is not finished: the end is where its records end" in text
    assert "killed.py:2 <module>" in text


def test_a_bounded_recording_says_what_is_missing(workplace):
    workplace.write("churn.py", "for i in range(300000):\n    bytes(600)\n")
    workplace.vestige("memory", "-q", "--max-size", "1M", "-o", "b.vst", "churn.py")
    text = report(workplace, "b.vst")
    assert "dropped to stay within the limit of size or time" in text
    assert "churn.py:2 <module>" in text


def test_processes_of_a_family_are_reported_together(workplace):
    workplace.write(
        "family.py",
        """\
        import os
        keep = bytes(50_000)
        if os.fork() == 0:
            more = bytes(70_000)
            os._exit(0)
        os.wait()
        """,
    )
    workplace.vestige("memory", "-q", "-o", "f.vst", "family.py")
    text = report(workplace, "f.vst")
    assert "family.py:4 <module>" in text
    assert "family.py:2 <module>" in text
    documents = json.loads(report(workplace, "f.vst", "--format", "json"))["processes"]
    assert len(documents) == 2
    report(workplace, "f.vst", "-o", "f.pickle")
    with open(workplace.path / "f.pickle", "rb") as file:
        assert len(pickle.load(file)["device_traces"]) == 2
    alone = report(workplace, "f.vst", "--no-children")
    assert "family.py:4 <module>" not in alone


# ---- the pickle, and what is refused ---------------------------------------------


def test_the_pickle_holds_each_event_and_what_is_live(recorded):
    report(recorded, "m.vst", "-o", "m.pickle", "--force")
    with open(recorded.path / "m.pickle", "rb") as file:
        snapshot = pickle.load(file)
    summary = summary_of(recorded.path / "m.vst")
    (events,) = snapshot["device_traces"]
    assert sum(event["size"] for event in events if event["action"] == "alloc") == summary.views["total"].bytes
    assert sum(event["action"] == "free_completed" for event in events) == summary.facts["frees"]
    assert [event["time_us"] for event in events] == sorted(event["time_us"] for event in events)
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    active = [block for block in blocks if block["state"] == "active_allocated"]
    assert sum(block["size"] for block in active) == summary.views["leaks"].bytes
    for segment in snapshot["segments"]:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
    leaked = [block for block in active if [frame["line"] for frame in block["frames"]][:1] == [LEAK_LINE]]
    assert len(leaked) == 40
    assert leaked[0]["frames"][0] == {"name": "leak", "filename": str(recorded.path / "app.py"), "line": LEAK_LINE}


def test_history_of_the_running_process_is_exported(tmp_path):
    memory.start()
    kept = bytes(54321)
    memory.export_memory_history(tmp_path / "m.folded")
    memory.stop()
    del kept
    assert "test_memory_report.py" in (tmp_path / "m.folded").read_text()
    with pytest.raises(ValueError, match="suffix"):
        memory.export_memory_history(tmp_path / "m.txt")


def test_bad_arguments_of_the_binding_are_refused(recorded):
    trace = vestige.Trace(str(recorded.path / "m.vst"))
    with pytest.raises(ValueError, match="temporary must be from 1 to"):
        read_memory(trace, temporary=0)
    with pytest.raises(ValueError, match="view must be"):
        _core.export_memory([trace], "x.folded", view="all")
    with pytest.raises(ValueError, match="unknown format"):
        _core.export_memory([trace], "x.txt")
    with pytest.raises(ValueError, match="no traces"):
        _core.export_memory([], "x.csv")
    with pytest.raises(TypeError, match="not a Trace"):
        _core.export_memory([1], "x.csv")


def test_memory_ends_with_the_lines_that_held_most(tmp_path):
    (tmp_path / "hold.py").write_text(
        "def hold(size):\n    return bytearray(size)\nkept = [hold(1_000_000) for _ in range(9)]\nmore = b'x' * 3_000_000\n"
    )
    command = [sys.executable, "-m", "vestige", "memory", "-o", "m.vst", "hold.py"]
    lines = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stderr.splitlines()
    held = [line for line in lines if " of the peak: " in line]
    assert len(held) == 3
    assert held[0].split() == ["8.58", "MiB", "of", "the", "peak:", "hold.py:2:", "hold"]
    assert "hold.py:4: <module>" in held[1]
    assert lines[-1] == "vestige memory-report m.vst"
