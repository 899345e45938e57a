"""Recordings that begin and end in the middle of calls, and the options that leave out or add calls."""

import os
import sys
import threading

import pytest

from tree import Span, calls, calls_of, expected, load, names, record, short, spans_of, text, threads, tree
from vestige import profile


def leaf():
    pass


def chain_to(trace, name):
    """Returns the names from the root to the first span with this name, along first children."""
    path = []
    for roots in threads(trace).values():
        for root in roots:
            for span in root.walk():
                if short(span.name) == name:
                    while span:
                        path.insert(0, span)
                        span = span.parent
                    return path
    raise AssertionError(f"no span {name}")


# ---- open at start and at stop -----------------------------------------


def test_calls_open_at_start_are_kept_from_the_start_and_marked():
    prof = profile()

    def inner():
        prof.start()
        leaf()

    def middle():
        inner()
        leaf()

    def outer():
        middle()
        prof.stop()

    outer()
    trace = load(prof)
    path = chain_to(trace, "inner")
    assert [short(span.name) for span in path[-3:]] == ["outer", "middle", "inner"]
    assert ["open at start" in span.marks for span in path] == [True] * len(path)
    assert text(path[-2:-1]) == expected(
        """
        middle (open at start)
          inner (open at start)
            leaf
          leaf
        """
    )


def test_calls_open_at_stop_are_kept_to_the_stop_and_marked():
    prof = profile()

    def inner():
        leaf()
        prof.stop()
        leaf()

    def middle():
        inner()
        leaf()

    def outer():
        prof.start()
        middle()

    outer()
    trace = load(prof)
    (middle_span,) = spans_of(trace, "MainThread")
    assert text([middle_span]) == expected(
        """
        middle (open at stop)
          inner (open at stop)
            leaf
        """
    )
    assert chain_to(trace, "outer")[-1].marks == ["open at start", "open at stop"]
    assert middle_span.end >= middle_span.children[0].end


def test_stop_deep_inside_nested_calls_closes_them_all():
    prof = profile()

    def down(n):
        if n:
            down(n - 1)
        else:
            prof.stop()

    prof.start()
    down(200)
    trace = load(prof)
    spans = [span for span in calls(trace) if short(span["name"]) == "down"]
    assert len(spans) == 201
    assert all(span["args"]["open at end"] for span in spans)


def test_start_in_one_function_and_stop_in_another():
    prof = profile()

    def begin():
        prof.start()

    def end():
        prof.stop()

    begin()
    leaf()
    end()
    assert calls_of(load(prof), "MainThread") == expected(
        """
        leaf
        end (open at stop)
        """
    )


def test_start_in_one_thread_and_stop_in_another():
    prof = profile()
    thread = threading.Thread(target=prof.start)
    thread.start()
    thread.join()
    leaf()
    thread = threading.Thread(target=prof.stop, name="stopper")
    thread.start()
    thread.join()
    trace = load(prof)
    assert names(trace)["leaf"] == 1
    assert "open at stop" in calls_of(trace, "stopper")


def test_a_generator_suspended_at_start_is_resumed_as_itself():
    def numbers():
        yield 1
        leaf()
        yield 2

    generator = numbers()
    next(generator)

    def outer():
        next(generator)

    assert tree(outer) == expected(
        """
        outer
          <next>
            numbers
              leaf
        """
    )


def test_a_generator_running_at_start_yields_from_the_middle():
    prof = profile()

    def numbers():
        prof.start()
        leaf()
        yield 1

    def outer():
        for _ in numbers():
            leaf()
        prof.stop()

    outer()
    trace = load(prof)
    outer_span = chain_to(trace, "outer")[-1]
    assert text([outer_span]) == expected(
        """
        outer (open at start) (open at stop)
          numbers (open at start)
            leaf
          leaf
          numbers
        """
    )


def test_a_profile_may_be_stopped_and_started_again():
    prof = profile()

    def first():
        leaf()

    def second():
        leaf()

    prof.start()
    first()
    prof.stop()
    leaf()
    prof.start()
    second()
    prof.stop()
    counts = names(load(prof))
    assert counts == {"first": 1, "second": 1, "leaf": 2}


