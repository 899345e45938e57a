"""SQL and ready questions of agents, answered by DuckDB. Nothing but SELECT is run, without access to files, for a
limited time and in limited memory."""

from __future__ import annotations

import threading

from vestige.base.failure import Failure

from .bounded import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from vestige.query.questions import Value

    from .folder import Folder

MEMORY = "1GB"
SECONDS = 60.0
CELL = 200  # characters of a value


def ask(folder: Folder, question: str, traces: Sequence[str], parameters: dict[str, str], max_tokens: int) -> str:
    """A ready question; without a name, which there are."""
    from vestige.query.questions import load

    questions = load()
    if not question:
        answer = Answer(max_tokens)
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
        raise Failure(f"{question} compares {chosen.runs} traces: name as many")
    return _run(folder, chosen.text, chosen.values(parameters), traces, max_tokens)


def sql(folder: Folder, query: str, traces: Sequence[str], max_tokens: int) -> str:
    """A query; without one, the tables and columns."""
    if query.strip():
        return _run(folder, query, {}, traces, max_tokens)
    from vestige.query.schema import lines

    answer = Answer(max_tokens)
    for line in lines():
        answer.add(line)
    return answer.text()


def _run(folder: Folder, query: str, values: dict[str, Value], traces: Sequence[str], max_tokens: int) -> str:
    from vestige.query.duck import DuckAnswer
    from vestige.query.tables import find_tables

    paths = [folder.trace(trace) for trace in traces or ("",)]
    answer = Answer(max_tokens)
    tables = find_tables(paths, children=True)
    with DuckAnswer(query, values, tables, memory=MEMORY, progress=None, confined=True) as rows:
        timer = threading.Timer(SECONDS, rows.interrupt)
        timer.daemon = True
        timer.start()
        try:
            for row in rows.rows:
                if not answer.has_lines:
                    answer.add(" | ".join(rows.columns))
                answer.add(" | ".join(map(_cell, row)))
                if answer.is_full:
                    return answer.text("ask for fewer rows, or with a larger max_tokens")
        except Failure as failure:
            if not timer.is_alive():
                raise Failure(f"the query took longer than {SECONDS:.0f} s") from None
            raise failure
        finally:
            timer.cancel()
    return answer.text() or f"no rows; the columns are {', '.join(rows.columns)}"


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= CELL else text[: CELL - 1] + "…"
