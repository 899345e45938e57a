"""Commands that read traces, and the messages for wrong usage."""

import contextlib
import gzip
import json
import os
import subprocess
import time

import pytest

import vestige
from conftest import COMMAND
from traces import totals
from vestige import cli

pytestmark = pytest.mark.any_python

PROGRAM = """\
    import threading

    def work():
        return len("x")

    thread = threading.Thread(target=work, name="a worker")
    thread.start()
    thread.join()
    """


@pytest.fixture
def traced(workplace):
    workplace.write("work.py", PROGRAM)
    assert workplace.trace("work.py", "an argument").returncode == 0
    return workplace


# ---- export ------------------------------------------------------------


def test_export_writes_plain_and_gzipped_json(traced):
    assert traced.vestige("export", "t.vst", "-o", "t.json").returncode == 0
    assert traced.vestige("export", "t.vst", "-o", "other.json.gz").returncode == 0
    plain = json.loads((traced.path / "t.json").read_bytes())
    packed = json.loads(gzip.decompress((traced.path / "other.json.gz").read_bytes()))
    assert plain["traceEvents"] == packed["traceEvents"]
    assert any(event["name"] == "work.py(3): work" for event in plain["traceEvents"])


def test_export_prints_nothing_on_stdout_and_by_default_writes_beside_the_trace(traced):
    result = traced.vestige("export", "t.vst")
    assert (result.stdout, result.returncode) == ("", 0) and result.stderr.count("\n") == 1
    assert (traced.path / "t.json.gz").exists()


def test_export_does_not_overwrite_without_force(traced):
    (traced.path / "t.json").write_text("precious")
    result = traced.vestige("export", "t.vst", "-o", "t.json")
    assert result.returncode == 2
    assert result.stderr == "vestige: t.json: already exists; --force overwrites it\n"
    assert (traced.path / "t.json").read_text() == "precious"
    assert traced.vestige("export", "t.vst", "-o", "t.json", "--force").returncode == 0
    assert json.loads((traced.path / "t.json").read_bytes())["schemaVersion"] == 1


@pytest.mark.parametrize("name", ["t", "t.xml", "t.gz", "t.JSON"])
def test_export_to_an_unknown_suffix_lists_the_known_ones(traced, name):
    result = traced.vestige("export", "t.vst", "-o", name)
    assert result.returncode == 2
    assert result.stderr == (
        f"vestige: {name}: no format has this suffix; there are .json, .pftrace, .perfetto-trace, .speedscope.json, "
        ".svg, .folded, .pb, .pprof, .pstats, .prof, .callgrind, callgrind.out.*, .et.json, et.json, "
        "each also with .gz, and .parquet, .arrow, .feather\n"
    )


@pytest.mark.parametrize(
    ("output", "reason"), [("no/such/t.json", "No such file or directory"), ("/dev/null/t.json", "Not a directory")]
)
def test_export_to_where_it_cannot_is_one_line(traced, output, reason):
    result = traced.vestige("export", "t.vst", "-o", output)
    assert (result.returncode, result.stderr) == (1, f"vestige: {output}: {reason}\n")


# ---- recover -----------------------------------------------------------


@pytest.fixture
def torn(workplace):
    workplace.write("die.py", "import os\ndef work(): pass\nwork()\nos.kill(os.getpid(), 9)")
    workplace.trace("die.py")
    return workplace


def is_clean(path):
    return vestige.Trace(str(path)).info()["clean"]


def test_recover_writes_a_finished_copy_and_says_nothing(torn):
    before = (torn.path / "t.vst").read_bytes()
    result = torn.vestige("recover", "t.vst", "-o", "whole.vst")
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)
    assert (torn.path / "t.vst").read_bytes() == before
    assert is_clean(torn.path / "whole.vst")
    first, copied = (totals(vestige.Trace(str(torn.path / name))) for name in ("t.vst", "whole.vst"))
    assert first == copied
    assert any(each.name == "die.py(2): work" for each in first)


