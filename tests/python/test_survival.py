"""However a traced program ends, its file has every completed call, and, in a recording of memory, every allocation;
and the program ends as it does without vestige.

The programs report through a pipe how many calls of a known function they completed; each call allocates a block of a
known size. The trace must have all these calls, and at most as many more as can have been running.
"""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from conftest import COMMAND, PYTHON
from traces import totals
from vestige import Trace
from vestige._core import recover

pytestmark = pytest.mark.any_python

BATCH = 50
MODES = ("run", "profile")
MEMORY_MODES = ("memory", "track")
BLOCK = 54321  # bytes; only work() allocates blocks of this size
SIZE = BLOCK - b"".__sizeof__()

PROGRAM = """\
    import contextlib, ctypes, os, resource, signal, sys, threading, time

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    PIPE, MODE = int(sys.argv[1]), sys.argv[2]

    def recording():
        if MODE == "profile":
            from vestige import profile
            return profile(output="t.vst")
        if MODE == "track":
            from vestige import memory
            return memory.track("t.vst")
        return contextlib.nullcontext()

    def work():
        return bytes({size})

    def batch():
        for _ in range({batch}):
            work()

    def tell(thread, count):
        os.write(PIPE, b"%d %d\\n" % (thread, count))

    def loop(thread, batches):
        count = 0
        while count < batches * {batch}:
            batch()
            count += {batch}
            tell(thread, count)

    {main}
    """

ENDS_ITSELF = """\
with recording():
        loop(0, 40)
        {end}"""

# Each thread has its own function, so that their calls can be distinguished.
THREADS = """\
def in_thread(thread):
        def batch():
            for _ in range({batch}):
                work()
        exec(f"def work_{{thread}}(): return bytes({size})", names := {{}})
        work, count = names[f"work_{{thread}}"], 0
        while True:
            batch()
            count += {batch}
            tell(thread, count)

    with recording():
        for thread in range(1, {threads}):
            threading.Thread(target=in_thread, args=[thread], daemon=True).start()
        in_thread(0)"""

# How the program ends, and whether this leaves time to finish the file.
ENDS = {
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", False),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", False),
    "SIGINT": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(10)", True),
    "SIGSEGV": ("ctypes.string_at(0)", False),
    "abort": ("os.abort()", False),
    "_exit": ("os._exit(7)", True),
    "_exit in C": ("ctypes.CDLL(None)._exit(7)", False),
    "exec": ("os.execv('/bin/sh', ['sh', '-c', 'exit 9'])", False),
    "exception": ("raise ValueError('mine')", True),
    "exit": ("sys.exit(3)", True),
    "fatal error": ("ctypes.pythonapi.Py_FatalError(b'mine')", False),
}


class Process:
    """A program that runs in the workplace and reports its counts."""

    def __init__(self, workplace, mode, main, **words):
        main = main.format(batch=BATCH, size=SIZE, **words)
        workplace.write("program.py", PROGRAM.format(batch=BATCH, size=SIZE, main=main))
        (workplace.path / "t.vst").unlink(missing_ok=True)
        self.trace = workplace.path / "t.vst"
        self.told = {}  # thread: count
        self._text = b""
        command = [COMMAND, mode, "-q", "-o", "t.vst"] if mode in ("run", "memory") else [PYTHON]
        self._pipe, theirs = os.pipe()
        self.process = subprocess.Popen(
            [*command, "program.py", str(theirs), mode],
            cwd=workplace.path,
            pass_fds=[theirs],
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(theirs)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self._pipe)

    def read(self):
        """Reads more of the program's reports; returns False at the end."""
        data = os.read(self._pipe, 65536)
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            thread, count = line.split()
            self.told[int(thread)] = int(count)
        return bool(data)

    def read_until(self, count, threads=1):
        """Waits until each thread has reported at least this count."""
        while len(self.told) < threads or min(self.told.values()) < count:
            assert self.read(), self.process.stderr.read()

    def wait(self):
        """Reads all reports until the program ends."""
        while self.read():
            pass
        return self.process.wait(), self.process.stderr.read()


