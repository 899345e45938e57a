"""Calls of what is no function: classes, and objects that C code calls. Every engine records them, and alike."""

import collections
import ctypes
import functools
import json
import operator
import os
import pickle
import sys
import weakref

import pytest

import compiled
import vestige
from tree import expected, names, record, spans_of, tree
from usable import usable_engines
from vestige import profile

np = pytest.importorskip("numpy")
SAFE = vestige._core.engines[0]
ENGINES = usable_engines()
WITH_THUNKS = pytest.mark.skipif("turbo" not in ENGINES, reason="no pointers are replaced here")


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def callables():
    made = sys.modules["callables"] = compiled.module("callables", (compiled.HERE / "callables.c").read_text())
    yield made
    del sys.modules["callables"]


def natives(function, engine, **options):
    """The names of the calls in C that a function makes, in the order in which they begin."""
    found, left = [], spans_of(record(function, engine=engine, **options))
    while left:
        span = left.pop(0)
        left[:0] = sorted(span.children, key=lambda child: child.start)
        found += [span.name] * span.name.startswith("<built-in")
    return found


# ---- which calls are recorded, and their names -------------------------------


def test_a_class_made_in_c_has_a_span_when_it_is_called(engine):
    def outer():
        bytes(3)
        dict(a=1)
        list((1, 2))
        set()
        collections.deque([1])
        functools.partial(len)

    assert natives(outer, engine) == [
        f"<built-in type {name}>" for name in ("bytes", "dict", "list", "set", "deque", "partial")
    ]


def test_a_class_without_work_in_c_has_none(engine):
    class Plain:
        pass

    class Made:
        def __init__(self):
            self.x = 1

    def outer():
        int("3"), float(2), str(3), tuple([1]), range(3), bool(1), ValueError(), object()
        Plain(), Made(), weakref.ref(Plain)

    assert tree(outer, engine=engine) == expected("outer\n  __init__")


def test_what_a_class_in_c_calls_is_inside_it(engine):
    def items():
        yield 1

    def outer():
        list(items())

    assert tree(outer, engine=engine) == expected("outer\n  <built-in type list>\n    items\n    items")


def test_an_object_is_named_by_itself_or_else_by_its_type(engine):
    strlen = ctypes.CDLL(None).strlen

    @functools.lru_cache
    def cached(x):
        return x

    first = operator.itemgetter(0)
    partial = functools.partial(abs)

    def outer():
        strlen(b"a")
        cached(1)
        cached(1)
        first([1])

    def of_partial():
        partial(-1)

    assert natives(outer, engine) == [
        "<built-in function strlen>",
        *["<built-in function cached>"] * 2,
        "<built-in method __call__ of operator.itemgetter object>",
    ]
    assert "<built-in method __call__ of functools.partial object>" in natives(of_partial, engine)


def test_json_shows_where_it_spends_its_time(engine):
    def outer():
        json.loads(json.dumps({"a": 1}))

    found = names(record(outer, engine=engine))
    assert found["<_json.Scanner.__call__>"] == found["<_json.Encoder.__call__>"] == 1


def test_a_ufunc_and_what_dispatches_have_their_names(engine):
    x = np.arange(3.0)

    def outer():
        np.sin(x)
        np.add(x, x, out=x)
        np.concatenate([x, x])
        np.add.reduce(x)
        np.add.accumulate(x)
        np.add.at(x, [0], 1)

    found = [name.split()[2].rstrip(">") for name in natives(outer, engine)]
    expected_names = ["sin", "add", "concatenate", "concatenate", "reduce", "accumulate", "at"]
    if engine == SAFE:
        expected_names.remove("concatenate")  # the second one, which the first one calls in C
    assert found == expected_names
    shown = {f.name: f.file for f in record_functions(outer, engine) if f is not None}
    assert shown["<built-in function sin>"] == "numpy"


def record_functions(function, engine):
    with profile(engine=engine, gc=False) as prof:
        function()
    return prof._session.trace().functions()


@WITH_THUNKS
def test_operators_of_arrays_are_calls_of_their_ufuncs(engine):
    x = np.arange(3.0)

    def outer():
        y = x + x
        y += x
        return -x, x < y, x == y, x @ y, 2.0 * x

    outer()  # fills the caches of abstract classes
    assert [name.split()[2] for name in natives(outer, engine)] == [
        f"{name}>" for name in ("add", "add", "negative", "less", "equal", "matmul", "multiply")
    ]


def test_an_exception_ends_the_call_by_raising(engine, callables):
    def outer():
        for call in (lambda: bytes(-1), lambda: callables.lasting(None), lambda: np.sin("a")):
            try:
                call()
            except (ValueError, KeyError, TypeError):
                pass

    found = tree(outer, engine=engine)
    assert "<built-in type bytes> (raised)" in found
    assert "<lasting> (raised)" in found
    assert "<sin> (raised)" in found


def test_no_c_leaves_them_out(engine):
    x = np.arange(3.0)

    def outer():
        np.sin(x + x)
        bytes(3)
        functools.partial(abs)(-1)

    assert tree(outer, engine=engine, c_functions=False) == expected("outer")


def test_every_convention_gets_what_it_was_called_with(engine, callables):
    got, one, two = [], [1], {"b": 2, "c": 3}

    def outer():
        for target in (callables.lasting, callables.Slow()):
            got.extend([target(), target(1), target(1, 2, a=3), target(*one, **two)])

    outer()
    bare = list(got)
    got.clear()
    found = natives(outer, engine)
    assert got == bare
    assert found.count("<built-in function lasting>") == 4
    assert found.count("<built-in method __call__ of callables.Slow object>") == 4


# ---- objects that come and go -------------------------------------------------


