"""Files that claim more than they hold: every command stays within its limits of memory and disk, and ends within
seconds.

A process of ours forks for each command, so that each has a peak of its own and all limits.
"""

import json
import subprocess
from pathlib import Path

import pytest

import handmade as h
from conftest import PYTHON

pytestmark = pytest.mark.any_python

MIB = 1 << 20
MEMORY_BASE, MEMORY_TIMES = 64 * MIB, 20  # limit: 20 times the trace, beyond the memory of a bare command
OUTPUT_BASE, OUTPUT_TIMES = 64 * MIB, 2048  # src/export/output/output.c

HUGE_ID, HUGE_STACK = 0x3FFFFFFA, 0xFFFFFFF0
DEEP = 3000


def calls(count, id=1):
    return [word for _ in range(count) for word in (h.enter(id), h.leave(id))]


def nested(depth, delta=10, id=1):
    return [h.enter(id, delta)] * depth + [h.leave(id, delta)] * depth


def switches(depth, count):
    """Two stacks that alternate: each time, all calls of one stack end and the other stack's calls continue."""
    inner = [word for number in range(count) for word in h.escape(h.SWITCH, number % 2)]
    return [h.enter(1)] * depth + [*h.escape(h.SWITCH, 1)] + [h.enter(1)] * depth + inner


def memory(*stacks, words):
    return h.trace(h.definitions(h.thread(), h.has_memory(), h.define(1, "recurse"), *stacks), h.records(*words))


def many_functions(count):
    """Memory per function must be as small as a function's definition in the file."""
    return h.trace(
        h.definitions(h.thread(), *(h.define(i, f"f{i}") for i in range(1, count + 1))),
        h.records(*(word for i in range(1, count + 1) for word in calls(1, i))),
    )


