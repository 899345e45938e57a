"""The recording beneath torch's own profiles: torch's classes decide when to record, and a Recorder records. One
Recorder serves all cycles of a torch.profiler.profile, each as a window of one file. As in torch, the newest start
wins: it ends a recording that the same thread has in progress.
"""

from __future__ import annotations

from _thread import get_ident
from _weakref import ref

from vestige.profiler import profile
from vestige.render import quote

from . import spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vestige import _core

    from .results import Results

_newest: tuple[ref[Recorder], int] | None = None  # the recorder that was started last, and the thread that started it


def is_recording() -> bool:
    """Returns whether this thread started a recorder that is recording."""
    recorder = None if _newest is None or _newest[1] != get_ident() else _newest[0]()
    return recorder is not None and recorder._tracing


class Recorder(profile):
    """A profile without steps and schedules, because torch's code handles those."""

    _is_torchs = True
    _links = True  # draw arrows from operators to the operators that compute their gradients
    notes: list[Any]  # what modules and optimizers hold during the newest window

    def _observer(self, given: Any) -> None:
        """Returns no observer, because torch's classes start and stop observers."""

    def begin(self, trace_id: str) -> int:
        """Starts a window, and returns its number."""
        global _newest
        if _newest is not None:
            other, thread = _newest[0](), _newest[1]
            if other is not None and thread == get_ident():
                other.end()
        self._next_trace_id = trace_id
        self.notes = []
        self._torch.update(tensors=self.record_shapes, notes=self.notes if self.with_stack else None)
        self.start()
        _newest = ref(self), get_ident()
        return self._first_window

    def end(self) -> None:
        """Ends the window, if it is still open."""
        if self._running:
            self._links = spans.links_gradients()
            if not self._links:
                self._session.set_metadata("vestige.no_gradient_arrows", "1")
            self.stop()

    def _torch_facts(self) -> dict[str, str]:
        facts = {**super()._torch_facts(), "vestige.profiler": '"PyTorch Profiler"'}
        if self._torch["overload_names"]:
            facts["vestige.overloads"] = "1"
        return facts

    def _prepare_trace(self) -> None:
        self._trace_id = self._next_trace_id
        self._cycles += 1

    def note(self, key: str, json: str) -> None:
        """Puts metadata into the trace. Invalid JSON becomes a string."""
        from vestige.recording.metadata import check_json

        if self._finished or not key or "\0" in key:
            return
        try:
            if json != "1":  # most values are "1"; the check would run Python code, which would be recorded
                check_json(json)
        except ValueError:
            json = quote(json)
        self._set_metadata(key, json)

    def _as_torch(self) -> list[str]:
        asked = {
            "shapes": self.record_shapes,
            "metadata": self._experiment.get("expose_kineto_event_metadata"),
            "gradients": True,
            "unlinked": not self._links,
        }
        return [name for name, wanted in asked.items() if wanted]

    def results(self, session: _core.Session, first_window: int, started_ns: int, stopped_ns: int | None) -> Results:
        """Returns the results from one window on, up to a time."""
        trace = session.trace()
        if stopped_ns is not None and stopped_ns != self._stopped_ns:
            trace.set_range(None, stopped_ns)
        selection: dict[str, Any] = {"since": first_window}

        def export(path: Any) -> None:
            trace.export(path, format="chrome", **selection)

        how = {"base_ns": started_ns, "as_torch": self._as_torch(), "log": "torch.autograd.profiler"}
        return self._results_of(trace, selection, export=export, **how)
