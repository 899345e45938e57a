"""Measures the cost of hooks that do nothing. From 3.12 on, turbo cannot cost less. On 3.11 turbo can, because it makes
the frames of simple calls itself, which is cheaper than the interpreter's path to a hook.

An empty hook replaces ours: up to 3.11 a function that evaluates frames as the interpreter does by itself, from 3.12 on
a callback of sys.monitoring for each event of Python functions. Another hook only reads the clock. C functions are not
hooked. The table also has turbo without C functions (`c_functions=False`), turbo as it is, and VizTracer. All alternate
in one process, as in `engines`.

A C compiler makes the hooks.
"""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import child
import peers
from engines import alternate_programs, program_table

HERE = Path(__file__).resolve().parent


def make_hooks(folder):
    """Builds and imports empty_hooks.c."""
    path = os.path.join(folder, "empty_hooks.so")
    include = [f"-I{sysconfig.get_path('include')}", f"-I{HERE.parent / 'include'}"]
    source = str(HERE / "empty_hooks.c")
    subprocess.run(["cc", "-std=gnu11", "-O2", "-shared", "-fPIC", *include, "-o", path, source], check=True)
    spec = importlib.util.spec_from_file_location("empty_hooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class EmptyFrames(peers.Off):
    def __init__(self, name, hooks, timed):
        self.name = name
        self.timed = timed
        self.hooks = hooks

    def start(self):
        self.hooks.start(self.timed)

    def stop(self):
        self.hooks.stop()


class EmptyCallbacks(peers.Bare):
    def __init__(self, name, hooks, timed):
        super().__init__(self.PYTHON)
        self.name = name
        self.callback = hooks.callback_timed if timed else hooks.callback

    def start(self):
        super().start()
        for name in self.PYTHON:
            sys.monitoring.register_callback(3, getattr(sys.monitoring.events, name), self.callback)


def programs_ns(rounds):
    with tempfile.TemporaryDirectory() as folder:
        hooks = make_hooks(folder)
    empty = EmptyCallbacks if peers.NEW else EmptyFrames
    tools = [
        peers.Off(),
        empty("empty hook", hooks, False),
        empty("and the clock", hooks, True),
        peers.Engine("turbo, no C", "turbo", c_functions=False),
        peers.Engine("turbo", "turbo"),
        *([peers.VizTracerAnew()] if peers.is_installed("viztracer") else []),
    ]
    return alternate_programs(tools, rounds)


def measure(quick):
    table = program_table(child.run(programs_ns, rounds=2 if quick else 12))
    table.title = "Programs with hooks that do nothing, times as long as without a profiler"
    return [table]
