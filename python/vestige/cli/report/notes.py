"""Lines above and below the tables of `vestige report`. Used by the report after `vestige run`, so it imports
little.
"""

from __future__ import annotations

from vestige.base.printable import one_line
from vestige.base.quantities import chosen_time, duration, plural, size
from vestige.base.terminal import Paint, cut, width_of
from vestige.reading.waits import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

    from vestige.reading.inputs import Source

    from .data import Data, Named
    from .findings import Evidence

WORTH_A_WORD = 0.05  # share of the time; shorter waits are not mentioned
TORN_ROWS = 3
NAMES = 3  # names in a line about functions


def show_head(
    facts: Sequence[dict[str, Any]],
    data: Data,
    out: TextIO,
    *,
    every_thread: bool = True,
    shares: bool = True,
    ends: Sequence[str] = (),
) -> None:
    """Writes how long the recording is, how much was recorded, and facts that a reader needs to understand the rest."""
    paint = Paint(out)
    processes = f", {len(facts):,} processes" if len(facts) > 1 else ""
    threads = sum(each["threads"] for each in facts) if every_thread else len(data.threads)
    head = f"{duration(span_of(facts))}, {plural(data.calls, 'call')}{processes}, {plural(threads, 'thread')}"
    print(paint(head, "head"), file=out)
    for line in about_shares(data) if shares else ():
        print(cut(line, width_of(out)), file=out)
    for line in (*notes(facts), *ends):
        print(paint(line, "worse"), file=out)


def about_shares(data: Data) -> list[str]:
    """Returns lines that explain percentages: which time is 100 %, and how much of it was waiting; empty if nothing
    needs explaining.
    """
    whole, waiting, threads = data.threads_ns, data.waiting_ns, len(data.threads)
    everything = whole + waiting if data.without_waits else whole
    lines = [f"% is of {duration(whole)}, the time of {plural(threads, 'thread')} added up"] if threads > 1 else []
    if waiting < WORTH_A_WORD * everything or not waiting:
        return lines
    kinds = sorted(data.waits.items(), key=lambda item: -item[1])
    of = ", ".join(f"{KINDS.get(kind, kind)} {duration(ns)}" for kind, ns in kinds if ns >= 0.01 * waiting)
    if data.without_waits:
        return [*lines, f"waiting is left out: {of}"]
    return [*lines, f"{waiting / everything:.0%} of it is waiting ({of}); see --no-waits"]


def passed_of(facts: dict[str, Any]) -> int:
    """Returns how long a process was recorded. If records were dropped, the time before the kept records does not
    count.
    """
    start_ns = facts["complete_ns"] if facts["dropped"] else facts["start_ns"]
    return int(facts["end_ns"] - start_ns)


def span_of(facts: Sequence[dict[str, Any]]) -> int:
    return max(each["end_ns"] for each in facts) - min(each["start_ns"] for each in facts) if facts else 0


def notes(facts: Sequence[dict[str, Any]]) -> list[str]:
    lines = []
    lost = sum(each["lost"] for each in facts)
    if lost:
        lines.append(f"{lost:,} records could not be kept and are missing here")
    if any(each["dropped"] for each in facts):
        count = sum(each["dropped"] for each in facts)
        complete = duration(max(each["end_ns"] for each in facts) - max(each["complete_ns"] for each in facts))
        lines.append(
            f"{count:,} older records were dropped to stay within the limit of size or time; "
            f"the last {complete} are complete"
        )
    for each in facts:
        if each["damaged_at"]:
            lines.append(f"process {each['pid']}: damaged at byte {each['damaged_at']:,}; what can be read is here")
    return lines


def torn_ends(sources: Sequence[Source]) -> list[str]:
    """Returns lines that say why recordings ended before their program."""
    torn = [source for source in sources if source.ended == "torn"]
    lines = []
    for source in torn[:TORN_ROWS]:
        how = (
            "became another program by os.exec*" if source.was_replaced() else "was killed, crashed or called os.exec*"
        )
        lines.append(f"process {source.facts['pid']} {how}; what was before is here")
    if torn[TORN_ROWS:]:
        lines.append(f"{plural(len(torn) - TORN_ROWS, 'more recording')} ended in this manner")
    return lines


def show_left_out(facts: Sequence[dict[str, Any]], metadata: Sequence[dict[str, Any]], data: Data, out: TextIO) -> None:
    """Writes the last lines: which calls were not recorded."""
    for line in (line for budget in data.budgets for line in within_budget(budget)):
        print(Paint(out)(line, "dim"), file=out)
    for name in (name for name, was_called in data.only.items() if not was_called):
        print(Paint(out)(f"no function named {one_line(name)} was called while recording", "hot"), file=out)
    for line in dict.fromkeys(line for each in metadata for line in beyond_scope(each)):
        print(Paint(out)(line, "dim"), file=out)
    for least in sorted({each["min_duration_ns"] for each in facts if each["left_out"]}):
        count = sum(each["left_out"] for each in facts if each["min_duration_ns"] == least)
        print(Paint(out)(short_calls({"left_out": count, "min_duration_ns": least}), "dim"), file=out)


COST_MANY = 50_000_000  # bytes per second: a trace that grows faster is a burden


def cost_of_recording(evidence: Evidence) -> str:
    """Returns `trace 111 MiB, recording took about 0.2 s (8%)`."""
    bytes_written = sum(each["bytes"] for each in evidence.facts)
    share = f"{min(evidence.recording_ns / evidence.passed_ns, 1):.0%}"
    line = f"trace {size(bytes_written)}, recording took about {duration(evidence.recording_ns)} ({share})"
    if bytes_written * 1e9 > COST_MANY * evidence.wall_ns and bytes_written > COST_MANY:
        line += "; --no-c, --min-duration 10us or --max-size 256M make it smaller"
    return line


def within_budget(budget: Named) -> list[str]:
    """Returns a line or two about the calls that a budget left out."""
    cpu = budget.cpu_ns or 1
    line = f"budget {budget.share * 100:.3g}% of the CPU time, {budget.cost_ns / cpu:.1%} used"
    if not budget.functions:
        return [f"{line}: every call is recorded"]
    functions = plural(budget.functions, "function")
    line = (
        f"{line}: {functions} left out for up to {budget.out_cpu_ns / cpu:.0%} of it; "
        f"tables estimate their calls from {plural(budget.windows, 'window')}"
    )
    return [line, *reduced_estimates(budget.reduced)]


def reduced_estimates(names: Sequence[str]) -> list[str]:
    """Returns a line about functions whose estimated time was limited to the time that their threads had."""
    if not names:
        return []
    more = f" and {plural(len(names) - NAMES, 'more function')}" if len(names) > NAMES else ""
    return [f"estimates reduced to the time that their threads had: {', '.join(map(one_line, names[:NAMES]))}{more}"]


def beyond_scope(metadata: dict[str, Any]) -> list[str]:
    """Returns lines about calls that the recording's options excluded."""
    lines = []
    if "vestige.only" in metadata:
        names = metadata["vestige.only"]
        options = one_line(" ".join(f"--only {name}" for name in names))
        lines.append(f"calls outside of {'this function' if len(names) == 1 else 'these'} are not recorded: {options}")
    if "vestige.max_depth" in metadata:
        lines.append(f"deeper calls are not recorded: --max-depth {metadata['vestige.max_depth']}")
    return lines


def short_calls(facts: dict[str, Any]) -> str:
    return f"{plural(facts['left_out'], 'call')} shorter than {chosen_time(facts['min_duration_ns'])} left out"
