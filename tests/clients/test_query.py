"""`vestige query` with DuckDB: ready questions on tables with known answers, and on traces recorded here."""

import contextlib
import csv
import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vestige import Trace, memory, profile, record_function, schedule, tables
from vestige.cli import Failure
from vestige.cli import query as command
from vestige.query import questions
from vestige.query.tables import Tables

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
from . import sql_tables
from .sql_tables import MS, START

sys.path.append(str(Path(__file__).parents[1] / "python"))
from traces import family, patch, record, totals

SLEEP, TRAIN, LOAD = "<built-in function sleep>", "train.py(10): train", "train.py(20): load"


def ask(*argv):
    """Returns the rows of an answer as lists of JSON values."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        ask.code = command.main([*map(str, argv), "--format", "json"])
    return [list(row.values()) for row in json.loads(out.getvalue())]


def text(*argv):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert command.main([*map(str, argv)]) == 0
    return out.getvalue()


def refused(*argv):
    with pytest.raises(Failure) as caught:
        command.main([*map(str, argv)])
    assert "\n" not in str(caught.value)
    return str(caught.value), caught.value.code


# ---- answers that a person can work out ------------------------------------------


@pytest.fixture(scope="module")
def hand(tmp_path_factory):
    return sql_tables.write(tmp_path_factory.mktemp("hand"))


ANSWERS = {
    "top-functions -p rows=3": [
        [6, 100 * MS, 100 * 100 / 172, 100 * MS, 50 * MS, 3, SLEEP],
        [6, 30 * MS, 100 * 30 / 172, 166 * MS, 61 * MS, 3, TRAIN],
        [12, 30 * MS, 100 * 30 / 172, 36 * MS, 6 * MS, 3, LOAD],
    ],
    "stragglers": [[3, 2, "beta", 2, 62 * MS, 22 * MS, 40 * MS, 62 / 22, 3]],
    "stragglers -p over=3": [],
    "stragglers -p step=train": [[1, 2, "beta", 2, 61 * MS, 21 * MS, 40 * MS, 61 / 21, 3]],
    "slowest-rank": [
        [2, 0, "alpha", 0, 22 * MS, 22 * MS, 22 * MS, 0, 3],
        [3, 2, "beta", 2, 62 * MS, 22 * MS, 22 * MS, 40 * MS, 3],
    ],
    "gc-by-host": [["alpha", 2, 4, 4 * MS, MS, 0.2], ["beta", 1, 2, 2 * MS, MS, 0.2]],
    "slowest-calls -p function=load -p rows=1": [
        [6 * MS, 2 * MS, 0, "alpha", 100, "MainThread", START + 201 * MS, LOAD, None]
    ],
    "callers -p function=load": [[6, 36 * MS, 12 * MS, 3, LOAD, TRAIN], [6, 0, 18 * MS, 3, LOAD, LOAD]],
    "callers -p function=ProfilerStep#2": [[3, 66 * MS, 3 * MS, 3, "ProfilerStep#2", "(nobody)"]],
    "callees -p function=train": [[6, 100 * MS, 100 * MS, 3, TRAIN, SLEEP], [6, 36 * MS, 12 * MS, 3, TRAIN, LOAD]],
    "time-by-file -p rows=2": [
        [6, 100 * MS, 100 * 100 / 172, 1, "(native)"],
        [18, 60 * MS, 100 * 60 / 172, 2, "train.py"],
    ],
    "busy-threads -p rows=1": [[0, "alpha", 100, 1000, "MainThread", 12, 44 * MS, 20 * MS, 2.4]],
    "imbalance": [[40 * MS, 20 * MS, 60 * MS, 2, 3, SLEEP]],
    "lost": [
        [2, "beta", 102, "MainThread", "records", 1, 2, 10 * MS, START + 500 * MS],
        [1, "alpha", 101, "MainThread", "records", 1, 1, 10 * MS, START + 500 * MS],
    ],
    "operators": [
        [6, 6 * MS, 12 * MS, 2 * MS, 384, 3, "aten::add"],
        [3, 3 * MS, 6 * MS, 2 * MS, 192, 3, "aten::mm"],
    ],
    "kernels": [
        [2, 35 * MS, 20 * MS, None, 1, "kernel", "gemm"],
        [1, 10 * MS, 10 * MS, 4000, 1, "copy", "Memcpy HtoD"],
        [1, MS, MS, 100, 1, "set", "Memset (Device)"],
    ],
    "device-gaps": [
        [25 * MS, 15 * MS, START + 35 * MS, 1, "cuda", 0, "Memcpy HtoD", "aten::copy_", None],
        [10 * MS, None, START + 70 * MS, 1, "cuda", 0, "Memset (Device)", None, None],
    ],
    "launch-bound": [[1, 101, "cuda", 0, 4, 71 * MS, 35 * MS, 15 * MS]],
    "allocations": [[12000, 12, 6000, 1000, 3, False, LOAD], [6000, 6, 6000, 1000, 3, False, "(not in Python)"]],
}


@pytest.mark.parametrize("question", ANSWERS)
def test_a_ready_question_has_the_answer_that_a_person_works_out(hand, question):
    name, *options = question.split()
    answer = ask(name, hand, *options)
    assert len(answer) == len(ANSWERS[question])
    for row, expected in zip(answer, ANSWERS[question]):
        near = [pytest.approx(value, rel=1e-12) if isinstance(value, float) else value for value in expected]
        assert row == near


def test_growth_is_between_two_runs(hand, tmp_path):
    after = sql_tables.write(tmp_path / "after", slow_ms=0, scale=2)
    grown = ask("growth", hand, after)
    assert grown[0] == [30 * MS, 30 * MS, 60 * MS, 2.0, 6, 6, 166 * MS, 252 * MS, TRAIN]
    assert grown[2] == [20 * MS, 100 * MS, 120 * MS, 1.2, 6, 6, 100 * MS, 120 * MS, SLEEP]
    assert ask("growth", after, hand, "-p", "function=load") == [
        [-30 * MS, 60 * MS, 30 * MS, 0.5, 12, 12, 72 * MS, 36 * MS, LOAD]
    ]
    runs = ask(
        "select run.run, path, count(*), min(process), max(process) from run group by 1, 2 order by 1", hand, after
    )
    assert runs == [[0, str(hand), 3, 0, 2], [1, str(after), 3, 3, 5]]


def test_every_question_was_asked(hand):
    assert questions.load().keys() - {question.split()[0] for question in ANSWERS} == {"growth", "processes"}


def test_one_file_of_spans_is_enough(hand, tmp_path):
    shutil.copy(hand / "span.parquet", tmp_path / "mine.parquet")
    assert ask("select count(*) from span", tmp_path / "mine.parquet") == [[36]]
    assert refused("gc-by-host", tmp_path / "mine.parquet")[1] == 2


# ---- how it is asked and answered ---------------------------------------------------


def test_answers_can_be_written_in_every_format(hand, tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    sql = "select name, duration_ns from span where process = 0 and name like :like order by start_ns"
    like = ["-p", "like=%load"]
    rows = [[LOAD, 6 * MS], [LOAD, 4 * MS]] * 2
    assert ask(sql, hand, *like) == rows
    assert text(sql, hand, *like, "--format", "csv") == "name,duration_ns\n" + f"{LOAD},6000000\n{LOAD},4000000\n" * 2
    for name in ("out.csv", "out.json", "out.parquet", "out.txt"):
        assert text(sql, hand, *like, "-o", name) == ""
    with open("out.csv") as file:
        assert list(csv.reader(file))[1:] == [[name, str(ns)] for name, ns in rows]
    assert [list(row.values()) for row in json.loads(Path("out.json").read_text())] == rows
    assert [list(row.values()) for row in pq.read_table("out.parquet").to_pylist()] == rows
    assert Path("out.txt").read_text().splitlines()[:2] == ["name                duration", f"{LOAD}   6.00 ms"]
    assert text(sql, hand, *like, "-n", "1").splitlines()[2] == "… 3 more rows; -n 0 shows all"
    Path("q.sql").write_text("-- how many\nselect count(*) as n from span;\n")
    assert text("@q.sql", hand) == " n\n36\n"
    assert text("select 1 as a; select 2 as b", hand) == "b\n2\n"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("selec 1", "syntax error at or near"),
        ("select nothing from span", '"nothing" not found'),
        ("select * from spam", "Table with name spam does not exist; there are process, thread, "),
        ("select name from span group by process", "must appear in the GROUP BY"),
        ("select cast(name as int) from span", "Could not convert"),
        ("-- nothing ;", "there is no SQL in the query"),
    ],
)
def test_wrong_sql_is_one_line(hand, tmp_path, sql, message):
    said, code = refused("--", sql, hand)
    assert message in said
    assert code == 2
    assert refused("-o", tmp_path / "x.csv", "--", sql, hand) == (said, 2)
    assert not (tmp_path / "x.csv").exists()


# ---- values of parameters ------------------------------------------------------------

EVIL = "x'); drop table span; --$$"
IN_TEXT = {
    "'a :v'": "a :v",
    "'it''s :v'": "it's :v",
    r"E'it\'s :v'": "it's :v",
    "$$it's :v$$": "it's :v",
    "$tag$ $$:v$$ $tag$": " $$:v$$ ",
    '1 as ":v"': 1,
    "2 /* :v /* nested */ :v */": 2,
    "3 -- :v\n": 3,
    "'é' || :v": "é" + EVIL,
    ":v": EVIL,
    "$v": EVIL,
    "(:v)::text": EVIL,
    "[:v, :v][2]": EVIL,
    "{'k':v}.k": "column",
    "[10, 20, 30][1:w][2]": 20,
}


@pytest.mark.parametrize("expression", IN_TEXT)
def test_a_value_is_never_text_of_the_query(hand, expression):
    sql = f"with t as (select 'column' as v, 2 as w) select {expression}\n, :v as b, :w as c from t"
    assert ask(sql, hand, "-p", f"v={EVIL}", "-p", "w=7") == [[IN_TEXT[expression], EVIL, 7]]


def test_values_reach_every_statement_that_asks_for_them(hand, tmp_path):
    import pyarrow.parquet as pq

    sql = "create temp table t as select :a as a; select a, :like as b, 'x' like :like from t"
    given = ["-p", "a=1.5", "-p", "like=x%"]
    assert ask(sql, hand, *given) == [[1.5, "x%", True]]
    assert text(sql, hand, *given, "-o", tmp_path / "o.parquet") == ""
    assert pq.read_table(tmp_path / "o.parquet").to_pylist()[0]["b"] == "x%"
    assert refused("select ':c'", hand, "-p", "c=1") == ("-p c=…: there is no :c in the query", 2)
    assert refused("select $c", hand)[1] == 2


def test_a_parameter_without_a_value_is_named(hand, tmp_path):
    (tmp_path / "q.sql").write_text("select ':a', [1, 2][1:1] from span where name like :name and duration_ns > :least")
    file = f"@{tmp_path / 'q.sql'}"
    said = "the query needs a value for :name and :least: -p name=… -p least=…"
    assert refused(file, hand) == (said, 2)
    assert refused(file, hand, "-p", "name=x") == ("the query needs a value for :least: -p least=…", 2)
    assert text(file, hand, "-p", "name=x", "-p", "least=1") != ""


def test_a_quote_that_is_not_closed_is_refused(hand):
    assert refused("select 'x :c", hand, "-p", "c=1")[1] == 2


# ---- what DuckDB moves to disk -------------------------------------------------------


def spilling(folder):
    """Starts a command that needs more memory than its limit, and runs until it is ended."""
    return [
        sys.executable, "-m", "vestige", "query", "--memory-limit", "50MB",
        "select * from range(20000000000) order by hash(range)",
        str(folder),
    ]  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_spilled_files_are_private_have_no_known_name_and_go_when_a_signal_ends_it(hand, tmp_path, number):
    def start():  # a shell's jobs ignore interrupts, programs under nohup ignore hangups
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    env = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(spilling(hand), env=env, preexec_fn=start, stderr=subprocess.PIPE)  # noqa: PLW1509
    try:
        until = time.monotonic() + 60
        while not any(tmp_path.glob("*/*")):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.01)
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert str(process.pid) not in folder.name
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    finally:
        process.kill()
        said = process.communicate()[1]
    assert list(tmp_path.iterdir()) == []
    assert b"Traceback" not in said


def test_nothing_stays_behind_however_a_query_ends(hand, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert ask("select 1", hand) == [[1]]
    for wrong in ("selec", "select nothing from span", "select cast(name as int) from span", "-- nothing"):
        refused("--", f"{wrong} ", hand)
    assert refused("select 1", hand, "--memory-limit", "x")[1] == 2
    assert list(tmp_path.iterdir()) == []


# ---- traces that are recorded here ---------------------------------------------------


def load(count):
    return [abs(number) for number in range(count)]


def rank(folder, number, *, host="vm", calls=10):
    """A training of three steps, of which the second and third are recorded."""
    with pytest.MonkeyPatch.context() as env:
        env.setenv("RANK", str(number))
        env.setenv("WORLD_SIZE", "3")
        prof = profile(
            output=folder / f"r{number}.vst", schedule=schedule(wait=0, warmup=1, active=2, repeat=1), acc_events=True
        )
        prof._set_metadata("host_name", json.dumps(host))
        with prof:
            for step in range(3):
                load(calls * (step + 1))
                gc.collect()
                if step < 2:
                    prof.step()
    return prof


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    for number in range(3):
        rank(folder, number, host="alpha" if number < 2 else "beta")
    return folder


def steps_of(path):
    """Returns {number: duration}, read without the tables."""
    trace = Trace(str(path))
    return {step: [end - start for start, end in trace.spans(f"ProfilerStep#{step}")][0] for step in (1, 2)}


def test_sums_over_all_ranks_are_those_of_the_reports(ranks):
    expected = {}
    for path in ranks.glob("*.vst"):
        for name, calls, own, total in totals(Trace(str(path)), all_windows=True):
            row = expected.setdefault(name, [0, 0, 0])
            for at, value in enumerate((calls, own, total)):
                row[at] += value
    answer = {row[6]: [row[0], row[1], row[3]] for row in ask("top-functions", ranks, "-p", "rows=1000")}
    assert answer == expected
    assert answer["<built-in function abs>"][0] == 3 * (20 + 30)


def test_stragglers_and_the_slowest_rank_of_each_step(ranks):
    taken = [steps_of(ranks / f"r{number}.vst") for number in range(3)]
    slowest = ask("slowest-rank", ranks)
    assert [row[0] for row in slowest] == [1, 2]
    for step, number, host, process, duration, median, least, behind, count in slowest:
        times = sorted(each[step] for each in taken)
        assert [duration, median, least, behind] == [times[2], times[1], times[0], times[2] - times[1]]
        assert taken[number][step] == times[2]
        assert (process, count, host) == (number, 3, "beta" if number == 2 else "alpha")
    behind = ask("stragglers", ranks, "-p", "over=1.0")
    assert [row[6] for row in behind] == sorted((row[7] for row in slowest), reverse=True)


def test_collections_are_counted_by_host(ranks):
    answer = ask("gc-by-host", ranks)
    assert sorted(row[:2] for row in answer) == [["alpha", 2], ["beta", 1]]
    counted = dict(
        ask("select process.host, count(*) from span join process using (process) where kind = 'gc' group by 1", ranks)
    )
    assert {row[0]: row[2] for row in answer} == counted
    assert counted["alpha"] >= 4
    assert counted["beta"] >= 2


def test_callers_and_callees_agree_with_each_other(ranks):
    callers = [row for row in ask("callers", ranks, "-p", "function=load") if row[4].endswith(": load")]
    assert sorted((row[5], row[0]) for row in callers) == [("ProfilerStep#1", 3), ("ProfilerStep#2", 3)]
    for row in callers:
        callees = ask("callees", ranks, "-p", f"function={row[5]}")
        assert row[:4] in [callee[:4] for callee in callees if callee[5] == row[4]]


def test_growth_between_two_recordings(ranks, tmp_path):
    rank(tmp_path, 0, calls=20)
    (row,) = [row for row in ask("growth", ranks / "r0.vst", tmp_path, "-p", "rows=1000") if "abs" in row[8]]
    assert row[4:6] == [50, 100]


def test_a_file_stands_for_its_children_and_a_pattern_for_what_it_matches(tmp_path):
    family(tmp_path, 2000, 2001)
    (tmp_path / "more").mkdir()
    patch(record(tmp_path / "more" / "u.vst"), pid=3000)
    pids = "select pid from process order by process"
    assert ask(pids, tmp_path / "t.vst") == [[1000], [2000], [2001]]
    assert ask(pids, tmp_path / "t.vst", "--no-children") == [[1000]]
    assert ask(pids, tmp_path / "t.200*.vst") == [[2000], [2001]]
    assert sorted(ask(pids, tmp_path / "**/*.vst")) == [[1000], [2000], [2001], [3000]]
    runs = "select run, pid from run join process using (process) order by pid"
    assert ask(runs, tmp_path / "more", tmp_path / "t.vst") == [[1, 1000], [1, 2000], [1, 2001], [0, 3000]]


def test_traces_that_cannot_be_read_are_told_of_and_left_out(ranks, tmp_path, capsys, monkeypatch):
    for path in ranks.glob("*.vst"):
        shutil.copy(path, tmp_path)
    (tmp_path / "r0.vst").write_bytes((tmp_path / "r0.vst").read_bytes()[:50])
    (tmp_path / "junk.vst").write_bytes(b"no trace at all" * 100)
    sql = "select rank, count(*) > 100 from span join process using (process) group by rank order by rank"
    assert ask(sql, tmp_path) == [[1, True], [2, True]]
    assert ask.code == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert all(line.startswith(f"vestige: {tmp_path}") for line in said)
    # a file that disappears during the query
    monkeypatch.setattr(Tables, "streams", _without(tmp_path / "r1.vst", Tables.streams))
    (tmp_path / "r0.vst").unlink()
    (tmp_path / "junk.vst").unlink()
    assert ask(sql, tmp_path) == [[2, True]]
    assert ask.code == 1
    assert capsys.readouterr().err == f"vestige: {tmp_path}/r1.vst: No such file or directory\n"


def _without(path, streams):
    def made(self, count):
        path.unlink(missing_ok=True)
        return streams(self, count)

    return made


def test_allocations_are_those_of_the_memory_report(tmp_path):
    with memory.track(tmp_path / "m.vst"):
        kept = hold(100)
    answer = [row for row in ask("allocations", tmp_path / "m.vst") if row[6].endswith(": hold")]
    assert len(kept) == 100
    assert answer[0][2] >= 100 * 10_000
    assert answer[0][3] >= 10_000
    (count,) = ask(
        "select count(*) from alloc where freed_ns is null and size >= 10000 and name like '%: hold'", tmp_path
    )
    assert count == [100]


def hold(count):
    kept = []
    for _ in range(count):  # not in a comprehension, which is a function before 3.12
        kept.append(bytes(10_000))
    return kept


def test_exported_tables_have_the_same_answers(ranks, tmp_path):
    tables.write(ranks, tmp_path / "all")
    for name, question in questions.load().items():
        given = ["-p", "function=load"] if name in ("callers", "callees") else []
        if question.runs == 1:
            assert ask(name, tmp_path / "all", *given) == ask(name, ranks, *given)
    twice = dict(ask("select run.run, count(*) from span join run using (process) group by 1", *[tmp_path / "all"] * 2))
    assert twice[0] == twice[1] > 100


def test_annotations_can_be_steps(tmp_path):
    for number, counts in enumerate([(10, 10), (10, 20_000)]):
        prof = profile(output=tmp_path / f"s{number}.vst", rank=number)
        with prof:
            for count in counts:
                with record_function("train step"):
                    sum(range(count))
    times = [[end - start for start, end in Trace(str(tmp_path / f"s{n}.vst")).spans("train step")] for n in range(2)]
    answer = ask("slowest-rank", tmp_path, "-p", "step=train step")
    assert [row[4] for row in answer] == [max(times[0][step], times[1][step]) for step in range(2)]


def test_an_answer_does_not_need_the_memory_of_all_its_rows(ranks, tmp_path):
    sql = "select a.span from span a, span b order by a.span, b.span"
    assert ask(f"select count(*) > 1000 from ({sql})", ranks, "--memory-limit", "200MB") == [[True]]
    assert refused("select 1", ranks, "--memory-limit", "lots")[1] == 2
    assert not list(Path(os.getcwd()).glob(".tmp*"))
