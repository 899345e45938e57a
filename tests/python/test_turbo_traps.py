"""Difficult cases for an engine inside the interpreter, tried with every engine: specialised instructions, generators,
exceptions, uncovered calls, and that a stop restores everything.
"""

import dis
import sys
import traceback

import pytest

import compiled
import hooked
import vestige
from tree import calls, load, names, record, short, tree
from vestige import profile

pytestmark = pytest.mark.parametrize("engine", vestige._core.engines)
SAFE = vestige._core.engines[0]


def leaf():
    pass


def traced(engine, function, *args):
    """Returns the function's result under a recording, and the trace."""
    result = None

    def run():
        nonlocal result
        result = function(*args)

    trace = record(run, engine=engine)
    return result, trace


# ---- specialised instructions --------------------------------------------


def hot(times):
    """Call sites whose callee the interpreter stores in the instruction, possibly to call it directly."""
    found = []
    total = 0
    for number in range(times):
        found.append(number)
        total += len(found)
        total += isinstance(number, int)
        total += ord("a") + min(number, 3)
        "a b".split(" ")
    return total


HOT = ["<list.append>", "<len>", "<isinstance>", "<ord>", "<min>", "<str.split>"]


def hot_counts(trace):
    counts = names(trace)
    return [counts.get(name, 0) for name in HOT]


def test_calls_at_sites_that_were_hot_before_are_recorded(engine):
    for times in (40, 100):
        right = hot(times)
        result, trace = traced(engine, hot, times)
        assert hot_counts(trace) == [times] * len(HOT)
        assert result == right


def test_calls_at_sites_that_get_hot_while_recording_are_recorded(engine):
    cold = type(hot)(hot.__code__.replace(co_name="cold"), globals())
    trace = record(cold, 200, engine=engine)
    assert hot_counts(trace) == [200] * len(HOT)
    assert cold(200) == hot(200)
    assert hot_counts(record(cold, 30, engine=engine)) == [30] * len(HOT)


def test_a_loop_that_is_hot_and_running_at_the_start_is_recorded_from_then_on(engine):
    prof = profile(engine=engine)

    def loop():
        found = []
        for number in range(300):
            if number == 200:
                prof.start()
            found.append(number)
            len(found)
            leaf()
        prof.stop()

    loop()
    counts = names(load(prof))
    assert (counts["<list.append>"], counts["<len>"], counts["leaf"]) == (100, 100, 100)


class Hot:
    def __init__(self, number):
        self.number = number

    def __getitem__(self, index):
        return index

    def __getattr__(self, name):
        return len(name)

    @property
    def double(self):
        return self.number * 2

    def method(self):
        return self.number

    @classmethod
    def made(cls, number):
        return cls(number)

    @staticmethod
    def plain(number):
        return number


def counted(count):
    for number in range(count):
        yield number


def hot_python(times):
    """Calls that the interpreter makes without a C function in between, after it has specialised them."""
    total = 0
    for number in range(times):
        made = Hot(number)
        total += made[3] + made.double + made.method() + made.missing + Hot.made(number).number + Hot.plain(1)
        leaf()
        for one in counted(2):
            total += one
    return total


@pytest.mark.parametrize("warm", [True, False])
def test_python_functions_at_hot_sites_are_recorded_each_time(engine, warm):
    function = hot_python
    if not warm:
        function = type(hot_python)(hot_python.__code__.replace(co_name="cold"), globals())
    right = hot_python(100)
    result, trace = traced(engine, function, 100)
    counts = names(trace)
    assert result == right
    once = ("__getitem__", "double", "method", "__getattr__", "made", "plain", "leaf")
    assert {name: counts.get(name, 0) for name in once} == dict.fromkeys(once, 100)
    assert counts["__init__"] == 200
    assert counts["counted"] == 300  # each resume is a span
    assert not [event for event in calls(trace) if event["args"].get("cut")]


# ---- generators ------------------------------------------------------------


