"""Runs pytest and writes the outcome of each test: pytest_outcomes.py FILE ARGUMENT…

Each test is a line of JSON in FILE as soon as it is over. The same program runs bare and traced.
"""

from __future__ import annotations

import ctypes  # noqa: F401 - hooks.py needs it, so it is loaded in all ways
import faulthandler
import json
import os
import sys
import sysconfig

import pytest

QUIET = ["-q", "-p", "no:cacheprovider", "-p", "no:vestige", "-p", "no:xdist", "--tb=short"]


class Outcomes:
    """A pytest plugin. A test has up to three phases; its outcome is the worst of theirs."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._process = os.getpid()
        self._outcome = "ok"
        self._why = ""

    def pytest_runtest_logstart(self, nodeid, location):
        self._outcome, self._why = "ok", ""

    def pytest_runtest_logreport(self, report):
        expected = hasattr(report, "wasxfail")
        if report.skipped:
            self._note("expected failure" if expected else "skip", report)
        elif report.failed:
            self._note("fail" if report.when == "call" else "error", report)
        elif expected and report.when == "call":
            self._note("unexpected success", report)

    def pytest_runtest_logfinish(self, nodeid, location):
        if os.getpid() == self._process:
            self._write(nodeid, self._outcome, self._why)

    def pytest_collectreport(self, report):
        if report.failed or report.skipped:
            self._write(f"{report.nodeid} (collecting)", "error" if report.failed else "skip", str(report.longrepr))

    def _note(self, outcome: str, report) -> None:
        self._outcome = outcome
        self._why = str(report.longrepr)[-4000:]

    def _write(self, name: str, outcome: str, why: str) -> None:
        line = json.dumps([name, outcome, why]) + "\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, line.encode())
        os.close(file)


def ignore(frame, event, argument):
    """A profile function that does nothing, to show the effects of any profiler."""


def main() -> int:
    path, *words = sys.argv[1:]
    sys.argv[1:] = []
    faulthandler.enable(all_threads=True)
    if os.environ.get("PROOF_SETPROFILE"):
        import threading

        threading.setprofile(ignore)
        sys.setprofile(ignore)
    # Names of tests begin at this folder, wherever they run.
    root = sysconfig.get_path("purelib")
    return int(pytest.main([*QUIET, "--rootdir", root, *words], plugins=[Outcomes(path)]))


if __name__ == "__main__":
    sys.exit(main())
