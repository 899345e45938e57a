"""Recordings whose file lies on a slow disk: they go to a local file, and a process of its own copies them."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from conftest import COMMAND, PYTHON, TIMEOUT
from disks import Disk, NoDisk
from traces import totals
from vestige import Trace, _core
from vestige.base.copies import find_copies
from vestige.reading.memory import read_memory

pytestmark = pytest.mark.any_python

CALLS = 200_000
PROGRAM = f"""\
import sys

def leaf():
    pass

for _ in range({CALLS}):
    leaf()
print("done")
sys.exit(3)
"""
ENDLESS = """\
def leaf():
    pass

print("ready", flush=True)
while True:
    for _ in range(1000):
        leaf()
"""
COPIED = re.compile(r"vestige: (\S+): recorded into (\S+) and copied")


@pytest.fixture
def disk(tmp_path, local, request):
    try:
        made = Disk(tmp_path, **getattr(request, "param", {}))
    except NoDisk as error:
        pytest.skip(str(error))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def local(tmp_path, monkeypatch):
    """The folder of local files, for this test alone."""
    folder = tmp_path / "local"
    folder.mkdir()
    monkeypatch.setenv("VESTIGE_TMPDIR", str(folder))
    return folder / f"vestige-copies-{os.geteuid()}"


def run(trace, *words, program=PROGRAM, storage=("--storage", "copied"), **options):
    command = [COMMAND, "run", "-q", *storage, "-o", str(trace), "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, **options)


def info(trace):
    done = subprocess.run([COMMAND, "info", "--json", trace], capture_output=True, text=True, timeout=TIMEOUT)
    return json.loads(done.stdout) if done.stdout else {}, done.stderr


def calls_of(path, name="leaf"):
    rows = totals(Trace(str(path)), all_windows=True)
    return sum(count for row, count, *_ in rows if row.rpartition(": ")[2] == name)


def await_no(folder):
    until = time.monotonic() + TIMEOUT
    while os.listdir(folder) and time.monotonic() < until:
        time.sleep(0.02)
    assert os.listdir(folder) == []


# ---- the mode -------------------------------------------------------------------


def test_a_copied_trace_is_complete_and_its_local_file_is_gone(tmp_path, local):
    result = run(tmp_path / "t.vst")
    assert (result.returncode, result.stdout) == (3, "done\n")
    told = COPIED.match(result.stderr)
    assert told and told[1] == str(tmp_path / "t.vst") and told[2].startswith(str(local))
    facts, errors = info(tmp_path / "t.vst")
    assert (facts["ended"], facts["lost"], errors) == ("clean", 0, "")
    assert calls_of(tmp_path / "t.vst") == CALLS
    assert facts["metadata"]["vestige.storage"]["local"] == told[2]
    await_no(local)


def test_a_local_disk_is_mapped_and_nothing_is_said(tmp_path, local):
    result = run(tmp_path / "t.vst", storage=())
    assert (result.returncode, result.stderr) == (3, "")
    assert calls_of(tmp_path / "t.vst") == CALLS
    assert not local.exists()


def test_the_environment_chooses_unless_the_option_does(tmp_path, local, monkeypatch):
    monkeypatch.setenv("VESTIGE_STORAGE", "copied")
    assert COPIED.match(run(tmp_path / "a.vst", storage=()).stderr)
    assert run(tmp_path / "b.vst", storage=("--storage", "mapped")).stderr == ""


def test_an_unknown_mode_is_refused_in_one_line(tmp_path, monkeypatch):
    result = run(tmp_path / "t.vst", storage=("--storage", "fast"))
    assert result.returncode == 2
    assert result.stderr == "vestige: no storage 'fast': use one of auto, mapped, copied\n"
    monkeypatch.setenv("VESTIGE_STORAGE", "slow")
    result = run(tmp_path / "t.vst", storage=())
    assert "no storage 'slow' (VESTIGE_STORAGE asks for it)" in result.stderr
    assert not (tmp_path / "t.vst").exists()


def test_mistakes_are_told_before_the_program_runs(tmp_path, local):
    (tmp_path / "t.vst").write_text("mine")
    result = run(tmp_path / "t.vst")
    assert (result.returncode, result.stdout) == (2, "")
    assert "already exists; --force overwrites it" in result.stderr
    assert (tmp_path / "t.vst").read_text() == "mine"
    result = run(tmp_path / "none" / "t.vst")
    assert (result.returncode, result.stdout) == (2, "")
    assert "No such file or directory" in result.stderr
    await_no(local)
    assert run(tmp_path / "t.vst", storage=("--storage", "copied", "--force")).returncode == 3
    assert info(tmp_path / "t.vst")[0]["ended"] == "clean"


# ---- what the program sees ------------------------------------------------------------

LOOKS = """\
import os, signal, sys, threading, warnings
warnings.simplefilter("error")
signals = []
signal.signal(signal.SIGCHLD, lambda *_: signals.append(1))
try:
    print(os.wait())
