"""Compared with torch.profiler at equal settings: the cost of recording operators in a small training step, the cost of
record_function, the times of start(), stop() and key_averages(), and the memory.

A step of a 64 × 64 MLP (forward, backward, SGD) runs in turns without a profiler, under vestige and under torch's, in
one process; what counts is the step that only a tenth of all were faster than. Starting, stopping and exporting are
not in it.

record_function stands in a loop of its own, written out ten times; the fastest of many blocks, less the same loop
without a span. Off and on, ours and torch's, in turns in one process.

For the rest each tool has a process of its own: the first start() of a profile, 400,000 calls with their stacks (half
Python's, half C's), stop() and key_averages() are timed, and the peak of its memory (VmHWM) is noted. What the process
had before the start, torch included, is not counted. vestige runs three times: the least time and the highest peak
count. torch takes a minute and runs once.
"""

import contextlib
import os
import time

import child
import peers
from report import Table, at_most

# Settings: (keywords of both profiles, the bar).
SETTINGS = {
    "operators": ({"with_stack": False}, 0.7),
    "with_stack": ({"with_stack": True}, 0.65),
    "record_shapes": ({"with_stack": False, "record_shapes": True}, 0.7),
    "shapes, memory, stack": ({"with_stack": True, "record_shapes": True, "profile_memory": True}, 0.7),
}


def make_step():
    import torch

    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(64, 64), torch.randn(64, 64)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()

    return step


def time_steps(step, count, times):
    for _ in range(count):
        begin = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - begin)


