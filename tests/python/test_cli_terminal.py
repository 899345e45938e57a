"""Colours and progress: on a terminal, in a pipe, and with settings in the environment."""

import io
import subprocess
import sys
import time

import pytest

from conftest import COMMAND
from on_terminal import PLAIN, on_terminal
from traces import record, steps
from vestige.base import terminal

pytestmark = pytest.mark.any_python


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return str(record(tmp_path_factory.mktemp("colours") / "t.vst", steps(50)))


def test_colours_are_for_terminals_unless_the_environment_says_otherwise(trace):
    command = [COMMAND, "report", trace, "--tree", "--min", "0"]
    assert "\033[" in on_terminal(command)
    assert "\033[" not in on_terminal(command, TERM="dumb")
    assert "\033[" not in on_terminal(command, NO_COLOR="1")
    piped = subprocess.run(command, capture_output=True, text=True, env={**PLAIN, "TERM": "xterm"}).stdout
    forced = subprocess.run(command, capture_output=True, text=True, env={**PLAIN, "CLICOLOR_FORCE": "1"}).stdout
    assert "\033[" not in piped
    assert "\033[" in forced


@pytest.mark.parametrize(
    ("env", "tty", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": ""}, True, True),
        ({"NO_COLOR": "0"}, True, False),
        ({"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, True, False),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"CLICOLOR": "0"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "CLICOLOR_FORCE": "1"}, True, True),
    ],
)
def test_who_wants_colours(monkeypatch, env, tty, wanted):
    for name in ("NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    stream.isatty = lambda: tty
    assert terminal.wants_colours(stream) is wanted
    screen = terminal.Screen(stream)
    print(terminal.Paint(screen)("x", "hot"), file=screen)
    assert stream.getvalue() == ("\033[1;31mx\033[0m\n" if wanted else "x\n")


def test_a_wide_terminal_is_used_and_a_narrow_one_not_exceeded(trace):
    command = [COMMAND, "report", trace]
    for columns in (60, 100):
        lines = on_terminal(command, columns, NO_COLOR="1").splitlines()
        assert columns - 30 < max(map(len, lines)) <= columns


def test_text_is_measured_in_columns_and_cut_to_them():
    assert [terminal.cells(text) for text in ("abc", "計算", "e\u0301", "")] == [3, 4, 1, 0]
    assert terminal.cut("計算する", 5) == "計算…"
    assert terminal.cut_front("path/計算", 6) == "…/計算"
    assert terminal.fit("<built-in method x of y object>", 12) == "<built-in m…"
    assert terminal.fit("a/long/path.py(3): f", 10) == "….py(3): f"
    assert terminal.pad("計", 4) == "計  "
    assert terminal.clean("a\x1b[31m\nb") == "a\ufffd[31m b"


PROGRESS = """\
import sys, time
sys.path[:0] = {path!r}
if {block!r}:
    sys.modules["rich"] = None
from vestige.base import terminal
clock = [0.0]
terminal.time.monotonic = lambda: clock[0]
progress = terminal.Progress("reading a file", before=0.5, part=0.5)
progress(0.1)
clock[0] = 0.9
progress(0.2)
print("early", flush=True)
clock[0] = 1.1
progress(0.5)
progress(0.6)
progress.clear()
print("done", flush=True)
"""


@pytest.mark.parametrize("block", [True, False])
def test_progress_shows_after_a_second_and_goes_away(block):
    """With our own line, and with rich where rich is installed."""
    if not block:
        pytest.importorskip("rich")
    code = PROGRESS.format(path=[], block=block)
    seen = on_terminal([sys.executable, "-c", code])
    before, _, after = seen.partition("early")
    assert before == ""
    assert "reading a file" in after and "75%" in after and "80%" in after
    assert after.rstrip().endswith("done")
    assert ("…  75%" in after) is block
    last = after.rpartition("80%")[2]
    assert "\033[K" in last or "\033[2K" in last
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (piped.stdout, piped.stderr) == ("early\ndone\n", "")


TELLING = """\
from vestige.base import terminal
clock = [0.0]
terminal.time.monotonic = lambda: clock[0]
progress = terminal.Progress("asking")
progress.count("5 rows read")
clock[0] = 1.1
progress.count("1,000 rows read")
progress.clear()
"""


def test_where_no_share_is_known_it_is_told_what_was_done():
    command = [sys.executable, "-c", TELLING]
    assert on_terminal(command) == "\rasking … 1,000 rows read\r\033[K"
    assert subprocess.run(command, capture_output=True, check=True).stderr == b""


def test_a_closed_or_missing_stream_is_no_terminal(monkeypatch):
    closed = io.StringIO()
    closed.close()
    assert not terminal.is_terminal(closed) and not terminal.is_terminal(None)
    monkeypatch.setattr(sys, "stderr", None)
    progress = terminal.Progress("x")
    progress(0.5)
    progress.clear()


def test_reading_takes_no_time_to_speak_of_when_there_is_no_terminal():
    """Progress is called at most every 50 ms, and must not take noticeable time."""
    progress = terminal.Progress("x")
    begun = time.process_time()
    for _ in range(1000):
        progress(0.5)
    assert time.process_time() - begun < 1
