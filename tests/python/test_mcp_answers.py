"""Answers of `vestige mcp`, without the protocol: text of limited length, stable ids, and no data from outside its
folder.
"""

import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import damage
from in_process import vestige
from vestige import Trace, profile
from vestige.base.failure import Failure
from vestige.cli.mcp import asking, calls, causes, comparing, recording, sources
from vestige.cli.mcp.bounded import Answer, tokens
from vestige.cli.mcp.folder import Folder
from vestige.cli.mcp.tools import Tools, schema

pytestmark = pytest.mark.any_python

PROGRAM = """\
import sys

def leaf(n):
    return n * n

class Shop:
    def order(self, count):
        return sum(leaf(n) for n in range(count))

def other(count):
    return leaf(count)

for _ in range(20):
    Shop().order(int(sys.argv[1]))
other(3)
import textwrap
print(textwrap.dedent("done"))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a program, two recordings of it, and links that lead out of the folder."""
    outside = tmp_path_factory.mktemp("outside")
    inside = tmp_path_factory.mktemp("inside")
    (inside / "shop.py").write_text(PROGRAM)
    folder = Folder(str(inside))
    recording.record(folder, ["shop.py", "1000"], "first", 600)
    recording.record(folder, ["python3", "shop.py", "2000"], "second", 600)
    (outside / "secret.py").write_text("password = 1\n")
    (outside / "far.vst").write_bytes((inside / "first.vst").read_bytes())
    (inside / "link.vst").symlink_to(outside / "far.vst")
    (inside / "linked").symlink_to(outside)
    (inside / "secret.py").symlink_to(outside / "secret.py")
    return folder


# ---- bounded text -----------------------------------------------------------


def test_an_answer_never_has_more_tokens_than_it_may():
    for most in (0, 100, 150, 1000):
        answer = Answer(most)
        for number in range(2000):
            answer.add(f"line {number} with an ümlaut")
        assert tokens(answer.text("how to get more, in many words " * 20)) <= max(most, 100)
        assert answer.is_full
        assert re.search(r"\(\d,\d+ more lines: how", answer.text("how"))


def test_lines_stay_in_order_and_none_is_skipped():
    answer = Answer(100)
    answer.add("first")
    answer.add("x" * 1000)
    answer.add("last")
    assert answer.text("ask") == "first\n(2 more lines: ask)"


def test_what_a_terminal_or_model_would_obey_is_taken_out():
    answer = Answer(100)
    answer.add("a\x1b[31mb\u202ec\0")
    assert answer.text() == "a\ufffd[31mb\ufffdc\ufffd"


@pytest.mark.parametrize("most", [100, 400, 4000])
def test_every_tool_keeps_to_the_bound(place, most):
    tools = Tools(place)
    answers = [
        tools.list_traces(most),
        tools.findings(max_tokens=most),
        tools.tree(max_tokens=most),
        tools.tree(function="order", libraries=True, max_tokens=most),
        tools.functions(max_tokens=most),
        tools.ask(max_tokens=most),
        tools.sql(max_tokens=most),
        tools.compare(["first.vst", "second.vst"], most),
        tools.source("shop.py:3", context=1000, max_tokens=most),
    ]
    assert all(answers)
    assert max(map(tokens, answers)) <= most


# ---- trees and functions ----------------------------------------------------


def node_of(text, name):
    [found] = re.findall(rf"  (n[0-9a-f]{{8}})  .*{name}(?:  \[|$)", text, re.MULTILINE)
    return found


def test_the_tree_below_a_function_has_all_its_calls_and_names_its_callers(place):
    text = calls.tree(place, "first.vst", "leaf", "", False, 2000)
    assert re.search(r"called from: .*genexpr.* \(20,000 calls, .*other \(1 call, ", text)
    assert re.search(r" 20,001  n[0-9a-f]{8}  shop.py:3: leaf$", text, re.MULTILINE)


AWAITS = """\
import asyncio

async def waits():
    await asyncio.sleep(0.2)

asyncio.run(waits())
"""


