"""What waits, and what for: calls that only wait, by the names that traces have for them.

A call belongs here if the thread has nothing to do until it returns: for a lock or another thread, for input or output,
for time to pass, or for a child process. The table of them is in the core (src/base/wait_reasons.c), which needs it
too. Reports use this inside programs that are ending, so it imports nothing else.
"""

from __future__ import annotations

from vestige._core import waits_for

__all__ = ["CHILD", "IO", "KINDS", "LOCK", "SLEEP", "waits_for"]

LOCK, IO, SLEEP, CHILD = "lock", "io", "sleep", "child"  # as files have it
KINDS = {LOCK: "locks", IO: "input and output", SLEEP: "sleep", CHILD: "child processes"}  # as people read it
