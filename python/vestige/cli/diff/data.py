"""Compares the two sides of a `vestige diff`, function by function. A side is one run of a program or several; a run is
a trace with those of the processes it started.
"""

from __future__ import annotations

from vestige._core import TraceError
from vestige.base.failure import Failure, explain
from vestige.base.terminal import Progress
from vestige.cli.report.data import BUDGET, Data, budget_of, shown_name
from vestige.cli.report.lines import TABLE as LINES
from vestige.reading.inputs import Inputs, find_traces
from vestige.reading.kinds import PYTHON

from .noise import DISTURBANCE, FLOOR, UNKNOWN, Change, compare_runs, compare_single, floor_of, median, spread_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from vestige._core import Function
    from vestige.cli.patterns import Patterns
    from vestige.cli.report.data import Named, Node
    from vestige.cli.report.lines import Lines
    from vestige.reading.inputs import Source

    Key = tuple[int, str, str, int]

CALLS_FOR_ERROR = 30  # the error of a function with fewer calls is unknown
NEGLIGIBLE = 0.001  # share of the whole; smaller effects do not matter
LEAST = 0.005  # relative noise between runs, however well they agree
# Functions with fewer calls, or with a smaller share of the time, do not count for the noise between runs.
CALLS_TO_TELL, SHARE_TO_TELL = 50, 0.001


class Sums:
    """The sums of a function in one run. Errors are standard errors, as far as the run's calls show them."""

    __slots__ = ("calls", "outer", "self_error", "self_ns", "self_typical", "total_ns", "total_typical")

    def __init__(self) -> None:
        self.calls = self.outer = self.self_ns = self.total_ns = 0
        self.self_error: float | None = 0.0  # error of self_ns
        # The median call and its error, of the process with most of the calls.
        self.self_typical: tuple[float, float | None] = (0.0, 0.0)
        self.total_typical: tuple[float, float | None] = (0.0, 0.0)

    def add(self, row: Any) -> None:
        """Adds a row of the table `functions`, which has the spread of calls."""
        is_known = row.calls >= CALLS_FOR_ERROR and row.self_mean_error_ns is not None
        error = row.self_mean_error_ns * row.calls if is_known else None
        self.self_error = None if error is None or self.self_error is None else (self.self_error**2 + error**2) ** 0.5
        if row.calls > self.calls / 2:
            self.self_typical = _typical(row.calls, row.self_ns, row.self_median_ns, row.self_median_error_ns)
        if row.outer_calls > self.outer / 2:
            self.total_typical = _typical(row.outer_calls, row.total_ns, row.total_median_ns, row.total_median_error_ns)
        self.calls += row.calls
        self.outer += row.outer_calls
        self.self_ns += row.self_ns
        self.total_ns += row.total_ns


def _typical(calls: int, ns: int, median_ns: float | None, error_ns: float | None) -> tuple[float, float | None]:
    """Returns the time of a typical call, and its error if known."""
    if calls < CALLS_FOR_ERROR or median_ns is None:
        return ns / (calls or 1), None
    return median_ns, error_ns


class Run:
    """One run: its functions, and how long it took."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self.functions: dict[Key, Sums] = {}
        self.names: dict[Key, str] = {}
        self.keys: dict[str, Key] = {}  # by shown name
        self.calls = 0
        self._patterns: Patterns | None = None
        self._data: Data | None = None
        self.budgets: list[Named] = []
        self._error: float | None = None
        self.ns = max(s.facts["end_ns"] for s in sources) - min(s.facts["start_ns"] for s in sources)

    @property
    def error(self) -> float:
        """Returns how much of the run's time is chance: the error of all its functions together."""
        if self._error is None:
            self._error = sum((sums.self_error or 0.0) ** 2 for sums in self.functions.values()) ** 0.5
        return self._error

    @property
    def path(self) -> str:
        return self.sources[0].path

    @property
    def lost(self) -> int:
        return sum(source.facts["lost"] + source.facts["dropped"] for source in self.sources)

    @property
    def tree(self) -> Node:
        """Returns the tree of calls of all threads; it is read when something asks for it."""
        return self._read_tree().tree

    @property
    def lines(self) -> Lines:
        return self._read_tree().lines

    def _read_tree(self) -> Data:
        if self._data is None:
            self._data = Data()
            choose = self._patterns.left_out if self._patterns is not None else None
            for source in self.sources:
                try:
                    with Progress(f"reading the calls of {source.path}") as progress:
                        self._data.add(
                            source.open(),
                            source.metadata,
                            ["calls", LINES],
                            choose=choose,
                            fold_imports=True,
                            progress=progress,
                        )
                except (OSError, TraceError) as error:
                    raise Failure(explain(source.path, error)) from None
        return self._data

    def read(self, source: Source, patterns: Patterns, progress: Progress) -> None:
        self._patterns = patterns
        trace = source.open()
        functions = trace.functions()
        marks = bytearray(len(functions))
        for number in patterns.left_out(functions):
            marks[number] = 1
        keys = keys_of(functions)
        read = trace.tables(("functions", *BUDGET), spread=True, marks=bytes(marks), progress=progress)
        self.budgets += budget_of(read, source.metadata, functions)
        for row in read["functions"]:
            key, function = keys[row.func], functions[row.func]
            if key is None or function is None or not row.calls:
                continue
            self.names[key] = shown_name(function)
            self.keys[shown_name(function)] = key
            self.functions.setdefault(key, Sums()).add(row)
            self.calls += row.calls


