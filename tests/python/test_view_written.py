"""Pages that `vestige view --html` writes: their answers about marks, tasks and running times equal the server's, and
pages of long recordings stay small.
"""

import json

import pytest

import vestige
from conftest import Workplace
from vestige.cli import view
from vestige.viewer import embed_lanes
from view_page import text
from viewing import Client, read_window, serving

pytestmark = pytest.mark.any_python
PROGRAM = """\
import asyncio
import time

import vestige


def fails():
    raise LookupError


async def asks(queue, number):
    await asyncio.sleep(0)
    try:
        fails()
    except LookupError:
        vestige.instant("asked", number=number)
    await queue.get()
    time.sleep(0.001)


async def answers(queue, count):
    for _ in range(count):
        await asyncio.sleep(0.002)
        queue.put_nowait(1)


async def main():
    queue = asyncio.Queue()
    tasks = [asyncio.create_task(asks(queue, number), name=f"asks {number}") for number in range(12)]
    forever = asyncio.create_task(asks(queue, 99), name="for ever")
    await answers(queue, len(tasks))
    await asyncio.gather(*tasks)
    forever.cancel()


asyncio.run(main())
"""
SCHED = ["--sched"] if vestige._core.can_see_switches() == 0 else []
SEEN = pytest.mark.skipif(not SCHED, reason="the system does not tell when threads run")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    workplace = Workplace(tmp_path_factory.mktemp("written"))
    workplace.write("app.py", PROGRAM)
    assert workplace.trace("--exceptions", *SCHED, "app.py").returncode == 0
    return workplace


def written(browser, place, name="page.html"):
    page = browser.open((place.path / name).as_uri())
    page.set_size(1366, 768)
    page.wait("document.getElementById('loading').hidden && vestige.tasks.groups.size > 0")
    return page


@pytest.fixture(scope="module")
def both(browser, place):
    """Opens the written page, and a server of the same trace."""
    assert view.main([str(place.path / "t.vst"), "--html", str(place.path / "page.html"), "--all"]) == 0
    page = written(browser, place)
    with serving(place.path / "t.vst") as server:
        client = Client(server)
        yield page, client
        client.connection.close()
    assert page.errors() == []
    page.close()


def ask(page, call):
    return page.eval(f"vestige.source.{call}")


def picture(page, client, wish):
    """Returns what the page and the server draw for each lane: [(lane, row, start, end, id, count)], in parts of the
    window.
    """
    told = page.eval(f"vestige.source.laneWindow({json.dumps(wish)}).then(buffer => [...new Uint8Array(buffer)])")
    query = f"kind={wish['kind']}&from={wish['from']}&to={wish['to']}&pixels={wish['pixels']}"
    asked = ",".join(map(str, wish["threads"]))
    served = client.ask(f"/api/lanes/window?{query}&lanes={asked}").body
    scale = 1000 / (wish["to"] - wish["from"])
    return [
        [
            (rect.thread, rect.depth, round(rect.start * scale), round(rect.end * scale), rect.id, rect.count)
            for rect in read_window(data)
        ]
        for data in (bytes(told), served)
    ]


