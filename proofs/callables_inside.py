"""Runs in the process that proofs/callables.py starts: calls callables of each kind and says what was recorded.

python callables_inside.py names FOLDER     # the kinds
python callables_inside.py KIND FOLDER      # {engine: the calls of one function} of a kind, or {"error": why not}; what tools record
python callables_inside.py torch FOLDER     # {kind: names of the calls that torch.profiler records}; torch-pyside6 for that kind
python callables_inside.py numeric FOLDER   # {program: {"shares": [share of CPU time in C functions, in all callables]}}

Each kind has a process of its own: PyQt6 and PySide6 bring different builds of the same libraries.
"""

import functools
import importlib.machinery
import importlib.util
import json
import operator
import os
import subprocess
import sys
import sysconfig
import tempfile
import types
from collections import deque
from pathlib import Path

from callables_tools import by_torch, called, called_by, recorded, tools
from vestige import _core, profile

FOLDER = Path(sys.argv[2])
CYTHON = "def double(x):\n    return x + x\ncdef class Box:\n    def shake(self):\n        return 1\n"
NANOBIND = """
#include <nanobind/nanobind.h>
struct Box { int shake() { return 1; } };
NB_MODULE(by_nanobind, m) {
    m.def("twice", [](int x) { return x + x; });
    nanobind::class_<Box>(m, "Box").def(nanobind::init<>()).def("shake", &Box::shake);
}
"""
PYBIND11 = """
#include <pybind11/pybind11.h>
struct Box { int shake() { return 1; } };
PYBIND11_MODULE(by_pybind11, m) {
    m.def("thrice", [](int x) { return 3 * x; });
    pybind11::class_<Box>(m, "Box").def(pybind11::init<>()).def("shake", &Box::shake);
}
"""


