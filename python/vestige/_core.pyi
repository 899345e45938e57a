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
"""The engines of this interpreter, the default first."""

class TraceError(Exception):
    """A trace cannot be read or written; also an OSError where the system said why."""

@final
class Session:
    """One recording, on the tracer that is registered with the core."""

    def __init__(self, path: str | bytes | None = None, /, **options: Any) -> None:
        """Options have the names of recording/option_table.py, with `_ns` after times and `_bytes` after
        `memory_sample`; None means the default. `memory` and `checkpoints` are derived from other options."""
    def create(self) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def finish(self) -> None: ...
    def set_metadata(self, key: str, json: str) -> None: ...
    def storage_ns(self) -> float:
        """The average cost of a word besides storing it, in ns: getting room for it, and counting it for a budget."""
    def notes(self) -> list[str]:
        """New lines from collectors of devices since the last call."""
    def set_budget(self, share: float, python_ns: float, native_ns: float, /) -> None:
        """Call before the start. Sets the share of CPU time for recording, and the cost of calls in Python and in C."""
    def storage(self) -> dict[str, Any] | None: ...
    def wait_storage(self, seconds: float, /) -> bool: ...
    def trace(self) -> Trace: ...
    def name_process(self) -> None:
        """Notes the name that multiprocessing gave this process, if any."""
    def note_sources(self) -> None:
        """Notes the modification times and sizes of functions' source files in the metadata."""
    def export_memory(self, path: str | bytes) -> None:
        """Writes the memory history so far, in the format of the file name's suffix."""
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
        """Call before the first start. Sets the signal and the triggers that ask for snapshots while recording."""
    def engine_note(self) -> str | None: ...
    def snapshots(self) -> tuple[list[tuple[str, str, str | None]], int]:
        """The snapshots that were written (path, reason, error or None), and how many requests were refused."""
    @property
    def recording(self) -> bool: ...
    @property
    def lost(self) -> int: ...
    @property
    def was_cut(self) -> bool:
        """Another process truncated the file during the recording, which ended the recording."""
    @property
    def engine(self) -> str: ...

table_names: tuple[str, ...]
"""The names of all tables, see vestige.tables."""
kind_names: tuple[str, ...]
"""The names of the kinds of definitions, by number; number 0 is not a kind."""

class Table:
    """A table of traces, which gives out Arrow streams."""

    def __init__(
        self,
        name: str,
        sources: Iterable[
            tuple[str | bytes, int, int, int, int, int, int, int, str | None, str | None, str | None, str | None]
        ],
    ) -> None:
        """A source is (path, process, offset_ns, from_ns, to_ns, parent_pid, rank, world_size, host, name, command,
        ended). -1: the number is not known. 0: no bound."""
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> list[tuple[str, str, bool]]:
        """Name, type (int32, int64, float64, bool, text, name) of each column, and whether it may be null."""
    @staticmethod
    def rows_read() -> int:
        """How many rows all streams of this process have given so far."""
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

class TableReader:
    """Reads several tables of the same traces in one pass."""

    def __init__(self, tables: Sequence[Table]) -> None: ...
    def next(self) -> tuple[int, object] | None:
        """Returns the index of a table, and its next batch as a capsule of an Arrow array; None at the end."""

