"""The tables of `vestige report`, 80 columns wide or as wide as the terminal. Used by the report after `vestige run`,
so it imports little.
"""

from __future__ import annotations

from vestige.base.printable import one_line
from vestige.base.quantities import chosen_time, duration, plural, size
from vestige.base.terminal import UNBOUNDED, Paint, cells, cut, fit, pad, width_of
from vestige.reading.waits import KINDS, OBJECT, WORLD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TextIO

    from vestige.reading.inputs import Source

    from .data import Budget, Data, Entry, Thread

HOT = 0.25  # of the time, in a strong colour
WORTH_A_WORD = 0.05  # of the time: what waited less is not mentioned
THREAD_NAME = 20
TORN_ROWS = 3
NAMES = 3  # in a line about functions


def show_head(
    facts: Sequence[dict[str, Any]],
    data: Data,
    out: TextIO,
    *,
    every_thread: bool = True,
    shares: bool = True,
    ends: Sequence[str] = (),
) -> None:
    """How long, how much, and what must be known to read the rest."""
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
    """What percentages are of, and how much of that was waiting; empty if neither needs to be said."""
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
    """Why recordings end that their program did not end."""
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
    """The last lines: which calls were not recorded."""
    for line in (line for budget in data.budgets for line in within_budget(budget)):
        print(Paint(out)(line, "dim"), file=out)
    for name in (name for name, was_called in data.only.items() if not was_called):
        print(Paint(out)(f"no function named {one_line(name)} was called while recording", "hot"), file=out)
    for line in dict.fromkeys(line for each in metadata for line in beyond_scope(each)):
        print(Paint(out)(line, "dim"), file=out)
    for least in sorted({each["min_duration_ns"] for each in facts if each["left_out"]}):
        count = sum(each["left_out"] for each in facts if each["min_duration_ns"] == least)
        print(Paint(out)(short_calls({"left_out": count, "min_duration_ns": least}), "dim"), file=out)


def within_budget(budget: Budget) -> list[str]:
    """What a budget left out, in a line or two."""
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
    """A line about functions that would have been estimated to take more time than there was."""
    if not names:
        return []
    more = f" and {plural(len(names) - NAMES, 'more function')}" if len(names) > NAMES else ""
    return [f"estimates reduced to the time that their threads had: {', '.join(map(one_line, names[:NAMES]))}{more}"]


def beyond_scope(metadata: dict[str, Any]) -> list[str]:
    """Which calls the recording was not about."""
    lines = []
    if "vestige.only" in metadata:
        names = metadata["vestige.only"]
        options = one_line(" ".join(f"--only {name}" for name in names))
        lines.append(f"calls outside of {'this function' if len(names) == 1 else 'these'} are not recorded: {options}")
    if "vestige.max_depth" in metadata:
        lines.append(f"deeper calls are not recorded: --max-depth {metadata['vestige.max_depth']}")
    return lines


def has_all_calls(facts: Sequence[dict[str, Any]], metadata: Sequence[dict[str, Any]]) -> bool:
    return not any(beyond_scope(each) for each in metadata) and not any(each["left_out"] for each in facts)


def short_calls(facts: dict[str, Any]) -> str:
    return f"{plural(facts['left_out'], 'call')} shorter than {chosen_time(facts['min_duration_ns'])} left out"


# ---- functions ---------------------------------------------------------------


def running(ns: int | None) -> str:
    """A column of running times, where traces tell of those."""
    return f" {'?' if ns is None else duration(ns):>8}"


