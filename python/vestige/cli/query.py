"""`vestige query`: SQL over one trace or thousands, and ready questions."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import contextmanager
from functools import partial

from vestige.base.failure import Failure, explain
from vestige.base.new_files import writing
from vestige.base.terminal import Paint, Progress, exact, is_terminal

from .console import Parser, check_absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import NoReturn, TextIO

    from vestige.query.answer import Answer
    from vestige.query.questions import Question, Value
    from vestige.query.tables import Tables

ROWS = 100
FORMATS = ("table", "csv", "json", "parquet")
EXAMPLES = """\
  vestige query --list                            the ready questions
  vestige query top-functions runs/
  vestige query slowest-calls t.vst -p function=load -p rows=5
  vestige query growth before.vst after.vst
  vestige query 'select name, count(*) from span group by 1' 'runs/*.vst'
  vestige query --show-sql stragglers             to start from
  vestige query --schema                          tables and columns
  vestige query stragglers tables/ --engine spark --master spark://host:7077
"""


def main(argv: list[str]) -> int:
    parser = Parser(
        "query",
        "Query traces in SQL. SQL is a query, `@FILE` for a file with a query, or the\n"
        "name of a ready question. FILE is a trace, read together with the traces of its\n"
        "child processes, or a folder of traces or of tables from `vestige export`.\n"
        "Quoted patterns are expanded. All processes share the tables; the column\n"
        "`process` has a process's number.",
        "SQL FILE… [options]",
        EXAMPLES,
    )
    add_options(parser)
    options = parser.parse_args(_words_last(argv, parser))
    options.sql, options.files = (options.words or [None])[0], options.words[1:]
    if options.list:
        _list()
    elif options.schema:
        _show_schema()
    elif options.show_sql is not None:
        print(_ready(options.show_sql).text, end="")
    elif options.sql is None:
        parser.error("no query: give SQL, or the name of a ready question (see --list)")
    elif not options.files:
        parser.error(_no_files(options.sql))
    else:
        return _ask(options)
    return 0


def add_options(parser: Parser) -> None:
    parser.add_argument(
        "words", metavar="SQL FILE…", nargs="*", help="SQL or a ready question, then the traces or tables to read"
    )
    parser.add_argument(
        "-p", "--param", metavar="NAME=VALUE", action="append", default=[], help="value of :NAME in the SQL"
    )
    parser.add_argument(
        "-n", "--rows", metavar="N", type=int, help=f"rows to show, 0: all (default: {ROWS} in a table)"
    )
    parser.add_argument(
        "-f", "--format", choices=FORMATS, help="output format (default: by OUT's suffix, else a table)"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="write to a file")
    parser.add_argument("--force", action="store_true", help="overwrite OUT")
    parser.add_argument(
        "--no-children", action="store_true", help="read only FILE itself, not the traces of its child processes"
    )
    parser.add_argument("--list", action="store_true", help="list the ready questions and their parameters")
    parser.add_argument("--show-sql", metavar="NAME", help="print the SQL of a ready question")
    parser.add_argument("--schema", action="store_true", help="print the tables and their columns")
    parser.add_argument(
        "--engine", choices=("duckdb", "spark"), default="duckdb", help="engine that runs the query (default: duckdb)"
    )
    parser.add_argument("--master", metavar="URL", help="address of Spark: spark://host:7077, local[2]")
    parser.add_argument("--tables", metavar="DIR", help="folder in which to keep Spark's tables (default: remove them)")
    parser.add_argument("--conf", metavar="KEY=VALUE", action="append", default=[], help="a setting for Spark")
    parser.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="memory limit for DuckDB; it spills to disk above it (default: 80 %% of RAM)",
    )


def _words_last(argv: list[str], parser: Parser) -> list[str]:
    """Makes argparse accept options between the words."""
    options: list[str] = []
    words: list[str] = []
    rest = iter(argv)
    for word in rest:
        if word == "--":
            words += rest
        elif not word.startswith("-"):
            words.append(word)
        else:
            options.append(word)
            action = parser._option_string_actions.get(word)
            if action is not None and action.nargs != 0:
                options += [value for _, value in zip(range(1), rest)]
    return [*options, "--", *words] if words else options


def _ready(name: str) -> Question:
    from vestige.query.questions import load

    questions = load()
    if name not in questions:
        from difflib import get_close_matches

        near = get_close_matches(name, questions, n=1)
        raise Failure(
            f"no ready question is called {name!r}; "
            + (f"did you mean {near[0]!r}?" if near else "see vestige query --list"),
            code=2,
        )
    return questions[name]


def _list() -> None:
    from vestige.query.questions import load

    for question in load().values():
        print(f"{question.name:<15} {question.about}")
        for parameter in question.parameters.values():
            default = "" if parameter.default is None else f"={parameter.default}"
            print(f"{'':<15} -p {parameter.name}{default}: {parameter.about}")


def _show_schema() -> None:
    from vestige.query.schema import lines

    for line in lines():
        print(line)


def _no_files(sql: str) -> str:
    return f"{sql!r} needs traces, folders or exported tables to ask" if len(sql) < 40 else "name traces to ask"


def _ask(options: Namespace) -> int:
    given = _pairs("-p", options.param)
    limit = _limit(options)
    format = _format(options)
    check_absent(options.output, force=options.force)
    _check_engine(options)
    sql, values, question = _sql(options.sql, given)
    if question is not None and question.runs != len(options.files) and question.runs > 1:
        raise Failure(f"{question.name} compares {question.runs} runs: name a file or folder for each", code=2)

    from vestige.query.tables import find_tables

    tables = find_tables(options.files, children=not options.no_children)
    with _ended_by_signals():
        try:
            with _answer(sql, values, tables, options) as answer:
                _write(answer, options, format, limit)
        finally:
            tables.close()
    return int(tables.failed)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP end the command as Ctrl-C does, so that its temporary folders are removed."""
    before = {}
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _pairs(option: str, given: list[str]) -> dict[str, str]:
    pairs = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Failure(f"{option} takes NAME=VALUE, not {text!r}", code=2)
        pairs[name] = value
    return pairs


