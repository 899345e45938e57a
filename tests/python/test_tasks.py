"""Tasks of asyncio: the step in which each call runs, the object that each task waits for, and the task that wakes it."""

import asyncio
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import handmade
import scheduled
from in_process import vestige
from scheduled import ENDED, FUTURE, GATHER, NOTHING, TASK
from task_steps import GOES_ON, Read, tasks_of
from traces import record
from vestige import Trace, profile

ENGINES = ("turbo", "safe")
NO_WAKER, BY_CALLBACK = -1, 0
ESCAPE_TASK = 23


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    monkeypatch.setenv("VESTIGE_ENGINE", request.param)
    return request.param


def read(tmp_path, work):
    return Read(record(tmp_path / "t.vst", work))


# ---- the truth -------------------------------------------------------------------


@pytest.mark.parametrize("seed", [*range(6), 74])
def test_each_step_of_a_random_program_is_of_the_task_that_the_loop_ran(tmp_path, engine, seed):
    """All actors run one coroutine function."""
    noted = []
    found = read(tmp_path, lambda: noted.extend(scheduled.run(scheduled.program(seed))))
    assert len({name for name, _ in noted}) > 5
    assert found.order() == noted
    assert len(found.tasks) == len({name for name, _ in noted})
    for task in found.read["tasks"]:
        own = found.steps_of(task[3])
        assert task[6] == sum(step[4] != GOES_ON for step in own)
        assert task[7] == sum(step[3] - step[2] for step in own)
        assert (task[4], task[5]) == (own[0][2], own[-1][3])


def test_tasks_that_are_written_in_python_are_known_too(workplace, engine):
    program = f"""
        import json, sys
        sys.modules["_asyncio"] = None  # as on a Python that was built without it
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import asyncio, scheduled
        assert asyncio.Task.__module__ == "asyncio.tasks"
        print(json.dumps(scheduled.run(scheduled.program(7))))
    """
    ran = workplace.trace(workplace.write("pure.py", program))
    noted = [tuple(step) for step in json.loads(ran.stdout)]
    assert Read(workplace.path / "t.vst").order() == noted


def test_the_program_is_the_same_as_without_us(tmp_path, engine):
    """Runs the same steps for the same seed."""
    plain = scheduled.run(scheduled.program(11))
    noted = []
    record(tmp_path / "t.vst", lambda: noted.extend(scheduled.run(scheduled.program(11))))
    kinds = [awaits for _, awaits in plain]
    assert [awaits for _, awaits in noted] == kinds


