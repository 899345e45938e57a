"""The extension: hooks, sessions and traces. Use the vestige package instead."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any, Self, TypeAlias, TypeVar, final, overload

from _typeshed import structseq

from ._core_views import Growing as Growing
from ._core_views import Lanes as Lanes
from ._core_views import View as View

Progress: TypeAlias = Callable[[float], None]
_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")
ExtraFrames: TypeAlias = Callable[[str, int], Sequence[dict[str, Any]] | None]

__version__: str
engines: tuple[str, ...]
"""Engines this interpreter has, the default first."""

class TraceError(Exception):
    """A trace cannot be read or written; also an OSError where the system said why."""

@final
class Session:
    """One recording, on the tracer that is registered with the core."""

    def __init__(self, path: str | bytes | None = None, /, **options: Any) -> None:
        """Options have the names that they have in recording/options.py, with `_ns` behind times and `_bytes` behind
        `memory_sample`; None is the default. `memory` and `checkpoints` follow from others."""
    def create(self) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def finish(self) -> None: ...
    def set_metadata(self, key: str, json: str) -> None: ...
    def storage_ns(self) -> float:
        """What a word took beside being stored, on average: getting room for it, and counting it for a budget."""
    def notes(self) -> list[str]:
        """Lines that collectors of devices told since the last call."""
    def set_budget(self, share: float, python_ns: float, native_ns: float, /) -> None:
        """Before the start: the share of CPU time for recording, and what a call in Python and in C costs."""
    def trace(self) -> Trace: ...
    def name_process(self) -> None:
        """Takes the name that multiprocessing gave to this process, if it did."""
    def note_sources(self) -> None:
        """Puts when source files of functions were written, and their sizes, into the metadata."""
    def export_memory(self, path: str | bytes) -> None:
        """Has the memory tracer write what was recorded so far, in the format that the suffix names."""
    def arm(
        self,
        stem: str | bytes,
        triggers: tuple[tuple[str, str, int, str], ...],
        *,
        signal: tuple[int, str],
        overwrite: bool,
        max_snapshots: int,
        window_ns: int,
    ) -> None:
        """Called before the first start: sets what asks for snapshots while it records."""
    def engine_note(self) -> str | None: ...
    def snapshots(self) -> tuple[list[tuple[str, str, str | None]], int]:
        """The snapshots that were written (path, reason, error or None), and how many requests were refused."""
    @property
    def recording(self) -> bool: ...
    @property
    def lost(self) -> int: ...
    @property
    def was_cut(self) -> bool:
        """Another process made the file shorter while it was recorded, and the recording ended there."""
    @property
    def engine(self) -> str: ...

table_names: tuple[str, ...]
"""The tables that there are, see vestige.tables."""
kind_names: tuple[str, ...]
"""The kinds of definitions, by number; the first stands for no kind."""

class Table:
    """A table of traces, which hands out Arrow streams."""

    def __init__(
        self,
        name: str,
        sources: Iterable[
            tuple[str | bytes, int, int, int, int, int, int, int, str | None, str | None, str | None, str | None]
        ],
    ) -> None:
        """A source is (path, process, offset_ns, from_ns, to_ns, parent_pid, rank, world_size, host, name, command,
        ended). A number that is not known is -1, a missing bound 0."""
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[tuple[str, str, bool]]:
        """Name, type (int32, int64, float64, bool, text, name) of each column, and whether it may be null."""
    @staticmethod
    def rows_read() -> int:
        """How many rows all streams of this process gave so far."""
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Rows:
    """The rows of a table. A column is a memoryview, or a list where it holds texts or None."""

    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def is_cut(self) -> bool:
        """Whether there is more, but the time was over."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]:
        """Rows with the columns as attributes."""
    @overload
    def __getitem__(self, name: str, /) -> Any:
        """A column: a memoryview of numbers, or a sequence that makes its values."""
    @overload
    def __getitem__(self, number: int, /) -> Any: ...

