"""Options of a project in pyproject.toml, and the viewer after a run."""

import os
import signal
import subprocess

import pytest

from conftest import COMMAND
from vestige import Trace

pytestmark = pytest.mark.any_python
PROGRAM = """\
import json, sys
def load_this(x): return x
def load_that(x): return x
load_this(1); load_that(2)
assert "tomllib" not in sys.modules
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "app.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path / "inner")
    return tmp_path


def run(*words, **options):
    return subprocess.run([COMMAND, "run", "-o", "t.vst", *words], capture_output=True, text=True, **options)


def names():
    return {function[1] for function in Trace("t.vst").functions() if function}


def test_the_nearest_pyproject_gives_options(place):
    (place / "pyproject.toml").write_text("[tool.vestige]\nquiet = true\nno_c = true\ninclude = ['app.py']\n")
    ran = run("app.py")
    assert ran.returncode == 0 and ran.stderr == ""
    assert "load_this" in names() and not any("built-in" in name or name == "JSONDecoder" for name in names())


def test_what_is_written_wins(place):
    (place / "pyproject.toml").write_text("[tool.vestige]\nengine = 'turbo'\nquiet = true\n")
    assert run("--engine", "safe", "app.py").returncode == 0
    assert Trace("t.vst").metadata()["vestige.engine"] != '"turbo"'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no_gcc = true", "unknown option 'no_gcc', did you mean no-gc?"),
        ("quiet = 1", "quiet is true or false, not 1"),
        ("include = [1.5]", "include is a text, or a list of texts, not [1.5]"),
        ("output = 'x'", "unknown option 'output'"),
        ("quiet = ", "Invalid value"),
    ],
)
def test_a_wrong_option_is_told_in_a_line(place, text, said):
    (place / "pyproject.toml").write_text(f"[tool.vestige]\n{text}\n")
    ran = run("app.py")
    assert ran.returncode == 2 and said in ran.stderr and ran.stderr.count("\n") == 1
    assert "pyproject.toml" in ran.stderr and not os.path.exists("t.vst")


@pytest.mark.parametrize("text", ["[tool.other]\nx = 1\n", "not TOML at all ["])
def test_a_pyproject_that_is_not_about_us_is_not_parsed(place, text):
    (place / "pyproject.toml").write_text(text)
    assert run("-q", "app.py").returncode == 0


def test_arguments_are_recorded_by_pattern(place):
    assert run("-q", "--record-args", "load_*", "app.py").returncode == 0
    subprocess.run([COMMAND, "export", "t.vst", "-o", "t.json"], check=True)
    with open("t.json") as file:
        text = file.read()
    assert text.count('"arguments": {"x": "1"}') == text.count('"arguments": {"x": "2"}') == 1


def test_the_viewer_opens_when_the_program_has_ended(place):
    with subprocess.Popen(
        [COMMAND, "run", "-q", "-o", "t.vst", "--view", "-c", "raise SystemExit(3)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={
            name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
        },
    ) as process:
        assert "showing" in process.stdout.readline()
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) == 3, process.stderr.read()
