"""A recording with memory, read by Perfetto's trace_processor: nothing is refused, every memory event has its numbers,
and the counter has the peak.
"""

import json
import subprocess
import sys

import pytest

from .perfetto import ClientMissing, TraceProcessor, find_engine, find_node, problems

PROGRAM = """\
from vestige import profile

def load():
    return bytearray(5_000_000)

def work():
    kept = [load(), load()]
    del kept
    return [bytes(1000 + number) for number in range(100)]

with profile(output="t.vst", profile_memory=True) as prof:
    kept = work()
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    try:
        find_node(), find_engine()
    except ClientMissing as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("memory")
    (folder / "program.py").write_text(PROGRAM)
    for command in (
        ["program.py"],
        ["-m", "vestige", "export", "t.vst", "-o", "t.json"],
        ["-m", "vestige", "export", "t.vst", "-o", "thin.json", "--no-memory-events"],
    ):
        subprocess.run([sys.executable, *command], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module", params=["t.json", "thin.json"])
def processor(request, exported):
    with TraceProcessor.open(exported / request.param) as tp:
        tp.thin = request.param == "thin.json"
        yield tp


def events(path):
    return json.loads(path.read_bytes())["traceEvents"]


def rows(tp, sql):
    return [tuple(row.values()) for row in tp.query(sql)]


def test_nothing_is_refused_or_dropped(processor):
    assert problems(processor) == []


def test_the_counter_of_live_memory_has_the_peak(processor):
    sql = """
        SELECT max(value) AS peak, count(*) AS points FROM counter JOIN counter_track track ON track.id = track_id
        WHERE track.name GLOB 'live memory*'
    """
    ((peak, points),) = rows(processor, sql)
    assert 10_000_000 <= peak <= 11_000_000
    assert points >= 3


def test_every_event_of_memory_is_there_with_its_numbers(processor, exported):
    found = rows(
        processor,
        """
        SELECT extract_arg(arg_set_id, 'args.Bytes') AS bytes, extract_arg(arg_set_id, 'args.Total Allocated') AS total
        FROM slice WHERE name = '[memory]' ORDER BY id
        """,
    )
    memory = [event["args"] for event in events(exported / "t.json") if event["name"] == "[memory]"]
    assert len(memory) >= 104
    expected = [] if processor.thin else [(args["Bytes"], args["Total Allocated"]) for args in memory]
    assert sorted(found) == sorted(expected)


def test_an_allocation_shows_its_line(exported):
    memory = [event["args"] for event in events(exported / "t.json") if event["name"] == "[memory]"]
    loads = [args for args in memory if args["Bytes"] > 5_000_000]
    assert [args["At"] for args in loads] == ["program.py:4 load"] * 2
    assert sum(args["Bytes"] < -5_000_000 for args in memory) == 2


def test_spans_tell_what_they_allocated(exported):
    spans = {
        event["name"].rpartition(": ")[2]: event["args"] for event in events(exported / "t.json") if event["ph"] == "X"
    }
    assert 5_000_000 <= spans["load"]["Allocated Bytes"] < 5_100_000
    assert spans["work"]["Allocated Bytes"] > 10_000_000 + 100_000
    assert spans["work"]["Self Allocated Bytes"] < 5_000_000