def test_the_tree_has_the_awaits_that_a_report_has(place, tmp_path):
    (tmp_path / "awaits.py").write_text(AWAITS)
    folder = Folder(str(tmp_path))
    recording.record(folder, ["awaits.py"], "awaits", 600)
    text = calls.tree(folder, "awaits.vst", "", "", False, 2000)
    found = re.search(r"^ *(\d[\d.]* \w+) +0 ns +1  n[0-9a-f]{8} +\[await\] sleep$", text, re.MULTILINE)
    assert found
    shown = vestige("report", str(tmp_path / "awaits.vst"), "--tree").out
    assert re.search(rf"^ *{re.escape(found[1])} .*\[await\] sleep$", shown, re.MULTILINE)


def test_ids_of_nodes_are_stable_and_lead_deeper(place):
    first = calls.tree(place, "first.vst", "", "", False, 2000)
    assert first == calls.tree(place, "first.vst", "", "", False, 2000)
    node = node_of(first, "Shop.order")
    deeper = calls.tree(place, "first.vst", "", node, False, 2000)
    assert node_of(deeper, "Shop.order") == node
    assert "Shop.order" in deeper.splitlines()[2] and "leaf" in deeper and "other" not in deeper
    # a function at the same place
    assert node_of(calls.tree(place, "second.vst", "", "", False, 2000), "Shop.order") == node
    with pytest.raises(Failure, match="no node n00000000"):
        calls.tree(place, "first.vst", "", "n00000000", False, 2000)


def test_functions_are_sorted_and_chosen(place):
    text = calls.functions(place, "first.vst", "calls", "shop.py", 2000)
    assert [line.split()[-1] for line in text.splitlines()[2:4]] == ["Shop.order.<locals>.<genexpr>", "leaf"]
    with pytest.raises(Failure, match="no function is called nothing"):
        calls.tree(place, "first.vst", "nothing", "", False, 2000)


def test_findings_have_a_place_numbers_and_what_to_ask_next(tmp_path):
    folder = Folder(str(tmp_path))
    (tmp_path / "poll.py").write_text(POLL)
    assert "no finding" in causes.findings(placed_traces(tmp_path), "", 500)
    recording.record(folder, ["poll.py"], "poll", 600)
    text = causes.findings(folder, "", 1000)
    assert text.startswith("poll.vst: ") and ". [waiting] No thread worked for " in text
    assert re.search("place: .*function poll.py:2: poll, file poll.py, line 2", text)
    assert re.search("numbers: .* [mu]?s", text)
    assert "next: tree(trace='poll.vst', function='poll.py:2: poll') or source(place='poll.py:2')" in text


POLL = """\
import time
def poll():
    for _ in range(6):
        time.sleep(0.05)
poll()
"""


def placed_traces(folder):
    """A folder with a trace that has no findings."""
    inside = folder / "quiet"
    inside.mkdir()
    with profile(output=inside / "t.vst"):
        sum(range(10))
    return Folder(str(inside))


def test_two_traces_are_compared(place, monkeypatch):
    # whether a change is chance depends on the machine, so this finding is given
    found = [SimpleNamespace(text="leaf is called 4 times as often.")]
    monkeypatch.setattr(comparing, "find", lambda comparison: found)
    text = comparing.compare(place, "first.vst", "second.vst", 20_000)
    assert text.startswith("first.vst → second.vst: ")
    assert text.splitlines()[1] == "• leaf is called 4 times as often."
    assert re.search(r"20,001 → 40,001 .* shop.py:3: leaf$", text, re.MULTILINE)


def test_without_a_trace_the_newest_is_meant(place):
    assert calls.functions(place, "", "self", "", 500).startswith("second.vst: ")
    assert [line.split()[0] for line in Tools(place).list_traces().splitlines()] == ["second.vst", "first.vst"]


# ---- source -----------------------------------------------------------------


def test_source_is_shown_around_a_line_and_of_a_function(place):
    assert "     3> def leaf(n):" in sources.source(place, "", "shop.py:3", 1, 500)
    text = sources.source(place, "", "Shop.order", 1, 500)
    assert "     7>     def order(self, count):" in text and "     8      return" not in text.splitlines()[0]
    with pytest.raises(Failure, match="has 17 lines, and no line 99"):
        sources.source(place, "", "shop.py:99", 1, 500)
    with pytest.raises(Failure, match="is not in the trace"):
        sources.source(place, "", "nothing", 1, 500)


