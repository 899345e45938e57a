"""A trace in which every text would take over a terminal: no command prints such a text unchanged, but files keep texts
exactly.
"""

import csv
import io
import json
import os
import re
import threading

import pytest

from handmade_graph import good_document
from in_process import vestige as command
from traces import patch
from vestige import profile, record_function
from vestige.base import terminal
from vestige.base.printable import one_line, printable

pytestmark = pytest.mark.any_python

# A title, a colour, a clear screen (also as C1 code), a bell, a carriage return, right-to-left order, half a character.
EVIL = "\x1b]0;owned\x07\x1b[1;31mred\x1b[2J\x9b2J\r\x08\u202egpj.\u2066x\ud800\n\x00end"
MILD = EVIL.replace("\ud800", "").replace("\x00", "")  # lengths at which UTF-8 and C have limits
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
COMMANDS = [
    "info t.vst",
    "info t.vst --json",
    "info t.vst more.vst",
    "report t.vst",
    "report t.vst --tree --all --min 0",
    "report t.vst --threads",
    "report t.vst --gc",
    "report t.vst --memory",
    "report t.vst --format json",
    "report t.vst more.vst",
    "report t.vst --thread no-such-thread",
    "report t.vst --include no-such-function",
    "diff t.vst more.vst",
    "diff t.vst more.vst --format json",
    "diff t.vst more.vst --fail-on time>0% --calls --fail-on calls>0",
    "memory-report t.vst --peak --leaks --temporary --histogram --lines --threads --allocators",
    "memory-report t.vst more.vst --format json",
    "export t.vst -o OUT.json --force",
    "export t.vst -o OUT.svg --force",
    "export t.vst more.vst --align no-such-span -o OUT.json --force",
    "export t.vst more.vst -o OUT.json --force",
    "recover t.vst -o OUT.vst --force",
    "pack t.vst -o OUT.packed --force",
    "view t.vst --html OUT.html --force",
    "et check et.json",
    "et check et.json --format json",
    "et show et.json",
    "et show et.json -o OUT.dot --force",
    "et show et.json --name no-such-operator",
    "query process t.vst",
    "query top-functions t.vst",
    "query slowest-calls t.vst -p rows=5",
    "query busy-threads t.vst",
    "query 'select * from span' t.vst",
    "query 'select * from arg' t.vst",
]


def work():
    """Calls, annotations with arguments, a thread and memory, all with hostile texts."""
    code = compile("def f(n):\n return [bytearray(1 << 20)] if n == 0 else f(n - 1)", f"/tmp/{MILD}/evil.py", "exec")
    names = {}
    exec(code, names)
    names["f"].__code__ = names["f"].__code__.replace(co_name=MILD, co_qualname=MILD)

    def run():
        with record_function(MILD, MILD):
            return names["f"](3)

    thread = threading.Thread(target=run, name=MILD)
    thread.start()
    thread.join()
    run()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile")
    for name, pid in (("t.vst", 1), ("more.vst", 2)):
        prof = profile(output=str(path / name), with_stack=True, profile_memory=True)
        keys = ("host_name", "vestige.process_name", "vestige.python", "vestige.engine", "vestige.stdlib", MILD)
        for key in keys:
            prof._set_metadata(key, json.dumps(EVIL))
        prof._set_metadata("vestige.command", json.dumps(["python", EVIL]))
        prof._set_metadata("vestige.parent", json.dumps({"pid": 7, "how": EVIL}))
        with prof:
            work()
        patch(path / name, pid=pid)
    document = good_document()
    for node in document["nodes"]:
        node["name"] += EVIL
        node["attrs"][6]["value"] = EVIL
        node["inputs"]["types"] = [kind + EVIL for kind in node["inputs"]["types"]]
    document["schema"] = EVIL
    (path / "et.json").write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    "line", [pytest.param(line, marks=[pytest.mark.sql] * line.startswith("query")) for line in COMMANDS]
)
def test_no_command_lets_a_trace_speak_to_the_terminal(folder, monkeypatch, line):
    from shlex import split

    monkeypatch.chdir(folder)
    said = command(*split(line))
    assert not OBEYED.search(said.out), repr(OBEYED.search(said.out))
    assert not OBEYED.search(said.err), repr(OBEYED.search(said.err))
    assert said.out or said.err or "OUT" in line
    assert "something unexpected" not in said.err


@pytest.mark.parametrize(
    "words", [["report"], ["info"], ["memory-report"], ["export"], ["pack"], ["et", "check"], ["et", "show"]]
)
def test_names_of_files_are_cleaned_in_errors_too(tmp_path, words):
    name = os.fsdecode(b"\x1b[2J\xff\r.vst")
    missing = command(*words, tmp_path / name)
    (tmp_path / name).write_bytes(b"no trace")
    broken = command(*words, tmp_path / name)
    for said in (missing, broken):
        assert said.code == 1
        assert not OBEYED.search(said.out + said.err)
        assert "\ufffd[2J\ufffd .vst: " in said.out + said.err


@pytest.mark.parametrize("words", [["report"], ["info"], ["diff", "t.vst"]])
def test_no_name_adds_a_line_to_stderr(folder, monkeypatch, words):
    monkeypatch.chdir(folder)
    said = command(words[0], *words[1:], "a\nvestige: all is well\n.vst")
    assert said.err.count("\n") == 1 and said.code == 1
    said = command("report", "t.vst", "a\nvestige: all is well\n.vst")
    assert said.err.count("\n") == 1 and said.code == 1


def test_colours_are_ours_alone(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    stream = io.StringIO()
    screen = terminal.Screen(stream)
    paint = terminal.Paint(screen)
    print(paint("a\033[31mb", "hot"), "\033[1;31mc\033[0m", "\x00hot\x00", file=screen)
    assert stream.getvalue() == "\033[1;31ma\ufffd[31mb\033[0m \ufffd[1;31mc\ufffd[0m \ufffdhot\ufffd\n"


def test_what_programs_read_is_exact(folder, monkeypatch):
    """CSV in a pipe, and files: the exact texts of the trace."""
    monkeypatch.chdir(folder)
    rows = list(csv.DictReader(io.StringIO(command("report", "t.vst", "--format", "csv").out, newline="")))
    assert MILD in [row["function"] for row in rows]
    assert json.loads(command("info", "t.vst", "--json").out)["metadata"]["vestige.python"] == EVIL
    command("export", "t.vst", "-o", "exact.json", "--force")
    events = json.loads((folder / "exact.json").read_text())["traceEvents"]
    assert MILD in [event.get("name") for event in events]


def test_tables_of_the_library_are_clean():
    with profile(with_stack=True) as prof:
        work()
    averages = prof.key_averages()
    for text in (
        averages.table(),
        averages.table(sort_by="cpu_time_total", row_limit=5),
        str(averages),
        repr(averages[0]),
    ):
        assert not OBEYED.search(text), repr(OBEYED.search(text))
    assert not any(OBEYED.search(repr(event)) for event in list(prof.events())[:50])


def test_what_is_printable():
    assert printable("plain, ünïcode 計算 🎉") == "plain, ünïcode 計算 🎉"
    assert printable("a\x1b[31m\x9b\u202e\udcff") == "a\ufffd[31m\ufffd\ufffd\ufffd"
    assert printable("a\tb\r\n  c") == "a b    c"
    assert one_line("a\tb\r\n  c\x00") == "a b c\ufffd"