def driven():
    """Every way in which a generator begins, continues and ends."""

    def numbers(count):
        for number in range(count):
            try:
                yield number
            except KeyError:
                leaf()

    def delegating():
        yield from numbers(2)

    class Pause:
        def __await__(self):
            yield 1

    async def waits():
        await Pause()

    async def several():
        yield 1
        yield 2

    list(numbers(2))
    numbers(3)  # never started
    left = numbers(3)
    next(left)
    left.throw(KeyError)
    left.close()
    closed = numbers(3)
    next(closed)
    del closed
    list(delegating())
    list(number for number in numbers(1))
    waiting = waits()
    waiting.send(None)
    try:
        waiting.send(None)
    except StopIteration:
        leaf()
    source = several()
    for _ in range(3):
        step = source.asend(None)
        try:
            step.send(None)
        except (StopIteration, StopAsyncIteration):
            leaf()


def test_generators_have_no_pair_too_many(engine):
    """If making and evaluating the generator were two calls, there would be one more pair."""
    driven()
    assert tree(driven, engine=engine, c_functions=False) == tree(driven, engine=SAFE, c_functions=False)


def test_a_generator_that_is_made_and_never_run_is_no_call(engine):
    def numbers():
        yield 1

    def outer():
        for _ in range(50):
            numbers()

    counts = names(record(outer, engine=engine, c_functions=False))
    assert counts == names(record(outer, engine=SAFE, c_functions=False))


# ---- exceptions ------------------------------------------------------------


def test_exceptions_of_c_functions_arrive_as_they_were(engine):
    def failing():
        seen = []
        attempts = [
            lambda: [].pop(),
            lambda: len(3),
            lambda: len(),
            lambda: {}.pop("missing"),
            lambda: sorted([1, ""]),
            lambda: sorted([1], key=lambda _: 1 / 0),
            lambda: "".join([1]),
            lambda: int.from_bytes([300], "big"),
            lambda: [].append(1, 2),
            lambda: "".split(nothing=1),
            lambda: next(iter(())),
        ]
        for attempt in attempts:
            try:
                attempt()
            except Exception as error:
                steps = traceback.extract_tb(error.__traceback__)
                seen.append((repr(error), [(step.name, step.lineno) for step in steps], repr(error.__context__)))
        return seen

    alone = failing()
    result, trace = traced(engine, failing)
    assert result == alone
    raised = {short(event["name"]) for event in calls(trace) if event["args"].get("raised")}
    assert {"<list.pop>", "<sorted>", "<str.join>", "<lambda>"} <= raised
    assert not [event for event in calls(trace) if event["args"].get("cut")]


THROWS = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>

struct trouble {
    const char *what;
};

/* Throws past the interpreter, which some bindings let happen. */
static PyObject *throws(PyObject *, PyObject *argument)
{
    if (argument == Py_None)
        throw trouble{"not Python's"};
    Py_INCREF(argument);
    return argument;
}

/* Calls function(argument) and catches what C++ throws. */
static PyObject *catches(PyObject *, PyObject *args)
{
    PyObject *function, *argument;

    if (!PyArg_ParseTuple(args, "OO", &function, &argument))
        return NULL;
    try {
        return PyObject_CallOneArg(function, argument);
    } catch (const trouble &error) {
        return PyUnicode_FromString(error.what);
    }
}