@final
class Rows:
    """The rows of a table. A column is a memoryview, or a sequence if it holds texts or None."""

    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def is_cut(self) -> bool:
        """Whether rows are missing because the timeout was reached."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]:
        """Returns rows, which have the columns as attributes."""
    @overload
    def __getitem__(self, name: str, /) -> Any:
        """A column: a memoryview of numbers, or a sequence that makes its values."""
    @overload
    def __getitem__(self, number: int, /) -> Any: ...

@final
class Function(structseq[Any], tuple[int, str, str, str, int]):
    """The definition of a function, or of another thing with a name."""

    @property
    def kind(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def shown_file(self) -> str:
        """The file without the folder of the search path in which it was found."""
    @property
    def line(self) -> int: ...
    @property
    def waits_for(self) -> str:
        """The reason why its calls wait; "" if they do not."""
    @property
    def only_waits(self) -> bool:
        """All time of its calls is waiting; else their own time, without what they call."""

@final
class Definition(structseq[Any], tuple[int, str]):
    """The name of spans: `work.py(3): f`."""

    @property
    def kind(self) -> int: ...
    @property
    def name(self) -> str: ...

@final
class Moment(structseq[Any], tuple[int, int]):
    """The start and the end of a span."""

    @property
    def start_ns(self) -> int: ...
    @property
    def end_ns(self) -> int: ...

class Trace:
    """A recorded trace: a file, or the recording of a session so far."""

    def __init__(self, path: str | bytes) -> None: ...
    def info(self) -> dict[str, Any]:
        """The facts that `vestige info` shows: start and end in ns, records, losses, how the recording ended, and
        more."""
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
        """Like export_traces(), for this trace."""
    def count_nodes(self, *, all_windows: bool = True) -> int:
        """Returns the number of nodes of execution traces."""
    def set_offset(self, ns: int) -> None:
        """Adds ns to all times of the trace, which are times of its own clock."""
    def set_range(self, from_ns: int | None = None, to_ns: int | None = None) -> None:
        """Restricts all methods, exports, and the times of info() to [from_ns, to_ns], inclusive. None: no bound. If
        you use set_offset(), call it first."""
    def spans(self, name: str, *, limit: int = 100_000, progress: Progress | None = None) -> list[Moment]:
        """Start and end of the first `limit` spans of a name, in the order of their ends. Spans that did not end are
        left out. The name may be the shown name (`f.py(3): C.f`), the qualified name (`C.f`) or its last part (`f`):
        the first of these forms that matches any span is used."""
    def definitions(self) -> list[Definition | None]:
        """The kinds and shown names of all definitions, by id."""
    def functions(self) -> list[Function | None]:
        """All functions and other definitions, by id."""
    def set_by_running(self, value: bool, /) -> None:
        """In reports, and in exports that add up, a span lasts as long as its thread was running on a processor."""
    def set_compensated(self, value: bool, /) -> None:
        """In reports, subtracts the cost of recording from spans, if the trace has this cost."""
    def import_name(self, imported: int, module: int = 0, /) -> str:
        """Returns the name of an import such as `import pandas.core.frame`, from the columns of the table `calls`. If
        the module's name is not known, describes the module."""
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
        by_thread: bool = False,
        memory_rows: int = 0,
        temporary: int = 1,
    ) -> dict[str, Rows]:
        """Fills any tables in one reading of the records: those of vestige.tables, and tables of sums, for which most
        options are. Each start and stop of a recording makes a window: `since` is the number of the first window to
        read; without `all_windows` only the last is read. After `timeout` seconds the reading ends, and the rows cover
        the records that were read until then (Rows.is_cut).

        `marks` has a byte of flags for each id: 1, leave out its calls and count their time as their caller's; 2, its
        calls wait; 4, it is a garbage collection; 8, count its time for no function; 16, a call of it is a step of an
        event loop; 32, if a task waits in it, the wait belongs to its caller; 64, it has no row in `duration`; 128,
        its spans are in `chosen_spans`, and `calls` has its rows, however short. If `threads` is given, only these
        threads are read.

        `func` is the id of a function. "Total" ns and bytes include the functions that a function called. None: not
        known.

        - `functions`: func, calls, outer_calls (calls that are not inside a call of the function), self_ns, total_ns,
          max_ns (the longest call; of a generator, the longest stretch between two yields), self_bytes, total_bytes,
          allocations, running_ns, error_ns (of total_ns). With `spread`, for self_ns and total_ns of a call:
          self_mean_error_ns, self_median_ns, self_median_error_ns, total_…; errors are standard errors.
        - `calls`, parents before children: parent (number of the parent's row), func, calls, raised (calls that an
          exception left), self_ns, total_ns, self_bytes, total_bytes, allocations, running_ns, imported and module (of
          an import: the imported thing, and the id of its code), awaits, thread. With `by_thread`, each thread has a
          tree of its own, in which `thread` is its number; from the 256th thread on, threads share a tree, and it is
          None. With `fold_imports`, frames of the import system are left out. Calls that took less than `min_ns` are
          left out. With `awaits`, waits of tasks are added: `awaits` is the kind of the awaited object, func the
          innermost function that waited, and the time is in no other row.
        - `threads`: thread, calls, self_ns, waiting_ns and gc_ns (parts of self_ns), first_ns, last_ns, running_ns,
          gil_ns, preempted_ns, the time in calls that wait (lock_ns, io_ns, sleep_ns, child_ns), the time in waits for
          the interpreter (object_ns, world_ns), top (the function that took most of its time).
        - `waits`: func, calls, self_ns, for functions with mark 2.
        - `collections`: generation, collections, total_ns, longest_ns, collected, uncollectable, examined (0: not
          recorded). `long_collections`, the longest: start_ns, duration_ns, thread, generation, collected.
        - `collection_callers`: func (that was interrupted), collections, total_ns.
        - `steps`, by event loop: steps, blocking (50 ms or more), blocking_ns, p50_ns, p99_ns, max_ns, histogram,
          thread (of the loop). `long_steps`, the longest blocking steps of each loop: start_ns, duration_ns, thread.
        - `repeats`, the most frequent calls with equal arguments, if arguments were recorded: func, arguments (JSON),
          calls, total_ns.
        - `lines`, calls whose place was recorded (every call of a quarter of a millisecond, and some of the shorter
          ones): func, caller (the nearest Python function around the call) and its line, through (the caller called
          something else, which called func), calls, total_ns.
        - `exceptions`, by place and outcome: thread, func (stands for the type and the place), raised_in, caught_in,
          end ("caught", "not caught", "unknown"), exceptions (how many).
        - `task_awaits`: func (of the tasks), awaits (kind of the awaited object), awaiting (function that waited),
          waits, awaiting_ns.
        - `task_steps`: task, func, start_ns, duration_ns, awaits (after the step; None: the task ends, or it goes_on
          with another call), goes_on, awaiting, waker_task (0: a callback, None: not known), waker (function).
        - `blocked_steps`, steps of asyncio's tasks that took at least `blocked_ns`: task, thread, start_ns,
          duration_ns. `blocked_calls`, the calls that took most of each such step, outermost first: step (number of its
          row), func, duration_ns, imported, module, machinery (a folded frame of the import system).
        - `averages`, by function, and by inputs with `shapes` and `overloads`: func (0: allocations of a framework
          outside of all spans), span (number of the first), calls, self_ns, total_ns, self_bytes, total_bytes, flops,
          shapes and overload (JSON), is_async (not on the stack), compensated_ns (total_ns without the cost of
          recording). Without `calls`, the time of the language's functions counts for the span around them. With
          `framework`, bytes are those of a framework's allocator. For this table and the next ones all threads are
          read.
        - `contexts`, by function and callers, parents before children: parent (number of the parent's row), func,
          shapes (JSON), span and first_ns (of the first), calls, self_ns, total_ns, self_bytes, total_bytes,
          compensated_ns.
        - `events`, every span in order of time: start_ns, end_ns, self_ns (0 if not on the stack), self_bytes,
          total_bytes, compensated_ns, args (JSON members), span (its number in exported files), func, parent (number of
          its row; -1: none), first (row of the first child; -1: none), next (row of the next sibling; -1: none),
          thread, flags (vst_span's, and from bit 24 on the scope of an operator). `tree_events` also has a row with an
          address for each block of a framework, and args include the addresses of tensors.
        - `activities`, every activity of devices and every call of their runtimes: start_ns, end_ns, correlation,
          external, bytes, op_span and annotation_span (numbers of spans around the call; 0: none), stream, context,
          args (JSON members), kind (vst_activity_kind), func, device, thread (of a call), launch (1 + the row of the
          call that launched it; 0: not known), op, annotation (functions). First calls by thread, then the other
          activities by stream.
        - `device_sums`, by device and name of the activity: device, kind, func, activities, total_ns, longest_ns,
          bytes.
        - `device_uses`, for each device and each of its streams: device, stream (None: the whole device), works
          (kernels, copies and sets), start_ns, end_ns, span_ns (of the windows), busy_ns, idle_ns, gaps,
          longest_gap_ns, unlaunched_ns (part of idle_ns: until the next launch was called), launched (works whose
          launch is known), delay_ns (sum of the times since their launches), queue_max and queue_sum (works that are
          launched and have not begun, at each launch).
        - `device_gaps`, the longest times in which a device was idle: device, start_ns, end_ns, unlaunched_ns, and of
          the activity that ended the gap: stream, func, thread (that launched it), op and annotation (functions around
          the launch).
        - `gil_holders`, threads that held the GIL while other threads waited: thread, func (the function in which the
          thread was longest), held_ns.
        - `lock_waits`, waits for a lock while another thread held the lock: thread (that waited), waiter (the function
          that took the lock) and waiter_outer (its caller), holder, holder_outer and holder_thread (likewise, of the
          thread that held the lock), inside (the function that took most time while the lock was held; None: the
          holder called nothing), waits, wait_ns.
        - `chosen_spans`: the rows of the table `span` for functions with mark 128.
        - `memory_events`, each allocation and free in order of time (see <vestige/memory.h>): kind, address, size,
          time_ns, thread, flags, stack, serial, live_bytes, weight. `recorded_stacks`, their stacks: stack, kind,
          flags, parent, function, file, line, address.
        - `memory_process`, a row of figures about all allocations: sampled, of_framework (the sums are about a
          framework's allocator), temporary_within, records, apart (allocations of a framework, not in the sums), frees,
          unknown_frees (of blocks from before), lost_frees, lost, unlocked (without the language's lock), stale (with
          the last known stack), first_ns, last_ns, peak_ns, stack_count. `memory_resident`, a row if it was recorded:
          peak, before, sampled, sampled_ns, files, live. `memory_timeline` and `resident_timeline`, by stretch of time:
          max_ns, max_bytes, last_ns, last_bytes.
        - Sums of allocations have count, bytes and error (standard error of the bytes; 0 unless sampled):
          `memory_views` (view, count_error, how many stacks and lines have a part of the view), `memory_allocators`
          (allocator), `memory_sizes` (least: sizes from there to less than twice that), `memory_threads` (thread, tid,
          name; a row for what the thread allocated, then one for what it freed), and the first `memory_rows` (-1: all)
          rows of each view of `memory_stacks` and `memory_lines`: view, of (number of a row of `memory_nodes`, or for
          lines of `memory_frames`). `memory_nodes`, stacks: parent, frame; row 0 is the empty stack. `memory_frames`:
          function, file, shown_file, line, native. An allocation is temporary if its thread freed it before it made
          `temporary` more. Reading these raises TraceError if no memory was recorded.
        - `left_out`, calls that a budget left out, by time: start_ns, end_ns, func (None: every function).
        - `budget`, if a budget left out functions: changes, windows, functions, cpu_ns, cost_ns, out_cpu_ns. Then calls
          and times of functions, and self_ns of threads, are estimates. `reduced_estimates`: func, reduced_ns (by how
          much total_ns was reduced because the estimate exceeded the time that there was).
        """
    def names(self) -> set[str]:
        """The last parts of all names that spans() can find."""
    def has_memory(self) -> bool:
        """Whether there are records of allocations."""

