"""Gives damaged inputs to every command, and checks how the command ends: with one of its exit codes, without a
traceback, and with only vestige's lines on stderr.

    python tests/python/fuzz_commands.py [--count N] [--first SEED] [--folder F] [COMMAND …]

Runs in one process, with bounds on memory and time, because a crash or a hang is a defect, too: the input that caused
it stays in the folder. VESTIGE_TRACEBACK=1 and one seed show the place of a defect.
"""

import argparse
import faulthandler
import gzip
import importlib.util
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import damage
from handmade_graph import good_document, timeline_of
from in_process import vestige
from vestige import cli

TRACES = Path(__file__).resolve().parents[1] / "golden" / "traces"
MEMORY_MAX = 4 << 30
SECONDS_MAX = 30
CODES = (0, 1, 2, 3)
SUFFIXES = ".json .json.gz .pftrace .speedscope.json .svg .folded .pb .pstats .callgrind .et.json".split()
ODD_WORDS = ["", "-1", "0", "x", "1e9", "%", "9" * 30, "5%", "-2s", "\x1b[2J", "\udcff", "*", "[", "--", "\u202e"]


class Folder:
    """A folder with damaged files, and with valid files."""

    def __init__(self, path):
        self.path = Path(path)
        self.sound = [file for file in sorted(TRACES.glob("**/*.vst")) if file.stat().st_size < 100_000]
        self.bytes = {file.name: file.read_bytes() for file in self.sound}
        self.bytes["bounded.vst"] = gzip.decompress((TRACES / "bounded.vst.gz").read_bytes())
        self.good = self.path / "good.vst"
        shutil.copy(TRACES / "plain.vst", self.good)

    def trace(self, rng, name="t.vst", wanted=None):
        """Makes a damaged trace."""
        path = self.path / name
        if wanted is None and rng.random() < 0.25:
            return damage.odd_trace(rng, path, profile_memory=rng.random() < 0.3)
        chosen = rng.choice([one for one in self.bytes if wanted is None or wanted in one])
        path.write_bytes(damage.damage_bytes(rng, self.bytes[chosen]))
        return path

    def json(self, rng, name, document):
        path = self.path / name
        data = damage.damage_json(rng, document)
        path.write_bytes(gzip.compress(data) if rng.random() < 0.1 else data)
        return path

    def out(self, suffix):
        return self.path / f"out{suffix}"


# ---- what is asked -----------------------------------------------------------


def info(rng, folder):
    return ["info", folder.trace(rng), *rng.choice([[], ["--json"], ["-n", "3"], [folder.good]])]


def report(rng, folder):
    views = [["--tree"], ["--tree", "--all", "--min", "0"], ["--threads"], ["--gc"], ["--memory"], []]
    more = [[], [], ["--format", "json"], ["--format", "csv"], [folder.good], ["--no-waits"]]
    return [
        "report",
        folder.trace(rng),
        *rng.choice(views),
        *rng.choice(more),
        *options(rng, ["--from", "--until", "-n"]),
    ]


def diff(rng, folder):
    files = [folder.trace(rng), rng.choice([folder.good, folder.trace(rng, "b.vst")])]
    rng.shuffle(files)
    return [
        "diff",
        *files,
        *rng.choice(
            [
                [],
                ["--fail-on", "time>1%"],
                ["--calls", "--fail-on", "calls>1%"],
                ["--format", "json"],
                ["--format", "csv"],
            ]
        ),
    ]


def memory_report(rng, folder):
    wanted = rng.choice(["memory", "memory", "operators", None])
    outputs = [["-o", folder.out(suffix), "--force"] for suffix in (".html", ".json", ".csv", ".folded", ".pickle")]
    parts = ["--peak", "--leaks", "--temporary", "--histogram", "--lines", "--threads", "--allocators"]
    forms = [[], rng.sample(parts, 2), ["--format", "json"], ["--format", "csv"], rng.choice(outputs), [folder.good]]
    return ["memory-report", folder.trace(rng, wanted=wanted), *rng.choice(forms)]


