"""Writes what a proof found as a page of Markdown. The same results make the same page: nothing in it tells when, where
or how fast they came about.
"""

from __future__ import annotations

from pathlib import Path

from ways import ENGINES, Difference, Suite, compare, counts, explain

COLUMNS = "| {what} | tests | ok | skipped | failed | safe | turbo |\n|---|--:|--:|--:|--:|---|---|\n"
KINDS = {
    "": "every time",
    "unsteady": "unsteady: two bare runs differ too",
    "now and then": "not in every traced run",
    "every profiler": "a profile function that does nothing causes it too",
}


def tell_found(found: list[Difference], known: Path, version: str, why: bool) -> int:
    """Prints the differences; returns how many of them are not known."""
    unknown = explain(found, known, version)
    for difference in found:
        told = difference.reason or "not known"
        print(f"{version} {difference.way} {difference.name} {difference.test}: ", end="")
        print(f"{difference.bare} -> {difference.traced}; {KINDS[difference.kind]}; {told}")
        if why:
            print("    " + difference.why.replace("\n", "\n    "))
    print(f"{version}: {len(found)} differences, {len(unknown)} of them not known", flush=True)
    return len(unknown)


def write(path: Path, head: str, suite: Suite, names: list[str], found: list[Difference], ways: list[str]) -> None:
    """Engines that were not to be run now are shown as they were when they last ran."""
    rows, totals, differing = [], [0, 0, 0, 0], dict.fromkeys(ENGINES, 0)
    for name in names:
        bare = suite.run(name, "bare")
        by_outcome = counts(bare)
        numbers = [sum(by_outcome.values()), *by_outcome.values()]
        totals = [a + b for a, b in zip(totals, numbers)]
        cells = []
        for way in ENGINES:
            mine = [d for d in found if d.name == name and d.way == way]
            run = None if way in ways else suite.last(name, way)
            if run is not None:
                mine = compare(name, way, bare, run)
            ran = way in ways or run is not None
            differing[way] += len(mine)
            cells.append(f"{len(mine)} differ" if mine else "same" if ran else "not run")
        rows.append(f"| {name} | {' | '.join(map(str, numbers))} | {' | '.join(cells)} |\n")
    rows.append(f"| {len(names)} | {' | '.join(map(str, totals))} | {' | '.join(f'{n} differ' for n in differing.values())} |\n")
    text = head + "\n" + _differences(found) + "\n" + COLUMNS.format(what="module") + "".join(rows)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


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
