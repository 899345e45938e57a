"""Functions written in C: builtins, methods, callbacks from C, and correct names in all cases."""

import functools
import re
import sys
import types

import pytest

import compiled
from tree import calls, expected, names, record, tree


def leaf():
    pass


def full_names(trace):
    return [event["name"] for event in calls(trace) if event["name"].startswith("<built-in")]


@pytest.mark.safe_engine
def test_builtins_are_calls():
    def outer():
        abs(-1)
        sorted([2, 1], reverse=True)
        len(*[[1]])

    assert tree(outer) == expected(
        """
        outer
          <abs>
          <sorted>
          <len>
        """
    )


def test_methods_are_named_by_their_class_however_they_are_called():
    def outer():
        items = []
        items.append(1)
        append = items.append
        append(2)
        list.append(items, 3)
        items.append(*[4])
        bytes.fromhex("00")
        "a".join(["b"])

    trace = record(outer)
    assert full_names(trace) == [
        *["<built-in method append of list object>"] * 4,
        "<built-in method fromhex of type object>",
        "<built-in method join of str object>",
    ]


def test_names_are_stable_and_hold_no_address():
    def outer():
        for _ in range(3):
            [].append(1)
            {}.get(1)
            sorted([])
            re.compile("a").sub("b", "a")
            iter([1]).__length_hint__()

    outer()  # compiles the pattern
    first, second = (sorted(full_names(record(outer))) for _ in range(2))
    assert first == second
    assert not [name for name in first if "0x" in name]
    assert "<built-in method sub of re.Pattern object>" in first
    assert "<built-in function sorted>" in first


def test_a_subclass_s_inherited_method_is_named_by_the_defining_class():
    class Mine(list):
        pass

    class Deeper(Mine):
        pass

    deeper, mine = Deeper(), Mine()

    def outer():
        deeper.append(1)
        mine.append(1)
        append = deeper.append
        append(1)

    assert full_names(record(outer)) == ["<built-in method append of list object>"] * 3


def test_classmethod_around_a_builtin_is_the_builtin():
    class Thing:
        method = classmethod(repr)

    def outer():
        Thing().method()
        Thing.method()
        method = Thing.method
        method()

    whole = """
        outer
          <repr>
          <repr>
          <repr>
    """
    assert tree(outer, engine="turbo") == expected(whole)
    assert tree(outer, engine="safe") == expected(whole)


def test_a_method_around_a_builtin_that_fails():
    class Thing:
        method = classmethod(len)

    def outer():
        try:
            Thing.method()
        except TypeError:
            leaf()

    whole = """
        outer
          <len> (raised)
          leaf
    """
    assert tree(outer, engine="turbo") == expected(whole)
    assert tree(outer, engine="safe") == expected(whole)


def test_a_method_around_a_builtin_called_with_a_star_leaves_nothing_open():
    method = types.MethodType(len, [1])

    def outer():
        method(*[])
        leaf()

    lines = tree(outer).splitlines()
    assert lines[0] == "outer"
    assert lines[-1] == "  leaf"
    assert all("cut" not in line and "open" not in line for line in lines)


@pytest.mark.safe_engine
def test_callbacks_out_of_c_are_inside_it():
    def key(item):
        return -item

    def outer():
        sorted([2, 1], key=key)
        [1].sort(key=key)
        re.sub("a", lambda match: "b", "a")

    re.sub("a", lambda match: "b", "a")  # compiles the pattern
    text = tree(outer)
    assert text.startswith(
        expected(
            """
            outer
              <sorted>
                key
                key
              <list.sort>
                key
            """
        )
    )
    assert "<re.Pattern.sub>\n      <lambda>" in text


def test_map_calls_back_where_it_is_consumed():
    def double(item):
        return item * 2

    def outer():
        doubled = map(double, [1, 2])
        next(doubled)
        for _ in doubled:
            pass

    assert tree(outer) == expected(
        """
        outer
          <next>
            double
          double
        """
    )


