"""install(): vestige in torch.profiler's place. torch's own classes stay; the recording beneath them becomes ours.
torch.profiler.profile is a class of ours that inherits from torch's (profiles.py), and record_function and
ExecutionTraceObserver are ours: immediately if torch is loaded, else when the program loads it. With autograd=True so
is torch.autograd.profiler.profile. Modules that imported torch's classes before have names of their own for them:
objects that they make become objects of ours. install() itself does not load torch.

Where there is no torch, stand-ins for torch.profiler and torch.profiler.profiler let `from torch.profiler import
profile` work, with vestige.profile. There is no stand-in for torch itself: a program that checks for torch gets the
right answer, and `import torch.profiler` fails as usual. Defaults, and the name under which other tools see us, become
torch's as well. uninstall() puts everything back.
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
AUTOGRAD = "torch.autograd.profiler"
STAND_IN_NAMES = (
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

_originals: list[tuple[Any, str, Any]] = []  # module or class, name and original
_with_autograd = False
_stand_ins: dict[str, ModuleType] = {}  # by their names in sys.modules


def install(autograd: bool = False) -> None:
    """Makes torch.profiler record with vestige; with autograd=True also torch.autograd.profiler.profile. As in torch,
    with_stack is then False unless given.
    """
    global _with_autograd
    _with_autograd = _with_autograd or autograd
    if api.installed:
        if autograd and AUTOGRAD in sys.modules and _originals:
            _patch_autograd()
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
    global _with_autograd
    if not api.installed:
        return
    api.installed = _with_autograd = False
    _core.set_torch_mode(False)
    _arrival.leave()
    _torch_arrival.leave()
    _remove_stand_ins()
    if _originals:
        from . import spans

        spans.leave_place()
    for module, name, original in reversed(_originals):
        setattr(module, name, original)
    _originals.clear()


def _patch(module: ModuleType) -> None:
    """Called when torch.profiler is loaded."""
    import vestige

    try:
        from . import profiles, spans

        is_known = getattr(module, "profile", None) is profiles.torchs_profile
    except (AttributeError, ImportError):
        is_known = False
    if not is_known:  # vestige.profile takes the place of torch.profiler
        for name in STAND_IN_NAMES:
            if hasattr(module, name):
                _put(module, name, getattr(vestige, name))
        _warn_of_others()
        return
    _adopt(profiles.torchs_profile, profiles.profile)
    _adopt(profiles.torchs_observer, profiles.Observer)
    for place in (module, sys.modules[INNER]):
        _put(place, "ExecutionTraceObserver", vestige.ExecutionTraceObserver)
        _put(place, "profile", profiles.profile)
    _put(module, "record_function", vestige.record_function)
    _put(sys.modules["torch._C._autograd"], "_profiler_type", profiles.profiler_type)
    if _with_autograd:
        _patch_autograd()
    spans.take_place(_originals)


def _patch_autograd() -> None:
    from . import profiles

    _adopt(profiles.autograd_profile, profiles.AutogradProfile)
    _put(sys.modules[AUTOGRAD], "profile", profiles.AutogradProfile)


def _put(place: Any, name: str, ours: Any) -> None:
    if getattr(place, name) is not ours:
        _originals.append((place, name, getattr(place, name)))
        setattr(place, name, ours)


def _adopt(theirs: Any, ours: Any) -> None:
    """Makes objects of `theirs`, created by whatever name, objects of its subclass `ours`. Replaces __init__ for that,
    because a replaced __new__ could not be restored.
    """
    from functools import wraps

    original = theirs.__init__
    kinds = {theirs: ours}

    @wraps(original)
    def __init__(self: Any, *args: Any, **named: Any) -> None:
        if isinstance(self, ours):
            original(self, *args, **named)
            return
        try:
            kind = type(self)
            if kind not in kinds:
                kinds[kind] = _below(kind, ours)
            self.__class__ = kinds[kind]
        except (
            Exception
        ) as error:  # the program's metaclass or __init_subclass__ may raise; never raise into the program
            from .adapter import tell

            tell(f"torch records for {kind.__qualname__}, not vestige: {type(error).__name__}: {error}")
            original(self, *args, **named)
            return
        ours.__init__(self, *args, **named)

    _put(theirs, "__init__", __init__)


def _below(kind: Any, ours: Any) -> Any:
    """Makes a class between the program's class, which inherits from torch's, and torch's own."""
    names = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(kind)(kind.__name__, (kind, ours), names)


def _warn_of_others() -> None:
    """Names the modules that still use the torch.profiler classes which vestige has replaced."""
    from types import ModuleType

    replaced = {id(original) for _, name, original in _originals if name in ("profile", "ExecutionTraceObserver")}
    others = [
        name
        for name, module in sorted(sys.modules.items())
        if isinstance(module, ModuleType) and any(id(value) in replaced for value in list(vars(module).values()))
    ]
    others = [name for name in others if name.partition(".")[0] not in ("torch", "vestige")]
    if others:
        import warnings

        message = f"torch records for modules that imported its profiler before install(): {', '.join(others)}"
        warnings.warn(message, RuntimeWarning, stacklevel=4)


def _has_torch() -> bool:
    from importlib.util import find_spec

    try:
        return find_spec("torch") is not None
    except (ImportError, ValueError):  # something else uses this name
        return True


def _stand_in() -> None:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    import vestige

    from .devices import DeviceType
    from .steps import _default_schedule_fn

    for name in (MODULE, INNER):
        module = ModuleType(name, "vestige in the place of torch.profiler: torch is not installed.")
        module.__spec__ = ModuleSpec(name, None)
        for each in STAND_IN_NAMES:
            setattr(module, each, getattr(vestige, each))
        module.__dict__.update(
            DeviceType=DeviceType, kineto_available=lambda: True, _default_schedule_fn=_default_schedule_fn
        )
        module.__dict__["__all__"] = [
            each for each in (*STAND_IN_NAMES, "DeviceType", "kineto_available") if each[0] != "_"
        ]
        sys.modules[name] = _stand_ins[name] = module
    _stand_ins[MODULE].__dict__["profiler"] = _stand_ins[INNER]


def _remove_stand_ins() -> None:
    for name, module in _stand_ins.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]
    _stand_ins.clear()


_arrival = Arrival(MODULE, _patch)
_torch_arrival = Arrival("torch", lambda _: None, before=_remove_stand_ins)  # torch was installed or found after all