static PyMethodDef functions[] = {
    {"throws", throws, METH_O, NULL},
    {"catches", catches, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "throwing", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_throwing(void)
{
    PyObject *module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
"""


@pytest.fixture(scope="module")
def throwing():
    return compiled.module("throwing", THROWS, language="c++")


def test_a_c_plus_plus_exception_passes_through(engine, throwing):
    def outer():
        found = [throwing.catches(throwing.throws, None) for _ in range(20)]
        leaf()
        found.append(throwing.catches(throwing.throws, 1))
        after()
        return found

    def after():
        len([])

    right = outer()
    assert right == ["not Python's"] * 20 + [1]
    result, trace = traced(engine, outer)
    assert result == right
    counts = names(trace)
    assert (counts["<catches>"], counts["leaf"], counts["after"], counts["<len>"]) == (21, 1, 1, 1)
    spans = {short(event["name"]): event["args"] for event in calls(trace)}
    assert spans["after"]["Python parent id"] == spans["outer"]["Python id"]
    assert not spans["outer"].get("cut")


def test_a_python_exception_that_c_plus_plus_passes_on(engine, throwing):
    def bad(argument):
        raise LookupError(argument)

    def outer():
        try:
            throwing.catches(bad, 1)
        except LookupError:
            leaf()

    assert names(record(outer, engine=engine)) == names(record(outer, engine=SAFE))


# ---- what is not covered ---------------------------------------------------


def test_types_and_new_have_no_span_and_work(engine):
    class Sub(int):
        def __new__(cls, value):
            return super().__new__(cls, value + 1)

    def outer():
        leaf()
        made = [
            int("3"),
            Sub(4),
            object.__new__(Hot),
            tuple.__new__(tuple, [1]),
            str(5),
            list((1, 2)),
            type("T", (), {}),
        ]
        return [getattr(each, "real", None) for each in made]

    right = outer()
    result, trace = traced(engine, outer)
    assert result == right
    assert not [name for name in names(trace) if name in ("<int>", "<str>", "<list>", "<type>")]
    assert names(trace)["leaf"] == 1


# ---- stopping --------------------------------------------------------------


def test_stop_puts_every_pointer_back(engine):
    import _heapq  # noqa: F401
    import decimal  # noqa: F401
    import json  # noqa: F401

    hooks = hooked.Hooks()
    assert hooks.count > 1500
    assert hooks.trouble() == ""
    for options in ({}, {"c_functions": False}, {"with_stack": False}):
        prof = profile(engine=engine, **options)
        for _ in range(3):
            prof.start()
            hot(3)
            prof.stop()
            assert hooks.trouble() == ""
    record(hot, 3, engine=engine)
    assert hooks.trouble() == ""


def test_dropping_a_profile_that_records_puts_every_pointer_back(engine):
    hooks = hooked.Hooks()
    prof = profile(engine=engine)
    prof.start()
    hot(3)
    del prof
    assert hooks.trouble() == ""


def test_a_start_that_fails_puts_every_pointer_back(engine):
    hooks = hooked.Hooks()
    with pytest.raises(OSError, match="missing"):
        profile(engine=engine, output="/missing/t.vst").start()
    assert hooks.trouble() == ""
    with profile(engine=engine):
        with pytest.raises(RuntimeError, match="already"):
            profile(engine=engine).start()
        leaf()
    assert hooks.trouble() == ""


def is_pair_no_more(before, after):
    """Any monitoring tool splits instructions that the interpreter of 3.12 had joined."""
    return sys.version_info >= (3, 12) and before.startswith(f"{after}__")


def drop_what_ended_threads_left():
    """In 3.12 and 3.13, a thread that ends with a hook of sys.setprofile or sys.settrace leaves the hook's events
    enabled, and all code instrumented, until a hook is set or cleared.
    """
    if sys.getprofile() is None:
        sys.setprofile(None)
    if sys.gettrace() is None:
        sys.settrace(None)


def test_after_a_stop_the_same_instructions_run_as_before(engine):
    """The original speed, as far as a test can see without a clock: hot code is specialised again as before."""
    drop_what_ended_threads_left()
    functions = [
        type(one)(one.__code__.replace(co_name="again"), globals()) for one in (hot, hot_python, leaf, counted)
    ]

    def run():
        for function in functions[:2]:
            function(60)
        functions[2]()
        list(functions[3](60))

    def instructions():
        for _ in range(10):
            run()
        return [[each.opname for each in dis.get_instructions(one, adaptive=True)] for one in functions]

    before = instructions()
    for _ in range(3):
        record(run, engine=engine)
    after = instructions()
    pairs = {pair for old, new in zip(before, after, strict=True) for pair in zip(old, new, strict=True)}
    assert len(pairs) > 20
    assert not [pair for pair in pairs if pair[0] != pair[1] and not is_pair_no_more(*pair)]
    assert not [name for names in after for name in names if name.startswith("INSTRUMENTED")]
