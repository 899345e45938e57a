"""Answers with the findings of a trace for agents: each with its place, its numbers, and questions to ask next."""

from __future__ import annotations

import os

from vestige.base.quantities import duration
from vestige.cli.report.command import find_causes

from .bounded import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vestige.cli.report.findings import Finding

    from .folder import Folder


def findings(folder: Folder, trace: str, max_tokens: int) -> str:
    """Answers with the findings, the most important first."""
    path = folder.trace(trace)
    found = find_causes([path])
    answer = Answer(max_tokens)
    answer.add(f"{folder.id_of(path)}: {len(found) or 'no'} finding{'s' * (len(found) != 1)}")
    if not found:
        answer.add("no cause stands out; `tree` shows where the time went")
    for number, finding in enumerate(found, 1):
        answer.add(f"{number}. [{finding.kind}] {finding.text}")
        place = _within(folder, finding.where)
        answer.add(f"   place: {', '.join(f'{name} {value}' for name, value in place.items())}")
        answer.add(f"   numbers: {_listed(finding.numbers)}")
        answer.add(f"   next: {' or '.join(_next(folder, folder.id_of(path), finding))}")
    return answer.text()


def _within(folder: Folder, where: dict[str, Any]) -> dict[str, Any]:
    """Returns the place with its file as the folder knows the file."""
    place = {name: value for name, value in where.items() if value}
    file = os.path.realpath(where["file"]) if where.get("line") else ""
    if file and folder.holds(file):
        place["file"] = folder.id_of(file)
    return place


def _next(folder: Folder, trace: str, finding: Finding) -> list[str]:
    """Returns questions that show more about a finding."""
    where = _within(folder, finding.where)
    asked = []
    name = str(where.get("imported_by") or where.get("called_by") or where.get("function") or "")
    if name:
        asked.append(f"tree(trace={trace!r}, function={name!r})")
    if where.get("line") and not os.path.isabs(str(where["file"])):
        asked.append(f"source(place='{where['file']}:{where['line']}')")
    elif name:
        asked.append(f"source(place={name!r}, trace={trace!r})")
    return asked or [f"tree(trace={trace!r})"]


def _listed(facts: dict[str, Any]) -> str:
    """Returns numbers as text; numbers of ns become times."""
    return ", ".join(
        f"{name.removesuffix('_ns')} {duration(value)}" if name.endswith("_ns") else f"{name} {value}"
        for name, value in facts.items()
    )
