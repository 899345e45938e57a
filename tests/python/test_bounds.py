"""Long recordings stay small: in memory, in the file, and in the objects that they keep alive."""

import subprocess
import sys
import weakref

import pytest

import vestige
from tree import record
from vestige import profile

MIB = 1 << 20


def run(program, *arguments):
    result = subprocess.run(
        [sys.executable, "-c", PREAMBLE + program, *map(str, arguments)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return [int(word) for word in result.stdout.split()]


PREAMBLE = """
import os, sys
from vestige import profile

def memory():
    '''Bytes that are this process's own: not what is mapped from the trace.'''
    with open("/proc/self/smaps_rollup") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return int(fields["Anonymous"].split()[0]) * 1024
"""


@pytest.mark.parametrize(
    ("count", "step"),
    [
        (50_000, 'eval("1")'),
        (50_000, 'eval(compile(f"{number}", "<string>", "eval"))'),
        (300_000, "eval(loads(data))"),  # loads() makes new code objects without the compiler's time
    ],
)
def test_evals_leave_memory_and_file_bounded(count, step, tmp_path):
    path = tmp_path / "t.vst"
    grown, size, records = run(
        f"""
import marshal
loads, data = marshal.loads, marshal.dumps(compile("1", "<string>", "eval"))
def go(n):
    for number in range(n):
        {step}
go(1000)
with profile(output=sys.argv[1]) as prof:
    go(10_000)
    before = memory()
    go({count})
    grown = memory() - before
from vestige import Trace
print(grown, os.stat(sys.argv[1]).st_size, Trace(sys.argv[1]).info()["records"])
""",
        path,
    )
    # two records belong to a C function with which 3.13 copies the locals
    assert records <= (10_000 + count) * 8 + 10_000
    assert size <= records * 8 * 1.01 + 2 * MIB
    assert grown <= 4 * MIB


@pytest.mark.any_python
def test_three_thousand_short_threads_take_at_most_2_mib_of_file(tmp_path):
    path = tmp_path / "t.vst"
    size, threads = run(
        """
import _thread
def body():
    done.release()
done = _thread.allocate_lock()
done.acquire()
with profile(output=sys.argv[1]) as prof:
    for _ in range(3_000):
        _thread.start_new_thread(body, ())
        done.acquire()
from vestige import Trace
print(os.stat(sys.argv[1]).st_size, Trace(sys.argv[1]).info()["threads"])
""",
        path,
    )
    assert threads >= 3_000
    assert size <= 2 * MIB


@pytest.mark.any_python
def test_a_threading_thread_takes_little_beyond_the_records_of_its_calls(tmp_path):
    path = tmp_path / "t.vst"
    size, records = run(
        """
import threading
def body():
    pass
with profile(output=sys.argv[1]) as prof:
    for _ in range(3_000):
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
from vestige import Trace
print(os.stat(sys.argv[1]).st_size, Trace(sys.argv[1]).info()["records"])
""",
        path,
    )
    assert size - records * 8 <= 3_000 * 320 + MIB


def test_a_record_takes_at_most_eight_bytes_and_memory_stays_flat(tmp_path):
    path = tmp_path / "t.vst"
    grown, size = run(
        """
def leaf():
    pass
def go(n):
    for _ in range(n):
        leaf()
with profile(output=sys.argv[1]) as prof:
    go(1000)
    before = memory()
    go(1_000_000)
    grown = memory() - before
print(grown, os.stat(sys.argv[1]).st_size)
""",
        path,
    )
    assert size <= 1_001_000 * 2 * 8 + 2 * MIB
    assert grown <= 6.4 * MIB


def test_a_recording_without_a_file_does_not_grow_the_process_either():
    grown, found = run(
        """
def leaf():
    pass
def go(n):
    for _ in range(n):
        leaf()
with profile() as prof:
    go(1000)
    before = memory()
    go(1_000_000)
    grown = memory() - before
from vestige.reading.sums import called_functions
rows = called_functions(prof._session.trace())
print(grown, *[row.calls for known, row in rows if known.name.endswith(": leaf")])
"""
    )
    assert found == 1_001_000
    assert grown <= 6.4 * MIB


def test_code_and_functions_of_the_program_are_not_kept_alive():
    import gc

    def make():
        space = {}
        exec("def made(): return len([])", space)
        space["made"]()
        return weakref.ref(space["made"].__code__), weakref.ref(space["made"])

    references = []

    def outer():
        for _ in range(10):
            references.extend(make())

    record(outer)
    gc.collect()
    assert [reference() for reference in references] == [None] * 20


def test_finished_profiles_give_everything_back():
    """File descriptors and mappings after many recordings."""
    import gc
    import os

    def held():
        with open("/proc/self/maps") as maps:
            return len(os.listdir("/proc/self/fd")), sum("vst" in line or "deleted" in line for line in maps)

    record(lambda: None)
    gc.collect()
    before = held()
    for _ in range(30):
        prof = profile()
        prof.start()
        prof.stop()
        del prof
    gc.collect()
    assert held() == before


def test_nothing_is_lost_in_an_ordinary_recording(tmp_path):
    path = tmp_path / "t.vst"
    with profile(output=str(path)) as prof:
        for _ in range(200_000):
            pass
        [abs(number) for number in range(50_000)]
    assert prof._session.lost == 0
    assert vestige.Trace(str(path)).info()["lost"] == 0
