"""vestige.traceback: Python frames and their lines, the objects, the names."""

import asyncio
import copy
import functools
import gc
import pickle
import sys
import textwrap
import threading
import traceback
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vestige.traceback import (
    CapturedTraceback,
    Traceback,
    free_dead_captured_tracebacks,
    gather_traceback,
    register_extra_frames,
    symbolize_tracebacks,
    unregister_extra_frames,
)

HAS_COLUMNS = sys.version_info >= (3, 11)


def places(summary):
    return [(frame.filename, frame.lineno, frame.name) for frame in summary]


def positions(summary):
    return [(frame.lineno, frame.end_lineno, frame.colno, frame.end_colno) for frame in summary]


def code_positions(frame):
    """Returns the positions according to the code objects, outermost first; traceback.extract_stack() cannot give them."""
    found = []
    while frame:
        found.append(next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)))
        frame = frame.f_back
    return [(line, end_line, column, end_column) for line, end_line, column, end_column in reversed(found)]


def take():
    """Returns our traceback and the traceback module's, taken in one line of one caller."""
    ours, frame = CapturedTraceback.extract(skip=1), sys._getframe(1)
    return ours, traceback.extract_stack(frame), code_positions(frame) if HAS_COLUMNS else None


def agree(taken):
    """Compares our traceback with the traceback module's, and returns ours."""
    ours, theirs, columns = taken
    summary = ours.summary()
    assert isinstance(summary, traceback.StackSummary)
    assert places(summary) == places(theirs)
    assert ours.format() == theirs.format()
    if HAS_COLUMNS:
        assert positions(ours.summary(positions=True)) == columns
    return summary


def run(source, **names):
    """Runs a program and returns its `result`."""
    scope = {"take": take, "functools": functools, **names}
    exec(compile(textwrap.dedent(source), "<generated>", "exec"), scope)
    return scope["result"]


@pytest.mark.skipif(not HAS_COLUMNS, reason="columns came with 3.11")
def test_columns_put_carets_below_the_call():
    taken = str((lambda: "".join(CapturedTraceback.extract().format(positions=True)))()).splitlines()
    assert taken[-1].strip() in ("^" * 27, "~" * 25 + "^^")


def test_a_plain_stack_is_as_traceback_has_it():
    def inner():
        return take()

    def outer():
        return inner()

    summary = agree(outer())
    assert [frame.name for frame in summary][-2:] == ["outer", "inner"]
    assert summary[-1].line == "return take()"


def test_lines_of_a_statement_over_several_lines():
    def pick(*values):
        return values[1]

    pair = pick(
        1,
        take(
        ),
        3,
    )  # fmt: skip
    agree(pair)
    pair = (
        take()
    )  # fmt: skip
    agree(pair)
    agree(
        (
            1,
            take(),
        )[1]
    )  # fmt: skip


def test_lines_inside_of_decorators_and_decorated_functions():
    taken = []

    def decorate(function):
        taken.append(take())

        @functools.wraps(function)
        def wrapper():
            return function()

        return wrapper

    @decorate
    @functools.lru_cache(  # noqa: UP033 (of two lines)
        maxsize=None,
    )
    def decorated():
        taken.append(take())

    decorated()
    assert [agree(pair)[-1].name for pair in taken] == ["decorate", "decorated"]


def test_lines_inside_of_generators():
    def generate():
        yield take()
        received = yield (
            take()
        )  # fmt: skip
        yield received, take()

    def delegate():
        yield from generate()

    for make in (generate, delegate):
        generator = make()
        agree(next(generator))
        agree(next(generator))
        assert agree(generator.send(1)[1])[-1].name == "generate"


def test_lines_inside_of_comprehensions_and_generator_expressions():
    agree([take() for _ in range(1)][0])
    agree({1: take() for _ in range(1)}[1])
    agree(next(take() for _ in range(1)))
    agree(
        [
            take()
            for _ in
            range(1)
        ][0]
    )  # fmt: skip
    pair = max((take() for _ in range(1)), key=lambda pair: 1)
    assert agree(pair)[-1].name == "<genexpr>"


def test_lines_inside_of_source_given_to_exec():
    summary = agree(run("def f():\n    return (1,\n        take())\n\n\nresult = f()[1]\n"))
    assert [(frame.filename, frame.lineno) for frame in summary][-2:] == [("<generated>", 6), ("<generated>", 3)]


def test_lines_inside_of_coroutines_and_asynchronous_generators():
    async def leaf():
        return take()

    async def generate():
        yield await leaf()

    async def main():
        async with asyncio.Lock():
            return [await leaf(), [pair async for pair in generate()][0]]

    for pair in asyncio.run(main()):
        assert agree(pair)[-1].name == "leaf"


