"""How a profile behaves in a forked child, unless children=True records the child. A profile that was recording is
empty there: the recording goes on in the parent alone, so the child's copy must neither show the parent's records nor
touch its file. Reading gives nothing, stop() and step() do nothing. A profile that was stopped can be read, without
what the parent adds later. start() begins a recording of the child's own with either. The extension calls this module
when a profile is first used in a child, or immediately if torch is loaded.
"""

from __future__ import annotations

import os
from _weakref import ref

from vestige import _core
from vestige.base.child_files import child_path
from vestige.torch import adapter, hosting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vestige.profiler import profile

started: set[ref[profile]] = set()  # every profile that was started and still exists


def notice() -> None:
    """Called before a profile is used: finds out whether this process is a new child."""
    _core.notice_fork()


def _forked(kept: _core.Session | None) -> None:
    """Called in a child, where nothing may be imported. The extension has the child recorded with `kept`."""
    hosting.after_fork_of_host()
    if kept is None:
        adapter.after_fork()
    for reference in list(started):
        prof = reference()
        if prof is None or prof._session is kept:
            continue
        prof._is_parents = True
        if prof._tracing:
            _empty(prof)


def _empty(prof: profile) -> None:
    prof._session = prof._new_session(None)
    prof._tracing = prof._finished = False
    prof._stopped_ns = prof._results = prof._trace_id = prof.step_rec_fn = None
    prof._windows = prof._first_window = 0


def stay_empty(prof: profile) -> None:
    """start() came too late to record anything, so the profile behaves and looks as if its parent had started it."""
    if not prof._started:
        _empty(prof)
    prof._is_parents = prof._running = prof._started = True


def start_over(prof: profile) -> None:
    """Makes an inherited profile one that was not started yet, with its own file next to the parent's."""
    if prof._output is not None:
        own = child_path(os.fsdecode(prof._output))
        prof._output = own if isinstance(prof._output, str) else os.fsencode(own)
    prof._session = prof._new_session(prof._output)
    prof._is_parents = prof._running = prof._started = prof._finished = False
    prof._stopped_ns = prof._results = prof._trace_id = None
    prof._cycles = prof._windows = prof.step_num = 0
    if prof.record_steps:
        from vestige.torch.steps import ask

        prof._action = ask(prof.schedule, 0)


_core.call_after_fork(_forked)
