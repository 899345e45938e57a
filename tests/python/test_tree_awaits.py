"""Waits of tasks in the tree of calls: shown below the coroutine that awaited, and counted in no other time."""

import json
import os
from collections import Counter

import pytest

import scheduled
from in_process import vestige
from task_steps import tasks_of
from traces import record
from vestige import Trace
from vestige.cli.report.data import Data

pytestmark = pytest.mark.any_python
PROGRAM = """\
import asyncio


async def rests():
    await asyncio.sleep(0.15)


async def takes(future):
    await future


async def inner(future):
    await rests()
    task = asyncio.create_task(gives(future))
    await takes(future)
    return task


async def gives(future):
    await asyncio.sleep(0.15)
    future.set_result(None)


async def main():
    future = asyncio.get_running_loop().create_future()
    task = await inner(future)
    await task  # has ended


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def random_program(tmp_path_factory):
    path = tmp_path_factory.mktemp("awaits") / "t.vst"
    record(path, lambda: [scheduled.run(scheduled.program(seed)) for seed in range(3)])
    return Trace(str(path))


def without_parent(row):
    """Rows of waits change the numbers of later rows, so parents are not compared."""
    return repr({name: getattr(row, name) for name in type(row).__match_args__ if name != "parent"})


def test_leaves_have_all_waits_and_change_no_other_row(random_program):
    plain = random_program.tables(["calls"])["calls"]
    rows = random_program.tables(["calls"], awaits=True)["calls"]
    waits = [row for row in rows if row.awaits is not None]
    assert len(waits) > 5
    others = [row for row in rows if row.awaits is None]
    assert sorted(map(without_parent, others)) == sorted(map(without_parent, plain))
    found, wanted = Counter(), Counter()
    for row in waits:
        assert row.self_ns == 0
        found[row.func, row.awaits] += row.total_ns
        found[row.func, row.awaits, "count"] += row.calls
    for own, kind, function, count, ns in tasks_of(random_program)["awaits"]:
        wanted[function or own, kind] += ns
        wanted[function or own, kind, "count"] += count
    assert +found == +wanted


def test_sums_of_the_report_stay_the_same(random_program):
    plain, told = Data(), Data()
    plain.add(random_program, {}, ["calls"], fold_imports=True)
    told.add(random_program, {}, ["calls"], fold_imports=True, awaits=True)
    assert told.threads_ns == plain.threads_ns
    assert told.tree.total_ns == plain.tree.total_ns
    assert told.tree.awaiting_ns == sum(row[-1] for row in tasks_of(random_program)["awaits"]) > 0


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    from conftest import Workplace

    workplace = Workplace(tmp_path_factory.mktemp("tree"))
    workplace.write("app.py", PROGRAM)
    # Import asyncio first: on a busy machine, this import would take the few rows of the final report.
    workplace.write("sitecustomize.py", "import asyncio")
    ran = workplace.vestige("run", "-o", "t.vst", "app.py", env={**os.environ, "PYTHONPATH": str(workplace.path)})
    assert ran.returncode == 0
    workplace.closing = ran.stderr
    return workplace


def tree_of(place):
    ran = vestige("report", str(place.path / "t.vst"), "--tree", "--all", "--format", "json")
    return json.loads(ran.out)["tree"]


def test_a_wait_is_below_the_coroutine_that_awaited(place):
    rows = tree_of(place)
    names = {row["id"]: row["function"].rpartition(": ")[2] for row in rows}
    found = {
        (names[row["parent"]], row["function"]): row["awaiting_ns"]
        for row in rows
        if row["function"].startswith("[await]")
    }
    assert set(found) == {("rests", "[await] sleep"), ("takes", "[await] future"), ("gives", "[await] sleep")}
    assert found["rests", "[await] sleep"] >= 149_000_000
    leaf = next(row for row in rows if row["function"] == "[await] sleep")
    assert (leaf["calls"], leaf["self_ns"], leaf["total_ns"]) == (0, 0, 0)
    around = next(row for row in rows if row["function"].endswith(": main"))
    assert around["awaiting_ns"] >= found["rests", "[await] sleep"] + found["takes", "[await] future"]


def test_both_trees_show_waits_without_a_share(place):
    told = vestige("report", str(place.path / "t.vst"), "--tree").out
    for text in (told, place.closing):
        lines = [line for line in text.splitlines() if "[await] sleep" in line]
        assert len(lines) == 2 and not any("%" in line for line in lines), text
        assert any(": rests" in line for line in text.splitlines())


def test_a_tree_without_tasks_says_nothing_of_waits(tmp_path):
    path = record(tmp_path / "t.vst", lambda: sorted(range(10)))
    rows = json.loads(vestige("report", str(path), "--tree", "--format", "json").out)["tree"]
    assert rows and not any("awaiting_ns" in row for row in rows)
