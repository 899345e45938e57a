"""Greenlets exchange a thread's call stack: spans still nest after a switch, and every call is counted."""

import functools
import threading
import weakref

import pytest

from tree import calls, load, names, record, short, spans_of, tree
from vestige import Trace, profile

greenlet = pytest.importorskip("greenlet")


def leaf():
    pass


def marks(trace, name):
    return [
        sorted(set(event["args"]) & {"cut", "suspended", "resumed", "raised", "open at start", "open at end"})
        for event in calls(trace)
        if short(event["name"]) == name
    ]


def test_a_switch_and_back_nests():
    def child():
        leaf()
        main.switch()
        leaf()

    def outer():
        nonlocal main
        main = greenlet.getcurrent()
        other = greenlet.greenlet(child)
        other.switch()
        leaf()
        other.switch()
        leaf()

    main = None
    trace = record(outer)
    counts = names(trace)
    assert counts["leaf"] == 4
    assert counts["child"] == 1
    assert counts["outer"] == 1
    assert marks(trace, "child") == [["suspended"], ["resumed"]]
    assert marks(trace, "leaf") == [[]] * 4
    assert not [event for event in calls(trace) if event["args"].get("cut")]


def test_the_pieces_of_a_call_on_one_track_make_up_the_whole():
    def child():
        inner()

    def inner():
        main.switch()
        leaf()

    def outer():
        nonlocal main
        main = greenlet.getcurrent()
        other = greenlet.greenlet(child)
        other.switch()
        leaf()
        other.switch()

    main = None
    trace = record(outer)
    roots = [span for root in spans_of(trace) for span in root.walk()]
    resumed = [span for span in roots if short(span.name) == "inner" and "resumed" in span.marks]
    (piece,) = resumed
    assert short(piece.parent.name) == "child"
    assert "leaf" in [short(child.name) for child in piece.children]


def test_many_greenlets_interleaved_at_random_keep_their_counts():
    import random

    rng = random.Random(7)
    made = []

    def deep(n):
        leaf()
        if n:
            deep(n - 1)
        main.switch()
        leaf()

    def outer():
        nonlocal main
        main = greenlet.getcurrent()
        for _ in range(30):
            made.append(greenlet.greenlet(deep))
        waiting = list(made)
        while waiting:
            one = rng.choice(waiting)
            one.switch(5) if not one else one.switch()
            if one.dead:
                waiting.remove(one)

    main = None
    counts = names(record(outer))
    assert counts["deep"] == 30 * 6
    assert counts["leaf"] == 30 * 6 * 2


def test_greenlets_that_switch_among_themselves():
    def ping(n):
        while n:
            leaf()
            n = pong_greenlet.switch(n - 1)

    def pong(n):
        while n:
            leaf()
            n = ping_greenlet.switch(n - 1)

    ping_greenlet = pong_greenlet = None

    def outer():
        nonlocal ping_greenlet, pong_greenlet
        ping_greenlet, pong_greenlet = greenlet.greenlet(ping), greenlet.greenlet(pong)
        ping_greenlet.switch(50)

    counts = names(record(outer))
    assert counts["leaf"] == 50
    assert counts["ping"] == counts["pong"] == 1


def test_an_exception_that_ends_a_greenlet_goes_to_its_parent():
    def child():
        leaf()
        raise KeyError

    def outer():
        try:
            greenlet.greenlet(child).switch()
        except KeyError:
            leaf()

    trace = record(outer)
    assert names(trace)["leaf"] == 2
    assert marks(trace, "child") == [["raised"]]


def test_throw_into_a_greenlet_and_into_one_that_never_ran():
    def child():
        try:
            main.switch()
        except KeyError:
            leaf()

    def outer():
        nonlocal main
        main = greenlet.getcurrent()
        other = greenlet.greenlet(child)
        other.switch()
        other.throw(KeyError)
        try:
            greenlet.greenlet(child).throw(KeyError)
        except KeyError:
            leaf()

    main = None
    trace = record(outer)
    assert names(trace)["leaf"] == 2
    assert names(trace)["child"] == 1


def test_a_greenlet_dropped_half_way_is_ended():
    def child():
        try:
            main.switch()
        finally:
            leaf()

    def outer():
        nonlocal main
        main = greenlet.getcurrent()
        other = greenlet.greenlet(child)
        other.switch()
        del other
        leaf()

    main = None
    trace = record(outer)
    assert names(trace)["leaf"] == 2
    assert names(trace)["child"] == 1


def test_a_generator_resumed_in_two_greenlets():
    def numbers():
        for number in range(10):
            leaf()
            yield number

    def child():
        for _ in shared:
            main.switch()

    shared = main = None

    def outer():
        nonlocal shared, main
        main = greenlet.getcurrent()
        shared = numbers()
        others = [greenlet.greenlet(child), greenlet.greenlet(child)]
        while not all(other.dead for other in others):
            for other in others:
                if not other.dead:
                    other.switch()

    counts = names(record(outer))
    assert counts["leaf"] == 10
    assert counts["numbers"] == 11


