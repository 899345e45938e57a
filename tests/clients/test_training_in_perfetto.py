"""The training's trace, read by Perfetto's trace_processor: no event is dropped, and operators lie in the calls that
run them.
"""

from collections import Counter

import pytest

from .conftest import RECORDED, document, only
from .perfetto import ClientMissing, TraceProcessor, find_engine, find_node, problems


@pytest.fixture(scope="module")
def path(training):
    try:
        find_node(), find_engine()
    except ClientMissing as missing:
        pytest.skip(str(missing))
    return only(training / "vestige", "worker0.*")


@pytest.fixture(scope="module")
def processor(path):
    with TraceProcessor.open(path) as tp:
        yield tp


@pytest.fixture(scope="module")
def events(path):
    return document(path)["traceEvents"]


def rows(tp, sql):
    return [tuple(row.values()) for row in tp.query(sql)]


def test_nothing_is_refused_or_dropped(processor):
    assert problems(processor) == []


def test_every_span_of_the_file_is_a_slice(processor, events):
    written = Counter((event["cat"], event["name"]) for event in events if event["ph"] == "X")
    found = Counter()
    for category, name, count in rows(processor, "SELECT category, name, count(*) AS n FROM slice GROUP BY 1, 2"):
        found[category, name] = count
    assert {key: found[key] for key in written} == dict(written)


def test_operators_lie_in_modules_and_these_in_steps(processor):
    sql = """
        SELECT DISTINCT a.name FROM slice s JOIN ancestor_slice(s.id) a
        WHERE s.name = 'aten::addmm' AND a.name GLOB '{}'
    """
    assert {name for (name,) in rows(processor, sql.format("ProfilerStep#*"))} == {
        f"ProfilerStep#{step}" for step in RECORDED
    }
    assert {name for (name,) in rows(processor, sql.format("nn.Module: Linear_*"))} == {
        "nn.Module: Linear_0",
        "nn.Module: Linear_1",
        "nn.Module: Linear_2",
    }


def test_arrows_lead_from_forward_to_backward_operators(processor, events):
    written = Counter(event["ph"] for event in events if event.get("cat") == "fwdbwd")
    (count,) = rows(processor, "SELECT count(*) AS n FROM flow JOIN slice s ON s.id = slice_in")[0]
    assert count == written["s"] == written["f"] > 0


def test_steps_that_a_callback_counts_are_slices(path, lightning):
    with TraceProcessor.open(only(lightning, "*.json")) as tp:
        assert problems(tp) == []
        names = rows(tp, "SELECT name FROM slice WHERE name GLOB 'ProfilerStep#*' ORDER BY ts")
    assert [name for (name,) in names] == [f"ProfilerStep#{step}" for step in RECORDED]


def test_no_slice_lasts_a_negative_time_or_is_left_open(processor):
    assert rows(processor, "SELECT name FROM slice WHERE dur < 0") == []


def test_collectives_last_until_their_thread_ends_them(training, events):
    """gloo ends these spans on its own thread."""

    def lengths(found):
        begun = {e["id"]: e["ts"] for e in found if e["name"].startswith("gloo:") and e["ph"] == "b"}
        ended = {e["id"]: e["ts"] for e in found if e["name"].startswith("gloo:") and e["ph"] == "e"}
        whole = [e["dur"] for e in found if e["name"].startswith("gloo:") and e["ph"] == "X"]
        assert begun.keys() == ended.keys()
        return [*whole, *(ended[key] - begun[key] for key in begun)]

    ours = lengths(events)
    theirs = lengths(document(only(training / "torch", "worker0.*"))["traceEvents"])
    assert len(ours) == len(theirs) == len(RECORDED)
    assert all(length > 0 for length in ours)
    assert not [e for e in events if e["name"].startswith("gloo:") and "open at end" in e["args"]]