def export(rng, folder):
    output = folder.out(rng.choice(SUFFIXES))
    more = rng.choice([[], [], ["--from", "10%", "--until", "50%"], ["--align", "step"], ["--no-memory-events"]])
    return ["export", folder.trace(rng), *rng.choice([[], [folder.good]]), "-o", output, "--force", *more]


def recover(rng, folder):
    return ["recover", folder.trace(rng), "-o", folder.out(".vst"), "--force"]


def pack(rng, folder):
    wanted = rng.choice([None, "packed"])
    more = rng.choice([[], ["--undo"], ["--level", "9"]])
    return ["pack", folder.trace(rng, wanted=wanted), "-o", folder.out(".vst"), "--force", *more]


def view(rng, folder):
    return ["view", folder.trace(rng), *rng.choice([[], [folder.good]]), "--html", folder.out(".html"), "--force"]


def et_check(rng, folder):
    path = folder.json(rng, "et.json", good_document())
    timeline = ["--timeline", folder.json(rng, "timeline.json", timeline_of(good_document()))]
    return ["et", "check", path, *rng.choice([[], ["--format", "json"], timeline])]


def device_check(rng, folder):
    events = [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1.5, "dur": 2, "args": {"correlation": 1}}
    ]
    path = folder.json(rng, "device.json", {"traceEvents": events})
    return ["device", "check", "--files", path, path, *rng.choice([[], ["--json"]])]


def et_show(rng, folder):
    path = folder.json(rng, "et.json", good_document())
    timeline = ["--timeline", folder.json(rng, "timeline.json", timeline_of(good_document()))]
    drawn = ["-o", folder.out(".dot"), "--force"]
    return ["et", "show", path, *rng.choice([[], ["--depth", "2"], timeline, ["--name", "aten::*"], drawn])]


def query(rng, folder):
    asked = ["top-functions", "busy-threads", "processes", "lost", "allocations", "select * from span", "select * from"]
    asked += ["select count(*) from stack", "select * from process", "select * from func", "select 1; select 2"]
    target = tables(rng, folder) if rng.random() < 0.3 else folder.trace(rng)
    return ["query", rng.choice(asked), target, *rng.choice([[], ["-f", "json"], ["-f", "csv"], ["-n", "3"]])]


def tables(rng, folder):
    """Makes a folder of Parquet files whose columns have any type, or whose bytes are damaged."""
    import pyarrow
    from pyarrow import parquet

    place = folder.path / "tables"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in rng.sample(["span", "process", "func", "run", "thread"], 3):
        columns = {}
        for column in rng.sample(
            ["process", "span", "func", "name", "duration_ns", "start_ns", "run", "path", "pid"], 5
        ):
            columns[column] = rng.choice([["x", "y"], [1, 2], [None, None], [0.5, 1e300], [b"\xff", b""], [[1], []]])
        parquet.write_table(pyarrow.table(columns), place / f"{name}.parquet")
        if rng.random() < 0.3:
            data = (place / f"{name}.parquet").read_bytes()
            (place / f"{name}.parquet").write_bytes(damage.damage_bytes(rng, data))
    return place


def run(rng, folder):
    """Wrong words only; no program is run."""
    return [
        "run",
        *options(rng, ["--max-size", "--last", "--min-duration", "--engine", "-o"], 3),
        *_nothing(rng),
    ]


def memory(rng, folder):
    return ["memory", *options(rng, ["--sample", "--max-size", "--last", "-o"], 3), *_nothing(rng)]


def completion(rng, folder):
    return ["completion", *rng.sample(ODD_WORDS, 2)]


def top(rng, folder):
    more = options(rng, ["--last", "--every", "--sort", "--filter"], 2)
    return ["top", folder.trace(rng), "--every", "100ms", *more]


