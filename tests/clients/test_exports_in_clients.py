"""Files for other tools, read by these tools: Perfetto's own format agrees with Chrome's slice by slice; speedscope
shows every function; callgrind_annotate, pprof and flamegraph.pl add up equal times.
"""

import base64
import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from vestige import Trace
from vestige._core import export_traces

from .conftest import run
from .perfetto import ClientMissing, TraceProcessor, find_engine, find_node, problems

PROGRAM = Path(__file__).with_name("timeline.py")
SPEEDSCOPE = Path(sys.prefix) / "node_modules" / "speedscope" / "dist" / "release"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IDS = {"Python id", "Python parent id", "Ev Idx", "Op count"}  # events that Perfetto's format does not need
FORMATS = ["t.json", "t.pftrace", "t.speedscope.json", "callgrind.out.t", "t.pb.gz", "t.folded", "t.svg"]
FORMATS += ["t.pftrace.gz"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("timeline")
    run(PROGRAM, folder / "t.vst", cwd=folder)
    trace = Trace(str(folder / "t.vst"))
    for name in FORMATS:
        export_traces([trace], str(folder / name), all_windows=True)
    return folder


@pytest.fixture(scope="module")
def document(folder):
    return json.loads((folder / "t.json").read_bytes())


def rows(tp, sql):
    return [tuple(row.values()) for row in tp.query(sql)]


def read(path):
    """Returns everything that trace_processor knows of a file, with names that suit both formats."""
    slices = """
        SELECT s.id AS id, coalesce(thread.name, '-') AS thread, s.ts AS ts, s.dur AS dur, s.depth AS depth,
               s.name AS name, s.category AS category
        FROM slice s LEFT JOIN thread_track t ON s.track_id = t.id LEFT JOIN thread USING (utid)
    """
    arguments = """
        SELECT s.id AS id, flat_key, coalesce(string_value, int_value, real_value) AS value
        FROM slice s JOIN args USING (arg_set_id)
    """
    with TraceProcessor.open(path) as tp:
        args = {}
        for slice_id, key, value in rows(tp, arguments):
            key = key.partition(".")[2]
            if key not in IDS:
                args.setdefault(slice_id, set()).add((key, str(value)))
        return {
            "problems": problems(tp),
            "slices": [(row[1:], frozenset(args.get(row[0], ()))) for row in rows(tp, slices)],
            "counters": rows(tp, "SELECT ts, value FROM counter ORDER BY ts, value"),
            "counter names": {
                name.removesuffix(" value").removesuffix(" bytes")
                for (name,) in rows(tp, "SELECT name FROM counter_track")
            },
            "flows": Counter(
                rows(
                    tp,
                    "SELECT a.name AS a, b.name AS b, b.ts - a.ts AS t FROM flow JOIN slice a ON a.id = slice_out"
                    " JOIN slice b ON b.id = slice_in",
                )
            ),
            "threads": Counter(rows(tp, "SELECT tid, name FROM thread WHERE tid != 0")),
            "processes": rows(tp, "SELECT pid, name FROM process WHERE pid != 0"),
        }


@pytest.fixture(scope="module")
def both(folder):
    try:
        find_node(), find_engine()
    except ClientMissing as missing:
        pytest.skip(str(missing))
    return read(folder / "t.json"), read(folder / "t.pftrace")


def test_perfetto_reads_the_same_slices_from_its_own_format(both, document):
    base = document["baseTimeNanoseconds"]
    chrome, perfetto = both
    assert perfetto["problems"] == []
    # Marks across the whole page exist only in Chrome's format; metadata are in the window's slice. Overlapping spans
    # belong to no thread there.
    expected = Counter(
        ((thread, ts + base, *rest), args) for (thread, ts, *rest), args in chrome["slices"] if rest[-1] != "Trace"
    )
    beside = {shown[4] for shown, _ in expected if shown[0] == "-"}
    assert beside == {"first"}
    found = Counter(
        (("-" if shown[4] in beside else shown[0], *shown[1:]), args)
        for shown, args in perfetto["slices"]
        if shown[-1] != "Trace"
    )
    assert found - expected == Counter()
    assert expected - found == Counter()
    assert found.total() > 200


def test_perfetto_reads_the_same_counters_threads_and_arrows(both, document):
    base = document["baseTimeNanoseconds"]
    chrome, perfetto = both
    assert perfetto["counters"] == [(ts + base, value) for ts, value in chrome["counters"]]
    assert perfetto["counter names"] == chrome["counter names"] >= {"a counter", "live memory"}
    for what in ("threads", "processes", "flows"):
        assert perfetto[what] == chrome[what]


def test_perfetto_reads_clocks_and_a_compressed_file(both, folder):
    """Times are wall-clock times, which each sequence states for itself."""
    _, perfetto = both
    totals = "SELECT count(*) AS n, sum(dur) AS ns, min(ts) AS first FROM slice"
    with TraceProcessor.open(folder / "t.pftrace.gz") as tp:
        assert problems(tp) == []
        ((count, total, first),) = rows(tp, totals)
        clocks = rows(tp, "SELECT DISTINCT clock_id, clock_value - ts AS ahead FROM clock_snapshot WHERE clock_id < 64")
    slices = [shown for shown, _ in perfetto["slices"]]
    assert (count, total) == (len(slices), sum(shown[2] for shown in slices))
    assert first == min(shown[1] for shown in slices)
    facts = Trace(str(folder / "t.vst")).info()
    assert facts["start_ns"] <= first <= facts["end_ns"]
    assert clocks and {ahead for _, ahead in clocks} == {0}


def test_speedscope_itself_shows_the_functions(folder):
    if not BROWSER or not SPEEDSCOPE.exists():
        pytest.skip("speedscope (npm) or Chromium is not installed")
    data = base64.b64encode((folder / "t.speedscope.json").read_bytes()).decode()
    (folder / "profile.js").write_text(f'speedscope.loadFileFromBase64("t.speedscope.json", "{data}")')
    page = f"file://{SPEEDSCOPE}/index.html#localProfilePath={folder}/profile.js&view=sandwich"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    shown = subprocess.run(
        [BROWSER, *options, f"--user-data-dir={folder}/browser", "--virtual-time-budget=20000", "--dump-dom", page],
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    text = re.sub(r"<[^>]*>", "\n", shown)
    assert "fall" in text.split("\n")
    assert re.search(r"[\d.]+(µs|ms|s) \(\d", text)


def test_callgrind_annotate_adds_up_the_self_times(folder, document):
    annotate = shutil.which("callgrind_annotate")
    if annotate is None:
        pytest.skip("callgrind_annotate is not installed (Debian's package valgrind)")
    result = subprocess.run(
        [annotate, "--threshold=100", "callgrind.out.t"], cwd=folder, capture_output=True, text=True, check=True
    )
    total = int(re.search(r"([\d,]+) \(100.0%\)  PROGRAM TOTALS", result.stdout)[1].replace(",", ""))
    assert total == own_time(document)
    assert re.search(r"timeline\.py:fall", result.stdout)


def own_time(document):
    """Returns the time of all calls, in ns: the sum over the outermost calls of each thread."""
    spans = sorted(
        (event["tid"], round(event["ts"] * 1000), -round(event["dur"] * 1000))
        for event in document["traceEvents"]
        if event["ph"] == "X" and event["cat"] != "Trace"
    )
    total, last = 0, (None, 0)
    for tid, start, duration in spans:
        if tid != last[0] or start >= last[1]:
            total -= duration
            last = tid, start - duration
    return total


def test_pprof_itself_adds_up_calls_time_and_memory(folder, document):
    pprof = [shutil.which("pprof")] if shutil.which("pprof") else ["go", "tool", "pprof"]
    if shutil.which(pprof[0] or "") is None:
        pytest.skip("neither pprof nor go is installed")
    env = {**os.environ, "PPROF_TMPDIR": str(folder)}
    spans = [event for event in document["traceEvents"] if event["ph"] in "Xb" and event["cat"] != "Trace"]
    expected = {
        "calls": len(spans),
        "wall": own_time(document),
        "alloc_space": sum(event["args"].get("Self Allocated Bytes", 0) for event in spans),
    }
    for index, total in expected.items():
        command = [*pprof, "-raw", f"-sample_index={index}", folder / "t.pb.gz"]
        said = subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout
        header, samples = said.split("\n", 1)[1].split("Samples:\n")[1].split("\n", 1)
        column = [name.split("/")[0] for name in header.split()].index(index)
        values = [line.split(":")[0].split() for line in samples.split("Locations")[0].splitlines() if ":" in line]
        assert sum(int(value[column]) for value in values) == total > 0
    command = [*pprof, "-top", "-nodefraction=0", "-nodecount=100000", folder / "t.pb.gz"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert "fall" in said.stdout


def test_flamegraph_pl_draws_the_folded_stacks_as_wide_as_they_are(folder):
    script = shutil.which("flamegraph.pl")
    if script is None:
        pytest.skip("flamegraph.pl is not on PATH")
    command = [script, "--minwidth=0", "--countname=us", folder / "t.folded"]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "ignored" not in drawn.stderr.lower()
    expected = Counter()
    for line in (folder / "t.folded").read_text().splitlines():
        stack, _, value = line.rpartition(" ")
        names = stack.split(";")
        for depth in range(len(names) + 1):
            expected[tuple(names[:depth])] += int(value)
    titles = re.findall(r"<title>(.*) \(([\d,]+) us, ", drawn.stdout)
    found = Counter((html.unescape(name), int(value.replace(",", ""))) for name, value in titles)
    assert found == Counter((stack[-1] if stack else "all", value) for stack, value in expected.items())
