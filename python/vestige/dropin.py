"""install(): vestige in torch.profiler's place.

The names of torch.profiler, and of torch.profiler.profiler where they are defined, become ours: at once where torch is
loaded, else when the program loads it; torch is not loaded for it, and need not be there. Defaults and the name under
which other tools see us become torch's as well. uninstall() puts everything back. What stays torch's own:
ExecutionTraceObserver, whose objects profile() takes, kineto_available and DeviceType.
"""

from __future__ import annotations

import sys

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

MODULE = "torch.profiler"
INNER = "torch.profiler.profiler"
NAMES = (
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

_installed = False
_originals: list[tuple[ModuleType, str, Any]] = []  # what the patched modules had


def install() -> None:
    """Makes torch.profiler ours. Also: with_stack is False unless given, as torch has it."""
    global _installed
    if _installed:
        return
    _installed = True
    _core.set_torch_mode(True)
    module = sys.modules.get(MODULE)
    if module is not None:
        _patch(module)
    else:
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Undoes install()."""
    global _installed
    if not _installed:
        return
    _installed = False
    _core.set_torch_mode(False)
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for module, name, original in _originals:
        setattr(module, name, original)
    _originals.clear()


def installed() -> bool:
    return _installed


def _patch(module: ModuleType) -> None:
    import vestige

    for place in (module, sys.modules.get(INNER)):
        for name in NAMES:
            if place is not None and hasattr(place, name):
                _originals.append((place, name, getattr(place, name)))
                setattr(place, name, getattr(vestige, name))


class _Finder:
    """Waits on sys.meta_path for torch.profiler to be loaded, and leaves."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != MODULE:
            return None
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None and spec.loader is not None:
                    spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
                    return spec
        return None


class _Loader:
    """Loads with the module's own loader, gives it back its place, and patches."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
        if _installed:
            _patch(module)


_finder = _Finder()
