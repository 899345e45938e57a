"""Follows child processes: each records into a file of its own, next to the first process's file. There are two ways.
A Python that is started anew finds VESTIGE_CHILDREN in its environment, and startup/sitecustomize, to which PYTHONPATH
leads, calls start(). In a forked child, the extension calls _forked() before the program goes on, or records the child
as plan_of() says and calls _forked() when the profile is used. Both make a profile with the options of the first
process, and a file name that is not taken. A forked child has only one of its parent's threads, and locks that other
threads held stay locked, so nothing is imported there. If anything goes wrong in a child, it prints nothing and runs
unrecorded.
"""

from __future__ import annotations

import os
import sys
import time
from _json import make_scanner
from _weakref import ref

from vestige import _core
from vestige import torch as torch_api
from vestige.base.child_files import child_paths, remove_children
from vestige.render import quote
from vestige.torch import hosting

from . import endings, standard_error
from .metadata import facts_of
from .option_table import BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from vestige.profiler import profile

CHILDREN, PARENT, PATH = "VESTIGE_CHILDREN", "VESTIGE_PARENT", "PYTHONPATH"
COMMAND = "VESTIGE_COMMAND"  # set by the command that records: its file, and its arguments
STARTUP = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "startup")
ABI = f"{sys.implementation.cache_tag}{sys.abiflags}"
TRACKER = "multiprocessing.resource_tracker"  # a helper process for others: not recorded
OWN_FACTS = ("vestige.engine", "vestige.parent")  # differ from process to process
VARIABLE_MAX = 30_000  # the system starts no process with a variable longer than 128 KiB
ARGUMENTS_MAX = 4_000  # how many characters are compared

_followed: ref[profile] | None = None
_kept: dict[str, tuple[str | None, str]] = {}  # variables: their old and their new value
_started: profile | None = None  # keeps the recording of a process in which start() was called
_names_expected = False  # names of multiprocessing's children


# ---- the process that has children --------------------------------------


def follow(prof: profile) -> None:
    """Makes children that start from now on be recorded, too. Call before recording starts."""
    global _followed
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
        raise ValueError("the options are too long to pass on to child processes")
    _followed = ref(prof, _lost)
    # glibc never frees the text of a variable that was set, but reuses an equal text. A process may be attached to
    # thousands of times, so values that differ between recordings are in the short variable.
    _put(CHILDREN, text)
    _put(PARENT, f"{os.getpid()} {trace}")
    path = os.environ.get(PATH, "")
    if path.split(os.pathsep)[0] != STARTUP:
        _put(PATH, STARTUP + os.pathsep + path if path else STARTUP)
    _expect_multiprocessing()
    _core.follow_forks(_forked, plan_of(prof))


def _needs_python(prof: profile) -> bool:
    """Returns whether Python code of ours takes part when recordings begin or end."""
    needs = [prof._options[name] for name in ("devices", "profile_memory", "budget", "compensate", "sched")]
    needs += [prof._ranks, prof._armed_with, prof._experiment, prof.execution_trace_observer, prof.record_steps]
    needs += [prof.on_trace_ready, prof.custom_trace_id_callback, prof.preset_metadata, prof._is_torchs]
    needs += [prof.record_shapes, prof.with_flops, prof.with_modules, torch_api.installed]
    return any(needs)


def plan_of(prof: profile) -> tuple[object, ...] | None:
    """Returns the data that forked children of a profile need to record without Python; None: they need Python."""
    environment = getattr(os.environ, "_data", None)
    if prof._family is None or _needs_python(prof) or type(environment) is not dict:
        return None
    root, trace = prof._family
    facts = {**facts_of(prof), **prof._metadata, "vestige.root": quote(trace)}
    return (
        os.fsencode(root.removesuffix(".vst")),
        os.fsencode(trace),
        environment,
        {name: text for name, text in facts.items() if name not in OWN_FACTS},
        None if _names_expected else _expect_multiprocessing,
    )


def unfollow(prof: profile) -> None:
    """Restores the environment, except for the program's own changes. Call when recording has stopped."""
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
    if _is_ours(name, now):
        _set(name, before)
    elif name == PATH and name in os.environ:
        parts = [part for part in os.environ[name].split(os.pathsep) if part != STARTUP]
        _set(name, os.pathsep.join(parts) if parts else None)


def _is_ours(name: str, text: str) -> bool:
    """Returns whether the variable has the text that we gave it. The extension puts a forked child's number into
    PARENT.
    """
    now = os.environ.get(name, "")
    return now == text or (name == PARENT and now.startswith(f"{os.getpid()} "))


def _put(name: str, value: str) -> None:
    before, now = _kept.get(name, (None, ""))
    _kept[name] = (before if now and _is_ours(name, now) else os.environ.get(name), value)
    os.environ[name] = value


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