def set_graph(observer: int, thread_function: int = 0) -> None:
    """Sets the observer in whose execution trace annotations become nodes; 0: none."""

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
    """Writes several traces as one document. Returns the depth from which calls were summed up, 0 if none were."""

def node_ids(traces: Sequence[Trace], *, all_windows: bool = True, observer: int = 0) -> dict[int, int]:
    """Returns {number of a record function: id of its node} in the execution trace that an export of these traces with
    these arguments has."""

def export_memory(
    traces: Sequence[Trace],
    path: str | bytes,
    *,
    view: str = "peak",
    temporary: int = 1,
    progress: Progress | None = None,
) -> int:
    """Writes memory histories in the format of the path's suffix; `view` chooses the view of folded stacks. Returns the
    number of frames to which stacks were cut, 0 if they are whole."""

def recover(source: str | bytes, target: str | bytes, *, overwrite: bool = False) -> None:
    """Writes a finished copy of a trace whose process died."""

def merge_histograms(parts: Sequence[str], shares: Sequence[float], /) -> tuple[str, tuple[int, ...]]:
    """Merges histograms (values of the column `histogram` of Rows). Returns the merged histogram and its quantiles: 0.5
    is the median. Up to 128 values the quantiles are exact. `{"values": [ns, …]}` is a histogram, too."""

