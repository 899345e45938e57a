"""Devices in the viewer: lanes of their streams, pictures of the lanes, and how the page shows them."""

import json
import random
import struct

import pytest

import handmade as h
from handmade_devices import ANNOTATION, COPY, KERNEL, OPERATOR, Work, device, ticks
from vestige import Trace
from vestige._core import Lanes
from vestige.reading.activities import RUNTIME, Activities
from vestige.reading.inputs import find_traces
from vestige.viewer.traces import Traces
from view_page import WAYS, close_to, fill_of, length_in_tip, settle, shown, text, x_of
from viewing import Client, read_window, serving

pytestmark = pytest.mark.any_python
GRID = '"grid": [4, 2, 1], "registers per thread": 32'
MEMCPY = "Memcpy HtoD (Pageable -> Device)"
MANY = 30_000
DEEP = 40  # nested calls


def write(folder):
    """Writes two kernels and a copy on one stream, and a kernel on another stream at the same time."""
    work = Work()
    for depth in range(DEEP):
        work.span(h.PYTHON, f"level <b>{depth}</b>", 50 + depth, 950 - depth)
    work.span(ANNOTATION, "step", 100, 900)
    work.span(OPERATOR, "aten::mm", 200, 800)
    work.launch("gemm", 300, 1000, 2000, correlation=5, attributes=GRID)
    work.launch("gemm", 850, 2000, 2500, correlation=6)
    work.launch("<img src=x onerror=alert(1)>", 400, 1500, 1800, correlation=7, stream=20)
    work.launch(MEMCPY, 500, 2600, 3100, correlation=8, kind=COPY, size=4_000_000)
    work.activity(KERNEL, "orphan", 3200, 3300, correlation=99, stream=20)
    (folder / "t.vst").write_bytes(work.trace(device("A <i>GPU</i>", attributes='"numSms": 108')))
    (folder / "plain.vst").write_bytes(
        h.trace(h.definitions(h.thread(), h.define(1)), h.records(h.enter(1), h.leave(1)))
    )