def exported(path):
    """Returns how often each function occurs in an export of the trace."""
    target = path.with_suffix(".json")
    Trace(str(path)).export(str(target), all_windows=True)
    return spans_in(target)


def spans_in(path):
    """Returns, by function, the calls, and in a recording of memory the blocks that it allocated."""
    events = json.loads(path.read_bytes())["traceEvents"]
    found = Counter(event["name"].rpartition(": ")[2] for event in events if event["ph"] == "X")
    memory = [event["args"] for event in events if event["name"] == "[memory]"]
    return found + Counter(args["At"].rpartition(" ")[2] for args in memory if args["Bytes"] == BLOCK)


def info(workplace, file="t.vst"):
    result = workplace.vestige("info", "--json", file)
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)


def check_commands(workplace, told, memory=False):
    """Every command reads the torn file without recovering it; the file has at most as many more calls as can have been
    running.
    """
    before = (workplace.path / "t.vst").read_bytes()
    assert info(workplace)["ended"] == "torn"
    text = workplace.vestige("info", "t.vst")
    assert "torn, the process was killed, crashed or called os.exec*;" in text.stdout
    report = workplace.vestige("report", "t.vst", "-n", "1000")
    lines = [line for line in report.stdout.splitlines() if line.endswith(": work")]
    assert len(lines) == (not memory)
    calls = [int(line.split()[0].replace(",", "")) for line in lines]
    export = workplace.vestige("export", "t.vst", "-o", "other.json")
    assert [result.returncode for result in (text, report, export)] == [0, 0, 0]
    assert text.stderr + report.stderr == ""
    assert export.stderr.startswith("vestige: wrote other.json (") and export.stderr.count("\n") == 1
    for found in (*calls, spans_in(workplace.path / "other.json")["work"]):
        assert told <= found <= told + BATCH
    assert (workplace.path / "t.vst").read_bytes() == before


def check_recovery(path):
    """Checks that the recovered copy is clean and has the same contents."""
    whole = path.with_name("whole.vst")
    recover(str(path), str(whole), overwrite=True)
    torn, clean = Trace(str(path)), Trace(str(whole))
    assert clean.info()["clean"]
    for ask in (Trace.threads, Trace.metadata, lambda trace: totals(trace, all_windows=True)):
        assert ask(clean) == ask(torn)
    same = ("pid", "trace_id", "threads", "windows", "records", "lost", "start_ns", "end_ns")
    assert {name: clean.info()[name] for name in same} == {name: torn.info()[name] for name in same}


# ---- programs that end themselves --------------------------------------


@pytest.fixture(scope="module")
def plain_end(tmp_path_factory):
    """Returns how plain Python ends, computed once for each way."""
    from conftest import Workplace

    known = {}

    def ask(name):
        if name not in known:
            workplace = Workplace(tmp_path_factory.mktemp("plain"))
            with Process(workplace, "plain", ENDS_ITSELF, end=ENDS[name][0]) as process:
                known[name] = process.wait()
                assert process.told == {0: 40 * BATCH}
        return known[name]

    return ask


@pytest.mark.parametrize("mode", [*MODES, *MEMORY_MODES])
@pytest.mark.parametrize("name", ENDS)
def test_every_call_before_the_end_is_in_the_file(workplace, plain_end, name, mode):
    end, clean = ENDS[name]
    with Process(workplace, mode, ENDS_ITSELF, end=end) as process:
        code, stderr = process.wait()
    assert code == plain_end(name)[0]
    if name == "fatal error":  # shows addresses
        assert "Fatal Python error: " in stderr and "mine" in stderr
    else:
        assert _without_folder(stderr) == _without_folder(plain_end(name)[1])
    assert process.told == {0: 40 * BATCH}
    assert exported(process.trace)["work"] == 40 * BATCH
    assert Trace(str(process.trace)).info()["clean"] is clean
    if name == "exit":  # commands see only whether the file is torn, so one way of dying is enough
        assert info(workplace)["ended"] == "clean"
    elif name == "SIGKILL":
        check_commands(workplace, 40 * BATCH, mode in MEMORY_MODES)
    check_recovery(process.trace)


