"""Every problem of a command gives one line and an exit code: strange metadata, pipes, a stdout that accepts nothing,
our own defects.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import COMMAND
from in_process import vestige
from traces import record, steps
from vestige import cli, profile
from vestige.reading.metadata import SHAPES, check_shapes

pytestmark = pytest.mark.any_python

READERS = [
    ["info"], ["info", "--json"], ["report"], ["report", "--threads"], ["memory-report"], ["recover", "-o", "r.vst", "--force"],
    ["export", "-o", "o.json", "--force"], ["pack", "-o", "p.vst", "--force"],
    ["view", "--html", "v.html", "--force"], ["diff", "t.vst"],
]  # fmt: skip
DEEP = "[" * 100_000 + "]" * 100_000


def lines_of(said):
    """Returns the lines of stderr, and checks that vestige wrote each."""
    lines = said.err.splitlines()
    assert all(line.startswith("vestige: ") for line in lines), said.err
    assert cli.UNEXPECTED not in said.err
    return lines


@pytest.mark.parametrize("words", READERS, ids=" ".join)
@pytest.mark.parametrize(
    "text", [DEEP, '{"a":' * 500 + "1" + "}" * 500, "1", '"x"', "[[1]]", '{"pid": [], "rank": {}}']
)
def test_metadata_of_any_shape_is_read_or_left_out(tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    prof = profile(output="t.vst", overwrite=True, profile_memory=True)
    for key in (*SHAPES, "somebody's"):
        prof._set_metadata(key, text)
    with prof:
        steps(3)()
    (tmp_path / "same.vst").write_bytes((tmp_path / "t.vst").read_bytes())
    said = vestige(words[0], "same.vst", *words[1:])
    lines_of(said)
    assert said.code == 0, said.err
    if words == ["info", "--json"]:
        shown = json.loads(said.out)["metadata"]["somebody's"]
        assert shown in (text, json.loads(text) if len(text) < 100 else None)


def test_members_of_the_wrong_type_are_left_out_and_the_others_stay(tmp_path):
    path = record(tmp_path / "t.vst", vestige_parent={"pid": 7, "how": 3}, distributedInfo={"rank": "x"})
    assert ", started by 7\n" in vestige("info", path).out
    assert check_shapes({"vestige.turbo": {"covered": "x", "pauses": 2}, "x": []}) == {
        "vestige.turbo": {"pauses": 2},
        "x": [],
    }


@pytest.mark.parametrize("name", ["x.vst", "t.vst.view"])
@pytest.mark.parametrize("words", [["info"], ["report"], ["view", "--html", "v.html"]])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path, name, words):
    record(tmp_path / "t.vst", steps(3))
    os.mkfifo(tmp_path / name)
    file = "t.vst" if name.endswith(".view") else name
    command = [COMMAND, words[0], file, *words[1:]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    if file == "t.vst":
        assert done.returncode == 0, done.stderr
    else:
        assert (done.returncode, done.stderr) == (1, "vestige: x.vst: a pipe, device or folder, not a trace file\n")


def test_an_index_that_is_a_pipe_is_left_alone(tmp_path):
    from vestige._core import View

    path = record(tmp_path / "t.vst", steps(3))
    os.mkfifo(tmp_path / "t.vst.view")
    code = f"from vestige._core import View; print(View({str(path)!r}).info()['spans'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert int(done.stdout) == View(str(path), keep=False).info()["spans"]
    assert (tmp_path / "t.vst.view").is_fifo()


@pytest.mark.parametrize(
    "words", [["report", "t.vst"], ["report", "t.vst", "--format", "csv"], ["info", "t.vst", "--json"]]
)
def test_a_stdout_that_takes_nothing_is_one_line(tmp_path, words):
    record(tmp_path / "t.vst", steps(3))
    with open("/dev/full", "w") as full:
        done = subprocess.run([COMMAND, *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "vestige: stdout cannot be written: No space left on device\n")
    closed = [sys.executable, "-c", "import os, sys; os.close(1); os.execv(sys.argv[1], sys.argv[1:])", COMMAND, *words]
    done = subprocess.run(closed, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "vestige: stdout cannot be written: it is closed\n")


def test_a_closed_stdout_is_no_matter_where_nothing_is_printed(tmp_path):
    record(tmp_path / "t.vst", steps(3))
    code = "import os, sys; os.close(1); os.close(2); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, COMMAND, "export", "t.vst", "-o", "t.json"], cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_a_page_takes_any_name_and_any_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.py").write_text("# coding: rot13\nqrs s(): cnff\n")
    names = {}
    exec(compile("def f(): pass", str(tmp_path / "odd.py"), "exec"), names)
    name = os.fsdecode(b"caf\xe9.vst")
    record(tmp_path / name, names["f"])
    said = vestige("view", name, "--html", "v.html")
    assert (said.code, said.err) == (0, "")
    assert "<title>caf\ufffd.vst · vestige</title>" in Path("v.html").read_text()


@pytest.mark.sql
def test_tables_that_vestige_did_not_write_are_refused(tmp_path):
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"process": ["x"]}), tmp_path / "process.parquet")
    said = vestige("query", "select 1", tmp_path)
    assert said.code == 1
    assert lines_of(said)[0].endswith(": `process` is VARCHAR there, not a number: vestige export did not write it")


def test_a_defect_of_ours_is_one_line_and_a_traceback_only_where_that_is_asked_for(tmp_path, monkeypatch):
    path = record(tmp_path / "t.vst")

    def fail(*args):
        raise KeyError("of\nours")

    monkeypatch.setattr("vestige.cli.info._show", fail)
    said = vestige("info", path)
    assert said.code == 1
    shown = "(KeyError: 'of\\nours'): a damaged file, or a bug in vestige; VESTIGE_TRACEBACK=1 shows where"
    assert said.err == f"vestige: {cli.UNEXPECTED} {shown}\n"
    monkeypatch.setenv("VESTIGE_TRACEBACK", "1")
    assert "Traceback (most recent call last)" in vestige("info", path).err


def test_a_lack_of_memory_is_one_line(tmp_path, monkeypatch):
    path = record(tmp_path / "t.vst")

    def fail(*args):
        raise MemoryError

    monkeypatch.setattr("vestige.cli.info._show", fail)
    assert vestige("info", path).err == "vestige: not enough memory\n"
