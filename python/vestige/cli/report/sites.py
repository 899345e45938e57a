"""Lines that the source of a function gives where the trace has none: where the function calls another one by its name,
raises or tries, and the loop in which a function that calls nothing must have spent its time. Only files that have not
changed since the recording are read.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .data import Node
    from .findings import Evidence
    from .source import Code

MOST = 3  # a name that is called from more lines says nothing


class Sites:
    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._codes: dict[str, Code | None] = {}

    def calls(self, shown: str, called: str) -> list[tuple[str, int]]:
        """Returns the file and lines in which a function calls another; empty if there are none, or many."""
        from vestige.reading.labels import plain_name

        from .source import lines_of_calls

        name = plain_name(called.removeprefix("[await] ").rpartition(": ")[2]).rpartition(".")[2]
        return self._lines(shown, lambda code: lines_of_calls(code, name))

    def loop(self, shown: str) -> list[tuple[str, int]]:
        """Returns the file and lines of the innermost loop of a function; empty if there is no loop, or several."""
        from .source import lines_of_loop

        return self._lines(shown, lines_of_loop)

    def raises(self, shown: str) -> list[tuple[str, int]]:
        """Returns the file and lines in which a function raises; empty if it does not, or in many places."""
        from .source import lines_of_raise

        return self._lines(shown, lines_of_raise)

    def tries(self, shown: str) -> list[tuple[str, int]]:
        """Returns the file and lines of what a function tries; empty if it tries nothing, or in several places."""
        from .source import lines_of_try

        return self._lines(shown, lines_of_try)

    def _lines(self, shown: str, find: Callable[[Code], list[int]]) -> list[tuple[str, int]]:
        node = self._node(shown)
        code = self._code(node)
        return [] if node is None or code is None else self._places(node, find(code))

    def _places(self, node: Node, lines: list[int]) -> list[tuple[str, int]]:
        file = node.function.rpartition(f":{node.line}: ")[0]
        return [(file, line) for line in lines] if len(lines) <= MOST else []

    def _node(self, shown: str) -> Node | None:
        from vestige.reading.kinds import PYTHON

        nodes = self._evidence.places.nodes
        return next((node for node in nodes if node.function == shown and node.kind == PYTHON), None)

    def _code(self, node: Node | None) -> Code | None:
        if node is None:
            return None
        if node.function not in self._codes:
            from .source import code_of

            self._codes[node.function] = code_of(self._evidence, node)
        return self._codes[node.function]