@final
class Function(structseq[Any], tuple[int, str, str, str, int]):
    """What a trace knows of a function, or of something else that has a name."""

    @property
    def kind(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def shown_file(self) -> str:
        """The file without the part of the search path that it was found by."""
    @property
    def line(self) -> int: ...

@final
class Definition(structseq[Any], tuple[int, str]):
    """What spans are called: `work.py(3): f`."""

    @property
    def kind(self) -> int: ...
    @property
    def name(self) -> str: ...

@final
class Total(structseq[Any], tuple[str, int, int, int]):
    """The sums of a function; times in ns."""

    @property
    def name(self) -> str: ...
    @property
    def calls(self) -> int: ...
    @property
    def self_ns(self) -> int: ...
    @property
    def total_ns(self) -> int: ...

@final
class MemoryTotal(structseq[Any], tuple[str, int, int, int, int, int, int]):
    @property
    def name(self) -> str: ...
    @property
    def calls(self) -> int: ...
    @property
    def self_ns(self) -> int: ...
    @property
    def total_ns(self) -> int: ...
    @property
    def self_bytes(self) -> int: ...
    @property
    def total_bytes(self) -> int: ...
    @property
    def allocations(self) -> int: ...

@final
class Moment(structseq[Any], tuple[int, int]):
    """When something began and ended."""

    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...

@final
class Amount(structseq[Any], tuple[int, int, int]):
    """Of allocations: how many, their bytes, and the standard error of the bytes where they were sampled."""

    @property
    def count(self) -> int: ...  # type: ignore[override]
    @property
    def bytes(self) -> int: ...
    @property
    def error(self) -> int: ...

@final
class Frame(structseq[Any], tuple[str, str, str, int, bool]):
    """A frame of the stack of an allocation."""

    @property
    def function(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def shown_file(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def native(self) -> bool: ...

@final
class BlockSize(structseq[Any], tuple[int, int, int]):
    """Blocks of a size from `least` to twice that."""

    @property
    def least(self) -> int: ...
    @property
    def count(self) -> int: ...  # type: ignore[override]
    @property
    def bytes(self) -> int: ...

@final
class MemoryPoint(structseq[Any], tuple[int, int, int, int]):
    """Memory in use in a stretch of time: the most, and what was left at its end."""

    @property
    def max_ns(self) -> int: ...
    @property
    def max_bytes(self) -> int: ...
    @property
    def last_ns(self) -> int: ...
    @property
    def last_bytes(self) -> int: ...

@final
class MemoryThread(structseq[Any], tuple[int, int, str, Amount, Amount]):
    @property
    def number(self) -> int: ...
    @property
    def tid(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def allocated(self) -> Amount: ...
    @property
    def freed(self) -> Amount: ...

@final
class Firsts(structseq[Any], tuple[int, list[dict[str, Any]]]):
    """The first rows of many: dicts of `amounts` by view, and `frames` or a `frame`."""

    @property
    def total(self) -> int: ...
    @property
    def rows(self) -> list[dict[str, Any]]: ...

class Trace:
    """A recorded trace: a file, or what a session recorded so far."""

    def __init__(self, path: str | bytes) -> None: ...
    def info(self) -> dict[str, Any]:
        """What `vestige info` tells: start and end in ns, records, losses, how the recording ended, and more."""
    def threads(self) -> list[dict[str, Any]]:
        """A dict for each thread: its number, its id in the system, its name, its records."""
    def metadata(self) -> dict[str, str]:
        """The metadata: JSON text by key."""
    def export(
        self,
        path: str | bytes,
        *,
        all_windows: bool = False,
        progress: Progress | None = None,
        memory_events: bool = True,
        since: int = -1,
        format: str | None = None,
        observer: int = 0,
    ) -> int:
        """As export_traces()."""
    def count_nodes(self, *, all_windows: bool = True) -> int:
        """How many nodes of execution traces there are."""
    def totals(self, *, all_windows: bool = False, progress: Progress | None = None, memory: bool = False) -> list[Any]:
        """A Total of each function; with `memory` a MemoryTotal."""
    def set_offset(self, ns: int) -> None:
        """Adds so many ns to all times of the trace, as its own clock has them."""
    def set_range(self, from_ns: int | None = None, to_ns: int | None = None) -> None:
        """Restricts every method here, exports, and the times of info() to what was open or happened in
        [from_ns, to_ns], inclusive. None: no such bound. Call set_offset() before it, if at all."""
    def spans(self, name: str, *, limit: int = 100_000, progress: Progress | None = None) -> list[Moment]:
        """Start and end of the first `limit` spans of a name, in the order of their ends. Spans that did not end are
        left out. A name is one as shown (`f.py(3): C.f`), a qualified one (`C.f`) or the last part of that (`f`): the
        first of these forms that matches anything counts."""
    def definitions(self) -> list[Definition | None]:
        """By id: what spans stand for."""
    def functions(self) -> list[Function | None]:
        """By id."""
    def set_by_running(self, value: bool, /) -> None:
        """In reports, and in exports that add up, spans last as long as their thread had a processor."""
    def set_compensated(self, value: bool, /) -> None:
        """In reports, spans last as long as they would have without being recorded, where the trace tells."""
    def import_name(self, imported: int, module: int = 0, /) -> str:
        """`import pandas.core.frame`, of the columns of the table `calls`; or what is known of a module without a
        name."""
    def tables(
        self,
        names: Sequence[str],
        *,
        marks: bytes | None = None,
        threads: Sequence[int] | None = None,
        min_ns: int = 0,
        spread: bool = False,
        fold_imports: bool = False,
        awaits: bool = False,
        blocked_ns: int = 0,
        progress: Progress | None = None,
        all_windows: bool = True,
        since: int = -1,
        calls: bool = True,
        shapes: bool = False,
        overloads: bool = False,
        framework: bool = False,
        timeout: float | None = None,
    ) -> dict[str, Rows]:
        """Any tables, all of them from one reading of the records: those of vestige.tables, and tables of sums, which
        most options are for. What recorded first and stopped, then again, is in windows: `since` has the number of the
        first to read, and without `all_windows` only the last is read. After `timeout` seconds the reading ends, and
        rows have what was read until then (Rows.is_cut).

        `marks` has a byte of flags for each id: 1, leave its calls out and count their time as their caller's; 2, its
        calls wait; 4, it is a garbage collection; 8, count its time for no function; 16, a call of it is a step of an
        event loop; 32, where a task waits in it, its caller is who awaits; 64, `duration` has no row of it. With
        `threads`, only these are read.

        `func` is the id of a function. "Total" ns and bytes include those of what a function called. None is not known.

        - `functions`: func, calls, outer_calls (those that are not inside a call of the function), self_ns, total_ns,
          max_ns (the longest call; of a generator, the longest stretch between two yields), self_bytes, total_bytes,
          allocations, running_ns, error_ns (of total_ns). With `spread`, of self_ns and of total_ns of a call:
          self_mean_error_ns, self_median_ns, self_median_error_ns, total_…; errors are standard errors.
        - `calls`, parents before children: parent (number of the parent's row), func, calls, self_ns, total_ns,
          self_bytes, total_bytes, allocations, running_ns, imported and module (of an import: what was imported, and
          the id of its code), awaits. With `fold_imports` no frame of the import system is in it. What took less than
          `min_ns` is left out. With `awaits` there are also waits of tasks: `awaits` is the kind of what was awaited,
          func the innermost function that waited, and the time is in no other row.
        - `threads`: thread, calls, self_ns, waiting_ns and gc_ns (of that), first_ns, last_ns, running_ns, gil_ns,
          preempted_ns, how long it waited in calls that wait (lock_ns, io_ns, sleep_ns, child_ns) and for the
          interpreter (object_ns, world_ns), top (the function that took most of its time).
        - `waits`: func, calls, self_ns, of what has the mark 2.
        - `collections`: generation, collections, total_ns, longest_ns, collected, uncollectable; and the longest,
          `long_collections`: start_ns, duration_ns, thread, generation, collected.
        - `collection_callers`: func (that was interrupted), collections, total_ns.
        - `steps`: steps, blocking (50 ms or more), blocking_ns, p50_ns, p99_ns, max_ns, histogram; and the longest
          of those that block, `long_steps`: start_ns, duration_ns, thread.
        - `repeats`, calls with the same arguments, where those were recorded: func, arguments (JSON), calls, total_ns;
          those that were called most often.
        - `exceptions`, by place and by what became of them: thread, func (stands for the type and the place),
          raised_in, caught_in, end ("caught", "not caught", "unknown"), exceptions (how many).
        - `task_awaits`: func (of the tasks), awaits (kind of what was awaited), awaiting (function that waited), waits,
          awaiting_ns.
        - `task_steps`: task, func, start_ns, duration_ns, awaits (after the step; None: the task ends, or it goes_on
          with another call), goes_on, awaiting, waker_task (0: a callback, None: not known), waker (function).
        - `blocked_steps`, of asyncio's tasks, that took at least `blocked_ns`: task, thread, start_ns, duration_ns; and
          the calls that took most of each, `blocked_calls`, outermost first: step (number of its row), func,
          duration_ns, imported, module, machinery (a frame of the import system that is folded).
        - `averages`, by function, and by inputs with `shapes` and `overloads`: func (0: allocations of a framework
          outside of all spans), span (number of the first), calls, self_ns, total_ns, self_bytes, total_bytes, flops,
          shapes and overload (JSON), is_async (beside the stack), compensated_ns (of total_ns, without what recording
          cost). Without `calls`, time of the language's functions is that of what they ran in. With `framework`, bytes
          are those of a framework's allocator. All threads are read for this table and the next ones.
        - `contexts`, by function and callers, parents before children: parent (number of the parent's row), func,
          shapes (JSON), span and first_ns (of the first), calls, self_ns, total_ns, self_bytes, total_bytes,
          compensated_ns.
        - `events`, every span in order of time: start_ns, end_ns, self_ns (0 beside the stack), self_bytes,
          total_bytes, compensated_ns, args (JSON members), span (its number in exported files), func, parent (number of
          its row; -1: none), first (child) and next (sibling, likewise), thread, flags (vst_span's, and from bit 24 on
          the scope of an operator). `tree_events` has a row with an address for each block of a framework, too, and
          args tell where tensors lie.
        - `activities`, every activity of devices and call of their runtimes: start_ns, end_ns, correlation, external,
          bytes, op_span and annotation_span (numbers of spans around the call; 0: none), stream, context, args (JSON
          members), kind (vst_activity_kind), func, device, thread (of a call), launch (1 + the row of the call that it
          came from; 0: not known), op, annotation (functions). First calls by thread, then the others by stream.
        - `device_sums`, what a device did by name: device, kind, func, activities, total_ns, longest_ns, bytes.
        - `device_uses`, of each device and each of its streams: device, stream (None: the whole device), works
          (kernels, copies and sets), start_ns, end_ns, span_ns (of the windows), busy_ns, idle_ns, gaps,
          longest_gap_ns, unlaunched_ns (of idle_ns, until the next launch was called), launched (works whose launch is
          known), delay_ns (from their launches on), queue_max and queue_sum (launched and not begun, at each launch).
        - `device_gaps`, the longest in which a device had nothing to do: device, start_ns, end_ns, unlaunched_ns, and
          of what ended it stream, func, thread (that launched it), op and annotation (functions around that).
        - `gil_holders`, threads that held the GIL while others waited: thread, func (that it was in for longest),
          held_ns.
        - `left_out`, what a budget left out, by time: start_ns, end_ns, func (None: every function).
        - `budget`, where one left functions out: changes, windows, functions, cpu_ns, cost_ns, out_cpu_ns. Then calls
          and times of functions, and self_ns of threads, are estimates. `reduced_estimates`: func, reduced_ns (total_ns
          would be so much more if there had been more time).
        """
    def names(self) -> set[str]:
        """The last parts of all names that spans() may find."""
    def has_memory(self) -> bool:
        """Whether there are records of allocations."""
    def memory(
        self, *, rows: int = 100, temporary: int = 1, progress: Progress | None = None, stacks: bool = True
    ) -> dict[str, Any]:
        """What the allocations come to, as <vestige/memory_report.h> has it; of stacks and lines the first `rows` of
        each view, with -1 all. Without `stacks` there are lines alone; a stack of more than 256 frames is cut in its
        middle."""

def set_graph(observer: int, thread_function: int = 0) -> None:
    """From now on, annotations are nodes of the execution trace of this observer; 0: of none."""

def export_traces(
    traces: Sequence[Trace],
    path: str | bytes,
    *,
    all_windows: bool = False,
    progress: Progress | None = None,
    memory_events: bool = True,
    format: str | None = None,
    observer: int = 0,
) -> int:
    """Writes several traces as one document. Returns the depth from which calls were summed up, 0 where none were."""

def node_ids(traces: Sequence[Trace], *, all_windows: bool = True, observer: int = 0) -> dict[int, int]:
    """By number of the record function: the id of its node in the execution trace of the same traces, if they were
    exported with the same arguments."""

def export_memory(
    traces: Sequence[Trace],
    path: str | bytes,
    *,
    view: str = "peak",
    temporary: int = 1,
    progress: Progress | None = None,
) -> int:
    """Writes memory histories in the format that the suffix names; `view` is that of folded stacks. Returns how many
    frames stacks were cut to, 0 where they are whole."""

def recover(source: str | bytes, target: str | bytes, *, overwrite: bool = False) -> None:
    """Writes a finished copy of a trace whose process died."""

def merge_histograms(parts: Sequence[str], shares: Sequence[float], /) -> tuple[str, tuple[int, ...]]:
    """The histogram of all values of these (Rows' column `histogram`), and its quantiles: 0.5 is the median. Of up to
    128 values they are exact. `{"values": [ns, …]}` is a histogram, too."""

def pack(
    source: str | bytes,
    target: str | bytes,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    level: int = 3,
) -> None:
    """Writes a compressed copy of a trace, which everything here reads as the trace itself."""

def unpack(
    source: str | bytes, target: str | bytes, *, overwrite: bool = False, progress: Progress | None = None
) -> None:
    """Writes the original of a packed trace, byte for byte."""

def snapshot(path: str | bytes, *, overwrite: bool = False, window_ns: int = 0, wait: bool = True) -> None:
    """Writes a copy of the recording so far."""

class record_function:
    """A named span around a block, for the thread it runs in."""

    name: str
    args: str | None
    stack: bool
    _values: tuple[object, ...] | None
    _theirs: Any
    @overload
    def __init__(self, name: str, args: str | None = None, *, stack: bool = False) -> None: ...
    @overload
    def __init__(self, name: str, *args: object, stack: bool = False) -> None: ...
    def __call__(self, function: _F) -> _F: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def _leave_open(self) -> None: ...
    def _end(self, json_members: str = "", /) -> None: ...
    def _end_inside(self) -> None: ...
    def _call_end_callbacks_on_future(self, future: _T) -> _T: ...

def instant(name: str, json_members: str = "") -> None: ...
def counter(name: str, value: float) -> None: ...
def recording() -> bool: ...
def memory_is_tracing() -> bool: ...
def memory_events(trace: Trace, min_size: int = 0) -> list[tuple[str, int, int, int, int, int, int, int, int, float]]:
    """Each allocation and free of so many bytes, in order of time: (kind, address, size, time_ns, thread, flags, stack,
    serial, live_bytes, weight), as <vestige/memory.h> has it."""

def memory_stacks(trace: Trace) -> list[tuple[int, int, int, str | None, str | None, int, int] | None]:
    """The stacks by number: (kind, flags, parent, function, file, line, address)."""

def _code_lines(code: CodeType) -> list[int]: ...
def _plain_text(text: str) -> bytes: ...
def follow_forks(
    function: Callable[[int, int, int, bytes | None], None] | None, plan: tuple[object, ...] | None = None, /
) -> None: ...
def call_after_fork(function: Callable[[Session | None], None]) -> None: ...
def notice_fork() -> None: ...
@overload
def run_program(code: CodeType, namespace: dict[str, Any], /) -> object: ...
@overload
def run_program(function: Callable[..., object], arguments: tuple[object, ...], /) -> object:
    """Runs the program with no frame below its own."""

def leave_out(code: CodeType, /) -> None:
    """Leaves calls of this function out of recordings."""

def on_exit(function: Callable[[int], list[bytes] | None] | None, /) -> None:
    """os._exit calls function(code) before it ends this process. If that returns a command, what the command prints
    goes to standard error."""

def set_annotation_stacks(on: bool) -> None: ...
def await_framework(callable: Callable[[], object] | None, /) -> None:
    """Calls it once, soon after the framework was imported, if calls of Python functions are recorded then."""

def set_framework_code(
    call: CodeType | None, enter: CodeType | None, exit: CodeType | None, /, *others: CodeType | None
) -> None:
    """others: of an optimizer's step, of an operator's overload, of an operator."""

def note_tensors(type: type | None, describe: int, list: list[Any] | None, /) -> None: ...
def set_framework_tensors(type: type | None, hush: int, note: int, /) -> None: ...
def watch_fast_contexts(type: type | None, attend: int, without: int, is_watched: int, /) -> None: ...
def note_optimizer(optimizer: object, args: object, kwargs: object, /) -> None: ...
def set_torch_mode(on: bool) -> None: ...
def set_framework_span(type: type | None, has_callbacks: int, has_modes: int) -> None: ...
def watch_descriptor(fd: int, function: Callable[[], float | None], /) -> bool: ...
def unwatch_descriptor() -> None: ...
def hooks_in_place() -> int: ...
def collect_cuda(named: str | None, paths: tuple[bytes, ...]) -> str:
    """Registers the collector of CUDA's devices. What keeps it from that, or ""."""

def load_collector(path: str) -> None:
    """Loads a library, which registers a collector of devices."""

def can_see_switches() -> int: ...
def gil_waits_trouble() -> str: ...
def object_waits_trouble() -> str: ...
def waits_for(name: str) -> str: ...
def engine_choices() -> dict[str, str | None]: ...
def inside() -> dict[str, Any]: ...
def check_inside(fact: str | None = None, shift: int = 0, /) -> dict[str, Any]: ...

@final
class Traceback:
    """A stack, as gather_traceback gives it: equal stacks are the same object."""

    @property
    def python_frames(self) -> int: ...
    @property
    def native_frames(self) -> int: ...

class CapturedTraceback:
    """A traceback that can be released."""

    @property
    def tb(self) -> Traceback | None: ...
    @property
    def skip(self) -> int: ...
    def __init__(self, tb: Traceback | None, skip: int = 0) -> None: ...
    @classmethod
    def extract(cls, script: bool = False, cpp: bool = False, skip: int = 0) -> Self: ...
    def cleanup(self) -> None: ...

def gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> Traceback: ...
def symbolize_tracebacks(tracebacks: Iterable[Traceback], positions: bool = False) -> list[list[dict[str, Any]]]: ...
def free_dead_captured_tracebacks() -> int: ...
def register_extra_frames(function: ExtraFrames) -> ExtraFrames: ...
def unregister_extra_frames(function: ExtraFrames) -> None: ...

api: Any
"""A capsule holding the vst_api table of <vestige/api.h>."""
