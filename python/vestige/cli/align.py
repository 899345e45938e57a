"""--align: moves traces in time so that the spans they share end together.

All processes leave a barrier at the same moment, so the ends of its spans are compared. The difference between the
clocks of two machines hardly changes, so each trace needs only one offset: the median of its differences.
"""

from __future__ import annotations

from array import array

from vestige.base.failure import Failure
from vestige.base.terminal import Progress

from .report.command import duration, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vestige._core import Trace
    from vestige.reading.inputs import Source

LIMIT = 100_000  # the most spans of each trace that are compared


def align_traces(sources: Sequence[Source], traces: Sequence[Trace], name: str) -> list[str]:
    """Moves the traces, and returns lines that give the offsets. The first trace with such a span is not moved."""
    ends = _find_ends(sources, traces, name)
    with_name = [index for index, each in enumerate(ends) if each]
    if not with_name:
        raise _not_there(sources[0], traces[0], name)
    first = with_name[0]
    offsets = {index: _offset(ends[first], ends[index]) for index in with_name}
    lines = []
    for index, source in enumerate(sources):
        if index in offsets:
            what = plural(min(len(ends[index]), len(ends[first])), "span")
        else:
            offsets[index] = _offset_of_relatives(index, sources, with_name, offsets, traces, name)
            what = f"no {name!r}, moved together with its parent or relatives"
        traces[index].set_offset(offsets[index])
        sign = "-" if offsets[index] < 0 else "+"
        moved = "stays" if index == first else f"{sign}{duration(abs(offsets[index]))}"
        lines.append(f"{source.title}: {moved}, {what}")
    return lines


def _find_ends(sources: Sequence[Source], traces: Sequence[Trace], name: str) -> list[array[int]]:
    """Returns the ends of the spans of each trace, in order."""
    ends = []
    for index, (source, trace) in enumerate(zip(sources, traces)):
        with Progress(f"looking for {name} in {source.path}", index / len(traces), 1 / len(traces)) as progress:
            ends.append(array("q", (end for _, end in trace.spans(name, limit=LIMIT, progress=progress))))
    return ends


def _offset(reference: Sequence[int], ends: Sequence[int]) -> int:
    """Returns the offset to add to `ends`. Pairs spans from the first on. If the traces have different numbers of
    spans, one recording may have begun later, or dropped its beginning: then also pairs them from the last backwards,
    and chooses the pairing with the more uniform differences.
    """
    differences = [a - b for a, b in zip(reference, ends)]
    if len(reference) != len(ends) and max(len(reference), len(ends)) < LIMIT:
        from_last = [a - b for a, b in zip(reversed(reference), reversed(ends))]
        differences = min(differences, from_last, key=_spread)
    return _median(differences)


def _offset_of_relatives(
    index: int,
    sources: Sequence[Source],
    with_name: Sequence[int],
    offsets: dict[int, int],
    traces: Sequence[Trace],
    name: str,
) -> int:
    """Returns the offset of a process without such spans, such as a launcher or a worker that loads data: its parent's,
    or else that of other processes of its family, because all of them use the clock of one machine.
    """
    source = sources[index]
    relatives = [other for other in with_name if sources[other].family == source.family]
    if not relatives:
        raise _not_there(source, traces[index], name)
    parents = [other for other in relatives if sources[other].facts["pid"] == source.parent_pid]
    return _median(offsets[other] for other in parents or relatives)


def _not_there(source: Source, trace: Trace, name: str) -> Failure:
    from difflib import get_close_matches

    near = get_close_matches(name, trace.names(), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "`vestige report` lists the names of spans"
    return Failure(f"{source.path}: no span {name!r} to align on ({source.title}); {hint}", code=2)


def _median(values: Iterable[int]) -> int:
    ranked = sorted(values)
    middle = len(ranked) // 2
    return ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) // 2


def _spread(values: Sequence[int]) -> int:
    centre = _median(values)
    return _median(abs(value - centre) for value in values)
