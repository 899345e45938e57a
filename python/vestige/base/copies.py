"""Recordings that are copied to slow disks: local files whose targets are not complete, and their completion."""

from __future__ import annotations

import os
import time

from vestige import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 10.0  # patience with a copier that has little left to do
PAUSE_S = 0.02


class Copy:
    """A local file, as it was found."""

    def __init__(self, local: str, facts: tuple[str, int, bool, bool, bool]) -> None:
        self.local = local
        self.target, self.errno, self.is_busy, self.is_finished, self.is_complete = facts

    def belongs_to(self, path: str) -> bool:
        """Whether the target is this file, in this folder, or the file of a child process of this file's process."""
        folder, name = os.path.split(self.target)
        own_folder, own_name = os.path.split(path)
        if self.target == path or folder == path:
            return True
        return folder == own_folder and name.startswith(own_name.removesuffix(".vst") + ".")


def find_copies() -> list[Copy]:
    """Returns the local files of this user whose targets lack something."""
    found = []
    for local in sorted({*_core.local_files()}):
        facts = _core.local_copy(local)
        if facts is not None:
            found.append(Copy(local, facts))
    return [copy for copy in found if not copy.is_complete or not copy.is_busy]


def complete_copies(path: str, tell: Callable[[str], None]) -> None:
    """Completes the targets that a reader of this path needs. Reports those that cannot be completed now."""
    path = os.path.abspath(path)
    for copy in find_copies():
        if copy.belongs_to(path):
            _complete(copy, tell)


def _complete(copy: Copy, tell: Callable[[str], None]) -> None:
    if copy.is_busy and not _wait(copy):
        state = "a process is still copying it" if copy.is_finished else "the recording goes on"
        tell(f"{copy.target}: {state}{_reason(copy.errno)}; records that it lacks are in {copy.local}")
        return
    try:
        _core.complete_copy(copy.local)
    except FileNotFoundError:  # the copier has removed it
        if os.path.lexists(copy.local):
            tell(f"{copy.target}: the folder is gone; the trace is in {copy.local}")
    except BlockingIOError:  # another reader completes it
        pass
    except OSError as error:
        tell(f"{copy.target}: could not be completed ({error.strerror}); records that it lacks are in {copy.local}")


def _wait(copy: Copy) -> bool:
    """Waits for a copier whose recording has ended. Returns whether it is done."""
    until = time.monotonic() + PATIENCE_S * copy.is_finished
    while True:
        facts = _core.local_copy(copy.local)
        if facts is None or not facts[2] or facts[4]:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(PAUSE_S)


def _reason(errno: int) -> str:
    return f" ({os.strerror(errno)})" if errno else ""


def resume_copies(path: str, tell: Callable[[str], None]) -> None:
    """Starts a process for each copy into this file's folder whose processes were all killed."""
    folder = os.path.dirname(os.path.abspath(path))
    for copy in find_copies():
        if not copy.is_busy and os.path.dirname(copy.target) == folder:
            try:
                _core.resume_copy(copy.local)
            except OSError:  # somebody else was faster, or no process can be started
                continue
            tell(f"{copy.target} was not complete; a process copies the rest from {copy.local}")
