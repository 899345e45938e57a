"""The demo's trace, recorded and exported by the command, read by Perfetto's trace_processor: no event is dropped, and
every call of the known program is present.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from .perfetto import ClientMissing, TraceProcessor, find_engine, find_node, problems

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def demo_counts():
    """Returns the demo's own counts: {function: calls}."""
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    return demo.EXPECTED_CALLS


def vestige(*arguments, cwd):
    command = [sys.executable, "-m", "vestige", *map(str, arguments)]
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result


@pytest.fixture(scope="module", params=["json.gz", "pftrace"])
def processor(request, tmp_path_factory):
    try:
        find_node(), find_engine()
    except ClientMissing as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("demo")
    vestige("run", "-q", "-o", folder / "demo.vst", DEMO, cwd=folder)
    vestige("export", folder / "demo.vst", "-o", folder / f"demo.{request.param}", cwd=folder)
    with TraceProcessor.open(folder / f"demo.{request.param}") as tp:
        yield tp


def rows(tp, sql):
    return [tuple(row.values()) for row in tp.query(sql)]


def test_nothing_is_refused_or_dropped(processor):
    assert problems(processor) == []


def test_every_call_of_the_known_program_is_there(processor):
    found = {}
    sql = (
        "SELECT name, count(*) AS calls FROM slice WHERE name GLOB 'demo.py(*' OR name GLOB '*/demo.py(*' GROUP BY name"
    )
    for name, calls in rows(processor, sql):
        function = name.rpartition("): ")[2]
        found[function] = found.get(function, 0) + calls
    counts = demo_counts()
    assert {name: found.get(name) for name in counts} == counts


def test_every_thread_is_a_track_with_its_name(processor):
    names = {name for (name,) in rows(processor, "SELECT DISTINCT name FROM thread WHERE name IS NOT NULL")}
    assert {"MainThread", "worker 0", "worker 1", "worker 2"} <= names


def test_calls_lie_inside_their_callers(processor):
    """A C function that calls back, and a recursion in a thread."""
    sql = """
        SELECT DISTINCT parent.name FROM slice JOIN slice parent ON slice.parent_id = parent.id
        WHERE slice.name GLOB '*: {}'
    """
    # Turbo shows the calls that sorted() makes back to Python.
    (caller,) = rows(processor, sql.format("by_price"))
    assert caller in {("<built-in function sorted>",), ("<built-in method sort of list object>",)}
    assert {name.rpartition(" ")[2] for (name,) in rows(processor, sql.format("fibonacci"))} == {
        "0",
        "1",
        "2",
        "fibonacci",
    }


def test_annotations_counters_and_instants_arrive(processor):
    slices = dict(rows(processor, "SELECT name, count(*) AS n FROM slice GROUP BY name"))
    assert [slices.get(f"job {index}") for index in range(3)] == [1, 1, 1]
    assert slices.get("caught") == 1
    assert slices.get("Python GC", 0) >= 2
    assert len(rows(processor, "SELECT value FROM counter JOIN counter_track t ON t.id = track_id")) >= 3


def test_no_slice_lasts_a_negative_time_or_is_left_open(processor):
    assert rows(processor, "SELECT name FROM slice WHERE dur < 0") == []
