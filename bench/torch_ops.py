"""Operators: what recording them costs a small training step, beside torch.profiler at the same settings.

A step of a 64 × 64 MLP (forward, backward, SGD) runs in turns without a profiler, under vestige and under torch's, in
one process; of each the step counts that only a tenth of all were faster than. Starting, stopping and exporting are not
in it.
"""

import time

import child
import peers
from report import Table, at_most

# Settings: (of both profiles, the bar).
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


def step_ns(settings, turns, count):
    """ns of a step: without, under vestige, under torch."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as theirs

    import vestige

    cpu = [ProfilerActivity.CPU]
    step = make_step()
    times = {"without": [], "vestige": [], "torch": []}
    time_steps(step, 50, [])
    for _ in range(turns):
        time_steps(step, count, times["without"])
        vestige.install()  # memory is then what torch's allocator reports, as torch.profiler has it
        ours = vestige.profile(**settings)
        vestige.uninstall()
        with ours:
            time_steps(step, 3, [])
            time_steps(step, count, times["vestige"])
        with theirs(activities=cpu, **settings):
            time_steps(step, 3, [])
            time_steps(step, count, times["torch"])
    return {name: sorted(values)[len(values) // 10] for name, values in times.items()}


def measure(quick):
    table = Table("Extra cost of a training step", ["vestige", "torch"], unit="µs")
    if not peers.torch():
        table.add("torch is not installed", {})
        return [table]
    for name, (settings, bar) in SETTINGS.items():
        best = child.run(step_ns, settings=settings, turns=5 if quick else 20, count=30 if quick else 60)
        cost = {tool: (best[tool] - best["without"]) / 1000 for tool in ("vestige", "torch")}
        share = cost["vestige"] / cost["torch"]
        table.add(name, cost, [at_most(f"{share:.2f} x torch", share, bar)])
    return [table]
