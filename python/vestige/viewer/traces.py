"""The shown traces and their indexes. Indexes are built in the background, one after the other. After that, any number
of the server's threads use a view in parallel.
"""

from __future__ import annotations

import os
from threading import Condition, Lock, Thread

from vestige._core import Lanes, Trace, View
from vestige.reading.awaits import WRAPPERS
from vestige.reading.kinds import INSTANT, PYTHON
from vestige.reading.labels import IMPORTS_CODE, distinct_name, is_module

from .answers import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from vestige._core import Function
    from vestige.reading.inputs import Source

    Place = tuple[int, str, str | None, int]

IMPORT_IDS = 8  # see src/view/view.h
FAILED = 5  # VST_IMPORT_FAILED
UNNAMED_IMPORTS = range(2, 7)
IMPORT_SYSTEM = "<frozen importlib."
INDEXED = ("counters", "losses")  # kinds of lanes that an index has, also one that grows


class _NoImports:
    """Stand-in for a trace without import records."""

    def import_name(self, imported: int, module: int = 0) -> str:
        return ""


_NO_IMPORTS = _NoImports()


def to_place(trace: Trace | _NoImports, number: int, function: Function) -> Place:
    file = function.file or None if function.kind in (PYTHON, INSTANT) else None
    return function.kind, distinct_name(trace, number, function), file, function.line


def find_places(trace: Trace) -> list[Place | None]:
    """Returns a list of places; the index is the id of a function. The ids after those in the trace stand for imports,
    see src/view/view.h.
    """
    functions = trace.functions()
    places: list[Place | None] = [entry and to_place(trace, number, entry) for number, entry in enumerate(functions)]
    if not any(entry and entry.file.startswith(IMPORT_SYSTEM) for entry in functions):
        return places
    last = len(functions) - 1
    places += [None] * (IMPORT_IDS + 2 * last)
    for what in UNNAMED_IMPORTS:
        places[last + what] = (PYTHON, trace.import_name(what), None, 0)
    for number, entry in enumerate(functions):
        if entry and is_module(entry):
            code = (entry.file if entry.kind == PYTHON else None, entry.line)
            places[last + IMPORT_IDS + number] = (PYTHON, trace.import_name(IMPORTS_CODE, number), *code)
            places[last + IMPORT_IDS + last + number] = (PYTHON, trace.import_name(FAILED, number), *code)
    return places


class Stopped(Exception):
    """Raised in the building of an index when the server ends."""


class Shown:
    """A trace, and its view once the index exists."""

    def __init__(self, number: int, source: Source, offset_ns: int = 0) -> None:
        self.number = number
        self.source = source
        trace = source.open()
        self.functions = trace.functions()
        self.places = find_places(trace)
        self.noted = self._find_noted()
        self._offset_ns = offset_ns  # how far the trace is moved from its own clock
        self.share = 0.0
        self.error: str | None = None
        self.facts: dict[str, Any] = {}
        self.threads: list[dict[str, Any]] = []
        self.live = False  # the trace was being recorded when it was opened
        self.follows = False  # the trace is still being recorded
        self._view: View | None = None
        self._lanes: dict[str, Lanes] = {}
        self._reading = Lock()  # guards _lanes

    def _find_noted(self) -> dict[str, tuple[int, int]]:
        """Returns the time and size of each file that the recording noted."""
        noted = {}
        for number, state in self.source.metadata.get("vestige.sources", {}).items():
            place = self.places[number] if 0 <= number < len(self.places) else None
            if place is not None and place[2] is not None:
                noted[place[2]] = state
        return noted

    @property
    def ready(self) -> bool:
        return self._view is not None

    @property
    def start_ns(self) -> int:
        return int(self.source.facts["start_ns"]) + self._offset_ns

    @property
    def end_ns(self) -> int:
        return max(int(self.source.facts["end_ns"]) + self._offset_ns, int(self.facts.get("end_ns", 0)))

    def open(self) -> Trace:
        """Opens the trace again, for a separate reading."""
        trace = self.source.open()
        trace.set_offset(self._offset_ns)
        return trace

    @property
    def has_states(self) -> bool:
        """Whether the trace knows when its threads ran, or waited for the GIL or for locks of objects."""
        return any(self.source.facts.get(kind) for kind in ("switches", "gil_waits", "object_waits"))

    @property
    def has_marks(self) -> bool:
        """Whether the trace may have marks, whose names are definitions of the kind INSTANT."""
        return any(entry is not None and entry.kind == INSTANT for entry in self.functions)

    def has_lanes(self, kind: str) -> bool:
        """Whether the trace has lanes of a kind. Only the index knows whether it has tasks, so the index must exist."""
        if kind in INDEXED:
            return self.view is not None
        if kind == "tasks":
            return self.view is not None and bool(self.facts.get("has_tasks"))
        return {
            "devices": self.has_devices,
            "left_out": "vestige.budget" in self.source.metadata,
            "marks": self.has_marks,
            "states": self.has_states,
        }[kind]

    def lanes(self, kind: str, progress: Callable[[float], None] | None = None) -> Lanes:
        """The lanes of a kind, read on first use."""
        with self._reading:
            if kind not in self._lanes:
                source = self.view if kind in INDEXED else self.open()
                self._lanes[kind] = Lanes(source, kind, wrappers=self.wrappers, progress=progress)
        return self._lanes[kind]

    @property
    def wrappers(self) -> list[int]:
        """Functions whose tasks are distinguished by the tasks' names."""
        return [number for number, entry in enumerate(self.functions) if entry and entry.name in WRAPPERS]

    @property
    def has_devices(self) -> bool:
        return bool(self.source.facts.get("devices"))

    def take(self, view: View) -> None:
        """Sets the view, once its index is built."""
        view.set_offset(self._offset_ns)
        self.facts = view.info()
        self.threads = view.threads()
        self._view = view
        self.share = 1.0

    def take_live(self, view: View) -> None:
        """Sets the view of a trace that is still being recorded. Its imports are not folded, because no ids stand for
        them.
        """
        self.live = self.follows = True
        del self.places[len(self.functions) :]
        self.take(view)

    def refresh(self) -> None:
        """Reads new records. Called once more after the process has ended its recording."""
        assert self._view is not None
        ended = self.source.ended != "recording"
        self._view.refresh()
        with self._reading:
            self._lanes.clear()
        for number, entry in enumerate(self._view.functions(len(self.functions)), len(self.functions)):
            self.functions.append(entry)
            self.places.append(entry and to_place(_NO_IMPORTS, number, entry))
        self.facts, self.threads = self._view.info(), self._view.threads()
        for key in ("clean", "damaged_at", "lost", "dropped", "records"):
            self.source.facts[key] = self.facts[key]
        self.follows = not ended and self.source.ended == "recording"

    def forget(self) -> None:
        """Drops the view, which is then made anew."""
        self._view, self.error, self.share = None, None, 0.0

    @property
    def view(self) -> View:
        if self.error is not None:
            raise Problem(500, self.error)
        if self._view is None:
            name = os.path.basename(self.source.path)
            raise Problem(503, f"{name}: the index is being built", headers=[("Retry-After", "1")])
        return self._view


