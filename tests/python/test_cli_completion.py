"""`vestige completion`: the scripts, run in the installed shells; bash is always installed."""

import contextlib
import io
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from vestige import cli

pytestmark = pytest.mark.any_python

SHOW = """
source ./script.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_vestige
printf '%s\\n' "${COMPREPLY[@]}"
"""


def printed(*words):
    """Completes by the command, in this process."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        if words[0] in ("run", "memory"):
            cli.load(words[0]).prepare(list(words[1:]))
        else:
            cli._dispatch(list(words))
    return out.getvalue()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with files and the scripts."""
    path = tmp_path_factory.mktemp("completion")
    for name in ("t.vst", "two words.vst", "notes.txt", "prog.py", "et.json"):
        (path / name).touch()
    (path / "traces").mkdir()
    for shell in ("bash", "zsh", "fish"):
        (path / f"script.{shell}").write_text(printed("completion", shell))
    return path


@pytest.fixture
def bash(place):
    def complete(*words):
        """Returns the completions that bash offers for the last word."""
        command = ["bash", "--norc", "-c", SHOW, "bash", "vestige", *words]
        result = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
        assert result.stderr == ""
        return sorted(line for line in result.stdout.splitlines() if line)

    return complete


def test_bash_completes_commands_options_values_and_traces(bash):
    assert bash("rep") == ["report"]
    assert bash("me") == ["memory", "memory-report"]
    assert bash("report", "--so") == ["--sort"]
    assert bash("report", "--sort", "self") == ["self", "self-memory"]
    assert bash("report", "--columns", "self-") == ["self-memory"]
    assert bash("report", "--columns", "calls,self,run") == ["calls,self,running"]
    assert bash("report", "t.vst", "--format", "j") == ["json"]
    assert bash("report", "") == ["t.vst", "traces", "two words.vst"]
    assert bash("report", "-n", "") == []  # a number
    assert bash("export", "t.vst", "-o", "n") == ["notes.txt"]
    assert bash("export", "--to", "spe") == ["speedscope"]
    assert bash("completion", "z") == ["zsh"]
    assert bash("et", "") == ["--help", "check", "show"]
    assert bash("et", "check", "--time") == ["--timeline"]
    assert bash("et", "show", "e") == ["et.json"]


def test_bash_leaves_the_words_of_a_program_to_it(bash):
    assert bash("run", "--fo") == ["--force"]
    assert bash("run", "") == ["prog.py", "traces"]
    assert bash("run", "-o", "t.vst", "p") == ["prog.py"]
    assert bash("run", "-o", "t.vst", "prog.py", "n") == ["notes.txt"]
    assert bash("run", "-o", "t.vst", "prog.py", "--fo") == []
    assert bash("run", "-m", "json.tool", "e") == ["et.json"]


def test_every_option_of_every_command_is_in_every_script(place):
    """Reads the commands and options from the printed help, independently of the scripts."""
    scripts = [(place / f"script.{shell}").read_text() for shell in ("bash", "zsh", "fish")]
    commands = [[name] for name in cli.COMMANDS if name not in ("et", "device")]
    commands += [["et", "check"], ["et", "show"], ["device", "check"]]
    for command in commands:
        text = printed(*command, "--help-all" if command[0] in ("run", "attach") else "--help").partition(
            "\nexamples:"
        )[0]
        options = set(re.findall(r"^  (?:-\w(?: \w+)?, )?(--[a-z][a-z-]+)", text, re.MULTILINE))
        assert options >= {"--help"}
        for option in options:
            assert all(option in script or f"-l {option[2:]} " in script for script in scripts), (command, option)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_commands_options_values_and_traces(place):
    def fish(line):
        command = ["fish", "--no-config", "-c", f"source script.fish; complete -C '{line}'"]
        result = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
        return [line.partition("\t")[0] for line in result.stdout.splitlines()]

    assert fish("vestige rep") == ["report"]
    assert fish("vestige report --so") == ["--sort"]
    assert "self-memory" in fish("vestige report --sort ")
    assert "calls,running" in fish("vestige report --columns calls,run")
    assert "t.vst" in fish("vestige report ")
    assert set(fish("vestige et ")) >= {"check", "show"}
    assert fish("vestige et check --timel") == ["--timeline"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_commands_options_values_and_traces(place):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place)
        os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "PS1": "> ", "TERM": "dumb"})

    def say(text, until):
        os.write(terminal, text.encode())
        seen, end = "", time.monotonic() + 20
        while until not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 4096).decode(errors="replace")
        assert until in seen, seen
        return seen

    try:
        say("autoload -Uz compinit && compinit -u -D && source ./script.zsh && echo rea''dy\n", "ready")
        say("vestige rep\t", "report ")
        say("--so\t", "--sort ")
        say("tot\t", "total ")
        say("t.\t", "t.vst ")
        say("\x15vestige et ch\t", "check ")
        say("--timel\t", "--timeline ")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