except ChildProcessError:
    print("no child")
print(len(os.listdir("/proc/self/task")), signals)
if os.fork() == 0:
    os._exit(0)
print(os.wait()[1], len(signals))
"""


def test_the_program_sees_no_child_no_thread_and_no_signal(tmp_path, local):
    result = run(tmp_path / "t.vst", program=LOOKS)
    assert result.stdout == "no child\n1 []\n0 1\n"
    assert "Warning" not in result.stderr


def test_who_reads_the_programs_output_does_not_wait_for_the_copier(disk):
    disk.feel("stall 4")
    begin = time.monotonic()
    result = run(disk.folder / "t.vst", storage=())
    assert time.monotonic() - begin < 4
    assert (result.returncode, result.stdout) == (3, "done\n")


# ---- kinds of recordings ----------------------------------------------------------------


@pytest.mark.parametrize("bound", [["--max-size", "1M"], ["--last", "10s"], ["--min-duration", "1us"], ["--sched"]])
def test_every_kind_of_recording_can_be_copied(tmp_path, local, bound):
    result = run(tmp_path / "t.vst", storage=("--storage", "copied", *bound))
    assert result.returncode == 3
    facts = info(tmp_path / "t.vst")[0]
    assert (facts["ended"], facts["lost"]) == ("clean", 0)
    assert facts["records"] > 0
    await_no(local)


def test_memory_is_recorded_into_a_copied_file(tmp_path, local):
    command = [
        COMMAND,
        "memory",
        "--storage",
        "copied",
        "-o",
        str(tmp_path / "t.vst"),
        "-c",
        "x = bytearray(5_000_000)",
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert "peak" in result.stderr
    assert info(tmp_path / "t.vst")[0]["ended"] == "clean"
    assert read_memory(Trace(str(tmp_path / "t.vst"))).views["peak"].bytes >= 5_000_000


CHILDREN = """\
import os, subprocess, sys

def leaf():
    pass

child = os.fork()
for _ in range(1000):
    leaf()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
subprocess.run([sys.executable, "-c", "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])"], check=True)
"""


def test_children_have_copied_files_of_their_own(tmp_path, local):
    result = run(tmp_path / "t.vst", program=CHILDREN)
    assert (result.returncode, result.stdout) == (0, "1\n")
    listed = subprocess.run([COMMAND, "info", "--json", tmp_path / "t.vst"], capture_output=True, text=True)
    processes = json.loads(listed.stdout)["processes"]
    assert sorted(process["ended"] for process in processes) == ["clean", "clean", "clean", "torn"]
    assert [calls_of(process["file"]) for process in processes].count(1000) == 2
    await_no(local)


SNAPSHOTS = """\
import sys, time
from vestige import profile, snapshot

def leaf():
    pass

