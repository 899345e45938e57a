"""The tree in sections: the main thread, each event loop, and all other threads together, with how long each worked.
Waits appear where they happen. The report after `vestige run` and `vestige report --tree` show equal lines.
"""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.base.terminal import Paint, cut

from .data import Node, merge_nodes
from .notes import passed_of
from .tree import choose, draw, fold, shorten, sort

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from vestige.reading.report_columns import Column

    from .data import Data, Named

MIN_SHARE = 0.01
MAIN_ROWS, OTHER_ROWS, ALL_ROWS = 14, 8, 60  # rows of a section, unless -n gives a number
LOOPS = 4  # the most event loops with sections of their own
WORK = 0.1  # if other threads did at least this share of all work, they get a section
THREADS = 8  # the most lines about threads
OUTSIDE = 0.05  # share of the time outside of recorded calls that gets a line


class Section:
    def __init__(self, title: str, root: Node, whole_ns: int, rows: int) -> None:
        self.title, self.root = title, root
        self.whole_ns = max(whole_ns, 1)
        self.rows = rows

    def lines(self, columns: Sequence[Column], width: int, paint: Paint, options: Any = None) -> list[str]:
        """Returns the lines of the section. `options`: those of the command line, or None for the defaults."""
        show_all = bool(options and options.all)
        least_ns = self.whole_ns * (options.min if options else MIN_SHARE)
        lines = fold(self.root, self.whole_ns, libraries=not show_all)
        if options:
            sort(lines, options.sort)
        rows = options.n if options and options.n else ALL_ROWS if show_all else self.rows
        chosen = choose(lines, rows, least_ns)
        if len(chosen) == rows and not show_all:
            # all rows are used: leave out calls whose time is nearly all in one call
            shorten(lines)
            chosen = choose(lines, rows, least_ns)
        drawn = draw(lines, self.whole_ns, chosen, width, paint, columns)
        missing = self.whole_ns - sum(line.total_ns for line in lines)
        if missing >= OUTSIDE * self.whole_ns and not columns:
            share = f"{missing / self.whole_ns:.0%}"
            drawn.append(paint(f"{duration(missing):>8}  {share:>5}  (outside of recorded calls)", "dim"))
        return drawn


def _name(thread: Named, data: Data) -> str:
    return f"{thread.name} of process {thread.pid}" if data.traces > 1 else str(thread.name)


class Sections:
    """Returns the sections. `by_cpu`: times are running times, so a thread's whole time is their sum."""

    def __init__(self, data: Data, facts: Sequence[dict[str, Any]], *, by_cpu: bool = False) -> None:
        self._data = data
        self._passed = {each["pid"]: passed_of(each) for each in reversed(facts)}
        self._by_cpu = by_cpu
        self.all: list[Section] = []
        self.others: list[Named] = []
        own = self._own_threads(facts)
        for thread in own:
            self._add(thread, MAIN_ROWS if thread is own[0] else OTHER_ROWS)
        shown = {(thread.pid, thread.thread) for thread in own}
        self.others = [thread for thread in data.threads if (thread.pid, thread.thread) not in shown]
        self._add_others([root for key, root in data.trees.items() if key not in shown])

    def _own_threads(self, facts: Sequence[dict[str, Any]]) -> list[Named]:
        """Returns the main thread of the first process, and threads that run event loops."""
        data = self._data
        threads = [thread for thread in data.threads if (thread.pid, thread.thread) in data.trees]
        mains = [thread for thread in threads if facts and thread.pid == facts[0]["pid"] == thread.tid]
        loops = [thread for thread in threads if (thread.pid, thread.thread) in data.steps.loops]
        loops.sort(key=lambda thread: -thread.self_ns)
        own = [*mains[:1], *(thread for thread in loops[:LOOPS] if thread not in mains[:1])]
        return own or sorted(threads, key=lambda thread: thread.first_ns)[:1]

    def _add(self, thread: Named, rows: int) -> None:
        is_main = thread.tid == thread.pid and not self._by_cpu
        lasted = self._passed.get(thread.pid, 0) if is_main else thread.last_ns - thread.first_ns
        root = self._data.trees[thread.pid, thread.thread]
        whole_ns = root.total_ns if self._by_cpu else max(lasted, root.total_ns)
        self.all.append(Section(f"{_name(thread, self._data)}, {duration(whole_ns)}", root, whole_ns, rows))

    def _add_others(self, roots: Sequence[Node]) -> None:
        data = self._data
        work = sum(map(data.work_of, self.others))
        if not roots or work < WORK * sum(map(data.work_of, data.threads)):
            return
        whole = Node()
        for root in roots:
            merge_nodes(whole, root)
        whole_ns = sum(thread.self_ns for thread in self.others)
        title = f"{plural(len(self.others), 'other thread')}, {duration(whole_ns)} added up"
        self.all.append(Section(title, whole, whole_ns, OTHER_ROWS))

    def lines(self, columns: Sequence[Column], width: int, paint: Paint, options: Any = None) -> list[str]:
        """Writes the sections, without a title if there is only one."""
        found: list[str] = []
        for section in self.all:
            if len(self.all) > 1 or self.others:
                found.append(paint(cut(section.title, width), "head"))
            found += section.lines(columns, width, paint, options)
        return found + self._thread_lines(width)

    def _thread_lines(self, width: int) -> list[str]:
        """Writes how long other threads worked, the busiest first."""
        work_of = self._data.work_of
        ranked = sorted(self.others, key=lambda thread: (-work_of(thread), thread.first_ns))
        found = ["other threads, the busiest first:"] if ranked else []
        for thread in ranked[:THREADS]:
            waiting = f", waited {duration(thread.waiting_ns)}" if thread.waiting_ns else ""
            most = f", most in {thread.top_shown}" if thread.top_shown else ""
            line = f"{_name(thread, self._data)}: worked {duration(work_of(thread))}{waiting}{most}"
            found.append(f"  {cut(line, width - 2)}")
        if ranked[THREADS:]:
            work = duration(sum(map(work_of, ranked[THREADS:])))
            found.append(f"  {plural(len(ranked) - THREADS, 'more thread')}: worked {work} together")
        return found
