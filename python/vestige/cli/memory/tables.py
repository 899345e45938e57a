"""Prints the tables of `vestige memory-report`, as wide as the terminal."""

from __future__ import annotations

from vestige.base.printable import one_line as clean
from vestige.base.quantities import duration, plural, power_size, size
from vestige.base.terminal import cut, cut_front, line_width, width_of
from vestige.reading.memory import Amount

from . import resident
from .curve import curve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TextIO

    from vestige.reading.memory import Frame

    from .report import Read

    Row = tuple[Amount, list[Frame]]

INDENT = 30  # columns before the text of the last column
BAR = 30
UNNAMED = "(unnamed)"
NOTHING = Amount(0, 0, 0)


def show(read: Read, sections: Sequence[str], rows: int, out: TextIO, *, draws_curve: bool = False) -> None:
    _show_head(read, out, draws_curve=draws_curve)
    if len(read) > 1:
        _show_processes(read, out)
    for section in sections:
        print(file=out)
        if section in ("peak", "leaks", "temporary", "reserved"):
            _show_stacks(read, section, rows, out)
        elif section == "histogram":
            _show_sizes(read, out)
        elif section == "lines":
            _show_lines(read, rows, out)
        elif section == "threads":
            _show_threads(read, rows, out)
        else:
            _show_allocators(read, out)


# ---- the head ------------------------------------------------------------


def _show_head(read: Read, out: TextIO, *, draws_curve: bool = False) -> None:
    summaries = [summary for _, summary in read]
    total = _sum(summary.views["total"] for summary in summaries)
    span = max(s.facts["last_ns"] for s in summaries) - min(s.facts["first_ns"] for s in summaries)
    parts = [duration(span), f"{plural(total.count, 'allocation')} of {size(total.bytes)}"]
    parts.append(plural(sum(s.facts["frees"] for s in summaries), "free"))
    parts.append(plural(sum(len(s.threads) for s in summaries), "thread"))
    _wrap(", ".join(parts), out)
    for line in (resident.resident(summaries), resident.reserved(summaries)):
        if line:
            _wrap(line, out)
    for line in _notes(read):
        _wrap(line, out)
    for line in curve(read) if draws_curve else ():
        print(line, file=out)


def _notes(read: Read) -> list[str]:
    """Returns the facts that a reader needs to understand the numbers."""
    lines = []
    summaries = [summary for _, summary in read]
    facts = [source.facts for source, _ in read]
    if any(s.facts["sampled"] for s in summaries):
        every = {source.metadata.get("vestige.memory", {}).get("sample_bytes") for source, _ in read}
        about = f", about one in {size(every.pop())}" if len(every) == 1 and None not in every else ""
        lines.append(f"allocations were sampled{about}: these are estimates, ± their standard error")
    if any(s.facts["of_framework"] for s in summaries):
        lines.append("these are the allocations of a framework's allocator")
    elif apart := sum(s.facts["apart"] for s in summaries):
        lines.append(
            f"{plural(apart, 'record')} of a framework's allocator, whose blocks lie in these, not counted again"
        )
    lost = sum(each["lost"] for each in facts)
    if lost:
        lines.append(f"{plural(lost, 'record')} could not be kept and are missing here")
    if dropped := sum(each["dropped"] for each in facts):
        lines.append(
            f"{plural(dropped, 'older word')} dropped to stay within the limit of size or time; "
            "what they allocated is missing"
        )
    torn = [source for source, _ in read if not source.facts["clean"]]
    for source in torn[:3]:
        how = {"recording": "still being recorded", "damaged": "damaged"}.get(source.ended, "not finished")
        lines.append(f"{source.path} is {how}: the end is where its records end")
    unknown = sum(s.facts["unknown_frees"] for s in summaries)
    if unknown:
        lines.append(f"{plural(unknown, 'free')} of blocks from before the recording, not counted")
    return lines


def _show_processes(read: Read, out: TextIO) -> None:
    print(f"\n{'allocated':>10} {'peak':>10} {'at the end':>10} {'pid':>7}  process", file=out)
    for source, summary in read:
        views = summary.views
        sizes = " ".join(f"{size(views[view].bytes):>10}" for view in ("total", "peak", "leaks"))
        print(f"{sizes} {source.facts['pid']:>7}  {cut(source.name, width_of(out) - 42)}", file=out)


