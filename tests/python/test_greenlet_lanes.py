"""Greenlets as tasks: the steps of each greenlet, compared with schedules that the programs note themselves."""

import gc
import json
import random
import threading

import pytest

from in_process import vestige
from task_steps import Read
from traces import record

greenlet = pytest.importorskip("greenlet")

ENDED, SWITCHED = -1, 5  # codes for the end of a step, as in tasks_of()


@pytest.fixture(params=("turbo", "safe"))
def engine(request, monkeypatch):
    monkeypatch.setenv("VESTIGE_ENGINE", request.param)
    return request.param


def leaf():
    pass


def function(found, number):
    """Returns the greenlet's plain name."""
    return found.function(number).rpartition(".")[2]


class Schedule:
    """Greenlets that switch to each other at random, and note the running greenlet."""

    def __init__(self, seed, most=30):
        self.random = random.Random(seed)
        self.noted = []  # [name, code of the step's end]
        self.alive = []
        self.most, self.count = most, 0
        self.main = greenlet.getcurrent()

    def begin(self, name):
        self.noted.append([name, None])

    def switch(self):
        """Switches to a new greenlet, to a waiting greenlet, or back to the thread's first greenlet."""
        if greenlet.getcurrent() is not self.main:
            self.noted[-1][1] = SWITCHED
        if self.count < self.most and self.random.random() < 0.4:
            self.count += 1
            one = greenlet.greenlet(self.work, self.main)
            one.name = f"g{self.count}"
            self.alive.append(one)
        others = [one for one in self.alive if one is not greenlet.getcurrent()]
        target = self.random.choice([self.main, *others])
        if target is self.main and greenlet.getcurrent() is self.main:
            return
        target.switch()

    def work(self):
        me = greenlet.getcurrent()
        self.begin(me.name)
        for _ in range(self.random.randint(0, 6)):
            leaf()
            self.deep(self.random.randint(0, 3))
            self.begin(me.name)
        self.alive.remove(me)
        self.noted[-1][1] = ENDED
        if self.random.random() < 0.2:
            raise greenlet.GreenletExit

    def deep(self, levels):
        if levels:
            self.deep(levels - 1)
        else:
            self.switch()
        leaf()

    def run(self):
        while self.count < self.most or self.alive:
            self.switch()


@pytest.mark.parametrize("seed", range(3))
def test_each_step_of_a_random_schedule_is_of_the_greenlet_that_ran(tmp_path, engine, seed):
    schedule = Schedule(seed)
    found = Read(record(tmp_path / "t.vst", schedule.run))
    assert found.order() == [tuple(step) for step in schedule.noted]
    assert len(found.tasks) == schedule.count
    for task in found.read["tasks"]:
        own = found.steps_of(task[3])
        assert function(found, task[2]) == "work"
        assert task[6] == len(own)
        assert task[7] == sum(step[3] - step[2] for step in own)
        assert task[8] == sum(after[2] - before[3] for before, after in zip(own, own[1:]))
        assert task[11:] == ("raised" if task[11] == "raised" else "returned", "greenlet")