def test_two_profiles_one_after_the_other_do_not_mix():
    traces = [record(lambda: leaf()), record(lambda: len([]))]
    assert [sorted(names(trace)) for trace in traces] == [["<lambda>", "leaf"], ["<lambda>", "<len>"]]


def test_a_hundred_profiles_in_a_row_are_all_right():
    for number in range(100):
        counts = names(record(lambda n: [leaf() for _ in range(n)], number))
        assert counts.get("leaf", 0) == number


def test_an_empty_profile_is_a_valid_trace():
    prof = profile()
    prof.start()
    prof.stop()
    assert calls_of(load(prof), "MainThread") == ""


def test_every_span_ends_inside_the_recording():
    trace = record(leaf)
    (window,) = [Span(event) for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == "Trace"]
    for span in map(Span, calls(trace)):
        assert window.start <= span.start <= span.end <= window.end


# ---- what is left out --------------------------------------------------


def compiled_function(file, body="pass"):
    space = {"leaf": leaf}
    exec(compile(f"def made(*args):\n    {body}", file, "exec"), space)
    return space["made"]


def test_include_keeps_only_the_files_that_match():
    one, two = compiled_function("/a/one.py"), compiled_function("/a/two.py")

    def outer():
        one()
        two()
        leaf()

    for patterns in (["/a/one.py"], ["one.py"], ["/a/o*"], ["nothing", "on?.py"]):
        full = [event["name"] for event in calls(record(outer, include=patterns))]
        assert full == ["/a/one.py(1): made"], patterns


def test_exclude_leaves_out_the_files_that_match_and_their_c_calls():
    one, two = compiled_function("/a/one.py", "leaf(); len([])"), compiled_function("/b/two.py", "leaf(); len([])")

    def outer():
        one()
        two()

    assert tree(outer, exclude=["/a/*"]) == expected(
        """
        outer
          leaf
          made
            leaf
            <len>
        """
    )


def test_exclude_wins_over_include():
    one = compiled_function("/a/one.py")

    def outer():
        one()

    assert calls(record(outer, include=["*.py"], exclude=["one.py", "test_*", "tree.py"])) != []
    assert not [e for e in calls(record(outer, include=["*"], exclude=["one.py"])) if "one.py" in e["name"]]


def test_what_is_left_out_between_recorded_calls_does_not_break_the_tree():
    skipped = compiled_function("/skip.py", "return args[0](*args[1:])")

    def inner():
        leaf()

    def outer():
        skipped(inner)
        skipped(skipped, inner)
        skipped(sorted, [2, 1])

    assert tree(outer, exclude=["/skip.py"]) == expected(
        """
        outer
          inner
            leaf
          inner
            leaf
        """
    )


def test_our_own_functions_are_not_recorded():
    import vestige

    def outer():
        with vestige.record_function("block"):
            leaf()
        vestige.instant("now", x=1)
        vestige.counter("level", 3)

    trace = record(outer)
    assert names(trace) == {"outer": 1, "leaf": 1}


def test_with_stack_off_leaves_annotations_only():
    import vestige

    def outer():
        with vestige.record_function("block"):
            leaf()

    trace = record(outer, with_stack=False)
    assert calls(trace) == []
    assert [e["name"] for e in trace["traceEvents"] if e.get("cat") == "user_annotation"] == ["block"]


# ---- arguments and return values ---------------------------------------


class Thing:
    def __repr__(self):
        return "Thing()"

    def method(self, x):
        return x


class Hostile:
    def __repr__(self):
        raise ZeroDivisionError


def args_of(trace, name):
    known = {"Python id", "Python parent id", "Ev Idx", "raised", "open at start", "open at end", "arguments"}
    return [
        {
            **event["args"].get("arguments", {}),
            **{key: value for key, value in event["args"].items() if key not in known},
        }
        for event in calls(trace)
        if short(event["name"]) == name
    ]


