"""The columns of a table's rows as attributes. A copy keeps the columns, while the rows themselves belong to the
extension.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from vestige._core import Rows


class Columns:
    """Columns of numbers are buffers; columns of texts, and columns with nulls, are made on first use."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.__dict__.update(columns)

    @classmethod
    def of(cls, rows: Rows) -> Self:
        return cls({name: rows[name] for name in rows.columns})

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {
            name: (column.format, column.tobytes()) if isinstance(column, memoryview) else list(column)
            for name, column in self.__dict__.items()
        }
        return _restored, (type(self), kept)


def _restored(cls: type[Columns], kept: dict[str, Any]) -> Columns:
    return cls(
        {
            name: memoryview(column[1]).cast(column[0]) if isinstance(column, tuple) else column
            for name, column in kept.items()
        }
    )