def test_partials_and_caches_show_what_they_call():
    def target(x):
        pass

    partial = functools.partial(target, 1)
    cached = functools.lru_cache(target)

    def outer():
        partial()
        cached(1)
        cached(1)

    assert tree(outer) == expected(
        """
        outer
          <functools.partial.__call__>
            target
          <target>
            target
          <target>
        """
    )


def test_a_class_with_init_has_no_span_but_what_it_calls_has():
    class Thing:
        def __init__(self):
            leaf()

    def outer():
        int("3")
        str(3)
        Thing()

    assert tree(outer) == expected(
        """
        outer
          __init__
            leaf
        """
    )


@pytest.mark.safe_engine
def test_failing_calls_and_calls_that_fail_to_bind_are_marked():
    def outer():
        for call in (lambda: len(), lambda: len(x=1), lambda: [].append(), lambda: [].append(1, 2), lambda: ord("ab")):
            try:
                call()
            except TypeError:
                pass

    assert tree(outer) == expected(
        """
        outer
          <lambda> (raised)
            <len> (raised)
          <lambda> (raised)
            <len> (raised)
          <lambda> (raised)
            <list.append> (raised)
          <lambda> (raised)
            <list.append> (raised)
          <lambda> (raised)
            <ord> (raised)
        """
    )


def test_an_unbound_method_without_self_leaves_nothing_open():
    def outer():
        for arguments in ((), (1, 2)):
            try:
                list.append(*arguments)
            except TypeError:
                leaf()

    lines = tree(outer).splitlines()
    assert [line for line in lines if "append" not in line] == ["outer", "  leaf", "  leaf"]
    assert all("cut" not in line and "open" not in line for line in lines)


def test_with_statements_on_c_objects_nest():
    import threading

    lock = threading.Lock()

    def outer():
        with lock:
            leaf()
        try:
            with lock:
                raise KeyError
        except KeyError:
            leaf()

    lines = tree(outer).splitlines()
    assert [line for line in lines if "__e" not in line] == ["outer", "  leaf", "  leaf"]
    assert all("cut" not in line and "open" not in line for line in lines)


def test_c_functions_can_be_left_out():
    def outer():
        sorted([2, 1], key=lambda item: leaf() or item)
        len([])

    assert tree(outer, c_functions=False) == expected(
        """
        outer
          <lambda>
            leaf
          <lambda>
            leaf
        """
    )


def test_a_class_in_a_module_has_its_module_in_the_name():
    import collections

    def outer():
        collections.deque().append(1)

    assert full_names(record(outer)) == [
        "<built-in type deque>",
        "<built-in method append of collections.deque object>",
    ]


HEAP_DEFINITIONS = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <string.h>

static PyMethodDef *definition; /* at one address, whatever its name is now */
static char *name;

static PyObject *nothing(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
    Py_RETURN_NONE;
}

/* A function whose definition lies where the last one's lay. */
static PyObject *make(PyObject *self, PyObject *arg)
{
    const char *text = PyUnicode_AsUTF8(arg);

    (void)self;
    if (!text)
        return NULL;
    if (!definition)
        definition = malloc(sizeof *definition);
    free(name);
    name = strdup(text);
    *definition = (PyMethodDef){name, nothing, METH_NOARGS, NULL};
    return PyCFunction_New(definition, NULL);
}

