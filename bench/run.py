#!/usr/bin/env python3
"""Compares vestige with the profilers that people use today, on the Python that runs this.

    python bench/run.py [FAMILY ...] [--quick] [--markdown] [--json FILE] [--write]

Families: calls (what a hook costs), engines (vestige's own beside each other, loops and programs), floor (hooks that do
nothing, in programs), file (recording for long), store (the file beside memory, opening a torn one), stop (start, stop,
import), export, exports (files for every tool), reports (in the terminal), tables (Arrow, Parquet), pack (traces at
rest), snapshot (what it holds up), short_calls (left out), tracebacks, memory (allocations), torch_ops (operators),
execution_trace, view (pictures of a trace), view_browser (the viewer's page). Each says in its module how it measures.
The last lines name every bar that was missed; the exit code stays 0.
"""

import argparse
import importlib
import importlib.util
import json
import sys
from importlib.metadata import version

import machine
import peers
import published
from report import say

FAMILIES = [
    "calls",
    "engines",
    "floor",
    "file",
    "store",
    "stop",
    "export",
    "exports",
    "reports",
    "tables",
    "pack",
    "snapshot",
]
FAMILIES += ["short_calls", "tracebacks", "memory", "torch_ops", "execution_trace", "view", "view_browser"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"any of {', '.join(FAMILIES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="shorter and coarser: to see that it works")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    parser.add_argument("--json", metavar="FILE", help="also write all figures to a file")
    parser.add_argument(
        "--write", action="store_true", help="write the tables of engines to README.md, docs and RESULTS.md"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.families) - set(FAMILIES)
    if arguments.write and (arguments.quick or arguments.families not in ([], ["engines"])):
        parser.error("--write is for a whole run, of engines or of all")
    if unknown:
        parser.error(f"no family {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    return arguments


def describe_peers():
    wanted = ["viztracer", "memray"] if peers.NEW else ["viztracer", "torch", "memray"]
    found = [f"{name} {version(name)}" for name in wanted if peers.is_installed(name)]
    missing = [f"{name} is not installed: left out" for name in wanted if not peers.is_installed(name)]
    return ", ".join([*found, "cProfile", *missing])


def print_facts(facts, markdown):
    for name, value in facts.items():
        print(f"- {name}: {value}" if markdown else f"{name + ':':<11}{value}")
    print(flush=True)


def main():
    arguments = parse_arguments()
    if not peers.is_installed("vestige"):
        sys.exit("vestige is not installed here; `make bench` does that")
    facts = {**machine.describe(), "beside": describe_peers()}
    print_facts(facts, arguments.markdown)
    results, missed = {}, []
    for family in arguments.families or FAMILIES:
        say(f"measuring: {family}")
        others = machine.Others()
        tables = importlib.import_module(family).measure(arguments.quick)
        share = others.share()
        for table in tables:
            print(table.markdown() if arguments.markdown else table.text(), flush=True)
            missed += table.missed()
        print(f"({family}: others took {share:.0%} of the machine meanwhile)\n", flush=True)
        if arguments.write and family == "engines":
            published.write(facts, share, tables)
        results[family] = {"others": share, "tables": [table.data() for table in tables]}
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump({"facts": facts, "quick": arguments.quick, "families": results}, out, indent=1)
    print("Every bar is met." if not missed else "MISSED:\n" + "\n".join(missed))


if __name__ == "__main__":
    main()