def test_lines_inside_of_classes_lambdas_properties_and_with_blocks():
    class Holder:
        at_class = take()

        @property
        def value(self):
            return (lambda: take())()

        def __enter__(self):
            return take()

        def __exit__(self, *error):
            self.at_exit = take()

    holder = Holder()
    with holder as entered:
        pass
    for pair in (Holder.at_class, holder.value, entered, holder.at_exit):
        agree(pair)


def test_lines_while_an_exception_is_handled():
    pairs = []
    try:
        try:
            raise KeyError(
                pairs.append(take()),
            )
        except KeyError:
            pairs.append(take())
            raise
        finally:
            pairs.append(take())
    except KeyError:
        pairs.append(take())
    for pair in pairs:
        agree(pair)


EXPRESSIONS = st.recursive(
    st.just("take()"),
    lambda inner: st.one_of(
        inner.map(lambda e: f"[{e} for _ in [1]][0]"),
        inner.map(lambda e: f"(\n    {e}\n)"),
        inner.map(lambda e: f"(lambda: {e})()"),
        inner.map(lambda e: f"next({e} for _ in\n [1])"),
        inner.map(lambda e: f"(1,\n 2, {e})[2]"),
        inner.map(lambda e: f"functools.partial(lambda x: {e}, 1)()"),
        inner.map(lambda e: f"sorted([1], key=lambda x: kept.append({e}) or 0)\\\n and kept[-1]"),
        inner.map(lambda e: f"(lambda x={e}: x)(\n\n)"),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS)
def test_lines_of_any_nesting_of_expressions(expression):
    agree(run(f"kept = []\ndef f():\n    return {expression}\nresult = f()\n"))


def test_skip_leaves_out_the_innermost_frames():
    def inner(skip):
        return CapturedTraceback.extract(skip=skip), traceback.extract_stack()

    for skip in (0, 1, 2, 1000):
        ours, theirs = inner(skip)
        assert places(ours.summary())[-2:] == places(theirs)[: max(0, len(theirs) - skip)][-2:]
    assert inner(10_000)[0].summary() == []


@pytest.mark.parametrize("arguments", [{"skip": -1}, {"skip": "1"}, {"skip": 1 << 80}, {"depth": 1}])
def test_arguments_that_make_no_sense_are_refused(arguments):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        CapturedTraceback.extract(**arguments)


def test_arguments_may_be_given_by_place_but_not_twice():
    assert CapturedTraceback.extract(False, False, 10_000).summary() == []
    with pytest.raises(TypeError, match="twice"):
        CapturedTraceback.extract(False, script=False)
    with pytest.raises(TypeError, match="at most 3"):
        CapturedTraceback.extract(False, False, 0, 0)
    with pytest.raises(TypeError, match="gather_traceback"):
        CapturedTraceback(1)


# ---- objects ----


def test_equal_stacks_are_one_object_and_others_are_not():
    def here():
        return gather_traceback(True, False, False)

    first, second = [here() for _ in range(2)]
    assert first is second
    assert isinstance(first, Traceback)
    assert first.python_frames == len(symbolize_tracebacks([first])[0])
    assert first.native_frames == 0
    assert here() is not first  # another line of this function


def test_a_traceback_given_twice_has_one_list():
    taken = [gather_traceback(True, False, False) for _ in range(3)]
    other = gather_traceback(True, False, False)
    first, second, third, fourth = symbolize_tracebacks([*taken, other])
    assert first is second is third
    assert fourth is not first
    assert set(first[0]) == {"name", "filename", "line"}
    assert first[0]["name"] == "<listcomp>" or sys.version_info >= (3, 12)
    assert fourth[0] == {"name": sys._getframe().f_code.co_name, "filename": __file__, "line": fourth[0]["line"]}
    assert fourth[1:] == first[2 if first[0]["name"] == "<listcomp>" else 1 :]


def test_symbolizing_nothing_gives_nothing_and_anything_else_is_refused():
    assert symbolize_tracebacks([]) == []
    for wrong in ([None], [1], [CapturedTraceback.extract()]):
        with pytest.raises(TypeError, match="gather_traceback"):
            symbolize_tracebacks(wrong)
    with pytest.raises(TypeError):
        symbolize_tracebacks(1)


def test_after_cleanup_it_is_empty_and_others_are_not():
    first, second = [CapturedTraceback.extract() for _ in range(2)]
    first.cleanup()
    first.cleanup()
    assert first.tb is None
    assert first.summary() == []
    assert first.format() == []
    assert "empty" in repr(first)
    assert CapturedTraceback.format_all([first, second]) == [[], second.format()]
    assert second.summary()


def test_format_all_gives_what_format_gives_for_each():
    def recurse(depth):
        return CapturedTraceback.extract() if depth == 0 else recurse(depth - 1)

    tracebacks = [recurse(depth) for depth in (0, 1, 3, 4, 5, 50)] * 2
    tracebacks += [CapturedTraceback(tracebacks[-1].tb, skip) for skip in (1, 47, 10_000)]
    expected = [traceback.format_list(tb.summary()) for tb in tracebacks]
    assert CapturedTraceback.format_all(tracebacks) == expected
    assert CapturedTraceback.format_all(iter(tracebacks)) == expected
    assert CapturedTraceback.format_all(tracebacks, positions=True) == [tb.format(positions=True) for tb in tracebacks]
    assert any("Previous line repeated 48 more times" in line for line in expected[5])
    made = CapturedTraceback.format_all(tracebacks)
    made[0].clear()
    assert made[6]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_one_comes_back_without_frames(protocol):
    taken = CapturedTraceback(CapturedTraceback.extract().tb, 2)
    back = pickle.loads(pickle.dumps(taken, protocol))
    assert type(back) is CapturedTraceback
    assert (back.tb, back.skip, back.summary()) == (None, 2, [])
    assert taken.summary()
    assert copy.deepcopy(taken).summary() == []
    with pytest.raises(TypeError):
        pickle.dumps(taken.tb, protocol)


def test_columns_are_given_on_request():
    taken = gather_traceback(True, False, False)
    [[frame, *_]] = symbolize_tracebacks([taken], positions=True)
    assert set(frame) == {"name", "filename", "line", "end_line", "column", "end_column"}
    if HAS_COLUMNS:
        line = Path(__file__).read_text(encoding="utf-8").splitlines()[frame["line"] - 1]
        assert line[frame["column"] : frame["end_column"]] == "gather_traceback(True, False, False)"
        assert frame["end_line"] == frame["line"]
    else:
        assert frame["column"] is frame["end_column"] is frame["end_line"] is None


def test_names_that_are_no_utf8_come_back_as_they_were():
    names = ["caf\u00e9.py", "\udce9.py", "\U0001f600", "a\nb", ""]
    for name in names:
        scope = {"take": lambda: gather_traceback(True, False, False)}
        exec(compile("result = take()", name, "exec"), scope)
        assert symbolize_tracebacks([scope["result"]])[0][1]["filename"] == name


def test_a_subclass_extracts_itself():
    class Own(CapturedTraceback):
        pass

    own = Own.extract()
    own.note = 1
    assert type(own) is Own
    assert own.summary()[-1].name == sys._getframe().f_code.co_name


# ---- what generated code stands for ----


@pytest.fixture
def extra():
    registered = []

    def register(function):
        registered.append(register_extra_frames(function))

    yield register
    for function in registered:
        unregister_extra_frames(function)
    with pytest.raises(ValueError, match="not registered"):
        unregister_extra_frames(None)


def generated():
    return run("def f():\n    return gather()\nresult = f()", gather=lambda: gather_traceback(True, False, False))


def test_generated_code_shows_what_it_stands_for(extra):
    asked = []

    def stands_for(filename, line):
        asked.append((filename, line))
        if filename == "<generated>" and line == 2:
            return [
                {"filename": "model.py", "line": 7, "name": "relu"},
                {"filename": "model.py", "line": 3, "name": "forward"},
            ]

    extra(stands_for)
    taken = generated()
    [frames] = symbolize_tracebacks([taken, taken])[:1]
    assert [(frame["name"], frame["line"]) for frame in frames[1:5]] == [
        ("f", 2), ("relu", 7), ("forward", 3), ("<module>", 3),
    ]  # fmt: skip
    assert len(asked) == len(set(asked))
    assert ("<generated>", 2) in asked


def test_what_goes_wrong_in_such_a_function_leaves_the_frame(extra):
    def fail(filename, line):
        raise KeyError(filename)

    answers = [[1], [{}], 5, [{"filename": 1, "name": None, "line": "x"}], [{"filename": "a", "name": "b", "line": -1}]]
    extra(fail)
    for answer in answers:
        extra(lambda filename, line, answer=answer: answer)
    frames = symbolize_tracebacks([generated()])[0]
    assert "f" in [frame["name"] for frame in frames]
    with pytest.raises(TypeError, match="function is needed"):
        register_extra_frames(1)


def test_torch_is_asked_where_its_module_is_loaded_already(monkeypatch):
    class PyCodeCache:
        @classmethod
        def stack_frames_for_code(cls, path, lineno):
            if path == "<generated>" and lineno == 2:
                return [{"filename": "kernel.py", "line": 1, "name": "fused"}]
            return None

    module = type(sys)("torch._inductor.codecache")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert "fused" not in str(symbolize_tracebacks([generated()]))
    module.PyCodeCache = PyCodeCache
    assert {"filename": "kernel.py", "line": 1, "name": "fused"} in symbolize_tracebacks([generated()])[0]


def test_nothing_of_torch_is_imported(workplace):
    workplace.write("torch/__init__.py", "raise SystemExit('imported')")
    workplace.write(
        "p.py",
        """
        import sys
        from vestige.traceback import CapturedTraceback
        print(CapturedTraceback.extract().format()[0].split()[3], "torch" in sys.modules)
        """,
    )
    assert workplace.python("p.py").stdout == "4, False\n"


# ---- threads, memory ----


def test_the_traceback_of_a_thread_that_is_gone_can_be_named():
    taken = []

    def work():
        taken.append(take())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [frame.name for frame in agree(taken[0])][-2:] == ["run", "work"]


def test_code_lives_as_long_as_its_traceback():
    scope = {"CapturedTraceback": CapturedTraceback}
    exec("def f():\n    return CapturedTraceback.extract()", scope)
    taken = scope["f"]()
    code = scope.pop("f").__code__
    before = sys.getrefcount(code)
    assert taken.summary()[-1].name == "f"
    del taken
    free_dead_captured_tracebacks()
    assert sys.getrefcount(code) == before - 1


def test_dropped_ones_are_freed_by_the_next_capture_or_on_request():
    free_dead_captured_tracebacks()
    taken = [eval(f"{'+' * n}0 or CapturedTraceback.extract()") for n in range(5)]
    del taken
    assert free_dead_captured_tracebacks() == 5
    assert free_dead_captured_tracebacks() == 0


class Watched:
    """An object that can be a constant, and notes its destruction."""

    def __init__(self, gone):
        self.gone = gone
        self.kept = []

    def __del__(self):
        self.gone.append(1)


def capture_in_own_constant(gone, shared=False):
    """Returns a function that has tracebacks of itself as a constant."""

    def f():
        return CapturedTraceback.extract(), 123456

    watched = Watched(gone)
    constants = tuple(watched if constant == 123456 else constant for constant in f.__code__.co_consts)
    f.__code__ = f.__code__.replace(co_consts=constants)
    taken, constant = f()
    assert constant is watched
    watched.kept.append(taken)
    if shared:
        watched.kept += [(f())[0] for _ in range(3)]
        watched.kept.append(gather_traceback(True, False, False))
    return f


@pytest.mark.parametrize("shared", [False, True])
def test_a_cycle_through_the_constants_of_a_code_object_is_collected(shared):
    gone = []
    function = capture_in_own_constant(gone, shared)
    gc.collect()
    gc.collect()
    assert gone == []  # the function still exists
    del function
    gc.collect()
    free_dead_captured_tracebacks()
    assert gone == [1]


def test_a_cycle_stays_as_long_as_somebody_holds_a_traceback_of_it():
    gone = []
    function = capture_in_own_constant(gone, True)
    taken = function()[0]
    del function
    gc.collect()
    free_dead_captured_tracebacks()
    assert gone == []
    assert taken.summary()[-1].name == "f"
    del taken
    free_dead_captured_tracebacks()
    gc.collect()
    free_dead_captured_tracebacks()
    assert gone == [1]


def test_a_cycle_of_captured_tracebacks_is_collected():
    class Own(CapturedTraceback):
        pass

    gone = []
    own = Own.extract()
    own.self = own
    own.watched = Watched(gone)
    del own
    gc.collect()
    assert gone == [1]


def test_a_million_captures_leave_nothing_behind():
    def rss():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def recurse(depth):
        if depth:
            return recurse(depth - 1)
        for _ in range(100_000):
            CapturedTraceback.extract()
        return None

    def distinct(count):
        code = compile("\n".join(["CapturedTraceback.extract()"] * 2000), "<distinct>", "exec")
        for _ in range(count):
            exec(code, {"CapturedTraceback": CapturedTraceback})

    def count():
        free_dead_captured_tracebacks()
        gc.collect()
        return sys.getrefcount(recurse.__code__), sys.getrefcount(count.__code__), len(gc.get_objects())

    recurse(5)
    distinct(5)
    before = count()
    size = rss()
    for depth in range(8):
        recurse(depth)
    distinct(100)
    after = count()
    assert after[:2] == before[:2]
    assert after[2] - before[2] < 100
    assert rss() - size < 4 << 20