static PyMethodDef functions[] = {
    {"make", make, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "heap_definitions", NULL, 0, functions, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_heap_definitions(void)
{
    return PyModuleDef_Init(&module);
}
"""


@pytest.mark.safe_engine
def test_definitions_made_on_the_heap_at_one_address_get_their_right_names():
    make = compiled.module("heap_definitions", HEAP_DEFINITIONS).make
    long = "a_name_that_is_longer_than_any_buffer_somebody_may_keep_it_in_"

    def outer():
        for number in range(500):
            make(f"first_{number}")()
            make(f"second_{number}")()
        for number in range(500):
            make(f"{long}{number}")()

    counts = names(record(outer))
    made = {name: n for name, n in counts.items() if name not in ("outer", "<make>")}
    assert made == {
        **{f"<first_{n}>": 1 for n in range(500)},
        **{f"<second_{n}>": 1 for n in range(500)},
        **{f"<{long}{n}>": 1 for n in range(500)},
    }


HEAP_TYPES = r"""
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *touch(PyObject *self, PyObject *args)
{
    (void)self, (void)args;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"touch", touch, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_methods, methods},
    {0, NULL},
};

/* A new type of that name with the same methods; old ones are freed. */
static PyObject *make(PyObject *self, PyObject *arg)
{
    PyType_Spec spec = {PyUnicode_AsUTF8(arg), 0, 0, Py_TPFLAGS_DEFAULT, slots};

    (void)self;
    return PyType_FromSpec(&spec);
}

static PyMethodDef functions[] = {
    {"make", make, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "heap_types", NULL, 0, functions, module_slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_heap_types(void)
{
    return PyModuleDef_Init(&module);
}
"""


@pytest.mark.safe_engine
def test_types_made_and_freed_at_one_address_get_their_right_names():
    import gc

    make = compiled.module("heap_types", HEAP_TYPES).make
    kept = []  # until 3.11, a type keeps only a pointer to the name given at its creation

    def outer():
        for number in range(50):
            kept.append(f"mod.Type{number}")
            made = make(kept[-1])
            made().touch()
            touch = made().touch
            touch()
            del made, touch
            gc.collect()

    gc.freeze()  # existing objects need not be examined at each collection
    try:
        counts = names(record(outer, gc=False))
    finally:
        gc.unfreeze()
    assert {name: n for name, n in counts.items() if "touch" in name} == {f"<mod.Type{n}.touch>": 2 for n in range(50)}


@pytest.mark.safe_engine
def test_a_function_of_a_module_that_was_freed_keeps_its_name():
    import gc

    def outer():
        module = compiled.module("heap_definitions", HEAP_DEFINITIONS)
        made = module.make("survivor")
        sys.modules.pop("heap_definitions", None)
        del module
        gc.collect()
        made()

    counts = names(record(outer, gc=False))
    assert counts["<survivor>"] == 1


def test_slot_wrappers_and_callable_objects_leave_nothing_open():
    import operator

    getter = operator.itemgetter(0)

    def outer():
        (3).__add__(4)
        int.__add__(3, 4)
        getter([1])
        try:
            (3).__add__()
        except TypeError:
            leaf()

    lines = tree(outer).splitlines()
    assert lines[0] == "outer"
    assert lines[-1] == "  leaf"
    assert all("cut" not in line and "open" not in line for line in lines)


def test_print_and_import_call_back_into_python(tmp_path, monkeypatch):
    (tmp_path / "imported_by_a_test.py").write_text("def f(): pass\nf()\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    class Out:
        def write(self, text):
            leaf()

    out = Out()

    def outer():
        import imported_by_a_test  # noqa: F401

        print("x", file=out, end="")

    trace = record(outer)
    full = [event["name"] for event in calls(trace)]
    assert "imported_by_a_test.py(1): <module>" in full  # without its search path
    assert "imported_by_a_test.py(1): f" in full
    assert names(trace)["write"] == 2  # the text, and the text's end
    assert names(trace)["<print>"] == 1


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there are tool ids from 3.12 on")
def test_a_program_s_own_monitoring_goes_on_beside_ours():
    monitoring = sys.monitoring
    seen = []

    def outer():
        monitoring.use_tool_id(0, "mine")
        monitoring.register_callback(0, monitoring.events.PY_START, lambda code, offset: seen.append(code.co_name))
        monitoring.set_events(0, monitoring.events.PY_START)
        leaf()
        monitoring.set_events(0, 0)
        monitoring.free_tool_id(0)
        leaf()

    counts = names(record(outer))
    assert seen == ["leaf"]
    assert counts["leaf"] == 2


def test_functions_called_on_a_class_are_methods_of_type():
    def outer():
        bytes.fromhex("00")
        str.maketrans({})

    assert tree(outer) == expected(
        """
        outer
          <type.fromhex>
          <type.maketrans>
        """
    )


def test_new_is_a_method_of_type_except_under_turbo():
    def outer():
        object.__new__(object)

    assert tree(outer, engine="safe") == "outer\n  <type.__new__>"
    assert tree(outer, engine="turbo") == "outer"
