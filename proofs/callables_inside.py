"""Runs in the process that proofs/callables.py starts: calls callables of each kind and says what was recorded.

python callables_inside.py kinds FOLDER     # {kind: {engine: the calls of one function, or why not}}
python callables_inside.py numeric FOLDER   # {program: [share of CPU time in C calls, without the new kinds, with them]}
"""

import cProfile
import functools
import importlib.machinery
import importlib.util
import json
import operator
import os
import pstats
import subprocess
import sys
import sysconfig
import tempfile
import types
from pathlib import Path

from vestige import _core, profile

FOLDER = Path(sys.argv[2])
CYTHON = "def double(x):\n    return x + x\ncdef class Box:\n    def get(self):\n        return 1\n"
NANOBIND = """
#include <nanobind/nanobind.h>
struct Box { int get() { return 1; } };
NB_MODULE(by_nanobind, m) {
    m.def("twice", [](int x) { return x + x; });
    nanobind::class_<Box>(m, "Box").def(nanobind::init<>()).def("get", &Box::get);
}
"""
PYBIND11 = """
#include <pybind11/pybind11.h>
struct Box { int get() { return 1; } };
PYBIND11_MODULE(by_pybind11, m) {
    m.def("thrice", [](int x) { return 3 * x; });
    pybind11::class_<Box>(m, "Box").def(pybind11::init<>()).def("get", &Box::get);
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


def builtin():
    partial, first = functools.partial(abs), operator.itemgetter(0)
    cached = functools.lru_cache(lambda x: x)

    def calls():
        bytes(3), dict(a=1), list("ab"), set("a")
        partial(-1), first([1]), cached(1), len([1])

    return calls


def ctypes_():
    import ctypes

    strlen = ctypes.CDLL(None).strlen
    return lambda: strlen(b"a")


def numpy():
    import numpy as np

    x = np.arange(4.0)

    def calls():
        y = np.sin(x) + x
        y += x
        np.add(x, y, out=y), -x, x < y, np.add.reduce(x), np.add.accumulate(x), np.add.at(x, [0], 1)
        np.array([1]), np.concatenate([x, y]), np.sum(x)

    return calls


def cython():
    from Cython.Build import cythonize
    from setuptools import Extension

    path = FOLDER / "by_cython.pyx"
    path.write_text(CYTHON)
    module = cythonize([Extension("by_cython", [str(path)])], quiet=True, language_level=3)[0]
    made = _cython(Path(module.sources[0]))
    box = made.Box()
    return lambda: (made.double(2), box.get(), made.Box())


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
    return lambda: (made.twice(2), box.get(), made.Box())


def pybind11():
    import pybind11 as binding

    made = compiled("by_pybind11", PYBIND11, ".cpp", f"-I{binding.get_include()}", "-fvisibility=hidden")
    box = made.Box()
    return lambda: (made.thrice(2), box.get(), made.Box())


def cffi():
    from cffi import FFI

    ffi = FFI()
    ffi.cdef("int abs(int);")
    library = ffi.dlopen(None)
    library.abs(1)
    return lambda: library.abs(-3)


def pyqt6():
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PyQt6.QtCore import QTimer
    from PyQt6.QtWidgets import QApplication, QListWidget

    pyqt6.app = app = QApplication([])
    widget = QListWidget()

    def calls():
        QTimer.singleShot(1, app.quit)
        widget.addItem("x"), widget.show(), app.exec(), widget.count(), QListWidget()

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


KINDS = [
    builtin,
    ctypes_,
    numpy,
    cython,
    nanobind,
    pybind11,
    cffi,
    pyqt6,
    duckdb,
    psycopg,
    pandas,
    polars,
    sklearn,
    pillow,
    lxml,
]


# ---- what was recorded --------------------------------------------------------------


def direct_calls(function, engine):
    """The calls in C that a function makes itself, in order."""
    with profile(engine=engine, gc=False) as prof:
        function()
    if prof._session.engine not in (engine, _core.engines[0]):
        raise RuntimeError(f"recorded by {prof._session.engine}")
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        prof.export_chrome_trace(file.name)
        events = json.loads(Path(file.name).read_text())["traceEvents"]
    spans = sorted((e for e in events if e.get("ph") == "X"), key=lambda e: (e["ts"], -e["dur"]))
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


def by_cprofile(function):
    prof = cProfile.Profile()
    prof.runcall(function)
    return sorted(name for (_, _, name) in pstats.Stats(prof).stats if name.startswith("<") and "Profiler" not in name)


def kinds():
    found = {}
    for kind in KINDS:
        try:
            function = kind()
            function()
            found[kind.__name__.rstrip("_")] = {
                **{engine: direct_calls(function, engine) for engine in _core.engines},
                "cProfile": by_cprofile(function),
            }
        except Exception as error:
            found[kind.__name__.rstrip("_")] = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:150]}
    return found


# ---- ten numeric programs ------------------------------------------------------------


def numeric_programs():
    import numpy as np
    from scipy import special

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
    program()
    with profile(engine="turbo" if "turbo" in _core.engines else _core.engines[0], gc=False) as prof:
        program()
    trace = prof._session.trace()
    functions = trace.functions()
    rows = trace.tables(["functions"])["functions"]
    total = sum(row.self_ns for row in rows)
    native = [(functions[row.func], row.self_ns) for row in rows if functions[row.func].name.startswith("<built-in")]
    before = sum(ns for function, ns in native if was_recorded_before(function))
    return [round(before / total, 4), round(sum(ns for _, ns in native) / total, 4)]


def numeric():
    return {program.__name__: shares(program) for program in numeric_programs()}


if __name__ == "__main__":
    print(json.dumps({"kinds": kinds, "numeric": numeric}[sys.argv[1]]()))
    sys.stdout.flush()