def test_greenlets_of_several_threads_are_told_apart(tmp_path, engine):
    schedules = {}

    def body(seed):
        schedules[seed] = Schedule(seed, most=12)
        schedules[seed].run()

    def work():
        threads = [threading.Thread(target=body, args=(seed,)) for seed in (11, 12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    found = Read(record(tmp_path / "t.vst", work))
    orders = []
    for thread in {task[1] for task in found.read["tasks"]}:
        steps = [step for step in found.steps if found.tasks[step[0]][1] == thread]
        orders.append([(found.name(step[0]), step[4]) for step in steps])
    assert sorted(orders) == sorted([tuple(step) for step in each.noted] for each in schedules.values())


def test_what_switches_to_a_greenlet_is_what_wakes_it(tmp_path, engine):
    def first():
        second_one.switch()

    def second():
        first_one.switch()

    first_one, second_one = greenlet.greenlet(first), greenlet.greenlet(second)
    first_one.name, second_one.name = "one", "two"
    found = Read(record(tmp_path / "t.vst", lambda: (first_one.switch(), second_one.switch())))
    assert found.wakers_of("one")[1][0] == "two"
    assert found.order() == [("one", SWITCHED), ("two", SWITCHED), ("one", ENDED), ("two", ENDED)]


def test_one_that_began_before_the_recording_is_known_by_name(tmp_path, engine):
    def work():
        for _ in range(3):
            main.switch()
            leaf()

    main = greenlet.getcurrent()
    old = greenlet.greenlet(work)
    old.name = "old"
    old.switch()
    found = Read(record(tmp_path / "t.vst", old.switch))
    assert [task[3] for task in found.read["tasks"]] == ["old"]
    assert found.named("old")[11] == "open"
    while not old.dead:
        old.switch()


def test_many_one_after_the_other_at_one_address_are_many(tmp_path, engine):
    """A new greenlet is never taken for an ended greenlet at the same address."""

    def work():
        for number in range(50):
            one = greenlet.greenlet(leaf)
            if number % 2:
                one.name = f"odd {number}"
            one.switch()

    found = Read(record(tmp_path / "t.vst", work))
    assert [task[3] for task in found.read["tasks"]] == [f"odd {number}" * (number % 2) for number in range(50)]
    assert {(task[6], task[11]) for task in found.read["tasks"]} == {(1, "returned")}


def test_a_collection_before_its_first_call_is_not_its_function(tmp_path):
    """Functions that run before the greenlet's own are not taken for it either: destructors, and callbacks of the
    program.
    """

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            pass

    def counts(phase, info):
        seen.append(phase)
        inner()

    def inner():
        pass

    class Counter:
        def counts_too(self, phase, info):
            inner()

    def work():
        kept = []
        gc.callbacks.append(counts)
        gc.set_threshold(1)
        for number in range(300):
            one = greenlet.greenlet(leaf)
            kept.append([number])
            Cycle()
            one.switch()
        gc.set_threshold(*before)

    before = gc.get_threshold()
    seen = []
    others = list(gc.callbacks)
    gc.callbacks.append(Counter().counts_too)
    try:
        found = Read(record(tmp_path / "t.vst", work))
    finally:
        gc.callbacks[:] = others
    assert seen
    assert {function(found, task[2]) for task in found.read["tasks"]} == {"leaf"}


# ---- gevent ----------------------------------------------------------------------


@pytest.fixture
def of_gevent(tmp_path, engine):
    gevent = pytest.importorskip("gevent")
    import gevent.event

    noted = []

    def step(name, follows):
        noted.append((name, follows))

    def waits(event):
        step("waits", SWITCHED)
        event.wait()
        step("waits", ENDED)

    def turns(name, count):
        for _ in range(count):
            step(name, SWITCHED)
            gevent.sleep(0)
        step(name, ENDED)

    def work():
        event = gevent.event.Event()
        jobs = [gevent.spawn(waits, event), *(gevent.spawn(turns, f"t{count}", count) for count in range(3))]
        for job, name in zip(jobs, ("waits", "t0", "t1", "t2")):
            job.name = name
        gevent.sleep(0.001)
        event.set()
        gevent.joinall(jobs)
        unnamed = gevent.spawn(leaf)
        unnamed.join()
        # gevent numbers the names that it makes up: the recording must not have asked for one before.
        names.append(unnamed.name)

    def in_thread():  # a thread with its own hub
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    names = []
    path = record(tmp_path / "t.vst", in_thread)
    assert names == ["Greenlet-0"]
    return path, noted


def test_greenlets_of_gevent_have_their_names_and_the_hub_is_known(of_gevent):
    path, noted = of_gevent
    found = Read(path)
    kinds = {task[3]: task[12] for task in found.read["tasks"]}
    assert kinds.pop("Hub") == "hub"
    assert {"waits", "t0", "t1", "t2"} <= set(kinds)
    assert set(kinds.values()) == {"greenlet"}
    assert [step for step in found.order() if step[0] in ("waits", "t0", "t1", "t2")] == noted
    assert {waker for waker, _ in found.wakers_of("t2")[1:]} == {"Hub"}
    waited = {(function(found, outer), function(found, inner)) for outer, _, inner, *_ in found.read["awaits"]}
    assert ("turns", "sleep") in waited


def test_greenlets_are_in_reports_tables_and_timelines(of_gevent, tmp_path):
    path, _ = of_gevent
    shown = vestige("report", path, "--tasks").out
    assert "greenlets  running      out" in shown
    assert "blocked" not in shown
    assert "switched out: sleep" in shown
    rows = json.loads(vestige("report", path, "--tasks", "--format", "json").out)
    (turns,) = [row for row in rows["tasks"] if row["function"].endswith("turns")]
    assert (turns["kind"], turns["tasks"], turns["steps"]) == ("greenlet", 3, 6)
    assert rows["blocked"] == []
    vestige("export", path, "-o", tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    lanes = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert any(name.startswith("waits: ") for name in lanes)
    assert any(event["name"].startswith("switched out") for event in events)


def test_the_viewer_has_lanes_of_greenlets(of_gevent):
    from vestige import _core

    path, _ = of_gevent
    tasks = [lane for lane in _core.Lanes(_core.Trace(str(path)), "tasks").lanes() if not lane["members"]]
    assert {"waits", "t0", "t1", "t2", "Hub"} <= {lane["name"] for lane in tasks}
    assert {lane["what"] for lane in tasks} == {"greenlet", "hub"}
