"""Durations of calls, requests and tasks: histograms compared with exact quantiles, and shown in reports and tables."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Workplace
from handmade import define, definitions, enter, leave, records, thread, trace
from in_process import vestige
from vestige._core import Trace, merge_histograms
from vestige.cli.report.data import Data
from vestige.reading.durations import Durations

pytestmark = pytest.mark.any_python
EXACT = 128  # the number of values that are stored exactly
SHARES = [0, 0.1, 0.5, 0.9, 0.99, 1]
TIMES = st.lists(st.one_of(st.integers(0, 2**62), st.integers(0, 1000), st.integers(10**6, 10**7)), min_size=1)


def text_of(values):
    return json.dumps({"values": list(values)})


def exact(values, share):
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def width(text):
    """Returns the ratio of the longest to the shortest value of a bucket."""
    histogram = json.loads(text)
    return 2**2 ** -histogram["scale"] if "scale" in histogram else 1


@given(TIMES, st.integers(1, 50))
def test_quantiles_are_exact_of_few_values_and_within_a_bucket_of_many(values, times):
    text, found = merge_histograms([text_of(values)] * times, SHARES)
    values = values * times
    for share, ns in zip(SHARES, found):
        right = exact(values, share)
        if len(values) <= EXACT:
            assert ns == right
        else:
            assert right / width(text) - 1 <= ns <= right * width(text) + 1
    histogram = json.loads(text)
    if "count" in histogram:
        counts = histogram["positive"]["bucketCounts"]
        assert histogram["count"] == len(values) == sum(counts) + histogram["zeroCount"]
        assert (histogram["min"], histogram["max"]) == (min(values), max(values))
        assert len(counts) <= 320


@given(st.lists(st.lists(st.integers(0, 10**12), max_size=300), min_size=1, max_size=5))
def test_it_does_not_matter_in_what_order_histograms_are_merged(parts):
    texts = [text_of(part) for part in parts]
    together, quantiles = merge_histograms(texts, SHARES)
    one_by_one = texts[0]
    for text in texts[1:]:
        one_by_one, _ = merge_histograms([text, one_by_one], [])
    again, same = merge_histograms([one_by_one], SHARES)
    assert quantiles == same
    if "count" in json.loads(together):
        assert again == together
    else:
        assert sorted(json.loads(again)["values"]) == sorted(json.loads(together)["values"])


@pytest.mark.parametrize("text", ["", "{}", '{"values": [1', '{"values": [1]} ', '{"count": 5}', "0"])
def test_what_is_not_a_histogram_is_refused(text):
    with pytest.raises(ValueError, match="not a histogram"):
        merge_histograms([text], [0.5])
    with pytest.raises(ValueError, match="from 0 to 1"):
        merge_histograms([], [1.5])


def call(*times):
    """Returns a trace with one call of f for each duration in ns."""
    words = [word for ns in times for word in (enter(2, 5), leave(2, ns))]
    named = define(1, "main"), define(2, "f"), thread()
    return trace(definitions(*named), records(enter(1, 10), *words, leave(1, 30)))


def test_p50_and_p99_are_those_of_all_calls_of_all_traces(tmp_path):
    (tmp_path / "a.vst").write_bytes(call(*range(1, 100)))
    (tmp_path / "b.vst").write_bytes(call(*range(100, 301)))

    def quantiles(*names):
        files = [tmp_path / name for name in names]
        said = vestige("report", *files, "--columns", "p50,p99,max", "--format", "json")
        return next(
            [row["p50_ns"], row["p99_ns"], row["max_ns"]]
            for row in json.loads(said.out)["functions"]
            if row["function"].endswith(": f")
        )

    assert quantiles("a.vst") == [50, 99, 99]
    p50, p99, longest = quantiles("a.vst", "b.vst")
    assert abs(p50 - 151) <= 3 and abs(p99 - 298) <= 6 and longest == 300


def test_durations_that_no_column_needs_are_not_read(tmp_path, monkeypatch):
    (tmp_path / "a.vst").write_bytes(call(5))
    read, before = [], Data.add

    def add(self, trace, metadata, tables=(), **options):
        read.extend(tables)
        return before(self, trace, metadata, tables, **options)

    monkeypatch.setattr(Data, "add", add)
    vestige("report", tmp_path / "a.vst")
    assert "functions" in read and "duration" not in read
    vestige("report", tmp_path / "a.vst", "--sort", "p99")
    assert "duration" in read


PROGRAM = """\
import asyncio
import vestige
from vestige import record_function


async def answer(number):
    with record_function("GET /orders"):
        await asyncio.sleep(0.05 if number == 7 else 0)


async def main():
    for number in range(20):
        await asyncio.create_task(answer(number))


with vestige.profile(output="t.vst"):
    asyncio.run(main())
"""


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
    place = Workplace(tmp_path_factory.mktemp("durations"))
    place.write("work.py", PROGRAM)
    done = place.python("work.py")
    assert done.returncode == 0, done.stderr
    return place.path / "t.vst"


def test_requests_tasks_and_steps_have_durations(requests):
    said = vestige("report", requests, "--durations", "--format", "json")
    rows = {(row["kind"], row["name"].rpartition(": ")[2]): row for row in json.loads(said.out)["durations"]}
    for key in (("async", "GET /orders"), ("task", "answer")):
        assert rows[key]["count"] == 20
        assert rows[key]["p50_ns"] < 50_000_000 <= rows[key]["max_ns"]
    tasks = json.loads(vestige("report", requests, "--tasks", "--columns", "max", "--format", "json").out)["tasks"]
    assert max(task["latency_max_ns"] for task in tasks) >= 50_000_000


def test_calls_of_a_generator_and_a_function_that_calls_itself_count_once(tmp_path):
    once = enter(1, 10), enter(2, 0), leave(2, 40), enter(2, 10), enter(2, 5), leave(2, 200), leave(2, 5), leave(1, 30)
    named = define(1, "main"), define(2, "f"), thread()
    (tmp_path / "a.vst").write_bytes(trace(definitions(*named), records(*once)))
    rows = Trace(str(tmp_path / "a.vst")).tables(["duration"])["duration"]
    assert [(row.func, row.count) for row in rows] == [(1, 1), (2, 2)]
    assert abs(rows[1].total_ns - 250) <= 2


def test_slow_calls_are_a_share_of_the_time_of_their_threads():
    one = Durations("function", "a.py:1: f", "a.py", 1, "")
    one.add(SimpleNamespace(threads_ns=100, total_ns=40))
    one.add(SimpleNamespace(threads_ns=None, total_ns=40))
    assert one.whole_ns == 140