# ---- nothing outside --------------------------------------------------------


@pytest.mark.parametrize("name", ["../x.py:1", "/etc/passwd:1", "secret.py:1", "linked/secret.py:1", "a\0b:1", "..:1"])
def test_source_outside_of_the_folder_is_refused(place, name):
    with pytest.raises(Failure, match="outside of the folder|NUL"):
        sources.source(place, "", name, 1, 500)


@pytest.mark.parametrize("name", ["link.vst", "linked/far.vst", "../outside0/far.vst", "/dev/zero", "../../../../etc"])
def test_traces_outside_of_the_folder_are_refused(place, name):
    for ask in (
        lambda: calls.tree(place, name, "", "", False, 500),
        lambda: comparing.compare(place, "first.vst", name, 500),
        lambda: asking.sql(place, "select 1", [name], 500),
    ):
        with pytest.raises(Failure, match="outside of the folder"):
            ask()


def test_a_child_that_is_a_link_out_of_the_folder_is_refused(place):
    link = os.path.join(place.root, "first.4711.vst")
    os.symlink("/etc/hostname", link)
    try:
        with pytest.raises(Failure, match="leads out of the folder"):
            calls.tree(place, "first.vst", "", "", False, 500)
    finally:
        os.unlink(link)


def test_what_is_no_trace_is_told_in_a_line(place):
    for name in ("shop.py", "nothing.vst", "."):
        with pytest.raises(Failure, match="not a vestige trace|there is no trace"):
            calls.tree(place, name, "", "", False, 500)


def test_damaged_traces_give_an_answer_or_a_line(place, tmp_path):
    data = Path(place.root, "first.vst").read_bytes()
    rng = random.Random(24)
    tools = Tools(Folder(str(tmp_path)))
    answered = 0
    asked = [tools.list_traces, tools.findings, tools.tree, tools.functions, lambda: tools.compare(["t.vst", "t.vst"])]
    for _ in range(60):
        (tmp_path / "t.vst").write_bytes(damage.damage_bytes(rng, data))
        for tool in asked:
            try:
                answered += bool(tool())
            except Failure as failure:
                assert "\n" not in str(failure)
    assert answered > 60


def test_a_source_that_is_not_in_the_folder_is_not_shown_by_its_function_either(place):
    with pytest.raises(Failure, match="outside of the folder"):
        sources.source(place, "first.vst", "dedent", 1, 500)


def test_without_the_package_or_the_folder_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    said = vestige("mcp", tmp_path)
    assert (said.code, said.out) == (1, "") and said.err.count("\n") == 1 and "pip install 'vestige[mcp]'" in said.err
    said = vestige("mcp", tmp_path / "nothing")
    assert said.code == 2 and said.err.endswith("there is no such folder\n")


# ---- recording --------------------------------------------------------------


@pytest.mark.parametrize(
    "command, name, said",
    [
        ([], "x", "the command is empty"),
        (["python3"], "x", "the command is empty"),
        (["shop.py", "1"], "first", "is there already"),
        (["shop.py", "1"], "../x", "is no name"),
        (["shop.py", "1"], "a/b", "is no name"),
        (["nothing.py"], "x", "nothing was recorded: the command ended with exit code 2"),
        (["-o", "../out.vst", "--force", "shop.py", "1"], "x", "-o is no program"),
        (["python3", "--force", "shop.py", "1"], "x", "--force is no program"),
        (["-mshop"], "x", "-mshop is no program"),
        (["-", "shop.py"], "x", "- is no program"),
    ],
)
def test_a_command_that_cannot_be_recorded_is_told_in_a_line(place, command, name, said):
    before = sorted(os.listdir(place.root))
    with pytest.raises(Failure, match=re.escape(said)):
        recording.record(place, command, name, 600)
    assert sorted(os.listdir(place.root)) == before


