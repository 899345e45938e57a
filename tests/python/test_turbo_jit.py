"""Recording while the interpreter's JIT turns loops into machine code.

Each program runs in a Python with PYTHON_JIT=1 and prints its results, including how often each C function was
recorded.
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import compiled
import vestige

pytestmark = pytest.mark.skipif(
    not (hasattr(sys, "_jit") and sys._jit.is_available()), reason="this Python was built without a JIT"
)

# A type that is found only after a call of make(), with a method of each convention that the JIT calls directly.
LATE = r"""
#include <Python.h>

static PyObject *none(PyObject *self, PyObject *unused) { (void)self, (void)unused; Py_RETURN_NONE; }
static PyObject *fast(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self, (void)args, (void)count;
    Py_RETURN_NONE;
}
static PyObject *keywords(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    (void)names;
    return fast(self, args, count);
}

static PyMethodDef methods[] = {
    {"noargs", none, METH_NOARGS, NULL},
    {"one", none, METH_O, NULL},
    {"fast", (PyCFunction)(void (*)(void))fast, METH_FASTCALL, NULL},
    {"keywords", (PyCFunction)(void (*)(void))keywords, METH_FASTCALL | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *make(PyObject *self, PyObject *unused)
{
    PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, NULL}};
    PyType_Spec spec = {"late.Thing", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    PyObject *type = PyType_FromSpec(&spec);
    PyObject *made = type ? PyObject_CallNoArgs(type) : NULL;

    (void)self, (void)unused;
    Py_XDECREF(type);
    return made;
}

static PyObject *is_covered(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return PyBool_FromLong(methods[0].ml_meth != none);
}

static PyMethodDef functions[] = {
    {"make", make, METH_NOARGS, NULL},
    {"is_covered", is_covered, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "late", .m_methods = functions};

PyMODINIT_FUNC PyInit_late(void)
{
    return PyModule_Create(&definition);
}
"""

BEGIN = """
import _opcode, json, sys
sys.path.insert(0, {here!r})
import vestige
from collections import Counter
from tree import calls, load

def counted(prof):
    names = [call["name"].split()[2].rstrip(">") for call in calls(load(prof)) if call["name"].startswith("<built-in")]
    return Counter(names)

def is_compiled(function):
    for offset, _ in enumerate(function.__code__.co_code):  # without calling what is counted
        try:
            if _opcode.get_executor(function.__code__, offset):
                return True
        except (ValueError, RuntimeError):
            pass
    return False
"""


def run(program, *words):
    """Returns the program's output."""
    text = BEGIN.format(here=str(compiled.HERE)) + textwrap.dedent(program)
    command = [sys.executable, "-c", text, *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHON_JIT": "1"}, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_function_that_gets_its_thunk_late_is_seen_in_loops_that_were_compiled_before(tmp_path):
    program = """
        import compiled
        with open(sys.argv[1]) as file:
            late = compiled.module("late", file.read())

        def hot(thing, times):
            for _ in range(times):
                thing.noargs()
                thing.one(1)
                thing.fast(1, 2)
                thing.keywords(1)

        with vestige.profile(engine="turbo") as prof:
            thing = late.make()
            hot(thing, 10000)
            before = late.is_covered(), is_compiled(hot)
            import _lsprof  # brings definitions, so that all types are looked through, when there was time for that
            while not late.is_covered():
                exec("def new(): pass\\nnew()")
            hot(thing, 10000)
        hot(thing, 10000)
        print(json.dumps([before, [is_compiled(hot), late.is_covered()], counted(prof)]))
    """
    source = tmp_path / "late.c"
    source.write_text(LATE)
    before, after, found = run(program, str(source))
    assert (before, after) == ([False, True], [True, False])
    assert [found.get(method) for method in ("noargs", "one", "fast", "keywords")] == [10000] * 4


@pytest.mark.parametrize("engine", vestige._core.engines)
def test_a_loop_that_is_being_compiled_when_recording_starts_or_stops_is_seen_whole(engine):
    program = """
        def work(start, stop, prof):
            items, found, compiled = [], 0, False
            for i in range(10000):
                if i == start:
                    prof.start()
                items.append(i)
                found += len(items) + isinstance(i, int) + abs(i)
                if len(items) == 3:
                    items.clear()
                if i == stop:
                    prof.stop()
                if i + 1 == stop:
                    compiled = is_compiled(work)
            return found, compiled

        results = []
        for start, stop in [(0, 9000), (900, 901), (4000, 4500), (4095, 4097), (4096, 9999), (5000, 9999)]:
            prof = vestige.profile(engine=sys.argv[1])
            work(-1, -1, None)
            before, (found, compiled) = is_compiled(work), work(start, stop, prof)
            results.append([stop - start + 1, found, [before, compiled], counted(prof)])
        print(json.dumps(results))
    """
    told = run(program, engine)
    for times, found, _, names in told:
        assert found == sum(i % 3 + 1 + 1 + i for i in range(10000))
        assert [names[name] for name in ("append", "isinstance", "abs", "len")] == [times] * 3 + [2 * times]
    assert told[0][2] == [True, True]
