"""The process in which an agent's query runs: the system ends it when its time or its memory is used up.

asking.py starts it, sends the question as JSON to its stdin, and reads a line of JSON for each line of the answer.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys

from vestige.base.quantities import size
from vestige.cli import failure_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CELL = 200  # characters of a value that are shown
THREADS = 8  # limit for threads, because the stack of each counts as memory
ENDING = (signal.SIGALRM, signal.SIGXCPU)  # sent when the time is over


def main() -> None:
    asked = json.load(sys.stdin)
    _limit(asked["seconds"], asked["memory"])
    try:
        _answer(asked)
    except MemoryError:
        _write({"failure": f"the query needs more than {size(asked['memory'])} of memory"})
    except Exception as error:
        _write({"failure": failure_line(error)[0]})


def _limit(seconds: float, memory: int) -> None:
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    cpu = int(seconds + 1) * (os.cpu_count() or 1)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))  # not RLIMIT_AS, because it would count mapped traces


def _answer(asked: dict[str, Any]) -> None:
    from vestige.query.duck import DuckAnswer
    from vestige.query.tables import find_tables

    tables = find_tables(asked["paths"], children=True)
    own = f"{asked['memory'] * 3 // 4} B"  # memory for DuckDB; Python and the readers need the rest
    with DuckAnswer(asked["query"], asked["values"], tables, memory=own, progress=None, confined=THREADS) as answer:
        has_rows = False
        for row in answer.rows:
            if not has_rows:
                _write(" | ".join(answer.columns))
                has_rows = True
            _write(" | ".join(map(_cell, row)))
        if not has_rows:
            _write(f"no rows; the columns are {', '.join(answer.columns)}")


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= CELL else text[: CELL - 1] + "…"


def _write(line: str | dict[str, str]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
