"""Learns what recording costs, in the process that is about to be recorded: src/replay/costs.h says how the file keeps
it.

Small programs (costs_programs.py) run with and without the hooks of the engine that will record. Some programs are
loops of calls that do nothing: there hooks cost least. In other programs, calls stand among other code, where hooks
cost more. The result is the costs that best explain how much longer these other programs take. A third kind of program
calls functions with variables to free at their end, which is after the exit was recorded. No recorded program is
exactly like these: the error covers the differences that were measured with other programs, and the loops. While it
records, the recorder measures what fresh pieces of the file take, and add_storage() adds that.
"""

from __future__ import annotations

import json
import sys
from time import thread_time_ns

from vestige import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

METADATA = "vestige.costs"
BUDGET = "vestige.budget"
LAYOUT = 1
PYTHON, NATIVE = 1, 2  # kinds of definitions; kind 0 is the time of Python code itself
TURNS, RUNS = 3, 4  # how often the hooks are placed, and how often a program runs with and without them each time
IDLE = ("idle", "numbers")  # programs without calls
AMONG = ("shelves", "shelves_c", "irregular", "words")  # programs with calls among other code
ENDS = ("floats", "wholes", "lists", "text")  # programs that call a function which has something to free at its end
# Of a cost: nine of ten programs differed less from the mean of twenty (proofs/results/compensated.md names them).
LEAST_ERROR = {PYTHON: 0.35, NATIVE: 0.7}
OWN_ERROR = 0.03  # error of the share of Python's own time: programs without calls took that much more or less
TASK = 100  # VST_COSTS_TASK
TASK_IN_CALLS = 20  # cost of introducing a task, in calls of Python functions
END = 101  # VST_COSTS_END
PASSING = 102  # VST_COSTS_PASSING
PASSING_COSTS = sys.version_info < (3, 12)  # on these Pythons, a call that a budget leaves out costs something too
SLOWS_CODE = "profile"  # the engine with which Python takes longer for every instruction
MILLION = 1_000_000
PS = 1000

_learned: dict[tuple[Any, ...], list[int]] = {}  # by the options of the recording; a forked child inherits this


