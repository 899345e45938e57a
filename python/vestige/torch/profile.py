"""The base class of profile with the rest of torch.profiler's API: steps, schedules, events, averages and stacks.

profile, in profiler.py, does the recording. The modules that do the work here are loaded on first use.
"""

from __future__ import annotations

import os
import sys

from vestige._core import record_function
from vestige.recording import forked
from vestige.render import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vestige import _core

    from .averages import FunctionEventAvg
    from .event_list import EventList
    from .results import Results
    from .steps import ProfilerAction

DEFAULTS: dict[str, Any] = {  # torch.profiler's options that do not change what is recorded into the file
    "schedule": None,
    "on_trace_ready": None,
    "record_shapes": False,
    "with_flops": False,
    "with_modules": False,
    "experimental_config": None,
    "execution_trace_observer": None,
    "acc_events": False,
    "custom_trace_id_callback": None,
    "post_processing_timeout_s": None,
}
OBSERVER_VARIABLES = ("ENABLE_PYTORCH_EXECUTION_TRACE", "VESTIGE_EXECUTION_TRACE")
CYCLES_ARE_CLEARED = (
    "Warning: Profiler clears events at the end of each cycle. Only events from the current cycle will be reported. "
    "To keep events across cycles, set acc_events=True."
)

_told_of_cycles = False


def _always(_: int) -> ProfilerAction:
    """The schedule of a profile without a schedule."""
    from .steps import ProfilerAction

    return ProfilerAction.RECORD


