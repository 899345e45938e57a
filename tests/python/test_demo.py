"""The demo, traced: the trace has exactly the known calls."""

import re
from pathlib import Path

from traces import totals
from vestige import Trace

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


def test_the_demo_is_recorded_call_by_call(workplace):
    result = workplace.trace(DEMO)
    assert (result.returncode, result.stderr) == (0, "")
    expected = {name: int(calls) for calls, name in re.findall(r"^ *(\d+) (\S+)$", result.stdout, re.MULTILINE)}
    assert len(expected) == 9

    trace = Trace(str(workplace.path / "t.vst"))
    found = {}
    for name, calls, self_ns, total_ns in totals(trace):
        assert 0 <= self_ns <= total_ns
        if match := re.fullmatch(r"demo\.py\(\d+\): (\S+)", name):
            found[match[1]] = calls
    assert {name: found.get(name) for name in expected} == expected
    assert trace.info()["lost"] == 0
    assert {f"worker {i}" for i in range(3)} <= {thread["name"] for thread in trace.threads()}
