"""The profilers that are compared, each behind start(), stop() and clear().

A peer that is not installed is left out, and the report says so. clear() forgets what was recorded: after it VizTracer and
cProfile record into memory they have used before, the least that they can cost; VizTracerAnew does not.
"""

import importlib.util
import os
import sys
import warnings

NEW = sys.version_info >= (3, 12)  # sys.monitoring exists


class Off:
    name = "off"

    def start(self):
        pass

    def stop(self):
        pass

    def clear(self):
        pass


class Bare:
    """The interpreter's own events without a hook (3.12 and later): no hook can cost less."""

    name = "bare"
    PYTHON = ["PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND"]
    NATIVE = ["CALL", "C_RETURN", "C_RAISE"]

    def __init__(self, names):
        self.events = sum(getattr(sys.monitoring.events, name) for name in names)

    def start(self):
        sys.monitoring.use_tool_id(3, self.name)
        sys.monitoring.set_events(3, self.events)

    def stop(self):
        sys.monitoring.set_events(3, 0)
        sys.monitoring.free_tool_id(3)

    def clear(self):
        pass


class Vestige:
    """The safe engine, which uses the interpreter's hooks like the peers; the family `engines` measures turbo."""

    name = "vestige"

    def __init__(self, **options):
        from vestige import profile

        self.profile = profile(gc=False, engine="safe", **options)
        self.start = self.profile.start
        self.stop = self.profile.stop

    def clear(self):
        pass


class Engine:
    """An engine of vestige, by name. Each start() makes a new profile with a new file and new memory, as users do."""

    def __init__(self, name, engine, **options):
        self.name = name
        self.engine = engine
        self.options = options

    def start(self):
        from vestige import profile

        self.profile = profile(engine=self.engine, **self.options)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # otherwise it would record with another engine
            self.profile.start()

    def stop(self):
        self.profile.stop()

    def clear(self):
        self.profile = None


class VizTracer:
    name = "VizTracer"

    def __init__(self, **options):
        from viztracer import VizTracer

        self.tracer = VizTracer(verbose=0, **options)
        self.start = self.tracer.start
        self.stop = self.tracer.stop
        self.clear = self.tracer.clear
        self.start()  # up to 3.11, making a tracer leaves a profile function in place, which the first stop() removes
        self.stop()
        self.clear()


class VizTracerAnew:
    """Each start() makes a new tracer with new memory, as users do."""

    name = "VizTracer"

    def start(self):
        self.tracer = VizTracer()
        self.tracer.start()

    def stop(self):
        self.tracer.stop()

    def clear(self):
        self.tracer.clear()
        self.tracer = None


class CProfile:
    name = "cProfile"

    def __init__(self, **options):
        from cProfile import Profile

        self.profile = Profile(**options)
        self.start = self.profile.enable
        self.stop = self.profile.disable
        self.clear = self.profile.clear


class Torch:
    """torch.profiler with_stack. Starting and stopping take long, and each profile can start only once, so each start
    makes a new one.
    """

    name = "torch"

    def __init__(self):
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch would report every start

    def start(self):
        from torch.profiler import ProfilerActivity, profile

        self.profile = profile(activities=[ProfilerActivity.CPU], with_stack=True)
        self.profile.start()

    def stop(self):
        self.profile.stop()

    def clear(self):
        self.profile = None


def is_installed(module):
    return importlib.util.find_spec(module) is not None


def all_functions():
    """Returns the profilers that record calls of Python and C functions."""
    tools = [Off(), *([Bare(Bare.PYTHON + Bare.NATIVE)] if NEW else []), Vestige()]
    if is_installed("viztracer"):
        tools.append(VizTracer())
    tools.append(CProfile())
    return tools


def python_functions():
    """Returns the profilers, set to leave C functions out."""
    tools = [Off(), *([Bare(Bare.PYTHON)] if NEW else []), Vestige(c_functions=False)]
    if is_installed("viztracer"):
        tools.append(VizTracer(ignore_c_function=True))
    tools.append(CProfile(builtins=False))
    return tools


def engines():
    """Returns vestige's engines: "safe", and "turbo" where it is built in."""
    from vestige import _core

    safe = Engine("safe", "safe")
    return [safe, Engine("turbo", "turbo")] if "turbo" in _core.engines else [safe]


def torch():
    """Returns torch's profiler if the comparison is requested, otherwise None."""
    return Torch() if not NEW and is_installed("torch") else None
