"""The tools of `vestige mcp`: the arguments that each takes, as JSON schemas, and its answers. Nothing here knows the
protocol."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, get_type_hints

from vestige.base.failure import Failure
from vestige.query.questions import load
from vestige.recording.option_table import BY_NAME

from . import allocations, asking, calls, causes, comparing, recording, sources
from .bounded import LEAST, MOST, Answer
from .folder import Folder, describe

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LONGEST = 400  # characters that are shown of the error about a wrong argument


def _text(about: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": about, **more}


def _list(about: str, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": about, **more}


def _flag(about: str) -> dict[str, Any]:
    return {"type": "boolean", "description": about}


def _whole(about: str, least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "description": about}


PATH = "path of a trace below the folder, as list_traces shows it; empty: the newest"
TRACE = _text(PATH)
TRACES = {"anyOf": [_text(PATH), _list("paths of several traces, which are read together")]}
TWO_TRACES = _list("paths of two traces: before, after", minItems=2, maxItems=2)
MAX_TOKENS = _whole("length of the answer; its last line says what is missing", LEAST, MOST)
FUNCTION = _text("only what is below all calls of this function: f, Class.f, file.py:3: f, or import module")
NODE = _text("id of an earlier answer to the same arguments: only the tree below that place")
LIBRARIES = _flag("whether frames of libraries are shown, too")
SORT = _text("self: time without what they called; total; or the number of calls", enum=list(calls.SORTS))
CONTAINS = _text("a part of what is shown of a function: file.py:3: Class.f")
QUESTION = _text("name of a ready question; empty lists them with their parameters", enum=["", *load()])
PARAMETERS = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "description": "values of the question's parameters, by name",
}
QUERY = _text("a SELECT in DuckDB's SQL; empty lists the tables and their columns")
PLACE = _text("file.py:12, or a function of the trace: f, Class.f")
CONTEXT = _whole("lines that are shown before and after a line, or after the first line of a function", 0, 1000)
COMMAND = _list('["script.py", "argument"], ["-m", "module", "argument"] or ["-c", "code"]', minItems=1)
NAME = _text("name of the new trace; empty: trace-1.vst and so on")
RECORD_ARGS = _list(BY_NAME["record_args"].help)
SCHED = _flag(BY_NAME["sched"].help)
MEMORY = _flag("record allocations instead of calls, and answer what held memory and was never freed")
TIMEOUT = {
    "type": "number",
    "minimum": recording.SECONDS_MIN,
    "maximum": recording.SECONDS_MAX,
    "description": "seconds after which the program is interrupted",
}


class Tools:
    """The questions that an agent can ask. The docstring of a tool is its description for the agent."""

    def __init__(self, folder: Folder, *, allow_record: bool = False) -> None:
        self._folder = folder
        self.changing: list[Callable[..., str]] = [self.record_command] if allow_record else []
        tools: list[Callable[..., str]] = [self.list_traces, self.findings, self.tree, self.functions]
        tools += [self.ask, self.sql, self.compare, self.source, *self.changing]
        self.all = {tool.__name__: tool for tool in tools}

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Returns the answer of a tool. Refuses arguments that the tool does not declare."""
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match

        tool = self.all.get(name)
        if tool is None:
            raise Failure(f"there is no tool {name}; there are {', '.join(self.all)}")
        declared = schema(tool)
        wrong = best_match(Draft202012Validator(declared).iter_errors(arguments))
        if wrong is not None:
            taken = f"{name} takes {', '.join(declared['properties'])}: "
            where = "".join(f"{part}: " for part in wrong.absolute_path) or taken
            raise Failure(f"{where}{wrong.message}"[:LONGEST])
        return tool(**arguments)

    def list_traces(self, max_tokens: Annotated[int, MAX_TOKENS] = 1000) -> str:
        """Lists the traces, newest first: path, start, duration, records, size, how it ended, command."""
        answer = Answer(max_tokens)
        for source in self._folder.traces():
            answer.add(describe(source, self._folder.id_of(source.path)))
        return answer.text() or "there is no trace in the folder yet"

    def findings(self, trace: Annotated[str, TRACE] = "", max_tokens: Annotated[int, MAX_TOKENS] = 1500) -> str:
        """Names the causes of lost time: at most five, each with its place, its numbers and the questions to
        ask next.
        """
        return causes.findings(self._folder, trace, max_tokens)

    def tree(
        self,
        trace: Annotated[str, TRACE] = "",
        function: Annotated[str, FUNCTION] = "",
        node: Annotated[str, NODE] = "",
        libraries: Annotated[bool, LIBRARIES] = False,
        max_tokens: Annotated[int, MAX_TOKENS] = 2000,
    ) -> str:
        """Shows the tree of calls with times, calls and an id for each node."""
        return calls.tree(self._folder, trace, function, node, libraries, max_tokens)

    def functions(
        self,
        trace: Annotated[str, TRACE] = "",
        sort: Annotated[str, SORT] = "self",
        contains: Annotated[str, CONTAINS] = "",
        max_tokens: Annotated[int, MAX_TOKENS] = 1500,
    ) -> str:
        """Lists functions with their times and calls."""
        return calls.functions(self._folder, trace, sort, contains, max_tokens)

    def ask(
        self,
        question: Annotated[str, QUESTION] = "",
        trace: Annotated[str | list[str], TRACES] = "",
        parameters: Annotated[dict[str, str] | None, PARAMETERS] = None,
        max_tokens: Annotated[int, MAX_TOKENS] = 1500,
    ) -> str:
        """Answers a ready question. Without a question, lists them with their parameters."""
        return asking.ask(self._folder, question, _several(trace), parameters or {}, max_tokens)

    def sql(
        self,
        query: Annotated[str, QUERY] = "",
        trace: Annotated[str | list[str], TRACES] = "",
        max_tokens: Annotated[int, MAX_TOKENS] = 1500,
    ) -> str:
        """Answers a query over the tables of a trace (span, func, thread, …). Without a query, lists the tables and
        their columns. Times are in ns."""
        return asking.sql(self._folder, query, _several(trace), max_tokens)

    def compare(self, trace: Annotated[list[str], TWO_TRACES], max_tokens: Annotated[int, MAX_TOKENS] = 1500) -> str:
        """Compares two traces of a program: which functions got slower or faster, or are called more often, and
        whether chance may explain it."""
        before, after = trace
        return comparing.compare(self._folder, before, after, max_tokens)

    def source(
        self,
        place: Annotated[str, PLACE],
        trace: Annotated[str, TRACE] = "",
        context: Annotated[int, CONTEXT] = 15,
        max_tokens: Annotated[int, MAX_TOKENS] = 1500,
    ) -> str:
        """Shows source code around a place. Only files in the folder of this server can be shown."""
        return sources.source(self._folder, trace, place, context, max_tokens)

    def record_command(
        self,
        command: Annotated[list[str], COMMAND],
        name: Annotated[str, NAME] = "",
        record_args: Annotated[list[str] | None, RECORD_ARGS] = None,
        sched: Annotated[bool, SCHED] = False,
        memory: Annotated[bool, MEMORY] = False,
        timeout_seconds: Annotated[float, TIMEOUT] = 120,
        max_tokens: Annotated[int, MAX_TOKENS] = 2500,
    ) -> str:
        """Runs a Python program in the folder and records it. Returns the path of the trace, the end of its output, and
        the findings and the tree of calls, or the report of its memory.
        """
        trace, said = recording.record(
            self._folder, command, name, timeout_seconds, record_args or (), sched=sched, memory=memory
        )
        answer = Answer(max_tokens)
        answer.add(f"{trace} is the trace; {said}")
        parts = (allocations.allocations,) if memory else (causes.findings, self._whole_tree)
        for part in parts:
            if answer.tokens_left >= LEAST + 1:
                answer.add("\n" + part(self._folder, trace, answer.tokens_left - 1))
        return answer.text()

    def _whole_tree(self, folder: Folder, trace: str, max_tokens: int) -> str:
        return calls.tree(folder, trace, "", "", False, max_tokens)


def _several(trace: str | list[str]) -> list[str]:
    """Returns the traces that are named; without a name, the newest trace."""
    return trace if isinstance(trace, list) else [trace] if trace else []


def schema(tool: Callable[..., str]) -> dict[str, Any]:
    """Returns a JSON schema of a tool's arguments, with the descriptions from their type annotations."""
    hints = get_type_hints(tool, include_extras=True)
    properties, required = {}, []
    for name, parameter in inspect.signature(tool).parameters.items():
        properties[name] = dict(hints[name].__metadata__[0])
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            properties[name]["default"] = parameter.default
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
