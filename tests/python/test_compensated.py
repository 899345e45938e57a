"""Durations without the cost of recording (profile(compensate=True), `vestige run --compensate`)."""

import json

import pytest

import vestige
from vestige.recording import costs

PROGRAM = """\
def leaf(n):
    return n + len("abc")


def main():
    for n in range(300):
        leaf(n)


main()
"""
MODEL = [1, 1, 100, 20, 10, 2, 50, 5, 5]  # in ps: less than a nanosecond each, so that no rounding cuts a result to 0


@pytest.fixture
def known(monkeypatch):
    """Known costs in place of measured costs."""
    monkeypatch.setattr(costs, "_learn", lambda engine, native: list(MODEL))
    monkeypatch.setattr(costs, "_learned", {})


def leaf(n):
    return n + len("abc")


def record(**options):
    with vestige.profile(compensate=True, **options) as profile:
        for n in range(300):
            leaf(n)
    return profile


def test_events_and_averages_tell_what_calls_would_have_taken(known):
    profile = record()
    events = [event for event in profile.events() if event.name.endswith(": leaf")]
    assert len(events) == 300
    assert all(0 <= event.compensated_time_total <= event.cpu_time_total for event in events)
    for averages in (profile.key_averages(), profile.key_averages(group_by_stack_n=1)):
        (row,) = [row for row in averages if row.key.endswith(": leaf")]
        assert row.compensated_time_total == pytest.approx(sum(event.compensated_time_total for event in events))


def test_without_it_nothing_is_known():
    with vestige.profile() as profile:
        leaf(1)
    assert all(event.compensated_time_total is None for event in profile.events())
    assert all(row.compensated_time_total is None for row in profile.key_averages())


@pytest.mark.any_python
@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"min_duration": "1ms"}, "short calls were left out"),
        ({"exclude": ["json"]}, "functions were left out"),
        ({"max_depth": 3}, "deep calls were left out"),
        ({"record_args": ["leaf"]}, "arguments were recorded"),
        ({"with_stack": False}, "calls of Python functions were not recorded"),
    ],
)
def test_where_what_costs_is_not_counted_the_trace_says_why(known, options, why):
    trace = record(**options)._trace()
    assert json.loads(trace.metadata()[costs.METADATA]).startswith(why)
    assert all(row.compensated_ns is None for row in trace.tables(["averages"])["averages"])


def test_what_the_file_took_is_part_of_every_call():
    model = json.loads(costs.add_storage(json.dumps([1, 0, 300_000, 0, 7, *MODEL[1:], 100, 9, 0, 9]), 1.5))
    assert model == [1, 0, 300_000, 0, 7, 1, 3100, 20, 1510, 2, 3050, 5, 1505, 100, 9, 0, 9]
    assert costs.add_storage('"why"', 1.5) == '"why"'


def test_costs_are_learned_with_the_hooks_of_the_engine():
    """The costs depend on the machine. The test checks only that they exist and fit together."""
    model = costs._learn(costs._core.engines[0], True)
    groups = [model[at : at + 4] for at in range(1, len(model), 4)]
    assert model[0] == 1
    assert [group[0] for group in groups][-4:] == [1, 100, 101, 2]
    for kind, cost, inside, error in groups:
        assert cost >= 0 and error >= 0 and inside <= cost, kind
    assert vestige._core.Session(None).recording is False


def program(bare, python, native, share, python_cost, c_cost):
    """Returns a program that takes exactly as long as these costs say."""
    made = costs._Program(lambda: None)
    made.bare, made.calls = bare, [0.0, python, native]
    made.recorded = (bare + python * python_cost + native * c_cost) / (1 - share)
    return made


@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("native", [True, False])
def test_costs_are_those_that_explain_how_much_longer_programs_take(share, native):
    shapes = (
        (90_000, 1000, 10),
        (50_000, 400, 300),
        (70_000, 10, 900),
        (80_000, 700, 1),
        (60_000, 1, 0),
        (20_000, 0, 0),
    )
    made = [program(bare, p, c * native, share, 45.0, 25.0) for bare, p, c in shapes]
    found = costs._explain(dict(zip(costs.AMONG + costs.IDLE, made)), share > 0, native)
    assert found == pytest.approx((share, 45.0, 25.0 * native))


def test_a_cost_is_at_least_that_in_a_loop_and_the_error_covers_it():
    assert costs._group(costs.PYTHON, 20.0, 31.5, 2.0) == [1, 31_500, 2000, 11_025]
    assert costs._group(costs.PYTHON, 50.0, 20.0, 2.0) == [1, 50_000, 2000, 30_000]
    assert costs._group(costs.NATIVE, -5.0, -1.0, -2.0) == [2, 0, -2000, 1000]


def loop(bare_ns, span_ns):
    """Returns a loop whose calls take `bare_ns`, with spans of `span_ns`."""
    made = costs._Program(lambda: None)
    made.bare, made.calls, made.span = 1000 * bare_ns, [0.0, 1000, 0.0], span_ns
    return made


def test_what_functions_do_after_their_exits_is_the_most_that_their_spans_lack():
    empty = loop(20, 15)
    assert costs._end(empty, [loop(200, 195), loop(100, 71), loop(300, 250)], 0.0) == [101, 338_028, 0, 45_000]
    assert costs._end(empty, [loop(200, 390)], 0.5) == [101, 0, 0, 0]
    assert costs._end(empty, [loop(20, 1)], 0.0) == [101, 999_999, 0, 14_000]


@pytest.mark.any_python
def test_reports_and_exports_tell_it(workplace):
    workplace.write("program.py", PROGRAM)
    workplace.trace("--compensate", "program.py")
    shown = workplace.vestige("report", "t.vst", "--compensated").stdout
    assert shown.startswith("times are what calls would have taken without being recorded\n")
    assert "±" in shown
    found = json.loads(workplace.vestige("report", "t.vst", "--compensated", "--format", "json").stdout)
    rows = {row["function"].rpartition(" ")[2]: row for row in found["functions"]}
    assert rows["leaf"]["compensated_error_ns"] > 0
    workplace.vestige("export", "t.vst", "-o", "t.json")
    with open(workplace.path / "t.json") as file:
        spans = [each for each in json.load(file)["traceEvents"] if each.get("name", "").endswith(": leaf")]
    assert len(spans) == 300
    assert all(span["args"]["compensated_error_us"] >= 0 for span in spans)


@pytest.mark.any_python
def test_a_trace_without_costs_says_so_in_one_line(workplace):
    workplace.write("program.py", PROGRAM)
    workplace.trace("program.py")
    failed = workplace.vestige("report", "t.vst", "--compensated", check=False)
    assert failed.returncode == 1
    assert (
        failed.stderr == "vestige: --compensated: what recording cost was not learned; see vestige run --compensate\n"
    )
    failed = workplace.vestige("report", "t.vst", "--compensated", "--gc", check=False)
    assert failed.returncode == 2
