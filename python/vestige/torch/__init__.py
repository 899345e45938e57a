"""torch.profiler's API on recordings of vestige, and the adapter that records torch's operators.

This module is loaded before torch: it knows whether install() has put vestige in torch.profiler's place, and can wait
until the program imports torch. An Arrival is a finder on sys.meta_path that lets the other finders find and load
a module and then calls a function. It never loads anything by itself.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


installed = False  # true while vestige stands in torch.profiler's place; dropin.py sets it


class Arrival:
    """Calls `before` when a module was found, and `then` with the module once it is loaded; then leaves
    sys.meta_path.
    """

    def __init__(self, name: str, then: Callable[[ModuleType], None], before: Callable[[], None] | None = None) -> None:
        self._name = name
        self._then = then
        self._before = before

    def wait(self) -> None:
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        for finder in list(sys.meta_path):
            if isinstance(finder, Arrival) or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Loader(spec.loader, self)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """Loads with the module's own loader, restores that loader in the module, and calls every Arrival for the
    module.
    """

    def __init__(self, loader: Any, arrival: Arrival) -> None:
        self._loader = loader
        self._arrival = arrival

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        waiting = [each for each in sys.meta_path if isinstance(each, Arrival) and each._name == self._arrival._name]
        for each in waiting:
            if each._before is not None:
                each._before()
        self._loader.exec_module(module)
        for each in waiting:
            each.leave()
            each._then(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