with profile(output=sys.argv[1], storage="copied", max_size="4M"):
    for _ in range(5000):
        leaf()
    snapshot(sys.argv[2])
"""


def test_snapshots_are_copied_too(tmp_path, local):
    names = tmp_path / "t.vst", tmp_path / "snapshot.vst"
    subprocess.run([PYTHON, "-c", SNAPSHOTS, *names], check=True, timeout=TIMEOUT)
    for name in names:
        assert info(name)[0]["ended"] == "clean"
        assert calls_of(name) == 5000
    await_no(local)


def test_a_copied_recording_is_read_inside_the_program(tmp_path, local):
    program = SNAPSHOTS.replace("    snapshot(sys.argv[2])\n", "") + "print(prof)\n"
    program = program.replace('max_size="4M"):', ") as prof:").replace(
        "print(prof)", "print(len(prof.events()) > 5000)"
    )
    done = subprocess.run([PYTHON, "-c", program, tmp_path / "t.vst"], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.stdout == "True\n", done.stderr


# ---- death ---------------------------------------------------------------------


def kill_recorded(trace, storage=("--storage", "copied")):
    """Kills a recorded program; returns its pid."""
    command = [COMMAND, "run", "-q", *storage, "-o", str(trace), "-c", ENDLESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        assert program.stdout.readline() == "ready\n"
        time.sleep(0.6)
        program.kill()
    return program.pid


def copier_of(target):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"vestige-copier", os.fsencode(target)]:
            return int(pid)
    raise AssertionError("there is no copier")


def test_the_copier_completes_the_file_of_a_killed_program(tmp_path, local):
    kill_recorded(tmp_path / "t.vst")
    await_no(local)
    facts = info(tmp_path / "t.vst")[0]
    assert (facts["ended"], facts["lost"]) == ("torn", 0)
    assert calls_of(tmp_path / "t.vst") > 1000


@pytest.mark.parametrize("by", ["reader", "run"])
def test_who_comes_next_completes_the_file_if_the_copier_was_killed_too(tmp_path, local, by):
    trace = tmp_path / "t.vst"
    command = [COMMAND, "run", "-q", "--storage", "copied", "-o", str(trace), "-c", ENDLESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        assert program.stdout.readline() == "ready\n"
        os.kill(copier_of(trace), signal.SIGKILL)
        time.sleep(0.3)
        program.kill()
    left = [copy for copy in find_copies() if copy.target == str(trace)]
    assert len(left) == 1 and not left[0].is_busy
    expected = Trace(left[0].local).info()["records"]
    if by == "run":
        told = run(tmp_path / "other.vst", program="pass", storage=()).stderr
        assert f"{trace} was not complete; a process copies the rest from {left[0].local}" in told
        await_no(local)
    facts, errors = info(trace)
    assert (facts["ended"], facts["records"], errors) == ("torn", expected, "")
    await_no(local)


def test_a_reader_names_the_local_file_while_the_program_runs(tmp_path, local):
    command = [COMMAND, "run", "-q", "--storage", "copied", "-o", str(tmp_path / "t.vst"), "-c", ENDLESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        assert program.stdout.readline() == "ready\n"
        time.sleep(0.6)
        facts, errors = info(tmp_path / "t.vst")
        program.kill()
    assert "the recording goes on; records that it lacks are in " + str(local) in errors
    assert facts["records"] > 0
    assert facts["ended"] == "recording"
    await_no(local)


# ---- ways to a slow disk -------------------------------------------------------------------


STALL_S = 90  # longer than any run takes, so a run that ends sooner has not asked the disk


def ends_while_the_disk_stalls(disk, trace, **options):
    """Runs while the disk answers nothing; returns what was said about the storage."""
    disk.feel(f"stall {STALL_S}")
    begin = time.monotonic()
    result = run(trace, storage=(), **options)
    assert time.monotonic() - begin < STALL_S
    assert (result.returncode, result.stdout) == (3, "done\n")
    return result.stderr


def test_a_link_to_a_slow_disk_is_seen_without_asking_the_disk(disk, tmp_path, local):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "inner").symlink_to("../disk/runs")
    (tmp_path / "outer").symlink_to(tmp_path / "links")
    trace = tmp_path / "outer" / "inner" / "t.vst"
    told = ends_while_the_disk_stalls(disk, trace)
    assert COPIED.match(told) and told.splitlines()[0].endswith("and copied, because it is on FUSE")
    left = re.search(r"it is in (\S+)", told)[1]
    assert left.startswith(str(local))
    assert calls_of(left) == CALLS


def test_a_relative_path_to_a_slow_disk_is_seen_without_asking_the_disk(disk, tmp_path):
    told = ends_while_the_disk_stalls(disk, "local/..//./disk/runs/t.vst", cwd=tmp_path)
    assert "and copied, because it is on FUSE" in told


@pytest.mark.parametrize("disk", [{"upper": True}], indirect=True)
def test_an_overlay_that_writes_to_a_slow_disk_is_copied(disk, tmp_path):
    folder = tmp_path / "overlay"
    try:
        with disk.overlay(folder):
            told = run(folder / "t.vst", storage=()).stderr
            assert "and copied, because it is on FUSE" in told
            facts, _ = info(folder / "t.vst")
            assert (facts["ended"], facts["lost"]) == ("clean", 0)
            assert calls_of(disk.at_rest("upper/t.vst")) == CALLS
            assert "not complete yet" in ends_while_the_disk_stalls(disk, folder / "other.vst")
    except NoDisk as error:
        pytest.skip(str(error))


def test_an_overlay_that_writes_to_a_local_disk_is_mapped(tmp_path):
    for name in ("lower", "upper", "work", "overlay"):
        (tmp_path / name).mkdir()
    options = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    words = ["mount", "-t", "overlay", "overlay", "-o", options, tmp_path / "overlay"]
    mounted = subprocess.run(words, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no overlay here: {mounted.stderr.strip()}")
    try:
        assert run(tmp_path / "overlay" / "t.vst", storage=()).stderr == ""
    finally:
        subprocess.run(["umount", "-l", tmp_path / "overlay"], check=True)


def test_folders_for_local_files_are_not_asked_on_a_slow_disk(disk, tmp_path, monkeypatch):
    """Neither to record into them, nor to look for files that were left there."""
    (disk.at_rest("") / f"vestige-copies-{os.geteuid()}").mkdir(mode=0o700)
    (tmp_path / "to_disk").symlink_to(disk.folder)
    monkeypatch.setenv("VESTIGE_TMPDIR", str(disk.folder))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "to_disk"))
    told = ends_while_the_disk_stalls(disk, disk.folder / "t.vst")
    left = re.search(r"it is in (\S+)", told)[1]
    assert not left.startswith(str(tmp_path))
    assert calls_of(left) == CALLS
    os.unlink(left)
    assert ends_while_the_disk_stalls(disk, tmp_path / "t.vst") == ""


def test_local_files_that_others_may_have_made_are_left_alone(tmp_path, local):
    """Otherwise anybody who makes the folder first could have a reader write any file."""
    kill_recorded(tmp_path / "t.vst")
    await_no(local)
    left = local / "x.vst"
    left.write_bytes((tmp_path / "t.vst").read_bytes())
    assert str(left) in _core.local_files()
    local.chmod(0o770)
    assert str(left) not in _core.local_files()


LISTENS = """\
import sys, vestige
vestige.listen(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    print("goes on", flush=True)
"""


def ask(connection, lines, **request):
    connection.sendall(json.dumps(request).encode() + b"\n")
    return json.loads(lines.readline())


@pytest.mark.parametrize("named", [True, False], ids=["-o", "its-own-name"])
def test_a_request_to_record_onto_a_slow_disk_does_not_stop_the_program(disk, tmp_path, named):
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(disk.folder)
    path = str(tmp_path / "private" / "socket")
    begin = time.monotonic()
    with subprocess.Popen(
        [PYTHON, "-c", LISTENS, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout.readline() == "ready\n"
        disk.feel(f"stall {STALL_S}")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            output = str(tmp_path / "link" / "t.vst") if named else None
            answer = ask(
                connection,
                connection.makefile(),
                do="record",
                output=output,
                folder=str(tmp_path / "link"),
                seconds=None,
                chosen=[],
                options={},
            )
            assert answer["notes"][0].endswith("and copied, because it is on FUSE"), answer
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.stdout.readline() == "goes on\n"
        program.stdin.close()
        assert program.wait(TIMEOUT) == 0
    assert time.monotonic() - begin < STALL_S


# ---- disks that fail ----------------------------------------------------------------------


def test_a_disk_that_stalls_does_not_stop_the_program(disk):
    disk.feel("stall 4")
    begin = time.monotonic()
    result = run(disk.folder / "t.vst", storage=())
    assert time.monotonic() - begin < 4
    assert (result.returncode, result.stdout) == (3, "done\n")
    told = re.search(r"not complete yet \(the disk is slow\); until .* it is in (\S+)", result.stderr)
    assert told, result.stderr
    disk.feel("fine")
    facts, _ = info(disk.folder / "t.vst")
    assert (facts["ended"], facts["lost"]) == ("clean", 0)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT], ids=["EIO", "ENOSPC", "EDQUOT"])
def test_a_disk_that_fails_loses_nothing(disk, number):
    result = run(
        disk.folder / "t.vst", storage=(), program=f"open({str(disk.mood)!r}, 'w').write('fail {number}')\n" + PROGRAM
    )
    assert (result.returncode, result.stdout) == (3, "done\n")
    assert f"not complete yet ({os.strerror(number)})" in result.stderr
    disk.feel("fine")
    facts, _ = info(disk.folder / "t.vst")
    assert (facts["ended"], facts["lost"]) == ("clean", 0)
    assert calls_of(disk.at_rest("t.vst")) == CALLS


def test_a_disk_that_cuts_files_loses_nothing(disk):
    disk.feel("truncate 65536")
    result = run(disk.folder / "t.vst", storage=())
    assert (result.returncode, result.stdout) == (3, "done\n")
    disk.feel("fine")
    facts, _ = info(disk.folder / "t.vst")
    assert (facts["ended"], facts["lost"]) == ("clean", 0)
    assert calls_of(disk.at_rest("t.vst")) == CALLS


def test_a_disk_that_vanishes_leaves_the_local_file(disk):
    vanish = f"import os; os.kill({disk.server}, 9)\n"
    result = run(disk.folder / "t.vst", storage=("--no-children",), program=vanish + PROGRAM)
    assert (result.returncode, result.stdout) == (3, "done\n")
    left = re.search(r"it is in (/\S+)", result.stderr)[1]
    assert calls_of(left) == CALLS
    os.unlink(left)


def test_records_without_room_in_the_local_file_are_counted(disk, tmp_path, monkeypatch):
    """A tmpfs of 24 MiB has room for a local file of 12 MiB."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", small], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs here: {mounted.stderr.strip()}")
    monkeypatch.setenv("VESTIGE_TMPDIR", str(small))
    try:
        disk.feel("stall 3")
        result = run(disk.folder / "t.vst", storage=(), program=PROGRAM.replace(str(CALLS), "2_000_000"))
        assert (result.returncode, result.stdout) == (3, "done\n")
        lost = re.search(r"([\d,]+) records could not be kept", result.stderr)
        assert lost
        disk.feel("fine")
        facts, _ = info(disk.folder / "t.vst")
        assert facts["lost"] == int(lost[1].replace(",", ""))
        assert facts["records"] + facts["lost"] >= 4_000_000
    finally:
        subprocess.run(["umount", "-l", small], check=True)
