"""What a profile is given, as far as it can be wrong by itself: engines and lists of names."""

from __future__ import annotations

import os
import sys

from vestige import _core
from vestige.base.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check_engine(engine: object) -> str:
    """What "auto" means may be said by VESTIGE_ENGINE; "safe" is the one that is there on every Python."""
    if not isinstance(engine, str):
        raise TypeError(f"engine must be a str, not {type(engine).__name__}")
    by = ""
    if engine == "auto" and os.environ.get("VESTIGE_ENGINE"):
        engine = os.environ["VESTIGE_ENGINE"]
        by = " (VESTIGE_ENGINE asks for it)"
    if engine == "safe":
        return _core.engines[0]
    if engine != "auto" and engine not in _core.engines:
        raise ValueError(f"no engine {engine!r} on this Python{by}: use one of auto, safe, {', '.join(_core.engines)}")
    return engine


on_stderr = False  # the command says so: a program may have its own idea of warnings


def tell_engine(line: str | None) -> None:
    """Says that the engine that was asked for could not be, if it could not: to whoever started us."""
    if line is None:
        return
    if on_stderr:
        if sys.__stderr__ is not None:
            print(printable(line), file=sys.__stderr__, flush=True)
        return
    import warnings

    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "vestige":
        level, frame = level + 1, frame.f_back
    warnings.warn(line, RuntimeWarning, stacklevel=level)


def strings(name: str, values: Any) -> tuple[str, ...] | None:
    if values is None:
        return None
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a list of str, not {type(values).__name__}")
    strings = tuple(values)
    for value in strings:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list of str, not of {type(value).__name__}")
    return strings
