"""The workload that `vestige device check` runs on a GPU, in a process of its own, recorded by torch.profiler or
vestige:

    python -m vestige.cli.device.workload torch|vestige FILE

It has kernels on two streams, copies both ways, a set, an event that a stream waits for, and a graph. It prints the
device and versions as JSON.
"""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

SIZE = 512
ROUNDS = 5


def work(torch: Any, spans: Any) -> Callable[[], None]:
    """Runs the workload once, after a first run for everything that happens only once."""
    cuda = torch.cuda
    side, copied = cuda.Stream(), cuda.Event()
    host = torch.randn(SIZE, SIZE).pin_memory()
    matrix, weights = torch.randn(SIZE, SIZE, device="cuda"), torch.randn(SIZE, SIZE, device="cuda")
    graph, fixed = cuda.CUDAGraph(), torch.zeros(SIZE, device="cuda")
    with cuda.graph(graph):
        result = fixed * 2 + 1

    def once() -> None:
        for number in range(ROUNDS):
            with spans(f"round {number}"):
                product = torch.relu(matrix @ weights)
                with cuda.stream(side):
                    loaded = host.to("cuda", non_blocking=True)
                    copied.record(side)
                cuda.current_stream().wait_event(copied)
                total = (product + loaded).sum()
                torch.zeros(SIZE, SIZE, device="cuda").zero_()
                graph.replay()
            total.cpu()
        cuda.synchronize()

    once()
    assert result is not None
    return once


def record(how: str, path: str) -> dict[str, str]:
    import torch

    activities: Any
    if how == "torch":
        import torch.profiler as profiler

        run = work(torch, profiler.record_function)
        activities = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
        with profiler.profile(activities=activities) as prof:
            run()
        prof.export_chrome_trace(path)
    else:
        import vestige

        run = work(torch, vestige.record_function)
        activities = [vestige.ProfilerActivity.CPU, vestige.ProfilerActivity.CUDA]
        with vestige.profile(activities=activities, with_stack=False) as ours:
            run()
        ours.export_chrome_trace(path)
    return {
        "torch": str(torch.__version__),
        "CUDA": str(torch.version.cuda),
        "GPU": torch.cuda.get_device_name(0),
        "libcupti": ", ".join(sorted(_loaded())),
    }


def _loaded() -> set[str]:
    with open("/proc/self/maps") as file:
        return {line.split()[-1] for line in file if "libcupti.so" in line}


if __name__ == "__main__":
    print(json.dumps(record(sys.argv[1], sys.argv[2])))
