"""The help: commands in groups, and examples that the parsers accept unchanged."""

import re
import shlex
import subprocess

import pytest

import vestige
from conftest import COMMAND
from vestige import cli
from vestige.cli.run import split

pytestmark = pytest.mark.any_python

EXAMPLE = re.compile(r"^  (vestige .*)$", re.MULTILINE)
RUNS_PROGRAMS = ("run", "memory")


@pytest.fixture(scope="module")
def parsers():
    return cli.parsers()


def commands_of(text):
    """Returns the words of each example, without its comment and without pipes or redirections."""
    for line in EXAMPLE.findall(text):
        command = re.split(r"\s{2,}| \| | > ", line)[0]
        yield shlex.split(command)[1:]


def test_every_command_is_in_one_group_of_the_help():
    text = cli.usage()
    assert [title for title in re.findall(r"^(.+):$", text, re.MULTILINE)] == list(cli.GROUPS)
    listed = re.findall(r"^  ([a-z-]+(?: check)?) {2,}\S", text, re.MULTILINE)
    assert listed == [name for group in cli.GROUPS.values() for name in group]
    assert [name.partition(" ")[0] for name in listed] == list(cli.COMMANDS)
    assert "device check" in cli.GROUPS["look"]
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_help_begins_with_the_two_commands_that_most_people_need():
    assert [words[0] for words in commands_of(cli.usage())] == ["run", "view"]


def said(*words):
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("command", ["run", "memory", "attach", "report", "et check"])
def test_help_of_a_command_can_be_asked_in_two_ways(command):
    code, text, trouble = said("help", *command.split())
    assert (code, trouble) == (0, "") and text.startswith(f"usage: vestige {command} ")
    assert (code, text, trouble) == said(*command.split(), "--help")


def test_help_of_a_command_that_does_not_exist_is_refused():
    assert said("help", "rnu") == (2, "", "vestige: no command 'rnu'; did you mean 'run'?\n")
    assert said("help") == said("--help")


def test_the_version_has_a_short_option():
    assert said("-V") == said("--version") == (0, f"vestige {vestige.__version__}\n", "")


def test_every_command_has_a_parser(parsers):
    assert {name.partition(" ")[0] for name in parsers} == set(cli.COMMANDS)
    assert "et check" in parsers and "et show" in parsers


PARTED = ("et check", "et show", "device check")  # commands that have subcommands


@pytest.mark.parametrize("name", [*(name for name in cli.COMMANDS if name not in ("et", "device")), *PARTED])
def test_the_examples_of_a_command_are_taken_by_its_parser(name, parsers):
    parser = parsers[name]
    examples = list(commands_of(parser.format_help()))
    assert examples, f"vestige {name} --help has no example"
    for words in examples:
        own = words[len(name.split(" ")) :]
        assert " ".join(words).startswith(name)
        if name in RUNS_PROGRAMS:
            own, _, target, _ = split(own, parser.options_with_value())
            assert target
        parser.parse_args(own)


def test_the_examples_of_et_and_of_the_whole_are_taken_too(parsers):
    from vestige.cli.device.command import USAGE as DEVICE
    from vestige.cli.et.command import USAGE

    for words in [*commands_of(USAGE), *commands_of(DEVICE)]:
        parsers[" ".join(words[:2])].parse_args(words[2:])


def test_until_is_the_end_of_a_range_wherever_there_is_one(parsers):
    ranged = {name for name, parser in parsers.items() if "--from" in parser._option_string_actions}
    assert ranged == {"report", "export", "view"}
    for name in ranged:
        options = parsers[name].parse_args(["t.vst", *(["-o", "x.json"] if name == "export" else []), "--until", "2s"])
        assert options.until_time == "2s"
        assert "--until" in parsers[name].format_help()