def pack(
    source: str | bytes,
    target: str | bytes,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    level: int = 3,
) -> None:
    """Writes a compressed copy of a trace, which all functions here read like the original."""

def unpack(
    source: str | bytes, target: str | bytes, *, overwrite: bool = False, progress: Progress | None = None
) -> None:
    """Writes the original of a packed trace, byte for byte."""

def snapshot(path: str | bytes, *, overwrite: bool = False, window_ns: int = 0, wait: bool = True) -> None:
    """Writes a copy of the recording so far."""

class record_function:
    """A named span around a block of code, on the thread that runs it."""

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
    """Runs a program with no frame below it."""

def leave_out(code: CodeType, /) -> None:
    """Does not record calls of this code: it only runs the program."""

def on_exit(function: Callable[[int], list[bytes] | None] | None, /) -> None:
    """os._exit calls function(code) before it ends this process. The function may return a command, whose output goes
    to standard error."""

def set_annotation_stacks(on: bool) -> None: ...
def await_framework(callable: Callable[[], object] | None, /) -> None:
    """Calls callable() once, soon after the framework was imported, if calls of Python functions are recorded then."""

def set_framework_code(
    call: CodeType | None, enter: CodeType | None, exit: CodeType | None, /, *others: CodeType | None
) -> None:
    """others: the code of an optimizer's step, of an operator's overload, and of an operator."""

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
    """Registers the collector of CUDA's devices. Returns why that is not possible, or ""."""

def load_collector(path: str) -> None:
    """Loads a library, which registers a collector of device activities."""

def local_files() -> list[str]: ...
def local_copy(path: str | bytes, /) -> tuple[str, int, bool, bool, bool] | None: ...
def complete_copy(path: str | bytes, /) -> None: ...
def resume_copy(path: str | bytes, /) -> None: ...
def can_see_switches() -> int: ...
def gil_waits_trouble() -> str: ...
def object_waits_trouble() -> str: ...
def engine_choices() -> dict[str, str | None]: ...
def inside() -> dict[str, Any]: ...
def check_inside(fact: str | None = None, shift: int = 0, /) -> dict[str, Any]: ...

@final
class Traceback:
    """A stack, returned by gather_traceback: equal stacks are the same object."""

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