def _limit(options: Namespace) -> int:
    if options.rows is not None and options.rows < 0:
        raise Failure(f"-n must be 0 or more, not {options.rows}", code=2)
    if options.rows is None:
        return ROWS if _format(options) == "table" and options.output is None else 0
    return int(options.rows)


def _format(options: Namespace) -> str:
    if options.format is not None:
        if options.format == "parquet" and options.output is None:
            raise Failure("--format parquet needs a file to write: -o OUT", code=2)
        return str(options.format)
    if options.output is None:
        return "table"
    suffix: str = os.path.splitext(options.output)[1].removeprefix(".")
    if suffix in FORMATS[1:]:
        return suffix
    if suffix in ("", "txt"):
        return "table"
    raise Failure(f"{options.output}: no format has this suffix; there are .csv, .json, .parquet and .txt", code=2)


def _check_engine(options: Namespace) -> None:
    if options.engine == "spark":
        if options.master is None:
            raise Failure(
                "--engine spark needs the address of a Spark: --master spark://host:7077, or local[2]", code=2
            )
        if options.memory_limit is not None:
            raise Failure("--memory-limit is DuckDB's; Spark has --conf spark.driver.memory=…", code=2)
    elif options.master is not None or options.conf or options.tables is not None:
        raise Failure("--master, --conf and --tables are for --engine spark", code=2)


def _sql(text: str, given: dict[str, str]) -> tuple[str, dict[str, Value], Question | None]:
    """Returns the SQL and its values. A text of a single word names a ready question."""
    from vestige.query.questions import own_values

    if text.startswith("@"):
        try:
            with open(text[1:], encoding="utf-8") as file:
                text = file.read()
        except (OSError, ValueError) as error:
            raise Failure(explain(text[1:], error), code=2) from None
    elif len(text.split()) == 1 and not text.startswith("("):
        question = _ready(text)
        return question.text, question.values(given), question
    return text, own_values(given), None


def _answer(sql: str, values: dict[str, Value], tables: Tables, options: Namespace) -> Answer:
    """Returns the engine's answer, after preparing the traces for it."""
    if options.engine == "spark":
        from vestige.query.parquet import make_parquet
        from vestige.query.spark import SparkAnswer

        make_parquet(sql, tables, options.tables, Progress("writing tables"))
        return SparkAnswer(sql, values, tables, master=options.master, conf=_pairs("--conf", options.conf))
    from vestige.query.duck import DuckAnswer, load

    load()
    return DuckAnswer(sql, values, tables, memory=options.memory_limit, progress=Progress("asking"))


def _write(answer: Answer, options: Namespace, format: str, limit: int) -> None:
    from vestige.query.show import write_csv, write_json, write_table

    if format == "parquet":
        answer.write_parquet(options.output)
        return
    terminal = options.output is None and is_terminal(sys.stdout)
    width = shutil.get_terminal_size().columns if terminal else None
    with _opened(options.output) as out:
        more = 0
        if format == "csv":
            more = write_csv(answer, exact(out), limit=limit)
        elif format == "json":
            more = write_json(answer, out, limit=limit)
        else:
            style = str if options.output is not None else partial(Paint(sys.stdout), style="head")
            write_table(answer, out, limit=limit, width=width, style=style)
    if more:
        print(f"vestige: … {more:,} more rows", file=sys.stderr)


@contextmanager
def _opened(path: str | None) -> Iterator[TextIO]:
    """Opens a file, which appears once it is completely written, or stdout."""
    if path is None:
        yield sys.stdout
        return
    with writing(path, encoding="utf-8", newline="") as file:
        yield file