def load(name, path):
    spec = importlib.util.spec_from_file_location(
        name, path, loader=importlib.machinery.ExtensionFileLoader(name, str(path))
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def compiled(name, text, suffix, *flags):
    source, made = FOLDER / f"{name}{suffix}", FOLDER / f"{name}.so"
    if not made.exists():
        source.write_text(text)
        include = f"-I{sysconfig.get_path('include')}"
        command = ["c++", "-std=c++17", "-O1", "-fPIC", "-shared", include, *flags, str(source), "-o", str(made)]
        subprocess.run(command, check=True, capture_output=True)
    return load(name, made)


# ---- the kinds: each returns a function that calls some ---------------------------


def functions():
    x = []
    return lambda: (len(x), x.append(1), x.clear())


def classes():
    return lambda: (bytes(3), dict(a=1), list("ab"), set("a"), deque("a"))


def objects():
    partial, first = functools.partial(abs), operator.itemgetter(0)
    cached = functools.lru_cache(lambda x: x)
    return lambda: (partial(-1), first([1]), cached(1))


def small():
    class Point:
        pass

    return lambda: (int("3"), float(2), range(3), ValueError(), Point())


def operators():
    x = [1]
    return lambda: (x + x, 1 in x, x < x)


def ctypes_():
    import ctypes

    strlen = ctypes.CDLL(None).strlen
    return lambda: strlen(b"a")


def ufuncs():
    import numpy as np

    x = np.arange(4.0)
    return lambda: (np.sin(x), np.add(x, x, out=x), np.add.reduce(x), np.add.accumulate(x), np.add.at(x, [0], 1))


def array_operators():
    import numpy as np

    x, m = np.arange(4.0), np.eye(4)

    def calls():
        y = x + x
        y += x
        -x, x < y, m @ m

    return calls


def dispatched():
    import numpy as np

    x = np.arange(4.0)
    return lambda: (np.concatenate([x, x]), np.dot(x, x), np.where(x, x, x))


def cython():
    from Cython.Build import cythonize
    from setuptools import Extension

    path = FOLDER / "by_cython.pyx"
    path.write_text(CYTHON)
    module = cythonize([Extension("by_cython", [str(path)])], quiet=True, language_level=3)[0]
    made = _cython(Path(module.sources[0]))
    box = made.Box()
    return lambda: (made.double(2), box.shake(), made.Box())


def _cython(source):
    made = FOLDER / "by_cython.so"
    include = f"-I{sysconfig.get_path('include')}"
    subprocess.run(
        ["cc", "-O1", "-fPIC", "-shared", include, str(source), "-o", str(made)], check=True, capture_output=True
    )
    return load("by_cython", made)


def nanobind():
    import nanobind

    folder = Path(nanobind.__file__).parent
    flags = [f"-I{folder / 'include'}", f"-I{folder / 'ext/robin_map/include'}", str(folder / "src/nb_combined.cpp")]
    made = compiled("by_nanobind", NANOBIND, ".cpp", "-fvisibility=hidden", *flags)
    box = made.Box()
    return lambda: (made.twice(2), box.shake(), made.Box())


def pybind11():
    import pybind11 as binding

    made = compiled("by_pybind11", PYBIND11, ".cpp", f"-I{binding.get_include()}", "-fvisibility=hidden")
    box = made.Box()
    return lambda: (made.thrice(2), box.shake(), made.Box())


def cffi():
    from cffi import FFI

    ffi = FFI()
    ffi.cdef("int abs(int);")
    library = ffi.dlopen(None)
    library.abs(1)
    return lambda: library.abs(-3)


def pyqt6():
    from PyQt6 import QtCore, QtWidgets

    return of_qt(QtCore, QtWidgets)


def pyside6():
    from PySide6 import QtCore, QtWidgets

    return of_qt(QtCore, QtWidgets)


def of_qt(core, widgets):
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    of_qt.app = app = widgets.QApplication([])
    widget = widgets.QListWidget()
    later, listing = core.QTimer.singleShot, widgets.QListWidget

    def calls():
        later(1, app.quit)
        widget.addItem("x"), widget.show(), app.exec(), widget.count(), listing()

    return calls


def duckdb():
    import duckdb as db

    connection = db.connect()
    return lambda: connection.execute("select 1").fetchall()


def psycopg():
    import psycopg as pg

    connection = pg.connect(start_postgres(), autocommit=True)
    psycopg.cursor = cursor = connection.cursor()

    def calls():
        cursor.execute("select 1")

    calls.inside = "wait_c"
    return calls


def start_postgres():
    folder = Path(tempfile.mkdtemp(prefix="vestige-pg-"))
    options = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    if os.geteuid() == 0:
        options["user"] = "nobody"
        os.chmod(folder, 0o777)
    data = folder / "data"
    subprocess.run(["initdb", "-D", data, "-A", "trust", "-U", "me", "-N"], **options)
    subprocess.run(["pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", f"-k {folder} -h ''", "start"], **options)
    import atexit

    atexit.register(subprocess.run, ["pg_ctl", "-D", data, "-m", "immediate", "stop"], **options)
    return f"host={folder} user=me dbname=postgres"


def pandas():
    import pandas as pd

    index = pd.Index([1, 2, 3])
    lib, values = pd._libs.lib, pd.array([1, 2])
    return lambda: (lib.is_scalar(1), lib.infer_dtype(values), lib.is_integer(index))


def polars():
    import polars as pl

    frame = pl.DataFrame({"a": [1, 2, 3]})
    return lambda: frame._df.height()


def sklearn():
    import numpy as np
    from sklearn.metrics._dist_metrics import DistanceMetric64

    metric = DistanceMetric64.get_metric("euclidean")
    x = np.arange(6.0).reshape(3, 2)
    return lambda: metric.pairwise(x)


def pillow():
    from PIL import Image

    image = Image.new("L", (3, 3))
    return lambda: (Image.core.fill("L", (2, 2), 0), image.im.resize((2, 2), 0))


def lxml():
    from lxml import etree

    root = etree.fromstring("<a><b/></a>")
    return lambda: (etree.fromstring("<a/>"), root.find("b"), etree.tostring(root), etree.XPath("//b")(root))


def tomli():
    import tomli as parser

    return lambda: parser.loads("a = 1")


KINDS = {
    kind.__name__.rstrip("_"): kind
    for kind in (
        functions,
        classes,
        objects,
        small,
        operators,
        ctypes_,
        ufuncs,
        array_operators,
        dispatched,
        cython,
        nanobind,
        pybind11,
        cffi,
        pyqt6,
        pyside6,
        duckdb,
        psycopg,
        pandas,
        polars,
        sklearn,
        pillow,
        lxml,
        tomli,
    )
}


# ---- what was recorded --------------------------------------------------------------


def direct_calls(function, engine):
    """The calls in C that a function makes itself, in order."""
    spans = sorted(recorded(function, engine), key=lambda e: (e["ts"], -e["dur"]))
    name = function.__qualname__
    outer = next(e for e in spans if e["name"].endswith(name))
    found, end = [], outer["ts"]
    if hasattr(function, "inside"):  # the library's own functions in Python call it
        return [e["name"] for e in spans if function.inside in e["name"]]
    for e in spans:
        inside = (
            e["tid"] == outer["tid"] and outer["ts"] <= e["ts"] and e["ts"] + e["dur"] <= outer["ts"] + outer["dur"]
        )
        if e is not outer and inside and e["ts"] >= end:
            found.append(e["name"])
            end = e["ts"] + e["dur"]
    return [one for one in found if one.startswith("<built-in")]


def one_kind(kind):
    try:
        function = kind()
        function()
        calls = {engine: direct_calls(function, engine) for engine in _core.engines}
        seen = {name: called_by(tool, function) for name, tool in tools().items()}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:150]}
    names = sorted({called(one) for found in calls.values() for one in found})
    return {"calls": calls, "names": names, "seen": seen}


