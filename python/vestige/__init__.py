"""vestige: a tracing profiler for Python.

    from vestige import profile, record_function

    with profile() as prof:
        with record_function("load"):
            work()
    prof.export_chrome_trace("t.json.gz")     # open it at ui.perfetto.dev

This module holds names only. What annotations need is loaded at once; the rest
when it is first asked for, so that importing vestige costs next to nothing.
"""

from ._core import Trace, TraceError
from .annotate import counter, instant, record_function

__version__ = "0.1.0"
__all__ = [
    "ProfilerActivity",
    "Trace",
    "TraceError",
    "VestigeError",
    "counter",
    "install",
    "instant",
    "memory",
    "profile",
    "record_function",
    "snapshot",
    "uninstall",
]

VestigeError = TraceError

TYPE_CHECKING = False  # as typing has it, without loading typing
if TYPE_CHECKING:
    from . import memory
    from .activity import ProfilerActivity
    from .dropin import install, uninstall
    from .flight import snapshot
    from .profiler import profile
else:
    _HOMES = {
        "ProfilerActivity": "activity",
        "install": "dropin",
        "profile": "profiler",
        "snapshot": "flight",
        "uninstall": "dropin",
    }

    def __getattr__(name):
        if name == "memory":  # a module, which its import puts here
            return __import__(f"{__name__}.memory", fromlist=["memory"])
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = __import__(f"{__name__}.{_HOMES[name]}", fromlist=[name])
        return globals().setdefault(name, getattr(home, name))

    def __dir__():
        return sorted({*globals(), *__all__})