def _without_folder(stderr):
    """Replaces the folder, because plain Python ran in another folder."""
    return re.sub('"/.*/program.py"', '"program.py"', stderr)


def test_the_second_window_may_be_torn(workplace):
    main = """\
from vestige import profile
    prof = profile(output="t.vst")
    prof.start()
    loop(0, 10)
    prof.stop()
    loop(1, 10)
    prof.start()
    loop(2, 10)
    os.abort()"""
    with Process(workplace, "profile", main) as process:
        process.wait()
    assert process.told == {0: 10 * BATCH, 1: 10 * BATCH, 2: 10 * BATCH}
    assert exported(process.trace)["work"] == 20 * BATCH
    facts = info(workplace)
    assert (facts["ended"], facts["windows"]) == ("torn", 2)
    check_recovery(process.trace)


def test_a_recording_that_was_stopped_before_the_end_is_clean(workplace):
    main = "prof = recording(); prof.start(); loop(0, 10); prof.stop(); os._exit(0)"
    with Process(workplace, "profile", main) as process:
        process.wait()
    assert exported(process.trace)["work"] == 10 * BATCH
    assert info(workplace)["ended"] == "clean"
    check_recovery(process.trace)


# ---- programs that are ended, at any moment ----------------------------


@pytest.mark.parametrize("mode", [*MODES, *MEMORY_MODES])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_program_that_is_killed_leaves_all_that_it_did(workplace, number, mode):
    with Process(workplace, mode, ENDS_ITSELF, end="loop(0, 10**9)") as process:
        process.read_until(4000)
        process.process.send_signal(number)
        code, _ = process.wait()
    assert code == -number
    told = process.told[0] + 40 * BATCH  # the second loop counts from 0 again
    assert told <= exported(process.trace)["work"] <= told + BATCH
    assert Trace(str(process.trace)).info()["clean"] is (number == signal.SIGINT)
    check_recovery(process.trace)


@pytest.mark.parametrize("seed", range(8))
def test_threads_that_record_when_the_kill_comes_lose_nothing(workplace, seed):
    threads, chance = 4, random.Random(seed)
    with Process(workplace, [*MODES, *MEMORY_MODES][seed % 4], THREADS, threads=threads) as process:
        process.read_until(chance.choice([50, 500, 2000]), threads)
        for _ in range(chance.randrange(10)):
            process.read()
        process.process.kill()
        assert process.wait()[0] == -signal.SIGKILL
    found = exported(process.trace)
    for thread in range(threads):
        told = process.told[thread]
        assert told <= found[f"work_{thread}"] <= told + BATCH
    check_recovery(process.trace)


@pytest.mark.parametrize("mode", MODES)
def test_threads_that_come_and_go_when_the_kill_comes_lose_nothing(workplace, mode):
    # The processes write one after the other into the same chunks.
    main = """\
lock, total, running = threading.Lock(), 0, []

    def short():
        global total
        batch()
        with lock:
            total += {batch}
            tell(0, total)

    with recording():
        while True:
            running.append(threading.Thread(target=short))
            running[-1].start()
            if len(running) == 4:
                running.pop(0).join()"""
    with Process(workplace, mode, main) as process:
        process.read_until(3000)
        process.process.kill()
        process.wait()
    assert process.told[0] <= exported(process.trace)["work"] <= process.told[0] + 4 * BATCH
    check_recovery(process.trace)


