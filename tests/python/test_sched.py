"""When threads had a processor (sched): every call has a running time, which is unknown if the system refuses to report
switches.
"""

import ctypes
import errno
import json
import os
import platform
import struct
import sys
import threading
import time

import pytest

import vestige
from other_builds import HERE as BUILD
from vestige import Trace, profile

CAN_SEE = vestige._core.can_see_switches() == 0
needs_switches = pytest.mark.skipif(not CAN_SEE, reason="the system does not tell when threads run")
# (the architecture's number in seccomp filters, the number of the system call perf_event_open)
HERE = {"x86_64": (0xC000003E, 298), "aarch64": (0xC00000B7, 241)}


def sleeps(seconds=0.04):
    time.sleep(seconds)


def works(seconds=0.02):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def functions(trace):
    """Returns calls, total and running time by name."""
    names = [function and function[1] for function in trace.functions()]
    rows = trace.tables(["functions"])["functions"]
    return {names[row.func]: (row.calls, row.total_ns, row.running_ns) for row in rows}


@needs_switches
def test_what_sleeps_runs_for_less_than_it_takes():
    with profile(sched=True) as prof:
        sleeps()
        works()
    trace = prof._session.trace()
    found = functions(trace)
    assert trace.info()["switches"]
    _, total, running = found["sleeps"]
    assert running < total / 2
    _, total, running = found["works"]
    assert 10_000_000 < running <= total


@needs_switches
def test_threads_that_ran_before_and_those_that_come_have_running_times():
    go, done = threading.Event(), threading.Event()

    def waits():
        go.wait()
        works()
        done.wait()

    before = threading.Thread(target=waits)
    before.start()
    with profile(sched=True) as prof:
        go.set()
        threads = [threading.Thread(target=sleeps) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        before.join()
    found = functions(prof._session.trace())
    calls, total, running = found["sleeps"]
    assert calls == 20 and running < total / 2
    _, total, running = found["waits" if "waits" in found else next(name for name in found if name.endswith("waits"))]
    assert running is not None and running < total


def test_without_it_no_running_time_is_known():
    with profile() as prof:
        works(0)
    trace = prof._session.trace()
    assert not trace.info()["switches"]
    assert functions(trace)["works"][2] is None


def test_it_is_true_or_false():
    with pytest.raises(TypeError, match="sched must be True or False, not int"):
        profile(sched=1)


PROGRAM = """\
import time


def naps():
    time.sleep(0.05)


naps()
"""


@needs_switches
def test_reports_have_a_column_more(workplace):
    workplace.write("naps.py", PROGRAM)
    assert workplace.trace("--sched", "naps.py").stderr == ""
    flat = workplace.vestige("report", "t.vst", "--sort", "running").stdout
    assert "total  running  function\n" in flat
    assert "   total     %  running  function\n" in workplace.vestige("report", "t.vst", "--tree").stdout
    language = "  object    world" if BUILD["nogil"] else "     GIL"
    assert f"    time  running {language}     lock " in workplace.vestige("report", "t.vst", "--threads").stdout
    rows = json.loads(workplace.vestige("report", "t.vst", "--format", "json").stdout)["functions"]
    (naps,) = [row for row in rows if row["function"].endswith(": naps")]
    assert naps["running_ns"] < naps["total_ns"] / 2
    rows = json.loads(workplace.vestige("report", "t.vst", "--tree", "--format", "json").stdout)["tree"]
    assert all("running_ns" in row for row in rows)
    rows = json.loads(workplace.vestige("report", "t.vst", "--threads", "--format", "json").stdout)["threads"]
    assert all(row["running_ns"] <= row["time_ns"] for row in rows)
    assert "  running  known for all threads\n" in workplace.vestige("info", "t.vst").stdout


def test_without_it_reports_are_as_before(workplace):
    workplace.write("naps.py", PROGRAM)
    workplace.trace("--sched", "--no-sched", "naps.py")
    assert "running" not in workplace.vestige("report", "t.vst").stdout
    assert "running" not in workplace.vestige("info", "t.vst").stdout
    refused = workplace.vestige("report", "t.vst", "--sort", "running")
    expected = "vestige: --sort running: this trace does not say when threads ran; record with `vestige run --sched`\n"
    assert (refused.returncode, refused.stderr) == (1, expected)


@needs_switches
def test_a_child_process_has_running_times_too(workplace):
    workplace.write(
        "family.py",
        """
        import multiprocessing, time

        def naps():
            time.sleep(0.05)

        if __name__ == "__main__":
            child = multiprocessing.get_context("fork").Process(target=naps)
            child.start()
            child.join()
            naps()
        """,
    )
    assert workplace.trace("--sched", "family.py").stderr == ""
    files = sorted(workplace.path.glob("t*.vst"))
    assert len(files) == 2
    for file in files:
        _, total, running = functions(Trace(str(file)))["naps"]
        assert running < total / 2


@needs_switches
def test_a_program_that_forks_prints_what_it_does_without_us(workplace):
    """From 3.12 on, the interpreter looks for threads when it forks."""
    workplace.write(
        "forks.py",
        """
        import os, warnings

        warnings.simplefilter("always")
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        print("done")
        """,
    )
    traced = workplace.trace("--sched", "forks.py")
    assert (traced.stdout, traced.stderr) == ("done\n", "")


@needs_switches
def test_what_a_killed_process_told_is_known(workplace):
    workplace.write(
        "dies.py",
        """
        import os, signal, time

        def naps():
            time.sleep(0.05)

        def waits():
            time.sleep(0.7)  # more than an interval

        naps()
        waits()
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    workplace.trace("--sched", "dies.py")
    found = functions(Trace(str(workplace.path / "t.vst")))
    _, total, running = found["naps"]
    assert running < total / 2


def refuse_events():
    """From here on, perf_event_open fails in this process and its children, as in a container."""
    machine, number = HERE[platform.machine()]
    instructions = [
        (0x20, 0, 0, 4),  # load the architecture
        (0x15, 0, 3, machine),
        (0x20, 0, 0, 0),  # load the number
        (0x15, 0, 1, number),
        (0x06, 0, 0, 0x00050000 | errno.EPERM),
        (0x06, 0, 0, 0x7FFF0000),  # allow
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
    assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())


@pytest.mark.skipif(platform.machine() not in HERE or sys.platform != "linux", reason="seccomp is Linux's")
def test_where_the_system_refuses_a_line_says_so_and_all_else_works(workplace):
    workplace.write("naps.py", PROGRAM)
    traced = workplace.trace("--sched", "naps.py", preexec_fn=refuse_events)
    why = (
        "the system does not tell when threads run (Operation not permitted: see kernel.perf_event_paranoid, "
        "the limit of locked memory, and the container's seccomp profile)"
    )
    assert traced.stderr == f"vestige: sched: {why}; running times are not known\n"
    assert f"  running  not known for 1 of 1 thread: {why}\n" in workplace.vestige("info", "t.vst").stdout
    calls, _, running = functions(Trace(str(workplace.path / "t.vst")))["naps"]
    assert (calls, running) == (1, None)