# ---- a forked child ------------------------------------------------------


def _forked(parent: int, tid: int, time_ns: int, path: bytes | None) -> None:
    """Called in a child of a recorded process. With a path, the extension records the child already."""
    prof = _followed() if _followed is not None else None
    if prof is None or prof._family is None:
        return
    was = dict(vars(prof))
    origin = {"pid": parent, "tid": tid or None, "time_ns": time_ns, "how": "fork"}
    try:
        if path is not None:
            session = prof._session
            _make_child(prof, os.fsdecode(path), prof._family, prof._options, prof._metadata, origin)
            prof._session = session
            prof._prepare_trace()
            hosting.begin(prof)
            prof._windows = 1
            prof._running = prof._tracing = prof._started = True
            endings.expect(prof)
            return
        _expect_multiprocessing()
        if _record(prof, prof._family, prof._options, prof._metadata, origin):
            return
    except Exception:
        pass
    vars(prof).clear()
    vars(prof).update(was)


def _expect_multiprocessing() -> None:
    """Reads the name of a multiprocessing child as soon as it is set, after the fork: the child may be killed later."""
    global _names_expected
    util = sys.modules.get("multiprocessing.util")
    if util is not None and not _names_expected:
        util.register_after_fork(_bootstrapped, _bootstrapped)
        _names_expected = True


def _bootstrapped(_: object) -> None:
    """This runs while recording, so it calls no function of the standard library."""
    prof = _followed() if _followed is not None else None
    if prof is not None:
        prof._session.name_process()


# ---- a new Python process ------------------------------------------------


def start(text: str) -> None:
    """Records this process, as VESTIGE_CHILDREN says."""
    name, folder = _program()
    if name:
        _start(text, name, folder)


def _start(text: str, name: str, folder: str) -> None:
    global _started
    time_ns = time.time_ns()
    facts, _ = _Scan.once(text, 0)
    parent, _, trace = os.environ[PARENT].partition(" ")
    origin = {"pid": int(parent), "tid": None, "time_ns": time_ns, "how": "spawn"}

    from vestige.profiler import profile

    prof = profile.__new__(profile)
    # File names are shown relative to the search path, which will contain the script's folder.
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
    """Returns the name of this process ("" if it is not to be recorded), and the folder that will be first on
    sys.path.
    """
    first = sys.argv[0] if sys.argv else ""
    word = sys.orig_argv[-len(sys.argv)] if sys.argv else ""
    if first in ("-m", "-c") and word.startswith("-"):
        word = word.partition(first[1])[2]
    if first == "-c":
        word = word.removeprefix("import sys; ")  # the fork server of 3.13.13 and later begins with this
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
    """Notes in the environment that this process records into `path`, with the command's `arguments`, so that a
    process which it starts with the same command does not record into the same file.
    """
    _put(COMMAND, encode({"root": path, "arguments": _comparable(arguments)}))


def withdraw() -> None:
    """Call when the command has ended: undoes announce()."""
    if COMMAND in _kept:
        _restore(COMMAND)


def is_started_again(path: str | None, arguments: list[str]) -> bool:
    """Returns whether a recorded program has run this command, which would then record into that program's file.
    Without a path: whether the command line is equal.
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
    """Removes the recording, because there is no program to run."""
    if _started is not None and _started._output is not None:
        _started.finish()
        _remove(_started._output)


def _remove(path: str | bytes) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:  # its copier has not created the file
        pass


# ---- both kinds of children ----------------------------------------------


def _record(
    prof: profile, family: tuple[str, str], options: dict[str, Any], metadata: dict[str, str], origin: dict[str, Any]
) -> bool:
    """Makes prof the recording of this process and starts it."""
    standard_error.note()
    for path in child_paths(family[0]):
        _make_child(prof, path, family, options, metadata, origin)
        try:
            prof._session.create()
        except FileExistsError:
            continue
        try:
            prof.start()
            return True
        except Exception:
            _remove(path)
            return False
    return False


def _make_child(
    prof: profile,
    path: str,
    family: tuple[str, str],
    options: dict[str, Any],
    metadata: dict[str, str],
    origin: dict[str, Any],
) -> None:
    """Makes prof the profile of this process, which has recorded nothing yet."""
    sys.modules["vestige.profiler"].profile.__init__(prof, output=path, **options)
    prof._family = family
    prof._is_child = True
    prof._metadata = {**metadata, "vestige.parent": encode(origin), "vestige.root": quote(family[1])}


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
    array_hook = None  # 3.15 reads this attribute
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: ClassVar[dict[str, str]] = {}
    once: Any


_Scan.once = staticmethod(make_scanner(_Scan))  # type: ignore[arg-type]  # any object with these
