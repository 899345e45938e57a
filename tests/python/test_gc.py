"""Garbage collections are spans, with their generation and the number of objects found."""

import gc
import threading

from other_builds import HERE
from tree import calls, load, record
from vestige import profile


class Node:
    pass


def make_cycles(count):
    for _ in range(count):
        node = Node()
        node.self = node


def collections(trace):
    return [event for event in calls(trace) if event["name"] == "Python GC"]


def test_a_collection_is_a_span_with_generation_and_counts():
    gc.collect()

    def outer():
        make_cycles(10)
        gc.collect()

    (span,) = collections(record(outer))
    assert span["cat"] == "python_function"
    assert span["dur"] > 0
    assert span["args"]["generation"] == 2
    assert span["args"]["collected"] >= 10
    assert span["args"]["uncollectable"] == 0


def test_a_collection_is_recorded_where_calls_are_not():
    prof = profile(with_stack=False)
    with prof:
        make_cycles(10)
        gc.collect()
        sorted([3, 1, 2], key=lambda item: item)  # would call a hook that a stop left behind
    trace = load(prof)
    assert {event["name"] for event in calls(trace)} == {"Python GC"}
    assert sum(span["args"]["collected"] for span in collections(trace)) >= 10


def test_every_generation_is_told_apart():
    def outer():
        gc.collect(0)
        gc.collect(1)
        gc.collect(2)

    assert [span["args"]["generation"] for span in collections(record(outer))] == [0, 1, 2]


def test_a_collection_lies_inside_the_call_that_caused_it():
    def outer():
        gc.collect()

    trace = record(outer)
    (span,) = collections(trace)
    (call,) = [event for event in calls(trace) if event["name"] == "<built-in function collect>"]
    assert span["args"]["Python parent id"] == call["args"]["Python id"]


def test_finalizers_run_inside_the_collection():
    class Loud:
        def __del__(self):
            pass

    def outer():
        loud = Loud()
        loud.self = loud
        del loud
        gc.collect()

    trace = record(outer)
    (span,) = collections(trace)
    (call,) = [event for event in calls(trace) if event["name"].endswith("__del__")]
    assert call["args"]["Python parent id"] == span["args"]["Python id"]


def test_collections_can_be_left_out():
    assert collections(record(gc.collect, gc=False)) == []


def test_the_callback_is_there_only_while_recording():
    before = list(gc.callbacks)
    with profile():
        assert len(gc.callbacks) == len(before) + 1
    assert gc.callbacks == before


def test_callbacks_of_the_program_stay_where_they_are():
    seen = []

    def mine(phase, info):
        seen.append(phase)

    gc.callbacks.append(mine)
    try:
        with profile() as prof:
            gc.collect()
        assert gc.callbacks[-1] is mine
    finally:
        gc.callbacks.remove(mine)
    assert seen == ["start", "stop"]
    assert len(collections(load(prof))) >= 1


def test_threads_collect_and_change_the_list_while_recordings_start_and_stop():
    before, over, missed = list(gc.callbacks), threading.Event(), []

    def mine(phase, info):
        pass

    def change():
        while not over.is_set():
            gc.callbacks.append(mine)
            gc.collect(0)
            if mine not in gc.callbacks:
                missed.append(list(gc.callbacks))
                return
            gc.callbacks.remove(mine)

    def collect():
        while not over.is_set():
            gc.collect(0)

    # Without the GIL, the interpreter crashes if the program changes this list while another thread collects.
    others = (collect, collect) if HERE["nogil"] else (change, collect)
    threads = [threading.Thread(target=function) for function in others]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            with profile():
                pass
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert missed == []
    assert gc.callbacks == before


def test_a_callback_list_that_the_program_empties_hurts_nobody():
    before = list(gc.callbacks)
    try:
        with profile():
            gc.callbacks.clear()
            gc.collect()
    finally:
        gc.callbacks[:] = before


def test_collections_by_themselves_are_recorded():
    threshold = gc.get_threshold()
    with profile() as prof:
        gc.set_threshold(50)
        kept = []
        # without the GIL, the collector also waits for a quarter more objects
        for _ in range(200_000 if HERE["nogil"] else 2000):
            kept.append([])
        gc.set_threshold(*threshold)
    spans = collections(load(prof))
    assert len(spans) >= 1
    assert all(span["args"]["collected"] >= 0 for span in spans)
