"""Reads the options of a profile, and reports which of them cannot be followed."""

from __future__ import annotations

import errno
import os
import sys

from vestige import _core
from vestige.base.printable import printable

from .option_table import BY_NAME, COUPLED, ENGINE, FLAG, KEYWORDS, STORAGE, TIME, WITH_GIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


STORAGES = ("auto", "mapped", "copied")
HINT = ": see kernel.perf_event_paranoid, the limit of locked memory, and the container's seccomp profile"


def read_options(given: dict[str, Any]) -> dict[str, Any]:
    """Puts checked values into `given`, in the form that child processes read too. Returns the arguments of
    _core.Session.
    """
    session: dict[str, Any] = {}
    for option in KEYWORDS:
        name, kind = option.name, option.kind
        value = given[name]
        if kind is FLAG:
            if value is not True and value is not False:
                raise TypeError(f"{name} must be True or False, not {type(value).__name__}")
        elif kind is ENGINE:
            value = check_engine(value)
        elif kind is STORAGE:
            value = check_storage(value)
        elif kind.read is not None and (value is not None or option.default is not None):
            given[name] = value = kind.read(name, value)
            if kind is TIME:
                given[name] = f"{value}ns"
        if option.in_session:
            session[name + kind.unit] = value
    check_together(given)
    if given["budget"] is not None and session["engine"] == "profile":
        raise ValueError("on this Python, a budget needs the engine turbo")
    session["c_functions"] = given["with_stack"] and given["c_functions"]
    return session


def check_together(given: dict[str, Any], *, by_flag: bool = False) -> None:
    """Refuses options that cannot be combined, and options that this Python does not have. Errors name options, or the
    flags by which they were given.
    """
    for option in COUPLED:
        if not given.get(option.name):
            continue
        shown = option.flag if by_flag else option.name
        for other, why in option.needs.items():
            if not by_flag and not given[other]:  # no flag sets the missing option
                wanted = f"{other}=True" if BY_NAME[other].kind is FLAG else f"an {other}"
                raise ValueError(f"{shown}{'=True' * (option.kind is FLAG)} needs {wanted}: {why}")
        for other in option.against:
            if given.get(other):
                with_it = BY_NAME[other].flag if by_flag else other
                raise ValueError(f"{shown} and {with_it} cannot be used together")
        if option.pythons == WITH_GIL and not getattr(sys, "_is_gil_enabled", lambda: True)():
            raise ValueError(f"{shown} needs a Python {WITH_GIL}")


def _choice(option: str, variable: str, value: object) -> tuple[str, str]:
    """Returns a value of an option, and a text that says where it comes from: a variable may say what "auto" means."""
    if not isinstance(value, str):
        raise TypeError(f"{option} must be a str, not {type(value).__name__}")
    chosen = os.environ.get(variable, "") if value == "auto" else ""
    return (chosen, f" ({variable} asks for it)") if chosen else (value, "")


def check_engine(given: object) -> str:
    """Returns the name of an engine. VESTIGE_ENGINE may say which one "auto" means; every Python has "safe"."""
    engine, by = _choice("engine", "VESTIGE_ENGINE", given)
    if engine == "safe":
        return _core.engines[0]
    if engine != "auto" and engine not in _core.engines:
        raise ValueError(f"no engine {engine!r} on this Python{by}: use one of auto, safe, {', '.join(_core.engines)}")
    return engine


def check_storage(given: object) -> str:
    """Returns how the file is written. VESTIGE_STORAGE may say what "auto" means."""
    storage, by = _choice("storage", "VESTIGE_STORAGE", given)
    if storage not in STORAGES:
        raise ValueError(f"no storage {storage!r}{by}: use one of {', '.join(STORAGES)}")
    return storage


on_stderr = False  # set by `vestige run`, because a program may disable warnings or make them errors
notes: list[str] | None = None  # takes the lines instead, for an attaching command in another terminal


def tell_engine(line: str | None) -> None:
    """Reports that the requested engine cannot be used, if `line` is not None."""
    if line is not None:
        tell(line, RuntimeWarning)


def tell(line: str, kind: type[Warning]) -> None:
    """Reports that a part of the requested data is not recorded."""
    if notes is not None:
        notes.append(line)
        return
    if on_stderr:
        if sys.__stderr__ is not None:
            print(printable(line), file=sys.__stderr__, flush=True)
        return
    import warnings

    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "vestige":
        level, frame = level + 1, frame.f_back
    warnings.warn(line, kind, stacklevel=level)


def sched_note() -> str | None:
    """Returns why running times will be unknown, if the system refuses to report switches of threads."""
    error = _core.can_see_switches()
    return None if error == 0 else f"vestige: sched: {why_refused(error)}; running times are not known"


def why_refused(error: int) -> str:
    """Appends what the user can do about it."""
    hint = {errno.EACCES: HINT, errno.EPERM: HINT}.get(error, "")
    return f"the system does not tell when threads run ({os.strerror(error)}{hint})"
