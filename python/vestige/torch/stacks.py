"""Folded stacks for flame graphs: one line per stack, with its frames from the outside in and a number."""

from __future__ import annotations

from .event_rows import CALLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .events import Store
    from .results import Results

STACK_METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total")
FORBIDDEN = str.maketrans(" ;\t\n", "____")


def check_metric(metric: str) -> None:
    if metric not in STACK_METRICS:
        raise ValueError(f"metric should be one of: {list(STACK_METRICS)}")


def stacks_of(results: Results) -> Iterable[tuple[Sequence[str], int]]:
    """Returns stacks of calls with own times in ns. Rows that are not calls add their time to the call around them."""
    nodes = results.contexts()
    paths: list[tuple[str, ...]] = []
    for node in nodes:
        known = results.definitions[node.func]
        outer = paths[node.parent] if node.parent is not None else ()
        paths.append((*outer, known.name) if known is not None and known.kind in CALLS else outer)
    return ((path, ns) for path, ns in zip(paths, nodes["self_ns"], strict=True) if path)


def device_stacks_of(store: Store) -> Iterable[tuple[Sequence[str], int]]:
    """Returns stacks with the times of the device activities that they launched."""
    devices = store.devices
    if devices is None:
        return ()
    rows = (row for row in range(store.count) if devices.own_ns(row))
    return ((store.stack(row)[::-1], devices.own_ns(row)) for row in rows if store.stack(row))


def write_stacks(path: Any, stacks: Iterable[tuple[Sequence[str], int]]) -> None:
    """Writes one line for each different stack, in whole µs. Stacks with less than 1 µs are left out, unless all have
    less.
    """
    sums: dict[tuple[str, ...], int] = {}
    for frames, ns in stacks:
        key = tuple(frames)
        sums[key] = sums.get(key, 0) + ns
    lines = [(frames, ns // 1000) for frames, ns in sums.items() if ns >= 1000]
    if not lines:
        lines = [(frames, 1) for frames in sums]
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        for frames, us in lines:
            file.write(";".join(frame.translate(FORBIDDEN) for frame in frames) + f" {us}\n")