def costs_of(options: dict[str, Any], has_budget: bool = False) -> str:
    """Returns the metadata for a recording with these options: costs, or why they cannot be known."""
    reason = _why_not(options)
    if reason is not None:
        return json.dumps(reason)
    passing = [PASSING, MILLION, 0, MILLION // 2] if has_budget and PASSING_COSTS else []
    return json.dumps(_model_of(options) + passing)


def steering_costs(options: dict[str, Any]) -> tuple[float, float]:
    """Returns the cost of a call in Python and of one in C in ns, for a budget."""
    model = _model_of(options)
    groups = {model[at]: model[at + 1] / PS for at in range(1, len(model), 4)}
    return groups[PYTHON], groups.get(NATIVE, groups[PYTHON])


def _model_of(options: dict[str, Any]) -> list[int]:
    key = (options["engine"], options["c_functions"])
    if key not in _learned:
        _learned[key] = _learn(*key)
    return _learned[key]


def add_storage(costs: str, ns_a_word: float) -> str:
    """Returns the costs, with the measured time that storage took for each record added; a call has two records."""
    model = json.loads(costs)
    if isinstance(model, str) or ns_a_word <= 0:
        return costs
    for at in range(1, len(model), 4):
        if model[at] in (PYTHON, NATIVE):
            model[at + 1] += round(2 * ns_a_word * PS)
            model[at + 3] += round(ns_a_word * PS)
    return json.dumps(model)


def _why_not(options: dict[str, Any]) -> str | None:
    """Returns why costs cannot be known. Left-out calls cost something, too, but nothing counts them."""
    if not options["with_stack"]:
        return "calls of Python functions were not recorded"
    if options["memory"]:
        return "allocations were recorded, and what that costs was not measured"
    if options["record_args"]:
        return "arguments were recorded, and what that costs was not measured"
    left_out = {
        "min_duration_ns": "short calls were left out",
        "include": "functions were left out",
        "exclude": "functions were left out",
        "max_depth": "deep calls were left out",
        "only": "calls outside of some functions were left out",
    }
    for name, what in left_out.items():
        if options[name]:
            return f"{what}, and nothing counted them"
    return None


class _Program:
    """One of the small programs, and the least CPU time of its runs."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.run = run
        self.bare = self.recorded = 1 << 62
        self.calls = [0.0, 0.0, 0.0]  # calls of a run, by kind
        self.span = 0.0  # for a loop: the median recorded duration of the function that it calls

    def longer_by(self, share: float) -> float:
        """Returns how much longer a recorded run takes, without the recorder's share of Python's own time."""
        return self.recorded - self.bare - share * self.recorded

    def span_lacks(self, kind: int, share: float = 0.0) -> float:
        """Returns how much shorter the spans of a loop are than its calls of this kind are without recording."""
        return self.bare / self.calls[kind] - self.span * (1 - share)


def _time(run: Callable[[], object]) -> int:
    best = 1 << 62
    run()
    for _ in range(RUNS):
        begin = thread_time_ns()
        run()
        best = min(best, thread_time_ns() - begin)
    return best


def _count(trace: Any, since: int) -> list[float]:
    """Returns the calls by kind from a window on."""
    kinds = trace.definitions()
    calls = [0.0, 0.0, 0.0]
    for row in trace.tables(["averages"], since=since)["averages"]:
        if row.func and kinds[row.func].kind in (PYTHON, NATIVE):
            calls[kinds[row.func].kind] += row.calls
    return calls


def _measure(by_name: dict[str, _Program], engine: str, native: bool) -> bool:
    """Measures the programs. Returns whether Python's own code is slower while it is recorded."""
    from .costs_programs import CALLED

    programs = list(by_name.values())
    for _ in range(TURNS):
        for program in programs:
            program.bare = min(program.bare, _time(program.run))
        session = _core.Session(None, gc=False, engine=engine, c_functions=native)
        session.create()
        for program in programs:  # each program runs in a window of its own
            session.start()
            try:
                taken = _time(program.run)
            finally:
                session.stop()
            program.recorded = min(program.recorded, taken)
    trace = session.trace()
    later = [0.0, 0.0, 0.0]
    for window in range(len(programs) - 1, -1, -1):
        all_calls = _count(trace, window)
        programs[window].calls = [(a - b) / (1 + RUNS) for a, b in zip(all_calls, later)]
        later = all_calls
    names = trace.functions()
    rows = trace.tables(["functions"], spread=True)["functions"]
    medians = {names[row.func].name: row.total_median_ns for row in rows}
    for name, called in CALLED.items():
        by_name[name].span = medians.get(called, 0.0)
    session.finish()
    return session.engine == SLOWS_CODE


def _solve(rows: list[list[float]]) -> list[float]:
    """Returns the factors of the columns that come nearest to the last column, by least squares."""
    count = len(rows[0]) - 1
    sums = [[sum(row[i] * row[j] for row in rows) for j in range(count + 1)] for i in range(count)]
    for i in range(count):
        for j in range(count):
            if i != j:
                factor = sums[j][i] / sums[i][i]
                sums[j] = [x - factor * y for x, y in zip(sums[j], sums[i])]
    return [sums[i][count] / sums[i][i] for i in range(count)]


def _explain(programs: dict[str, _Program], slows: bool, native: bool) -> tuple[float, float, float]:
    """Returns the recorder's share of Python's own time, and the cost of a call in Python and of one in C: the values
    that best explain how much longer the programs take, each weighted by its own time.
    """
    rows = []
    for program in (programs[name] for name in (IDLE + AMONG if slows else AMONG)):
        columns = [program.calls[PYTHON], program.recorded - program.bare]
        if native:
            columns.insert(1, program.calls[NATIVE])
        if slows:
            columns.insert(0, program.recorded)
        rows.append([column / program.bare for column in columns])
    found = _solve(rows)
    share = min(max(found.pop(0), 0.0), 0.9) if slows else 0.0
    return share, found[0], found[1] if native else 0.0


def _group(kind: int, cost: float, least: float, inside: float) -> list[int]:
    """Returns a group of the model, from the cost among other code and the cost in a loop, in ns. On a busy machine,
    the first may come out too low.
    """
    cost = max(cost, least, 0.0)
    error = max(LEAST_ERROR[kind] * cost, cost - least)
    return [kind, round(cost * PS), round(min(inside, cost) * PS), round(error * PS)]


def _end(loop: _Program, programs: list[_Program], share: float) -> list[int]:
    """Returns the group for the work of functions after their exits: how much more is missing in the spans of these
    programs than in those of a loop of calls that do nothing.
    """
    more = [max(0.0, each.span_lacks(PYTHON, share) - loop.span_lacks(PYTHON)) for each in programs]
    of_span = max(ns / max(each.span, 1.0) for ns, each in zip(more, programs))  # a coarse clock may say 0
    return [END, min(round(of_span * MILLION), MILLION - 1), 0, round(max(more) * PS)]


def _learn(engine: str, native: bool) -> list[int]:
    from . import costs_programs

    runs = costs_programs.make()
    programs = {name: _Program(run) for name, run in runs.items()}
    slows = _measure(programs, engine, native)
    loop, c_loop = programs["python"], programs["native"]
    share, python_cost, c_cost = _explain(programs, slows, native)

    error = OWN_ERROR
    if slows:
        error = max(share / 4, *(abs(share - 1 + programs[name].bare / programs[name].recorded) for name in IDLE))
    model = [LAYOUT, 0, round(share * MILLION), 0, round(error * MILLION)]
    least = loop.longer_by(share) / loop.calls[PYTHON]
    model += _group(PYTHON, python_cost, least, -loop.span_lacks(PYTHON))
    model += [TASK, TASK_IN_CALLS * model[-3], 0, TASK_IN_CALLS * model[-3]]
    model += _end(loop, [programs[name] for name in ENDS], share)
    if native:
        least = c_loop.longer_by(share) / c_loop.calls[NATIVE]
        model += _group(NATIVE, c_cost, least, -c_loop.span_lacks(NATIVE))
    return model
