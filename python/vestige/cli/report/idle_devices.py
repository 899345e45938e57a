"""A cause of findings: a device that had nothing to do for most of the time, and why."""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.labels import plain_name

from .data import Named
from .findings import Finding, heaviest, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .devices import Device
    from .findings import Evidence

MS = 1_000_000
IDLE_SHARE = 0.5  # share of the time between the device's first and last work
IDLE_PASSED, IDLE_NS, IDLE_WORKS = 0.2, 100 * MS, 20
LATE_SHARE = 0.5  # share of the idle time in which nothing was launched


def idle_device(evidence: Evidence) -> Finding | None:
    """Fires for a device that was idle for half of the time between its first and its last work, for a fifth of its
    process's time, and for at least 100 ms, and that ran at least 20 kernels, copies or fills: a few of them at the
    ends of a long program mean nothing.
    """
    idle = [device for device in evidence.devices if _is_idle(evidence, device)]
    if not idle:
        return None
    device = max(idle, key=lambda device: device.use.idle_ns)
    use = device.use
    where: dict[str, Any] = {"device": device.label, "pid": device.pid}
    others = f", and {plural(len(idle) - 1, 'other device')} no less" if len(idle) > 1 else ""
    return Finding(
        "idle device",
        f"{device.label} had nothing to do for {1 - device.busy:.0%} of the {duration(use.span_ns)} between its "
        f"first and last work ({duration(use.idle_ns)} in {plural(use.gaps, 'gap')}){others}"
        f"{_why(evidence, device, where)}.",
        where=where,
        numbers={
            "idle_ns": use.idle_ns,
            "span_ns": use.span_ns,
            "gaps": use.gaps,
            "works": use.works,
            "until_launch_ns": use.unlaunched_ns,
            "passed_ns": evidence.passed_ns,
        },
        look="report --devices",
        ns=use.idle_ns,
    )


def _is_idle(evidence: Evidence, device: Device) -> bool:
    use = device.use
    passed = sum(each["end_ns"] - each["start_ns"] for each in evidence.facts if each["pid"] == device.pid)
    return (
        use is not None
        and use.works >= IDLE_WORKS
        and use.idle_ns >= max(IDLE_SHARE * use.span_ns, IDLE_PASSED * passed, IDLE_NS)
    )


def _why(evidence: Evidence, device: Device, where: dict[str, Any]) -> str:
    """Returns whether launches came late, or work that was launched in time began late."""
    use = device.use
    if not use.launched:
        return "; its launches are not in the trace"
    if use.unlaunched_ns < LATE_SHARE * use.idle_ns:
        delay = duration(use.delay_ns / use.launched)
        return f"; most of it after the next launch was called, works began {delay} later on average"
    late = f"; for {duration(use.unlaunched_ns)} of that the program had launched nothing"
    gap = max(device.gaps, key=lambda gap: gap.unlaunched_ns or 0)
    ns = gap.unlaunched_ns
    if evidence.look is None or not gap.thread_number or not ns:
        return late
    step = Named(None, start_ns=gap.start_ns, duration_ns=ns, pid=device.pid, thread=gap.thread_number)
    function, leaf = heaviest(evidence.look(step), ns)
    if function is None and leaf is None:
        return late
    if function is not None:
        where |= place(function)
    inside = " ".join(
        part
        for part in (
            function.shown if function is not None else "",
            f"({plain_name(leaf.name)})" if leaf is not None else "",
        )
        if part
    )
    return f"{late}, in the longest gap ({duration(gap.idle_ns)}) {gap.thread} was in {inside}"
