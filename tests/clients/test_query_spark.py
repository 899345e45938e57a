"""SQL on Spark: every ready question gives DuckDB's rows. Needs PySpark and Java; `make check-long` installs
both.
"""

import contextlib
import io
import json
import os
import shutil

import pytest

from vestige.cli import Failure
from vestige.cli import query as command

pytest.importorskip("duckdb")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
sql = pytest.importorskip("pyspark.sql", reason="no PySpark here: make check-long installs it")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("no Java here, which Spark runs on", allow_module_level=True)

from . import sql_tables
from .test_query import ANSWERS, ranks  # noqa: F401

SPARK = ["--engine", "spark", "--master", "local[2]"]


@pytest.fixture(scope="module")
def spark():
    """One session for all tests, because each takes seconds to start."""
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def rows(*argv):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert command.main([*map(str, argv), "--format", "json"]) == 0
    return json.loads(out.getvalue())


@pytest.fixture(scope="module")
def hand(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hand")
    return sql_tables.write(folder / "one"), sql_tables.write(folder / "two", slow_ms=0, scale=2)


@pytest.mark.parametrize("question", [*ANSWERS, "growth", "processes", "growth -p function=load"])
def test_a_ready_question_has_the_same_answer_on_both(spark, hand, question):
    name, *options = question.split()
    folders = hand if name == "growth" else hand[:1]
    expected = rows(name, *folders, *options)
    assert rows(name, *folders, *options, *SPARK) == expected
    assert expected or "over=3" in question


def test_traces_are_written_as_parquet_for_it_and_go_again(spark, ranks, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    for question in ("top-functions", "slowest-rank", "gc-by-host", "processes"):
        assert rows(question, ranks, *SPARK) == rows(question, ranks)
    assert list((tmp_path / "tmp").glob("vestige-*")) == []
    assert rows("stragglers", ranks, *SPARK, "--tables", tmp_path / "kept") == rows("stragglers", ranks)
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "process.parquet",
        "run.parquet",
        "span.parquet",
    ]
    assert rows("growth", ranks / "r0.vst", ranks / "r1.vst", *SPARK) == rows(
        "growth", ranks / "r0.vst", ranks / "r1.vst"
    )
    count = "select count(*) as n from span"
    assert rows(count, tmp_path / "kept") == rows(count, ranks)
    with pytest.raises(Failure, match="already holds tables"):
        command.main([count, str(ranks), *SPARK, "--tables", str(tmp_path / "kept")])


def test_text_and_numbers_of_parameters_arrive_as_they_are(spark, hand):
    wild = ["-p", r"t=a\b'c\"", "-p", "n=7"]
    query = r"select 1; select :t as t, :n as n, ':t' as same, 'it\'s :t; ' as more"
    assert rows(query, hand[0], *wild, *SPARK) == [{"t": r"a\b'c\"", "n": 7, "same": ":t", "more": "it's :t; "}]


@pytest.mark.parametrize(
    ("query", "message"),
    [("selec 1", "PARSE_SYNTAX_ERROR"), ("select * from spam", "spam"), ("select x from span", "x")],
)
def test_wrong_sql_is_one_line(spark, hand, query, message):
    with pytest.raises(Failure, match=message) as caught:
        command.main([query, str(hand[0]), *SPARK])
    assert caught.value.code == 2
    assert "\n" not in str(caught.value)


def test_answers_are_written_as_spark_writes_them(spark, hand, tmp_path):
    assert command.main(["select 1 as a", str(hand[0]), *SPARK, "-o", str(tmp_path / "a.parquet")]) == 0
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pylist() == [{"a": 1}]
