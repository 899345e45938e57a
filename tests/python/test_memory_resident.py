"""Reserved address space does not count as memory, and the resident set is shown, too: programs that map much and touch
little.
"""

import csv
import io
import json

import pytest

from histories import TOUCHED, history_of
from vestige._core import Trace, export_memory
from vestige.reading.memory import read_memory

MIB = 1 << 20
GIB = 1 << 30

# mmap.MAP_NORESERVE exists from 3.13 on.
RESERVE = """\
    import mmap

    PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


    def reserve():
        return mmap.mmap(-1, 1 << 30, flags=PRIVATE | 0x4000, prot=mmap.PROT_READ | mmap.PROT_WRITE)


    pages = reserve()
    for at in range(0, 16 << 20, 4096):
        pages[(64 << 20) + at] = 1
    kept = bytes(5 << 20)
    with open("/proc/self/status") as status:
        [peak] = [line.split()[1] for line in status if line.startswith("VmHWM")]
    print(peak)
    pages.close()
    """


@pytest.fixture
def reserving(workplace):
    """A recorded program that reserves 1 GiB and touches 16 MiB."""
    workplace.write("app.py", RESERVE)
    done = workplace.vestige("memory", "-o", "m.vst", "app.py")
    assert done.returncode == 0
    return workplace, done


def test_the_headline_is_what_was_or_could_be_resident(reserving):
    workplace, done = reserving
    peak, beside, *_ = done.stderr.splitlines()
    views = read_memory(Trace(str(workplace.path / "m.vst"))).views
    assert 21 * MIB <= views["peak"][1] < 30 * MIB
    assert peak.startswith(f"peak {views['peak'][1] / MIB:.1f} MiB, ")
    assert beside.endswith("; 1.00 GiB more only reserved")
    assert views["reserved"][1] == GIB
    assert views["leaks"][1] < 16 * MIB


def test_pages_that_were_touched_count_for_the_line_that_reserved_them(reserving):
    workplace, _ = reserving
    history = history_of(workplace.path / "m.vst")
    touched = [event for event in history.allocations if event.flags & TOUCHED]
    assert sum(event.size for event in touched) == pytest.approx(16 * MIB, abs=4 * MIB)  # huge pages
    assert {(history.frames(event)[0].function, history.frames(event)[0].line) for event in touched} == {("reserve", 7)}
    assert not any(event.size == GIB for event in history.events)
    assert not any(event.address in {one.address for one in touched} for event in history.live())


def test_the_peak_of_the_resident_set_is_the_systems(reserving):
    workplace, done = reserving
    summary = read_memory(Trace(str(workplace.path / "m.vst")))
    resident = summary.resident
    told = int(done.stdout) * 1024
    assert resident["peak"] == pytest.approx(told, rel=0.1)
    assert 0 < resident["files"] < resident["sampled"] <= resident["peak"]
    assert summary.resident_timeline
    assert all(point.last_bytes <= point.max_bytes for point in summary.resident_timeline)


def test_reports_name_reservations_apart(reserving):
    workplace, _ = reserving
    text = workplace.vestige("memory-report", "m.vst").stdout
    assert "resident at most " in text
    assert "reserved 1.00 GiB of address space beside" in text
    apart = workplace.vestige("memory-report", "m.vst", "--reserved").stdout
    assert "reserved and not in use, at most: 1.00 GiB in 1 range, by" in apart
    assert "app.py:7 reserve" in apart
    [process] = json.loads(workplace.vestige("memory-report", "m.vst", "--format", "json").stdout)["processes"]
    assert process["reserved"] == {"count": 1, "bytes": GIB}
    assert process["resident"]["peak"] > process["resident"]["files"]
    assert process["stacks"]["reserved"][0]["frames"][0]["line"] == 7
    rows = list(csv.reader(io.StringIO(workplace.vestige("memory-report", "m.vst", "--format", "csv").stdout)))
    assert [row[1:4] for row in rows if row[1] == "reserved"] == [["reserved", "1", str(GIB)]]


def test_files_have_the_resident_set_and_reservations(reserving):
    workplace, _ = reserving
    trace = Trace(str(workplace.path / "m.vst"))
    export_memory([trace], str(workplace.path / "m.html"))
    page = (workplace.path / "m.html").read_text()
    [process] = json.loads(page.partition('id="data">')[2].partition("</script>")[0])["processes"]
    assert process["reserved"]["bytes"] == GIB
    assert process["resident"]["peak"] == read_memory(trace).resident["peak"]
    assert process["residentPoints"]
    assert all(most >= 0 for _, most, _, _ in process["residentPoints"])
    assert sum(process["reservedBytes"]) == GIB
    export_memory([trace], str(workplace.path / "m.folded"), view="reserved")
    [line] = (workplace.path / "m.folded").read_text().splitlines()
    assert line.endswith(f" {GIB}")


def test_the_timeline_has_a_counter_of_the_resident_set(reserving):
    workplace, _ = reserving
    workplace.vestige("export", "m.vst", "-o", "m.json")
    events = json.loads((workplace.path / "m.json").read_text())["traceEvents"]
    counters = {event["name"] for event in events if event["ph"] == "C"}
    assert {"live memory", "resident memory", "resident memory of files"} <= counters
    live = [event["args"]["bytes"] for event in events if event["ph"] == "C" and event["name"] == "live memory"]
    assert max(live) < 30 * MIB


CLOSED = """\
    import mmap

    PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    closed = mmap.mmap(-1, 1 << 30, flags=PRIVATE, prot=0)
    kept = mmap.mmap(-1, 64 << 20, flags=PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    kept.write(bytes(64 << 20))
    kept.madvise(mmap.MADV_DONTNEED, 0, 48 << 20)
    """


def test_what_has_no_access_or_is_given_back_is_reserved(workplace):
    workplace.write("app.py", CLOSED)
    assert workplace.vestige("memory", "-q", "-o", "m.vst", "app.py").returncode == 0
    summary = read_memory(Trace(str(workplace.path / "m.vst")))
    assert summary.views["reserved"].bytes == GIB + 48 * MIB
    assert 128 * MIB <= summary.views["peak"].bytes < 140 * MIB
    assert 16 * MIB <= summary.views["leaks"].bytes < 28 * MIB


def test_a_program_without_reservations_is_told_nothing_of_them(workplace):
    workplace.write("app.py", "kept = bytes(1000)\n")
    done = workplace.vestige("memory", "-o", "m.vst", "app.py")
    assert "reserved" not in done.stderr
    assert "reserved" not in workplace.vestige("memory-report", "m.vst").stdout
    [process] = json.loads(workplace.vestige("memory-report", "m.vst", "--format", "json").stdout)["processes"]
    assert "reserved" not in process


def test_samples_change_no_descriptor_and_start_no_thread(workplace):
    workplace.write(
        "app.py",
        """\
        import os
        import time

        end = time.monotonic() + 0.3
        kept, seen = [], set()
        while time.monotonic() < end:
            kept.append(bytes(1000))
            fd = os.open("/dev/null", os.O_RDONLY)
            seen.add(fd)
            os.close(fd)
        print(len(seen), len(os.listdir("/proc/self/task")))
        """,
    )
    done = workplace.vestige("memory", "-q", "-o", "m.vst", "app.py")
    assert done.stdout == "1 1\n"
    assert len(read_memory(Trace(str(workplace.path / "m.vst"))).resident_timeline) > 1