def reduced_in(runs: Iterable[Run]) -> list[str]:
    """Returns the functions whose estimates would be larger if the threads had had more time."""
    return list(dict.fromkeys(name for run in runs for budget in run.budgets for name in budget.reduced))


def keys_of(functions: Sequence[Function | None]) -> list[Key | None]:
    """Returns keys that identify functions in any version of the program: file, name, and number among the functions of
    this name in order of their lines. The line itself changes when code above it changes.
    """
    lines: dict[tuple[int, str, str], list[int]] = {}
    for function in functions:
        if function is not None:
            lines.setdefault(_name_of(function), []).append(function.line)
    for found in lines.values():
        found[:] = sorted(set(found))
    return [f and (*_name_of(f), lines[_name_of(f)].index(f.line)) for f in functions]


def _name_of(function: Function) -> tuple[int, str, str]:
    shown = function.shown_file if function.kind == PYTHON else ""
    return function.kind, shown, function.name.partition(" at 0x")[0]


def read_side(path: str, children: bool, patterns: Patterns) -> tuple[list[Run], Inputs]:
    """Returns the runs of a file or folder."""
    inputs = find_traces([path], children=children)
    runs = [Run(sources) for sources in _runs_of(inputs.sources)]
    sources = [source for run in runs for source in run.sources]
    records = sum(source.facts["records"] for source in sources) or 1
    done = 0.0
    for run in list(runs):
        for source in run.sources:
            part = source.facts["records"] / records
            try:
                with Progress(f"reading {source.path}", done, part) as progress:
                    run.read(source, patterns, progress)
            except (OSError, TraceError) as error:
                inputs.fail(source, error)
                if run in runs:
                    runs.remove(run)
            done += part
    return runs, inputs


def _runs_of(sources: Sequence[Source]) -> list[list[Source]]:
    """Splits traces into runs: each family is a run; all ranks of a distributed program together are one run."""
    families: dict[str, list[Source]] = {}
    for source in sources:
        families.setdefault(source.family, []).append(source)
    ranks = [family[0].rank for family in families.values()]
    if len(ranks) > 1 and None not in ranks and len(set(ranks)) == len(ranks):
        return [list(sources)]
    return list(families.values())


class Row:
    """The changes of one function."""

    calls: tuple[float, float]
    self_time: Change  # self time of all calls of a run
    self_call: Change  # self time of the median call
    total_call: Change
    total_time: tuple[float, float]
    typical_share: float  # share of the run's time, computed from the median call
    total_share: float
    effect: float  # ns
    is_new: bool
    is_gone: bool
    is_negligible: bool

    def __init__(self, name: str, kind: int) -> None:
        self.name, self.kind = name, kind

    @property
    def is_significant(self) -> bool:
        """True if the change is more than chance, and large enough to matter."""
        return not self.is_negligible and (self.self_time.is_significant or self.self_call.is_significant)

    # ---- as report_columns.DIFF has it

    @property
    def effect_size(self) -> float:
        return abs(self.effect)

    @property
    def calls_change(self) -> Change:
        return Change(*self.calls, 0)

    @property
    def total_change(self) -> Change:
        return Change(*self.total_time, 0)


