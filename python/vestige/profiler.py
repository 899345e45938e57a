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
from .recording.caches import note_caches
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

    activities    members of ProfilerActivity. CPU is always recorded; CUDA asks for devices=True. Default: CPU
    schedule      a function of the step's number, such as schedule() returns, that says which steps are recorded; the
                  program calls step() after each. Each cycle of active steps is a window of the file. Exports,
                  events() and key_averages() show the last cycle
    on_trace_ready  is called with the profile when a cycle is over, and at stop()
    acc_events    exports, events() and key_averages() show all cycles, not the last alone
    record_shapes, with_flops, with_modules
                  what is recorded of a framework's operators
    post_processing_timeout_s   seconds after which reading events ends, with those read so far
    custom_trace_id_callback    gives the id of each cycle
    execution_trace_observer    an ExecutionTraceObserver, or any object with start(), stop(), cleanup(): it is started
                  and stopped with each cycle, and cleaned up at the end of the block. Default: one that writes to a
                  temporary file, where VESTIGE_EXECUTION_TRACE or ENABLE_PYTORCH_EXECUTION_TRACE is 1
    experimental_config         an _ExperimentalConfig, vestige's or torch's
    output        a .vst file to record to, which must not exist unless overwrite is True. It can be read up to the last
                  record even if the process is killed. Default: a temporary file that is removed by itself. `{rank}` in
                  it is the rank
    overwrite     replace an existing file
    storage       how to write the file: "mapped", "copied", or "auto", which is copied where a disk may keep a thread
                  waiting (NFS, Lustre, FUSE, …). A copied recording goes to a local file, which another process copies
    with_stack    record calls; False leaves annotations, instants and counters. Default True, after install() False
    c_functions   record calls of functions written in C
    include       glob patterns of source files; only functions in these are recorded. A pattern without a slash is
                  compared with the file's name alone
    exclude       patterns of source files whose functions are left out
    only          names or patterns, as for record_args: only calls of these functions, and the calls inside them, are
                  recorded
    max_depth     record only so many levels of calls, counted from the calls that are open at the start, or with `only`
                  from its functions
    min_duration  "10us", seconds or a timedelta: calls that took less, and made none that took as long, are left out
                  and counted; their time becomes their caller's own. Annotations and operators are always kept
    spins         False leaves out functions that spin: they look again and again, without sleeping
    qualified_names  name Python functions `Class.f` instead of `f`. Default True; after install() False, like torch
    record_args   names or patterns (`f`, `Class.f`, `load_*`) of functions whose arguments and return values are
                  recorded
    sched         record when each thread had a processor, so that every call has a running time and a duration, and
                  waits for the GIL (Linux; unknown if the system denies this information)
    waits         further functions that wait, for reports: `io mybus.Socket recv` (a method in C), `spin mybus/ring.py
                  Ring.get` (a Python function), `lock take_turn` (a function in C). The first word is the reason: lock,
                  io, sleep, child or spin
    exceptions    record where exceptions are raised and who catches them, by type. Messages are not recorded, nor the
                  exceptions by which iterators and generators end
    lines         record the lines from which functions are called: of all calls that take a quarter of a millisecond,
                  and of some shorter ones
    gc            record garbage collections. Default True, after install() False
    annotation_stacks  record the call stack at the beginning of each record_function()
    profile_memory  also record allocations and frees, of Python's allocators and of malloc and its kin, each allocation
                  with its Python stack
    memory_native_stacks  with profile_memory: also record native frames, of functions written in C and C++
    memory_sample  bytes, or "512K": record about one allocation per so many bytes, and estimate the totals
    memory_native_allocators  False: only Python's own allocators, not malloc and its kin
    devices       True records activities of GPUs by CUPTI, if CUDA is there; this has not yet run on a GPU. A list of
                  libraries records activities of other devices, by the collectors in these libraries
    max_size      bytes, or "256M": the largest size of the recording; the oldest records are dropped. At least 1M
    last          seconds, a timedelta, or "30s": keep only the records of this last stretch of time. Records that
                  `last` or max_size drops are counted; names are never dropped
    budget        0.05 or "5%": recording takes at most this share of the CPU time. If recording every call would take
                  more, the functions that are called most are left out for a time; reports estimate their calls and
                  times
    compensate    measure first, for a third of a second, what recording costs: see compensated_time_total of events
    engine        how to hook in: "turbo", "safe" (slower, by hooks of the interpreter, which show C functions that
                  Python calls but not those that C calls), or "auto", which is turbo where it is proven and usable
    triggers      write a snapshot when one of these happens: `step>200ms` (a record_function or a function of that name
                  took longer), `raise:ValueError` (an exception of that type), `rss>2G` (memory of the process)
    snapshot_signal  name of the signal on which vestige writes a snapshot
    max_snapshots  the largest number of snapshots. They are written next to `output`, as `<output>-snapshot<n>.vst`
    children      also record child processes, forked or started anew, each into a file of its own next to `output`:
                  t.<pid>.vst for t.vst
    rank          which process of a distributed program this is. Default: RANK, LOCAL_RANK and WORLD_SIZE of the
                  environment
    local_rank    the number of this process on its host. Default: as for rank
    world_size    how many processes the program has. Default: as for rank
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
                note_storage(self)
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
