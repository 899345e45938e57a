"""C functions of modules that are new in 3.15: made from slots without a PyModuleDef (PEP 793), imported at first use
(PEP 810).
"""

import json
import subprocess
import sys
import textwrap

import pytest

import compiled
import vestige
from tree import names, record

pytestmark = pytest.mark.skipif(sys.version_info < (3, 15), reason="there are such modules from 3.15 on")

SLOTS = r"""
#include <Python.h>

PyABIInfo_VAR(abi);

static PyObject *plain(PyObject *self, PyObject *unused) { (void)self, (void)unused; Py_RETURN_NONE; }
static PyObject *one(PyObject *self, PyObject *argument) { (void)self; return Py_NewRef(argument); }
static PyObject *calls(PyObject *self, PyObject *function) { (void)self; return PyObject_CallNoArgs(function); }

static PyMethodDef methods[] = {{"method", plain, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyMethodDef functions[] = {
    {"plain", plain, METH_NOARGS, NULL},
    {"one", one, METH_O, NULL},
    {"calls", calls, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static int fill(PyObject *module)
{
    PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, NULL}};
    PyType_Spec spec = {"slotted.Thing", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    PyObject *type = PyType_FromSpec(&spec);

    return type == NULL ? -1 : PyModule_Add(module, "Thing", type);
}

PyMODEXPORT_FUNC PyModExport_slotted(void)
{
    static PySlot slots[] = {
        PySlot_PTR(Py_mod_abi, &abi),
        PySlot_PTR_STATIC(Py_mod_methods, functions),
        PySlot_FUNC(Py_mod_exec, fill),
        PySlot_END,
    };
    return slots;
}
"""


def use(module):
    module.plain()
    module.one(1)
    module.calls(module.plain)
    module.Thing().method()


@pytest.mark.parametrize("engine", vestige._core.engines)
@pytest.mark.parametrize("when", ["before", "while"])
def test_a_module_without_a_definition_is_recorded(engine, when, monkeypatch):
    made = compiled.module("slotted", SLOTS) if when == "before" else None
    if made:
        monkeypatch.setitem(sys.modules, "slotted", made)

    def outer():
        use(made or compiled.module("slotted", SLOTS))

    found = names(record(outer, engine=engine))
    plain = 2 if engine == "turbo" else 1  # C code calls the other function
    assert [found.get(f"<{name}>") for name in ("plain", "one", "calls", "slotted.Thing.method")] == [plain, 1, 1, 1]
    made = made or compiled.module("slotted", SLOTS)
    assert made.one(3) == 3


@pytest.mark.parametrize("engine", vestige._core.engines)
def test_what_a_lazy_import_brings_is_recorded_from_its_first_use_on(tmp_path, engine):
    (tmp_path / "helper.py").write_text("def helped():\n    return 1\n")
    program = f"""
        import json, sys
        sys.path[:0] = [{str(tmp_path)!r}, {str(compiled.HERE)!r}]
        import vestige
        from tree import calls, load, names
        lazy import _lsprof
        lazy from helper import helped

        def first():
            return _lsprof.Profiler().getstats(), helped()

        def second():
            return _lsprof.Profiler().getstats(), helped()

        def main():
            before = [name in sys.modules for name in ("_lsprof", "helper")]
            first()
            second()
            return before + [name in sys.modules for name in ("_lsprof", "helper")]

        with vestige.profile(engine={engine!r}) as prof:
            imported = main()
        trace = load(prof)
        first, module = (
            next(call for call in calls(trace) if call["name"].endswith(name))
            for name in (": first", "helper.py(1): <module>")
        )
        inside = first["ts"] <= module["ts"] <= module["ts"] + module["dur"] <= first["ts"] + first["dur"]
        print(json.dumps([imported, inside, names(trace)]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    imported, inside, found = json.loads(done.stdout)
    assert imported == [False, False, True, True]
    assert inside, "the import happens where the name is first used"
    assert (found["helped"], found["<_lsprof.Profiler.getstats>"]) == (2, 2)
