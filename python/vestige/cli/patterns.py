"""--include and --exclude of commands that read traces: patterns for functions to keep or leave out."""

from __future__ import annotations

from fnmatch import fnmatchcase

from vestige.base.failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from vestige._core import Function
    from vestige.reading.inputs import Inputs

    from .console import Parser


def add_patterns(parser: Parser) -> None:
    parser.add_argument(
        "--include", metavar="PATTERN", action="append", help="only functions whose name or file fits; may be repeated"
    )
    parser.add_argument(
        "--exclude",
        metavar="PATTERN",
        action="append",
        help="leave out functions whose name or file fits; may be repeated",
    )


class Patterns:
    """Shell patterns for functions' names or files. A pattern with a slash is compared with a file's whole path."""

    def __init__(self, include: list[str] | None, exclude: list[str] | None) -> None:
        self._include = include or []
        self._exclude = exclude or []
        self._matched: set[str] = set()

    def left_out(self, functions: Sequence[Function | None]) -> list[int]:
        """Returns the ids of functions to leave out."""
        if not self._include and not self._exclude:
            return []
        left = []
        for number, function in enumerate(functions):
            if function is None:
                continue
            excluded = [self._fits(function, pattern) for pattern in self._exclude]
            included = [self._fits(function, pattern) for pattern in self._include]
            if any(excluded) or (included and not any(included)):
                left.append(number)
        return left

    def _fits(self, function: Function, pattern: str) -> bool:
        name, file, shown = function.name, function.file, function.shown_file
        texts = [name, f"{shown}:{function.line}: {name}"]
        texts += [file, shown] if "/" in pattern else [file.rpartition("/")[2]]
        if any(text and fnmatchcase(text, pattern) for text in texts):
            self._matched.add(pattern)
            return True
        return False

    def check(self, inputs: Inputs) -> None:
        """Call when everything is read: reports patterns that matched nothing."""
        for pattern in self._include:
            if pattern not in self._matched:
                raise Failure(f"--include {pattern!r}: matches no function or file in these traces", code=2)
        for pattern in self._exclude:
            if pattern not in self._matched:
                inputs.tell(f"--exclude {pattern!r}: matches no function or file in these traces", failed=False)
