"""Tasks of asyncio in the viewer: their lanes, pictures of the lanes, and how the page shows them."""

import asyncio
import json
import struct

import pytest

import scheduled
from conftest import Workplace
from task_steps import tasks_of
from traces import record
from vestige import Trace
from vestige._core import Lanes, View
from view_page import WAYS, close_to, fill_of, length_in_tip, settle, shown, text, x_of
from viewing import Client, read_window, serving

pytestmark = pytest.mark.any_python
AWAITS, MANY = 1 << 4, 7 << 5  # bits of a rectangle's flags
GOES_ON, ENDED, NOTHING = -2, -1, 0
MANY_TASKS = 3000
PROGRAM = """\
import asyncio
import time


class Foreign:
    '''A future that asyncio takes, and whose end we do not see.'''

    _asyncio_future_blocking = False

    def __init__(self):
        self.loop = asyncio.get_running_loop()

    def get_loop(self):
        return self.loop

    def add_done_callback(self, callback, context=None):
        self.loop.call_soon(callback, self)

    def remove_done_callback(self, callback):
        return 0

    def result(self):
        return None

    def __await__(self):
        self._asyncio_future_blocking = True
        yield self


def hold():
    time.sleep(0.02)


async def getter(queue):
    await queue.get()
    hold()


async def putter(queue, tasks):
    hold()
    for _ in tasks:
        queue.put_nowait(1)
    await asyncio.gather(*tasks)


async def foreign():
    hold()
    await Foreign()
    hold()


async def short():
    await asyncio.sleep(0)


def deep(levels):
    return deep(levels - 1) if levels else time.sleep(0.001)


async def main():
    deep(60)
    queue = asyncio.Queue()
    tasks = [asyncio.create_task(getter(queue), name=f"get <b>{number}</b>") for number in range(3)]
    await asyncio.create_task(putter(queue, tasks), name="put")
    await asyncio.create_task(foreign(), name="strange")
    await asyncio.gather(*(short() for _ in range(60)))


asyncio.run(main())
"""


# ---- the lanes --------------------------------------------------------------------


@pytest.fixture(scope="module")
def random_program(tmp_path_factory):
    path = tmp_path_factory.mktemp("lanes") / "t.vst"
    record(path, lambda: [scheduled.run(scheduled.program(seed)) for seed in range(4)])
    return Trace(str(path))


IS_WAIT, IS_FIRST, HAD_TURN, IS_WOKEN = 1, 2, 4, 16  # an item's states, see src/view/lanes_tasks.c


def groups_of(lanes):
    return [each for each in lanes.lanes() if each["members"]]


def lanes_by_number(lanes, read):
    """Returns the lane of each task, found by its properties."""
    known = {(task[3], task[4], task[5]): task[0] for task in read["tasks"]}
    found = {}
    for group in groups_of(lanes):
        for each in lanes.lanes(group["first"], group["members"]):
            found[known.pop((each["name"], each["start_ns"], each["end_ns"]))] = each["lane"]
    assert not known
    return found