def test_greenlets_in_several_threads():
    def body():
        def child():
            for _ in range(20):
                leaf()
                main.switch()

        main = greenlet.getcurrent()
        others = [greenlet.greenlet(child) for _ in range(5)]
        for _ in range(20):
            for other in others:
                other.switch()

    def outer():
        crowd = [threading.Thread(target=body) for _ in range(4)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()

    assert names(record(outer))["leaf"] == 4 * 5 * 20


def test_a_greenlet_suspended_before_the_start_and_resumed_after_it():
    def child():
        main.switch()
        leaf()
        main.switch()

    main = greenlet.getcurrent()
    other = greenlet.greenlet(child)
    other.switch()

    def outer():
        leaf()
        other.switch()
        leaf()

    trace = record(outer)
    assert names(trace)["leaf"] in (2, 3)  # hooks of a frame that began earlier are not always active
    assert names(trace)["outer"] == 1
    assert not [event for event in calls(trace) if short(event["name"]) == "outer" and event["args"].get("cut")]
    other.switch()


def test_a_greenlet_resumed_after_the_stop_hurts_nobody():
    def child():
        main.switch()
        leaf()

    main = greenlet.getcurrent()
    other = greenlet.greenlet(child)
    record(other.switch)
    other.switch()
    counts = names(record(leaf))
    assert counts == {"leaf": 1}


def test_start_in_one_greenlet_and_stop_in_another():
    prof = profile()

    def child():
        prof.start()
        leaf()
        main.switch()

    def outer():
        greenlet.greenlet(child).switch()
        leaf()
        prof.stop()

    main = greenlet.getcurrent()
    outer()
    trace = load(prof)
    assert names(trace)["leaf"] == 2


def test_a_trace_function_of_the_program_is_called_and_comes_back():
    seen = []

    def mine(event, arguments):
        seen.append(event)

    before = greenlet.settrace(mine)
    try:
        record(lambda: greenlet.greenlet(leaf).switch())
        assert greenlet.gettrace() is mine
    finally:
        greenlet.settrace(before)
    assert seen.count("switch") >= 2


def test_a_trace_function_that_stops_us_and_is_let_go_of_runs_to_its_end():
    alive = []

    def mine(event, arguments):
        if not alive:
            prof.stop()
            greenlet.settrace(None)
            alive.append(itself() is not None)

    before = greenlet.gettrace()
    called = functools.partial(mine)
    itself = weakref.ref(called)
    greenlet.settrace(called)
    del called
    prof = profile()
    prof.start()
    try:
        leaf()  # any new definition makes us look for greenlets
        greenlet.greenlet(leaf).switch()
    finally:
        greenlet.settrace(before)
    assert alive == [True]
    assert itself() is None


def test_after_stop_no_trace_function_is_left():
    before = greenlet.gettrace()
    record(lambda: greenlet.greenlet(leaf).switch())
    assert greenlet.gettrace() is before


def test_without_switches_greenlet_changes_nothing():
    assert tree(leaf) == "leaf"


def test_gevent_programs_never_mis_nest():
    gevent = pytest.importorskip("gevent")

    def work(number):
        leaf()
        for _ in range(number):
            gevent.sleep(0)
            leaf()
        if number == 3:
            raise KeyError

    def outer():
        jobs = [gevent.spawn(work, number) for number in range(5)]
        gevent.joinall(jobs)

    import gevent.hub

    gevent.hub.Hub.NOT_ERROR = (KeyError,)
    trace = record(outer)
    counts = names(trace)
    assert counts["work"] == 5
    assert counts["leaf"] == 5 + sum(range(5))
    assert not [
        event for event in calls(trace) if short(event["name"]) in ("work", "outer") and event["args"].get("cut")
    ]


def test_gevent_with_queues_and_timeouts():
    gevent = pytest.importorskip("gevent")
    import gevent.queue

    channel = gevent.queue.Queue(2)

    def producer():
        for number in range(20):
            leaf()
            channel.put(number)
        channel.put(None)

    def consumer():
        while channel.get() is not None:
            leaf()

    def outer():
        gevent.joinall([gevent.spawn(producer), gevent.spawn(consumer)], raise_error=True)
        with gevent.Timeout(0.01, False):
            gevent.sleep(10)

    counts = names(record(outer))
    assert counts["leaf"] == 40
    assert counts["producer"] == counts["consumer"] == 1


NAMES = """
from gevent import monkey
monkey.patch_all()
import threading
import gevent
from vestige import profile

def work(number):
    gevent.sleep(0)
    return number

def both():
    thread = threading.Thread(target=work, args=(1,), name="a greenlet")
    thread.start()
    real = gevent.get_hub().threadpool.spawn(work, 2)
    thread.join()
    real.get()

early = threading.Thread(target=gevent.sleep, args=(0.05,), name="an early greenlet")
early.start()
with profile(output="t.vst"):
    both()
    early.join()
"""


def test_the_main_thread_does_not_get_the_name_of_a_greenlet(workplace):
    pytest.importorskip("gevent")
    result = workplace.python("-c", NAMES)
    assert (result.returncode, result.stderr) == (0, "")
    names = Trace(str(workplace.path / "t.vst")).threads()
    assert "MainThread" in str(names)
    assert "greenlet" not in str(names)