def activities_of(trace):
    return Activities.of(trace.tables(["activities"])["activities"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("devices")
    write(folder)
    return folder


# ---- lanes, against the rows of the trace -------------------------------------------


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A trace with one very busy stream and another that does little at the same time."""
    chance, work, at = random.Random(7), Work(), 100.0
    work.span(ANNOTATION, "step", 10, 900_000)
    for number in range(MANY):
        length = chance.choice([0.5, 2, 8])
        name, stream = f"kernel {chance.randrange(5)}", 7 if number % 10 else 8
        work.activity(KERNEL, name, at, at + length, correlation=number + 1, stream=stream)
        at += chance.choice([0, 0.5, 3]) + length
    path = tmp_path_factory.mktemp("busy") / "busy.vst"
    path.write_bytes(work.trace(device()))
    return Trace(str(path))


def test_every_activity_is_in_its_lane(busy):
    lanes, rows = Lanes(busy, "devices"), activities_of(busy)
    assert rows.count == MANY and lanes.left_out() == (0, 0)
    told = [tuple(each[name] for name in ("device", "stream", "thread", "rows", "items")) for each in lanes.lanes()]
    assert told == [(1, 7, 0, 1, 27_000), (1, 8, 0, 1, 3_000)]
    for number in range(0, MANY, 97):
        found = lanes.item(number)
        told = {name: found[name] for name in ("start_ns", "end_ns", "id", "device", "launch")}
        assert told == {
            "start_ns": rows.start_ns[number],
            "end_ns": rows.end_ns[number],
            "id": rows.func[number],
            "device": rows.device[number],
            "launch": rows.launch[number],
        }
        assert (found["lane"], found["row"]) == (int(rows.stream[number] == 8), 0)
        assert lanes.at(found["lane"], 0, (found["start_ns"] + found["end_ns"]) // 2) == found


def test_a_picture_of_all_has_all_and_is_small(busy):
    lanes = Lanes(busy, "devices")
    first, second = lanes.lanes()
    start = first["start_ns"]
    data = lanes.draw(min(start, second["start_ns"]), max(first["end_ns"], second["end_ns"]), 1000, [0, 1])
    rects = read_window(data)
    assert sum(rect.count for rect in rects) == MANY and len(rects) < 4500
    assert struct.unpack_from("<I", data, 12)[0] > 0  # drawn from runs
    close = read_window(lanes.draw(start, start + 50_000, 1000, [0]))
    assert all(rect.count == 1 for rect in close) and 5 < len(close) < 60


def test_sums_are_those_of_the_activities(busy):
    rows = activities_of(busy)
    sums = {}
    for func, start, end in zip(rows.func, rows.start_ns, rows.end_ns):
        count, ns = sums.get(func, (0, 0))
        sums[func] = count + 1, ns + end - start
    assert {row.func: (row.activities, row.total_ns) for row in busy.tables(["device_sums"])["device_sums"]} == sums
    (one,) = busy.info()["devices"]
    assert (one["platform"], one["ordinal"]) == ("cuda", 0)
    whole, *streams = busy.tables(["device_uses"])["device_uses"]
    assert [each.stream for each in streams] == [7, 8] and whole.stream is None
    assert sum(each.works for each in streams) == whole.works == MANY
    assert sum(each.busy_ns for each in streams) == sum(ns for _, ns in sums.values())


def test_a_search_counts_and_finds_activities(busy):
    lanes = Lanes(busy, "devices")
    start, end = (lanes.lanes()[0][name] for name in ("start_ns", "end_ns"))
    (wanted,) = [id for id, known in enumerate(busy.definitions()) if known and known[1] == "kernel 3"]
    counts = [each for (each,) in struct.iter_unpack("<I", lanes.find([wanted], start, end + 1, 50))]
    (count,) = [row.activities for row in busy.tables(["device_sums"])["device_sums"] if row.func == wanted]
    assert sum(counts) == count
    found = lanes.next([wanted], start - 1, False)
    again = lanes.next([wanted], found["end_ns"], True)
    assert again == found and lanes.next([wanted], found["start_ns"], True) is None


def test_what_came_from_a_call_is_linked_to_it(folder):
    lanes = Lanes(Trace(str(folder / "t.vst")), "devices")
    found = [item for number in range(10) if (item := lanes.item(number))]
    assert len(found) == 9 and lanes.item(9) is None
    for item in found:
        linked, count = lanes.linked(item["number"], 5)
        assert count == len(linked) and all(each["launch"] == item["number"] + 1 for each in linked)
    assert sorted(len(lanes.linked(each["number"], 5)[0]) for each in found) == [0] * 5 + [1] * 4
    assert lanes.linked(1 << 31, 5) == ([], 0)


def test_a_trace_without_devices_has_none(folder):
    trace = Trace(str(folder / "plain.vst"))
    assert "devices" not in trace.info() and activities_of(trace).count == 0


# ---- the server -------------------------------------------------------------------


def test_the_server_tells_of_devices_and_what_they_did(folder):
    with serving(folder / "t.vst") as server:
        client = Client(server)
        assert client.get("info")["traces"][0]["devices"]
        told, names = client.get("lanes", kind="devices"), client.get("names")["names"]
        assert [(one["name"], one["attributes"]) for one in told["devices"]] == [("A <i>GPU</i>", {"numSms": 108})]
        calls, first, second = told["lanes"]
        assert (calls["device"], calls["thread"], first["stream"], second["stream"]) == (0, 1, 7, 20)

        def at(item):
            return client.get("lanes/at", kind="devices", lane=item["lane"], row=item["row"], time=item["start_ns"])

        def name(number):
            return names[number][1]

        copy = at({**first, "row": 0, "start_ns": first["end_ns"] - 1000})
        assert (name(copy["id"]), copy["kind"], copy["bytes"]) == (MEMCPY, COPY, 4_000_000)
        assert (name(copy["launch"]["id"]), name(copy["op"])) == ("cudaMemcpyAsync", "aten::mm")
        kernel = at({**first, "row": 0})
        assert kernel["args"] == {"grid": [4, 2, 1], "registers per thread": 32}
        assert (kernel["correlation"], name(kernel["annotation"])) == (5, "step")
        launch = kernel["launch"]
        call = client.get("call", thread=1, time=launch["start_ns"], id=kernel["op"])
        assert (call["id"], call["depth"]) == (kernel["op"], DEEP + 1)
        call = at(launch)
        assert (call["kind"], call["linked_count"]) == (RUNTIME, 1)
        assert call["linked"][0]["start_ns"] == kernel["start_ns"]
        orphan = at({**second, "row": 0, "start_ns": second["end_ns"]})
        assert (name(orphan["id"]), orphan["launch"], orphan["op"]) == ("orphan", None, 0)
        client.connection.close()


def test_searches_find_kernels(folder):
    with serving(folder / "t.vst") as server:
        client = Client(server)
        names = client.get("names")["names"]
        (gemm,) = [id for id, one in enumerate(names) if one and one[1] == "gemm"]
        duration = client.get("info")["duration_ns"]
        found = client.post("find", ids=[gemm], from_=0, to=duration, pixels=100)
        assert (found["total"], sum(found["counts"])) == (2, 2)
        first = client.post("next", ids=[gemm], after=-1, back=False)
        assert (first["lanes"], first["lane"], first["row"]) == ("devices", 1, 0)
        last = client.post("next", ids=[gemm], after=duration, back=True)
        assert last["start_ns"] == first["start_ns"] + 1_000_000
        client.connection.close()


def test_bad_questions_get_a_line(folder):
    with serving(folder / "t.vst") as server:
        client = Client(server)
        assert client.error("/api/lanes/at?kind=devices&lane=x&row=0&time=5") == (400, "lane: not an integer")
        assert client.error("/api/lanes/window?kind=devices&from=5&to=5&pixels=9&lanes=0") == (
            400,
            "from must be less than to",
        )
        assert client.get("lanes/at", kind="devices", lane=77, row=0, time=5) is None
        client.connection.close()
    with serving(folder / "plain.vst") as server:
        client = Client(server)
        assert not client.get("info")["traces"][0]["devices"]
        assert client.get("lanes", kind="devices") == {"lanes": [], "left_out": [0, 0]}
        assert client.error("/api/lanes/at?kind=devices&lane=0&row=0&time=5") == (404, "the trace has no devices")
        client.connection.close()


def test_what_is_on_no_stream_has_a_lane(tmp_path):
    work = Work()
    work.span(OPERATOR, "aten::mm", 200, 5000)
    work.activity(KERNEL, "gemm", 300, 400, correlation=1, stream=0xFFFF_FFFF)
    (tmp_path / "t.vst").write_bytes(work.trace(device()))
    with serving(tmp_path / "t.vst") as server:
        client = Client(server)
        (lane,) = client.get("lanes", kind="devices")["lanes"]
        found = client.get("lanes/at", kind="devices", lane=0, row=0, time=lane["start_ns"])
        assert (lane["stream"], client.get("names")["names"][found["id"]][1]) == (-1, "gemm")
        client.connection.close()


# ---- the page ---------------------------------------------------------------------


@pytest.fixture(scope="module", params=WAYS)
def page(folder, browser, request):
    ready = "document.getElementById('loading').hidden && vestige.devices.groups.size > 0"
    with shown(request.param, folder, browser, ready) as page:
        show_all(page)
        yield page


def settle_devices(page):
    page.wait("vestige.windows.settled && vestige.lanes.settled && vestige.stage.pending === null")
    settle(page)


def show_all(page):
    page.eval("vestige.view.show(0, 3400000), vestige.stage.rows.scrollTop = 0")
    settle_devices(page)


def tracks(page):
    return page.eval(
        "vestige.timeline.tracks.map(one => [one.type, one.device?.name ?? one.lane?.title ?? one.thread?.name ?? ''])"
    )


def y_of_lane(page, lane, row=0):
    page.eval(f"vestige.stage.scrollTo(0, {lane}, {row}, {{ kind: 'devices' }})")
    settle_devices(page)
    top = page.eval(
        "document.getElementById('rows').getBoundingClientRect().top + "
        f"vestige.timeline.stream(0, {lane}).top - vestige.stage.rows.scrollTop"
    )
    return top + 18 * row + 9


def at(us):
    """Returns a moment in the page, whose time begins with the recording."""
    return ticks(us) - ticks(0)


def choose(page, lane, us):
    y = y_of_lane(page, lane)
    page.click(x_of(page, at(us)), y)
    page.wait(f"vestige.view.span?.kind === 'devices' && vestige.view.span.thread === {lane}")
    settle_devices(page)


def titles(page, kind):
    """Returns the second lines of the gutter's texts about lanes, shown while the pointer is on the lanes' names."""
    found = f"[...document.querySelectorAll('#gutter .{kind} button')].map(one => one.title.split('\\n')[1])"
    return page.eval(found)


def test_a_device_is_a_group_with_a_lane_for_each_stream(page):
    show_all(page)
    shown = tracks(page)
    assert shown[1][0] == "thread" and shown[2][0] == "more" and shown[3] == ["stream", "runtime calls"]
    assert shown[4:7] == [["device", "A <i>GPU</i>"], ["stream", "stream 7"], ["stream", "stream 20"]]
    assert "cuda 0: A <i>GPU</i>" in text(page, "#gutter")  # as text
    assert titles(page, "stream")[:2] == ["4 activities, busy 40 µs", "3 activities, busy 2 ms, 3.81 MiB"]
    assert "NaN" not in text(page, "#gutter")
    page.eval("document.querySelector('#gutter .device button').click()")
    assert ["stream", "stream 7"] not in tracks(page) and ["stream", "runtime calls"] in tracks(page)
    settle_devices(page)
    page.eval("document.querySelector('#gutter .device button').click()")
    assert ["stream", "stream 7"] in tracks(page)


def test_kernels_are_drawn_where_they_ran(page):
    show_all(page)
    y = y_of_lane(page, 1)
    page.mouse("mouseMoved", 400, 20)
    settle_devices(page)
    picture = page.screenshot()
    assert close_to(picture.at(x_of(page, at(1700)), y + 6), fill_of(page, "gemm"))
    assert close_to(picture.at(x_of(page, at(2900)), y + 6), fill_of(page, MEMCPY))
    assert not close_to(picture.at(x_of(page, at(700)), y + 6), fill_of(page, "gemm"))


def test_details_tell_what_launched_a_kernel_and_what_was_copied(page):
    show_all(page)
    choose(page, 1, 1500)
    shown = text(page, "#details")
    assert shown.startswith("gemm") and "kernel" in shown and "1 ms" in shown
    for each in ("cuda 0", "registers per thread", "[4,2,1]", "cudaLaunchKernel", "aten::mm", "step", "700 µs"):
        assert each in shown
    page.eval("document.querySelector('#details button[data-to=launch]').click()")
    page.wait("document.getElementById('details').innerText.includes('runtime call')")
    assert "Launched 1" in text(page, "#details") and "cbid" in text(page, "#details")
    page.eval("document.querySelector('#details button[data-to=launched]').click()")
    page.wait("document.getElementById('details').innerText.startsWith('gemm')")
    page.eval("document.querySelector('#details button[data-to=operator]').click()")
    page.wait("document.getElementById('details').innerText.startsWith('aten::mm')")
    show_all(page)
    choose(page, 1, 2900)
    assert "8.000 GB/s" in text(page, "#details") and "4 000 000 bytes" in text(page, "#details")


def test_names_from_a_trace_are_text(page):
    show_all(page)
    choose(page, 2, 1650)
    assert text(page, "#details").startswith("<img src=x onerror=alert(1)>")
    assert page.eval("document.querySelectorAll('#details img').length") == 0


def ink(page):
    """Returns how much is drawn above the spans: the sum of all bytes of pixels."""
    page.mouse("mouseMoved", 400, 20)
    settle_devices(page)
    return page.eval(
        "vestige.stage.overlay.context.getImageData(0, 0, vestige.stage.overlay.canvas.width, "
        "vestige.stage.overlay.canvas.height).data.reduce((sum, byte) => sum + byte, 0)"
    )


def test_an_arrow_leads_from_the_call_to_the_kernel(page):
    show_all(page)
    choose(page, 2, 3250)  # a kernel whose launch is unknown
    y_of_lane(page, 1)
    assert page.eval("vestige.devices.arrows()") == []
    without = ink(page)
    choose(page, 2, 1650)
    y_of_lane(page, 1)
    arrows = page.eval("vestige.devices.arrows()")
    assert [(one["from"]["lane"], one["to"]["lane"]) for one in arrows] == [(0, 2)]
    assert (arrows[0]["from"]["time"], arrows[0]["to"]["time"]) == (at(400), at(1500))
    assert ink(page) > without + 50_000
    choose(page, 0, 405)
    assert [one["to"]["time"] for one in page.eval("vestige.devices.arrows()")] == [at(1500)]
    page.eval("vestige.view.selectSpan(null)")
    assert page.eval("vestige.devices.arrows()") == []


def test_a_search_goes_from_kernel_to_kernel(page):
    show_all(page)
    page.eval("document.getElementById('query').value = 'gemm', vestige.search.run()")
    page.wait("document.getElementById('matches').innerText.includes('2 here')")
    page.eval("vestige.search.go(false)")
    page.wait(f"vestige.view.span?.kind === 'devices' && vestige.view.span.start === {at(1000)}")
    page.eval("vestige.search.go(false)")
    page.wait(f"vestige.view.span.start === {at(2000)}")
    page.eval("vestige.search.go(false)")
    page.wait(f"vestige.view.span.start === {at(1000)}")  # starts again at the first kernel
    page.eval("document.getElementById('query').value = '', vestige.search.run(), vestige.escape()")
    settle_devices(page)


def test_keys_walk_along_a_stream(page):
    show_all(page)
    choose(page, 1, 1500)
    page.eval("vestige.walk('ArrowRight')")
    page.wait(f"vestige.view.span.start === {at(2000)}")
    page.eval("vestige.walk('ArrowRight')")
    page.wait(f"vestige.view.span.start === {at(2600)}")
    page.eval("vestige.escape()")


def test_a_tip_names_the_stream(page):
    show_all(page)
    y = y_of_lane(page, 1)
    page.mouse("mouseMoved", x_of(page, at(1500)), y)
    page.wait("document.getElementById('tip').innerText.includes('gemm')")
    assert "cuda 0, stream 7" in text(page, "#tip")
    page.mouse("mouseMoved", 400, 20)


def test_a_tip_tells_the_length_of_a_kernel_that_is_only_partly_shown(page):
    show_all(page)
    y = y_of_lane(page, 1)
    page.eval(f"vestige.view.show({at(1200)}, {at(1400)})")
    settle_devices(page)
    page.mouse("mouseMoved", x_of(page, at(1300)), y)
    page.wait("document.getElementById('tip').innerText.includes('gemm')")
    assert length_in_tip(page) == 1e6
    page.mouse("mouseMoved", 400, 20)


def test_lanes_fold(page):
    show_all(page)
    assert json.loads(page.eval("JSON.stringify(vestige.timeline.stream(0, 1).folded)")) is False
    page.eval("vestige.timeline.toggle('s0:1'), vestige.stage.arranged()")
    settle_devices(page)
    assert page.eval("vestige.timeline.stream(0, 1).folded")
    page.eval("vestige.goToActivity(0, { lane: 1, row: 0, start_ns: 1000000, end_ns: 2000000, id: 0 })")
    page.wait("!vestige.timeline.stream(0, 1).folded")
    settle_devices(page)


def test_a_page_that_follows_says_that_devices_are_not_shown(page, folder):
    traces = Traces(find_traces([str(folder / "t.vst")]).sources, keep=False)
    with serving(traces) as server:
        client = Client(server)
        told = client.get("info")["traces"][0]
        assert (told["devices"], told["devices_not_followed"]) == (True, False)
        traces[0].live = True
        told = client.get("info")["traces"][0]
        assert (told["devices"], told["devices_not_followed"]) == (False, True)
        client.connection.close()
    page.eval("vestige.devices.load({ trace: 5, devices: false, devices_not_followed: true })")
    assert "not shown while a recording is followed" in text(page, "#banners")
    page.eval("vestige.banners.show('live5', null)")