class Comparison:
    """Compares both sides, function by function."""

    def __init__(self, before: list[Run], after: list[Run]) -> None:
        self.before, self.after = before, after
        self.several = len(before) > 1 or len(after) > 1
        self.floor = self._general_noise()
        self.whole = self._whole()
        names: dict[Key, str] = {}
        for run in (*before, *after):
            names.update(run.names)
        self.by_key = {key: self._row(key, name) for key, name in names.items()}
        self.rows = list(self.by_key.values())

    # ---- noise that all have ---------------------------------------------------

    def _general_noise(self) -> float:
        """Returns the relative noise between runs, from functions that are called often and take long enough."""
        if not self.several:
            a, b = self.before[0], self.after[0]
            told = [key for key in a.functions.keys() & b.functions.keys() if _tells(a, key) and _tells(b, key)]
            return floor_of([_typical_of(b, key) / _typical_of(a, key) for key in told if _typical_of(a, key)])
        spreads = []
        for side in (self.before, self.after):
            for key in side[0].functions if len(side) > 1 else ():
                if all(key in run.functions and _tells(run, key) for run in side):
                    spreads.append(spread_of([_typical_of(run, key) for run in side]) or 0.0)
        return max(median(spreads), LEAST) if spreads else FLOOR

    def _whole(self) -> Change:
        return self._change([(run.ns, run.error) for run in self.before], [(run.ns, run.error) for run in self.after])

    def _change(self, before: list[tuple[float, float]], after: list[tuple[float, float]]) -> Change:
        """Compares one figure. Takes (value, error) of each run."""
        if self.several:
            return compare_runs(before, after, self.floor)
        return compare_single(before[0][0], after[0][0], (before[0][1], after[0][1]), self.floor)

    # ---- one function -------------------------------------------------------------

    def _row(self, key: Key, name: str) -> Row:
        row = Row(name, key[0])
        before = [run.functions.get(key, _NOTHING) for run in self.before]
        after = [run.functions.get(key, _NOTHING) for run in self.after]
        row.is_new = not any(sums.calls for sums in before)
        row.is_gone = not any(sums.calls for sums in after)
        row.calls = (_mean(sums.calls for sums in before), _mean(sums.calls for sums in after))
        row.self_time = self._compare(key, lambda sums: (sums.self_ns, sums.self_error), absent=True)
        row.self_call = self._compare(key, lambda sums: sums.self_typical)
        row.total_call = self._compare(key, lambda sums: sums.total_typical)
        row.total_time = (_mean(sums.total_ns for sums in before), _mean(sums.total_ns for sums in after))
        row.typical_share = row.self_call.after * row.calls[1] / (self.whole.after or 1)
        outer = _mean(sums.outer for sums in after)
        row.total_share = row.total_call.after * outer / (self.whole.after or 1)
        row.effect = self._effect(row)
        row.is_negligible = abs(row.effect) < NEGLIGIBLE * max(self.whole.before, self.whole.after)
        return row

    @staticmethod
    def _effect(row: Row) -> float:
        """Returns how much a function's change adds to the whole: by its time, or, if that change is within the noise,
        by its typical call.
        """
        if row.self_time.is_significant or not row.self_call.is_significant or row.is_new or row.is_gone:
            return row.self_time.difference
        return row.self_call.after * row.calls[1] - row.self_call.before * row.calls[0]

    def _compare(
        self, key: Key, figure: Callable[[Sums], tuple[float, float | None]], *, absent: bool = False
    ) -> Change:
        """Compares a figure of one function. With `absent`, a run without the function counts as 0; otherwise it is
        left out.
        """
        sides = []
        for runs in (self.before, self.after):
            side = [
                _with_error(run, *figure(run.functions.get(key, _NOTHING)))
                for run in runs
                if absent or key in run.functions
            ]
            sides.append(side or [(0.0, 0.0)])
        return self._change(*sides)


_NOTHING = Sums()


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def _with_error(run: Run, value: float, error: float | None) -> tuple[float, float]:
    """A function with too few calls to measure its error gets the largest of three estimates: a part of its value, its
    share of the run's error, and one disturbance, as when another program had the processor.
    """
    if error is None:
        share = min(value / (run.ns or 1), 1.0)
        error = max(UNKNOWN * value, run.error * share**0.5, DISTURBANCE)
    return value, error


def _typical_of(run: Run, key: Key) -> float:
    return run.functions[key].self_typical[0]


def _tells(run: Run, key: Key) -> bool:
    sums = run.functions[key]
    return sums.calls >= CALLS_TO_TELL and sums.self_ns >= SHARE_TO_TELL * run.ns
