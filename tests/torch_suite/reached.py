"""A pytest plugin for run.py: writes the outcome of each test, and how many recordings it made with vestige, to the file
that VESTIGE_SUITE_OUTCOMES names. sitecustomize.py counts them.
"""

import json
import os
from pathlib import Path

import pytest

OUTCOMES = Path(os.environ["VESTIGE_SUITE_OUTCOMES"])
RECORDINGS = Path(os.environ["VESTIGE_SUITE_RECORDINGS"])

outcomes = {}  # by the test's name: [outcome, number of recordings, last line of the error]


def last_line(report):
    text = str(getattr(getattr(report.longrepr, "reprcrash", None), "message", report.longrepr or ""))
    return next((line for line in text.splitlines() if line.strip()), "")[:200]


def recordings():
    return RECORDINGS.stat().st_size if RECORDINGS.exists() else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    before = recordings()
    outcomes[item.nodeid] = ["crashed", 0, ""]
    write()
    result = yield
    outcomes[item.nodeid][1] = recordings() - before
    write()
    return result


def pytest_runtest_logreport(report):
    entry = outcomes[report.nodeid]
    if report.failed:
        entry[0], entry[2] = "failed", last_line(report)
    elif report.skipped:
        entry[0] = "skipped"
    elif report.when == "call" and entry[0] == "crashed":
        entry[0] = "passed"


def write():
    OUTCOMES.write_text(json.dumps(outcomes))
