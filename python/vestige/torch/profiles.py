"""torch's own profiles with vestige beneath: after install() torch.profiler.profile and, on request,
torch.autograd.profiler.profile are these classes. The visible behaviour is still torch's code:
steps and schedules, warnings, errors, metadata, cycles. Only recording and the reading of events are replaced. Loaded
only if torch is.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from time import perf_counter_ns, time_ns

import torch
import torch.profiler.profiler as frontend
from torch.autograd import profiler as autograd

from vestige._core import record_function
from vestige.profiler import profile as vestige_profile
from vestige.render import quote

from .activity import check_filters
from .execution_trace import ExecutionTraceObserver
from .kineto import KinetoResults
from .memory_timeline import write_timeline
from .recorder import Recorder, is_recording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any

    from .results import Results

US = 1000  # ns
ADJUSTS_STEPS = not hasattr(torch._C._profiler._ExperimentalConfig, "adjust_profiler_step")  # torch 2.15 ignores it


def _options(function: Any) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    return {name: each for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}


TORCHS = _options(frontend.profile)
OURS = {name: each for name, each in _options(vestige_profile).items() if name not in (*TORCHS, "use_cuda")}


class AutogradProfile(autograd.profile):  # type: ignore[misc]
    """torch.autograd.profiler.profile, recorded by vestige."""

    _recorder: Any = None  # the Recorder of the torch.profiler.profile that made this object, or its own
    _window = _first_window = -1  # the window of this cycle, and the first window that function_events shows
    _started_ns = 0
    _counted: Any = None  # the events that _stats describes

    def _prepare_trace(self) -> None:
        self.entered = True
        began = perf_counter_ns()
        if self._recorder is None:
            self._recorder = make_recorder(self)
        self.config(create_trace_id=True)
        check_filters([self.activity_filters])
        self._stats.profiler_prepare_call_duration_us = _since(began)

    def _start_trace(self) -> None:
        self.entered = True
        began = perf_counter_ns()
        self._started_ns = time_ns()
        self._window = self._recorder.begin(self.trace_id)
        if self._first_window < 0 or not self.acc_events:
            self._first_window = self._window
        self._stats.profiler_enable_call_duration_us = _since(began)
        self.profiling_start_time_ns = perf_counter_ns()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if not self.enabled:
            return None
        began = perf_counter_ns()
        self._recorder.end()
        self._function_events = None
        self._needs_processing = True
        self.kineto_results = KinetoResults(self._recorder, self._window, self._started_ns)
        self.profiling_end_time_ns = began
        self._stats.profiler_disable_call_duration_us = _since(began)
        self._stats.profiling_window_duration_sec = (began - self.profiling_start_time_ns) / 1e9
        return False

    def _ensure_function_events(self) -> None:
        recorded = isinstance(self.kineto_results, KinetoResults)
        if self.experimental_config.trace_only or not recorded:
            super()._ensure_function_events()
        elif self._function_events is None:
            self._needs_processing = False
            events: Any = self._read().events
            self._function_events = events
            if self.post_processing_timeout_s is not None:
                len(events)  # the timeout counts from here

    def _read(self) -> Results:
        """Returns the results that function_events shows: of this cycle, or with acc_events of all cycles so far."""
        if self._first_window == self._window:
            return self.kineto_results.results
        return self.kineto_results.read(self._first_window)

    def key_averages(self, *groups: Any, **named: Any) -> Any:
        if self._function_events is None and self._sums_suffice() and not named:
            return self._read().key_averages(*groups)
        return super().key_averages(*groups, **named)

    def _sums_suffice(self) -> bool:
        """Returns whether averages can be read without making events."""
        recorded = isinstance(self.kineto_results, KinetoResults)
        return recorded and not self.experimental_config.trace_only and self.post_processing_timeout_s is None

    @property
    def function_events(self) -> Any:
        events = super().function_events
        if isinstance(self.kineto_results, KinetoResults) and events is not self._counted:
            self._counted = events
            stats, began = self._stats, perf_counter_ns()
            stats.number_of_events = len(events)  # reading the length makes the events and their tree
            stats.parse_kineto_call_duration_us = _since(began)
            stats.function_events_build_tree_call_duration_us = stats.parse_kineto_call_duration_us
        return events

    def toggle_collection_dynamic(self, enabled: bool, activities: Iterable[Any]) -> None:
        if self._recorder is not None:
            self._recorder.toggle_collection_dynamic(enabled, activities)


class _Step:
    """The span of a step, in place of torch's record_function."""

    def __init__(self, name: str, inside: bool) -> None:
        """`inside`: see adjust_profiler_step of _ExperimentalConfig."""
        self.name = name
        self._inside = inside
        self._is_entered = False
        self._span: record_function | None = None

    def __enter__(self) -> _Step:
        self._is_entered = True
        return self

    def __exit__(self, *error: object) -> None:
        self.end()
        self._is_entered = False

    def begin(self) -> None:
        if self._is_entered and self._span is None:
            self._span = record_function(self.name)
            self._span.__enter__()

    def end(self) -> None:
        if self._span is not None:
            if self._inside:
                self._span._end_inside()
            self._span.__exit__(None, None, None)
            self._span = None


