"""Answers SQL and ready questions of agents by DuckDB, in a process of its own: confined.py. Only SELECT runs, without
access to files, for a limited time and in limited memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from vestige.base.failure import Failure
from vestige.base.quantities import size

from .bounded import Answer
from .confined import ENDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from vestige.query.questions import Value

    from .folder import Folder

MEMORY = 1 << 30  # memory limit of the process in which a query runs, in bytes
SECONDS = 60.0


def ask(folder: Folder, question: str, traces: Sequence[str], parameters: dict[str, str], max_tokens: int) -> str:
    """Answers a ready question; without a name, lists the questions."""
    from vestige.query.questions import load

    questions = load()
    if not question:
        answer = _begin(folder, traces, max_tokens)
        for known in questions.values():
            answer.add(f"{known.name}: {known.about}")
            for parameter in known.parameters.values():
                default = "" if parameter.default is None else f" = {parameter.default}"
                answer.add(f"    {parameter.name}{default}: {parameter.about}")
        return answer.text()
    if question not in questions:
        raise Failure(f"no ready question is called {question}; there are {', '.join(questions)}")
    chosen = questions[question]
    if chosen.runs > 1 and len(traces) != chosen.runs:
        raise Failure(f"{question} compares {chosen.runs} traces: name as many in `trace`")
    return _run(folder, chosen.text, chosen.values(parameters), traces or ("",), max_tokens)


def sql(folder: Folder, query: str, traces: Sequence[str], max_tokens: int) -> str:
    """Answers a query; without a query, lists the tables and columns."""
    if query.strip():
        return _run(folder, query, {}, traces or ("",), max_tokens)
    from vestige.query.schema import lines

    answer = _begin(folder, traces, max_tokens)
    for line in lines():
        answer.add(line)
    return answer.text()


def _begin(folder: Folder, traces: Sequence[str], max_tokens: int) -> Answer:
    """Begins an answer, whose first line names the traces."""
    answer = Answer(max_tokens)
    if traces:
        answer.add(", ".join(folder.id_of(folder.trace(trace)) for trace in traces))
    return answer


def _run(folder: Folder, query: str, values: dict[str, Value], traces: Sequence[str], max_tokens: int) -> str:
    paths = [folder.trace(trace) for trace in traces]
    answer = _begin(folder, paths, max_tokens)
    asked = {"query": query, "values": values, "paths": paths, "memory": MEMORY, "seconds": SECONDS}
    for line in _lines(asked):
        answer.add(line)
        if answer.is_full:
            break
    return answer.text("ask for fewer rows, or with a larger max_tokens")


def _lines(asked: dict[str, Any]) -> Iterator[str]:
    """Yields the lines of the answer, as the process writes them."""
    process = subprocess.Popen(
        [sys.executable, "-m", "vestige.cli.mcp.confined"],
        env={**os.environ, "PYTHONSAFEPATH": "1"},  # otherwise modules in the current folder could replace ours
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        try:
            json.dump(asked, process.stdin)  # type: ignore[arg-type]
            process.stdin.close()  # type: ignore[union-attr]
            for line in process.stdout:  # type: ignore[union-attr]
                said = json.loads(line)
                if isinstance(said, dict):
                    raise Failure(said["failure"])
                yield said
            code = process.wait()
        finally:
            process.kill()
    if -code in ENDING:
        raise Failure(f"the query took longer than {asked['seconds']:.0f} s")
    if code:
        raise Failure(f"the query was ended (code {code}): it may take {size(asked['memory'])} of memory")
