"""Writes the results of a proof as a page of Markdown. Equal results give equal pages: a page does not say when, where
or how fast the results were found.
"""

from __future__ import annotations

from pathlib import Path

from ways import ENGINES, Difference, Suite, counts, explain

COLUMNS = "| module | tests | ok | skipped | failed | safe | turbo |\n|---|--:|--:|--:|--:|---|---|\n"
KINDS = {
    "": "every time",
    "timed out": "it took too long, which proves nothing: try again",
    "unsteady": "unsteady: two bare runs differ too",
    "now and then": "not in every traced run",
    "every profiler": "a profile function that does nothing causes it too",
}


def tell_found(found: list[Difference], known: Path, version: str, why: bool) -> int:
    """Prints the differences; returns the number of unknown ones."""
    unknown = explain(found, known, version)
    for difference in found:
        told = difference.reason or "not known"
        print(f"{version} {difference.way} {difference.name} {difference.test}: ", end="")
        print(f"{difference.bare} -> {difference.traced}; {KINDS[difference.kind]}; {told}")
        if why:
            print("    " + difference.why.replace("\n", "\n    "))
    print(f"{version}: {len(found)} differences, {len(unknown)} of them not known", flush=True)
    return len(unknown)


def write(path: Path, head: str, suite: Suite, names: list[str], found: list[Difference]) -> None:
    rows, same, totals, differing = [], [], [0, 0, 0, 0], {}
    for name in names:
        by_outcome = counts(suite.run(name, "bare"))
        numbers = [sum(by_outcome.values()), *by_outcome.values()]
        totals = [a + b for a, b in zip(totals, numbers)]
        cells = []
        for way in ENGINES:
            mine = [d for d in found if d.name == name and d.way == way]
            ran = suite.run(name, way) is not None
            if ran:
                differing[way] = differing.get(way, 0) + len(mine)
            cells.append(f"{len(mine)} differ" if mine else "same" if ran else "not run")
        if set(cells) - {"not run"} == {"same"}:
            same.append(f"{name} {numbers[0]}")
        else:
            rows.append(f"| {name} | {' | '.join(map(str, numbers))} | {' | '.join(cells)} |\n")
    ends = " | ".join(f"{differing[way]} differ" if way in differing else "not run" for way in ENGINES)
    rows.append(f"| {len(names)} in all | {' | '.join(map(str, totals))} | {ends} |\n")
    path.parent.mkdir(exist_ok=True)
    alike = f"The same with each engine that ran, with the number of tests: {', '.join(same)}.\n"
    path.write_text(f"{head}\n{_differences(found)}\n{COLUMNS}{''.join(rows)}\n{alike}")


def _differences(found: list[Difference]) -> str:
    if not found:
        return "No test differs.\n"
    lines = ["Differences:\n\n| test | engine | bare | traced | when | why |\n|---|---|---|---|---|---|\n"]
    for difference in found:
        test = difference.test
        if test.startswith("("):
            test = f"{difference.name} {test}"
        words = (test, difference.way, difference.bare, difference.traced)
        cells = [*words, KINDS[difference.kind], difference.reason or "-"]
        lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |\n")
    return "".join(lines)
