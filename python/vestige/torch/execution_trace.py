"""ExecutionTraceObserver: the program's operators as a graph, in the file format of torch's ExecutionTraceObserver.

Nodes are records like all others: they go into the profile's recording while there is one, else into a trace file next
to the output, so that a program which is killed leaves its graph (`vestige export out.json.vst -o out.json`). JSON is
written when the observer is unregistered.
"""

from __future__ import annotations

import atexit
import os
import sys
from _weakref import ref
from abc import ABC

from vestige import _core

from . import adapter, hosting
from .resources import collect_sources, folder_for, name_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

PREFIXES = ("ENABLE_PYTORCH_EXECUTION_TRACE", "VESTIGE_EXECUTION_TRACE")
FORMAT = "execution-trace"

_registered: ref[ExecutionTraceObserver] | None = None


class ExecutionTraceObserver(ABC):  # noqa: B024 - an ABC like torch's, so that torch's objects can become ours (dropin.py)
    """Records the inputs and outputs of every operator, as a graph whose ids match the timeline's.

        observer = ExecutionTraceObserver().register_callback("et.json.gz")
        with profile(execution_trace_observer=observer) as prof:
            work()

    or, without a profile, observer.start(), observer.stop() and observer.unregister_callback(), which writes the file.
    There is one at a time in a process.
    """

    def __init__(self) -> None:
        self._registered = False
        self._execution_trace_running = False
        self.extra_resources_collection = False
        self.resources_dir = ""
        self.output_file_path = ""
        self._number = 0  # the number of this observer in its nodes
        self._pieces: list[_core.Session] = []  # recordings that have nodes of this observer
        self._own: _core.Session | None = None  # our own recording, used while no profile records
        self._integral: tuple[bool, list[str]] = (False, [])

    def __del__(self) -> None:
        try:
            self.unregister_callback()
        except Exception as error:
            adapter.tell(str(error))

    @staticmethod
    def build_execution_trace_obs_from_env() -> ExecutionTraceObserver | None:
        """Returns a registered observer that writes to a temporary file if ENABLE_PYTORCH_EXECUTION_TRACE or
        VESTIGE_EXECUTION_TRACE is 1, else None. With …_EXTRAS=1, the observer collects resources too.
        """
        if not _is_set(""):
            return None
        import tempfile
        from warnings import warn

        try:
            handle, path = tempfile.mkstemp(suffix=".et.json")
            os.close(handle)
            observer = ExecutionTraceObserver().register_callback(path)
        except (OSError, RuntimeError) as error:
            warn(f"the execution trace is not recorded: {error}", stacklevel=2)
            return None
        observer.set_extra_resource_collection(_is_set("_EXTRAS"))
        return observer

    def set_extra_resource_collection(self, val: bool) -> None:
        """Sets whether to keep the files that a replay of the graph needs, in a folder next to the trace: generated
        kernels, and the contents of integral tensors of the operators that …_SAVE_INTEGRAL_TENSOR_DATA names. Call
        after register_callback().
        """
        self.extra_resources_collection = val
        if val:
            self.get_resources_dir(can_create=True)

    def register_callback(self, output_file_path: str | os.PathLike[str]) -> Self:
        """Sets the file for the graph, gzipped if its name ends in .gz. Raises RuntimeError if another observer is
        registered, OSError if the file cannot be written."""
        global _registered
        if self._registered:
            return self
        other = None if _registered is None else _registered()
        if other is not None and other._registered:
            raise RuntimeError(
                "an execution trace observer is registered already: call unregister_callback() of the one that writes "
                f"{other.output_file_path} first"
            )
        path = os.fsdecode(os.fspath(output_file_path))
        _check_writable(path)
        self.output_file_path = path
        self.resources_dir = ""
        self._number, self._pieces, self._own = 0, [], None
        names = _value_of("_SAVE_INTEGRAL_TENSOR_DATA").split(",")
        self._integral = (_is_set("_SAVE_INTEGRAL_TENSOR_RANGE"), [name.strip() for name in names if name.strip()])
        self._registered = True
        _registered = ref(self)
        return self

    def get_resources_dir(self, can_create: bool = False) -> str | None:
        """Returns the folder for resources; None if no resources are collected or the folder does not exist."""
        if not self.extra_resources_collection:
            return None
        if not self.resources_dir:
            self.resources_dir = self.get_resources_dir_for_et_path(self.output_file_path, create_dir=can_create) or ""
        return self.resources_dir or None

    @staticmethod
    def get_resources_dir_for_et_path(trace_path: str, create_dir: bool = False) -> str | None:
        """Returns the folder that belongs to a file, `<its stem>_resources`; None if it does not exist."""
        return folder_for(trace_path, create_dir)

    def unregister_callback(self) -> None:
        """Stops and writes the file. If that fails, the recording stays in <file>.vst."""
        global _registered
        if not self._registered:
            return
        self.stop()
        self._registered = False
        _registered = None
        folder = self.get_resources_dir()
        if folder is not None:
            collect_sources(folder)
        self._write(folder)

    @property
    def is_registered(self) -> bool:
        """True between register_callback() and unregister_callback()."""
        return self._registered

    def is_running(self) -> bool:
        """True between start() and stop()."""
        return self._execution_trace_running

    def start(self) -> None:
        """Starts recording, if the observer is registered."""
        if not self._registered or self._execution_trace_running:
            return
        self._join()
        hosting.running = ref(self)
        self._execution_trace_running = True
        if hosting.session() is None:
            self._record_pg_config()

    def stop(self) -> None:
        """Stops recording until the next start()."""
        if not self._execution_trace_running:
            return
        self._execution_trace_running = False
        hosting.running = None
        self._leave()

    def cleanup(self) -> None:
        """Calls unregister_callback()."""
        self.unregister_callback()

    def get_output_file_path(self) -> str | None:
        """Returns the file given to register_callback(); None before that call."""
        return self.output_file_path or None

    # ---- where nodes go ------------------------------------------------------

    def _join(self) -> None:
        """Directs nodes to the profile's recording, or else to our own."""
        self._number = self._number or hosting.new_number()
        session = hosting.session()
        if session is None:
            self._record_alone()
            return
        if session not in self._pieces:
            hosting.join()
            self._pieces.append(session)
        self._set_graph()

    def _leave(self) -> None:
        """Stops directing nodes to a recording."""
        adapter.set_graph(0)
        if self._own is not None and self._own.recording:
            adapter.stop()
            self._own.stop()

    def _record_alone(self) -> None:
        if self._own is None:
            session = _core.Session(self._file(), overwrite=True, gc=False, with_stack=False, c_functions=False)
            session.create()
            session.set_metadata("vestige.execution_trace", "1")
            self._own = session
            self._pieces.append(session)
        adapter.prepare()
        self._own.start()
        self._set_graph()
        adapter.start(calls=False)

    def _file(self) -> str:
        return f"{self.output_file_path}.vst"

    def _set_graph(self) -> None:
        ranges, names = self._integral
        folder = self.get_resources_dir_for_et_path(self.output_file_path) if names else None
        adapter.set_graph(self._number, ranges, names, folder or "")

    def _record_pg_config(self) -> None:
        """Records a node with the existing process groups."""
        distributed = sys.modules.get("torch.distributed")
        torch: Any = sys.modules.get("torch")
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return
        import json

        config = json.dumps(distributed.distributed_c10d._world.pg_config_info, default=str)
        handle = torch.autograd._record_function_with_args_enter("## process_group:init ##", config)
        torch.autograd._record_function_with_args_exit(handle)

    # ---- the file ------------------------------------------------------------

    def _write(self, folder: str | None) -> None:
        pieces, own = self._pieces, self._own
        self._pieces, self._own = [], None
        copy = f"{self.output_file_path}.{os.getpid()}.vst"  # a copy of a recording that continues
        try:
            if own is not None:
                own.finish()
                if own.lost:
                    adapter.tell(f"{self.output_file_path}: {own.lost:,} records could not be kept; is the disk full?")
            traces = [self._trace_of(session, copy) for session in pieces] or [_empty(copy)]
            observer = self._number or hosting.new_number()
            _core.export_traces(traces, self.output_file_path, all_windows=True, format=FORMAT, observer=observer)
            if folder is not None:
                name_data(folder, lambda: _core.node_ids(traces, all_windows=True, observer=observer))
        except (OSError, _core.TraceError) as error:
            if own is None:
                raise
            raise type(error)(*_explained(error, self._file())) from None
        finally:
            if os.path.exists(copy):
                os.unlink(copy)
        if own is not None:
            os.unlink(self._file())

    def _trace_of(self, session: _core.Session, copy: str) -> _core.Trace:
        if not session.recording:
            return session.trace()
        _core.snapshot(copy, overwrite=True)
        return _core.Trace(copy)


