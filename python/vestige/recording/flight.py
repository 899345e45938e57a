"""Snapshots: the last part of a recording in a file of its own, while the program runs on. snapshot() writes one
immediately. arm() sets the signal and the triggers that ask a session for more; a thread of the extension writes
those.
"""

from __future__ import annotations

import os

from vestige import _core
from vestige.base.quantities import parse_size, parse_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any

    Trigger = tuple[str, str, int, str]

WINDOW_NS = 30 * 10**9  # length of a snapshot if the recording has no limit of its own
MAX_TRIGGERS = 63
UNUSABLE = ("KILL", "STOP", "SEGV", "BUS", "FPE", "ILL", "ABRT")  # signals that cannot be caught, or not returned from


def snapshot(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    *,
    overwrite: bool = False,
    last: str | float | timedelta | None = None,
    wait: bool = True,
) -> str:
    """Writes what is recorded so far to a trace of its own and returns its path; recording goes on.

    last          only the last stretch of it: seconds, a timedelta, or "30s". It needs a recording whose parts can
                  be read alone (with a bound, a signal or triggers); any other is written whole
    overwrite     replace an existing file
    wait          False: return immediately. The file is there when it is complete, at the latest when the recording is
                  finished; a failure is reported on stderr then
    """
    name = os.fspath(path)
    window_ns = 0 if last is None else parse_time("last", last)
    _core.snapshot(name, overwrite=bool(overwrite), window_ns=window_ns, wait=bool(wait))
    return os.fsdecode(name)


def arm(session: _core.Session, output: str | bytes | None, given: dict[str, Any], last_ns: int) -> None:
    """Has the session write `<output>-snapshot<n>.vst` whenever the options of a profile say so. A snapshot covers what
    `last` keeps; else, with max_size, all that the file holds; else the last half minute."""
    parsed = tuple(parse_trigger(text) for text in given["triggers"] or ())
    if not given["with_stack"] and any(trigger[0] == "raise" for trigger in parsed):
        raise ValueError("a raise: trigger needs with_stack=True: without it, exceptions are not seen")
    if len(parsed) > MAX_TRIGGERS:
        raise ValueError(f"at most {MAX_TRIGGERS} triggers, not {len(parsed)}")
    number = 0 if given["snapshot_signal"] is None else parse_signal(given["snapshot_signal"])
    reason = f"signal {_signal_name(number)}" if number else ""
    stem = f"vestige-{os.getpid()}" if output is None else os.fsdecode(output).removesuffix(".vst")
    session.arm(
        os.path.abspath(stem),
        parsed,
        signal=(number, reason),
        overwrite=given["overwrite"],
        max_snapshots=given["max_snapshots"],
        window_ns=last_ns or (0 if given["max_size"] else WINDOW_NS),
    )


def parse_trigger(text: str) -> Trigger:
    """Parses `step>200ms`, `mod.Class.f>1.5s`, `raise:ValueError` or `rss>2G` into kind, name, limit and the text
    itself.
    """
    if text.startswith("raise:"):
        name = text[6:].strip()
        if not name or not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(f"trigger {text!r}: write the name of an exception after raise:")
        return "raise", name, 0, text
    name, sign, limit = text.rpartition(">")
    name = name.strip()
    if not sign or not name or "\0" in name:
        raise ValueError(f"trigger {text!r} must be NAME>TIME, raise:TYPE or rss>SIZE")
    if name == "rss":
        return "rss", "", parse_size(f"trigger {text!r}", limit), text
    if limit.strip()[-1:].isdigit():
        raise ValueError(f"trigger {text!r} has a time without a unit: write ms, s, m or h, as in step>200ms")
    return "slow", name, parse_time(f"trigger {text!r}", limit), text


def parse_signal(signal: str | int) -> int:
    """Returns a signal's number from `USR2`, `SIGUSR2` or the number itself."""
    import _signal  # the module behind `signal`, without its enums

    numbers = {name[3:]: int(getattr(_signal, name)) for name in dir(_signal) if _is_signal(name)}
    if isinstance(signal, int) and not isinstance(signal, bool):
        number = int(signal) if 0 < signal < _signal.NSIG else 0
    elif isinstance(signal, str):
        number = numbers.get(signal.strip().upper().removeprefix("SIG"), 0)
    else:
        raise TypeError(f"snapshot_signal must be a name such as 'USR2', not {type(signal).__name__}")
    if not number:
        raise ValueError(f"no signal {signal!r}: use a name such as USR2")
    if number in [numbers[name] for name in UNUSABLE]:
        raise ValueError(f"signal {signal!r} cannot be used for snapshots: use another, such as USR2")
    return number


def _is_signal(name: str) -> bool:
    return name.startswith("SIG") and not name.startswith("SIG_")


def _signal_name(number: int) -> str:
    import _signal

    for name in dir(_signal):
        if _is_signal(name) and getattr(_signal, name) == number:
            return name[3:]
    return str(number)