def test_objects_that_are_made_and_freed_meanwhile_do_no_harm(engine, callables):
    kept = []

    def outer():
        for _ in range(50):
            made = callables.make_fast()
            made(1)
            callables.passing = made  # found, if something is looked for now
        del callables.passing
        kept.append(np.frompyfunc(abs, 1, 1))
        kept[0](np.arange(3))
        pickle.loads(pickle.dumps(functools.partial(abs, -1)))()

    for _ in range(3):
        record(outer, engine=engine)
    assert kept.pop()(-1) == 1


def test_an_object_that_is_freed_while_it_has_a_thunk_takes_it_along(engine, callables):
    for _ in range(5):
        callables.goes = callables.make_fast()

        def outer():
            callables.goes(1)
            del callables.goes
            callables.make_fast()(2)  # often at the same address

        assert "<built-in function made>" in natives(outer, engine)
        assert vestige._core.hooks_in_place() == 0


def test_a_method_that_a_descriptor_made_earlier_has_a_span(engine, callables):
    class Button:
        press = callables.Described()

    earlier = Button().press

    def outer():
        earlier()
        Button().press()

    assert natives(outer, engine) == ["<built-in method press of Button object>"] * 2
    assert type(Button().press) is type(len)


def test_classes_made_meanwhile_are_called_as_others(engine, callables):
    class Before(callables.Slow):
        pass

    made = []

    def outer():
        class Meanwhile(callables.Slow):
            pass

        made.append(Meanwhile())
        made[0](1)
        Before()(1)

    found = natives(outer, engine)
    assert found.count("<built-in method __call__ of Meanwhile object>") == 1
    assert found.count("<built-in method __call__ of Before object>") == 1
    assert callables.pointers(made[0])[1] == callables.pointers(callables.Slow())[1]
    assert made[0](1, 2) == (2, 0)


def test_every_pointer_is_put_back(engine, callables):
    objects = [
        callables.lasting,
        callables.Slow(),
        np.sin,
        np.sum,
        functools.partial(abs),
        operator.itemgetter(0),
        list,
        dict,
        type,
        type(ctypes.CDLL(None).strlen),
        ctypes.CDLL(None).strlen,
    ]

    def look():
        return [callables.pointers(one) for one in objects]

    before, during = look(), []
    record(lambda: during.extend(look()), engine=engine)
    assert look() == before
    assert vestige._core.hooks_in_place() == 0
    if engine == "turbo":
        assert all(now != then for now, then in zip(during, before))


def test_reference_counts_stay(engine):
    objects = [np.sin, np.sum, functools.partial, list, np.ndarray]

    def count():
        return [sys.getrefcount(one) for one in objects]

    found = []
    before = count()
    record(lambda: (np.sin(1.0), np.sum([1]), list("a")) and found.append(count()), engine=engine)
    assert count() == before


# ---- how deep -------------------------------------------------------------------


DEEP = """
import functools, sys
sys.setrecursionlimit(400)
depth = 0
def f(x):
    global depth
    depth += 1
    return through(x)
through = functools.partial(f)
class C(list):
    def __iter__(self):
        global depth
        depth += 1
        return iter(list(self))
def main():
    global depth
    for start in (lambda: f(1), lambda: list(C())):
        depth = 0
        try:
            start()
        except RecursionError:
            pass
        print(depth)
main()
"""


@WITH_THUNKS
def test_what_a_partial_holds_has_the_references_that_it_has_without_us(engine):
    def counts(one, *more, three=None):
        return sys.getrefcount(one), sys.getrefcount(counts)

    def outer():
        bound = functools.partial(counts, object())
        return [bound(), bound(1), bound(three=1), functools.partial(counts, object())(1)]

    found = []
    outer()
    without = outer()
    record(lambda: found.extend(outer()), engine=engine)
    assert found == without


def test_a_recursion_through_a_partial_goes_as_deep(engine, workplace):
    if engine == "monitoring" and sys.version_info < (3, 13):
        pytest.skip("the interpreter itself counts a level more where calls are watched")
    workplace.write("deep.py", DEEP)
    bare = workplace.python("deep.py")
    recorded = workplace.vestige("run", "-q", "-o", "t.vst", "--engine", engine, "deep.py")
    assert recorded.stdout == bare.stdout


# ---- what is not covered -----------------------------------------------------------


@WITH_THUNKS
def test_without_thunks_the_trace_says_what_is_missing():
    program = (
        "import numpy as np, vestige\n"
        "x = np.arange(3.0)\n"
        "with vestige.profile(output='t.vst', overwrite=True) as p:\n"
        "    np.sin(x); x + x; bytes(3)\n"
        "print([f.name for f in p._session.trace().functions() if f])\n"
        "print(p._session.trace().metadata().get('vestige.fallbacks'))\n"
    )
    env = {**os.environ, "VESTIGE_TURBO_SELF_TEST": "fail"}
    ran = compiled.subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, cwd=compiled._folder.name
    )
    assert ran.returncode == 0, ran.stderr
    found, fallbacks = ran.stdout.splitlines()
    if SAFE == "monitoring":
        assert "<built-in function sin>" in found and "<built-in type bytes>" in found
        assert "array operators" in fallbacks
    else:
        assert "<built-in type bytes>" not in found
        assert "callables" in fallbacks


@WITH_THUNKS
def test_what_turbo_leaves_out_is_named(workplace):
    ran = workplace.vestige("run", "-q", "-o", "t.vst", "--engine", "turbo", "-c", "bytes(3)")
    assert ran.returncode == 0
    shown = workplace.vestige("info", "t.vst").stdout
    line = next(line for line in shown.splitlines() if line.strip().startswith("turbo"))
    assert "other callables covered" in line
    assert "object.__getstate__" in line
