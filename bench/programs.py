"""Six programs of pyperformance, each as a function that runs it once: real ones, of classes and small functions.

They are imported from pip's installation of pyperformance; the
repository has no copy. Its own driver, which starts processes, is
left out. Sizes are smaller for programs whose runs would take much longer than the others'.
"""

import importlib.util
import io
import logging
import os
import sys

RAYTRACE_SIZE = 32  # pixels in each direction
GO_GAMES = 40
LOGGING_LOOPS = 40  # rounds of ten messages


def load(name):
    """Imports a program's module."""
    package = importlib.util.find_spec("pyperformance").submodule_search_locations[0]
    path = os.path.join(package, "data-files", "benchmarks", f"bm_{name}", "run_benchmark.py")
    spec = importlib.util.spec_from_file_location(f"bm_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def richards():
    program = load("richards").Richards()
    return lambda: program.run(1)


def deltablue():
    delta_blue = load("deltablue").delta_blue
    return lambda: delta_blue(100)


def raytrace():
    bench = load("raytrace").bench_raytrace
    return lambda: bench(1, RAYTRACE_SIZE, RAYTRACE_SIZE, None)


def go():
    module = load("go")
    module.GAMES = GO_GAMES
    return module.versus_cpu


def json_dumps():
    module = load("json_dumps")
    cases = [getattr(module, case) for case in module.CASES]
    data = [(value, range(count)) for value, count in cases]
    return lambda: module.bench_json_dumps(data)


def log():
    module = load("logging")
    stream = io.StringIO()
    logger = logging.getLogger("benchlogger")
    logger.propagate = False
    logger.addHandler(logging.StreamHandler(stream=stream))
    logger.setLevel(logging.WARNING)
    benches = [module.BENCHMARKS[name] for name in sorted(module.BENCHMARKS)]

    def run():
        for bench in benches:
            bench(LOGGING_LOOPS, logger, stream)

    return run


SIX = {
    "richards": richards,
    "deltablue": deltablue,
    "raytrace": raytrace,
    "go": go,
    "json_dumps": json_dumps,
    "logging": log,
}