# ---- stacks and lines ----------------------------------------------------


def _show_stacks(read: Read, view: str, rows: int, out: TextIO) -> None:
    if view == "temporary" and all(summary.facts["sampled"] for _, summary in read):
        print("samples do not show which allocations were temporary", file=out)
        return
    whole = _sum(summary.views[view] for _, summary in read)
    _wrap(_title(read, view, whole), out)
    count, stacks = _merge_stacks(read, view)
    if not stacks:
        return
    _show_columns(out)
    for amount, frames in stacks[:rows]:
        _show_stack(amount, whole.bytes, frames, out)
    _show_rest(count, rows, "stack", out)


def _title(read: Read, view: str, whole: Amount) -> str:
    amount = f"{_with_error(read, whole)} in {plural(whole.count, 'allocation')}"
    if view == "peak" and len(read) == 1:
        summary = read[0][1]
        after = duration(summary.facts["peak_ns"] - summary.facts["first_ns"])
        return f"high-water mark: {amount}, {after} after the first; held by"
    if view == "peak":
        return f"high-water marks of all processes together: {amount}; held by"
    if view == "leaks":
        return f"alive at the end: {amount}" + (", from" if whole.count else "")
    if view == "reserved":
        ranges = f"{size(whole.bytes)} in {plural(whole.count, 'range')}"
        return f"reserved and not in use, at most: {ranges}" + (", by" if whole.count else "")
    k = read[0][1].facts["temporary_within"]
    how = "before its thread allocated again" if k == 1 else f"before its thread allocated {k:,} more"
    return f"temporary (freed {how}): {amount}" + (", from" if whole.count else "")


def _with_error(read: Read, amount: Amount) -> str:
    text = size(amount.bytes)
    return f"{text} ± {size(amount.error)}" if any(s.facts["sampled"] for _, s in read) else text


def _show_columns(out: TextIO) -> None:
    print(f"{'bytes':>10} {'%':>4} {'count':>12}  where", file=out)


def _show_stack(amount: Amount, whole: int, frames: list[Frame], out: TextIO) -> None:
    at = next((i for i, frame in enumerate(frames) if not frame.native), 0)
    _show_row(amount, whole, _place(frames[at], width_of(out) - INDENT), out)
    if callers := frames[at + 1 :]:
        _show_below("by", map(_short, callers), out)
    if at:
        _show_below("in", (frame.function for frame in frames[:at]), out)


def _show_below(word: str, names: Iterable[str], out: TextIO) -> None:
    print(f"{'':{INDENT}}{cut(f'{word} ' + ' < '.join(names), width_of(out) - INDENT)}", file=out)


def _show_row(amount: Amount, whole: int, where: str, out: TextIO) -> None:
    part = amount.bytes / (whole or 1)
    share = "<1%" if 0 < part < 0.005 else f"{part:.0%}"
    print(f"{size(amount.bytes):>10} {share:>4} {amount.count:>12,}  {where}", file=out)


def _show_rest(count: int, rows: int, what: str, out: TextIO) -> None:
    if count > rows:
        print(f"{'':{INDENT}}and {plural(count - rows, f'more {what}', f'more {what}s')}", file=out)


def _merge_stacks(read: Read, view: str) -> tuple[int, list[Row]]:
    """Returns how many stacks there are, and the first of them. Equal stacks of several processes are one."""
    if len(read) == 1:
        summary = read[0][1]
        return summary.stack_counts[view], summary.stacks[view]
    sums: dict[tuple[Frame, ...], Amount] = {}
    for _, summary in read:
        for amount, frames in summary.stacks[view]:
            key = tuple(frames)
            sums[key] = _sum((sums.get(key, NOTHING), amount))
    ranked = sorted(sums.items(), key=lambda item: (-item[1].bytes, -item[1].count))
    return len(ranked), [(amount, list(frames)) for frames, amount in ranked]


