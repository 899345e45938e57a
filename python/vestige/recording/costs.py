"""Learns what recording costs, in the process that is about to be recorded: include/vestige/costs.h says how the file
keeps it.

Small programs run with and without the hooks of the engine that will record. One is a loop of calls that do nothing,
where hooks cost least; the others (costs_programs.py) have calls among other code, where they cost more. Which of them
the program to be recorded is like is not known: the cost is their mean, and the error covers all of them. While it
records, the recorder measures what fresh pieces of the file take, and add_storage() adds that.
"""

from __future__ import annotations

import json
from time import thread_time_ns

from vestige import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

METADATA = "vestige.costs"
BUDGET = "vestige.budget"
LAYOUT = 1
PYTHON, NATIVE = 1, 2  # kinds of definitions; 0 is the time of Python code itself
TURNS, RUNS = 3, 4  # the hooks are placed so often; runs of a program with and without them each time
LEAST_ERROR = 0.4  # of a cost: so much programs were seen to differ from those here (proofs/compensated.py)
SLOWS_CODE = "profile"  # the engine, up to 3.11, with which Python runs every instruction slower
MILLION = 1_000_000
PS = 1000

_learned: dict[tuple[Any, ...], list[int]] = {}  # by what was recorded with; a forked child has it, too


def costs_of(options: dict[str, Any], has_budget: bool = False) -> str:
    """The metadata for a recording with these options of a session: costs, or why they cannot be known."""
    reason = "functions were left out to stay within a budget" if has_budget else _why_not(options)
    return json.dumps(_model_of(options) if reason is None else reason)


def steering_costs(options: dict[str, Any]) -> tuple[float, float]:
    """What a call in Python and one in C cost in ns, for a budget."""
    model = _model_of(options)
    groups = {model[at]: model[at + 1] / PS for at in range(1, len(model), 4)}
    return groups[PYTHON], groups.get(NATIVE, groups[PYTHON])


def _model_of(options: dict[str, Any]) -> list[int]:
    key = (options["engine"], options["native"])
    if key not in _learned:
        _learned[key] = _learn(*key)
    return _learned[key]


def add_storage(costs: str, ns_a_word: float) -> str:
    """The same with what the pieces of the file took in the recording, which every call's two records share."""
    model = json.loads(costs)
    if isinstance(model, str) or ns_a_word <= 0:
        return costs
    for at in range(1, len(model), 4):
        if model[at]:
            model[at + 1] += round(2 * ns_a_word * PS)
            model[at + 3] += round(ns_a_word * PS)
    return json.dumps(model)


def _why_not(options: dict[str, Any]) -> str | None:
    """Calls that are left out cost, too, and nothing counts them."""
    if not options["python"]:
        return "calls of Python functions were not recorded"
    if options["memory"]:
        return "allocations were recorded, and what that costs was not measured"
    if options["log_args"]:
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
    """One of the programs that are run, and the least CPU time of its runs."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.run = run
        self.bare = self.recorded = 1 << 62
        self.calls = [0.0, 0.0, 0.0]  # by kind, of a run

    def longer_by(self, share: float) -> float:
        """What a run takes longer, the recorder's share of Python's own time apart."""
        return self.recorded - self.bare - share * self.recorded


def _time(run: Callable[[], object]) -> int:
    best = 1 << 62
    run()
    for _ in range(RUNS):
        begin = thread_time_ns()
        run()
        best = min(best, thread_time_ns() - begin)
    return best


def _count(trace: Any, since: int) -> list[float]:
    """Calls by kind from a window on."""
    kinds = trace.definitions()
    calls = [0.0, 0.0, 0.0]
    for number, _, count, *_ in trace.averages(since=since):
        if number and kinds[number][0] in (PYTHON, NATIVE):
            calls[kinds[number][0]] += count
    return calls


def _measure(programs: list[_Program], engine: str, native: bool) -> tuple[dict[int, float], bool]:
    """Fills the programs in. Gives, by kind, the median duration of the calls of the function that is called most, and
    whether Python's own code is slower while it is recorded."""
    for _ in range(TURNS):
        for program in programs:
            program.bare = min(program.bare, _time(program.run))
        session = _core.Session(None, gc=False, engine=engine, native=native)
        session.create()
        for program in programs:  # each in a window of its own
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
    kinds = trace.definitions()
    rows = sorted(trace.report(functions=True, spread=True)["functions"], key=lambda row: row[1])
    medians = {kinds[row[0]][0]: row[9][1] for row in rows}
    session.finish()
    return medians, session.engine == SLOWS_CODE


def _group(kind: int, costs: list[float], inside: float) -> list[int]:
    """A group of the model, from the costs that were found, in ns."""
    mean = max(sum(costs) / len(costs), 0.0)
    error = max(LEAST_ERROR * mean, *(abs(cost - mean) for cost in costs))
    return [kind, round(mean * PS), round(min(inside, mean) * PS), round(error * PS)]


def _learn(engine: str, native: bool) -> list[int]:
    from . import costs_programs

    runs = costs_programs.make()
    programs = {name: _Program(run) for name, run in runs.items()}
    medians, slows = _measure(list(programs.values()), engine, native)
    idle, loop, c_loop = programs["idle"], programs["python"], programs["native"]
    share = max(0.0, 1 - idle.bare / idle.recorded) if slows else 0.0

    c_cost = c_loop.longer_by(share) / c_loop.calls[NATIVE] if native else 0.0

    def cost(name: str) -> float:
        program = programs[name]
        return (program.longer_by(share) - c_cost * program.calls[NATIVE]) / program.calls[PYTHON]

    model = [LAYOUT]
    if share:
        model += [0, round(share * MILLION), 0, round(share * MILLION / 4)]
    inside = medians[PYTHON] - loop.bare / loop.calls[PYTHON]
    model += _group(PYTHON, [cost("python"), cost("shelves"), cost("irregular")], inside)
    if native:
        mixed = programs["shelves_c"]
        among = (mixed.longer_by(share) - cost("shelves") * mixed.calls[PYTHON]) / mixed.calls[NATIVE]
        inside = medians[NATIVE] - c_loop.bare / c_loop.calls[NATIVE]
        model += _group(NATIVE, [c_cost, among], inside)
    return model
