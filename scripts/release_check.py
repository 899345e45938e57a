#!/usr/bin/env python3
"""Checks the steps of docs/project/release.md, as far as possible without running tests.

    python scripts/release_check.py [--dist]

Looks at the version, the changelog, the tag, what is committed and the results of proofs; with --dist also at the sdist
and the wheels in dist/: that there is one for each Python of pyproject.toml, none larger than 3 MB or for a C library
newer than 2.28, each complete according to its RECORD and with an SBOM. Exits with 1 if something is missing. Does not
run the parts that take time: make test, make check-long and make check NAME=wheels.
"""

import argparse
import base64
import csv
import datetime
import hashlib
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
SIZE_MAX = 3_000_000
GLIBC_MAX = (2, 28)


def git(root, *arguments):
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def version_of(root):
    return re.search(r"^\s*version: '([^']+)'", (root / "meson.build").read_text(), re.MULTILINE)[1]


def check_changelog(root, version):
    """The newest part has the version, a date and the usual headings, and nothing stands above it."""
    parts = re.split(r"^## ", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
    waiting = parts.pop(0) if parts and parts[0].startswith("Unreleased") else ""
    if re.search(r"^- ", waiting, re.MULTILINE):
        yield "there are changes under Unreleased: they get the version's heading"
    heading = re.match(r"\[?(\d+\.\d+\.\d+)\]? – (\S+)\n", parts[0]) if parts else None
    if heading is None:
        yield "the newest heading is not of the form `## [0.2.0] – 2026-11-17`"
        return
    if heading[1] != version:
        yield f"its newest version is {heading[1]}, that of meson.build {version}"
    try:
        datetime.date.fromisoformat(heading[2])
    except ValueError:
        yield f"{heading[2]} is no day"
    kinds = re.findall(r"^### (.*)$", parts[0], re.MULTILINE)
    if not kinds or any(kind not in KINDS for kind in kinds) or len(set(kinds)) != len(kinds):
        yield f"the part of {heading[1]} has the headings {kinds}; each of {', '.join(KINDS)} stands there once at most"
    numbers = [
        tuple(map(int, found)) for found in re.findall(r"^\[?(\d+)\.(\d+)\.(\d+)", "\n".join(parts), re.MULTILINE)
    ]
    if numbers != sorted(numbers, reverse=True):
        yield "versions do not stand newest first"


def check_tree(root, version):
    """In the publishing workflow, the version must equal the tag that started it."""
    tag = os.environ.get("GITHUB_REF_NAME", "")
    if os.environ.get("GITHUB_REF_TYPE") == "tag" and tag != f"v{version}":
        yield f"the tag is {tag}, the version {version}"
    if git(root, "status", "--porcelain"):
        yield "there are changes that are not committed"
    tagged = git(root, "rev-parse", "--verify", "--quiet", f"v{version}^{{commit}}")
    if tagged is not None and tagged != git(root, "rev-parse", "HEAD"):
        yield f"v{version} is another commit already: the version has to be counted up"


def check_proofs(root, version):
    """Every proof that runs before a release has committed results."""
    for name in ("aarch64", "differential", "fuzz", "soak", "wheels"):
        if not (root / "proofs" / "results" / f"{name}.md").exists():
            yield f"proofs/results/{name}.md is missing"


# ---- what is to be published -----------------------------------------------------


def pythons(root):
    found = re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', (root / "pyproject.toml").read_text())
    return [f"cp3{minor}" for minor in found]


def check_record(wheel):
    info = next(name.split("/")[0] for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
    rows = {row[0]: row for row in csv.reader(io.StringIO(wheel.read(f"{info}/RECORD").decode())) if row}
    for name in wheel.namelist():
        if name.endswith("/") or name == f"{info}/RECORD":
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=").decode()
        if name not in rows or rows[name][1] != f"sha256={digest}":
            yield f"its RECORD does not have {name} as it is"
    if not any(name.startswith(f"{info}/sboms/") for name in wheel.namelist()):
        yield "it has no list of what is inside (dist-info/sboms)"


def check_wheel(path):
    size = path.stat().st_size
    if size > SIZE_MAX:
        yield f"it has {size:,} bytes, more than {SIZE_MAX:,}"
    glibc = re.findall(r"manylinux_(\d+)_(\d+)_", path.name)
    if not glibc or min(tuple(map(int, each)) for each in glibc) > GLIBC_MAX:
        yield "its tag is not manylinux_2_28, or older"
    with zipfile.ZipFile(path) as wheel:
        yield from check_record(wheel)


def check_dist(root, version):
    dist = root / "dist"
    if not (dist / f"vestige-{version}.tar.gz").exists():
        yield f"dist/vestige-{version}.tar.gz is missing: make sdist"
    for tag in pythons(root):
        found = sorted(dist.glob(f"vestige-{version}-{tag}-{tag}-*.whl"))
        if not found:
            yield f"there is no wheel for {tag}: make wheels"
        for path in found:
            yield from (f"{path.name}: {problem}" for problem in check_wheel(path))


STEPS = {
    "what is committed": check_tree,
    "the changelog": check_changelog,
    "results of proofs": check_proofs,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dist", action="store_true", help="also check the files in dist/")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args()
    version = version_of(options.root)
    steps = STEPS | ({"dist": check_dist} if options.dist else {})
    print(f"vestige {version}")
    failed = 0
    for name, check in steps.items():
        problems = list(check(options.root, version))
        print(f"{'not yet' if problems else 'ok':8}{name}")
        for problem in problems:
            print(f"        {problem}")
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
