"""The options of a profile: checked, read as numbers, and put into the form that _core.Session takes."""

from __future__ import annotations

import errno
import os
import sys

from vestige import _core
from vestige.base.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


FLAGS = (
    "with_stack",
    "overwrite",
    "c_functions",
    "gc",
    "annotation_stacks",
    "children",
    "profile_memory",
    "memory_native_stacks",
    "memory_native_allocators",
    "qualified_names",
    "sched",
    "exceptions",
    "compensate",
)
LISTS = ("include", "exclude", "record_args", "only", "triggers")
TIMES = ("keep_last", "min_duration")
SIZES = ("max_size", "memory_sample")
DEPTH_MAX = 1_000_000_000
BUDGET_MIN, BUDGET_MAX = 0.001, 1.0
HINT = ": see kernel.perf_event_paranoid, the limit of locked memory, and the container's seccomp profile"


def check_flags(given: dict[str, Any]) -> None:
    for name in FLAGS:
        if not isinstance(given[name], bool):
            raise TypeError(f"{name} must be True or False, not {type(given[name]).__name__}")
    if given["exceptions"] and not given["with_stack"]:
        raise ValueError("exceptions=True needs with_stack=True: without it, exceptions are not seen")
    if given["children"] and given["output"] is None:
        raise ValueError("children=True needs an output: their files are named after it")


def read_options(given: dict[str, Any]) -> dict[str, int]:
    """Puts lists and sizes into `given` as tuples and numbers, and times as texts that a child process reads as well.
    Returns the times in ns, 0 where none is given."""
    for name in LISTS:
        given[name] = strings(name, given[name])
    check_depth(given["max_depth"])
    check_budget(given)
    times = dict.fromkeys(TIMES, 0)
    if all(given[name] is None for name in TIMES + SIZES):
        return times
    from vestige.base.quantities import parse_file_bound, parse_size, parse_time  # importing vestige is to stay cheap

    if given["max_size"] is not None:
        given["max_size"] = parse_file_bound("max_size", given["max_size"])
    for name in TIMES:
        times[name] = 0 if given[name] is None else parse_time(name, given[name])
        given[name] = f"{times[name]}ns" if times[name] else None
    if given["memory_sample"] is not None:
        given["memory_sample"] = parse_size("memory_sample", given["memory_sample"])
    return times


def check_depth(depth: object) -> None:
    if depth is None:
        return
    if not isinstance(depth, int) or isinstance(depth, bool):
        raise TypeError(f"max_depth must be an int, not {type(depth).__name__}")
    if not 1 <= depth <= DEPTH_MAX:
        raise ValueError(f"max_depth must be from 1 to {DEPTH_MAX:,}, not {depth}")


def check_budget(given: dict[str, Any]) -> None:
    """A share of 1, or a text: "5%"."""
    budget = given["budget"]
    if budget is None:
        return
    if isinstance(budget, str):
        from vestige.base.quantities import parse_share

        budget = given["budget"] = parse_share("budget", budget)
    if not isinstance(budget, (int, float)) or isinstance(budget, bool):
        raise TypeError(f"budget must be a number or a str, not {type(budget).__name__}")
    if not BUDGET_MIN <= budget <= BUDGET_MAX:
        raise ValueError(f"budget must be from 0.1% to 100% of the CPU time, not {budget:.4%}")
    if not given["with_stack"]:
        raise ValueError("budget needs with_stack=True: without it, no calls are recorded")
    for name in ("profile_memory", "min_duration", "only", "max_depth"):
        if given[name]:
            raise ValueError(f"budget and {name} cannot be used together")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ValueError("this Python has no GIL: a budget cannot be kept there")
    if check_engine(given["engine"]) == "profile":
        raise ValueError("a budget needs engine turbo on this Python")


def session_options(given: dict[str, Any], times: dict[str, int], *, memory: bool, armed: bool) -> dict[str, Any]:
    """The arguments of _core.Session. `memory`: allocations are hooked; `armed`: snapshots may be asked for."""
    return {
        "overwrite": given["overwrite"],
        "gc": given["gc"],
        "engine": check_engine(given["engine"]),
        "native": given["with_stack"] and given["c_functions"],
        "python": given["with_stack"],
        "qualified_names": given["qualified_names"],
        "include": given["include"],
        "exclude": given["exclude"],
        "log_args": given["record_args"],
        "max_size": given["max_size"] or 0,
        "keep_ns": times["keep_last"],
        "min_duration_ns": times["min_duration"],
        "checkpoints": armed,
        "switches": given["sched"],
        "max_depth": given["max_depth"] or 0,
        "only": given["only"],
        "exceptions": given["exceptions"],
        "devices": bool(given["devices"]),
        "memory": memory,
        "memory_native_stacks": given["memory_native_stacks"],
        "memory_native_allocators": given["memory_native_allocators"],
        "memory_sample_bytes": given["memory_sample"] or 0,
    }


def check_engine(engine: object) -> str:
    """The name of an engine. VESTIGE_ENGINE may say what "auto" means; "safe" is the one that every Python has."""
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


on_stderr = False  # set by `vestige run`, because a program may turn warnings off or into errors
notes: list[str] | None = None  # takes the lines instead, for those who attached: they are in another terminal


def tell_engine(line: str | None) -> None:
    """Tells the user that the engine that was asked for cannot be used, if `line` says so."""
    if line is not None:
        tell(line, RuntimeWarning)


def tell(line: str, kind: type[Warning]) -> None:
    """Tells the user that a part of what was asked for is not recorded."""
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
    """Why running times will not be known, if the system refuses to tell when threads run."""
    error = _core.can_see_switches()
    return None if error == 0 else f"vestige: sched: {why_refused(error)}; running times are not known"


def why_refused(error: int) -> str:
    """What a user can do about it."""
    hint = {errno.EACCES: HINT, errno.EPERM: HINT}.get(error, "")
    return f"the system does not tell when threads run ({os.strerror(error)}{hint})"


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
