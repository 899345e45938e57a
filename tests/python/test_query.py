"""`vestige query` without a database engine: the list of questions, how parameters get into SQL, and how answers look."""

import io
import json
import sys

import pytest

from vestige.cli import Failure
from vestige.cli import query as command
from vestige.query.answer import Answer
from vestige.query.questions import Question, check_used, load, own_values
from vestige.query.show import write_csv, write_json, write_table
from vestige.query.spark import TOKEN, statements
from vestige.query.tables import find_tables

pytestmark = pytest.mark.any_python
NS = 1_700_000_000 * 10**9


class Given(Answer):
    """An answer with these rows."""

    def __init__(self, columns, *batches):
        self.columns = columns
        self._batches = batches

    def batches(self):
        yield from self._batches


def shown(answer, **options):
    out = io.StringIO()
    write_table(answer, out, **{"limit": 0, "width": None, **options})
    return out.getvalue()


def refused(*argv):
    """Returns the message of a usage error."""
    with pytest.raises(Failure) as caught:
        command.main(list(argv))
    assert caught.value.code == 2
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- questions ----------------------------------------------------------------


def test_every_question_says_what_it_is_about_and_uses_its_parameters(capsys):
    questions = load()
    assert {"top-functions", "stragglers", "slowest-rank", "gc-by-host", "growth"} <= questions.keys()
    assert command.main(["--list"]) == 0
    listed = capsys.readouterr().out
    for name, question in questions.items():
        assert f"{name:<15} {question.about}" in listed
        assert len(question.about) > 10
        for parameter in question.parameters:
            assert f":{parameter}" in question.text
        assert {match[1] for match in TOKEN.finditer(question.text) if match[1]} == question.parameters.keys()
        assert command.main(["--show-sql", name]) == 0
        assert capsys.readouterr().out == question.text


def test_values_are_of_the_kind_that_the_question_says():
    question = Question(
        "q", "-- about\n-- rows = 20: how many\n-- over = 1.5: factor\n-- f: name\nselect :rows, :over, :f"
    )
    assert question.values({"f": "it's"}) == {"rows": 20, "over": 1.5, "f": "it's"}
    given = question.values({"f": "1", "over": "2", "rows": "1"})
    assert given == {"rows": 1, "over": 2.0, "f": "1"} and type(given["over"]) is float and type(given["f"]) is str
    for values, message in [
        ({}, r"q needs a value for f \(name\): -p f=…"),
        ({"f": "", "rows": "x"}, r"rows is a number \(how many\), not 'x'"),
        ({"f": "", "rows": "1.5"}, r"rows is a whole number \(how many\), not '1.5'"),
        ({"f": "", "g": "1"}, "q has no parameter 'g'; it has rows, over, f"),
    ]:
        with pytest.raises(Failure, match=message):
            question.values(values)


def test_in_own_sql_what_looks_like_a_number_is_one():
    values = own_values({"a": "1", "b": "-1.5e3", "c": "+007", "d": "1x", "e": "", "f": "."})
    assert values == {"a": 1, "b": -1500.0, "c": 7, "d": "1x", "e": "", "f": "."}
    with pytest.raises(Failure, match="-p c=…: there is no :c in the query"):
        check_used({"a": 1, "c": "x"}, {"a", "b"})


def test_spark_has_no_parameters_in_strings_names_and_comments():
    sql = r"""select ':a', 'it\':a', ":a\":a", `:a`, x::int, :b -- :a
        /* :a */ from t where y = :ab"""
    assert [match[1] for match in TOKEN.finditer(sql) if match[1]] == ["b", "ab"]


def test_several_statements_are_told_apart():
    assert statements("select ';' as a; -- b;\n;select 2;\n") == ["select ';' as a", "select 2"]
    assert statements(r"select 'it\'s; one'; select 2") == [r"select 'it\'s; one'", " select 2"]
    assert statements(" -- nothing\n") == []


# ---- how answers look -----------------------------------------------------------


def test_a_table_is_aligned_and_times_have_units():
    answer = Given(
        ["name", "calls", "self_ns", "share", "start_ns", "pid"],
        [("f", 12, 1_500_000, 33.3333, NS, 12345), ("long\nname", 1234567, None, 1.0, NS + 1, 7)],
    )
    lines = shown(answer).splitlines()
    assert lines[0].split() == ["name", "calls", "self", "share", "start", "pid"]
    assert lines[1].startswith("f                 12  1.50 ms  33.33  ")
    assert lines[2].startswith("long name  1,234,567            1.00  ")
    assert lines[1].split()[-2].endswith(":20.000000")
    assert lines[1].endswith("  12345")


def test_a_date_is_shown_where_days_differ():
    assert len(shown(Given(["start_ns"], [(NS,), (NS + 1,), (None,)])).splitlines()[1]) == len("12:30:00.000000")
    assert len(shown(Given(["start_ns"], [(NS,), (NS + 10**15,)])).splitlines()[1]) == len("2026-01-31 12:30:00.000000")


