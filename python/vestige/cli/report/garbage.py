"""`vestige report --gc`: garbage collections by generation, by the function in which they began, and the longest
collections.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.layout import show
from vestige.reading.report_columns import BEGAN_IN, COLLECTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from .command import Reading

LONGEST = 5  # collections that the text shows


def show_collections(reading: Reading, start_ns: int, rows: int, out: TextIO) -> None:
    data = reading.data
    if not data.generations:
        print("no garbage collection was recorded", file=out)
        return
    share = min(data.gc_ns / (reading.whole_ns or 1), 1.0)
    of = "the time" if data.traces == 1 else f"the time of {data.traces:,} processes added up"
    print(f"{plural(data.collections, 'garbage collection')}, {duration(data.gc_ns)}, {share:.1%} of {of}\n", file=out)
    show(reading.columns, reading.rows(), rows, out, more="more generations")
    print(file=out)
    show(BEGAN_IN.in_text(()), BEGAN_IN.sorted(data.gc_in.values()), rows, out, more="more functions")
    print(file=out)
    show(COLLECTIONS.in_text(()), data.long_collections[:LONGEST], rows, out, start_ns=start_ns)
