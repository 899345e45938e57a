"""Following child processes: each records into a file of its own, beside that of the first.

Two ways lead here. A Python that is started anew finds VESTIGE_CHILDREN in its environment, and startup/sitecustomize,
which PYTHONPATH leads it to, calls start(). In a forked child, the extension calls _forked() before the program goes
on. Both make a profile with the options of the first process, in a file whose name is not taken.

A forked child has only one of its parent's threads, and locks that the others held stay locked: nothing is imported
there. If anything goes wrong in a child, it says nothing and runs unrecorded.
"""

from __future__ import annotations

import os
import sys
import time
from _json import make_scanner
from _weakref import ref

from vestige import _core
from vestige.base.child_files import child_paths, remove_children
from vestige.render import quote

from . import standard_error
from .option_table import BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from vestige.profiler import profile

CHILDREN, PARENT, PATH = "VESTIGE_CHILDREN", "VESTIGE_PARENT", "PYTHONPATH"
COMMAND = "VESTIGE_COMMAND"  # set by the command that records: its file, and its arguments
STARTUP = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "startup")
ABI = f"{sys.implementation.cache_tag}{sys.abiflags}"
TRACKER = "multiprocessing.resource_tracker"  # a process of its own that works for others: left out
VARIABLE_MAX = 30_000  # the system starts no process with one longer than 128 KiB
ARGUMENTS_MAX = 4_000  # characters that are compared

_followed: ref[profile] | None = None
_kept: dict[str, tuple[str | None, str]] = {}  # variables: what they were, what they are now
_recorded: int | None = None  # the nearest process that is recorded: this one, or an ancestor
_started: profile | None = None  # keeps the recording of a process that start() was called in
_names_expected = False  # of children of multiprocessing


# ---- the process that has children --------------------------------------


def follow(prof: profile) -> None:
    """Called before recording starts: from now on children are recorded with it."""
    global _followed, _recorded
    if prof._family is None:
        output = os.path.abspath(os.fsdecode(prof._output or ""))
        if prof._overwrite:
            remove_children(output)
        prof._session.create()
        prof._family = (output, prof._session.trace().info()["trace_id"])
    root, trace = prof._family
    options = {
        name: value
        for name, value in prof._options.items()
        if not (name in BY_NAME and BY_NAME[name].default == value) and _is_plain(value)
    }
    folder = sys.path[0] if sys.path else ""
    text = encode({"abi": ABI, "root": root, "folder": folder, "options": options})
    if len(text) > VARIABLE_MAX:
        raise ValueError("the options are too long to hand on to child processes")
    _followed = ref(prof, _lost)
    _recorded = os.getpid()
    # glibc never frees the text of a variable that was set, but takes the same text again: what differs from one
    # recording to the next is in the short one, since a process may be attached to thousands of times.
    _put(CHILDREN, text)
    _put(PARENT, f"{_recorded} {trace}")
    path = os.environ.get(PATH, "")
    if path.split(os.pathsep)[0] != STARTUP:
        _put(PATH, STARTUP + os.pathsep + path if path else STARTUP)
    _core.follow_forks(_forked)


def unfollow(prof: profile) -> None:
    """Called when recording has stopped: restores the environment, except for what the program changed."""
    if _followed is not None and _followed() is prof:
        _lost(_followed)


def _lost(reference: object) -> None:
    global _followed
    if reference is not _followed:
        return
    _followed = None
    _core.follow_forks(None)
    for name in list(_kept):
        if name != COMMAND:
            _restore(name)


def _restore(name: str) -> None:
    before, now = _kept.pop(name)
    if os.environ.get(name) == now:
        _set(name, before)
    elif name == PATH and name in os.environ:
        parts = [part for part in os.environ[name].split(os.pathsep) if part != STARTUP]
        _set(name, os.pathsep.join(parts) if parts else None)


def _put(name: str, value: str) -> None:
    old = os.environ.get(name)
    before, now = _kept.get(name, (None, None))
    _kept[name] = (before if old is not None and old == now else old, value)
    os.environ[name] = value


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


# ---- a forked child ------------------------------------------------------


def _forked(parent: int, tid: int, time_ns: int) -> None:
    prof = _followed() if _followed is not None else None
    if prof is None or prof._family is None or _is_between_fork_and_exec():
        return
    was = dict(vars(prof))
    origin = {"pid": _recorded, "tid": tid if _recorded == parent else None, "time_ns": time_ns, "how": "fork"}
    try:
        _expect_multiprocessing()
        if _record(prof, prof._family, prof._options, prof._metadata, origin):
            return
    except Exception:
        pass
    vars(prof).clear()
    vars(prof).update(was)


def _is_between_fork_and_exec() -> bool:
    """subprocess runs Python code in a child only where it has a preexec_fn: not worth a file."""
    try:
        caller = sys._getframe(2)
    except ValueError:
        return False
    return caller.f_code.co_name == "_execute_child" and caller.f_globals.get("__name__") == "subprocess"


def _expect_multiprocessing() -> None:
    """multiprocessing names its child after the fork, and may kill it later: the name is read as soon as it is set."""
    global _names_expected
    util = sys.modules.get("multiprocessing.util")
    if util is not None and not _names_expected:
        util.register_after_fork(_bootstrapped, _bootstrapped)
        _names_expected = True


def _bootstrapped(_: object) -> None:
    """This runs while recording: it calls no function of the standard library."""
    prof = _followed() if _followed is not None else None
    if prof is not None:
        name_process(prof)