def show_functions(
    entries: Sequence[Entry],
    whole_ns: int,
    rows: int,
    out: TextIO,
    *,
    memory: bool,
    switches: bool = False,
    errors: bool = False,
) -> None:
    """`errors`: times are compensated or estimated, and how far off the total may be is a column."""
    if not entries:
        return
    paint, width = Paint(out), width_of(out)
    more = f" {'±':>8}" if errors else ""
    more += f" {'running':>8}" if switches else ""
    more += f" {'self mem':>8} {'all mem':>8}" if memory else ""
    head = f"{'calls':>11} {'self':>8} {'%':>4} {'total':>8}{more}"
    print(paint(f"{head}  function", "head"), file=out)
    for entry in entries[:rows]:
        share = min(entry.self_ns / (whole_ns or 1), 1.0)
        style = "hot" if share >= HOT else None
        more = running(entry.error_ns) if errors else ""
        more += running(entry.running_ns) if switches else ""
        more += f" {size(entry.self_bytes):>8} {size(entry.total_bytes):>8}" if memory else ""
        own = paint(f"{duration(entry.self_ns):>8} {share:4.0%}", style)
        name = paint(fit(entry.shown, width - len(head) - 2), style or ("dim" if entry.library else None))
        print(f"{entry.calls:>11,} {own} {duration(entry.total_ns):>8}{more}  {name}", file=out)
    if len(entries) > rows:
        print(paint(f"{'':>11} and {len(entries) - rows:,} more functions", "dim"), file=out)


def show_processes(calls: Sequence[tuple[Source, int]], out: TextIO) -> None:
    paint, width = Paint(out), width_of(out)
    head = f"{'calls':>11} {'time':>8} {'pid':>7} {'rank':>4} {'ended':<9}"
    print("\n" + paint(f"{head}  process", "head"), file=out)
    for source, count in calls:
        span = duration(source.facts["end_ns"] - source.facts["start_ns"])
        rank = "" if source.rank is None else str(source.rank)
        where = f"{source.facts['pid']:>7} {rank:>4} {source.ended:<9}"
        print(f"{count:>11,} {span:>8} {where}  {cut(source.name, width - len(head) - 2)}", file=out)


# ---- threads -------------------------------------------------------------------


def show_threads(threads: Sequence[Thread], whole_ns: int, rows: int, out: TextIO, *, switches: bool = False) -> None:
    show = _show_times if switches else _show_work
    show(threads[:rows], whole_ns, out)
    if len(threads) > rows:
        print(Paint(out)(f"{'':>11} and {len(threads) - rows:,} more threads", "dim"), file=out)


def _show_work(threads: Sequence[Thread], whole_ns: int, out: TextIO) -> None:
    """How much each thread did, and where."""
    print(f"% is of the {duration(whole_ns)} that passed", file=out)
    paint, width = Paint(out), width_of(out)
    pids = len({thread.pid for thread in threads}) > 1
    head = f"{'calls':>11} {'time':>8} {'%':>4} {'waiting':>8} {'GC':>8}" + (f" {'pid':>7}" if pids else "")
    column = THREAD_NAME if width < UNBOUNDED else max([THREAD_NAME, *(cells(thread.name) for thread in threads)])
    print(paint(f"{head}  {'thread':<{column}} most time in", "head"), file=out)
    room = width - len(head) - column - 3
    for thread in threads:
        share = min(thread.self_ns / (whole_ns or 1), 1.0)
        own = paint(f"{duration(thread.self_ns):>8} {share:4.0%}", "hot" if share >= HOT else None)
        pid = f" {thread.pid:>7}" if pids else ""
        name = pad(cut(thread.name, column), column)
        figures = f"{own} {_time(thread.waiting_ns):>8} {_time(thread.gc_ns):>8}{pid}"
        print(f"{thread.calls:>11,} {figures}  {name} {fit(thread.top_shown, room)}", file=out)


def _show_times(threads: Sequence[Thread], whole_ns: int, out: TextIO) -> None:
    """What each thread's time was, where traces tell when threads ran."""
    paint, width = Paint(out), width_of(out)
    pids = len({thread.pid for thread in threads}) > 1
    columns = _time_columns(threads)
    head = f"{'time':>8}" + "".join(f" {name:>{max(8, len(name))}}" for name, _ in columns)
    head += f" {'pid':>7}" if pids else ""
    print(f"of the {duration(whole_ns)} that passed; what is in no column was waiting of another kind", file=out)
    print(paint(f"{head}  thread", "head"), file=out)
    for thread in threads:
        share = min(thread.self_ns / (whole_ns or 1), 1.0)
        line = paint(f"{duration(thread.self_ns):>8}", "hot" if share >= HOT else None)
        line += "".join(f" {_time(of(thread)):>{max(8, len(name))}}" for name, of in columns)
        line += f" {thread.pid:>7}" if pids else ""
        print(f"{line}  {cut(thread.name, max(width - len(head) - 2, 8))}", file=out)