def attach(rng, folder):
    """Wrong words; no process has these ids, and none listens."""
    whom = rng.choice([[rng.choice(ODD_WORDS)], ["--socket", folder.trace(rng)], ["--socket", rng.choice(ODD_WORDS)]])
    return ["attach", *whom, *options(rng, ["--for", "--wait", "--standstill", "--max-size", "--engine", "-o"], 3)]


def detach(rng, folder):
    return ["detach", *rng.choice([[], [rng.choice(ODD_WORDS)], ["--socket", folder.trace(rng)]])]


def mcp(rng, folder):
    """Wrong words; test_mcp_answers.py tests the answers."""
    return ["mcp", *rng.choice([[], [folder.trace(rng)], ["/no/such/folder"], ["--allow"], [".", "x"]])]


def _nothing(rng):
    return rng.choice([[], ["/no/such/file.py"], ["-m"], ["--", "/no/such/file.py"]])


def options(rng, names, most=1):
    words = []
    for name in rng.sample(names, rng.randint(0, most)):
        words += [name, rng.choice(ODD_WORDS)]
    return words


COMMANDS = {
    "info": info, "report": report, "diff": diff, "memory-report": memory_report, "export": export,
    "recover": recover, "pack": pack, "view": view, "et check": et_check, "et show": et_show, "query": query, "run": run,
    "memory": memory, "completion": completion, "mcp": mcp, "top": top,
    "attach": attach, "detach": detach, "device check": device_check,
}  # fmt: skip
assert set(cli.COMMANDS) == {name.partition(" ")[0] for name in COMMANDS}, "a command is not tried"


# ---- what came of it -----------------------------------------------------------


class TooLong(BaseException):
    pass


def fault(said):
    """Returns how the end of a command was wrong, or None."""
    if said.code not in CODES:
        return f"exit code {said.code}"
    for line in said.err.splitlines():
        if not line.startswith("vestige: "):
            return f"stderr: {line[:300]}"
        if cli.UNEXPECTED in line:
            return line[:300]
    if said.code == 1 and not said.err and not said.out:
        return "exit code 1 without a word"
    return None


def try_one(command, seed, folder):
    rng = random.Random(f"{command} {seed}")
    words = COMMANDS[command](rng, folder)
    words = [str(word).encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") for word in words]
    signal.alarm(SECONDS_MAX)
    try:
        said = vestige(*words)
        found = fault(said)
    except TooLong:
        found = f"took more than {SECONDS_MAX} s"
    except BaseException as error:
        found = f"{type(error).__name__} left the command: {error}"
    finally:
        signal.alarm(0)
    return None if found is None else {"command": command, "seed": seed, "words": words, "fault": found}


def _too_long(number, frame):
    raise TooLong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", metavar="COMMAND", nargs="*", help="default: all commands")
    parser.add_argument("--count", type=int, default=1000, help="number of damaged inputs per command (default: 1000)")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--folder", help="folder for the inputs (default: a temporary folder)")
    given = parser.parse_args()
    faulthandler.enable()
    signal.signal(signal.SIGALRM, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, resource.getrlimit(resource.RLIMIT_AS)[1]))
    os.environ["NO_COLOR"] = "1"
    path = given.folder or tempfile.mkdtemp(prefix="fuzz-")
    folder = Folder(path)
    os.chdir(path)
    found = 0
    for command in given.commands or COMMANDS:
        if command == "query" and not importlib.util.find_spec("duckdb"):
            print("query: left out, DuckDB is not installed", flush=True)
            continue
        faults = []
        for seed in range(given.first, given.first + given.count):
            print(f"{command} {seed}", file=open("now", "w"))
            one = try_one(command, seed, folder)
            if one is not None:
                faults.append(one)
                print(json.dumps(one), flush=True)
        print(f"{command}: {given.count:,} damaged inputs, {len(faults):,} faults", flush=True)
        found += len(faults)
    if given.folder is None:
        os.chdir("/")
        shutil.rmtree(path, ignore_errors=True)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
