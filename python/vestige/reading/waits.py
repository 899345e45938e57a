"""The reasons why calls wait, as files and people read them. A call waits if its thread has nothing to do until the
call returns. Functions say why they wait (Function.waits_for): the table of them is in the core
(src/base/wait_reasons.c), and a project adds to the table. Reports use this inside programs that are ending, so it
imports nothing.
"""

from __future__ import annotations

LOCK, IO, SLEEP, CHILD, SPIN = "lock", "io", "sleep", "child", "spin"  # as files have it
KINDS = {  # as people read it
    LOCK: "locks",
    IO: "input and output",
    SLEEP: "sleep",
    CHILD: "child processes",
    SPIN: "spinning",
}
WAITED_NS = 1_000_000  # as in base/wait_reasons.h: a Python function whose own time is shorter did not wait there
