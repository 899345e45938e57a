"""The answer of an engine: columns and rows."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Self

BATCH = 10_000


class Answer:
    """An answer whose rows can be read once. The engine stays alive until close()."""

    columns: list[str]

    def batches(self) -> Iterator[list[tuple[Any, ...]]]:
        """Yields lists of rows."""
        raise NotImplementedError

    def write_parquet(self, path: str) -> None:
        """Writes the rows to a file; use this instead of batches()."""
        raise NotImplementedError

    def close(self) -> None:
        """Releases the engine."""

    @property
    def rows(self) -> Iterator[tuple[Any, ...]]:
        for batch in self.batches():
            yield from batch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
