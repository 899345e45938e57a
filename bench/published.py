"""Writes the results of `engines` into README.md, docs/how/performance.md and RESULTS.md, between two markers each:

    make bench ARGS='engines --write'

The figures of each Python are kept in engines.json, so that a run on one of them leaves those of the others.
"""

import json
import os
import sys

from report import Table

HERE = os.path.dirname(os.path.abspath(__file__))
FIGURES = os.path.join(HERE, "engines.json")
RESULTS = os.path.join(HERE, "RESULTS.md")
ROOT = os.path.dirname(HERE)
README = os.path.join(ROOT, "README.md")
PAGE = os.path.join(ROOT, "docs", "how", "performance.md")
BEGIN = "<!-- {}: made by `make bench ARGS='engines --write'` -->"
END = "<!-- {}: end -->"

# The rows in the README and on the page about performance: (description, beginning of the table's title, row, digits).
SUMMARY = [
    ("a Python call, extra ns", "Python call", "mean", 0),
    ("a generator's resumption, extra ns", "Python call", "generator", 0),
    ("a C call, extra ns", "C call", "mean", 0),
    ("six programs, times as long", "Programs", "geometric mean", 2),
    ("a training step, extra µs", "Training step", "step", 0),
]
TOOLS = {
    "turbo": "**vestige, turbo**",
    "safe": "vestige, safe engine",
    "VizTracer": "VizTracer 1.1.1",
    "VizTracer again": "VizTracer, in memory used before",
    "cProfile": "cProfile",
    "torch": "torch.profiler 2.13, with_stack",
}


def write(facts, others, tables):
    """Adds the figures of this Python to the stored figures, and writes the files."""
    figures = {}
    if os.path.exists(FIGURES):
        with open(FIGURES) as kept:
            figures = json.load(kept)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    figures[version] = {"facts": facts, "others": others, "tables": [table.data() for table in tables]}
    figures = dict(sorted(figures.items(), key=lambda item: [int(part) for part in item[0].split(".")]))
    with open(FIGURES, "w") as out:
        json.dump(figures, out, indent=1, ensure_ascii=False)
        out.write("\n")
    replace(README, "costs", costs(figures))
    replace(PAGE, "engines", summary(figures))
    replace(RESULTS, "engines", details(figures))


def replace(path, name, text):
    """Replaces the text between the markers of a file."""
    begin, end = BEGIN.format(name), END.format(name)
    with open(path) as source:
        before, found, rest = source.read().partition(begin)
    _, found_too, after = rest.partition(end)
    if not (found and found_too):
        raise SystemExit(f"{path} has no place for the figures: it needs the lines {begin} and {end}")
    with open(path, "w") as out:
        out.write(f"{before}{begin}\n{text}\n{end}{after}")


def find(tables, title, label):
    """Returns the figures of a row: {column: figure}."""
    for table in tables:
        if table["title"].startswith(title):
            for row in table["rows"]:
                if row["label"].startswith(label):
                    return row["values"]
    return {}


def machine_line(figures):
    """Returns a sentence about the machine and its load."""
    facts = [run["facts"] for run in figures.values()]
    machines = list(dict.fromkeys(f"{f['CPU']}, {f['kernel']}, traces on {f['traces on']}" for f in facts))
    pythons = ", ".join(f["Python"].split(",")[0] for f in facts)
    dates = " and ".join(dict.fromkeys(f["date"] for f in facts))
    shares = ", ".join(f"{run['others']:.0%}" for run in figures.values())
    return f"Python {pythons} on {'; '.join(machines)}; {dates}, while others took {shares} of the machine."


def costs(figures):
    """Returns the README's table: a column for each tool, with the Pythons side by side."""
    tools = {"turbo": "vestige", "VizTracer": "VizTracer", "cProfile": "cProfile", "torch": "torch.profiler"}
    lines = ["| | " + " | ".join(tools.values()) + " |", "|---|" + "---:|" * len(tools)]
    for what, title, label, digits in SUMMARY:
        rows = [find(run["tables"], title, label) for run in figures.values()]
        cells = [" / ".join(f"{row[tool]:,.{digits}f}" for row in rows if tool in row) or "–" for tool in tools]
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(figures):
    """Returns the table of the page about performance: a column for each Python."""
    lines = ["| | " + " | ".join(f"Python {version}" for version in figures) + " |", "|---|" + "---:|" * len(figures)]
    for what, title, label, digits in SUMMARY:
        rows = {version: find(run["tables"], title, label) for version, run in figures.items()}
        for number, (tool, name) in enumerate(shown(rows)):
            cells = [f"{row[tool]:,.{digits}f}" if tool in row else "–" for row in rows.values()]
            mark = "**" if tool == "turbo" else ""
            lines.append(f"| {f'**{what}**: ' * (number == 0)}{name} | {' | '.join(mark + c + mark for c in cells)} |")
    return "\n".join([*lines, "", machine_line(figures)])


def shown(rows):
    """Returns the tools that have a figure in a row."""
    return [(tool, name) for tool, name in TOOLS.items() if any(tool in row for row in rows.values())]


def details(figures):
    """Returns all tables, with a section for each Python."""
    parts = []
    for version, run in figures.items():
        parts.append(f"### Python {version}\n")
        parts.append("\n".join(f"- {name}: {value}" for name, value in run["facts"].items()) + "\n")
        parts += [Table.of_data(table).markdown() for table in run["tables"]]
        parts.append(f"(others took {run['others']:.0%} of the machine meanwhile)\n")
    return "\n".join(parts).rstrip()
