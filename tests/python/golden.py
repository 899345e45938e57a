"""The golden traces of tests/golden, the commands that read them, and the expected results.

Every version of vestige must read the traces with equal results. Results for programs (machine/) are compared byte by
byte: results of the traces in FULL are stored as files, results of the other traces as digests. Results for people
(human/) are stored separately, because their layout may change on purpose; tests/golden/write.py then writes them
again.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sys
from pathlib import Path

import vestige
import vestige.cli
from arrow_reader import rows_of
from vestige._core import table_names

FOLDER = Path(__file__).resolve().parents[1] / "golden"
TRACES = FOLDER / "traces"
LARGE = 8192  # bytes; larger results are stored as .gz
CALLS = ("plain", "threads", "windows", "bounded", "packed", "torn", "short", "cut", "damaged", "family")
TORCH = ("operators", "graph")
NATIVE = "memory_native"
MEMORY = ("memory", NATIVE)
NAMES = (*CALLS, *TORCH, *MEMORY, "sched", "lines")
FULL = ("plain", "threads", "operators", "memory")

EXPORTS = (
    ".json", ".pftrace", ".speedscope.json", ".folded", ".pb", ".pstats", ".callgrind",
)  # fmt: skip
VIEWS = ("flat", "tree", "threads", "gc")
MEMORY_FILES = (".json", ".csv", ".folded", ".pickle")
QUESTIONS = {
    "calls": "select process, name, count(*) as calls, sum(duration_ns) as ns from span group by all order by all",
    "threads": "select process, thread, min(start_ns) as first, count(*) as calls from span group by all order by all",
    "functions": "select file, f.line, count(s.span) as calls from func f left join span s using (process, func) "
    "group by all order by all",
}


class Workplace:
    """A copy of the traces in a new folder, in which commands run, so that their output has no paths of this machine."""

    def __init__(self, path):
        self.path = Path(path)
        shutil.copytree(TRACES, self.path, dirs_exist_ok=True)
        for packed in self.path.glob("*.gz"):
            packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))

    def run(self, *words):
        """Returns the output of a command, after its exit code if that is not 0."""
        out, err, code = io.StringIO(), io.StringIO(), 0
        with _surroundings(self.path, ["vestige", *words]), contextlib.redirect_stdout(out):
            with contextlib.redirect_stderr(err):
                try:
                    vestige.cli.main()
                except SystemExit as end:
                    code = end.code or 0
        head = f"exit code {code}\n" if code else ""
        return head + out.getvalue() + err.getvalue()

    def write(self, *words):
        """Returns the bytes of the file that -o names; the command may print one line."""
        said = self.run(*words, "--force")
        assert said == "" or (words[0] == "export" and re.fullmatch(r"vestige: wrote .*\n", said)), said
        return (self.path / words[words.index("-o") + 1]).read_bytes()


@contextlib.contextmanager
def _surroundings(folder, argv):
    """Isolates a command from the terminal, time zone and settings of the test run."""
    before, environment, old = os.getcwd(), dict(os.environ), sys.argv
    for name in list(os.environ):
        if name in ("COLUMNS", "CLICOLOR_FORCE") or name.startswith("VESTIGE_"):
            del os.environ[name]
    os.environ.update(NO_COLOR="1", TZ="UTC")
    _set_zone()
    os.chdir(folder)
    sys.argv = argv
    try:
        yield
    finally:
        sys.argv = old
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)
        _set_zone()


def _set_zone():
    import time

    time.tzset()


# ---- what is asked -------------------------------------------------------------


def trace(name):
    """Returns the path of a trace: a file, or a folder for several processes."""
    return name if name == "family" else f"{name}.vst"


def results(kind, name):
    """Returns pairs of a result's name and a function that takes a workplace and returns the result's bytes."""
    if kind == "human":
        yield from human(name)
        return
    yield from machine(name)
    yield from questions(name)


def machine(name):
    """For programs."""
    file = trace(name)
    yield "info.json", _said("info", file, "--json")
    for table in table_names:
        yield f"table-{table}.jsonl", lambda work, table=table: rows(work, file, table)
    if name == NATIVE:
        return  # what else there is has names of C functions, if the machine that reads has the same libraries
    if name in MEMORY or name == "operators":
        yield "memory-report.json", _said("memory-report", file, "--format", "json", "-n", "50")
        yield "memory-report.csv", _said("memory-report", file, "--format", "csv", "--lines", "-n", "50")
        for suffix in MEMORY_FILES:
            yield f"memory{suffix}", _wrote("memory-report", file, "-o", f"out{suffix}")
        yield "report-memory.json", _said("report", file, "--memory", "--format", "json")
    for suffix in EXPORTS:
        yield f"export{suffix}", _wrote("export", file, "-o", f"out{suffix}")
    yield "export-ns.folded", _wrote("export", file, "--to", "folded-ns", "-o", "out.folded")
    yield "export-range.json", _wrote("export", file, "--from", "20%", "--until", "60%", "-o", "out.json")
    for view in VIEWS:
        yield f"report-{view}.json", _said("report", file, f"--{view}", "--format", "json")
    yield "report-flat.csv", _said("report", file, "--format", "csv")
    if name == "graph":
        yield "et.json", _wrote("export", file, "-o", "et.json")
        yield "et-check.json", _graph("check", "--format", "json")
    if name == "operators":
        yield "timeline.json", _wrote("export", file, "--to", "memory-timeline", "-o", "out.json")
        yield (
            "timeline.raw.json",
            lambda work: gzip.decompress(
                work.write("export", file, "--to", "memory-timeline", "-o", "out.raw.json.gz")
            ),
        )
    if name == "torn":
        yield "recovered-info.json", _recovered("info", "out.vst", "--json")
        yield "recovered-report.json", _recovered("report", "out.vst", "--format", "json")
    if name == "threads":
        yield "diff.json", _said("diff", "plain.vst", file, "--format", "json")
        yield "diff.csv", _said("diff", "plain.vst", file, "--format", "csv")


def human(name):
    """For people."""
    file = trace(name)
    yield "info.txt", _said("info", file)
    if name == NATIVE:
        return
    for view in VIEWS:
        yield f"report-{view}.txt", _said("report", file, f"--{view}")
    yield "report-all.txt", _said("report", file, "--tree", "--all", "--min", "0%")
    yield "flame.txt", lambda work: flame(work.write("export", file, "-o", "out.svg"))
    if name in MEMORY or name == "operators":
        yield "memory-report.txt", _said("memory-report", file)
        for part in ("leaks", "threads", "allocators"):
            yield f"memory-{part}.txt", _said("memory-report", file, f"--{part}")
        yield "report-memory.txt", _said("report", file, "--memory")
    if name == "graph":
        yield "et-check.txt", _graph("check")
        yield "et-show.txt", _graph("show")
    if name == "torn":
        yield "recover.txt", _said("recover", file, "-o", "out.vst", "--force")
    if name == "plain":
        yield "pack.txt", _packed(file)
    if name == "threads":
        yield "diff.txt", _said("diff", "plain.vst", file)


def questions(name):
    """Results of `vestige query`, which needs DuckDB."""
    for title, question in QUESTIONS.items():
        yield f"query-{title}.csv", _said("query", question, trace(name), "-f", "csv")


def _said(*words):
    return lambda work: work.run(*words).encode()


def _packed(file):
    """Removes the size, which depends on the version of zstd."""
    return lambda work: re.sub(
        r"→ [0-9.]+ KiB, [0-9.]+", "→ … KiB, …", work.run("pack", file, "-o", "out.vst", "--force")
    ).encode()


def _wrote(*words):
    return lambda work: work.write(*words)


def _recovered(*words):
    def ask(work):
        work.run("recover", "torn.vst", "-o", "out.vst", "--force")
        return work.run(*words).encode()

    return ask


def _graph(command, *words):
    def ask(work):
        work.write("export", "graph.vst", "-o", "et.json")
        return work.run("et", command, "et.json", *words).encode()

    return ask


def rows(work, file, table):
    """Puts each row on a line."""
    with _surroundings(work.path, sys.argv), vestige.open(file) as traces:
        lines = [json.dumps(row, ensure_ascii=False) for row in rows_of(getattr(traces, table))]
    return "".join(f"{line}\n" for line in lines).encode()


def flame(svg):
    """Returns the texts of a flame graph without its drawing."""
    return "".join(f"{title}\n" for title in re.findall(r"<title>(.*?)</title>", svg.decode(), re.DOTALL)).encode()


# ---- what was answered ---------------------------------------------------------


NAMES_THE_FILE = ("info.json", "info.txt", "table-process.jsonl", *(f"report-{view}.json" for view in VIEWS))


def path_of(kind, name, result):
    """Returns the file of a result. Results without the trace's file name are equal for a packed trace and its original."""
    return FOLDER / kind / ("plain" if name == "packed" and result not in NAMES_THE_FILE else name) / result