def _time(ns: int | None) -> str:
    return "?" if ns is None else duration(ns) if ns else "-"


def _language_columns(threads: Sequence[Thread]) -> list[tuple[str, Callable[[Thread], int | None]]]:
    """What the interpreter itself makes threads wait for: the GIL, or else locks of objects and a stopped world."""
    columns: list[tuple[str, Callable[[Thread], int | None]]] = []
    if any(not thread.paused for thread in threads):
        columns.append(("GIL", lambda thread: thread.gil_ns))
    if any(thread.paused for thread in threads):
        columns.append(("object", lambda thread: thread.paused.get(OBJECT)))
        columns.append(("world", lambda thread: thread.paused.get(WORLD)))
    return columns


def _time_columns(threads: Sequence[Thread]) -> list[tuple[str, Callable[[Thread], int | None]]]:
    """What a thread's time was; children only where somebody waited for them."""
    columns: list[tuple[str, Callable[[Thread], int | None]]] = [
        ("running", lambda thread: thread.running_ns),
        *_language_columns(threads),
        ("lock", lambda thread: thread.waited_ns("lock")),
        ("I/O", lambda thread: thread.waited_ns("io")),
        ("sleep", lambda thread: thread.waited_ns("sleep")),
    ]
    if any(thread.waited_ns("child") for thread in threads):
        columns.append(("child", lambda thread: thread.waited_ns("child")))
    columns.append(("preempted", lambda thread: thread.preempted_ns))
    return columns


# ---- garbage collections ---------------------------------------------------------


def show_collections(data: Data, start_ns: int, whole_ns: int, rows: int, out: TextIO) -> None:
    paint, width = Paint(out), width_of(out)
    if not data.generations:
        print("no garbage collection was recorded", file=out)
        return
    share = min(data.gc_ns / (whole_ns or 1), 1.0)
    of = "the time" if data.traces == 1 else f"the time of {data.traces:,} processes added up"
    print(f"{plural(data.collections, 'garbage collection')}, {duration(data.gc_ns)}, {share:.1%} of {of}\n", file=out)
    print(paint(f"{'generation':>11} {'count':>9} {'time':>8} {'longest':>8}  collected", "head"), file=out)
    for generation, sums in sorted(data.generations.items()):
        which = "?" if generation < 0 else str(generation)
        more = f", {sums.uncollectable:,} uncollectable" if sums.uncollectable else ""
        times = f"{duration(sums.total_ns):>8} {duration(sums.longest_ns):>8}"
        print(f"{which:>11} {sums.count:>9,} {times}  {sums.collected:,}{more}", file=out)
    print("\n" + paint(f"{'count':>11} {'time':>8}  they began in", "head"), file=out)
    callers = sorted(data.gc_in.items(), key=lambda item: (-item[1].total_ns, item[0]))
    for name, sums in callers[:rows]:
        print(f"{sums.count:>11,} {duration(sums.total_ns):>8}  {fit(name, width - 22)}", file=out)
    if len(callers) > rows:
        print(paint(f"{'':>11} and {len(callers) - rows:,} more functions", "dim"), file=out)
    print("\n" + paint(f"{'longest':>11} {'after':>8} {'generation':>10} {'collected':>10}  thread", "head"), file=out)
    for one in data.long_collections[: min(rows, 5)]:
        which = "?" if one.generation < 0 else str(one.generation)
        found = f"{one.collected:,}" if one.collected >= 0 else "?"
        name = cut(one.thread_name, width - 46)
        times = f"{duration(one.ns):>11} {duration(one.start_ns - start_ns):>8}"
        print(f"{times} {which:>10} {found:>10}  {name}", file=out)