def test_tasks_of_several_threads_are_told_apart(tmp_path, engine):
    noted = {}

    def body(seed):
        noted[seed] = scheduled.run(scheduled.program(seed))

    def work():
        threads = [threading.Thread(target=body, args=(seed,)) for seed in (21, 22, 23)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = read(tmp_path, work)
    by_thread = {}
    for step in found.steps:
        by_thread.setdefault(found.tasks[step[0]][1], []).append(step)
    orders = []
    for steps in by_thread.values():
        found.steps = steps
        orders.append(found.order())
    assert sorted(orders) == sorted(noted.values())


def test_a_recording_that_begins_and_ends_inside_of_tasks(tmp_path, engine):
    """Steps before and after the recording are not in the trace; tasks that began before have their names."""

    async def worker():
        for _ in range(20):
            await asyncio.sleep(0)

    async def main():
        tasks = [asyncio.create_task(worker(), name=f"w{number}") for number in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        prof.start()
        for _ in range(4):
            await asyncio.sleep(0)
        prof.stop()
        await asyncio.gather(*tasks)

    prof = profile(output=str(tmp_path / "t.vst"))
    asyncio.run(main())
    found = Read(tmp_path / "t.vst")
    for number in range(3):
        assert [step[4] for step in found.steps_of(f"w{number}")] == [NOTHING] * 4


# ---- names ------------------------------------------------------------------------


def test_a_task_has_the_name_that_the_program_gives_it_last(tmp_path, engine):
    async def late():
        await asyncio.sleep(0)
        asyncio.current_task().set_name("ends as this é\n")

    async def other(task):
        task.set_name("by another")

    async def main():
        one = asyncio.create_task(late(), name="begins as this")
        two = asyncio.create_task(asyncio.sleep(0.001))
        await asyncio.sleep(0)
        await asyncio.gather(one, other(two), two)

    found = read(tmp_path, lambda: asyncio.run(main()))
    assert found.function(found.named("ends as this é\n")[2]).endswith("late")
    assert found.function(found.named("by another")[2]) == "sleep"


def test_a_subclass_that_answers_otherwise_is_not_asked(tmp_path, engine):
    asked = []

    class Mine(asyncio.Task):
        def get_name(self):
            asked.append(self)
            return super().get_name()

    async def main():
        asyncio.current_task().set_name("mine")  # 3.13.0 names a factory's tasks None
        await asyncio.sleep(0)

    def work():
        loop = asyncio.new_event_loop()
        loop.set_task_factory(lambda loop, coro, **kw: Mine(coro, loop=loop))
        loop.run_until_complete(main())
        loop.close()

    found = read(tmp_path, work)
    assert found.named("mine")
    assert asked == []


def test_coroutines_that_no_task_runs_are_no_tasks(tmp_path, engine):
    class Stop:
        def __await__(self):
            yield 1

    async def by_hand():
        await Stop()

    def drive():
        coroutine = by_hand()
        coroutine.send(None)
        with pytest.raises(StopIteration):
            coroutine.send(None)

    async def main():
        drive()

    def work():
        drive()
        asyncio.run(main())

    found = read(tmp_path, work)
    mains = [task for task in found.read["tasks"] if found.function(task[2]).endswith("by_hand")]
    assert mains == []
    assert any(found.function(task[2]).endswith("main") for task in found.read["tasks"])


# ---- how a task begins and ends -----------------------------------------------------


def test_how_tasks_end(tmp_path, engine):
    async def fails():
        await asyncio.sleep(0)
        raise ValueError

    async def returns():
        await asyncio.sleep(0)

    async def main():
        named = {"fails": fails(), "returns": returns(), "cancelled": asyncio.sleep(60)}
        tasks = [asyncio.create_task(coro, name=name) for name, coro in named.items()]
        await asyncio.sleep(0)
        tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        still_open = asyncio.create_task(asyncio.sleep(60), name="open")
        await asyncio.sleep(0)
        prof.stop()
        still_open.cancel()

    prof = profile(output=str(tmp_path / "t.vst"))
    prof.start()
    asyncio.run(main())
    found = Read(tmp_path / "t.vst")
    ends = {name: found.named(name)[11] for name in ("fails", "returns", "cancelled", "open")}
    assert ends == {"fails": "raised", "returns": "returned", "cancelled": "raised", "open": "open"}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are of 3.12")
def test_eager_tasks_begin_inside_of_others(tmp_path, engine):
    async def inner():
        return 1

    async def waits(name):
        await inner()
        await asyncio.sleep(0)
        asyncio.current_task().set_name(name)  # not earlier: when a factory makes a task, 3.13.0 names it None
        await inner()

    async def main():
        asyncio.current_task().set_name("main")
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        one = asyncio.create_task(waits("one"))
        await inner()
        two = asyncio.Task(waits("two"), loop=asyncio.get_running_loop(), eager_start=True)
        await inner()
        await one
        await two

    found = read(tmp_path, lambda: asyncio.run(main()))
    order = [step for step in found.order() if step[0] in ("main", "one", "two")]
    assert order == [
        ("main", TASK),  # begins first, and ends after the two
        ("one", NOTHING),
        ("two", NOTHING),
        ("one", ENDED),
        ("two", ENDED),
        ("main", ENDED),
    ] or order == [
        ("main", TASK),
        ("one", NOTHING),
        ("two", NOTHING),
        ("one", ENDED),
        ("two", ENDED),
        ("main", TASK),
        ("main", ENDED),
    ]
    (first, *_), one, two = (found.steps_of(name) for name in ("main", "one", "two"))
    assert first[2] < one[0][2] < one[0][3] < two[0][2] < two[0][3] < first[3]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are of 3.12")
def test_what_waits_once_an_eager_task_waits_is_itself_what_waits(tmp_path, engine):
    async def leaf():
        await asyncio.sleep(0)

    async def main():
        asyncio.current_task().set_name("main")
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        await asyncio.gather(leaf(), leaf())

    found = read(tmp_path, lambda: asyncio.run(main()))
    first = found.steps_of("main")[0]
    assert first[4] == GATHER and found.function(first[5]).endswith("main")


def test_a_step_in_which_the_innermost_coroutine_swallows_an_exception_has_its_end(tmp_path, engine):
    """The coroutines around it go on behind the instruction at which 3.11 reports calls."""

    async def swallows():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return 1

    async def around(then):
        await swallows()
        if then is not None:
            await then

    async def main():
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        tasks = {"ends": asyncio.ensure_future(around(None)), "waits": asyncio.ensure_future(around(future))}
        for name, task in tasks.items():
            task.set_name(name)
        await asyncio.sleep(0)
        for task in tasks.values():
            task.cancel()
        await asyncio.sleep(0)
        future.set_result(None)
        await asyncio.wait(list(tasks.values()))

    found = read(tmp_path, lambda: asyncio.run(main()))
    for name, ends in (("ends", [FUTURE, ENDED]), ("waits", [FUTURE, FUTURE, ENDED])):
        assert [step[4] for step in found.steps_of(name) if step[4] != GOES_ON] == ends
        assert found.named(name)[11] == "returned"


def test_coroutines_that_others_drive_inside_of_a_step_are_not_steps_of_its_task(tmp_path, engine):
    """Sends by hand, by an async generator and by throw(): all in one step, each in a separate evaluation."""

    async def inner(times):
        for _ in range(times):
            await asyncio.sleep(0)

    async def numbers():
        await inner(1)
        yield 1
        await inner(1)

    async def main():
        asyncio.current_task().set_name("main")
        driven = inner(2)
        assert driven.send(None) is driven.send(None) is None
        with pytest.raises(KeyError):
            driven.throw(KeyError)
        assert [number async for number in numbers()] == [1]
        await inner(1)

    found = read(tmp_path, lambda: asyncio.run(main()))
    steps = found.steps_of("main")
    assert [step[4] for step in steps] == [NOTHING, NOTHING, NOTHING, ENDED]
    assert {found.function(step[5]) for step in steps[:3]} == {"__sleep0"}
    assert all(step[4] != ENDED for step in steps[:3]) and found.named("main")[6] == 4


def test_a_task_group_that_fails(tmp_path, engine):
    async def waits():
        await asyncio.sleep(60)

    async def fails():
        await asyncio.sleep(0)
        raise ValueError

    async def main():
        asyncio.current_task().set_name("main")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(waits(), name="waits")
                group.create_task(fails(), name="fails")
        except BaseException:
            pass

    found = read(tmp_path, lambda: asyncio.run(main()))
    assert {name: found.named(name)[11] for name in ("waits", "fails", "main")} == {
        "waits": "raised",
        "fails": "raised",
        "main": "returned",
    }
    assert "TaskGroup" in "".join(found.function(each[2]) for each in found.read["awaits"] if each[2])


# ---- what is awaited, and who wakes --------------------------------------------------


def test_what_a_task_waits_for_and_who_wakes_it(tmp_path, engine):
    async def getter():
        await queue.get()

    async def locker():
        async with lock:
            pass

    async def main():
        nonlocal queue, lock
        queue, lock = asyncio.Queue(), asyncio.Lock()
        asyncio.current_task().set_name("main")
        await lock.acquire()
        tasks = [asyncio.create_task(getter(), name="getter"), asyncio.create_task(locker(), name="locker")]
        await asyncio.sleep(0.001)
        queue.put_nowait(1)
        lock.release()
        await tasks[1]
        await asyncio.gather(asyncio.sleep(0), *tasks)

    queue = lock = None
    found = read(tmp_path, lambda: asyncio.run(main()))
    awaits = {found.name(step[0]): [] for step in found.steps}
    for step in found.steps:
        awaits[found.name(step[0])].append((step[4], found.function(step[5])))
    assert awaits["getter"] == [(FUTURE, "Queue.get"), (ENDED, None)]
    assert awaits["locker"][0][0] == FUTURE and awaits["locker"][0][1].endswith("acquire")
    assert [kind for kind, _ in awaits["main"]] == [FUTURE, TASK, GATHER, ENDED]
    assert found.wakers_of("getter")[0] == (NO_WAKER, None)
    assert found.wakers_of("getter")[1][0] == "main"
    assert found.wakers_of("locker")[1][0] == "main"
    wakers = found.wakers_of("main")
    assert [task for task, _ in wakers] == [NO_WAKER, BY_CALLBACK, "locker", BY_CALLBACK]


def test_nothing_of_asyncio_stays_changed(tmp_path, engine):
    """asyncio's functions are the original ones after the recording, and tasks continue."""

    async def main():
        task = asyncio.create_task(asyncio.sleep(0.001))
        future = asyncio.get_running_loop().create_future()
        prof.start()
        asyncio.get_running_loop().call_soon(future.set_result, 3)
        assert await future == 3
        prof.stop()
        task.set_name("after")
        await task
        return task.get_name()

    prof = profile(output=str(tmp_path / "t.vst"))
    before = {name: getattr(asyncio.Future, name) for name in ("set_result", "set_exception", "cancel")}
    assert asyncio.run(main()) == "after"
    assert before == {name: getattr(asyncio.Future, name) for name in before}


# ---- timelines -----------------------------------------------------------------------


def exported(tmp_path, work):
    path = record(tmp_path / "t.vst", work)
    Trace(str(path)).export(str(tmp_path / "t.json"))
    return json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def lanes_of(events):
    named = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    lanes = {}
    for event in events:
        if event.get("cat") in ("task", "await") and event["ph"] == "X":
            lanes.setdefault(event["tid"], []).append(event)
    return {tid: (named[tid], on) for tid, on in lanes.items()}


async def queued():
    queue = asyncio.Queue()

    async def taker():
        asyncio.current_task().set_name("taker")
        await queue.get()
        await queue.get()

    task = asyncio.create_task(taker())
    for number in range(2):
        await asyncio.sleep(0.001)
        queue.put_nowait(number)
    await task


def test_a_lane_has_steps_and_waits_and_arrows_point_to_steps(tmp_path, engine):
    events = exported(tmp_path, lambda: asyncio.run(queued()))
    lanes = lanes_of(events)
    ((tid, (name, on)),) = [(tid, lane) for tid, lane in lanes.items() if lane[0].startswith("taker")]
    assert name.endswith("taker")
    assert [event["name"] for event in on] == ["taker", "await Queue.get", "taker", "await Queue.get", "taker"]
    for before, after in zip(on, on[1:]):
        assert abs(before["ts"] + before["dur"] - after["ts"]) < 0.01
    arrows = [event for event in events if event.get("cat") == "task" and event["ph"] in "sf"]
    heads = [event for event in arrows if event["ph"] == "f" and event["tid"] == tid]
    assert [head["ts"] for head in heads] == [on[2]["ts"], on[4]["ts"]]
    tails = {event["id"]: event for event in arrows if event["ph"] == "s"}
    for head in heads:
        tail = tails[head["id"]]
        assert tail["ts"] <= head["ts"]
        (step,) = [
            event
            for name, lane in lanes.values()
            for event in lane
            if event["cat"] == "task" and event["ts"] <= tail["ts"] <= event["ts"] + event["dur"]
        ]
        assert step["name"].startswith("Task-")  # a step of the main task called put_nowait
    assert len(tails) == len(arrows) / 2


def test_many_tasks_share_lanes(tmp_path):
    async def short():
        await asyncio.sleep(0)

    async def main():
        await asyncio.gather(*(short() for _ in range(300)))
        for _ in range(300):
            await asyncio.create_task(short())

    lanes = lanes_of(exported(tmp_path, lambda: asyncio.run(main())))
    of_short = [lane for lane in lanes.values() if lane[0].endswith("short")]
    assert len(of_short) == 65
    assert sum(event["cat"] == "task" for _, on in of_short for event in on) == 1200
    (shared,) = [on for name, on in of_short if name.startswith("more tasks")]
    assert len({event["name"] for event in shared}) == 300 - 64
    for _, on in of_short:
        ordered = sorted(on, key=lambda event: event["ts"])
        for before, after in zip(ordered, ordered[1:]):
            assert before["ts"] + before["dur"] <= after["ts"] + 0.001


def test_an_arrow_goes_from_submit_to_the_run(tmp_path, engine):
    def job():
        pass

    def work():
        with ThreadPoolExecutor(2) as pool:
            for _ in range(20):
                pool.submit(job).result()

    events = exported(tmp_path, work)
    named = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    ends = {}
    for event in events:
        if event["name"] == "submit" and event["ph"] in "sf":
            ends.setdefault(event["id"], {})[event["ph"]] = event
    assert len(ends) == 20
    runs = [event for event in events if event["ph"] == "X" and is_work_item_run(event["name"])]
    submits = [event for event in events if event["ph"] == "X" and event["name"].endswith("submit")]

    def holds(span, point):
        return span["tid"] == point["tid"] and span["ts"] <= point["ts"] <= span["ts"] + span["dur"]

    pairs = []
    for pair in ends.values():
        assert named[pair["f"]["tid"]].startswith("ThreadPoolExecutor")
        (submit,) = [number for number, span in enumerate(sorted_spans(submits)) if holds(span, pair["s"])]
        (run,) = [number for number, span in enumerate(sorted_spans(runs)) if holds(span, pair["f"])]
        pairs.append((submit, run))
    assert sorted(pairs) == [(number, number) for number in range(20)]


def is_work_item_run(name):
    return "concurrent/futures/thread.py" in name and name.endswith((": _WorkItem.run", ": run"))


def sorted_spans(spans):
    return sorted(spans, key=lambda span: span["ts"])


# ---- the report ----------------------------------------------------------------------


def blocks():
    time.sleep(0.03)


async def blocker():
    blocks()


async def sleeper():
    await asyncio.sleep(0.001)


async def several():
    await asyncio.gather(*(sleeper() for _ in range(5)))
    await asyncio.create_task(blocker(), name="the \x1b[31m one")


def test_the_report_of_tasks(tmp_path):
    path = record(tmp_path / "t.vst", lambda: asyncio.run(several()))
    report = json.loads(vestige("report", path, "--tasks", "--blocked", "20ms", "--format", "json").out)
    rows = {row["function"].rpartition(": ")[2]: row for row in report["tasks"]}
    assert rows["sleeper"]["tasks"] == 5
    assert rows["sleeper"]["steps"] == 10
    assert [each["for"] for each in rows["sleeper"]["awaits"]] == ["sleep"]
    assert rows["sleeper"]["awaits"][0]["count"] == 5
    assert rows["sleeper"]["latency_median_ns"] >= 1_000_000
    assert rows["sleeper"]["latency_median_ns"] <= rows["sleeper"]["latency_p99_ns"]
    assert {each["for"] for each in rows["several"]["awaits"]} == {"task"}
    assert rows["blocker"]["longest_step_ns"] >= 30_000_000
    step = next(step for step in report["blocked"] if step["function"] == rows["blocker"]["function"])
    assert [call["function"].rpartition(": ")[2] for call in step["stack"]][:2] == ["blocker", "blocks"]
    assert "sleep" in step["stack"][-1]["function"]
    text = vestige("report", path, "--tasks", "--blocked", "20ms").out
    assert "blocked the event loop for 20 ms or more" in text
    assert "\x1b" not in text
    lines = vestige("report", path, "--tasks", "--format", "csv").out.splitlines()
    assert lines[0].startswith("function,file,line,library,tasks,open")
    assert len(lines) == 1 + len(report["tasks"])


def test_an_import_that_blocks_the_loop_is_one_line_of_the_stack(tmp_path, monkeypatch):
    # takes longer than finding the module
    (tmp_path / "blocks_when_imported.py").write_text("import time\ntime.sleep(0.3)\n")
    monkeypatch.syspath_prepend(tmp_path)

    async def imports():
        __import__("blocks_when_imported")

    path = record(tmp_path / "t.vst", lambda: asyncio.run(imports()))
    words = ("report", path, "--tasks", "--blocked", "20ms")
    text = vestige(*words).out
    assert "import " in text and "_find_and_load" not in text and text.index("import ") < text.index("sleep\n")
    (step,) = json.loads(vestige(*words, "--format", "json").out)["blocked"]
    named = [call["import"].rpartition("/")[2] for call in step["stack"] if "import" in call]
    assert [name.removesuffix(".py") for name in named] == ["blocks_when_imported"]
    assert any(call.get("folded") and call["function"].endswith("_find_and_load_unlocked") for call in step["stack"])


def test_a_report_without_tasks_says_so(tmp_path):
    path = record(tmp_path / "t.vst")
    assert "no task of asyncio was recorded" in vestige("report", path, "--tasks").out
    said = vestige("report", path, "--tasks", "--blocked", "long")
    assert said.code == 2
    assert "--blocked: not a time: 'long'" in said.err
    assert vestige("report", path, "--blocked", "1ms").code == 2


def test_perfettos_files_name_categories_of_tasks_only_where_there_are_tasks(tmp_path):
    async def main():
        await asyncio.sleep(0)

    for work, known in ((lambda: asyncio.run(main()), True), (lambda: sorted(range(9)), False)):
        path = tmp_path / f"{known}.pftrace"
        Trace(str(record(tmp_path / f"{known}.vst", work))).export(str(path), format="perfetto")
        written = path.read_bytes()
        assert b"python_function" in written
        assert [b"\x12\x04task" in written, b"\x12\x05await" in written] == [known, known]


def test_a_damaged_trace_in_which_a_task_waits_twice_is_read(tmp_path):
    def told(what, *words, task=1):
        return handmade.escape(ESCAPE_TASK, what | task << 8, *words)

    step, awaits, wakes = 1, 3, 5
    path = tmp_path / "made.vst"
    wait = told(awaits, FUTURE, 0xABC0, 0)
    wake, begins = told(wakes, 0xABC0, task=0), (handmade.enter(1), *told(step))
    words = (*begins, *wait, *wait, handmade.leave(1), *wake, *begins, handmade.leave(1))
    entries = handmade.definitions(handmade.thread(), handmade.define(1, "waits"))
    path.write_bytes(handmade.trace(entries, handmade.records(*words)))
    read = tasks_of(Trace(str(path)))
    assert [task[6] for task in read["tasks"]] == [1] and len(read["steps"]) == 2
    assert read["steps"][1][6] == BY_CALLBACK
