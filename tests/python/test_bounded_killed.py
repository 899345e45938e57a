"""Bounded recordings that last long and end without a stop."""

import os
import signal
import subprocess

import pytest

from bounded import COUNT, MIB, assert_contiguous, export, numbers_of
from conftest import PYTHON
from tree import calls, short
from vestige import Trace

pytestmark = pytest.mark.any_python

ENDLESS = """
import os, sys
from vestige import profile

def leaf():
    pass

def go(n):
    for _ in range(n):
        leaf()

def memory():
    with open("/proc/self/smaps_rollup") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return [int(fields[name].split()[0]) * 1024 for name in ("Anonymous", "Rss")]

with profile(output=sys.argv[1], max_size="4M") as prof:
    go(300_000)
    before = memory()
    go(2_500_000)
    after = memory()
    size = os.stat(sys.argv[1]).st_size
print(after[0] - before[0], after[1] - before[1], size)
"""


def test_five_million_records_leave_file_and_memory_bounded(tmp_path):
    path = tmp_path / "t.vst"
    result = subprocess.run([PYTHON, "-c", ENDLESS, str(path)], capture_output=True, text=True, check=True)
    anonymous, resident, size = map(int, result.stdout.split())
    assert size <= 4 * MIB and path.stat().st_size <= 4 * MIB
    assert anonymous <= MIB and resident <= 2 * MIB
    facts = Trace(str(path)).info()
    assert facts["dropped"] > 4_400_000 and facts["lost"] == 0


KILLED = """
import os, sys
from vestige import profile
from vestige._core import instant
space = {}
exec("\\n".join(f"def f{n}(): pass" for n in range(100)), space)
functions = [space[f"f{n}"] for n in range(100)]
text = '"text": "' + 4000 * "x" + '"'

def work(pipe):
    count = 0
    while True:
        for number, function in enumerate(functions):
            function()
            if number % 25 == 0:
                instant("filler", text)
        count += 100
        os.write(pipe, b"%d\\n" % count)

with profile(output=sys.argv[1], max_size=sys.argv[2]):
    work(int(sys.argv[3]))
"""


@pytest.mark.parametrize("tries", range(3))
def test_killed_at_any_moment_the_newest_records_are_there(tmp_path, tries):
    path = tmp_path / "t.vst"
    pipe, theirs = os.pipe()
    process = subprocess.Popen([PYTHON, "-c", KILLED, str(path), "1M", str(theirs)], pass_fds=[theirs])
    os.close(theirs)
    told = b""
    while told.count(b"\n") < 300 + 37 * tries:
        told += os.read(pipe, 4096)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while more := os.read(pipe, 65536):
        told += more
    os.close(pipe)
    count = int(told.split()[-1])
    assert path.stat().st_size <= MIB
    facts = Trace(str(path)).info()
    assert not facts["clean"] and facts["damaged_at"] == 0 and facts["dropped"] > 0
    trace = export(path)
    (numbers,) = numbers_of(trace).values()
    assert_contiguous(numbers)
    assert len(numbers) > 3_000
    # All reported calls are in the trace, and no more calls than can have been running.
    extra = len(numbers) - 1 - max(at for at, number in enumerate(numbers) if number == COUNT - 1)
    assert 0 <= extra < COUNT and count >= 30_000
    work = [event for event in calls(trace) if short(event["name"]) == "work"]
    assert [event["args"]["open at start"] for event in work] == [1]


def test_a_recovered_copy_says_the_same(tmp_path):
    from vestige._core import recover

    path, copy = tmp_path / "t.vst", tmp_path / "copy.vst"
    pipe, theirs = os.pipe()
    process = subprocess.Popen([PYTHON, "-c", KILLED, str(path), "1M", str(theirs)], pass_fds=[theirs])
    os.close(theirs)
    told = 0
    while told < 240:
        told += os.read(pipe, 4096).count(b"\n")
    process.kill()
    process.wait()
    os.close(pipe)
    recover(str(path), str(copy))
    before, after = Trace(str(path)).info(), Trace(str(copy)).info()
    assert after["clean"]
    same = ("records", "dropped", "lost", "start_ns", "complete_ns", "end_ns", "threads")
    assert {key: before[key] for key in same} == {key: after[key] for key in same}
    assert numbers_of(export(path)) == numbers_of(export(copy))