@pytest.mark.parametrize("kind", ["marks", "tasks", pytest.param("states", marks=SEEN)])
def test_lanes_are_told_as_the_server_tells_them(both, kind):
    page, client = both
    told = client.get("lanes", kind=kind)
    assert ask(page, f"lanes(0, '{kind}')") == told and told["lanes"]
    end = client.get("info")["duration_ns"] + 1
    first = told["lanes"][0]["first"] or len(told["lanes"])
    inner = client.get("lanes", kind=kind, first=first, count=100)
    assert ask(page, f"lanes(0, '{kind}', {first}, 100)") == inner
    for lane in (each["lane"] for each in told["lanes"] + inner["lanes"]):
        found = client.get("lanes/between", kind=kind, lanes=lane, from_=0, to=end, most=50)
        assert ask(page, f"laneBetween(0, '{kind}', [{lane}], 0, {end}, 50)") == found
        for item in found["items"][:20]:
            place = {"lane": lane, "row": item["row"], "time": (item["start_ns"] + item["end_ns"]) // 2}
            shown = client.get("lanes/at", kind=kind, **place)
            assert ask(page, f"laneAt(0, '{kind}', {lane}, {place['row']}, {place['time']})") == shown
            assert shown is not None
    lanes = [each["lane"] for each in told["lanes"] + inner["lanes"]]
    for start, stop in ((0, end), (end // 3, end // 2)):
        wish = {"trace": 0, "kind": kind, "from": start, "to": stop, "pixels": 500, "threads": lanes}
        drawn, expected = picture(page, client, wish)
        assert abs(len(drawn) - len(expected)) <= 2 and sum(one[5] for one in drawn) == sum(one[5] for one in expected)


def test_calls_are_told_as_the_server_tells_them(both):
    page, client = both
    names = client.get("names")["names"]
    ids = [number for number, name in enumerate(names) if name and name[1] in ("fails", "answers", "main", "asks")]
    after, seen = -1, []
    while found := client.post("next", ids=ids, after=after, back=False):
        after = found["start_ns"]
        if "lanes" in found:
            continue
        place = [found["thread"], found["depth"], (found["start_ns"] + found["end_ns"]) // 2]
        span = client.get("span", thread=place[0], depth=place[1], time=place[2])
        told = ask(page, "span(0, {}, {}, {})".format(*place))
        assert {key: told.get(key) for key in span if key not in ("thread", "allocations", "flags", "parents")} == {
            key: value for key, value in span.items() if key not in ("thread", "allocations", "flags", "parents")
        }
        assert [flag for flag in span["flags"] if flag in ("raised", "open at end")] == told["flags"]
        assert [
            {key: one[key] for key in each} for each, one in zip(span["parents"], told["parents"], strict=True)
        ] == (span["parents"])
        seen += told["flags"]
    assert seen.count("raised") >= 12


def test_flame_graphs_of_a_range_are_those_of_the_server(both):
    page, client = both
    end = client.get("info")["duration_ns"]
    for start, stop in ((0, end), (end // 3, end // 2)):
        expected = client.get("flame", from_=start, to=stop)
        told = ask(page, f"flame(0, {start}, {stop})")
        assert tree_of(told["rows"]) == tree_of(expected["rows"]) != {}


def tree_of(rows):
    """Returns, by path of ids: calls, own and total time, bytes."""
    paths, tree = [], {}
    for parent, number, *values in zip(*(rows[name] for name in COLUMNS), strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), number))
        tree[paths[-1]] = values
    return tree


COLUMNS = ("parent", "id", "calls", "self_ns", "total_ns", "self_bytes")


def test_searches_visit_what_the_server_visits(both):
    page, client = both
    names = client.get("names")["names"]
    ids = [number for number, name in enumerate(names) if name and name[1] in ("asked", "LookupError", "fails")]
    after, visited = -1, []
    while found := client.post("next", ids=ids, after=after, back=False):
        told = ask(page, f"next(0, {ids}, {after}, false)")
        assert told == {key: found[key] for key in told}
        visited.append(found.get("lanes"))
        after = found["start_ns"]
    assert {"marks", None} == set(visited)


@SEEN
def test_running_times_are_told_as_the_server_tells_them(both):
    page, client = both
    end = client.get("info")["duration_ns"]
    span = client.get("span", thread=1, depth=0, time=end // 2)
    told = ask(page, f"span(0, 1, 0, {end // 2})")
    assert {key: told[key] for key in span if key.endswith("_ns")} == {
        key: value for key, value in span.items() if key.endswith("_ns")
    }


def test_what_is_too_much_is_left_out_or_coarser(browser, place, monkeypatch):
    monkeypatch.setattr(embed_lanes, "ITEMS_MAX", {"devices": 5, "marks": 5, "states": 3, "tasks": 28})
    assert view.main([str(place.path / "t.vst"), "--html", str(place.path / "small.html")]) == 0
    page = written(browser, place, "small.html")
    told = text(page, "#banners")
    assert "steps and waits of tasks are not shown" in told and "marks of exceptions and instants are not shown" in told
    marks = ask(page, "lanes(0, 'marks')")
    end = ask(page, "info()")["duration_ns"]
    lane = marks["lanes"][0]["lane"]
    assert 0 < ask(page, f"laneBetween(0, 'marks', [{lane}], 0, {end}, 50)")["count"] <= 5 and marks["left_out"][0] > 20
    if SCHED:
        with serving(place.path / "t.vst") as server:
            client = Client(server)
            lanes = [each["lane"] for each in client.get("lanes", kind="states")["lanes"]]
            wish = {"trace": 0, "kind": "states", "from": 0, "to": end, "pixels": 64, "threads": lanes}
            drawn, expected = picture(page, client, wish)
            client.connection.close()
        assert 0 < len(drawn) < 3 * 300 * len(lanes)
        assert sum(one[5] for one in drawn) == sum(one[5] for one in expected)
        assert "running_ns" not in ask(page, f"span(0, 1, 0, {end // 2})")
    assert page.errors() == []
    page.close()
