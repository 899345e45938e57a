"""Calls that only wait, and their reasons, by the names that traces have for them. A call only waits if its thread has
nothing to do until it returns: it waits for a lock or another thread, for input or output, for time to pass, or for a
child process. The table is in the core (src/base/wait_reasons.c), which uses it too. Reports use this file inside
programs that are ending, so it imports nothing else.
"""

from __future__ import annotations

from vestige._core import waits_for

__all__ = ["CHILD", "IO", "KINDS", "LOCK", "SLEEP", "waits_for"]

LOCK, IO, SLEEP, CHILD = "lock", "io", "sleep", "child"  # names of the reasons in files
# Names of the reasons for people.
KINDS = {LOCK: "locks", IO: "input and output", SLEEP: "sleep", CHILD: "child processes"}