def test_recover_leaves_a_clean_trace_as_it_is(traced):
    assert traced.vestige("recover", "t.vst", "-o", "copy.vst").returncode == 0
    assert (traced.path / "copy.vst").read_bytes() == (traced.path / "t.vst").read_bytes()


def test_recover_does_not_overwrite_without_force(torn):
    (torn.path / "precious.vst").write_text("precious")
    for name in ("precious.vst", "t.vst"):
        result = torn.vestige("recover", "t.vst", "-o", name)
        assert result.returncode == 2
        assert result.stderr == f"vestige: {name}: already exists; --force overwrites it\n"
    assert (torn.path / "precious.vst").read_text() == "precious"
    for name in ("precious.vst", "t.vst"):
        assert torn.vestige("recover", "t.vst", "-o", name, "--force").returncode == 0
        assert is_clean(torn.path / name)
    assert sorted(path.name for path in torn.path.iterdir()) == ["die.py", "precious.vst", "t.vst"]


@pytest.mark.parametrize(
    ("output", "reason"), [("no/such/t.vst", "No such file or directory"), ("/dev/null/t.vst", "Not a directory")]
)
def test_recover_to_where_it_cannot_is_one_line(torn, output, reason):
    result = torn.vestige("recover", "t.vst", "-o", output)
    assert (result.returncode, result.stderr) == (1, f"vestige: {output}: {reason}\n")


def test_the_functions_errors_are_pythons_own(torn):
    from vestige._core import recover

    path = str(torn.path / "t.vst")
    with pytest.raises(FileExistsError) as caught:
        recover(path, path)
    assert (caught.value.filename, caught.value.filename2) == (path, path)
    with pytest.raises(FileNotFoundError):
        recover(path + "x", path + "y")
    with pytest.raises(vestige.TraceError, match="die.py: not a vestige trace"):
        recover(str(torn.path / "die.py"), path + "y")


# ---- info and report ---------------------------------------------------


def test_info_tells_what_a_trace_holds(traced):
    text = traced.vestige("info", "t.vst").stdout
    for part in ("ended    clean\n", "work.py 'an argument'", "MainThread", "a worker", "0 lost", "engine"):
        assert part in text


def test_info_is_also_json(traced):
    facts = json.loads(traced.vestige("info", "--json", "t.vst").stdout)
    assert facts["clean"] is True
    assert facts["ended"] == "clean"
    assert facts["lost"] == 0
    assert facts["bytes"] == (traced.path / "t.vst").stat().st_size
    assert abs(facts["end_ns"] / 1e9 - time.time()) < 60
    assert facts["metadata"]["vestige.command"] == ["work.py", "an argument"]
    assert {"MainThread", "a worker"} <= {thread["name"] for thread in facts["thread_list"]}


def test_info_tells_that_a_process_died(workplace):
    workplace.write("die.py", "import os\nos.kill(os.getpid(), 9)")
    workplace.trace("die.py")
    assert (
        "ended    torn, the process was killed, crashed or called os.exec*;"
        in workplace.vestige("info", "t.vst").stdout
    )


def test_info_tells_where_a_file_is_damaged(traced):
    whole = (traced.path / "t.vst").read_bytes()
    (traced.path / "cut.vst").write_bytes(whole[:-100])
    (traced.path / "bent.vst").write_bytes(whole[:4100] + b"?" + whole[4101:])
    facts = json.loads(traced.vestige("info", "--json", "cut.vst").stdout)
    assert (facts["clean"], facts["ended"], facts["damaged_at"]) == (False, "damaged", len(whole) - 100)
    text = traced.vestige("info", "cut.vst").stdout
    assert f"ended    damaged at byte {len(whole) - 100:,}; everything readable is here" in text
    result = traced.vestige("info", "bent.vst")
    assert (result.returncode, result.stderr) == (1, "vestige: bent.vst: the trace is damaged (at byte 4096)\n")