def _empty(copy: str) -> _core.Trace:
    """Writes a trace without nodes, for an observer that recorded nothing: its graph is empty."""
    if _core.recording():
        _core.snapshot(copy, overwrite=True)
        return _core.Trace(copy)
    session = _core.Session(None, gc=False, with_stack=False, c_functions=False)
    session.create()
    return session.trace()


def _explained(error: BaseException, file: str) -> tuple[Any, ...]:
    hint = f"the recording is in {file}: vestige export {file} --to {FORMAT} -o FILE"
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno, f"{error.strerror}; {hint}", error.filename
    return (f"{error}; {hint}",)


def _check_writable(path: str) -> None:
    """Raises OSError now if the file cannot be written, rather than at the end of the program."""
    if not os.path.basename(path) or os.path.isdir(path):
        raise IsADirectoryError(21, "the execution trace needs the name of a file, but this is a folder", path)
    if os.path.exists(path):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    elif not os.path.lexists(path):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        os.unlink(path)


def _value_of(name: str) -> str:
    return next((value for prefix in PREFIXES if (value := os.environ.get(prefix + name))), "")


def _is_set(name: str) -> bool:
    return any(os.environ.get(prefix + name) == "1" for prefix in PREFIXES)


def _write_at_exit() -> None:
    observer = None if _registered is None else _registered()
    if observer is not None:
        try:
            observer.unregister_callback()
        except Exception as error:
            adapter.tell(str(error))


def _after_fork() -> None:
    """Called in a forked child: the registered observer and its files belong to the parent."""
    global _registered
    observer = None if _registered is None else _registered()
    if observer is not None:
        observer._registered = observer._execution_trace_running = False
        _inherited.append(observer._pieces)
        observer._pieces, observer._own = [], None
    _registered = None
    hosting.after_fork()
    adapter.set_graph(0)


_inherited: list[Any] = []  # the parent's recordings, kept alive because a child must not end them
atexit.register(_write_at_exit)
os.register_at_fork(after_in_child=_after_fork)