def step_ns(settings, turns, count, engines=("auto",)):
    """Returns ns of a step: without a profiler, under each named engine of vestige, under torch."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as theirs

    import vestige

    cpu = [ProfilerActivity.CPU]
    step = make_step()
    times = {name: [] for name in ("without", *engines, "torch")}
    time_steps(step, 50, [])
    for _ in range(turns):
        time_steps(step, count, times["without"])
        for engine in engines:
            vestige.install()  # memory is then what torch's allocator reports, as in torch.profiler
            ours = vestige.profile(engine=engine, **settings)
            vestige.uninstall()
            with ours:
                time_steps(step, 3, [])
                time_steps(step, count, times[engine])
        with theirs(activities=cpu, **settings):
            time_steps(step, 3, [])
            time_steps(step, count, times["torch"])
    return {name: sorted(values)[len(values) // 10] for name, values in times.items()}


# ---- record_function ------------------------------------------------------


SPANS = 100  # spans of one block


def time_spans(make):
    """Returns ns of one span, loop included."""
    begin = time.perf_counter_ns()
    for _ in range(SPANS // 10):
        with make("span"): pass  # fmt: skip
        with make("span"): pass  # fmt: skip
        with make("span"): pass  # fmt: skip
        with make("span"): pass  # fmt: skip
        with make("span"): pass  # fmt: skip
        with make("span"): pass  # fmt: skip
        with make("span"): pass  # fmt: skip
        with make("span"): pass  # fmt: skip
        with make("span"): pass  # fmt: skip
        with make("span"): pass  # fmt: skip
    return (time.perf_counter_ns() - begin) / SPANS


def time_loop():
    """The loop without a span."""
    begin = time.perf_counter_ns()
    for _ in range(SPANS // 10):
        pass
    return (time.perf_counter_ns() - begin) / SPANS


def span_ns(turns, blocks, with_torch):
    """Returns ns of a record_function beyond the loop: {tool: {"on": …, "off": …}}."""
    import vestige

    tools = {"vestige": (vestige.record_function, lambda: vestige.profile(with_stack=False))}
    if with_torch:
        from torch.profiler import ProfilerActivity, profile, record_function

        tools["torch"] = (record_function, lambda: profile(activities=[ProfilerActivity.CPU]))
    best = {name: {"on": float("inf"), "off": float("inf")} for name in tools}
    loop = min(time_loop() for _ in range(1000))
    for _ in range(turns):
        for name, (make, profiler) in tools.items():
            for state, context in (("off", contextlib.nullcontext()), ("on", profiler())):
                with context:
                    least = min(time_spans(make) for _ in range(blocks))
                best[name][state] = min(best[name][state], least - loop)
    return best


def span_table(quick):
    with_torch = peers.torch() is not None
    best = child.run(span_ns, turns=2 if quick else 5, blocks=50 if quick else 400, with_torch=with_torch)
    table = Table("record_function", list(best), unit="µs")
    for state, label, bar in (("on", "while profiling", 0.35), ("off", "when not", 0.15)):
        cost = {name: taken[state] / 1000 for name, taken in best.items()}
        checks = [at_most("µs", cost["vestige"], bar)]
        if with_torch and state == "on":
            share = cost["vestige"] / cost["torch"]
            checks.append(at_most(f"{share:.3f} x torch", share, 0.06))
        table.add(label, cost, checks, digits=3)
    return table


# ---- a whole life ----------------------------------------------------------


def life(name, calls):
    """Returns ms of the first start(), stop() and key_averages() of a profile with `calls` calls, and the additional
    MiB.
    """
    import torch  # noqa: F401  it is there before

    import workloads

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    if name == "torch":
        from torch.profiler import ProfilerActivity, profile

        prof = profile(activities=[ProfilerActivity.CPU], with_stack=True)
    else:
        from vestige import profile

        prof = profile(with_stack=True)
    result, clock = {}, time.perf_counter_ns
    before = child.forget_memory_peak()
    begin = clock()
    prof.start()
    result["first start()"] = (clock() - begin) / 1e6
    for _ in range(calls // 2 // workloads.CALLS):
        workloads.python_function()
        workloads.c_len()
    begin = clock()
    prof.stop()
    result["stop()"] = (clock() - begin) / 1e6
    begin = clock()
    prof.key_averages()
    result["key_averages()"] = (clock() - begin) / 1e6
    result["peak memory"] = child.memory_mib("VmHWM") - before
    return result


def life_tables(quick):
    calls = 100_000 if quick else 400_000
    lives = {
        name: [child.run(life, name=name, calls=calls) for _ in range(times)]
        for name, times in (("vestige", 3), ("torch", 1))
    }
    tools = {
        name: {
            what: (max if what == "peak memory" else min)(figures[what] for figures in all_of_them)
            for what in all_of_them[0]
        }
        for name, all_of_them in lives.items()
    }
    times = Table(f"A profile of {calls:,} calls, with_stack", list(tools), unit="ms")
    for what, bar in (("first start()", 20), ("stop()", 50), ("key_averages()", 500)):
        taken = {name: figures[what] for name, figures in tools.items()}
        times.add(what, taken, [at_most("ms", taken["vestige"], bar)])
    memory = Table("The same, peak of memory beyond what was there before", list(tools), unit="MiB")
    peak = {name: figures["peak memory"] for name, figures in tools.items()}
    share = peak["vestige"] / peak["torch"]
    memory.add("VmHWM", peak, [at_most(f"{share:.3f} x torch", share, 0.2)])
    return [times, memory]


def step_table(quick):
    table = Table("Extra cost of a training step", ["vestige", "torch"], unit="µs")
    for name, (settings, bar) in SETTINGS.items():
        best = child.run(step_ns, settings=settings, turns=5 if quick else 20, count=30 if quick else 60)
        cost = {"vestige": best["auto"] - best["without"], "torch": best["torch"] - best["without"]}
        cost = {tool: ns / 1000 for tool, ns in cost.items()}
        share = cost["vestige"] / cost["torch"]
        table.add(name, cost, [at_most(f"{share:.2f} x torch", share, bar)])
    return table


def measure(quick):
    if not peers.torch():
        return [span_table(quick)]
    return [step_table(quick), span_table(quick), *life_tables(quick)]
