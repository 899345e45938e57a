"""The cause `logging`: the program spends much of its time writing lines, one by one."""

from __future__ import annotations

from vestige.base.quantities import duration, plural
from vestige.reading.kinds import NATIVE
from vestige.reading.labels import plain_name

from .findings import Finding, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .data import Node
    from .findings import Evidence

LINES, SHARE = 1_000, 0.2
LIBRARIES = ("logging", "loguru", "structlog")


class Lines:
    """The lines that one function writes."""

    def __init__(self, caller: Node, node: Node) -> None:
        self.caller, self.node = caller, node
        self.count = self.ns = 0


def _writes(node: Node) -> str:
    """Returns the name of a library, `print` or `flush`, if each call of the function writes a line in that way; else
    "".
    """
    if node.kind != NATIVE:
        return node.library if node.library in LIBRARIES else ""
    name = plain_name(node.name)
    return name if name == "print" or (name == "flush" and "TextIOWrapper" in node.name) else ""


def logging(evidence: Evidence) -> Finding | None:
    """Fires if a function logs, prints, or writes and flushes at least 1,000 lines, which took a fifth of the time."""
    places = evidence.places
    inside: list[bool] = []
    found: dict[tuple[str, str], Lines] = {}
    for at, node in enumerate(places.nodes):
        parent = places.parents[at]
        by = _writes(node)
        around = parent >= 0 and inside[parent]
        inside.append(bool(by) or around)
        if not by or around or places.importing[at] or parent < 0:
            continue
        caller = places.caller(at)
        lines = found.setdefault((caller.shown, by), Lines(caller, node))
        lines.count += node.calls
        lines.ns += node.total_ns
        if by == "flush":  # add the time of the writes before it
            lines.ns += sum(
                each.total_ns
                for each in places.nodes[parent].children.values()
                if each.kind == NATIVE and plain_name(each.name) == "write"
            )
        if node.total_ns > lines.node.total_ns:
            lines.node = node
    worst = max(found.values(), key=lambda lines: lines.ns, default=None)
    if worst is None or worst.count < LINES or worst.ns < SHARE * evidence.rest_ns:
        return None
    name = plain_name(worst.node.name) if worst.node.kind == NATIVE else worst.node.shown
    verb = "writes" if worst.node.kind == NATIVE else "logs"
    return Finding(
        "logging",
        f"{worst.caller.shown} {verb} {plural(worst.count, 'line')} by {name}: {duration(worst.ns)} "
        f"({evidence.share(worst.ns)}), {duration(worst.ns / worst.count)} each.",
        where={**place(worst.caller), "calls": worst.node.shown},
        numbers={"lines": worst.count, "total_ns": worst.ns, "passed_ns": evidence.passed_ns},
        look="report --tree",
        ns=worst.ns,
    )