def test_arguments_and_return_values_of_named_functions_are_recorded():
    def target(a, b=2, *c, d=4, **e):
        return a + b

    def other(a):
        return a

    def outer():
        target(1)
        target(1, 5, 6, d=7, x=8)
        other(1)

    trace = record(outer, record_args=["target"])
    assert args_of(trace, "target") == [
        {"a": "1", "b": "2", "c": "()", "d": "4", "e": "{}", "return": "3"},
        {"a": "1", "b": "5", "c": "(6,)", "d": "7", "e": "{'x': 8}", "return": "6"},
    ]
    assert args_of(trace, "other") == [{}]


def test_a_method_can_be_named_with_its_class():
    def outer():
        Thing().method('é"\n')

    trace = record(outer, record_args=["Thing.method"])
    assert args_of(trace, "method") == [{"self": "Thing()", "x": "'é\"\\n'", "return": "'é\"\\n'"}]


def test_a_repr_that_raises_is_noted_and_hurts_nobody():
    def target(x):
        return x

    def outer():
        assert isinstance(target(Hostile()), Hostile)

    trace = record(outer, record_args=["target"])
    (arguments,) = args_of(trace, "target")
    assert set(arguments) == {"x", "return"}
    assert "repr" in arguments["x"]


def test_the_exception_on_its_way_survives_the_recording_of_arguments():
    def target(x):
        raise KeyError(x)

    def outer():
        with pytest.raises(KeyError, match="7"):
            target(7)

    assert args_of(record(outer, record_args=["target"]), "target") == [{"x": "7"}]


def test_a_long_value_is_cut():
    def target(x):
        pass

    trace = record(target, "é" * 100_000, record_args=["target"])
    (arguments,) = args_of(trace, "target")
    assert 100 < len(arguments["x"]) < 5000
    assert arguments["return"] == "None"


def test_many_arguments_stay_valid_json():
    names_of = [f"a{n}" for n in range(200)]
    space = {}
    exec(f"def target({', '.join(names_of)}): pass", space)

    trace = record(lambda: space["target"](*["x" * 150] * 200), record_args=["target"])
    (arguments,) = args_of(trace, "target")
    assert arguments["a0"].startswith("'xxx")


@pytest.mark.parametrize("name", ["raised", "cut", "resumed", "suspended"])
def test_an_argument_named_like_one_of_our_members_does_not_collide(name):
    space = {}
    exec(f"def target({name}):\n    raise KeyError", space)

    def outer():
        with pytest.raises(KeyError):
            space["target"](1)

    record(outer, record_args=["target"])  # reads the trace with a parser that refuses repeated members


def test_arguments_of_a_generator_are_recorded_at_every_resume():
    def target(x):
        yield x
        yield x + 1

    def outer():
        for _ in target(3):
            pass

    trace = record(outer, record_args=["target"])
    assert [a["x"] for a in args_of(trace, "target")] == ["3", "3", "3"]
    assert [a.get("return") for a in args_of(trace, "target")] == ["3", "4", "None"]


# ---- fork --------------------------------------------------------------


def test_a_child_forked_inside_a_block_runs_on_and_leaves_the_parents_file_alone(tmp_path):
    path = tmp_path / "t.vst"

    def in_child():
        for _ in range(1000):
            leaf()
            len([])

    def outer():
        child = os.fork()
        if child == 0:
            try:
                in_child()
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0
        leaf()

    with profile(output=str(path)) as prof:
        outer()
    counts = names(load(prof))
    assert counts["leaf"] == 1
    assert "in_child" not in counts


def test_a_forked_child_may_record_for_itself(tmp_path):
    path = tmp_path / "child.json"

    def outer():
        child = os.fork()
        if child == 0:
            code = 1
            try:
                prof.stop()
                with profile() as own:
                    leaf()
                own.export_chrome_trace(str(path))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert status == 0

    with profile() as prof:
        outer()
    from tree import assert_nests, read

    trace = read(path)
    assert_nests(trace)
    assert names(trace)["leaf"] == 1
    assert "leaf" not in names(load(prof))


def test_subprocess_and_multiprocessing_work_inside_a_block():
    import multiprocessing
    import subprocess

    results = []

    def outer():
        results.append(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            results.append(pool.map(abs, [-1, -2]))

    record(outer)
    assert results == [b"1\n", [1, 2]]
