"""vestige: a tracing profiler for Python.

    from vestige import profile, record_function

    with profile() as prof:
        with record_function("load"):
            work()
    prof.export_chrome_trace("t.json.gz")     # open it at ui.perfetto.dev

This module only holds names. The code for annotations is loaded on import; every
other name is loaded when it is first used, so importing vestige costs next to nothing.

PYTEST_DONT_REWRITE: pytest rewrites the asserts of packages that have a plugin, and
warns if such a package is imported already, as vestige is in a recorded program.
This module has no asserts, so nothing needs rewriting.
"""

from os import environ as _environ

from ._core import Trace, TraceError, record_function
from ._core import __version__ as __version__
from .annotate import counter, instant

__doc__ = __doc__ or "PYTEST_DONT_REWRITE"  # `python -OO` drops the one above
__all__ = [
    "ExecutionTraceObserver",
    "KinetoStepTracker",
    "ProfilerAction",
    "ProfilerActivity",
    "Trace",
    "TraceError",
    "VestigeError",
    "counter",
    "install",
    "instant",
    "itt",
    "listen",
    "memory",
    "profile",
    "record_function",
    "schedule",
    "snapshot",
    "supported_activities",
    "tensorboard_trace_handler",
    "uninstall",
]

VestigeError = TraceError

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without importing typing
if TYPE_CHECKING:
    from . import itt, memory
    from . import tables as tables
    from .notebook import load_ipython_extension as load_ipython_extension
    from .profiler import profile
    from .recording.control import listen
    from .recording.flight import snapshot
    from .tables import open as open  # not in __all__: it would hide the builtin
    from .torch.activity import ProfilerActivity, supported_activities
    from .torch.dropin import install, uninstall
    from .torch.execution_trace import ExecutionTraceObserver
    from .torch.experimental import _ExperimentalConfig as _ExperimentalConfig
    from .torch.handlers import tensorboard_trace_handler
    from .torch.steps import KinetoStepTracker, ProfilerAction, schedule
else:
    _HOMES = {
        "ExecutionTraceObserver": "torch.execution_trace",
        "KinetoStepTracker": "torch.steps",
        "ProfilerAction": "torch.steps",
        "ProfilerActivity": "torch.activity",
        "_ExperimentalConfig": "torch.experimental",
        "install": "torch.dropin",
        "listen": "recording.control",
        "open": "tables",
        "load_ipython_extension": "notebook",
        "profile": "profiler",
        "schedule": "torch.steps",
        "snapshot": "recording.flight",
        "supported_activities": "torch.activity",
        "tensorboard_trace_handler": "torch.handlers",
        "uninstall": "torch.dropin",
    }

    def __getattr__(name):
        if name in ("itt", "memory", "tables"):  # modules; importing a module sets its name here
            return __import__(f"{__name__}.{name}", fromlist=[name])
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = __import__(f"{__name__}.{_HOMES[name]}", fromlist=[name])
        return globals().setdefault(name, getattr(home, name))

    def __dir__():
        return sorted({*globals(), *__all__})


if "VESTIGE_LISTEN" in _environ:
    from .recording.control import listen_from_environment

    listen_from_environment()
    del listen_from_environment
