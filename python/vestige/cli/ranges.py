"""`--from` and `--until`: the part of a trace that a command shows, in human form ("1.5s", "40%", "-200ms").
Times count from the start of what is shown together: of one trace, or of all that are read at once.
"""

from __future__ import annotations

import re

from vestige.base.failure import Failure
from vestige.base.quantities import LARGEST, TIMES, split_unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from vestige._core import Trace

    from .console import Parser

FROM_END = re.compile(r"-[0-9.]+ *[a-zA-Z%]*$")


def add_arguments(
    parser: Parser, before: str = "ignore everything before TIME", after: str = "ignore everything after TIME"
) -> None:
    """Adds `--from` and `--until`. `before` and `after` begin their help."""
    parser.add_argument(
        "--from",
        dest="from_time",
        metavar="TIME",
        help=f"{before}: 1.5s or 200ms after the start, 40%% of the whole, -2s or -10%% before the end",
    )
    parser.add_argument("--until", dest="until_time", metavar="TIME", help=f"{after} (same forms as --from)")
    # Makes argparse take `--from -2s` as an option with its value, as it does for `--from -2`.
    parser._negative_number_matcher = FROM_END


def is_given(options: Namespace) -> bool:
    return options.from_time is not None or options.until_time is not None


def read(options: Namespace, start_ns: int, end_ns: int) -> tuple[int, int]:
    """Returns the range that the options choose, from a trace between start_ns and end_ns. Without options, returns the
    whole.
    """
    from_ns, to_ns = start_ns, end_ns
    if options.from_time is not None:
        from_ns = max(start_ns, _moment("--from", options.from_time, start_ns, end_ns))
    if options.until_time is not None:
        to_ns = _moment("--until", options.until_time, start_ns, end_ns)
    if from_ns > to_ns:
        given = {"--from": options.from_time, "--until": options.until_time}
        said = " ".join(f"{option} {text}" for option, text in given.items() if text is not None)
        raise Failure(f"{said}: nothing of the {(end_ns - start_ns) / 1e9:.6g} s that were recorded lies there", code=2)
    return from_ns, to_ns


def apply(options: Namespace, traces: Sequence[Trace]) -> None:
    """Restricts traces that are shown together to the range of the options."""
    if not is_given(options):
        return
    facts = [trace.info() for trace in traces]
    between = read(options, min(each["start_ns"] for each in facts), max(each["end_ns"] for each in facts))
    for trace in traces:
        trace.set_range(*between)


def _moment(option: str, text: str, start_ns: int, end_ns: int) -> int:
    number, unit = split_unit(text)
    scale = (end_ns - start_ns) / 100 if unit == "%" else TIMES.get(unit.lower())
    try:
        value = round(float(number) * scale) if scale is not None else None
    except ValueError:
        value = None
    if value is None:
        raise Failure(f"{option}: not a time: {text!r}; write 1.5s, 200ms or 40%, before the end -2s", code=2)
    value = max(-LARGEST // 2, min(value, LARGEST // 2))
    return (end_ns if number.startswith("-") else start_ns) + value