def _show_lines(read: Read, rows: int, out: TextIO) -> None:
    whole = _sum(summary.views["total"] for _, summary in read)
    sums: dict[tuple[str, int, str], tuple[Amount, Frame]] = {}
    count = 0
    for _, summary in read:
        count = summary.line_counts["total"]
        for amount, frame in summary.lines["total"]:
            key = (frame.file, frame.line, "" if frame.line else frame.function)
            before = sums[key][0] if key in sums else NOTHING
            sums[key] = (_sum((before, amount)), frame)
    print("lines that allocated most", file=out)
    _show_columns(out)
    ranked = sorted(sums.values(), key=lambda item: (-item[0].bytes, -item[0].count))
    for amount, frame in ranked[:rows]:
        _show_row(amount, whole.bytes, _place(frame, width_of(out) - INDENT), out)
    _show_rest(max(count, len(ranked)), rows, "line", out)


# ---- the other sections --------------------------------------------------


def _show_sizes(read: Read, out: TextIO) -> None:
    sums: dict[int, tuple[int, int]] = {}
    for _, summary in read:
        for one in summary.sizes:
            before = sums.get(one.least, (0, 0))
            sums[one.least] = (before[0] + one.count, before[1] + one.bytes)
    most = max((count for count, _ in sums.values()), default=1) or 1
    print(f"{'sizes, up to below':>19} {'count':>12} {'bytes':>10}", file=out)
    for least, (count, total) in sorted(sums.items()):
        span = "0 B" if least == 0 else f"{power_size(least)} – {power_size(2 * least)}"
        bar = "█" * round(BAR * count / most)
        print(f"{span:>19} {count:>12,} {size(total):>10}  {bar or '▏'}", file=out)


def _show_threads(read: Read, rows: int, out: TextIO) -> None:
    print(f"{'allocated':>10} {'count':>12} {'freed':>10} {'count':>12}  thread", file=out)
    threads = [thread for _, summary in read for thread in summary.threads]
    for thread in sorted(threads, key=lambda thread: -thread.allocated.bytes)[:rows]:
        amounts = thread.allocated, thread.freed
        numbers = " ".join(f"{size(amount.bytes):>10} {amount.count:>12,}" for amount in amounts)
        print(f"{numbers}  {cut(f'{thread.name or UNNAMED} ({thread.tid})', width_of(out) - 50)}", file=out)
    if len(threads) > rows:
        print(f"{'':>48}  and {plural(len(threads) - rows, 'more thread')}", file=out)


def _show_allocators(read: Read, out: TextIO) -> None:
    names = sorted({name for _, summary in read for name in summary.allocators})
    sums = [(name, _sum(s.allocators.get(name, NOTHING) for _, s in read)) for name in names]
    whole = sum(amount.bytes for _, amount in sums)
    print(f"{'bytes':>10} {'%':>4} {'count':>12}  allocator", file=out)
    for name, amount in sorted(sums, key=lambda item: -item[1].bytes):
        _show_row(amount, whole, name, out)


# ---- text ----------------------------------------------------------------


def _sum(amounts: Iterable[Amount]) -> Amount:
    """Adds amounts. Their errors are independent, so the squares add up."""
    count = total = squares = 0
    for one in amounts:
        count += one.count
        total += one.bytes
        squares += one.error**2
    return Amount(count, total, round(squares**0.5))


def _place(frame: Frame, room: int) -> str:
    """Returns `app.py:12 load`, if there is room; otherwise a path loses its beginning."""
    name, file, line = clean(frame.function), clean(frame.shown_file), frame.line
    if not file:
        return cut(name, room)
    place = cut_front(f"{file}:{line}" if line else file, room - 1 - min(len(name), 28))
    return cut(f"{place} {name}", room)


def _short(frame: Frame) -> str:
    """Returns the name of a caller, without the folder of its file."""
    file = frame.shown_file.rpartition("/")[2]
    return f"{frame.function} {file}:{frame.line}" if frame.line else frame.function


def _wrap(text: str, out: TextIO) -> None:
    import textwrap

    lines = textwrap.wrap(clean(text), line_width(out), subsequent_indent="  ", break_on_hyphens=False)
    print("\n".join(lines), file=out)