# ---- a Python that was started -------------------------------------------


def start(text: str) -> None:
    """Records this process, as VESTIGE_CHILDREN says."""
    name, folder = _program()
    if name:
        _start(text, name, folder)


def _start(text: str, name: str, folder: str) -> None:
    global _recorded, _started
    time_ns = time.time_ns()
    facts, _ = _Scan.once(text, 0)
    parent, _, trace = os.environ[PARENT].partition(" ")
    _recorded = int(parent)
    origin = {"pid": _recorded, "tid": None, "time_ns": time_ns, "how": "spawn"}

    from vestige.profiler import profile

    prof = profile.__new__(profile)
    # File names are shown relative to the search path, which the script's folder will be part of.
    extra = [part for part in dict.fromkeys((folder, facts["folder"])) if part and part not in sys.path]
    sys.path[:0] = extra
    try:
        family = (facts["root"], trace)
        if _record(prof, family, facts["options"], {"vestige.process_name": quote(name)}, origin):
            _started = prof
    finally:
        if sys.path[: len(extra)] == extra:
            del sys.path[: len(extra)]


def _program() -> tuple[str, str]:
    """What this process is called, "" if it is not to be recorded; and the folder that will be first on sys.path."""
    first = sys.argv[0] if sys.argv else ""
    word = sys.orig_argv[-len(sys.argv)] if sys.argv else ""
    if first in ("-m", "-c") and word.startswith("-"):
        word = word.partition(first[1])[2]
    if first == "-c":
        word = word.removeprefix("import sys; ")  # which the fork server of 3.13.13 and later begins with
        if word.startswith("from multiprocessing."):
            module = word.split()[1]
            return "" if module == TRACKER else module, ""
        return "command", ""
    if first == "-m":
        return "" if word == "vestige" else word, os.getcwd()
    if not first:
        return "stdin", ""
    path = os.path.realpath(first)
    base = os.path.basename(path)
    if base == "vestige":
        return "", ""
    return os.path.splitext(base)[0], path if os.path.isdir(path) else os.path.dirname(path)


# ---- the command, started by a program that it records --------------------


def announce(path: str, arguments: list[str]) -> None:
    """Notes in the environment that this process records into `path`, with the command's `arguments`. If a process that
    it starts runs the same command again, that does not record into the same file.
    """
    _put(COMMAND, encode({"root": path, "arguments": _comparable(arguments)}))


def withdraw() -> None:
    """The command has ended: undoes announce()."""
    if COMMAND in _kept:
        _restore(COMMAND)


def is_started_again(path: str | None, arguments: list[str]) -> bool:
    """Whether a recorded program has run this command, which would then record into that program's file. Without a
    path: whether the command line is the same.
    """
    try:
        facts, _ = _Scan.once(os.environ.get(COMMAND, ""), 0)
        if path is None:
            return bool(facts["arguments"] == _comparable(arguments))
        return bool(facts["root"] == os.path.abspath(path))
    except (KeyError, StopIteration, TypeError, ValueError):
        return False


def _comparable(arguments: list[str]) -> str:
    text = encode(arguments)
    return text if len(text) <= ARGUMENTS_MAX else f"{text[:ARGUMENTS_MAX]}… {len(text)}"


def start_again(name: str) -> None:
    """Records this process as a child, if children are recorded."""
    text = os.environ.get(CHILDREN, "")
    if not text.startswith(f'{{"abi": "{ABI}", '):
        return
    try:
        _start(text, name, "")
    except Exception:
        pass


def abandon() -> None:
    """Removes the recording: there is no program to run."""
    if _started is not None and _started._output is not None:
        _started.finish()
        os.unlink(_started._output)


# ---- what both have in common --------------------------------------------


def _record(
    prof: profile, family: tuple[str, str], options: dict[str, Any], metadata: dict[str, str], origin: dict[str, Any]
) -> bool:
    """Makes prof the recording of this process and starts it."""
    base = sys.modules["vestige.profiler"].profile
    standard_error.note()
    for path in child_paths(family[0]):
        base.__init__(prof, output=path, **options)
        prof._family = family
        prof._is_child = True
        prof._metadata = {**metadata, "vestige.parent": encode(origin), "vestige.root": quote(family[1])}
        try:
            prof._session.create()
        except FileExistsError:
            continue
        try:
            prof.start()
            return True
        except Exception:
            os.unlink(path)
            return False
    return False


def name_process(prof: profile) -> None:
    """Gives a process of multiprocessing its name there. Calls no function of the standard library."""
    module = sys.modules.get("multiprocessing.process")
    name = getattr(getattr(module, "_current_process", None), "_name", None)
    if isinstance(name, str) and name != "MainProcess":
        prof._session.set_metadata("vestige.process_name", quote(name))


# ---- JSON, without the json package, which would be loaded into the program --


def _is_plain(value: object) -> bool:
    try:
        encode(value)
    except TypeError:
        return False
    return True


def encode(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, (int, float)) and value - value == 0:
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([encode(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join([f"{quote(key)}: {encode(item)}" for key, item in value.items()]) + "}"
    raise TypeError(type(value).__name__)


class _Scan:
    """The attributes of a decoder that _json reads."""

    strict = True
    object_hook = object_pairs_hook = None
    array_hook = None  # which 3.15 reads
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: ClassVar[dict[str, str]] = {}
    once: Any


_Scan.once = staticmethod(make_scanner(_Scan))  # type: ignore[arg-type]  # any object with these
