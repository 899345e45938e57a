"""The table of options, and the texts and code generated from the table."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import vestige
from conftest import COMMAND
from vestige import cli
from vestige.cli.project import OPTIONS as PROJECT
from vestige.recording.option_table import BY_NAME, FLAG, KEYWORDS, OPTIONS

pytestmark = pytest.mark.any_python
WRITER = Path(__file__).resolve().parents[2] / "scripts" / "write_options.py"
SCREEN = 50  # lines


@pytest.fixture(scope="module")
def parsers():
    return cli.parsers()


def run(*words, **options):
    return subprocess.run([COMMAND, "run", *words, "-c", "pass"], capture_output=True, text=True, **options)


def test_profile_has_the_keywords_of_the_table():
    there = inspect.signature(vestige.profile).parameters
    for option in KEYWORDS:
        known = there[option.name].default
        assert known == option.default, f"{option.name}: run {WRITER.name}"
    ours = [name for name in there if name in BY_NAME and "torch" not in BY_NAME[name].traits]
    assert ours == [option.name for option in KEYWORDS if "torch" not in option.traits], f"run {WRITER.name}"
    text = " ".join(inspect.getdoc(vestige.profile).split())
    for option in KEYWORDS:
        assert f"{option.name} {option.python or option.help}" in text, f"{option.name}: run {WRITER.name}"


def test_the_source_of_profile_is_what_the_table_gives():
    """If this fails, run scripts/write_options.py."""
    sys.path.insert(0, str(WRITER.parent))
    try:
        import write_options
    finally:
        sys.path.remove(str(WRITER.parent))
    source = (write_options.PACKAGE / "profiler.py").read_text()
    assert write_options.written(source) == source


@pytest.mark.parametrize("command", ["run", "attach", "memory"])
def test_a_command_has_the_flags_of_the_table(command, parsers):
    known = parsers[command]._option_string_actions
    for option in OPTIONS:
        for flag in option.flags.split():
            assert (flag in known) == (command in option.commands), flag
            assert command not in option.commands or known[flag].dest == option.name


def test_what_the_flags_say_is_what_a_session_is_told(tmp_path):
    code = """
import sys, vestige._core as core
class Session:
    def __init__(self, path, **options):
        print(options)
        raise SystemExit
core.Session = Session
from vestige.cli import main
main()
"""
    words = [
        "--no-c",
        "--no-gc",
        "--last",
        "2s",
        "--min-duration",
        "10us",
        "--max-size",
        "2M",
        "--sched",
        "--only",
        "f*",
    ]
    words += ["--record-args", "g", "--record-args", "h", "--max-depth", "7", "--exceptions", "--engine", "safe"]
    words += ["--storage", "copied"]
    done = subprocess.run(
        [sys.executable, "-c", code, "run", *words, "-c", "pass"], capture_output=True, text=True, cwd=tmp_path
    )
    told = eval(done.stdout)
    assert told == {
        "overwrite": False,
        "storage": "copied",
        "with_stack": True,
        "c_functions": False,
        "include": None,
        "exclude": None,
        "only": ("f*",),
        "waits": None,
        "spins": True,
        "max_depth": 7,
        "min_duration_ns": 10_000,
        "qualified_names": True,
        "record_args": ("g", "h"),
        "sched": True,
        "exceptions": True,
        "lines": True,
        "gc": False,
        "last_ns": 2 * 10**9,
        "memory_native_stacks": False,
        "memory_sample_bytes": None,
        "memory_native_allocators": True,
        "max_size": 2 << 20,
        "engine": vestige._core.engines[0],
        "devices": False,
        "memory": False,
        "checkpoints": False,
    }


def test_a_session_takes_every_option_that_the_table_says_it_takes():
    for option in KEYWORDS:
        if option.in_session:
            vestige._core.Session(None, **{option.name + option.kind.unit: None})
    with pytest.raises(TypeError, match="Session\\(\\) has no option nothing"):
        vestige._core.Session(None, nothing=1)
    with pytest.raises(OverflowError):
        vestige._core.Session(None, max_depth=-1)
    with pytest.raises(OverflowError, match="max_depth is too large"):
        vestige._core.Session(None, max_depth=1 << 32)
    with pytest.raises(TypeError):
        vestige._core.Session(None, last_ns="1s")


def test_every_option_of_a_run_but_those_of_one_run_may_stand_in_a_project():
    left_out = {option.name for option in OPTIONS if "run" in option.commands} - {one.name for one in PROJECT.values()}
    assert left_out == {"output", "overwrite", "torch_profiler", "paused", "devices", "collector"}


def test_short_and_long_help_name_every_flag(parsers):
    environment = {**os.environ, "COLUMNS": "80"}
    for command in ("run", "attach"):
        short, long = (
            subprocess.run([COMMAND, command, word], capture_output=True, text=True, env=environment).stdout
            for word in ("--help", "--help-all")
        )
        assert len(short.splitlines()) <= SCREEN and all(len(line) <= 80 for line in short.splitlines())
        for action in parsers[command]._actions:
            if action.option_strings and action.dest not in ("help", "help_all"):
                assert action.option_strings[-1] in short and action.option_strings[-1] in long
    often = [option for option in OPTIONS if "often" in option.traits]
    assert len(often) == 10 and all(option in OPTIONS for option in often)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--budget", "5"], "--budget: 5 is more than all of the CPU time; 5 % is written 5%"),
        (["--budget", "5%", "--only", "f"], "--budget and --only cannot be used together"),
        (["--budget", "5%", "--max-depth", "1"], "--budget and --max-depth cannot be used together"),
        (["--max-depth", "0"], "--max-depth must be from 1 to 1,000,000,000, not 0"),
        (["--max-snapshots", "0"], "--max-snapshots must be from 1 to 10,000, not 0"),
        (["--last", "soon"], "--last: not a time: 'soon'; write a number and us, ms, s, m or h, such as 30s"),
        (["--max-size", "3"], "--max-size must be at least 1M, not '3'"),
    ],
)
def test_a_wrong_value_is_told_by_its_flag(words, line, tmp_path):
    done = run(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"vestige: {line}\n")
    assert os.listdir(tmp_path) == []


def test_flags_take_no_value_and_others_do(parsers):
    for option in OPTIONS:
        if "run" in option.commands:
            action = parsers["run"]._option_string_actions[option.flag]
            assert (action.nargs == 0) == (option.metavar is None)
            assert option.kind is not FLAG or option.metavar is None


def test_an_option_that_this_python_does_not_have_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(ValueError, match="^budget needs a Python with a GIL$"):
        vestige.profile(budget=0.05)