FILES = {
    # An array indexed by id would take gigabytes.
    "id": lambda: h.trace(
        h.definitions(h.thread(), h.define(1), h.define(HUGE_ID, "g")), h.records(*calls(1000, HUGE_ID))
    ),
    "operator_id": lambda: h.trace(
        h.definitions(h.thread(), h.define(1), h.define(HUGE_ID, "aten::add", kind=h.OPERATOR)),
        h.records(*calls(1000, HUGE_ID)),
    ),
    "stack_id": lambda: memory(
        h.stack(1, 0, 1),
        h.stack(HUGE_STACK, 1, 1),
        words=[*h.allocate(4096, 100, 1), *h.allocate(8192, 100, HUGE_STACK)],
    ),
    "thread_ids": lambda: h.trace(
        h.definitions(*(h.thread(0xFFFFFFFF - i, i, "t") for i in range(1000)), h.define(1)), h.records(*calls(10))
    ),
    # Whole stacks for each node or allocation grow with the square of the depth.
    "deep": lambda: h.trace(h.definitions(h.thread(), h.define(1, "recurse")), h.records(*nested(DEEP, 2000))),
    "deep_memory": lambda: memory(
        *(h.stack(i, i - 1, 1) for i in range(1, DEEP)),
        words=[word for i in range(1, DEEP) for word in h.allocate(4096 * i, 100, i)],
    ),
    # They also grow with the length of names.
    "long_name": lambda: h.trace(
        h.definitions(h.thread(), h.define(1, "x" * 3000)), h.records(*[h.enter(1, 3000)] * 700)
    ),
    "many_functions": lambda: many_functions(2000),
    "switches": lambda: h.trace(h.definitions(h.thread(), h.define(1, "recurse")), h.records(*switches(300, 600))),
}
COMMANDS = {
    "info": ["info", "FILE"],
    "info as JSON": ["info", "FILE", "--json"],
    **{f"report {view}": ["report", "FILE", f"--{view}"] for view in ("flat", "tree", "threads", "gc")},
    "the whole tree": ["report", "FILE", "--tree", "--all", "--min", "0%"],
    "report as JSON": ["report", "FILE", "--format", "json"],
    "the tree as JSON": ["report", "FILE", "--tree", "--format", "json"],
    "diff": ["diff", "FILE", "FILE"],
    **{
        f"export {suffix}": ["export", "FILE", "-o", f"out{suffix}"]
        for suffix in (
            ".json", ".pftrace", ".speedscope.json", ".folded", ".svg", ".pb", ".pstats", ".callgrind",
        )
    },
    "timeline of memory": ["export", "FILE", "--to", "memory-timeline", "-o", "out.json"],
    "a page": ["view", "FILE", "--html", "out.html"],
    "recover": ["recover", "FILE", "-o", "out.vst"],
    "pack": ["pack", "FILE", "-o", "out.vst"],
    "tables": ["TABLES"],
}  # fmt: skip
OF_MEMORY = {
    "memory report": ["memory-report", "FILE"],
    "memory report as JSON": ["memory-report", "FILE", "--format", "json"],
    "memory report as CSV": ["memory-report", "FILE", "--format", "csv"],
    "report of memory": ["report", "FILE", "--memory"],
    **{
        f"memory {suffix}": ["memory-report", "FILE", "-o", f"out{suffix}"]
        for suffix in (".json", ".csv", ".folded", ".pickle", ".html")
    },
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Returns, for a file, the outcome of each command: {command's name: outcome}."""
    folder = tmp_path_factory.mktemp("hostile")

    def run(name, commands, content=None):
        path = folder / f"{name}.vst"
        path.write_bytes(content or FILES[name]())
        work = folder / name
        work.mkdir()
        lines = {title: [str(path) if word == "FILE" else word for word in words] for title, words in commands.items()}
        done = subprocess.run(
            [PYTHON, Path(__file__).with_name("limited.py"), path],
            input=json.dumps(lines),
            capture_output=True,
            text=True,
            cwd=work,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return path.stat().st_size, json.loads(done.stdout)

    return run


@pytest.mark.parametrize("name", FILES)
def test_every_command_stays_within_bounds_on(outcomes, name):
    commands = {**COMMANDS, **(OF_MEMORY if "stack" in name or "memory" in name else {})}
    size, done = outcomes(name, commands)
    assert set(done) == set(commands)
    for title, outcome in done.items():
        assert outcome["code"] in (0, 1), (title, outcome)
        assert "Traceback" not in outcome["said"], (title, outcome)
        assert outcome["grown"] <= MEMORY_BASE + MEMORY_TIMES * size, (title, outcome)
        assert outcome["written"] <= OUTPUT_BASE + OUTPUT_TIMES * size, (title, outcome)
    if name != "long_name" and name != "switches":
        assert not [title for title, outcome in done.items() if outcome["code"]]


def test_the_spread_of_calls_takes_no_more_memory_than_there_are_calls(outcomes):
    content = many_functions(14_000)
    size, done = outcomes("spread", {"diff": COMMANDS["diff"]}, content)
    assert done["diff"]["code"] == 0
    assert done["diff"]["grown"] <= MEMORY_BASE + MEMORY_TIMES * size


def write(workplace, name):
    (workplace.path / "t.vst").write_bytes(FILES[name]())


def test_deep_recursion_is_summed_up_and_told(workplace):
    write(workplace, "deep")
    done = workplace.vestige("export", "t.vst", "-o", "t.folded")
    told, wrote = done.stderr.splitlines()
    assert done.returncode == 0 and wrote.startswith("vestige: wrote t.folded (")
    assert told == "vestige: t.folded: calls deeper than 1,023 are summed up as [deeper calls]"
    lines = (workplace.path / "t.folded").read_text().splitlines()
    stacks = [line.rpartition(" ")[0].split(";") for line in lines]
    assert max(map(len, stacks)) == 1024
    assert [stack for stack in stacks if stack[-1] == "[deeper calls]"] == [
        ["a.py(1): recurse"] * 1023 + ["[deeper calls]"]
    ]
    total = sum(int(line.rpartition(" ")[2]) for line in lines)
    assert total == 2 * DEEP * 2 - 2  # us, all words except the first


def test_sums_by_function_are_of_all_depths(workplace):
    write(workplace, "deep")
    assert workplace.vestige("export", "t.vst", "-o", "t.callgrind").stderr.startswith("vestige: wrote ")
    read = json.loads(workplace.vestige("report", "t.vst", "--format", "json").stdout)
    assert [function["calls"] for function in read["functions"]] == [DEEP]


def test_deep_stacks_of_allocations_keep_their_ends_and_that_is_told(workplace):
    write(workplace, "deep_memory")
    done = workplace.vestige("memory-report", "t.vst", "-o", "t.csv")
    assert (done.returncode, done.stderr) == (0, "vestige: t.csv: stacks of more than 256 frames are cut\n")
    rows = (workplace.path / "t.csv").read_text().splitlines()[1:]
    stacks = [row.rpartition(',"')[2].rstrip('"').split(";") for row in rows]
    assert [len(stack) for stack in stacks[:256]] == list(range(1, 257))
    assert {len(stack) for stack in stacks[256:]} == {257}
    assert all(stack.index("[frames left out]") == 64 for stack in stacks[256:])


def test_deep_stacks_of_memory_are_summed_up(workplace):
    write(workplace, "deep_memory")
    done = workplace.vestige("memory-report", "t.vst", "-o", "t.folded", "--leaks")
    assert (done.returncode, done.stderr) == (0, "vestige: t.folded: stacks of more than 1,024 frames are cut\n")
    lines = (workplace.path / "t.folded").read_text().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 100 * (DEEP - 1)
    assert [line.count(";") for line in lines if "[deeper frames]" in line] == [1024]


def test_an_output_far_larger_than_the_trace_is_refused_and_removed(workplace):
    write(workplace, "long_name")
    done = workplace.vestige("export", "t.vst", "-o", "t.folded")
    assert done.returncode == 1
    assert done.stderr == "vestige: t.vst: t.folded: the output would be far larger than the trace\n"
    assert sorted(path.name for path in workplace.path.iterdir()) == ["t.vst"]


def test_a_definition_that_the_file_has_no_room_for_is_left_out(workplace):
    write(workplace, "id")
    assert workplace.vestige("export", "t.vst", "-o", "t.json").returncode == 0
    events = json.loads((workplace.path / "t.json").read_text())["traceEvents"]
    names = [event["name"] for event in events if event["ph"] == "X" and event.get("cat") != "Trace"]
    assert names == [f"unknown function {HUGE_ID}"] * 1000
