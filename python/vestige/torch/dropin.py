"""install(): vestige in torch.profiler's place.

The names of torch.profiler, and of torch.profiler.profiler where they are defined, become ours: at once where torch is
loaded, else when the program loads it. install() itself does not load torch. Where there is no torch, stand-ins for
these two modules let `from torch.profiler import profile` work. There is no stand-in for torch itself: a program that
checks for torch gets the right answer, and `import torch.profiler` fails as ever. Defaults, and the name under which
other tools see us, become torch's as well. uninstall() puts everything back. kineto_available and DeviceType stay
torch's own.
"""

from __future__ import annotations

import sys

from vestige import _core
from vestige import torch as api

from . import Arrival

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

MODULE = "torch.profiler"
INNER = "torch.profiler.profiler"
NAMES = (
    "ExecutionTraceObserver",
    "KinetoStepTracker",
    "ProfilerAction",
    "ProfilerActivity",
    "_ExperimentalConfig",
    "itt",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
)

_originals: list[tuple[ModuleType, str, Any]] = []  # what the patched modules had
_stand_ins: dict[str, ModuleType] = {}  # by the names that they have in sys.modules


def install() -> None:
    """Makes torch.profiler ours. Also: with_stack is False unless given, as torch has it."""
    if api.installed:
        return
    api.installed = True
    _core.set_torch_mode(True)
    module = sys.modules.get(MODULE)
    if module is not None:
        _patch(module)
        return
    if sys.modules.get("torch") is None and not _has_torch():
        _stand_in()
        _torch_arrival.wait()
    _arrival.wait()


def uninstall() -> None:
    """Undoes install()."""
    if not api.installed:
        return
    api.installed = False
    _core.set_torch_mode(False)
    _arrival.leave()
    _torch_arrival.leave()
    _remove_stand_ins()
    for module, name, original in _originals:
        setattr(module, name, original)
    _originals.clear()


def _patch(module: ModuleType) -> None:
    import vestige

    for place in (module, sys.modules.get(INNER)):
        for name in NAMES:
            if place is not None and hasattr(place, name):
                _originals.append((place, name, getattr(place, name)))
                setattr(place, name, getattr(vestige, name))


def _has_torch() -> bool:
    from importlib.util import find_spec

    try:
        return find_spec("torch") is not None
    except (ImportError, ValueError):  # something else has the name
        return True


def _stand_in() -> None:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    import vestige

    from .events import DeviceType
    from .steps import _default_schedule_fn

    for name in (MODULE, INNER):
        module = ModuleType(name, "vestige in the place of torch.profiler: torch is not installed.")
        module.__spec__ = ModuleSpec(name, None)
        for each in NAMES:
            setattr(module, each, getattr(vestige, each))
        module.__dict__.update(
            DeviceType=DeviceType, kineto_available=lambda: True, _default_schedule_fn=_default_schedule_fn
        )
        module.__dict__["__all__"] = [each for each in (*NAMES, "DeviceType", "kineto_available") if each[0] != "_"]
        sys.modules[name] = _stand_ins[name] = module
    _stand_ins[MODULE].__dict__["profiler"] = _stand_ins[INNER]


def _remove_stand_ins() -> None:
    for name, module in _stand_ins.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    _stand_ins.clear()


_arrival = Arrival(MODULE, _patch)
_torch_arrival = Arrival("torch", lambda _: None, before=_remove_stand_ins)  # torch was installed, or found, after all
