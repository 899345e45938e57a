"""Tasks in other event loops than asyncio's: uvloop, and anyio on asyncio and on uvloop."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

import scheduled
from in_process import vestige
from scheduled import ENDED, FUTURE, TASK
from task_steps import GOES_ON, Read
from traces import record
from vestige import Trace
from vestige._core import Lanes
from vestige.reading.awaits import WRAPPERS

ENGINES = ("turbo", "safe")


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    monkeypatch.setenv("VESTIGE_ENGINE", request.param)
    return request.param


# ---- uvloop ----------------------------------------------------------------------


@pytest.fixture
def new_loop():
    return pytest.importorskip("uvloop").new_event_loop


@pytest.mark.parametrize("seed", range(3))
def test_each_step_of_a_random_program_is_of_the_task_that_uvloop_ran(tmp_path, engine, seed):
    """The event loop notes its steps."""
    uvloop = pytest.importorskip("uvloop")

    class Loop(scheduled.Noting, uvloop.Loop):
        pass

    noted = []
    program = scheduled.program(seed, second=0.002)
    found = Read(record(tmp_path / "t.vst", lambda: noted.extend(scheduled.run(program, Loop()))))
    assert len({name for name, _ in noted}) > 5
    assert found.order() == noted
    for task in found.read["tasks"]:
        own = found.steps_of(task[3])
        assert task[6] == sum(step[4] != GOES_ON for step in own)
        assert task[7] == sum(step[3] - step[2] for step in own)


def run(new_loop, main):
    loop = new_loop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def test_a_task_group_in_uvloop(tmp_path, engine, new_loop):
    async def work(queue):
        await queue.get()
        await asyncio.sleep(0.001)

    async def main():
        asyncio.current_task().set_name("main")
        queue = asyncio.Queue()
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(work(queue), name=f"worker {number}")
            await asyncio.sleep(0.001)
            for number in range(3):
                queue.put_nowait(number)

    found = Read(record(tmp_path / "t.vst", lambda: run(new_loop, main)))
    assert {task[3] for task in found.read["tasks"]} == {"main", *(f"worker {number}" for number in range(3))}
    for number in range(3):
        assert [step[4] for step in found.steps_of(f"worker {number}")] == [FUTURE, FUTURE, ENDED]
        assert [by for by, _ in found.wakers_of(f"worker {number}")] == [-1, "main", 0]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are of 3.12")
def test_eager_tasks_in_uvloop(tmp_path, engine, new_loop):
    async def waits():
        await asyncio.sleep(0.001)

    async def main():
        asyncio.current_task().set_name("main")
        await asyncio.Task(waits(), loop=asyncio.get_running_loop(), eager_start=True, name="eager")

    found = Read(record(tmp_path / "t.vst", lambda: run(new_loop, main)))
    assert [step[4] for step in found.steps_of("eager")] == [FUTURE, ENDED]
    assert [step[4] for step in found.steps_of("main")] == [TASK, ENDED]
    (first, _), (around, _) = found.steps_of("eager"), found.steps_of("main")
    assert around[2] < first[2] and first[3] < around[3]  # inside the step that made it


# ---- anyio -----------------------------------------------------------------------


def stream_of(anyio):
    """A task that sends to three tasks of one name, and to one task of another name."""

    async def take(receive):
        async for _ in receive:
            await anyio.sleep(0.001)

    async def main():
        send, receive = anyio.create_memory_object_stream(2)
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(take, receive.clone(), name="taker")
            group.start_soon(anyio.sleep, 0.001, name="sleeper")
            receive.close()
            async with send:
                for number in range(9):
                    await send.send(number)

    return main


@pytest.fixture(params=(False, True), ids=("asyncio", "uvloop"))
def streamed(request, tmp_path, engine):
    anyio = pytest.importorskip("anyio")
    if request.param:
        pytest.importorskip("uvloop")
    main, options = stream_of(anyio), {"use_uvloop": request.param}
    return record(tmp_path / "t.vst", lambda: anyio.run(main, backend="asyncio", backend_options=options))


def test_tasks_of_anyio_have_the_names_that_the_program_gave(streamed):
    found = Read(streamed)
    names = Counter(task[3] for task in found.read["tasks"])
    assert names["taker"] == 3 and names["sleeper"] == 1
    for task in found.read["tasks"]:
        own = [step for step in found.steps if step[0] == task[0]]
        assert task[7] == sum(step[3] - step[2] for step in own)
        assert own[-1][4] == ENDED and all(before[3] <= after[2] for before, after in zip(own, own[1:]))
    told = vestige("report", streamed, "--tasks").out
    assert "  taker\n" in told and "  sleeper\n" in told  # and not the function of anyio that runs them


def test_lanes_of_anyio_are_grouped_by_name(streamed):
    trace = Trace(str(streamed))
    wrappers = [number for number, entry in enumerate(trace.functions()) if entry and entry[1] in WRAPPERS]
    assert wrappers
    lanes = Lanes(trace, "tasks", wrappers=wrappers).lanes()
    groups = {each["name"]: each["members"] for each in lanes if each["members"]}
    assert groups["taker"] == 3 and groups["sleeper"] == 1
