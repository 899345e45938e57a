#!/usr/bin/env python3
"""Checks that the version stands in one place, meson.build, and that nothing else names one of its own."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def main():
    found = re.search(r"^\s*version: '(\d+\.\d+\.\d+)'", (ROOT / "meson.build").read_text(), re.MULTILINE)
    if not found:
        print("meson.build:1: no version in project()")
        return 1
    version, problems = found[1], []
    project = (ROOT / "pyproject.toml").read_text()
    if not re.search(r'^dynamic = \[.*"version"', project, re.MULTILINE) or re.search(
        r"^version =", project, re.MULTILINE
    ):
        problems.append("pyproject.toml:1: the version must be dynamic: it stands in meson.build")
    for folder in ("src", "include", "python", "adapters"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".c", ".h", ".cpp", ".py", ".pyi", ".build"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if re.search(rf"""["']{re.escape(version)}["']""", line):
                    problems.append(f"{path.relative_to(ROOT)}:{number}: a second place that says {version}")
    latest = re.search(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    if not latest or latest[1] != version:
        problems.append(f"CHANGELOG.md:1: its newest version is {latest and latest[1]}, that of meson.build {version}")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
