"""--align: moves traces in time until the spans they share end together.

All processes leave a barrier at the same moment, so the ends of its spans are compared. The clocks of two machines
differ by much the same amount all along, so one offset for each trace is enough: the median of its differences.
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

LIMIT = 100_000  # spans of each trace that are compared


def align_traces(sources: Sequence[Source], traces: Sequence[Trace], name: str) -> list[str]:
    """Shifts the traces, and returns lines that say by how much. The first trace with such a span stays."""
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
            what = f"no {name!r}, moved with the processes it belongs to"
        traces[index].set_offset(offsets[index])
        sign = "-" if offsets[index] < 0 else "+"
        moved = "stays" if index == first else f"{sign}{duration(abs(offsets[index]))}"
        lines.append(f"{source.title}: {moved}, {what}")
    return lines


def _find_ends(sources: Sequence[Source], traces: Sequence[Trace], name: str) -> list[array[int]]:
    """The ends of the spans of each trace, in order."""
    ends = []
    for index, (source, trace) in enumerate(zip(sources, traces)):
        progress = Progress(f"looking for {name} in {source.path}", index / len(traces), 1 / len(traces))
        try:
            ends.append(array("q", (end for _, end in trace.spans(name, limit=LIMIT, progress=progress))))
        finally:
            progress.clear()
    return ends


def _offset(reference: Sequence[int], ends: Sequence[int]) -> int:
    """What to add to `ends`. Spans are paired from the first on. If their numbers differ, one recording may have begun
    later (or dropped its beginning): they are paired from the last back too, and the more alike differences win."""
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
    """A process that does not take part (a launcher, a worker that loads data) moves with its parent, else with the
    other processes of its family; all of them have the clock of one machine."""
    source = sources[index]
    relatives = [other for other in with_name if sources[other].family == source.family]
    if not relatives:
        raise _not_there(source, traces[index], name)
    parents = [other for other in relatives if sources[other].facts["pid"] == source.parent_pid]
    return _median(offsets[other] for other in parents or relatives)


def _not_there(source: Source, trace: Trace, name: str) -> Failure:
    from difflib import get_close_matches

    near = get_close_matches(name, trace.names(), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "vestige report lists what there is"
    return Failure(f"{source.path}: no span {name!r} to align on ({source.title}); {hint}", code=2)


def _median(values: Iterable[int]) -> int:
    ranked = sorted(values)
    middle = len(ranked) // 2
    return ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) // 2


def _spread(values: Sequence[int]) -> int:
    centre = _median(values)
    return _median(abs(value - centre) for value in values)
