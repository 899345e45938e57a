"""Answers of bounded size: lines are added until the answer is full, and the last line says what is missing.

Tokens are counted as three bytes each, which is more than any usual tokenizer makes of such text.
"""

from __future__ import annotations

from vestige.base.printable import printable

BYTES_OF_TOKEN = 3
LEAST, MOST = 100, 20_000  # limits for the tokens of an answer
RESERVE = 60  # tokens for the line about what is missing


def tokens(text: str) -> int:
    """Returns how many tokens a text has at most."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_OF_TOKEN)


class Answer:
    """Text of at most `max_tokens`, without anything that a terminal would obey."""

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = min(max(max_tokens, LEAST), MOST)
        self._room = (self.max_tokens - RESERVE) * BYTES_OF_TOKEN
        self._lines: list[str] = []
        self.left_out = 0

    @property
    def is_full(self) -> bool:
        return self.left_out > 0

    @property
    def tokens_left(self) -> int:
        return self._room // BYTES_OF_TOKEN

    def add(self, line: str) -> None:
        """Adds one or several lines. After a line that did not fit, no further line is added."""
        for part in line.split("\n"):
            text = printable(part)
            size = len(text.encode("utf-8", "replace")) + 1
            if self.left_out or size > self._room:
                self.left_out += 1
            else:
                self._lines.append(text)
                self._room -= size

    def text(self, more: str = "ask with a larger max_tokens") -> str:
        """Returns the answer. `more` says how to get the missing lines."""
        lines = list(self._lines)
        if self.left_out:
            count = f"{self.left_out:,} more lines" if self.left_out > 1 else "more"
            lines.append(f"({count}: {more})"[: RESERVE * BYTES_OF_TOKEN - 1])
        return "\n".join(lines)