@pytest.mark.parametrize("seconds", [math.nan, math.inf, 0, -1, 3601])
def test_a_limit_of_time_that_is_none_is_refused(tmp_path, seconds):
    (tmp_path / "p.py").write_text("open('it-ran', 'w')")
    with pytest.raises(Failure, match="timeout_seconds must be from 1 to 3600"):
        recording.record(Folder(str(tmp_path)), ["p.py"], "", seconds)
    assert os.listdir(tmp_path) == ["p.py"]


def test_when_threads_ran_and_what_they_allocated_can_be_recorded(tmp_path):
    (tmp_path / "p.py").write_text("import time\ndef keep():\n    return bytearray(9_000_000)\nkept = keep()\n")
    tools = Tools(Folder(str(tmp_path)), allow_record=True)
    tools.record_command(["p.py"], name="timed", sched=True, timeout_seconds=600)
    assert Trace(str(tmp_path / "timed.vst")).info()["gil_waits"]
    told = tools.record_command(["p.py"], name="held", memory=True, timeout_seconds=600)
    assert told.startswith("held.vst is the trace; the command ended with exit code 0")
    assert re.search(r"^held.vst: .* allocations of ", told, re.MULTILINE) and "keep" in told
    with pytest.raises(Failure, match="leave out `sched` and `record_args`"):
        tools.record_command(["p.py"], name="both", memory=True, sched=True)


def test_a_recording_tells_how_the_program_ended_and_what_it_printed(place, tmp_path):
    folder = Folder(str(tmp_path))
    (tmp_path / "p.py").write_text("import sys; print('x' * 5000 + 'end'); sys.exit(3)")
    trace, said = recording.record(folder, ["p.py"], "", 600)
    assert trace == "trace-1.vst"
    assert said.startswith("the command ended with exit code 3") and said.endswith("end") and len(said) < 2200


def test_a_command_that_takes_too_long_is_interrupted_and_its_trace_is_there(tmp_path, monkeypatch):
    class Impatient(subprocess.Popen):
        """Its time is up as soon as the program has begun."""

        def wait(self, timeout=None):
            if timeout == 3.0:
                end = time.monotonic() + 300
                while not (tmp_path / "begun").exists():
                    assert time.monotonic() < end
                    time.sleep(0.01)
                raise subprocess.TimeoutExpired("long.py", timeout)
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Impatient)
    (tmp_path / "long.py").write_text("import time\ntime.sleep(0.01)\nopen('begun', 'w').close()\ntime.sleep(1000)")
    folder = Folder(str(tmp_path))
    trace, said = recording.record(folder, ["long.py"], "", 3)
    assert trace == "trace-1.vst" and said.startswith("the command was ended after 3 s")
    assert "built-in function sleep" in calls.functions(folder, trace, "self", "sleep", 500)


# ---- SQL --------------------------------------------------------------------


@pytest.mark.sql
def test_sql_and_ready_questions_are_answered(place):
    text = asking.sql(place, "select count(*) as calls from span where name like '%leaf'", ["first.vst"], 500)
    assert text == "first.vst\ncalls\n20001"
    assert "leaf" in asking.ask(place, "top-functions", ["first.vst"], {"rows": "50"}, 4000)
    told = asking.ask(place, "growth", ["first.vst", "second.vst"], {"function": "leaf"}, 4000)
    assert re.search(r"20001 \| 40001 \|.* shop.py\(3\): leaf$", told, re.MULTILINE)
    nothing = asking.sql(place, "select name from span where false", [], 500)
    assert nothing == "second.vst\nno rows; the columns are name"
    assert asking.sql(place, "select * from span", [], 100).endswith("a larger max_tokens)")
    with pytest.raises(Failure, match="compares 2 traces"):
        asking.ask(place, "growth", ["first.vst"], {}, 500)
    with pytest.raises(Failure, match="no ready question"):
        asking.ask(place, "nothing", [], {}, 500)


