"""The helper that reads trees for all tests notices errors in them."""

import json

import pytest

from tree import assert_nests, calls_of, expected, read, short


def span(name, ts, dur, **args):
    return {"ph": "X", "cat": "python_function", "name": name, "pid": 1, "tid": 2, "ts": ts, "dur": dur, "args": args}


NAMED = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "MainThread"}}


def test_overlapping_spans_are_refused_and_touching_ones_are_not():
    assert_nests({"traceEvents": [span("a", 0, 10), span("b", 10, 5), span("c", 10, 5)]})
    with pytest.raises(AssertionError, match="overlaps"):
        assert_nests({"traceEvents": [span("a", 0, 10), span("b", 9.999, 5)]})


def test_a_negative_duration_is_refused():
    with pytest.raises(AssertionError):
        assert_nests({"traceEvents": [span("a", 0, -0.001)]})


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1, "a": 2}', '{"a": 1', '{"a": "\n"}', "[1,]"])
def test_what_is_not_strictly_json_is_refused(text, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(text)
    with pytest.raises((AssertionError, json.JSONDecodeError)):
        read(path)


def test_a_tree_is_read_from_times_and_marks():
    events = [
        NAMED,
        span("x.py(1): outer", 0, 100, **{"open at start": 1}),
        span("x.py(2): f.<locals>.inner", 10, 50, raised=1),
        span("<built-in method append of list object>", 20, 1),
        span("<built-in function len>", 70, 1),
    ]
    assert calls_of({"traceEvents": events}) == expected(
        """
        inner (raised)
          <list.append>
        <len>
        """
    )


@pytest.mark.parametrize(
    ("name", "shortened"),
    [
        ("a/b.py(3): f", "f"),
        ("a (1).py(3): C.m", "m"),
        ("x.py(3): f.<locals>.<lambda>", "<lambda>"),
        ("<built-in function sorted>", "<sorted>"),
        ("<built-in method sub of re.Pattern object>", "<re.Pattern.sub>"),
        ("Python GC", "Python GC"),
    ],
)
def test_names_are_shortened(name, shortened):
    assert short(name) == shortened
