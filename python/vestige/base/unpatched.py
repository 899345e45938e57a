"""Functions of the interpreter's own modules as they were before somebody replaced them, as gevent's patch_all() does.
In a thread of ours, the replacements would start an event loop, and gevent removes select.epoll altogether.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def original(module: str, name: str) -> Any:
    """Returns a function or class of a module written in C. If it was replaced, takes it from a new copy of the
    module.
    """
    __import__(module)
    there: Any = sys.modules[module]
    if getattr(getattr(there, name, None), "__module__", None) != module:
        spec = there.__spec__
        there = sys.modules["_frozen_importlib"].module_from_spec(spec)  # importlib itself may not be loaded
        spec.loader.exec_module(there)
    return getattr(there, name)