class TorchProfile:
    """torch.profiler's API, except for the recording itself."""

    _session: _core.Session
    _started: bool
    _is_parents: bool
    _stopped_ns: int | None
    with_stack: bool
    profile_memory: bool
    _stack_given: bool
    _torch: dict[str, Any]

    def _set_torch_options(self, given: dict[str, Any], torch_mode: bool) -> None:
        for name in ("record_shapes", "with_flops", "with_modules", "acc_events"):
            if not isinstance(given[name], bool):
                raise TypeError(f"{name} must be True or False, not {type(given[name]).__name__}")
        timeout = given["post_processing_timeout_s"]
        if timeout is not None and timeout < 0:
            raise ValueError("post_processing_timeout_s must be non-negative")
        for name in ("schedule", "on_trace_ready", "custom_trace_id_callback"):
            if given[name] is not None and not callable(given[name]):
                raise TypeError(f"{name} must be a function, not {type(given[name]).__name__}")
        self.record_shapes: bool = given["record_shapes"]
        self.with_flops: bool = given["with_flops"]
        self.with_modules: bool = given["with_modules"]
        self.acc_events: bool = given["acc_events"]
        self.execution_trace_observer = self._observer(given["execution_trace_observer"])
        self.experimental_config = given["experimental_config"]
        self.custom_trace_id_callback: Callable[[], str] | None = given["custom_trace_id_callback"]
        self.post_processing_timeout_s: float | None = timeout
        self.on_trace_ready: Callable[[Any], object] | None = given["on_trace_ready"]
        self.record_steps = given["schedule"] is not None
        self.schedule: Callable[[int], Any] = given["schedule"] or _always
        self.step_num = 0
        self.step_rec_fn: record_function | None = None
        self.use_device: str | None = None
        self.preset_metadata: dict[str, str] = {}
        self._action: ProfilerAction | None = None
        if self.record_steps:
            from .steps import ask

            self._action = ask(self.schedule, 0)
        self._keeps_cycles = self.acc_events or not (self.record_steps or torch_mode)
        self._experiment: dict[str, Any] = {}
        if self.experimental_config is not None:
            from .experimental import check_config

            self._experiment = check_config(self.experimental_config, self.with_stack)
        self._tracing = False  # true between _start_trace() and _stop_trace()
        self._cycles = 0
        self._windows = 0  # number of windows in the recording so far
        self._first_window = 0  # the first window of the cycle
        self._trace_id: str | None = None
        self._results: Results | None = None

    def _observer(self, given: Any) -> Any:
        """Returns the observer that starts and stops with each cycle: the given observer, or one that the environment
        asks for.
        """
        if given is None:
            if "1" not in (os.environ.get(name) for name in OBSERVER_VARIABLES):
                return None
            from .execution_trace import ExecutionTraceObserver

            return ExecutionTraceObserver.build_execution_trace_obs_from_env()
        missing = [name for name in ("start", "stop", "cleanup") if not callable(getattr(given, name, None))]
        if missing:
            raise TypeError(f"execution_trace_observer has no {'() and no '.join(missing)}(): {type(given).__name__}")
        return given

    # ---- steps -----------------------------------------------------------

    @property
    def current_action(self) -> ProfilerAction:
        """The action of the schedule in this step."""
        return _always(0) if self._action is None else self._action

    @current_action.setter
    def current_action(self, action: ProfilerAction) -> None:
        self._action = action

    def step(self) -> None:
        """Call this when the program's next step begins: the schedule decides what the profile does during that
        step.
        """
        from .steps import advance

        forked.notice()
        if not self._is_parents:
            advance(self)  # type: ignore[arg-type]

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            if self._experiment.get("adjust_profiler_step"):
                self.step_rec_fn._end_inside()
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _prepare_trace(self) -> None:
        """Called when a cycle is about to begin."""
        global _told_of_cycles
        if self._cycles and not self._keeps_cycles and not _told_of_cycles:
            _told_of_cycles = True
            import warnings

            warnings.warn(CYCLES_ARE_CLEARED, stacklevel=4)
        self._trace_id = None
        if self.custom_trace_id_callback is not None:
            self._trace_id = str(self.custom_trace_id_callback())
        elif self._cycles:
            self._trace_id = os.urandom(16).hex().upper()
        self._cycles += 1

    def _torch_facts(self) -> dict[str, str]:
        """Returns the metadata of a cycle."""
        flags = {name: "1" for name in ("record_shapes", "with_modules", "with_flops") if getattr(self, name)}
        if self._trace_id is not None:
            flags["vestige.trace_id"] = quote(self._trace_id)
        return {**flags, **self.preset_metadata}

    # ---- trace ids and metadata --------------------------------------------

    def get_trace_id(self) -> str | None:
        """Returns the id of the current or last recorded cycle; None before the first."""
        forked.notice()
        if not self._cycles:
            return None
        if self._trace_id is None:
            self._trace_id = str(self._trace().info()["trace_id"])
        return self._trace_id

    def set_custom_trace_id_callback(self, callback: Callable[[], str] | None) -> None:
        """Sets the function that returns the ids of cycles, from the next cycle on."""
        self.custom_trace_id_callback = callback

    def preset_metadata_json(self, key: str, value: str) -> None:
        """Puts a JSON text into the trace's metadata when it starts, and each time it starts again."""
        from vestige.recording.metadata import check_metadata

        check_metadata(key, value)
        self.preset_metadata[key] = value

    # ---- what was recorded ---------------------------------------------------

    def _selection(self) -> dict[str, Any]:
        """Returns the selection of the last cycle, or of all cycles."""
        return {"all_windows": True} if self._keeps_cycles else {"since": self._first_window}

    def _trace(self) -> _core.Trace:
        """Returns the trace of the recording, which may be empty."""
        self._session.create()
        trace = self._session.trace()
        if self._is_parents and self._stopped_ns is not None:
            trace.set_range(None, self._stopped_ns)
        return trace

    def _read(self) -> Results:
        forked.notice()
        if self._tracing:
            raise RuntimeError("this profile is recording: stop() it before reading its events")
        if not self._started:
            raise RuntimeError("nothing was recorded: call start() first")
        if self._experiment.get("trace_only"):
            raise RuntimeError(
                "events() is not available when trace_only=True in ExperimentalConfig. "
                "Use export_chrome_trace() instead."
            )
        if self._results is None:
            export = self.export_chrome_trace  # type: ignore[attr-defined]
            self._results = self._results_of(self._trace(), self._selection(), export=export)
        return self._results

    def _results_of(self, trace: _core.Trace, selection: dict[str, Any], **how: Any) -> Results:
        """Returns windows of a trace, read with the options of this profile."""
        from .results import Results

        return Results(
            trace,
            selection,
            verbose=bool(self._experiment.get("verbose")),
            syncs=bool(self._experiment.get("enable_cuda_sync_events")),
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            timeout=self.post_processing_timeout_s,
            framework=self._reads_framework(),
            with_calls=self._stack_given or None,
            **how,
        )

    def _reads_framework(self) -> bool:
        """Returns whether a framework reports its allocations. If so, only these allocations are shown."""
        return self._torch["memory"] and "torch" in sys.modules

    def events(self) -> EventList:
        """Returns all recorded events as a list of FunctionEvent in order of time, with calls as well as operators. The
        events are made when the program first looks at the list.
        """
        return self._read().events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool | None = None,
    ) -> EventList:
        """Returns averages over the events of each name, as a list of FunctionEventAvg; print(….table()) shows the
        list.

        group_by_input_shape, group_by_overload_name   one row for each shape, or overload group_by_stack_n    one row
        for each stack; only the n innermost callers are compared include_python_functions   whether the list has calls
        of functions. Default: True with profile(with_stack=True), as in
                            torch, without operators, or with _ExperimentalConfig(verbose=True). The time of calls that
                            are left out counts for their callers
        """
        return self._read().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name, include_python_functions
        )

    def _repr_html_(self) -> str | None:
        """Returns the HTML that a notebook shows; None before anything was recorded."""
        forked.notice()
        if self._tracing or not self._started or self._experiment.get("trace_only"):
            return None
        from vestige.reading.overview import of_profile

        return of_profile(self).html()

    @property
    def profiler(self) -> Any:
        """This object itself: torch has another object here, whose names profile has too."""
        return self if self._cycles else None

    @property
    def function_events(self) -> EventList:
        return self.events()

    @property
    def self_cpu_time_total(self) -> float:
        return self.events().self_cpu_time_total

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Returns the table of all events; see EventList.table()."""
        return self.events().table(*args, **kwargs)

    def total_average(self) -> FunctionEventAvg:
        """Returns the sum of all events."""
        return self.key_averages(include_python_functions=True).total_average()

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Writes the stacks of all calls with their own times in µs, a line for each: `a;b;c 120`."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self._read().export_stacks(path, metric)

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Writes the memory in use over time, as torch.profiler does. The suffix says how: .html is a page with a plot,
        .json and .json.gz are times in µs and bytes by category, .raw.json.gz single events.

        Categories need torch and record_shapes=True; with_stack=True adds the parameters of modules that no optimizer
        has. Without torch and shapes, memory that was freed during the recording is TEMPORARY, and the rest is unknown.
        """
        if not self.profile_memory:
            raise ValueError("profile_memory=True required for memory profiling.")
        from .memory_timeline import write_timeline

        write_timeline(os.fspath(path), self._read().trace, self._selection(), device)
