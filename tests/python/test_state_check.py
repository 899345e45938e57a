"""scripts/lint/check_state.py: which C declarations it reports as state outside a state struct."""

import sys
from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parent.parent.parent / "scripts" / "lint"
sys.path.insert(0, str(LINT))

import check_state

pytestmark = pytest.mark.any_python


def found(text):
    return [" ".join(one.split()) for _, one in check_state.declarations(text) if check_state.is_state(one)]


@pytest.mark.parametrize(
    "line",
    [
        "static bool is_tried;",
        "static PyObject *first, *second;",
        "static const char *trouble;",
        "static struct { int a; } b;",
        "extern uint32_t vpy_round;",
        "vpy_lock vpy_state_lock;",
        "static void (*attend)(void);",
        "VST_READ_BY_HOOKS Py_ssize_t vpy_index = -1;",
        "static PyTypeObject *type;",
    ],
)
def test_a_variable_that_changes_is_found(line):
    assert found(line) == [line[:-1]]


def test_a_static_variable_in_a_function_is_found():
    assert found("void f(void)\n{\n    static int count;\n    int other;\n}\n") == ["static int count"]


@pytest.mark.parametrize(
    "line",
    [
        "static const char *const failure = 0;",
        "static const int sizes[] = {1, 2};",
        "static struct vpy_gc_state *const state = &vpy_program.gc;",
        "struct vpy_program_state vpy_program = {.a = {1}};",
        "extern struct vpy_calls_hooks vpy_calls_hooks;",
        "static _Thread_local PyObject *previous;",
        "extern VST_THREAD_LOCAL vpy_steps vpy_steps_now VST_TLS_MODEL;",
        "static PyMethodDef functions[] = {{0}};",
        "static void (*const layers[8])(int) = {0};",
        "typedef struct vpy_native { int a; } vpy_native;",
        "struct vpy_native { int (*a)(void); };",
        "bool vpy_find(void (*found)(const int *));",
        "enum { ONE, TWO };",
    ],
)
def test_what_is_no_state_or_has_a_home_is_not_found(line):
    assert found(line) == []


def test_a_reason_on_the_line_allows_it(tmp_path, monkeypatch):
    monkeypatch.setattr(check_state, "ROOT", tmp_path)
    source = tmp_path / "a.c"
    source.write_text("static int one; /* state: a reason */\nstatic int two;\n")
    assert list(check_state.look(source)) == ["a.c:2: static int two"]
