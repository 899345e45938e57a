"""`vestige attach`: records a running process for a while; the process continues."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import vestige
from conftest import COMMAND, PYTHON, TIMEOUT
from running import BY_REMOTE_EXEC, FOLDER, PATIENT, WORKER, detach, need_a_way_in, running  # noqa: F401 (fixture)
from usable import usable_engines

need_a_way_in()
TIMES = 50 if BY_REMOTE_EXEC else 4  # each use of gdb takes most of a second
ATTACH_OFTEN = """
import sys
from vestige.cli.attach import command

pid, times, *words = sys.argv[1:]
for number in range(int(times)):
    command.main([pid, "-q", "--for", "1ms", "-o", f"{number}.vst", *words])
"""

FORKING = (
    """
import os

def fork():
    child = os.fork()
    if child == 0:
        branch(3)
        os._exit(0)
    os.waitpid(child, 0)
    return child
"""
    + WORKER
)


def left_in_folder(pid):
    return [name for name in os.listdir(FOLDER) if str(pid) in name]


def test_what_runs_is_recorded_from_the_calls_that_are_open_and_the_report_appears(running, tmp_path):
    program = running()
    result = program.attach("-o", "t.vst", "--for", "100ms")
    assert result.returncode == 0, result.stderr
    assert f"recording process {program.pid} (program0) into t.vst; for 100 ms" in result.stderr
    assert " calls, " in result.stdout and "vestige view t.vst" in result.stdout
    vestige.Trace(str(tmp_path / "t.vst")).export(str(tmp_path / "t.json"))
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    open_before = [event for event in events if event["name"].endswith((": <module>", ": main"))]
    # microseconds: the whole recording
    assert len(open_before) == 2 and all(event["dur"] >= 99_000 for event in open_before)
    assert (program.ask("hooks()"), program.ask("branch(7)")) == (0, 42)
    assert left_in_folder(program.pid) == []
    assert program.end() == ""


def test_threads_of_vestige_are_not_in_the_recording(running, tmp_path):
    program = running()
    program.attach("-q", "-o", "t.vst", "--for", "50ms")
    assert vestige.Trace(str(tmp_path / "t.vst")).info()["threads"] <= 2
    assert len(os.listdir(f"/proc/{program.pid}/task")) == 2


def test_attaching_over_and_over_leaves_nothing_behind(running, tmp_path):
    program = running()
    command = [PYTHON, "-c", ATTACH_OFTEN, str(program.pid), str(TIMES), *PATIENT]
    subprocess.run([*command[:4], "1", *PATIENT, "--force"], cwd=tmp_path, check=True, capture_output=True)
    before = program.ask("rss()")
    result = subprocess.run([*command, "--force"], cwd=tmp_path, capture_output=True, text=True, timeout=5 * TIMEOUT)
    assert result.returncode == 0, result.stderr
    assert program.ask("hooks()") == 0
    assert program.ask("branch(100)") == 9900
    assert program.ask("rss()") - before < 6000
    assert len(os.listdir(f"/proc/{program.pid}/task")) == 2
    assert left_in_folder(program.pid) == []
    assert program.end() == ""


@pytest.mark.parametrize("engine", usable_engines())
def test_every_engine_can_be_attached(running, tmp_path, engine):
    program = running()
    result = program.attach("-q", "-o", "t.vst", "--for", "50ms", "--engine", engine)
    assert result.returncode == 0, result.stderr
    shown = subprocess.run([COMMAND, "info", "t.vst"], cwd=tmp_path, capture_output=True, text=True).stdout
    assert f"engine {engine}" in shown and "ended    clean" in shown
    assert program.ask("hooks()") == 0


@pytest.mark.skipif(not hasattr(sys, "_jit"), reason="this Python has no JIT")
@pytest.mark.parametrize("jit", ["0", "1"])
def test_the_jit_may_be_on_or_off(running, tmp_path, jit):
    program = running(env={**os.environ, "PYTHON_JIT": jit})
    for number in range(3):
        assert program.attach("-q", "-o", f"{number}.vst", "--for", "50ms").returncode == 0
        assert vestige.Trace(str(tmp_path / f"{number}.vst")).info()["records"] > 0
    assert (program.ask("hooks()"), program.ask("branch(7)")) == (0, 42)
    assert program.end() == ""


def test_detach_ends_it_and_the_report_appears_where_it_was_attached(running):
    program = running()
    command = program.begin("-o", "t.vst")
    ended = detach(program.pid)
    stdout, _ = command.communicate(timeout=TIMEOUT)
    assert (ended.returncode, command.returncode) == (0, 0), ended.stderr
    assert "t.vst" in ended.stdout and "vestige view t.vst" in stdout
    assert program.ask("hooks()") == 0
    again = detach(program.pid)
    assert (again.returncode, again.stderr) == (1, f"vestige: vestige is not attached to process {program.pid}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_command_ends_the_recording(running, tmp_path, number):
    program = running()
    command = program.begin("-o", "t.vst")
    command.send_signal(number)
    stdout, stderr = command.communicate(timeout=TIMEOUT)
    assert command.returncode == 0, stderr
    assert "vestige view t.vst" in stdout
    assert vestige.Trace(str(tmp_path / "t.vst")).info()["clean"]
    assert program.ask("hooks()") == 0


def test_the_recording_ends_and_is_not_lost_when_the_command_is_killed(running, tmp_path):
    program = running()
    command = program.begin("-o", "t.vst")
    command.kill()
    command.communicate()
    until = time.monotonic() + TIMEOUT
    while program.ask("hooks()") and time.monotonic() < until:
        time.sleep(0.01)
    assert program.ask("hooks()") == 0
    assert program.attach("-q", "-o", "u.vst", "--for", "1ms").returncode == 0
    assert vestige.Trace(str(tmp_path / "t.vst")).info()["clean"]


def test_files_get_names_of_their_own(running, tmp_path):
    program = running()
    for _ in range(2):
        assert program.attach("-q", "--for", "1ms").returncode == 0
    assert {path.name for path in tmp_path.glob("*.vst")} == {
        f"program0.{program.pid}.vst",
        f"program0.{program.pid}-2.vst",
    }


def test_options_of_run_and_memory_are_taken(running, tmp_path):
    program = running()
    result = program.attach("-o", "t.vst", "--for", "100ms", "--memory", "--no-c", "--only", "branch")
    assert result.returncode == 0, result.stderr
    assert "vestige memory-report t.vst" in result.stdout
    info = vestige.Trace(str(tmp_path / "t.vst")).metadata()
    assert (info["profile_memory"], info["vestige.only"]) == ("1", '["branch"]')


def test_children_that_start_meanwhile_are_recorded_too(running, tmp_path):
    program = running(FORKING, flags=("-W", "ignore"))
    command = program.begin("-o", "t.vst")
    child = program.ask("fork()")
    detach(program.pid)
    stdout, _ = command.communicate(timeout=TIMEOUT)
    assert (tmp_path / f"t.{child}.vst").exists()
    assert "and 1 child process" in stdout