def test_report_lists_functions_by_their_own_time(traced):
    traced.write("spin.py", "def spin():\n    for i in range(300_000): pass\ndef idle(): pass\nspin(); idle()")
    traced.trace("spin.py")
    lines = traced.vestige("report", "t.vst", "-n", "2").stdout.splitlines()
    assert lines[1].split() == ["calls", "self", "%", "total", "function"]
    assert lines[2].endswith("spin.py:1: spin")
    assert lines[2].split()[0] == "1"
    assert lines[4].endswith("more functions")
    assert len(lines) == 5


@pytest.mark.parametrize(
    "command",
    [["export", "-o", "x.json"], ["info"], ["report"], ["recover", "-o", "x.vst"], ["pack"]],
)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent.vst", "No such file or directory"),
        ("empty.vst", "not a vestige trace"),
        ("text.vst", "not a vestige trace"),
        ("folder", "there is no trace (.vst) in it"),
    ],
)
def test_a_file_that_is_no_trace_is_one_clear_line(workplace, command, name, reason):
    (workplace.path / "empty.vst").touch()
    (workplace.path / "text.vst").write_text("once upon a time\n" * 1000)
    (workplace.path / "folder").mkdir()
    result = workplace.vestige(command[0], name, *command[1:])
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"vestige: {name}: {reason}\n")
    assert not list(workplace.path.glob("x.*"))


def test_a_reader_that_goes_away_is_no_error(traced):
    process = subprocess.Popen(
        [COMMAND, "info", "t.vst"], cwd=traced.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait()


def test_names_that_the_terminal_cannot_show_do_not_matter(workplace):
    workplace.write("names.py", "def größe(): pass\ngröße()")
    workplace.trace("names.py")
    for encoding in ("ascii", "latin-1", "utf-8"):
        result = workplace.vestige("report", "t.vst", env={**os.environ, "PYTHONIOENCODING": encoding}, text=False)
        assert result.returncode == 0
        assert b"names.py:1: gr" in result.stdout


# ---- the command itself ------------------------------------------------


def test_without_a_command_the_usage_is_shown(workplace):
    result = workplace.vestige()
    assert result.returncode == 2
    assert "vestige run script.py" in result.stderr


@pytest.mark.parametrize("command", [[], ["run"], ["export"]])
def test_the_command_prints_its_help(workplace, command):
    result = workplace.vestige(*command, "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert "  vestige " in result.stdout


@pytest.mark.parametrize(
    "command", [*([name] for name in cli.COMMANDS), ["et", "check"], ["et", "show"], ["device", "check"]], ids=" ".join
)
def test_every_command_has_help_with_examples(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.suppress(SystemExit):
        if command[0] in ("run", "memory"):
            cli.load(command[0]).prepare(["--help"])
        else:
            cli._dispatch([*command, "--help"])
    text = capsys.readouterr().out
    assert f"  vestige {' '.join(command)} " in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_version_is_that_of_the_package(workplace):
    from importlib.metadata import version

    assert workplace.vestige("--version").stdout == f"vestige {version('vestige')}\n"
    assert vestige.__version__ == version("vestige")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["exprot"], "no command 'exprot'; did you mean 'export'?"),
        (["xyz"], "no command 'xyz'; see vestige --help"),
        (["--wrong"], "no option '--wrong'; see vestige --help"),
        (["work.py"], "no command 'work.py'; to record a script: vestige run work.py"),
        (["export"], "the following arguments are required: FILE; see vestige export --help"),
        (["recover", "t.vst"], "the following arguments are required: -o/--output; see vestige recover --help"),
        (["info", "t.vst", "--wrong"], "unrecognized arguments: --wrong; see vestige info --help"),
        (["report", "t.vst", "-n", "many"], "argument -n: invalid int value: 'many'; see vestige report --help"),
        (["report", "t.vst", "-n", "0"], "-n must be at least 1, not 0"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(workplace, args, message):
    workplace.write("work.py", "")
    result = workplace.vestige(*args)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"vestige: {message}\n")