def test_lanes_have_every_step_and_wait_of_random_programs(random_program):
    lanes, read = Lanes(random_program, "tasks"), tasks_of(random_program)
    lane_of = lanes_by_number(lanes, read)
    steps = {}
    for task, function, start, end, awaits, awaiting, waker, waker_id in read["steps"]:
        steps.setdefault(task, []).append((start, end, awaits, awaiting, waker, waker_id, function))
    kinds = set()
    for task, own in steps.items():
        for at, (start, end, awaits, awaiting, waker, waker_id, _) in enumerate(own):
            for time in {start, (start + end) // 2}:
                told = lanes.at(lane_of[task], 0, time)
                assert (told["start_ns"], told["end_ns"]) == (start, end)
                assert told["state"] & (IS_WAIT | IS_FIRST) == (0 if at else IS_FIRST)
                assert told["awaits"] == max(awaits, -1) + 1
            assert (told["waker_thread"] == 0) == (waker < 0)
            if told["waker_thread"]:
                assert told["waker_lane"] == (lane_of[waker] if waker else 0) and told["waker_id"] == waker_id
            if awaits >= 0 and at + 1 < len(own):
                told = lanes.at(lane_of[task], 0, end + 1)
                assert (told["state"] & IS_WAIT, told["start_ns"], told["end_ns"]) == (IS_WAIT, end, own[at + 1][0])
                assert (told["awaits"], told["awaiting"]) == (awaits + 1, awaiting)
                assert bool(told["state"] & HAD_TURN) == (awaits == NOTHING)
                kinds.add(awaits)
    assert len(kinds) > 2
    assert lanes.left_out() == (0, 0)


def test_a_group_shows_the_steps_of_its_tasks(random_program):
    lanes = Lanes(random_program, "tasks")
    shown = 0
    for group in groups_of(lanes):
        for each in lanes.lanes(group["first"], group["members"]):
            _, items = lanes.between(each["lane"], 0, each["start_ns"], each["end_ns"] + 1, 50)
            for step in items:
                found = lanes.at(group["lane"], 0, (step["start_ns"] + step["end_ns"]) // 2)
                if not step["state"] & IS_WAIT and found and found["step"]:
                    own = lanes.item(found["step"] - 1)
                    assert own["start_ns"] <= found["start_ns"] <= found["end_ns"] <= own["end_ns"]
                    shown += own == step
    assert shown > 20


def test_groups_add_up_their_tasks(random_program):
    lanes, read = Lanes(random_program, "tasks"), tasks_of(random_program)
    names = ("members", "steps", "start_ns", "end_ns", "busy_ns", "awaiting_ns")
    found = {(each["thread"], each["id"]): tuple(each[name] for name in names) for each in groups_of(lanes)}
    wanted = {}
    for _, thread, function, _, start, end, steps, running, awaiting, *_ in read["tasks"]:
        wanted.setdefault((thread, function), []).append((1, steps, start, end, running, awaiting))
    assert found.keys() == wanted.keys()
    for key, rows in wanted.items():
        count, steps, start, end, running, awaiting = zip(*rows)
        # A step of several calls counts once for each call here.
        assert found[key][0] == sum(count) and found[key][1] >= sum(steps)
        assert found[key][2:] == (min(start), max(end), sum(running), sum(awaiting))


def test_a_picture_has_steps_and_waits_where_they_were(random_program):
    lanes, read = Lanes(random_program, "tasks"), tasks_of(random_program)
    lane_of = lanes_by_number(lanes, read)
    task = max(read["tasks"], key=lambda each: each[6])
    own = [step for step in read["steps"] if step[0] == task[0]]
    for first, last in zip(own, own[4:]):  # zoomed in, so that no items are merged
        start, end = first[2] - 10, last[3] + 10
        data = bytearray(lanes.draw(start, end, 60_000, [lane_of[task[0]]]))
        struct.pack_into("<qq", data, 16, 0, end - start)  # a float cannot hold wall-clock times exactly
        rects, unit = read_window(data), (end - start) / 1000
        drawn = [(rect.start, rect.end) for rect in rects if not rect.flags & AWAITS]
        for step in own:
            begins, ends = step[2] - start, step[3] - start
            if 0 <= begins and step[3] <= end and ends - begins > unit:
                assert any(abs(a - begins) <= unit and abs(b - ends) <= unit for a, b in drawn), step
        assert all(before.end <= after.start + unit for before, after in zip(rects, rects[1:]))


@pytest.fixture(scope="module")
def many_tasks(tmp_path_factory):
    async def wait(event):
        await event.wait()
        await asyncio.sleep(0)

    async def main():
        event = asyncio.Event()
        tasks = [asyncio.create_task(wait(event)) for _ in range(MANY_TASKS)]
        await asyncio.sleep(0)
        event.set()
        await asyncio.gather(*tasks)

    path = tmp_path_factory.mktemp("many") / "t.vst"
    record(path, lambda: asyncio.run(main()))
    return Trace(str(path))


def test_a_group_counts_how_many_of_its_tasks_wait(many_tasks):
    lanes, info = Lanes(many_tasks, "tasks"), many_tasks.info()
    (group,) = [each for each in groups_of(lanes) if each["members"] == MANY_TASKS]
    rects = read_window(lanes.draw(info["start_ns"], info["end_ns"], 65_536, [group["lane"]]))
    waits = [rect.count for rect in rects if rect.flags & AWAITS]
    assert waits and max(waits) == MANY_TASKS
    assert all(rect.flags & MANY == MANY for rect in rects if rect.flags & AWAITS)
    assert len(lanes.lanes(group["first"], MANY_TASKS)) == MANY_TASKS
    assert lanes.lanes(group["first"] + MANY_TASKS + 10, 5) == []


def test_a_picture_of_very_many_lanes_has_a_bounded_size(many_tasks):
    lanes, info = Lanes(many_tasks, "tasks"), many_tasks.info()
    all_lanes = [each["lane"] for each in lanes.lanes()]
    assert len(all_lanes) > MANY_TASKS
    rects = read_window(lanes.draw(info["start_ns"], info["end_ns"], 2000, all_lanes))
    assert MANY_TASKS < len(rects) <= 20_000


def test_what_cannot_be_drawn_is_refused(many_tasks):
    lanes = Lanes(many_tasks, "tasks", wrappers=[1, 2])
    for asked in ((5, 5, 10, [0]), (0, 5, 0, [0]), (0, 5, 1 << 20, [0]), (-(1 << 62), 5, 10, [0])):
        with pytest.raises(ValueError, match="are not valid"):
            lanes.draw(*asked)
    with pytest.raises(TypeError):
        Lanes(many_tasks, "tasks", wrappers=5)
    assert read_window(lanes.draw(0, 5, 10, [1 << 31])) == []
    assert lanes.at(1 << 31, 0, 5) is None and lanes.at(0, 0, 5) is None


# ---- the server -------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    workplace = Workplace(tmp_path_factory.mktemp("tasks"))
    workplace.write("app.py", PROGRAM)
    assert workplace.trace("app.py").returncode == 0
    assert workplace.vestige("run", "-q", "-o", "plain.vst", "-c", "pass").returncode == 0
    return workplace


def named(groups, names, name):
    (group,) = [each for each in groups if names[each["id"]][1] == name]
    return group


def test_the_server_tells_of_groups_tasks_and_wakers(place):
    with serving(place.path / "t.vst") as server:
        client = Client(server)
        info = client.get("info")
        assert info["traces"][0]["tasks"]
        names = client.get("names")["names"]
        told = client.get("lanes", kind="tasks")
        groups, awaits = told["lanes"], told["awaits"]
        getters, shorts = named(groups, names, "getter"), named(groups, names, "short")
        assert (getters["members"], shorts["members"]) == (3, 60)
        assert named(groups, names, "putter")["name"] == "put"
        tasks = client.get("lanes", kind="tasks", first=getters["first"], count=3)["lanes"]
        assert [each["name"] for each in tasks] == [f"get <b>{number}</b>" for number in range(3)]
        assert {each["end"] for each in tasks} == {"returned"}
        start, end = getters["start_ns"], getters["end_ns"]
        time = (start + tasks[0]["end_ns"]) // 2 - 20_000_000
        wait = client.get("lanes/at", kind="tasks", lane=getters["first"], time=time)
        assert wait["state"] & IS_WAIT and awaits["functions"][str(wait["awaiting"])] == "queue"
        assert names[wait["awaiting"]][1].endswith("get")
        putter = named(groups, names, "putter")["first"]
        assert wait["waker_lane"] == putter
        lanes = ",".join(str(getters["first"] + each) for each in range(3))
        got = client.ask(f"/api/lanes/window?kind=tasks&from={start}&to={end}&pixels=1000&lanes={lanes}")
        rects = read_window(got.body)
        assert {rect.thread for rect in rects} == {getters["first"] + each for each in range(3)}
        found = client.get("lanes/between", kind="tasks", lanes=lanes, from_=start, to=end, most=100)
        woken = [each for each in found["items"] if each["state"] & IS_WOKEN]
        assert len(woken) == 3 and {each["waker_lane"] for each in woken} == {putter}
        client.connection.close()


def test_bad_questions_get_a_line(place):
    with serving(place.path / "t.vst") as server:
        client = Client(server)
        assert client.error("/api/lanes/at?kind=tasks&lane=x&time=5") == (400, "lane: not an integer")
        assert client.error("/api/lanes/window?kind=tasks&from=5&to=5&pixels=9&lanes=0") == (
            400,
            "from must be less than to",
        )
        assert client.error("/api/lanes?kind=tasks&first=0&count=0")[0] == 400
        assert client.get("lanes", kind="tasks", first=4_000_000_000, count=5) == {"lanes": []}
        client.connection.close()
    with serving(place.path / "plain.vst") as server:
        client = Client(server)
        assert client.get("lanes", kind="tasks") == {"lanes": [], "left_out": [0, 0]}
        assert client.error("/api/lanes/at?kind=tasks&lane=0&time=5") == (404, "the trace has no tasks")
        client.connection.close()


def test_the_index_knows_whether_there_are_tasks(place, many_tasks):
    for name, known in (("t.vst", True), ("plain.vst", False)):
        for built in (True, False):  # once with an index that is built, once with one that exists
            info = View(str(place.path / name), index=str(place.path / f"{name}.index")).info()
            assert (info["has_tasks"], info["built"]) == (known, built)


# ---- the page ---------------------------------------------------------------------


@pytest.fixture(scope="module", params=WAYS)
def page(place, browser, request):
    ready = "document.getElementById('loading').hidden && vestige.tasks.groups.size > 0"
    with shown(request.param, place.path, browser, ready) as page:
        settle_lanes(page)
        yield page


def settle_lanes(page):
    page.wait(
        "vestige.windows.settled && vestige.lanes.settled && vestige.tasks.settled && vestige.stage.pending === null"
    )
    settle(page)


def group(page, name):
    return page.eval(f"vestige.tasks.groups.get(0).find(one => one.name === {json.dumps(name)})")


def show(page, name):
    """Scrolls to the lanes of a coroutine function, and shows their whole time."""
    found = group(page, name)
    lane = found["first"] if found["tasks"] == 1 else found["lane"]
    page.eval(f"vestige.stage.rows.scrollTop = vestige.timeline.lane(0, {lane}).top - 100")
    page.eval(f"vestige.view.show({found['start_ns'] - 1e6}, {found['end_ns'] + 1e6})")
    settle_lanes(page)
    return found


def y_of_lane(page, lane):
    top = page.eval(
        "document.getElementById('rows').getBoundingClientRect().top + "
        f"vestige.timeline.lane(0, {lane}).top - vestige.stage.rows.scrollTop"
    )
    return top + 9


def lane_names(page):
    return page.eval("vestige.timeline.tracks.filter(one => one.type === 'lane').map(one => one.lane.name)")


def open_getters(page):
    if not group(page, "getter")["open"]:
        found = show(page, "getter")
        page.click(60, y_of_lane(page, found["lane"]))
        page.wait("vestige.tasks.groups.get(0).find(one => one.name === 'getter').open")
    return show(page, "getter")


def test_tasks_are_folded_by_name_and_open_on_a_click(page):
    assert "getter" in lane_names(page) and "get <b>0</b>" not in lane_names(page)
    show(page, "getter")
    assert "× 60" in text(page, "#gutter") and "put: putter" in text(page, "#gutter")
    told = page.eval("[...document.querySelectorAll('#gutter .lane button')].map(one => one.title)")
    assert any("steps" in title and "running" in title for title in told)
    assert not any("NaN" in title or "undefined" in title for title in told)
    open_getters(page)
    assert {f"get <b>{number}</b>" for number in range(3)} <= set(lane_names(page))
    assert "get <b>1</b>" in text(page, "#gutter")  # as text
    found = group(page, "getter")
    page.click(60, y_of_lane(page, found["lane"]))
    page.wait("!vestige.tasks.groups.get(0).find(one => one.name === 'getter').open")
    assert "get <b>0</b>" not in lane_names(page)


def tracks_of(page):
    return page.eval("vestige.timeline.tracks.map(({type, top, rows, left}) => ({type, top, rows, left}))")


def test_lanes_are_in_sight_beneath_a_deep_thread(page):
    thread, more, lane = tracks_of(page)[1:4]
    assert [thread["type"], more["type"], lane["type"]] == ["thread", "more", "lane"]
    assert thread["rows"] == 16 and more["left"] > 45 and lane["top"] < 400
    page.eval("vestige.stage.rows.scrollTop = 0")
    settle_lanes(page)
    assert f"{more['left']} more rows" in text(page, "#gutter")
    page.eval("document.querySelector('#gutter .more button').click()")
    thread, more, lane = tracks_of(page)[1:4]
    assert thread["rows"] > 60 and more["left"] == 0 and lane["top"] > 1080
    page.eval("vestige.timeline.toggle('m0:1'), vestige.stage.arranged()")
    assert tracks_of(page)[1]["rows"] == 16
    # A call further down is shown at its place.
    page.eval("vestige.goTo(0, 1, 50, 0, 1, 0)")
    assert tracks_of(page)[1]["rows"] > 60
    page.eval("vestige.timeline.toggle('m0:1'), vestige.stage.arranged()")
    settle_lanes(page)


def test_a_wait_is_paler_than_the_step_behind_it(page):
    found = open_getters(page)
    lane = found["first"]
    wait = page.eval(f"vestige.source.laneAt(0, 'tasks', {lane}, 0, {found['start_ns'] + 10_000_000})")
    assert wait["state"] & IS_WAIT
    step = page.eval(f"vestige.source.laneAt(0, 'tasks', {lane}, 0, {wait['end_ns'] + 1_000_000})")
    page.mouse("mouseMoved", 400, 20)
    settle_lanes(page)
    picture, y = page.screenshot(), y_of_lane(page, lane)
    runs = picture.at(x_of(page, (step["start_ns"] + step["end_ns"]) / 2), y + 6)
    assert close_to(runs, fill_of(page, "getter"))
    waits = picture.at(x_of(page, wait["start_ns"] + (wait["end_ns"] - wait["start_ns"]) * 0.9), y + 6)
    assert sum(waits) > sum(runs) + 20 and sum(waits) < 3 * 254


def test_a_tip_tells_the_length_of_a_wait_that_is_only_partly_shown(page):
    found = open_getters(page)
    wait = page.eval(f"vestige.source.laneAt(0, 'tasks', {found['first']}, 0, {found['start_ns'] + 10_000_000})")
    length = wait["end_ns"] - wait["start_ns"]
    page.eval(f"vestige.view.show({wait['start_ns'] + 0.4 * length}, {wait['start_ns'] + 0.6 * length})")
    settle_lanes(page)
    page.mouse("mouseMoved", x_of(page, wait["start_ns"] + 0.5 * length), y_of_lane(page, found["first"]))
    page.wait("document.getElementById('tip').innerText.startsWith('get <b>0</b>: await')")
    assert length_in_tip(page) == pytest.approx(length, rel=0.01)
    page.mouse("mouseMoved", 400, 20)


def test_details_say_what_is_awaited_and_who_woke_it(page):
    found = open_getters(page)
    wait = page.eval(f"vestige.source.laneAt(0, 'tasks', {found['first']}, 0, {found['start_ns'] + 10_000_000})")
    page.click(x_of(page, (wait["start_ns"] + wait["end_ns"]) / 2), y_of_lane(page, found["first"]))
    page.wait("document.getElementById('details').innerText.includes('woken by')")
    shown = text(page, "#details")
    assert "get <b>0</b>: awaiting queue" in shown and "wait of a task" in shown
    assert "put: " in shown  # the step that woke the task
    page.eval("document.querySelector('#details button[data-to=waker]').click()")
    page.wait("document.getElementById('details').innerText.includes('step of a task')")
    assert text(page, "#details").startswith("put: putter")
    page.eval("document.querySelector('#details button[data-to=call]').click()")
    page.wait("document.getElementById('details').innerText.includes('Python function')")
    assert "putter" in text(page, "#details")


def test_an_arrow_leads_from_what_woke_a_task(page):
    found = open_getters(page)
    page.eval("vestige.view.selectSpan(null), vestige.panel.close()")
    settle_lanes(page)
    arrows = page.eval("vestige.tasks.arrows.get(0)")
    mine = [each for each in arrows if found["first"] <= each["lane"] < found["first"] + 3]
    assert len(mine) == 3 and all(each["waker"]["lane"] == group(page, "putter")["first"] for each in mine)
    head = mine[0]
    drawn = page.eval(
        f"""(() => {{ const {{ overlay, width }} = vestige.stage, {{ view, timeline }} = vestige;
        const x = ({head["time_ns"]} - view.from) / view.width * width;
        const y = timeline.lane(0, {head["lane"]}).top - vestige.stage.rows.scrollTop;
        const {{ data }} = overlay.context.getImageData(x - 4, y, 8, 18);
        return data.filter((one, at) => at % 4 === 3 && one > 60).length; }})()"""
    )
    assert drawn >= 4


def test_a_waker_that_is_not_known_is_shown_as_unknown(page):
    found = show(page, "foreign")
    first = page.eval(f"vestige.source.laneAt(0, 'tasks', {found['first']}, 0, {found['start_ns'] + 1_000_000})")
    second = page.eval(f"vestige.source.laneAt(0, 'tasks', {found['first']}, 0, {found['end_ns'] - 1_000_000})")
    assert first["waker_thread"] == 0 and second["start_ns"] > first["end_ns"]
    page.click(x_of(page, (second["start_ns"] + second["end_ns"]) / 2), y_of_lane(page, found["first"]))
    page.wait("document.getElementById('details').innerText.includes('Woken by')")
    assert "unknown" in text(page, "#details")
    show(page, "foreign")  # the details took some of the room
    page.click(x_of(page, (first["start_ns"] + first["end_ns"]) / 2), y_of_lane(page, found["first"]))
    page.wait("document.getElementById('details').innerText.includes('its first step')")
    arrows = page.eval("vestige.tasks.arrows.get(0)")
    assert [each["waker"] for each in arrows if each["lane"] == found["first"]] == [None]