# ---- reading -----------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_every_command_reads_the_file_of_a_program_that_still_runs(workplace, mode):
    # New functions come all the time, so the file grows while it is read, by definitions and records.
    main = """\
write = tell
    def tell(thread, count):
        write(thread, count)
        time.sleep(0.001)

    def more():
        n = 0
        while True:
            exec(f"def new_{{n}}(): pass\\nnew_{{n}}()", {{}})
            n += 1
            time.sleep(0.0005)

    with recording():
        threading.Thread(target=more, daemon=True).start()
        loop(0, 10**9)"""
    with Process(workplace, mode, main) as process:
        process.read_until(1000)
        for command in (["info"], ["report", "-n", "10000"], ["export", "-o", "live.json"], ["recover", "-o", "r.vst"]):
            told = process.told[0]
            with _drained(process):
                result = workplace.vestige(command[0], "t.vst", *command[1:])
            wrote = result.stderr.startswith("vestige: wrote live.json (") and command[0] == "export"
            assert result.returncode == 0 and (wrote or result.stderr == "")
            if command[0] == "info":
                assert "the process is still recording" in result.stdout
            elif command[0] == "export":
                assert spans_in(workplace.path / "live.json")["work"] >= told
            elif command[0] == "recover":
                assert Trace(str(workplace.path / "r.vst")).info()["clean"]
                assert exported(workplace.path / "r.vst")["work"] >= told
        process.process.kill()
        process.wait()
    assert info(workplace)["ended"] == "torn"
    check_recovery(process.trace)


@contextlib.contextmanager
def _drained(process):
    """Reads the program's reports in a thread, because a full pipe would stop the program."""
    from threading import Event, Thread

    over = Event()

    def drain():
        while not over.is_set() and process.read():
            pass

    thread = Thread(target=drain)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# ---- the kernel's own kill ---------------------------------------------


class MemoryGroup:
    """A memory cgroup of 64 MiB without swap, version 1 or 2; skips the test if none can be made."""

    SIZE = str(64 << 20)

    def __init__(self):
        root = Path("/sys/fs/cgroup")
        self._new = (root / "cgroup.controllers").exists()
        if not self._new:
            root /= "memory"
            if not (root / "memory.limit_in_bytes").exists():
                pytest.skip("no OOM kill here: no memory controller in /sys/fs/cgroup")
        elif "memory" not in (root / "cgroup.subtree_control").read_text().split():
            pytest.skip("no OOM kill here: the memory controller is not given to groups of /sys/fs/cgroup")
        self.path = root / f"vestige-test-{os.getpid()}"
        try:
            self.path.mkdir()
        except OSError as error:
            pytest.skip(f"no OOM kill here: no group can be made in {root}: {error.strerror}")

    def limit(self):
        limit, swap = (
            ("memory.max", "memory.swap.max")
            if self._new
            else (
                "memory.limit_in_bytes",
                "memory.memsw.limit_in_bytes",  # memory and swap together
            )
        )
        (self.path / limit).write_text(self.SIZE)
        with contextlib.suppress(OSError):  # there may be no swap to limit
            (self.path / swap).write_text("0" if self._new else self.SIZE)

    def kills(self):
        """Returns how many processes the kernel killed in the group."""
        facts = (self.path / ("memory.events" if self._new else "memory.oom_control")).read_text()
        return int(dict(line.split() for line in facts.splitlines())["oom_kill"])


@pytest.fixture
def memory_group():
    group = MemoryGroup()
    try:
        group.limit()
        yield group
    finally:
        group.path.rmdir()


@pytest.mark.parametrize("mode", MODES)
def test_the_kernels_kill_for_memory_loses_nothing(workplace, memory_group, mode):
    # The program records until the kill, into chunks that count as the group's memory, too.
    end = f"""\
with open("{memory_group.path}/cgroup.procs", "w") as group:
            group.write(str(os.getpid()))
        hoard, count = [], 40 * {BATCH}
        while True:
            hoard.append(bytearray(b"x" * (1 << 20)))
            batch()
            count += {BATCH}
            tell(0, count)"""
    with Process(workplace, mode, ENDS_ITSELF, end=end) as process:
        assert process.wait()[0] == -signal.SIGKILL
    assert memory_group.kills() == 1
    assert process.told[0] > 40 * BATCH
    assert process.told[0] <= exported(process.trace)["work"] <= process.told[0] + BATCH
    check_commands(workplace, process.told[0])
    check_recovery(process.trace)
