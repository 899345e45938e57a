"""A pytest plugin for run.py: puts vestige in the place of torch.profiler, counts for each test how many recordings it
made with vestige, and writes the outcomes to the file that VESTIGE_SUITE_OUTCOMES names. With VESTIGE_SUITE_ENGINE=torch
nothing is installed and torch's own profiler is tested.
"""

import json
import os

import pytest

ENGINE = os.environ["VESTIGE_SUITE_ENGINE"]
OUTCOMES = os.environ["VESTIGE_SUITE_OUTCOMES"]

recordings = 0
outcomes = {}  # by the test's name: [outcome, recordings, the last line of its error]

if ENGINE != "torch":
    os.environ["VESTIGE_ENGINE"] = ENGINE
    import vestige
    from vestige.torch import hosting

    begin = hosting.begin

    def count(prof):
        global recordings
        recordings += 1
        return begin(prof)

    hosting.begin = count
    vestige.install(**json.loads(os.environ.get("VESTIGE_SUITE_INSTALL", "{}")))


def last_line(report):
    text = str(getattr(getattr(report.longrepr, "reprcrash", None), "message", report.longrepr or ""))
    return next((line for line in text.splitlines() if line.strip()), "")[:200]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    global recordings
    recordings = 0
    outcomes[item.nodeid] = ["crashed", 0, ""]
    write()
    result = yield
    outcomes[item.nodeid][1] = recordings
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
    with open(OUTCOMES, "w") as file:
        json.dump(outcomes, file)
