"""`vestige report --compensated`: finds out whether the traces know what recording cost, and writes the line about
that.
"""

from __future__ import annotations

from vestige.base.failure import Failure
from vestige.base.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from vestige.reading.inputs import Source

    from .data import Data

METADATA = "vestige.costs"


def why_unknown(source: Source) -> str | None:
    """Returns why the trace does not know what recording cost; None if it does."""
    costs = source.metadata.get(METADATA)
    if isinstance(costs, list):
        return None
    if isinstance(costs, str):
        return costs
    return "what recording cost was not learned; see vestige run --compensate"


def check(sources: Sequence[Source]) -> None:
    reasons = [why_unknown(source) for source in sources]
    if reasons and all(reasons):
        raise Failure(f"--compensated: {printable(str(reasons[0]))}")


def note(sources: Sequence[Source], data: Data) -> str:
    """Returns the first line of the report."""
    unknown = sum(entry.error_ns is None for entry in data.functions.values())
    text = "times are what calls would have taken without being recorded"
    if unknown:
        reasons = {reason for source in sources if (reason := why_unknown(source)) is not None}
        why = "; ".join(sorted(printable(reason) for reason in reasons)) or "records are missing"
        text += f"; that is not known of every call of {unknown:,} functions, whose times are as recorded: {why}"
    return text
