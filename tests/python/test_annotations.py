"""record_function, instant and counter: their records in the trace, and that they never disturb the program."""

import asyncio
import contextlib
import functools
import inspect
import json
import math
import pickle
import threading

import pytest

import vestige
from tree import load, names
from vestige import counter, instant, profile, record_function
from vestige.render import render


def events(prof, name=None, phase="X"):
    return [event for event in load(prof)["traceEvents"] if event["ph"] == phase and name in (None, event["name"])]


def annotations(prof):
    """Returns names in the order in which the spans began. A span that outlives the call in which it began is a pair of
    events, b and e.
    """
    found = [event for event in load(prof)["traceEvents"] if event.get("cat") == "user_annotation"]
    begun = sorted((event for event in found if event["ph"] in "Xb"), key=lambda event: event["ts"])
    ended = sum(event["ph"] in "Xe" for event in found)
    assert ended == len(begun)
    return [event["name"] for event in begun]


def annotated(function):
    """Returns the annotations made while the function ran."""
    with profile() as prof:
        function()
    return annotations(prof)


# ---- record_function ---------------------------------------------------


def test_a_block_is_a_span_around_its_calls():
    def inside():
        pass

    with profile() as prof, record_function("block") as block:
        assert isinstance(block, record_function)
        inside()
    [span] = events(prof, "block")
    assert span["cat"] == "user_annotation"
    [call] = [event for event in events(prof) if event["name"].endswith("inside")]
    assert span["ts"] <= call["ts"] and call["ts"] + call["dur"] <= span["ts"] + span["dur"]


def test_a_span_has_the_name_and_the_argument_it_was_given():
    odd = 'a "quoted" name\\ with\nlines, π and \0'
    with profile() as prof, record_function(odd, 'an "argument"'):
        pass
    [span] = events(prof, odd)
    assert span["args"]["args"] == 'an "argument"'


def test_spans_nest_and_one_object_may_be_used_again():
    def run():
        span = record_function("again")
        with record_function("outer"):
            for _ in range(2):
                with span:
                    pass

    assert annotated(run) == ["outer", "again", "again"]


def test_a_span_ends_when_an_exception_leaves_it():
    with profile() as prof, pytest.raises(KeyError), record_function("raising"):
        raise KeyError
    assert len(events(prof, "raising")) == 1


@pytest.mark.parametrize("wrong", [None, 5, b"bytes", len])
def test_a_name_must_be_a_string(wrong):
    with pytest.raises(TypeError):
        record_function(wrong)
    with pytest.raises(TypeError, match="args must be a str"):
        record_function("name", args=5)
    with pytest.raises(TypeError, match="name must be a str"):
        instant(wrong)
    with pytest.raises(TypeError, match="name must be a str"):
        counter(wrong, 1)


def test_spans_that_cross_a_start_or_a_stop_do_no_harm():
    prof = profile()
    with record_function("before"):
        prof.start()
    with record_function("after"):
        prof.stop()
    found = {event["name"] for event in events(prof)}
    assert "before" not in found
    assert "after" in found


# ---- as a decorator ----------------------------------------------------


def test_a_decorated_function_stays_itself():
    @record_function("named")
    def function(x: int, *, y: int = 2) -> int:
        """A docstring, which the decorator must keep."""
        return x + y

    assert function(1) == 3
    assert (function.__name__, function.__doc__) == ("function", "A docstring, which the decorator must keep.")
    assert str(inspect.signature(function)) == "(x: int, *, y: int = 2) -> int"


def test_every_call_of_a_decorated_function_is_a_span():
    @record_function("recursive")
    def recursive(n):
        return n and recursive(n - 1)

    assert annotated(lambda: recursive(3)) == ["recursive"] * 4


