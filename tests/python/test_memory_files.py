"""Traces with memory work like all traces: bounded, packed, recovered, merged, as snapshots, of children; and in
reports.
"""

import json
import subprocess
import sys
from itertools import repeat

import pytest

import vestige
from histories import events_of
from vestige import Trace, memory, profile
from vestige._core import pack, recover, unpack
from vestige.reading.sums import called_functions

MIB = 1 << 20
FREES = 4  # VST_MEMORY_FREES
UNKNOWN = 8  # VST_MEMORY_UNKNOWN
EMPTY = sys.getsizeof(b"")  # larger without the GIL


def allocate(count, size=600):
    for _ in repeat(None, count):  # a range would allocate numbers, too
        bytes(size)


def blocks(path, size):
    """Returns allocations of `size` bytes, made by bytes()."""
    return [event for event in events_of(path) if event.size == size + EMPTY and not event.flags & FREES]


def exported(path, **options):
    target = path.with_suffix(".json")
    Trace(str(path)).export(str(target), all_windows=True, **options)
    return json.loads(target.read_bytes())


def instants(document):
    return [event for event in document["traceEvents"] if event["name"] == "[memory]"]


def run(program, *arguments, cwd=None):
    result = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, cwd=cwd
    )
    assert (result.returncode, result.stderr) == (0, "")
    return [int(word) for word in result.stdout.split()]


# ---- bounds ------------------------------------------------------------


def test_allocations_take_16_bytes_each_and_no_memory_of_the_process(tmp_path):
    grown, size = run(
        """
import os, sys
from itertools import repeat
from vestige import memory

def anonymous():
    with open("/proc/self/smaps_rollup") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return int(fields["Anonymous"].split()[0]) * 1024

def go(count):
    for _ in repeat(None, count):
        bytes(600)

with memory.track(sys.argv[1]):
    go(1000)
    before = anonymous()
    go(400_000)
    grown = anonymous() - before
print(grown, os.stat(sys.argv[1]).st_size)
""",
        tmp_path / "t.vst",
    )
    assert grown <= 4 * MIB
    assert size <= 802_000 * 16 + 2 * MIB
    assert len(blocks(tmp_path / "t.vst", 600)) == 401_000


@pytest.mark.any_python
def test_a_bounded_file_keeps_the_newest_allocations(tmp_path):
    path = tmp_path / "t.vst"
    early = []
    with memory.track(path, max_size="1M"):
        early.append(bytearray(100_000))
        for number in range(100_000):
            bytes(600 + number % 100)
        early.clear()
    assert path.stat().st_size <= 1.2 * MIB
    info = Trace(str(path)).info()
    assert info["dropped"] > 100_000 and info["lost"] == 0
    sizes = [event.size - EMPTY for event in events_of(path) if not event.flags & FREES]
    sizes = [size - 600 for size in sizes if 600 <= size < 700]
    assert 10_000 < len(sizes) < 100_000
    assert all((b - a) % 100 == 1 for a, b in zip(sizes, sizes[1:]))
    assert sizes[-1] == 99
    # A block whose allocation was dropped is known to be freed, and its size is 0.
    document = exported(path)
    assert all(event["args"]["Total Allocated"] >= 0 for event in instants(document))
    assert not any(event["args"]["Bytes"] < -50_000 for event in instants(document))
    assert any(event["name"] == "dropped records" for event in document["traceEvents"])


def test_only_the_last_stretch_may_be_kept(tmp_path):
    import time

    path = tmp_path / "t.vst"
    with memory.track(path, last="50ms"):
        allocate(100_000, 900)
        time.sleep(0.3)
        allocate(100, 800)
    assert len(blocks(path, 800)) == 100
    assert len(blocks(path, 900)) < 100_000
    assert len([e for e in instants(exported(path)) if e["args"]["Bytes"] == 800 + EMPTY]) == 100


# ---- copies ------------------------------------------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "t.vst"
    kept = []
    with profile(output=str(path), profile_memory=True):
        allocate(2000)
        kept.append(bytearray(70_000))
    return path