def torch():
    """Returns the calls that torch.profiler records. Most kinds share a process, because torch takes long to load."""
    found = {}
    for name, kind in KINDS.items():
        if importlib.util.find_spec("torch") and (name == "pyside6") == (sys.argv[1] == "torch-pyside6"):
            try:
                function = kind()
                function()
                found[name] = called_by(by_torch, function)
            except ImportError:
                continue
    return found


# ---- ten numeric programs ------------------------------------------------------------


def numeric_programs():
    import numpy as np

    rng = np.random.default_rng(1)
    x, m = rng.random(200_000), rng.random((300, 300))

    def heat():
        u = m.copy()
        for _ in range(40):
            u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])

    def mandelbrot():
        c = np.linspace(-2, 1, 300) + 1j * np.linspace(-1, 1, 200)[:, None]
        z = np.zeros_like(c)
        for _ in range(20):
            z = np.where(abs(z) < 2, z * z + c, z)

    def black_scholes():
        from scipy import special

        d = (np.log(x + 1) + 0.1) / np.sqrt(x + 1)
        return x * special.ndtr(d) - np.exp(-0.1) * special.ndtr(d - 0.2)

    def nbody():
        p, v = m[:, :3].copy(), m[:, 3:6].copy()
        for _ in range(5):
            d = p[:, None] - p[None]
            v -= (d / ((d**2).sum(-1, keepdims=True) + 1) ** 1.5).sum(1) * 0.01
            p += v

    def logistic():
        w = np.zeros(300)
        for _ in range(200):
            w -= 0.01 * (m.T @ (1 / (1 + np.exp(-(m @ w))) - x[:300]))

    def monte_carlo():
        return [np.maximum(np.exp(rng.standard_normal(20_000)) - 1, 0).mean() for _ in range(20)]

    def softmax():
        e = np.exp(m - m.max(1, keepdims=True))
        for _ in range(50):
            e = np.exp(e / e.sum(1, keepdims=True))

    def sieve():
        flags = np.ones(1_000_000, bool)
        for i in range(2, 1000):
            if flags[i]:
                flags[i * i :: i] = False
        return np.nonzero(flags)

    def small_arrays():
        a = np.arange(3.0)
        for _ in range(30_000):
            np.cos(a + a)

    def buffers():
        return sum(len(bytes(5_000_000)) + len(bytearray(5_000_000)) for _ in range(20))

    return [heat, mandelbrot, black_scholes, nbody, logistic, monte_carlo, softmax, sieve, small_arrays, buffers]


def was_recorded_before(function):
    """Whether a call in C is of a C function, which was always recorded."""
    if function.name.startswith("<built-in type") or "__call__ of " in function.name:
        return False
    if not function.name.startswith("<built-in function"):
        return True
    here = getattr(sys.modules.get(function.file), function.name.split()[2].rstrip(">"), None)
    return here is None or isinstance(here, types.BuiltinFunctionType)


def shares(program):
    """The shares in the quickest of five runs, which others disturbed least."""
    program()
    engine = "turbo" if "turbo" in _core.engines else _core.engines[0]
    return min((one_run(program, engine) for _ in range(5)), key=lambda run: run[0])[1]


def one_run(program, engine):
    """Returns the time of the program and its shares."""
    with profile(engine=engine, gc=False) as prof:
        program()
    trace = prof._session.trace()
    functions = trace.functions()
    rows = trace.tables(["functions"])["functions"]
    total = sum(row.self_ns for row in rows)
    native = [(functions[row.func], row.self_ns) for row in rows if functions[row.func].name.startswith("<built-in")]
    before = sum(ns for function, ns in native if was_recorded_before(function))
    return total, [round(before / total, 4), round(sum(ns for _, ns in native) / total, 4)]


def numeric():
    found = {}
    for program in numeric_programs():
        try:
            found[program.__name__] = {"shares": shares(program)}
        except ImportError as error:
            found[program.__name__] = {"error": f"not tried: {error}"}
    return found


def run(what):
    if what == "names":
        return list(KINDS)
    if what.startswith("torch"):
        return torch()
    return numeric() if what == "numeric" else one_kind(KINDS[what])


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
    sys.stdout.flush()
