"""`vestige report`, and the report after `vestige run`, for programs with known calls."""

import csv
import io
import json
import os
import re
import shutil
import sys
from types import SimpleNamespace

import pytest

import vestige
from conftest import COMMAND
from on_terminal import on_terminal
from traces import totals
from vestige import cli
from vestige.cli.report.data import Data, Named, Node
from vestige.cli.report.sections import Sections

pytestmark = pytest.mark.any_python

# A program with known calls: spin() takes nearly all the time, and is called through three frames of lib.py in
# site-packages.
PROGRAM = """\
import gc, json, os, sys, threading, time
sys.path.insert(0, os.path.abspath("site-packages"))
import lib

def spin(n):
    total = 0
    for i in range(n):
        total += i
    return total

def callback():
    return spin(1_000_000)

def recurse(n):
    return recurse(n - 1) if n else spin(700_000)

def worker():
    time.sleep(0.01)
    spin(50_000)

def main():
    lib.outer(callback)
    recurse(5)
    thread = threading.Thread(target=worker, name="a worker")
    thread.start()
    thread.join()
    gc.collect()

main()
"""
LIBRARY = """\
def outer(f): return middle(f)
def middle(f): return inner(f)
def inner(f): return f()
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """The program, recorded once, with the output of `vestige run`."""
    from conftest import Workplace

    workplace = Workplace(tmp_path_factory.mktemp("report"))
    workplace.write("site-packages/lib.py", LIBRARY)
    workplace.write("work.py", PROGRAM)
    workplace.said = workplace.vestige("run", "-o", "t.vst", "work.py")
    assert workplace.said.returncode == 0, workplace.said.stderr
    return workplace


@pytest.fixture
def report(traced, monkeypatch, capsys):
    """Runs the command in this process; returns its output, or, with code=…, its stderr."""
    monkeypatch.chdir(traced.path)

    def run(*words, code=0, command="report"):
        try:
            got = cli._dispatch([command, *words])
        except cli.Failure as failure:
            print(f"vestige: {failure}", file=sys.stderr)
            got = failure.code
        out, err = capsys.readouterr()
        assert got == code, err
        return err if code else out

    return run


def names(text):
    """Returns the functions of a tree, in order, with their depths."""
    found = re.findall(r"^ *[\d.]+ \w+ +\d+%  ([│├└─ ]*)(.+)$", text, re.MULTILINE)
    return [(len(indent) // 3, name.split("  [")[0]) for indent, name in found]


# ---- after the run ------------------------------------------------------------


def test_the_end_of_a_run_is_one_screen(traced):
    lines = traced.said.stderr.splitlines()
    assert len(lines) <= 24
    assert re.fullmatch(r"[\d.]+ m?s, [\d,]+ calls, 2 threads", lines[0])
    text = traced.said.stderr
    assert "\033" not in text
    assert re.search(r"^MainThread, [\d.]+ m?s$", text, re.MULTILINE)
    assert re.search(r"^other threads, the busiest first:\n  a worker: worked [\d.]+ .?s", text, re.MULTILINE)
    assert re.search(r"^trace [\d.]+ .iB, recording took about [\d.]+ .?s \(\d+%\)", text, re.MULTILINE)
    assert re.search(r"^\d+ garbage collections?: [\d.]+ .s, [\d.]+% of the time$", text, re.MULTILINE)
    assert lines[-3].startswith("vestige report t.vst")
    assert lines[-1] == "vestige export t.vst -o t.json.gz   # open it at ui.perfetto.dev"


@pytest.mark.parametrize("view", ["flat", "tree", "threads", "gc"])
def test_nothing_is_wider_than_the_terminal_and_nothing_is_cut_in_a_pipe(traced, view):
    command = ["report", "t.vst", f"--{view}"]
    shown = on_terminal([COMMAND, *command], columns=80, cwd=traced.path, NO_COLOR="1")
    assert all(len(line) <= 80 for line in shown.splitlines()), shown
    piped = traced.vestige(*command).stdout
    assert len(piped.splitlines()) == len(shown.splitlines())
    assert "…" not in piped
    if view == "flat":
        assert "…" in shown and max(map(len, piped.splitlines())) > 80


def test_the_end_of_a_run_is_as_wide_as_the_terminal(traced):
    command = [COMMAND, "run", "-o", "wide.vst", "--force", "work.py"]
    lines = on_terminal(command, columns=80, cwd=traced.path, NO_COLOR="1").splitlines()
    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines[:-1])


def test_the_report_after_a_run_and_the_tree_show_the_same_lines(traced):
    """Times and percentages are equal, too, and waits are shown where they happen."""
    at_end = traced.said.stderr.splitlines()
    tree = traced.vestige("report", "t.vst", "--tree").stdout.splitlines()[1:]
    assert len(tree) > 5 and at_end[at_end.index(tree[0]) :][: len(tree)] == tree


def test_other_threads_are_listed_by_their_work_the_busiest_first():
    def lines(count, width):
        data = Data()
        rows = [
            SimpleNamespace(pid=1, thread=n, tid=n, self_ns=(n + 90) * 10**6, waiting_ns=80 * 10**6, first_ns=0,
                            last_ns=10**9, top_shown="f")
            for n in range(1, count + 1)
        ]  # fmt: skip
        data.threads = [Named(row, name=f"thread {row.thread}") for row in rows]
        data.trees = {(1, 1): Node()}
        facts = [{"pid": 1, "start_ns": 0, "end_ns": 10**9, "complete_ns": 0, "dropped": 0}]
        return Sections(data, facts)._thread_lines(width)

    assert lines(1, 80) == []
    assert lines(3, 80)[1:] == [
        "  thread 3: worked 13.0 ms, waited 80.0 ms, most in f",
        "  thread 2: worked 12.0 ms, waited 80.0 ms, most in f",
    ]
    assert len(lines(10, 80)) == 10 and lines(12, 80)[-1] == "  3 more threads: worked 39.0 ms together"
    assert all(len(line) <= 30 for line in lines(5, 30)[1:])


def test_the_end_of_a_run_folds_libraries_and_recursion(traced):
    text = traced.said.stderr
    (outer,) = [line for line in text.splitlines() if "lib.py:1: outer" in line]
    assert outer.endswith("lib.py:1: outer  [2 frames hidden]")
    assert "inner" not in text
    (recurse,) = [line for line in text.splitlines() if "recurse" in line]
    assert recurse.endswith("work.py:14: recurse  [recursive]")
    tree = names(text)
    depths = {name: depth for depth, name in tree}
    assert depths["work.py:11: callback"] == depths["site-packages/lib.py:1: outer"] + 1
    assert depths["work.py:1: <module>"] == 0
    assert depths["work.py:21: main"] == 1


# ---- views ----------------------------------------------------------------------


def test_functions_are_listed_by_their_own_time(report):
    lines = report("t.vst", "-n", "10").splitlines()
    lines = lines[lines.index(next(line for line in lines if line.endswith("  function"))) - 1 :]
    assert lines[1].split() == ["calls", "self", "%", "total", "function"]
    (spin,) = [line for line in lines if line.endswith("work.py:5: spin")]
    assert spin.split()[0] == "3"
    rows = json.loads(report("t.vst", "--format", "json"))["functions"]
    assert [row["self_ns"] for row in rows] == sorted((row["self_ns"] for row in rows), reverse=True)
    assert int(lines[2].split()[0].replace(",", "")) == rows[0]["calls"]
    assert lines[-1].strip() == f"and {len(rows) - 10} more functions"


def test_a_tree_shows_who_called_whom(report):
    tree = names(report("t.vst", "--tree"))
    assert tree[0] == (0, "work.py:1: <module>") and (1, "work.py:21: main") in tree
    everything = names(report("t.vst", "--tree", "--all", "--min", "0", "-n", "1000"))
    assert {name for _, name in everything} >= {"site-packages/lib.py:2: middle", "site-packages/lib.py:3: inner"}
    assert len(everything) > len(tree)
    assert len(names(report("t.vst", "--tree", "-n", "3"))) == 3


def test_threads_tell_what_they_did_and_how_long_they_waited(report):
    lines = report("t.vst", "--threads").splitlines()
    assert re.fullmatch(r"% is of the [\d.]+ m?s that passed", lines[1])
    assert lines[2].split() == ["calls", "time", "%", "waiting", "GC", "thread", "most", "time", "in"]
    assert sum("a worker" in line for line in lines) == 1
    rows = json.loads(report("t.vst", "--threads", "--format", "json"))["threads"]
    by_name = {row["thread"]: row for row in rows}
    assert by_name["a worker"]["waiting_ns"] >= 10_000_000
    main = json.loads(report("t.vst", "--thread", "MainThread", "--format", "json"))["functions"]
    assert by_name["MainThread"]["most_in"] in main[0]["function"]
    assert by_name["MainThread"]["gc_ns"] > 0
    assert by_name["MainThread"]["time_ns"] >= by_name["MainThread"]["waiting_ns"] >= 0


def test_garbage_collections_are_counted_timed_and_placed(report):
    text = report("t.vst", "--gc")
    assert "they began in" in text and "<built-in function collect>" in text
    document = json.loads(report("t.vst", "--gc", "--format", "json"))
    (full,) = [row for row in document["generations"] if row["generation"] == 2]
    assert full["count"] >= 1 and full["time_ns"] >= full["longest_ns"] > 0
    assert document["gc_ns"] == sum(row["time_ns"] for row in document["generations"])
    assert document["longest"][0]["time_ns"] >= document["longest"][-1]["time_ns"]


def test_every_view_has_every_format(report):
    for view in ("flat", "tree", "threads", "gc"):
        document = json.loads(report("t.vst", f"--{view}", "--format", "json"))
        assert document["view"] == view and document["processes"][0]["file"] == "t.vst"
        table = next(value for key, value in document.items() if isinstance(value, list) and key != "processes")
        rows = list(csv.reader(io.StringIO(report("t.vst", f"--{view}", "--format", "csv"))))
        names = {name: None for row in table for name in row}  # only some lines of a tree import a module
        assert set(rows[0]) == set(names)
        assert len(rows) - 1 == len(table) >= 1
        for values, row in zip(rows[1:], table, strict=True):
            expected = [row.get(name) for name in rows[0]]
            assert values == ["" if value is None else str(value) for value in expected]


def test_the_tree_for_programs_adds_up(report):
    rows = json.loads(report("t.vst", "--tree", "--format", "json"))["tree"]
    flat = json.loads(report("t.vst", "--format", "json"))["functions"]
    for row in rows:
        below = sum(other["total_ns"] for other in rows if other["parent"] == row["id"])
        assert row["self_ns"] + below == row["total_ns"]
        assert row["parent"] < row["id"]
    own, calls = {}, {}
    for row in rows:
        own[row["function"]] = own.get(row["function"], 0) + row["self_ns"]
        calls[row["function"]] = calls.get(row["function"], 0) + row["calls"]
    for row in flat:  # C functions of two modules may share a name
        own[row["function"]] -= row["self_ns"]
        calls[row["function"]] -= row["calls"]
    assert not any(own.values()) and not any(calls.values())
    found = totals(vestige.Trace("t.vst"), all_windows=True)
    shown = [(re.sub(r"\((\d+)\): ", r":\1: ", name), *times) for name, *times in found]
    assert sorted(shown) == sorted((row["function"], row["calls"], row["self_ns"], row["total_ns"]) for row in flat)


# ---- what is chosen -----------------------------------------------------------------


def functions(text):
    return {row["function"]: row for row in json.loads(text)["functions"]}


def test_what_is_left_out_counts_for_its_caller(report):
    every = functions(report("t.vst", "--format", "json"))
    some = functions(report("t.vst", "--format", "json", "--exclude", "spin"))
    assert set(every) - set(some) == {"work.py:5: spin"}
    assert sum(row["self_ns"] for row in some.values()) == sum(row["self_ns"] for row in every.values())
    callback = "work.py:11: callback"
    assert some[callback]["self_ns"] == some[callback]["total_ns"] == every[callback]["total_ns"]
    mine = functions(report("t.vst", "--format", "json", "--include", "work.py"))
    assert {name.partition(":")[0] for name in mine} == {"work.py"}
    tree = json.loads(report("t.vst", "--tree", "--format", "json", "--exclude", "*/site-packages/*"))["tree"]
    (row,) = [row for row in tree if row["function"] == callback]
    assert tree[row["parent"]]["function"] == "work.py:21: main"


def test_a_thread_is_chosen_by_name_pattern_or_id(report):
    rows = json.loads(report("t.vst", "--threads", "--format", "json"))["threads"]
    tid = str(next(row["tid"] for row in rows if row["thread"] == "a worker"))
    for chosen in ("a worker", "*work*", tid):
        text = report("t.vst", "--thread", chosen, "--tree")
        assert text.splitlines()[0].endswith(", 1 thread")
        assert "worker" in text and "main" not in text
    both = json.loads(report("t.vst", "--thread", "a worker", "--thread", "Main*", "--threads", "--format", "json"))
    assert len(both["threads"]) == 2


def test_a_range_of_time_is_all_that_counts(report):
    whole = json.loads(report("t.vst", "--format", "json"))
    half = json.loads(report("t.vst", "--format", "json", "--from", "0%", "--until", "50%"))
    assert abs(half["duration_ns"] * 2 - whole["duration_ns"]) <= 2
    assert sum(row["self_ns"] for row in half["functions"]) < sum(row["self_ns"] for row in whole["functions"])
    assert report("t.vst", "--tree", "--from", "-10ms").startswith("10.0 ms, ")


def test_the_order_is_as_asked(report):
    for by, key in (("calls", "calls"), ("total", "total_ns"), ("self", "self_ns")):
        rows = json.loads(report("t.vst", "--sort", by, "--format", "json"))["functions"]
        assert [row[key] for row in rows] == sorted((row[key] for row in rows), reverse=True)
    rows = json.loads(report("t.vst", "--sort", "name", "--format", "json"))["functions"]
    assert [row["function"] for row in rows] == sorted(row["function"] for row in rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--include", "no*such"], "--include 'no*such': matches no function or file in these traces"),
        (["--thread", "no"], "--thread 'no': no thread has this name or id; there are MainThread, a worker"),
        (["--tree", "--min", "some"], "--min: not a share: 'some'; write 10% or 0.5%"),
        (["--tree", "--gc"], "argument --gc: not allowed with argument --tree; see vestige report --help"),
        (["--srot", "self"], "unrecognized arguments: --srot self, did you mean --sort?; see vestige report --help"),
        (["--from", "9s"], r"--from 9s: nothing of the "),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(report, words, message):
    text = report("t.vst", *words, code=2)
    assert text.startswith(f"vestige: {message}") and text.count("\n") == 1


def test_a_near_choice_is_named(report):
    assert "did you mean total?" in report("t.vst", "--sort", "totl", code=2)


def test_an_exclusion_that_fits_nothing_is_told_and_no_error(report, capsys):
    cli._dispatch(["report", "t.vst", "--exclude", "no*such"])
    out, err = capsys.readouterr()
    assert "spin" in out
    assert err == "vestige: --exclude 'no*such': matches no function or file in these traces\n"


def test_memory_that_was_not_recorded_is_one_line(report):
    for words in (["--memory"], ["--sort", "memory"]):
        assert report("t.vst", *words, code=1).endswith("no memory was recorded here; see vestige memory --help\n")


# ---- files that are not as they should be ---------------------------------------------


def test_an_empty_trace_has_empty_views(report, traced):
    with vestige.profile(output=str(traced.path / "empty.vst"), overwrite=True, with_stack=False, gc=False):
        pass
    for view in ("flat", "tree", "threads", "gc"):
        assert ", 0 calls, 0 threads" in report("empty.vst", f"--{view}")
        assert json.loads(report("empty.vst", f"--{view}", "--format", "json"))["calls"] == 0
        header = report("empty.vst", f"--{view}", "--format", "csv")
        assert header.count("\n") == 1 and "," in header
    report("empty.vst", "empty.vst", command="diff")


def test_a_torn_and_a_damaged_file_are_read_as_far_as_they_go(report, traced):
    whole = (traced.path / "t.vst").read_bytes()
    (traced.path / "cut.vst").write_bytes(whole[: len(whole) * 2 // 3])
    text = report("cut.vst", "--tree")
    assert re.search(r"damaged at byte [\d,]+; what can be read is here", text)
    (traced.path / "bent.vst").write_bytes(whole[:4100] + b"?" + whole[4101:])
    assert report("bent.vst", "--tree", code=1) == "vestige: bent.vst: the trace is damaged (at byte 4096)\n"


def test_several_files_are_one_report(report, traced):
    shutil.copy(traced.path / "t.vst", traced.path / "copy.vst")
    for view in ("flat", "tree", "threads", "gc"):
        one = json.loads(report("t.vst", f"--{view}", "--format", "json"))
        two = json.loads(report("t.vst", "copy.vst", f"--{view}", "--format", "json"))
        assert two["calls"] == 2 * one["calls"] and two["gc_ns"] == 2 * one["gc_ns"]
        assert len(two["processes"]) == 2
    one, two = (names(report(*files, "--tree")) for files in (["t.vst"], ["t.vst", "copy.vst"]))
    assert set(one) <= set(two)
    os.unlink(traced.path / "copy.vst")


def test_names_that_are_wide_or_hostile_keep_their_columns(workplace):
    source = (
        "def 計算する関数の長い名前を持つ場合の表示(): pass\ndef f(): 計算する関数の長い名前を持つ場合の表示()\nf()\n"
    )
    source += "import vestige\nwith vestige.record_function('\\x1b[31mred\\x07 ' + 'x' * 200): f()\n"
    workplace.write("wide.py", source)
    here = {"columns": 80, "cwd": workplace.path, "NO_COLOR": "1"}
    text = on_terminal([COMMAND, "run", "-o", "t.vst", "wide.py"], **here)
    text += on_terminal([COMMAND, "report", "t.vst", "--tree", "--min", "0"], **here)
    text += on_terminal([COMMAND, "report", "t.vst"], **here)
    from vestige.base.terminal import cells

    assert "計算" in text
    assert "\x1b" not in text and "\x07" not in text
    assert all(cells(line) <= 80 for line in text.splitlines() if not line.startswith("vestige export")), text


# ---- memory -------------------------------------------------------------------------


def test_memory_by_function(workplace):
    workplace.write(
        "hold.py",
        """\
        import sys
        import vestige
        def hold():
            return bytearray(3_000_000)
        def main():
            kept = [hold() for _ in range(4)]
        prof = vestige.profile(output=sys.argv[1], profile_memory=True)
        with prof:
            main()
        """,
    )
    assert workplace.python("hold.py", "calls.vst").returncode == 0
    text = workplace.vestige("report", "calls.vst", "--memory").stdout
    assert re.search(r"^peak 11\.\d MiB, in all ", text, re.MULTILINE)
    rows = functions(workplace.vestige("report", "calls.vst", "--memory", "--format", "json").stdout)
    assert rows["<built-in type bytearray>"]["self_bytes"] >= 12_000_000 > rows["hold.py:3: hold"]["self_bytes"]
    assert rows["hold.py:3: hold"]["total_bytes"] >= 12_000_000
    assert rows["hold.py:5: main"]["total_bytes"] >= 12_000_000 > rows["hold.py:5: main"]["self_bytes"]


@pytest.mark.parametrize("words", [[], ["--memory"], ["-n", "3"], ["--format", "json"], ["--format", "csv", "-n", "7"]])
def test_a_recording_of_memory_alone_is_reported_as_by_memory_report(workplace, words):
    with vestige.memory.track(workplace.path / "m.vst"):
        kept = [bytearray(5000) for _ in range(20)]
    assert len(kept) == 20
    told = workplace.vestige("memory-report", "m.vst", *(word for word in words if word != "--memory")).stdout
    assert workplace.vestige("report", "m.vst", *words).stdout == told != ""
    other = workplace.vestige("report", "m.vst", "--threads").stdout
    assert other != told and other.splitlines()[-1] == "memory alone was recorded here: vestige memory-report m.vst"