def test_threads_may_run_one_decorated_function_at_once():
    barrier = threading.Barrier(4)

    @record_function("threaded")
    def threaded():
        barrier.wait()

    def run():
        threads = [threading.Thread(target=threaded) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert annotated(run) == ["threaded"] * 4


def test_methods_of_all_kinds_are_decorated():
    class C:
        @record_function("plain")
        def plain(self):
            return self

        @record_function("outside")
        @classmethod
        def outside(cls):
            return cls

        @classmethod
        @record_function("inside")
        def inside(cls):
            return cls

        @record_function("static")
        @staticmethod
        def static(x):
            return x

    def run():
        thing = C()
        assert thing.plain() is thing
        assert thing.outside() is C.inside() is C
        assert C.static(5) == 5

    assert annotated(run) == ["plain", "outside", "inside", "static"]


def test_a_span_is_entered_and_left_in_every_way_that_python_has():
    class Counted(record_function):
        times = 0

        def __enter__(self):
            self.times += 1
            return super().__enter__()

    class Callable(record_function):
        def __call__(self, *args, **kwargs):
            return "called", args, kwargs

    def everything():
        with contextlib.ExitStack() as stack:
            assert isinstance(stack.enter_context(record_function("stack")), record_function)
        with Counted("counted") as counted:
            pass
        assert counted.times == 1
        with Callable("callable") as own:
            pass
        assert own() == ("called", (), {}) and own(1, 2, 3) == ("called", (1, 2, 3), {})
        by_hand = record_function("by hand")
        enter, leave = by_hand.__enter__, by_hand.__exit__
        assert enter() is by_hand and leave(None, None, None) is None
        assert record_function.__enter__(by_hand) is by_hand
        assert record_function.__exit__(by_hand, None, None, None) is None

    assert annotated(everything) == ["stack", "counted", "callable", "by hand", "by hand"]
    assert isinstance(record_function("x"), contextlib.AbstractContextManager)
    assert record_function.__enter__.__name__ == "__enter__"


@pytest.mark.parametrize("wrong", [(), (None, None), (None, None, None)])
def test_a_span_that_was_not_entered_is_only_a_decorator(wrong):
    with pytest.raises(TypeError, match="decorates one function"):
        record_function("x")(*wrong)


def test_what_is_not_a_function_is_not_decorated():
    with pytest.raises(TypeError, match="record_function decorates functions, not int"):
        record_function("name")(5)


def test_a_decorated_coroutine_function_stays_one():
    @record_function("coroutine")
    async def coroutine(x):
        await asyncio.sleep(0.001)
        return x

    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.iscoroutinefunction(record_function("partial")(functools.partial(coroutine, 1)))

    async def main():
        assert await asyncio.gather(*(coroutine(i) for i in range(3))) == [0, 1, 2]

    assert annotated(lambda: asyncio.run(main())) == ["coroutine"] * 3


def test_a_decorated_coroutine_that_fails_or_is_cancelled_ends_its_span():
    @record_function("failing")
    async def failing():
        await asyncio.sleep(0)
        raise KeyError("x")

    @record_function("waiting")
    async def waiting():
        await asyncio.sleep(60)

    async def main():
        with pytest.raises(KeyError):
            await failing()
        task = asyncio.create_task(waiting())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert annotated(lambda: asyncio.run(main())) == ["failing", "waiting"]


def test_a_decorated_generator_function_stays_one():
    @record_function("generator")
    def generator():
        try:
            got = yield 1
        except KeyError:
            got = "caught"
        yield got
        return "returned"

    assert inspect.isgeneratorfunction(generator)

    def run():
        assert list(generator()) == [1, None]
        thing = generator()
        assert (next(thing), thing.send("sent")) == (1, "sent")
        with pytest.raises(StopIteration) as caught:
            next(thing)
        assert caught.value.value == "returned"
        thing = generator()
        assert (next(thing), thing.throw(KeyError())) == (1, "caught")
        thing.close()

    assert annotated(run) == ["generator"] * 3


def test_a_decorated_async_generator_function_stays_one():
    closed = []

    @record_function("stream")
    async def stream():
        try:
            got = yield 1
            while got != "end":
                try:
                    got = yield got
                except KeyError:
                    got = "caught"
        finally:
            closed.append(True)

    assert inspect.isasyncgenfunction(stream)

    async def main():
        thing = stream()
        assert await thing.__anext__() == 1
        assert await thing.asend("sent") == "sent"
        assert await thing.athrow(KeyError()) == "caught"
        with pytest.raises(StopAsyncIteration):
            await thing.asend("end")
        thing = stream()
        assert await thing.__anext__() == 1
        await thing.aclose()
        thing = stream()
        assert await thing.__anext__() == 1
        with pytest.raises(ValueError, match="mine"):
            await thing.athrow(ValueError("mine"))

    asyncio.run(main())
    assert len(closed) == 3
    assert annotated(lambda: asyncio.run(main())) == ["stream"] * 3


def module_function():
    return 5


module_function = record_function("module")(module_function)


def test_a_decorated_function_can_be_pickled():
    assert pickle.loads(pickle.dumps(module_function)) is module_function


# ---- moments and numbers -----------------------------------------------


def test_an_instant_has_its_arguments():
    with profile() as prof:
        instant("plain")
        instant("with", number=1, text='a "quote"', none=None, truth=True, share=0.5, many=[1, "two", (3,)], d={1: {}})
        instant("named", name="not the positional one")
    [plain], [rich], [named] = (events(prof, name, "i") for name in ("plain", "with", "named"))
    assert not plain.get("args")
    assert rich["args"] == {
        "number": 1, "text": 'a "quote"', "none": None, "truth": True, "share": 0.5,
        "many": [1, "two", [3]], "d": {"1": {}},
    }  # fmt: skip
    assert named["args"] == {"name": "not the positional one"}


def test_values_that_json_has_no_form_for_are_shown_anyway():
    class Hostile:
        def __repr__(self):
            raise RuntimeError("no repr")

    endless = []
    endless.append(endless)
    values = {
        "nan": math.nan, "inf": -math.inf, "huge": 10**30, "digits": 10**5000, "bytes": b"\xff", "set": {1},
        "hostile": Hostile(), "endless": endless, "surrogate": "\ud800", "type": int,
    }  # fmt: skip
    with profile() as prof:
        instant("odd", **values)
    [event] = events(prof, "odd", "i")
    args = event["args"]
    assert (args["nan"], args["inf"], args["bytes"], args["set"]) == ("nan", "-inf", "b'\\xff'", "{1}")
    assert args["huge"] == str(10**30)
    assert args["hostile"] == "<Hostile object>"
    assert args["surrogate"] == "?"
    assert args["type"] == "<class 'int'>"
    assert set(args) == set(values)


def test_long_values_are_cut():
    many = {str(i): "x" * 100 for i in range(1000)}
    for value in ("x" * 10**6, list(range(10**5)), many, [many] * 10, [["x" * 10**5] * 10**3] * 10**3):
        text = render(value)
        json.loads(text)
        assert len(text) < 2500
    assert json.loads(render(list(range(50))))[32:] == ["… 18 more"]


def test_a_counter_has_its_values():
    with profile() as prof:
        for value in (1, 2.5, -3, True):
            counter("queue", value)
    values = [float(event["args"]["value"]) for event in events(prof, "queue", "C")]
    assert values == [1, 2.5, -3, 1]


def test_a_counter_that_is_no_number_does_not_spoil_the_trace():
    with profile() as prof:
        counter("odd", math.nan)
        counter("odd", math.inf)
        counter("odd", 1)
        with pytest.raises(TypeError):
            counter("odd", "one")
    assert float(events(prof, "odd", "C")[-1]["args"]["value"]) == 1


def test_our_own_functions_are_not_in_the_trace():
    @record_function("decorated")
    def decorated():
        pass

    with profile() as prof:
        decorated()
        instant("moment", value=[1])
        counter("number", 1)
        with record_function("block", "text"):
            pass
    found = set(names(load(prof)))
    assert "decorated" in found
    assert not found & {
        "call",
        "instant",
        "counter",
        "members",
        "render",
        "<instant>",
        "<counter>",
        "<recording>",
        "dumps",
    }


def test_arguments_are_not_rendered_when_nothing_is_recorded(monkeypatch):
    def refuse(values):
        raise AssertionError("rendered for nobody")

    monkeypatch.setattr(vestige.annotate, "members", refuse)
    assert not vestige._core.recording()
    instant("name", value=1)
    counter("name", 1)


# ---- call stacks -------------------------------------------------------


def stack_of(prof, name):
    """Returns the call stack of the only span with this name, from the innermost frame to the frame of this file's
    test.
    """
    [span] = [event for event in load(prof)["traceEvents"] if event["name"] == name and event["ph"] in "Xb"]
    text = span["args"]["Call stack"]
    assert text.endswith(";")
    return text.split(";")[:-1]


def test_a_span_can_hold_the_call_stack_it_began_in():
    def inner():
        with record_function("held", "argument", stack=True), record_function("not held"):
            pass

    def outer():
        inner()

    with profile(with_stack=False) as prof:
        outer()
    first = inner.__code__.co_firstlineno
    stack = stack_of(prof, "held")
    file = stack[0].partition("(")[0]
    assert file.endswith("test_annotations.py")
    assert stack[:2] == [f"{file}({first + 1}): inner", f"{file}({outer.__code__.co_firstlineno + 1}): outer"]
    assert events(prof, "held")[0]["args"]["args"] == "argument"
    assert "Call stack" not in events(prof, "not held")[0].get("args", {})


def test_every_span_holds_its_call_stack_if_the_profile_says_so():
    @record_function("decorated")
    def inner():
        pass

    def outer():
        for _ in range(3):
            with record_function("block"):
                inner()

    with profile(annotation_stacks=True) as prof:
        outer()
    stacks = {event["args"]["Call stack"] for event in events(prof, "block")}
    assert len(events(prof, "block")) == 3 and len(stacks) == 1
    assert stacks.pop().split(";")[0].endswith(": outer")
    # the function that called it
    assert events(prof, "decorated")[0]["args"]["Call stack"].split(";")[0].endswith(": outer")
    with profile() as prof:
        outer()
    assert not any("Call stack" in event.get("args", {}) for event in events(prof, "block"))


def test_a_decorator_keeps_the_stack_it_was_asked_for():
    @record_function("held", stack=True)
    def decorated():
        pass

    with profile(with_stack=False) as prof:
        decorated()
    assert stack_of(prof, "held")[0].endswith(f": {test_a_decorator_keeps_the_stack_it_was_asked_for.__name__}")


def test_a_call_stack_that_is_too_long_is_cut_at_its_outer_end():
    def recurse(depth):
        if depth:
            return recurse(depth - 1)
        with record_function("deep", "x" * 2000, stack=True):
            pass

    with profile(with_stack=False) as prof:
        recurse(500)
    stack = stack_of(prof, "deep")
    assert stack[-1] == "..."
    assert 50 < len(stack) < 500
    assert all(frame.endswith(": recurse") for frame in stack[:-1])


def test_code_of_a_call_stack_is_not_kept_after_recording():
    import sys

    from vestige.traceback import free_dead_captured_tracebacks

    def work():
        with record_function("held", stack=True):
            pass

    before = sys.getrefcount(work.__code__)
    with profile(with_stack=False):
        work()
    free_dead_captured_tracebacks()
    after = sys.getrefcount(work.__code__)
    assert after == before


@pytest.mark.parametrize("wrong", [{"stack": True, "x": 1}, {"annotation": True}])
def test_arguments_that_are_not_known_are_refused(wrong):
    with pytest.raises(TypeError):
        record_function("x", **wrong)
