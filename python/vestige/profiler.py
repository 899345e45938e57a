"""profile: a recording as the program sees it, with torch.profiler's names and behaviour.

profile is a thin layer over _core.Session: it checks its arguments, keeps metadata until a recording can hold them,
and finishes started recordings when the program ends. scripts/write_options.py writes its keywords from `output` on,
and their docstring, from the table of options.
"""

from __future__ import annotations

import os
import sys
from time import time_ns

from . import _core
from . import torch as torch_api
from .recording import endings, forked, standard_error
from .recording import options as recording_options
from .recording.metadata import check_json, check_key, facts_of, note_storage
from .recording.option_table import OPTIONS
from .recording.options import read_options, sched_note, tell_engine
from .recording.ranks import check_ranks, own_path
from .render import quote
from .torch import adapter, hosting
from .torch.profile import DEFAULTS, TorchProfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import timedelta
    from types import TracebackType
    from typing import Any, Self

    from .torch.activity import ProfilerActivity

ONCE = {option.name for option in OPTIONS if "once" in option.traits}


class profile(TorchProfile):
    """Records calls of Python and C functions, garbage collections and annotations, in all threads.

        with profile() as prof:
            work()
        prof.export_chrome_trace("t.json.gz")

    activities    members of ProfilerActivity. CPU is always recorded; CUDA is equivalent to devices=True. Default: CPU
    schedule      a function that takes a step's number and returns the step's ProfilerAction; schedule() makes such
                  functions. The program calls step() after each step. Each cycle of active steps is a window of the
                  file. Exports, events() and key_averages() show the last cycle
    on_trace_ready  a function that is called with the profile at the end of each cycle and at stop()
    acc_events    show all cycles, instead of only the last, in exports, events() and key_averages()
    record_shapes, with_flops, with_modules
                  also record the shapes, floating-point operations and modules of a framework's operators
    post_processing_timeout_s   stop reading events after this many seconds, and return the events read so far
    custom_trace_id_callback    a function that returns the id of each cycle
    execution_trace_observer    an ExecutionTraceObserver, or any object with start(), stop() and cleanup(): started and
                  stopped with each cycle, and cleaned up at the end of the block. Default: an observer that writes to
                  a temporary file, if VESTIGE_EXECUTION_TRACE or ENABLE_PYTORCH_EXECUTION_TRACE is 1
    experimental_config         an _ExperimentalConfig of vestige's or torch's
    output        path of the .vst file to write; the file must not exist unless overwrite is True. If the process is
                  killed, the file can be read up to the last record. `{rank}` in the path is replaced by the rank.
                  Default: a temporary file, which is deleted when it is no longer needed
    overwrite     replace an existing file
    storage       how to write the file: "mapped" writes to the file directly; "copied" writes to a local file, which
                  another process copies; "auto" copies if the disk may make a thread wait (NFS, Lustre, FUSE, …)
    with_stack    record calls; if False, only annotations, instants and counters are recorded. Default: True; after
                  install() False
    c_functions   record calls of functions written in C
    include       glob patterns of source files; only functions in matching files are recorded. A pattern without a
                  slash is compared only with the file's name
    exclude       glob patterns of source files; functions in matching files are left out
    only          names or patterns of functions, as for record_args; only calls of these functions, and calls inside
                  them, are recorded
    max_depth     the largest depth of recorded calls, counted from the calls that are open at the start, or, with
                  `only`, from the functions that it names
    min_duration  "10us", seconds or a timedelta: shorter calls are left out and counted, and their time counts as their
                  caller's own time. Annotations and operators are never left out
    spins         record functions that spin: they check a condition again and again without sleeping
    qualified_names  name Python functions `Class.f` instead of `f`. Default: True; after install() False, as in torch
    record_args   names or patterns (`f`, `Class.f`, `load_*`) of functions; their arguments and return values are
                  recorded
    sched         record when each thread ran on a processor, and waits for the GIL; each call then has a running time
                  besides its duration (only on Linux; running times are unknown if the system denies this information)
    waits         further functions that reports shall treat as waiting: `io mybus.Socket recv` (a method in C), `spin
                  mybus/ring.py Ring.get` (a Python function), `lock take_turn` (a function in C). The first word is the
                  reason for the wait: lock, io, sleep, child or spin
    exceptions    record the type of each exception, where it is raised, and which function catches it. Messages are not
                  recorded; exceptions that only end iterators and generators are ignored
    lines         record the lines from which functions are called: for all calls that take at least a quarter of a
                  millisecond, and for some shorter calls
    gc            record garbage collections. Default: True; after install() False
    annotation_stacks  record the call stack at the beginning of each record_function()
    profile_memory  also record allocations and frees by Python's allocators and by malloc and related functions; each
                  allocation has its Python stack
    memory_native_stacks  with profile_memory: also record native frames (functions written in C and C++)
    memory_sample  bytes, or "512K": record about one allocation for each such amount of memory, and estimate the totals
    memory_native_allocators  with profile_memory: record malloc and related functions; if False, only Python's own
                  allocators
    devices       True: record activities of GPUs with CUPTI, if CUDA is installed (not yet tested on a GPU). A list of
                  paths: record activities of other devices with the collectors in these libraries
    max_size      bytes, or "256M": the largest size of the file, at least 1M; the oldest records are dropped
    last          seconds, a timedelta, or "30s": keep only the records of the last 30 seconds. Records that `last` or
                  max_size drops are counted; names are never dropped
    budget        0.05 or "5%": recording takes at most this share of the CPU time. If recording every call would take
                  more, vestige leaves out the most-called functions for a time, and reports estimate their calls and
                  times
    compensate    first measure the cost of recording, for a third of a second; events then have compensated_time_total
    engine        how calls are recorded: "turbo"; "safe", which is slower and uses only hooks of the interpreter, which
                  report C functions called from Python but not from C; or "auto", which selects turbo on Pythons for
                  which turbo is tested
    triggers      write a snapshot when one of these happens: `step>200ms` (a record_function or a function with this
                  name took longer), `raise:ValueError` (an exception of this type), `rss>2G` (the process uses more
                  memory)
    snapshot_signal  name of the signal that makes vestige write a snapshot
    max_snapshots  the largest number of snapshots. They are written next to `output`, as `<output>-snapshot<n>.vst`
    children      also record child processes, forked or started; each child has its own file next to `output`:
                  t.<pid>.vst for t.vst
    rank          number of this process in a distributed program. Default: the environment variable RANK
    local_rank    number of this process on its host. Default: the environment variable LOCAL_RANK
    world_size    number of processes of the program. Default: the environment variable WORLD_SIZE
    """

    _is_torchs = False  # whether torch's own profile is on top, see torch/recorder.py

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None = None,
        schedule: Callable[[int], Any] | None = None,
        on_trace_ready: Callable[[profile], object] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool | None = None,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        output: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None = None,
        overwrite: bool = False,
        storage: str = "auto",
        c_functions: bool = True,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        only: Sequence[str] | None = None,
        max_depth: int | None = None,
        min_duration: str | float | timedelta | None = None,
        spins: bool = True,
        qualified_names: bool | None = None,
        record_args: Sequence[str] | None = None,
        sched: bool = False,
        waits: Sequence[str] | None = None,
        exceptions: bool = False,
        lines: bool = True,
        gc: bool | None = None,
        annotation_stacks: bool = False,
        memory_native_stacks: bool = False,
        memory_sample: str | int | None = None,
        memory_native_allocators: bool = True,
        devices: bool | Sequence[str] = False,
        max_size: str | int | None = None,
        last: str | float | timedelta | None = None,
        budget: float | str | None = None,
        compensate: bool = False,
        engine: str = "auto",
        triggers: Sequence[str] | None = None,
        snapshot_signal: str | int | None = None,
        max_snapshots: int = 10,
        children: bool = False,
        rank: int | None = None,
        local_rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        named = dict(locals())
        torch_mode = self._is_torchs or torch_api.installed
        chosen = self._choose_activities(activities)
        self._stack_given = with_stack is True
        _warn_of_cuda(use_cuda)
        self.with_stack = not torch_mode if with_stack is None else with_stack
        self._set_torch_options({name: named[name] for name in DEFAULTS}, torch_mode)
        self._set_state(self._set_options({**named, "activities": chosen, "with_stack": self.with_stack}, torch_mode))

    def _choose_activities(
        self, activities: Iterable[ProfilerActivity | dict[ProfilerActivity, list[str]]] | None
    ) -> frozenset[ProfilerActivity] | None:
        """Returns which kinds of activities are recorded, if the program names any."""
        chosen: frozenset[ProfilerActivity] | None = None
        if activities is not None:  # loads enum: only for a program that names activities
            from .torch.activity import check_activities, listed

            chosen = check_activities(activities := listed(activities))
        self._given_activities, self._activities = activities, chosen
        return chosen

    def _set_options(self, named: dict[str, Any], torch_mode: bool) -> dict[str, Any]:
        """Sets what is recorded, and where. Returns what was given, as checked values and defaults."""
        given = {name: value for name, value in named.items() if name not in ("self", "use_cuda", *DEFAULTS)}
        if self._experiment.get("record_python_gc_info"):
            given["gc"] = True
        elif given["gc"] is None:
            given["gc"] = not torch_mode
        if given["qualified_names"] is None:
            given["qualified_names"] = not torch_mode
        session = read_options(given)
        self.profile_memory: bool = given["profile_memory"]
        self._annotation_stacks: bool = given["annotation_stacks"]
        self._ranks = check_ranks(given["rank"], given["local_rank"], given["world_size"])
        self._output = self._own_output(given["output"])
        self._device_notes: list[str] = []
        if given["devices"] is not False or given["activities"] is not None:
            from .recording.devices import read_devices

            self._device_notes = read_devices(given)
        # Where vestige stands in for torch.profiler, torch reports its allocations itself: hooks of malloc would count
        # the same bytes a second time.
        by_torch = torch_mode and "torch" in sys.modules
        self._torch = {
            "record_shapes": self.record_shapes,
            "with_flops": self.with_flops,
            "with_modules": self.with_modules,
            "memory": self.profile_memory and (by_torch or not given["memory_native_allocators"]),
            "storages": self.profile_memory,
            "overload_names": bool(self._experiment.get("capture_overload_names")),
            "calls": self.with_stack and given["include"] is None and given["exclude"] is None,
        }
        armed = bool(given["triggers"]) or given["snapshot_signal"] is not None
        hooked = self.profile_memory and not by_torch
        self._session_options = {**session, "devices": bool(given["devices"]), "memory": hooked, "checkpoints": armed}
        self._armed_with = (given, session["last_ns"] or 0) if armed else None
        return given

    def _own_output(self, output: Any) -> str | bytes | None:
        """Returns the file of this process: its rank may be part of the name."""
        if output is None:
            return None
        path: str | bytes = os.fspath(output)
        own = own_path(os.fsdecode(path), self._ranks.get("rank"))
        return own if isinstance(path, str) else os.fsencode(own)

    def _set_state(self, given: dict[str, Any]) -> None:
        """Sets the state of a profile that has recorded nothing yet."""
        self._session = self._new_session(self._output)
        self._options = {name: value for name, value in given.items() if name not in ONCE}  # for children as well
        self._overwrite: bool = given["overwrite"]
        self._children: bool = given["children"]
        # file and id of the first process's recording; set only if children are recorded
        self._family: tuple[str, str] | None = None
        self._is_child = False
        self._is_parents = False  # in a forked child, see forked.py
        self._stopped_ns: int | None = None  # when recording stopped last
        self._metadata: dict[str, str] = {}  # kept here until the first start
        self._running = False  # true between start() and stop()
        self._started = False
        self._finished = False

    def _new_session(self, output: str | bytes | None) -> _core.Session:
        session = _core.Session(output, **self._session_options)
        if self._armed_with is not None:
            from .recording import flight

            flight.arm(session, output, *self._armed_with)
        return session

    @property
    def activities(self) -> frozenset[ProfilerActivity]:
        from .torch.activity import check_activities

        return check_activities(self._activities)

    def start(self) -> None:
        """Starts recording, or the schedule. After a stop() it adds a window to the same trace."""
        forked.notice()
        if self._is_parents:
            forked.start_over(self)
        if self._running:
            raise RuntimeError("this profile is recording already")
        if self._finished:
            raise RuntimeError(f"{self._place()} is finished; use a new profile()")
        if endings.is_too_late(self):
            return
        if self._given_activities is not None:
            from .torch.activity import check_filters

            check_filters(self._given_activities)
        if self._action is None:
            self._prepare_trace()
            self._start_trace()
        else:
            from .torch.steps import ProfilerAction, transit

            transit(self, ProfilerAction.NONE, self._action)
        self._running = True
        self._begin_step()

    def stop(self) -> None:
        """Stops recording. The recording can be exported then."""
        forked.notice()
        if not self._running:
            raise RuntimeError("this profile is not recording: call start() first")
        self._running = False
        if self._is_parents:
            return
        self._end_step()
        if self._action is None:
            self._stop_trace()
            self._trace_ready()
        else:
            from .torch.steps import transit

            transit(self, self._action, None)

    def _start_trace(self) -> None:
        """Begins a window of the file."""
        # Gathered before the recording starts, because these calls are not the program's.
        facts = self._torch_facts()
        if not self._started:
            if not self._is_child:  # a child has called note() already
                standard_error.note()
            facts = {**facts_of(self), **facts, **self._metadata}
        self._results = None
        adapter.prepare()
        if self._children:
            from .recording.children import follow

            follow(self)
        hosts = hosting.begin(self)
        try:
            self._session.create()
            for key, text in facts.items():
                self._session.set_metadata(key, text)
            if not self._started:
                self._begin_storage()
            tell_engine(self._session.engine_note())
            if self._options["sched"] and not self._started and not self._is_child:
                tell_engine(sched_note())
            self._tell_devices(self._device_notes)
            if self.execution_trace_observer is not None and hosts:
                self.execution_trace_observer.start()
            self._session.start()
            _core.set_annotation_stacks(self._annotation_stacks)
            adapter.start(**self._torch)
        except BaseException:
            if hosts:
                if self.execution_trace_observer is not None:
                    self.execution_trace_observer.stop()
                hosting.end(self)
            self._let_go()
            raise
        tell_engine(self._session.engine_note())  # some reasons are known only now
        self._tell_devices(self._session.notes())
        hosting.begun()
        self._first_window = self._windows
        self._windows += 1
        self._tracing = True
        if not self._started:
            self._started = True
            endings.expect(self)

    def _stop_trace(self) -> None:
        """Ends the window."""
        self._tracing = False
        adapter.stop()
        if self._session.recording:
            self._settle()
            self._session.stop()
            self._tell_devices(self._session.notes())
        note_storage(self)
        self._stopped_ns = time_ns()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()
        hosting.end(self)
        self._let_go()

    def finish(self) -> None:
        """Stops the recording if it runs, and completes the file given as `output`. A with block does so at its end."""
        forked.notice()
        if self._tracing:
            adapter.stop()
            self._settle()
        was_tracing = self._tracing
        self._running = self._tracing = False
        if self._started and not self._finished:
            self._finished = True
            if was_tracing:
                self._stopped_ns = time_ns()
            try:
                if self._is_child and self._session.recording:
                    self._session.name_process()
                self._session.note_sources()
                if was_tracing:
                    self._session.stop()
                note_storage(self)
                if "functools" in sys.modules:  # else there are no caches
                    from .recording.caches import note_caches

                    note_caches(self)
                self._session.finish()
                if not self._is_child:  # a child stays silent
                    self._tell_loss()
                    self._end_storage()
            except Exception:
                if not self._is_child:
                    raise
            finally:
                if was_tracing and self.execution_trace_observer is not None:
                    self.execution_trace_observer.stop()
                hosting.end(self)
                endings.forget(self)
        self._let_go()

    def _settle(self) -> None:
        """Waits until devices have finished, if their activities are recorded."""
        if self._options["devices"]:
            from .recording.devices import settle

            settle()

    def _tell_devices(self, lines: list[str]) -> None:
        """Shows the notes of the devices' collectors."""
        if lines and not self._is_child:
            from .recording.devices import tell_once

            tell_once(lines)

    def _let_go(self) -> None:
        """Stops recording children that start from now on."""
        if self._children:
            from .recording.children import unfollow

            unfollow(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._running:
            self.stop()
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.cleanup()
        if self._output is not None:
            self.finish()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity] | None = None) -> None:
        """Pauses or resumes recording between start() and stop(). Without CPU among the activities nothing changes."""
        if activities is not None:
            from .torch.activity import ProfilerActivity, check_activities

            if ProfilerActivity.CPU not in check_activities(activities):
                return
        forked.notice()
        if not self._tracing:
            return
        if enable and not self._session.recording:
            self._session.start()
            adapter.start(**self._torch)
            self._windows += 1
        elif not enable and self._session.recording:
            adapter.stop()
            self._session.stop()

    def export_chrome_trace(
        self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], use_python_export: bool = False
    ) -> None:
        """Writes what was recorded as Chrome JSON, gzipped if the name ends in .gz. Can be called again.

        With a schedule that is the last cycle, unless acc_events is set. use_python_export is torch's and changes
        nothing.
        """
        forked.notice()
        if self._tracing:
            raise RuntimeError("this profile is recording: stop() it before exporting")
        if not self._started:
            raise RuntimeError("nothing was recorded: call start() first")
        self._trace().export(os.fsdecode(path), format="chrome", **self._selection())

    @property
    def snapshots(self) -> list[tuple[str, str, str | None]]:
        """Returns the snapshots that a signal or trigger has asked for so far: path, reason, and the error or None."""
        forked.notice()
        return self._session.snapshots()[0]

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a string into the trace's metadata."""
        if not isinstance(value, str):
            raise TypeError(f"add_metadata: value must be a str, not {type(value).__name__}")
        self._set_metadata(key, quote(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a JSON text into the trace's metadata."""
        if not isinstance(value, str):
            raise TypeError(f"add_metadata_json: value must be a str of JSON, not {type(value).__name__}")
        self._set_metadata(key, check_json(value))

    def _set_metadata(self, key: str, text: str) -> None:
        check_key(key)
        forked.notice()
        if self._finished:
            raise RuntimeError(f"{self._place()} is finished: add metadata before finish()")
        if self._started and not self._is_parents:
            self._session.set_metadata(key, text)
        else:
            self._metadata[key] = text

    def _tell_loss(self) -> None:
        """Reports lost records in one line, because nothing else would show the loss."""
        if self._session.was_cut:
            lost = "somebody else truncated the file, and recording ended there; "
            standard_error.say(f"{self._place()}: {lost}at least {self._session.lost:,} records are lost")
        elif self._session.lost:
            lost = f"{self._session.lost:,} records could not be kept; is the disk full?"
            standard_error.say(f"{self._place()}: {lost}")

    def _begin_storage(self) -> None:
        if self._session.storage() is not None:
            from .recording.storage import tell_begin

            tell_begin(self)

    def _end_storage(self) -> None:
        if self._session.storage() is not None:
            from .recording.storage import tell_end

            tell_end(self)

    def _tell_storage(self, line: str) -> None:
        if recording_options.notes is not None:
            recording_options.notes.append(f"{os.fsdecode(self._output or '')}: {line}")
        else:
            standard_error.say(f"{os.fsdecode(self._output or '')}: {line}")

    def _place(self) -> str:
        return "the recording" if self._output is None else f"the recording in {os.fsdecode(self._output)}"


def _warn_of_cuda(use_cuda: bool | None) -> None:
    if use_cuda is not None:
        import warnings

        warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=3)
