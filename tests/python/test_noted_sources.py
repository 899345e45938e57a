"""The facts that a recording notes about its source files. A page for other people has lines only of these files."""

import base64
import gzip
import json
import os
import re
import subprocess
import sys

import pytest

from traces import record
from vestige import Trace, profile
from vestige.cli import Failure, view

PROGRAM = """\
import os, signal, sys

def secret():
    return 42

secret()
if sys.argv[1:] == ["die"]:
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1:] == ["fork"]:
    if (pid := os.fork()) == 0:
        secret()
        sys.exit()
    os.waitpid(pid, 0)
"""


def run(folder, *arguments):
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "vestige", "run", "-q", "--force", "-o", str(folder / "t.vst")]
    subprocess.run([*command, str(folder / "program.py"), *arguments], check=False)
    return folder / "t.vst"


def noted(path):
    """Returns the noted facts of each file."""
    trace = Trace(str(path))
    functions = trace.functions()
    return {
        functions[number][2]: (time, size) for number, time, size in json.loads(trace.metadata()["vestige.sources"])
    }


def lines_of_page(path, *options):
    """Returns the lines of source in the page of a trace."""
    page = path.parent / "page.html"
    assert view.main([str(path), "--html", str(page), "--force", *options]) == 0
    text = re.search(r'id="vestige-data">([^<]*)<', page.read_text())[1]
    data = gzip.decompress(base64.b64decode(text))
    traces = json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])["traces"]
    return [line for trace in traces for source in trace["sources"].values() for line in source["lines"]]


def test_files_of_recorded_functions_are_noted_with_time_and_size(tmp_path):
    path = run(tmp_path)
    status = os.stat(tmp_path / "program.py")
    assert noted(path)[str(tmp_path / "program.py")] == (status.st_mtime_ns, status.st_size)


def test_noting_is_not_recorded_and_is_there_for_every_kind_of_recording(tmp_path):
    def work():
        return len("x")

    for options in ({}, {"max_size": "1M"}, {"engine": "safe"}):
        with profile(output=tmp_path / "t.vst", overwrite=True, **options):
            work()
        assert __file__ in noted(tmp_path / "t.vst")
        names = [each[1] for each in Trace(str(tmp_path / "t.vst")).functions() if each]
        assert not any("stat" in name for name in names), names


def test_children_note_their_own(tmp_path):
    run(tmp_path, "fork")
    traces = sorted(tmp_path.glob("*.vst"))
    assert len(traces) == 2
    assert all(str(tmp_path / "program.py") in noted(path) for path in traces)


@pytest.mark.any_python
def test_a_page_has_the_source_of_files_that_are_as_they_were(tmp_path, capsys):
    path = run(tmp_path)
    assert "def secret():" in lines_of_page(path)
    assert "--source" not in capsys.readouterr().out
    (tmp_path / "program.py").write_text(PROGRAM.replace("42", "43"))
    assert "def secret():" not in lines_of_page(path)
    assert (
        "without the source of 1 file, not noted by the recording or changed since: --source" in capsys.readouterr().out
    )
    assert "    return 43" in lines_of_page(path, "--source")


@pytest.mark.any_python
def test_a_page_has_no_source_of_a_file_that_a_trace_only_names(tmp_path):
    """A trace that was forged to get the lines of one of the reader's files."""
    path = run(tmp_path)
    assert "def secret():" in lines_of_page(path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"vestige.sources", b"vestige.xources"))
    assert lines_of_page(path) == []
    assert "def secret():" in lines_of_page(path, "--source")
    time, _ = noted_numbers(data)
    path.write_bytes(data.replace(time, time[:-1] + bytes([48 + (time[-1] - 47) % 10])))
    assert "def secret():" not in lines_of_page(path)


def noted_numbers(data):
    """Returns the noted facts of program.py as text."""
    status = re.search(rb"vestige\.sources\[.*?\]\]", data)
    assert status, "the metadata is not where this test looks for it"
    size = str(len(PROGRAM)).encode()
    return re.search(rb",(\d+)," + size + rb"\]", status[0])[1], size


@pytest.mark.any_python
def test_a_program_that_was_killed_has_noted_nothing(tmp_path):
    path = run(tmp_path, "die")
    assert "vestige.sources" not in Trace(str(path)).metadata()
    assert lines_of_page(path) == []
    assert "def secret():" in lines_of_page(path, "--source")


@pytest.mark.any_python
@pytest.mark.parametrize("value", [1, [1], [[1, 2]], [["a", 1, 2]], [[10**9, 1, 1], [-5, 1, 1]], {"a": 1}])
def test_notes_that_make_no_sense_are_none(tmp_path, value):
    from vestige.reading.metadata import check_shapes

    found = check_shapes({"vestige.sources": value}).get("vestige.sources", {})
    assert all(isinstance(number, int) for number in found)
    path = record(tmp_path / "t.vst")
    text = json.dumps(value)
    data = path.read_bytes()
    old = re.search(rb"vestige\.sources(\[.*?\]\])", data)[1]
    path.write_bytes(data.replace(old, text.encode().ljust(len(old))[: len(old)]))
    assert lines_of_page(path) == []


@pytest.mark.any_python
def test_source_is_asked_for_with_a_page_alone(tmp_path):
    with pytest.raises(Failure, match="--source needs --html"):
        view.main([str(record(tmp_path / "t.vst")), "--source"])