def is_digest(kind, path):
    """Returns whether a result is a line in its trace's file of digests rather than a file of its own."""
    return kind == "machine" and path.parent.name not in FULL


def digests_of(name):
    """Returns the digests of a trace's results, by name."""
    path = FOLDER / "machine" / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def digest(data):
    return hashlib.sha256(data).hexdigest()


def is_same(kind, name, result, data):
    path = path_of(kind, name, result)
    if is_digest(kind, path):
        return digests_of(path.parent.name).get(result) == digest(data)
    return load(path) == data


def load(path):
    """Reads the result from its file. An empty result has no file."""
    packed = path.with_name(path.name + ".gz")
    if packed.exists():
        return gzip.decompress(packed.read_bytes())
    return path.read_bytes() if path.exists() else b""


def save(kind, name, result, data):
    path = path_of(kind, name, result)
    if is_digest(kind, path):
        digests = {**digests_of(path.parent.name), result: digest(data)}
        text = json.dumps(digests, indent=1, sort_keys=True)
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        path.parent.with_suffix(".json").write_text(text + "\n")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = path.with_name(path.name + ".gz")
    for old in (path, packed):
        old.unlink(missing_ok=True)
    if not data:
        return
    if len(data) > LARGE and kind == "machine":
        packed.write_bytes(gzip.compress(data, mtime=0))
    else:
        path.write_bytes(data)