def test_a_packed_trace_says_the_same_and_unpacks_to_the_same_bytes(path, tmp_path):
    packed, again = str(tmp_path / "packed.vst"), str(tmp_path / "again.vst")
    pack(str(path), packed)
    assert events_of(packed) == events_of(path)
    assert Trace(packed).info()["memory"]
    unpack(packed, again)
    assert (tmp_path / "again.vst").read_bytes() == path.read_bytes()


def test_a_torn_trace_is_recovered_up_to_its_end(path, tmp_path):
    data = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        torn, whole = tmp_path / "torn.vst", tmp_path / "whole.vst"
        torn.write_bytes(data[: int(len(data) * share) // 8 * 8])
        recover(str(torn), str(whole), overwrite=True)
        found = events_of(whole)
        assert found == events_of(torn)
        assert Trace(str(whole)).info()["clean"]
        assert [event[:3] for event in found] == [event[:3] for event in events_of(path)[: len(found)]]


def test_a_snapshot_holds_the_memory_so_far(tmp_path):
    kept = []
    with memory.track(tmp_path / "t.vst"):
        kept.append(bytes(4321))
        vestige.snapshot(str(tmp_path / "s.vst"))
        kept.append(bytes(4322))
    assert len(blocks(tmp_path / "s.vst", 4321)) == 1
    assert blocks(tmp_path / "s.vst", 4322) == []
    assert len(blocks(tmp_path / "t.vst", 4322)) == 1
    at = {
        event["args"]["At"]
        for event in instants(exported(tmp_path / "s.vst"))
        if event["args"]["Bytes"] == 4321 + EMPTY
    }
    assert {place.rpartition(" ")[2] for place in at} == {"test_a_snapshot_holds_the_memory_so_far"}


# ---- several processes -------------------------------------------------

FORKING = """\
import os, subprocess, sys

def parent():
    return bytes(3210)

def child():
    return bytes(6540)

inherited = parent()
pid = os.fork()
if pid == 0:
    del inherited
    child()
    os._exit(0)
os.waitpid(pid, 0)
subprocess.run([sys.executable, "-c", "def grandchild(): return bytes(7650)\\ngrandchild()"])
"""


def test_children_have_files_of_their_own_and_one_timeline(workplace):
    workplace.write("program.py", FORKING)
    result = workplace.vestige("memory", "-q", "-o", "t.vst", "program.py")
    assert (result.returncode, result.stderr) == (0, "")
    files = sorted(workplace.path.glob("*.vst"))
    assert len(files) == 3
    found = {size: [len(blocks(file, size)) for file in files] for size in (3210, 6540, 7650)}
    assert {size: sorted(counts) for size, counts in found.items()} == {size: [0, 0, 1] for size in (3210, 6540, 7650)}
    # A child that frees its parent's blocks did not allocate them.
    (forked,) = [file for file in files if blocks(file, 6540)]
    freed = [each for each in events_of(forked) if each.flags & FREES and not each.flags & UNKNOWN]
    assert not [each for each in freed if each.size == 3243]

    result = workplace.vestige("export", "t.vst", "-o", "all.json")
    assert result.returncode == 0 and result.stderr.count("\n") == 1
    document = json.loads((workplace.path / "all.json").read_bytes())
    assert document["profile_memory"] == 1
    by_size = {event["args"]["Bytes"]: event["pid"] for event in instants(document)}
    assert len({by_size[size + EMPTY] for size in (3210, 6540, 7650)}) == 3
    counters = {event["pid"] for event in document["traceEvents"] if event["name"] == "live memory"}
    assert len(counters) == 3
    numbers = [event["args"]["Ev Idx"] for event in document["traceEvents"] if "Ev Idx" in event.get("args", {})]
    assert len(numbers) == len(set(numbers))


# ---- reports and exports -----------------------------------------------


def report_rows(text):
    """Returns {function: (own bytes, all bytes)}, as shown."""
    rows = {}
    for line in text.splitlines():
        words = line.split()
        if ": " in line:
            rows[line.rpartition(": ")[2]] = (" ".join(words[-6:-4]), " ".join(words[-4:-2]))
    return rows


def test_a_report_has_what_each_function_allocated(workplace):
    workplace.write(
        "program.py",
        """\
        from vestige import profile

        def inner():
            return bytearray(3 << 20)

        def outer():
            first = inner()
            return bytes(1 << 20)

        with profile(output="t.vst", profile_memory=True):
            for _ in range(2):
                outer()
        """,
    )
    assert workplace.python("program.py").returncode == 0
    result = workplace.vestige("report", "t.vst")
    assert (result.returncode, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "self mem  all mem  function" in result.stdout
    rows = report_rows(result.stdout)
    # A call of a class has a span of its own, which allocates.
    assert (rows["inner"][1], rows["outer"][1]) == ("6.00 MiB", "8.00 MiB")
    first = workplace.vestige("report", "t.vst", "--sort", "self-memory").stdout.splitlines()[2]
    assert "6.00 MiB" in first and first.endswith("<built-in type bytearray>")
    first = workplace.vestige("report", "t.vst", "--sort", "calls").stdout.splitlines()[2]
    assert first.endswith((": inner", ": outer", "<built-in type bytearray>", "<built-in type bytes>"))


def test_a_report_without_memory_is_as_before_and_cannot_be_sorted_by_it(workplace):
    workplace.write("program.py", "def f(): pass\nf()\n")
    assert workplace.trace("program.py").returncode == 0
    assert " mem " not in workplace.vestige("report", "t.vst").stdout
    result = workplace.vestige("report", "t.vst", "--sort", "memory")
    assert result.returncode == 1
    assert result.stderr == "vestige: --sort memory: no memory was recorded here; see vestige memory --help\n"
    assert workplace.vestige("report", "t.vst", "--sort", "age").returncode == 2


def test_the_bytes_of_a_function_are_those_of_its_allocations(path):
    named = {known.name.rpartition(": ")[2]: row for known, row in called_functions(Trace(str(path)))}
    outer = named["allocate"]
    assert outer.calls == 1
    assert 2000 * (600 + EMPTY) <= outer.total_bytes < 2000 * (600 + EMPTY) + 1000
    # A call of a class has a span of its own, which allocates.
    inner = named["<built-in type bytes>"]
    assert (inner.calls, inner.self_bytes, inner.allocations) == (2000, 2000 * (600 + EMPTY), 2000)


def test_events_of_memory_may_be_left_out_of_an_export(workplace, path):
    result = workplace.vestige("export", path, "-o", "all.json")
    assert result.returncode == 0 and result.stderr.count("\n") == 1
    result = workplace.vestige("export", path, "-o", "thin.json", "--no-memory-events")
    assert result.returncode == 0 and result.stderr.count("\n") == 1
    whole, thin = (json.loads((workplace.path / name).read_bytes()) for name in ("all.json", "thin.json"))
    assert len(instants(whole)) >= 4000 and instants(thin) == []
    rest = [event for event in whole["traceEvents"] if event["name"] != "[memory]"]
    assert rest == thin["traceEvents"]
    peak = max(event["args"]["Total Allocated"] for event in instants(whole))
    points = [event["args"]["bytes"] for event in rest if event["name"] == "live memory"]
    assert max(points) == peak >= 70_000
    assert points[-1] == instants(whole)[-1]["args"]["Total Allocated"]


def test_events_pair_up_as_tensorboard_pairs_them(path):
    """Checks that every free follows an allocation at its address with its size, and that times never go back."""
    live, last, sum_ = {}, 0.0, 0
    for event in instants(exported(path)):
        args = event["args"]
        assert event["ts"] >= last
        last = event["ts"]
        if args["Bytes"] > 0:
            assert args["Addr"] not in live
            live[args["Addr"]] = args["Bytes"]
        else:
            assert live.pop(args["Addr"]) == -args["Bytes"]
        sum_ += args["Bytes"]
        assert args["Total Allocated"] == sum_
        assert (args["Device Type"], args["Device Id"], args["Total Reserved"]) == (0, -1, 0)
    assert 0 < sum_ == sum(live.values())
