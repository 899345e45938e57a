"""Tracebacks: capturing, naming and keeping them, compared with torch's (if installed) and with Python's own.

All that are compared run in the same process, in turns; the fastest turn counts. Depths are Python frames below the
bench's own few. The stacks that are named and kept are all different; they share their outer frames, as real ones do.
"""

import gc
import time
import traceback

import child
import peers
from report import Table, at_most

DEPTHS = [10, 50, 200]
NAMED, NAMED_DEPTH = 10_000, 50


def tools():
    """{name: (a class with extract and format_all, gather_traceback, symbolize_tracebacks)}"""
    from vestige import traceback as own

    found = {"vestige": (own.CapturedTraceback, own.gather_traceback, own.symbolize_tracebacks)}
    if peers.torch():
        from torch._C import _profiler
        from torch.utils._traceback import CapturedTraceback

        found["torch"] = (CapturedTraceback, _profiler.gather_traceback, _profiler.symbolize_tracebacks)
    return found


def names():
    return ["vestige", *(["torch"] if peers.torch() else [])]


def at_depth(depth, function):
    return function() if depth <= 1 else at_depth(depth - 1, function)


def at_depth_in_c(depth, function):
    """Each call passes through C, so it adds native frames."""
    return function() if depth <= 1 else next(map(at_depth_in_c, [depth - 1], [function]))


def time_calls(function, count):
    """Returns ns per call."""
    calls = range(count)
    begin = time.perf_counter_ns()
    for _ in calls:
        function()
    return (time.perf_counter_ns() - begin) / count


def fastest_in_turns(functions, count, turns):
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(turns):
        for name, function in functions.items():
            best[name] = min(best[name], time_calls(function, count))
    return best


# ---- capture -----------------------------------------------------------------


