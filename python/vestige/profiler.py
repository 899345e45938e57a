"""profile: a recording as the program sees it, with the names and manners of torch.profiler.

It is a thin cover over _core.Session: it checks what it is given, keeps metadata until there is a recording to hold it,
and sees to it that what was started is finished when the program ends.
"""

from __future__ import annotations

import atexit
import errno
import os
import sys
import weakref

from . import _core, dropin
from .activity import ProfilerActivity, check_activities
from .render import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType
    from typing import Any

    from typing_extensions import Self

_unfinished: set[weakref.ref[profile]] = set()


class profile:
    """Records calls of Python and C functions, garbage collections and annotations, in all threads.

        with profile() as prof:
            work()
        prof.export_chrome_trace("t.json.gz")

    activities    members of ProfilerActivity; only CPU is collected, others warn once
    with_stack    record calls; False leaves annotations, instants and counters. Default True, after install() False
    output        a .vst file to record to, which must not exist unless overwrite is True. It can be read up to the
                  last record even if the process is killed. Default: a temporary file that vanishes by itself
    engine        "auto", or one of vestige's engines by name
    c_functions   record calls of functions written in C
    include       glob patterns of source files; only functions in these are recorded. A pattern without a slash
                  is compared with the file's name alone
    exclude       patterns of files whose functions are not recorded
    record_args   names (`f`, `Class.f`) of functions whose arguments and return values are recorded
    gc            record garbage collections
    annotation_stacks  record the call stack that each record_function() begins in
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        with_stack: bool | None = None,
        output: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None = None,
        overwrite: bool = False,
        engine: str = "auto",
        c_functions: bool = True,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        record_args: Sequence[str] | None = None,
        gc: bool = True,
        annotation_stacks: bool = False,
    ) -> None:
        self.activities = check_activities(activities)
        if with_stack is None:
            with_stack = not dropin.installed()
        flags = {
            "with_stack": with_stack,
            "overwrite": overwrite,
            "c_functions": c_functions,
            "gc": gc,
            "annotation_stacks": annotation_stacks,
        }
        for name, flag in flags.items():
            if not isinstance(flag, bool):
                raise TypeError(f"{name} must be True or False, not {type(flag).__name__}")
        self.with_stack = with_stack
        self._annotation_stacks = annotation_stacks
        self._output = None if output is None else os.fspath(output)
        self._session = _core.Session(
            self._output,
            overwrite=overwrite,
            gc=gc,
            engine=_check_engine(engine),
            native=with_stack and c_functions,
            python=with_stack,
            include=_strings("include", include),
            exclude=_strings("exclude", exclude),
            log_args=_strings("record_args", record_args),
        )
        self._metadata: dict[str, str] = {}  # waits for the first start
        self._running = False  # between start() and stop()
        self._started = False
        self._finished = False

    def start(self) -> None:
        """Starts recording. After a stop() it goes on: the trace then has several windows."""
        if self._running:
            raise RuntimeError("this profile is recording already")
        if self._finished:
            raise RuntimeError(f"{self._place()} is finished; use a new profile()")
        # Gathered before recording: the calls it takes are not the program's.
        facts = {} if self._started else {**self._facts(), **self._metadata}
        self._session.start()
        _core.set_annotation_stacks(self._annotation_stacks)
        self._running = True
        if not self._started:
            self._started = True
            _finish_at_exit(self)
            for key, text in facts.items():
                self._session.set_metadata(key, text)

    def stop(self) -> None:
        """Stops recording. What was recorded can now be exported."""
        if not self._running:
            raise RuntimeError("this profile is not recording: call start() first")
        self._running = False
        if self._session.recording:
            self._session.stop()

    def finish(self) -> None:
        """Stops if need be and completes the file given as `output`. Leaving a with block does it too."""
        self._running = False
        if self._started and not self._finished:
            self._finished = True
            self._session.finish()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._running:
            self.stop()
        if self._output is not None:
            self.finish()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity] | None = None) -> None:
        """Pauses or goes on between start() and stop(). Without CPU among the activities nothing changes."""
        if ProfilerActivity.CPU not in check_activities(activities) or not self._running:
            return
        if enable and not self._session.recording:
            self._session.start()
        elif not enable and self._session.recording:
            self._session.stop()

    def export_chrome_trace(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        """Writes all that was recorded as Chrome JSON, gzipped if the name ends in .gz. As often as wanted."""
        if self._running:
            raise RuntimeError("this profile is recording: stop() it before exporting")
        if not self._started:
            raise RuntimeError("nothing was recorded: call start() first")
        _export_json(self._session.trace(), os.fsdecode(path))

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a string into the trace's metadata."""
        if not isinstance(value, str):
            raise TypeError(f"add_metadata: value must be a str, not {type(value).__name__}")
        self._set_metadata(key, quote(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a JSON text into the trace's metadata."""
        if not isinstance(value, str):
            raise TypeError(f"add_metadata_json: value must be a str of JSON, not {type(value).__name__}")
        self._set_metadata(key, _check_json(value))

    def _set_metadata(self, key: str, text: str) -> None:
        if not isinstance(key, str):
            raise TypeError(f"a metadata key must be a str, not {type(key).__name__}")
        if not key or "\0" in key:
            raise ValueError(f"not a metadata key: {key!r}")
        if self._finished:
            raise RuntimeError(f"{self._place()} is finished: metadata comes too late")
        if self._started:
            self._session.set_metadata(key, text)
        else:
            self._metadata[key] = text

    def _place(self) -> str:
        return "the recording" if self._output is None else f"the recording in {os.fsdecode(self._output)}"

    def _facts(self) -> dict[str, str]:
        """What every trace says about where it comes from."""
        script = sys.argv[0] if sys.argv else ""
        name = os.path.basename(script) if script not in ("", "-", "-c") else "python"
        facts = {
            "host_name": quote(os.uname().nodename),
            "vestige.command": "[" + ", ".join(map(quote, sys.orig_argv)) + "]",
            "vestige.engine": quote(self._session.engine),
            "vestige.process_name": quote(name),
            "vestige.python": quote(sys.version.split()[0]),
        }
        if self.with_stack:
            facts["with_stack"] = "1"
        return facts


def _check_engine(engine: object) -> str:
    if not isinstance(engine, str):
        raise TypeError(f"engine must be a str, not {type(engine).__name__}")
    if engine != "auto" and engine not in _core.engines:
        raise ValueError(f"no engine {engine!r} on this Python: use one of auto, {', '.join(_core.engines)}")
    return engine


def _strings(name: str, values: Any) -> tuple[str, ...] | None:
    if values is None:
        return None
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a list of str, not {type(values).__name__}")
    strings = tuple(values)
    for value in strings:
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a list of str, not of {type(value).__name__}")
    return strings


def _check_json(text: str) -> str:
    import json

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        json.loads(text, parse_constant=refuse)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"add_metadata_json: the value is not JSON: {error}") from None
    return text


def _export_json(trace: _core.Trace, path: str) -> None:
    """The format goes by the name's suffix; any other name is reached through one that has it."""
    if path.endswith((".json", ".json.gz")):
        trace.export(path, all_windows=True)
        return
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    suffix = ".json.gz" if path.endswith(".gz") else ".json"
    partial = f"{path}.{os.getpid()}{suffix}"
    trace.export(partial, all_windows=True)
    os.replace(partial, path)


def _finish_at_exit(prof: profile) -> None:
    if not _unfinished:
        atexit.unregister(_finish_all)
        atexit.register(_finish_all)
    _unfinished.add(weakref.ref(prof, _unfinished.discard))


def _finish_all() -> None:
    for reference in list(_unfinished):
        prof = reference()
        if prof is not None:
            try:
                prof.finish()
            except Exception as error:
                print(f"vestige: {error}", file=sys.stderr)