class profile(frontend.profile):  # type: ignore[misc]
    """torch.profiler.profile, recorded by vestige. It takes torch's options, and those of vestige.profile that say how
    and where to record: output, engine, include, children and so on."""

    execution_trace_observer: Any
    _step_span: Any = None
    _between = 0  # calls of torch's methods in progress

    def __init__(self, *, use_cuda: bool | None = None, **options: Any) -> None:
        ours = {name: options.pop(name) for name in OURS if name in options}
        if use_cuda is None:
            super().__init__(**options)
        elif "use_cuda" not in TORCHS:  # torch 2.14 and later refuse it
            super().__init__(use_cuda=use_cuda, **options)
        else:  # torch's warning names the line that called it
            message = "`use_cuda` is deprecated, use `activities` argument instead"
            between = sys._getframe(1).f_globals.get("__name__") == f"{__package__}.dropin"
            warnings.warn(message, FutureWarning, stacklevel=2 + between)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                super().__init__(use_cuda=use_cuda, **options)
        self._recorder = make_recorder(self, **ours)

    __init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY), *TORCHS.values(), *OURS.values()]
    )

    @property
    def profiler(self) -> Any:
        """The autograd profile of the newest cycle."""
        return self._profiler

    @profiler.setter
    def profiler(self, made: Any) -> None:
        """torch's own code sets a new profile for each cycle."""
        if type(made) is autograd_profile:
            adopted = AutogradProfile.__new__(AutogradProfile)
            adopted.__dict__.update(made.__dict__)
            made = adopted
        if isinstance(made, AutogradProfile):
            made._recorder = self._recorder
        self._profiler = made

    @property
    def step_rec_fn(self) -> Any:
        """The span of the current step."""
        return self._step_span

    @step_rec_fn.setter
    def step_rec_fn(self, made: Any) -> None:
        """torch's own code sets a new span for each step."""
        if isinstance(made, autograd.record_function):
            made = _Step(made.name, ADJUSTS_STEPS and bool(self._recorder._experiment.get("adjust_profiler_step")))
        self._step_span = made

    def start_trace(self) -> None:
        """torch starts the observer before the profile. If the observer is ours, the recorder starts it: it writes into
        the same recording, and what it notes at its start is to be on the timeline."""
        observer: Any = self.execution_trace_observer
        if isinstance(observer, ExecutionTraceObserver):
            self.execution_trace_observer, self._recorder.execution_trace_observer = None, observer
        try:
            super().start_trace()
        finally:
            self.execution_trace_observer, self._recorder.execution_trace_observer = observer, None

    def start(self) -> None:
        self._between_steps(super().start)

    def step(self) -> None:
        self._between_steps(super().step)

    def stop(self) -> None:
        self._between_steps(super().stop)

    def __enter__(self) -> Any:
        return self._between_steps(super().__enter__)

    def _between_steps(self, call: Any, *arguments: Any) -> Any:
        """torch enters and leaves a step's span inside its own methods. We record the span between these method
        calls.
        """
        if self._between == 0 and isinstance(self._step_span, _Step):
            self._step_span.end()
        self._between += 1
        try:
            return call(*arguments)
        finally:
            self._between -= 1
            if self._between == 0 and isinstance(self._step_span, _Step):
                self._step_span.begin()

    def add_metadata(self, key: str, value: str) -> None:
        self.add_metadata_json(key, quote(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        self._trace_metadata[key] = value
        self._recorder.note(key, value)

    def export_chrome_trace(self, path: Any, use_python_export: bool = False, **how: Any) -> None:
        """Writes the last cycle as Chrome JSON, gzipped if the name ends in .gz. torch 2.15 has more options, for
        devices."""
        beside = any(getattr(self, name, False) for name in ("_use_cupti_monitor", "_use_cuspy"))
        if self.profiler is None or beside:
            super().export_chrome_trace(path, use_python_export, **how)
        else:
            self.profiler.export_chrome_trace(os.fspath(path), self._trace_metadata, use_python_export, **how)

    def export_memory_timeline(self, path: Any, device: str | None = None) -> None:
        """Writes the memory in use over time, like torch, by the exporter of vestige.profile."""
        torchs: Any = torchs_profile.export_memory_timeline
        if hasattr(torchs, "__deprecated__"):
            warnings.warn(torchs.__deprecated__, FutureWarning, stacklevel=2)
        needed = (self.record_shapes, self.profile_memory, self.with_stack)
        if not all(needed) or self.profiler is None or self.profiler.kineto_results is None:
            getattr(torchs, "__wrapped__", torchs)(self, path, device)  # raises what torch raises
        results = self.profiler.kineto_results.results
        selection = {name: value for name, value in results.selection.items() if name != "framework"}
        write_timeline(os.fspath(path), results.trace, selection, device)

    def finish(self) -> None:
        """Stops the recording if it runs, and completes the file given as `output`. A with block does so at its end."""
        self._recorder.finish()

    @property
    def snapshots(self) -> list[tuple[str, str, str | None]]:
        """Returns the snapshots that a signal or trigger has asked for so far: path, reason, and the error or None."""
        return self._recorder.snapshots

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._between_steps(super().__exit__, kind, error, traceback)
        if self._recorder._output is not None:
            self._recorder.finish()


class Observer(ExecutionTraceObserver, frontend.ExecutionTraceObserver):  # type: ignore[misc]
    """Our observer, for modules that imported torch's ExecutionTraceObserver before install() and may check its
    type.
    """


autograd_profile, torchs_profile = AutogradProfile.__base__, profile.__base__
torchs_observer: Any = frontend.ExecutionTraceObserver
_torchs_profiler_type = torch._C._autograd._profiler_type


def profiler_type() -> Any:
    """Returns what torch._C._autograd._profiler_type() would: which profiler is active in this thread."""
    return torch._C._profiler.ActiveProfilerType.KINETO if is_recording() else _torchs_profiler_type()


def make_recorder(prof: Any, **ours: Any) -> Recorder:
    """Makes the Recorder for one of torch's profiles."""
    # torch accepts values of any type
    flags = ("record_shapes", "profile_memory", "with_stack", "with_flops", "with_modules")
    devices = [each for each in getattr(prof, "activities", ()) if each in frontend.supported_activities()]
    return Recorder(
        activities=devices or None,
        post_processing_timeout_s=prof.post_processing_timeout_s,
        experimental_config=prof.experimental_config,
        **{**{name: bool(getattr(prof, name)) for name in flags}, **ours},
    )


def _since(began_ns: int) -> int:
    """Returns the time since then in µs, at least 1."""
    return max(1, (perf_counter_ns() - began_ns) // US)