def capture_ns(depth, turns):
    """Returns ns of each way to capture a traceback, at a depth."""
    functions = {}
    for name, (captured, gather, _) in tools().items():
        functions[f"{name} gather"] = lambda gather=gather: gather(True, False, False)
        functions[f"{name} extract"] = captured.extract
    best = at_depth(depth, lambda: fastest_in_turns(functions, 200, turns))
    best["traceback"] = at_depth(depth, lambda: fastest_in_turns({"": traceback.extract_stack}, 5, turns // 10 + 1))[""]
    return best


def capture_table(quick):
    columns = [*names(), "traceback"]
    table = Table("Taking a traceback of Python frames", columns, unit="ns")
    for depth in DEPTHS:
        best = child.run(capture_ns, depth=depth, turns=100 if quick else 1000)
        for way, bar in (("gather", 0.4), ("extract", 0.25 if depth == 10 else None)):
            values = {name: best[f"{name} {way}"] for name in names()}
            checks = []
            if "torch" in values and bar:
                checks = [at_most("x torch", values["vestige"] / values["torch"], bar)]
            if way == "extract":
                values["traceback"] = best["traceback"]
            label = "gather_traceback" if way == "gather" else "extract"
            table.add(f"{label}, depth {depth}", values, checks, digits=0)
    return table


def native_ns(turns):
    """Returns ns per frame of a native capture with about 40 native frames."""
    from vestige.traceback import gather_traceback

    def take():
        return gather_traceback(False, False, True)

    def measure():
        frames = take().native_frames
        if frames < 40 and depth < 30:
            return None
        best = fastest_in_turns({"take": take, "call": lambda: None}, 200, turns)
        return {"frames": frames, "ns": best["take"] - best["call"]}

    for depth in range(1, 31):
        measured = at_depth_in_c(depth, measure)
        if measured:
            return measured


def native_table(quick):
    table = Table("Taking native frames", ["frames", "ns", "ns a frame"])
    # The hit rate of the unwinder's cache of addresses depends on where libraries were loaded.
    tries = [child.run(native_ns, turns=100 if quick else 300) for _ in range(1 if quick else 5)]
    got = min(tries, key=lambda one: one["ns"])
    if got["frames"]:
        each = got["ns"] / got["frames"]
        values = {"frames": got["frames"], "ns": got["ns"], "ns a frame": each}
        table.add("vestige", values, [at_most("ns", each, 15)])
    else:
        table.add("not in this build", {})
    return table


# ---- names -------------------------------------------------------------------


def different_stacks(take, count, depth):
    """Makes tracebacks that all differ: a hundred lines of code call a hundred lines that capture one each."""
    lines = 100
    kept = []
    scope = {"put": kept.append, "take": take}
    inner = "\n".join(["def inner():", *["    put(take())"] * lines])
    outer = "\n".join(["def outer():", *["    inner()"] * (count // lines)])
    exec(compile(inner, "<inner>", "exec"), scope)
    exec(compile(outer, "<outer>", "exec"), scope)
    at_depth(depth - 4, scope["outer"])
    assert len(kept) == count
    return kept


def naming_ms(count, turns):
    """Returns ms to name and to format this many tracebacks."""
    found = tools()
    gathered = {
        name: different_stacks(lambda gather=gather: gather(True, False, False), count, NAMED_DEPTH)
        for name, (_, gather, _) in found.items()
    }
    captured = {name: different_stacks(kind.extract, count, NAMED_DEPTH) for name, (kind, _, _) in found.items()}
    best = {}
    for _ in range(turns):
        for name, (kind, _, symbolize) in found.items():
            for way, function, given in (
                ("symbolize", symbolize, gathered[name]),
                ("format", kind.format_all, captured[name]),
            ):
                gc.collect()
                begin = time.perf_counter_ns()
                function(given)
                taken = (time.perf_counter_ns() - begin) / 1e6
                best[f"{name} {way}"] = min(taken, best.get(f"{name} {way}", taken))
    return best


def first_ms(name):
    """Returns ms of the first symbolization in a process."""
    _, gather, symbolize = tools()[name]
    taken = gather(True, False, False)
    begin = time.perf_counter_ns()
    symbolize([taken])
    return (time.perf_counter_ns() - begin) / 1e6


def naming_table(quick):
    count = 1000 if quick else NAMED
    table = Table(f"Naming {count:,} different tracebacks of depth {NAMED_DEPTH}", names(), unit="ms")
    best = child.run(naming_ms, count=count, turns=2 if quick else 5)
    for way, label, bar in (("symbolize", "symbolize_tracebacks", 1), ("format", "format_all", 0.5)):
        values = {name: best[f"{name} {way}"] for name in names()}
        checks = [at_most("x torch", values["vestige"] / values["torch"], bar)] if "torch" in values else []
        table.add(label, values, checks)
    table.add("the first one", {name: child.run(first_ms, name=name) for name in names()}, digits=2)
    return table


# ---- memory ------------------------------------------------------------------


def kept_bytes(name, count):
    """Returns bytes per traceback that is kept: of a new stack, and of a stack seen before."""
    _, gather, _ = tools()[name]

    def take():
        return gather(True, False, False)

    first = different_stacks(take, 1000, NAMED_DEPTH)  # first use: everything that is made only once is made now
    before = child.forget_memory_peak()
    new = different_stacks(take, count, NAMED_DEPTH)
    middle = child.memory_mib()
    again = [take() for _ in range(100 * count)]
    after = child.memory_mib()
    assert len(first) + len(new) + len(again) == 1000 + 101 * count
    return {"new": (middle - before) * (1 << 20) / count, "again": (after - middle) * (1 << 20) / len(again)}


def memory_table(quick):
    table = Table("Memory of a traceback that is kept", names(), unit="bytes")
    count = 2000 if quick else NAMED
    got = {name: child.run(kept_bytes, name=name, count=count) for name in names()}
    new = {name: of["new"] / NAMED_DEPTH for name, of in got.items()}
    again = {name: of["again"] for name, of in got.items()}
    table.add("a new stack, a frame", new, [at_most("bytes", new["vestige"], 16)])
    table.add("one seen before", again, [at_most("bytes", again["vestige"], 16)])
    return table


def measure(quick):
    return [capture_table(quick), native_table(quick), naming_table(quick), memory_table(quick)]