@pytest.mark.sql
@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('{outside}')",
        "select * from read_csv('{outside}')",
        "select * from '{outside}'",
        "select * from glob('/etc/*')",
        "copy (select 1) to '{inside}/x.csv'",
        "attach '{inside}/x.db'",
        "create table x as select 1",
        "install httpfs",
        "set lock_configuration = false",
        "pragma database_list",
        "select 1; copy (select 1) to '{inside}/x.csv'",
        "export database '{inside}'",
        "select * from place",
        "call pragma_version()",
    ],
)
def test_sql_sees_and_changes_nothing_but_the_trace(place, query):
    before = sorted(os.listdir(place.root))
    with pytest.raises(Failure):
        asking.sql(place, query.format(outside="/etc/hostname", inside=place.root), [], 500)
    assert sorted(os.listdir(place.root)) == before


ENDLESS = "select sum(a.self_ns * b.self_ns * c.self_ns) from span a, span b, span c"


@pytest.mark.sql
def test_a_query_that_takes_too_long_is_ended_by_the_system(place, monkeypatch):
    monkeypatch.setattr(asking, "SECONDS", 2.0)
    with pytest.raises(Failure, match="took longer than 2 s"):
        asking.sql(place, ENDLESS, [], 500)
    with pytest.raises(ChildProcessError):  # no child process is left
        os.waitpid(-1, os.WNOHANG)


@pytest.mark.sql
@pytest.mark.parametrize(
    "query",
    [
        "select repeat('x', 1000000) from range(10000)",
        "select max(length(all_of_it)) from (select string_agg(repeat('x', 1000000)) as all_of_it from range(10000))",
        "select list(a.range * b.range) from range(100000) a, range(100000) b",
    ],
)
def test_a_query_that_needs_too_much_memory_is_told_in_a_line(place, query):
    before, others = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    with pytest.raises(Failure, match="(?i)memory") as told:
        asking.sql(place, query, [], 500)
    assert "\n" not in str(told.value)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB, in this process
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < max(1_200_000, others + 1)
    assert asking.sql(place, "select 1 as one", [], 500).endswith("one\n1")


def test_the_system_ends_a_query_that_no_library_stops():
    """Tests only the limits: the code allocates and computes without other confinement."""
    code = "from vestige.cli.mcp import confined; confined._limit({}, 200 << 20); {}"
    run = [sys.executable, "-c"]
    ended = subprocess.run([*run, code.format(600, "bytearray(300 << 20)")], capture_output=True, text=True)
    assert ended.returncode == 1 and ended.stderr.endswith("MemoryError\n")
    ended = subprocess.run([*run, code.format(0.3, "import time; time.sleep(600)")])
    assert ended.returncode == -signal.SIGALRM


# ---- arguments --------------------------------------------------------------


def arguments_of(place):
    tools = Tools(place, allow_record=True)
    return {name: schema(tool) for name, tool in tools.all.items()}


def test_every_argument_is_described_and_others_are_refused(place):
    for name, declared in arguments_of(place).items():
        assert declared["additionalProperties"] is False, name
        for argument, about in declared["properties"].items():
            said = [about, *about.get("anyOf", [])]
            assert any(len(each.get("description", "")) > 20 for each in said), (name, argument)
            assert any("type" in each for each in said), (name, argument)


def test_every_tool_that_reads_a_trace_takes_it_by_the_same_name(place):
    for name, declared in arguments_of(place).items():
        assert ("trace" in declared["properties"]) == (name not in ("list_traces", "record_command")), name
        assert not {"traces", "before", "after"} & set(declared["properties"]), name


def test_closed_sets_are_enums(place):
    declared = arguments_of(place)
    assert declared["functions"]["properties"]["sort"]["enum"] == ["self", "total", "calls"]
    assert {"", "slowest-calls", "growth"} <= set(declared["ask"]["properties"]["question"]["enum"])


def test_every_answer_begins_with_its_trace(place):
    tools, first = Tools(place), "first.vst"
    for answer in (
        tools.findings(first),
        tools.tree(first),
        tools.functions(first),
        tools.ask(trace=first),
        tools.sql(trace=first),
        tools.compare([first, "second.vst"]),
        tools.source("leaf", first),
        tools.source("shop.py:3", first),
    ):
        assert re.match(r"first\.vst\b", answer)
    assert tools.source("leaf").startswith("second.vst: shop.py, ")
    assert tools.ask(trace=[first, "second.vst"]).startswith("first.vst, second.vst\n")