class Traces:
    """The shown traces, on one timeline that begins with the earliest."""

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        keep: bool = True,
        offsets_ns: Sequence[int] | None = None,
        fold_imports: bool = False,
        follow: bool = False,
    ) -> None:
        offsets_ns = offsets_ns or [0] * len(sources)
        self.all = [Shown(number, source, offset) for number, (source, offset) in enumerate(zip(sources, offsets_ns))]
        self.start_ns: int = min(shown.start_ns for shown in self.all)
        self.first_shown_ns: tuple[int, int] | None = None  # the range that the page begins with; None: all
        self._keep = keep
        self.follow = follow
        self.fold_imports = fold_imports and not follow
        self._changed = Condition()
        self._switching = Lock()
        self.stopping = False
        self._thread: Thread | None = None

    def __iter__(self) -> Iterator[Shown]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, number: int) -> Shown:
        if not 0 <= number < len(self.all):
            raise Problem(404, f"there is no trace {number}")
        return self.all[number]

    @property
    def end_ns(self) -> int:
        """The end of the latest trace. A trace that is still being recorded ends where its index ends."""
        return max(shown.end_ns for shown in self.all)

    @property
    def finished(self) -> bool:
        """Whether each trace has its index, or cannot have one."""
        return all(shown.ready or shown.error is not None for shown in self.all)

    @property
    def share(self) -> float:
        """The finished share of the work, by the size of the files."""
        sizes: list[int] = [max(shown.source.facts["bytes"], 1) for shown in self.all]
        done = [1.0 if shown.error is not None else shown.share for shown in self.all]
        return sum(size * share for size, share in zip(sizes, done)) / sum(sizes)

    @property
    def working_on(self) -> Shown | None:
        return next((shown for shown in self.all if not shown.ready and shown.error is None), None)

    def wait(self, seconds: float) -> None:
        """Waits until an index has grown, but at most this long."""
        with self._changed:
            if not self.finished and not self.stopping:
                self._changed.wait(seconds)

    # ---- building

    def build(self) -> None:
        """Builds all indexes in this thread."""
        for shown in self.all:
            if self.stopping:
                return
            try:
                self._take(shown)
            except Stopped:
                return
            except Exception as error:  # otherwise, those who wait for this thread would wait for ever
                from vestige.base.failure import explain

                shown.error = explain(shown.source.path, error)
            self._notify()

    def _take(self, shown: Shown) -> None:
        if self.follow and shown.source.ended == "recording":
            shown.take_live(View(shown.source.path, follow=True))
        else:
            shown.take(self._open(shown))

    def add(self, source: Source) -> None:
        """Adds the trace of a process that began meanwhile."""
        shown = Shown(len(self.all), source)
        self._take(shown)
        self.all.append(shown)

    def build_in_background(self) -> None:
        self._thread = Thread(target=self.build, name="vestige-index", daemon=True)
        self._thread.start()

    def show_imports(self, *, folded: bool) -> None:
        """Builds the indexes anew if the folding of imports changes."""
        with self._switching:
            if folded == self.fold_imports or self.stopping or self.follow:
                return
            self.stop()
            self.stopping = False
            self.fold_imports = folded
            for shown in self.all:
                shown.forget()
            self.build_in_background()

    def stop(self) -> None:
        """Stops the building and waits for its end, so that no half-written file remains."""
        self.stopping = True
        self._notify()
        if self._thread is not None:
            self._thread.join()

    def _open(self, shown: Shown) -> View:
        def progress(share: float) -> None:
            if self.stopping:
                raise Stopped
            shown.share = min(share, 0.999)
            self._notify()

        return View(
            shown.source.path,
            keep=self._keep,
            progress=progress,
            fold_imports=self.fold_imports,
        )

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()