def test_nothing_in_a_table_moves_the_cursor():
    assert shown(Given(["t"], [("a\x1b[2Jb\nc\x07",)])) == "t\na\ufffd[2Jb c\ufffd\n"


def test_rows_beyond_the_limit_are_counted():
    answer = Given(["n"], [(1,), (2,)], [(3,)], [(4,)])
    assert shown(answer, limit=1) == "n\n1\n… 3 more rows; -n 0 shows all\n"
    assert shown(answer, limit=3).endswith("… 1 more row; -n 0 shows all\n")
    assert shown(answer, limit=4) == shown(answer) == "n\n1\n2\n3\n4\n"
    assert shown(Given(["n", "m"])) == "n  m\n"
    assert shown(Given([])) == ""


def test_wide_text_is_cut_to_the_terminal_where_it_tells_least():
    answer = Given(["a", "b"], [("x" * 60, "some/where/train.py(3): f" + "y" * 30)])
    _, line = shown(answer, width=40).splitlines()
    assert len(line) == 40
    assert "x…" in line
    assert "  …" in line
    assert len(shown(Given(["n" * 50], [(1,)]), width=10).splitlines()[0]) == 50  # names are never cut


def test_csv_and_json_are_exact():
    rows = [("a,b", 10**18, 1 / 3, None), ('"', 2, float("nan"), True)]
    out = io.StringIO()
    assert write_csv(Given(["t", "n_ns", "d", "x"], rows), out, limit=0) == 0
    assert out.getvalue() == f't,n_ns,d,x\n"a,b",{10**18},{1 / 3!r},\n"""",2,nan,True\n'
    out = io.StringIO()
    assert write_json(Given(["t", "n_ns", "d", "x"], rows), out, limit=1) == 1
    assert json.loads(out.getvalue()) == [{"t": "a,b", "n_ns": 10**18, "d": 1 / 3, "x": None}]
    out = io.StringIO()
    write_json(Given(["a"]), out, limit=0)
    assert json.loads(out.getvalue()) == []
    out = io.StringIO()
    write_csv(Given(["a"]), out, limit=0)
    assert out.getvalue() == "a\n"


# ---- wrong use --------------------------------------------------------------------


def test_wrong_use_is_told_in_a_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.csv").touch()
    assert "no query: give SQL" in refused()
    assert refused("top-functions").startswith("'top-functions' needs traces")
    assert (
        refused("top-function", "t.vst") == "no ready question is called 'top-function'; did you mean 'top-functions'?"
    )
    assert refused("--show-sql", "zzz") == "no ready question is called 'zzz'; see vestige query --list"
    assert "-p takes NAME=VALUE, not 'x'" in refused("select 1", "t.vst", "-p", "x")
    assert "-n must be 0 or more" in refused("select 1", "t.vst", "-n", "-1")
    assert "needs a file to write" in refused("select 1", "t.vst", "--format", "parquet")
    assert "there are .csv, .json, .parquet" in refused("select 1", "t.vst", "-o", "x.xls")
    assert "--force overwrites" in refused("select 1", "t.vst", "-o", "there.csv")
    assert "--master" in refused("select 1", "t.vst", "--engine", "spark")
    assert "for --engine spark" in refused("select 1", "t.vst", "--master", "local[2]")
    assert "growth compares 2 runs" in refused("growth", "t.vst")
    assert "@" not in refused("@no.sql", "t.vst")
    assert "--nonsense" in refused("select 1", "t.vst", "--nonsense")


def test_a_missing_engine_is_told_with_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "span.parquet").touch()
    for module, more, package in [
        ("duckdb", [], "duckdb"),
        ("pyspark", ["--engine", "spark", "--master", "x"], "pyspark"),
    ]:
        monkeypatch.setitem(sys.modules, module, None)
        monkeypatch.setitem(sys.modules, f"{module}.sql", None)
        with pytest.raises(Failure, match=f"not installed here: pip install {package}") as caught:
            command.main(["select 1", str(tmp_path), *more])
        assert caught.value.code == 1


def test_what_is_not_there_or_does_not_go_together_is_told(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "span.parquet").touch()
    with pytest.raises(Failure, match="no file matches this pattern"):
        find_tables([str(tmp_path / "*.vst")], children=True)
    with pytest.raises(Failure, match="No such file"):
        find_tables([str(tmp_path / "t.vst")], children=True)
    with pytest.raises(Failure, match="holds tables, but other paths are traces"):
        find_tables([str(tmp_path / "tables"), str(tmp_path)], children=True)
    (part,) = find_tables([str(tmp_path / "tab*")], children=True).parts
    assert part.files == {"span": [str(tmp_path / "tables" / "span.parquet")]}
