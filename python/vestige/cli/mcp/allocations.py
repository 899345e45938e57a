"""The report of a recording of allocations for agents: `vestige memory-report`, cut at the end."""

from __future__ import annotations

import io

from vestige._core import TraceError
from vestige.base.failure import Failure, explain
from vestige.cli.memory.report import OVERVIEW
from vestige.cli.memory.tables import show
from vestige.reading.inputs import find_traces
from vestige.reading.memory import read_memory

from .bounded import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .folder import Folder

STACKS = 5  # rows of each list, of stacks and of lines


def allocations(folder: Folder, trace: str, max_tokens: int) -> str:
    path = folder.trace(trace)
    sources = find_traces([path], children=True).sources
    try:
        sources = [source for source in sources if source.open().has_memory()]
        rows = STACKS if len(sources) == 1 else -1  # all, because several processes are merged below
        read = [(source, read_memory(source.open(), rows=rows)) for source in sources]
    except (OSError, TraceError) as error:
        raise Failure(explain(folder.id_of(path), error)) from None
    shown = io.StringIO()
    show(read, OVERVIEW, STACKS, shown)
    answer = Answer(max_tokens)
    answer.add(f"{folder.id_of(path)}: {shown.getvalue()}")
    return answer.text()
