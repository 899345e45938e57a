"""The findings of `vestige report --findings` for real applications, each run once.

    python proofs/apps_findings.py                    all of them, with the Python that has torch
    python proofs/apps_findings.py --apps pandas ray

The applications are those of apps.py. What was found is kept in build/proofs and written to results/apps-findings.md, with
what somebody judged of it: apps_findings_judged.txt has a line for each, `application | kind | judgement`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from apps import APPS, HERE, KEPT, Place, environment
from ways import Python

JUDGED = HERE / "apps_findings_judged.txt"
RESULT = HERE / "results" / "apps-findings.md"
HEAD = """\
# What findings say of applications, on Python {version}

Each application ran once under `vestige run`, and `vestige report --findings` told of all its processes. Times are those
of a busy machine with two processors. The last column is what a person judged: "true" means that the cause is there and
at the place named. Most of these programs do little: they mainly import.

Before, findings also told of five causes that were none, which are mended: a loop that takes from a queue and an event
loop that selects were "many requests" (xdist, watchdog, dask), a parent that waits for its child "waiting" (Django),
collections inside of imports were told twice (torch), threads that lived for a moment made the main thread one that did
everything (click's tests), and modules without a name were called the slowest (pandas).

| application | finding | judged |
|---|---|---|
"""


def keep(version: str, name: str) -> Path:
    return KEPT / f"findings-{version}" / f"{name}.json"


def tell(python: Python, trace: Path) -> list[dict[str, object]]:
    command = [python.path, "-m", "vestige", "report", str(trace), "--findings", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["findings"]


def judgements() -> dict[tuple[str, str], str]:
    lines = [line.split("|") for line in JUDGED.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {(name.strip(), kind.strip()): judged.strip() for name, kind, judged in lines}


def write(version: str, full: str) -> None:
    judged = judgements()
    rows = []
    for app in APPS:
        file = keep(version, app.name)
        if not file.exists():
            continue
        found = json.loads(file.read_text())
        if not found:
            rows.append(f"| {app.name} | no finding | {judged.get((app.name, ''), '')} |\n")
        for at, finding in enumerate(found):
            text = finding["text"].replace("|", "\\|").replace("<", "&lt;")
            verdict = judged.get((app.name, finding["kind"]), "")
            rows.append(f"| {app.name if at == 0 else ''} | {finding['kind']}: {text} | {verdict} |\n")
    RESULT.write_text(HEAD.format(version=full) + "".join(rows))


def main() -> int:
    parser = argparse.ArgumentParser(description="What findings say of real applications.")
    parser.add_argument("--python", default="3.11", metavar="3.12", help="the version to run them with (default: 3.11)")
    parser.add_argument("--apps", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="keep the traces in this folder")
    options = parser.parse_args()
    unknown = set(options.apps or ()) - {app.name for app in APPS}
    if unknown:
        parser.error(f"no such application: {', '.join(sorted(unknown))}")

    place = Place(environment(options.python))
    for app in [app for app in APPS if not options.apps or app.name in options.apps]:
        run = place.run(app, recorded=True)
        found = tell(place.python, place.base / "t.vst")
        file = keep(options.python, app.name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, indent=1))
        if options.keep:
            shutil.rmtree(options.keep / app.name, ignore_errors=True)
            (options.keep / app.name).mkdir(parents=True)
            for trace in place.base.glob("t*.vst*"):
                trace.rename(options.keep / app.name / trace.name)
        print(app.name, run.end, *[f"\n    {each['kind']}: {each['text']}" for each in found], flush=True)
    shutil.rmtree(place.base, ignore_errors=True)
    write(options.python, place.python.full)
    return 0


if __name__ == "__main__":
    sys.exit(main())
