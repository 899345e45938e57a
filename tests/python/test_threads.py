"""Threads of every origin: each thread is a track with its name, and its calls nest."""

import _thread
import ctypes
import re
import subprocess
import sys
import threading
import time

import pytest

import compiled
from tree import calls, calls_of, load, names, record, short, text, threads
from vestige import profile


def leaf():
    pass


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def spans_named(trace, name):
    return [event for event in calls(trace) if short(event["name"]) == name]


def are_nested(tree, *chain):
    """Returns whether one call is inside the other, at any depth: from 3.14 on, Context.run calls Thread.run."""
    inner = "".join(rf"\n\1{'  ' * depth}{name}(?=\n|$)" for depth, name in enumerate(chain[1:], 1))
    return re.search(rf"^( *){chain[0]}{inner}", tree, re.MULTILINE) is not None


@pytest.mark.safe_engine
def test_a_thread_that_runs_already_is_recorded_with_the_frames_it_is_in():
    started, go = threading.Event(), threading.Event()

    def inner():
        started.set()
        go.wait()
        leaf()

    def body():
        inner()
        leaf()

    thread = threading.Thread(target=body, name="early")
    thread.start()
    started.wait()

    def outer():
        go.set()
        thread.join()

    trace = record(outer)
    (root,) = threads(trace)["early"]
    found = {short(span.name): span for span in root.walk()}
    assert found["inner"].parent is found["body"]
    for name in ("body", "inner", "_bootstrap", "_bootstrap_inner", "run"):
        assert "open at start" in found[name].marks
        assert "open at stop" not in found[name].marks
    assert [short(child.name) for child in found["body"].children] == ["inner", "leaf"]
    assert [short(child.name) for child in found["inner"].children][-1] == "leaf"


def test_a_thread_that_never_runs_while_recording_shows_where_it_stands():
    started, go = threading.Event(), threading.Event()

    def stuck():
        started.set()
        go.wait()

    thread = threading.Thread(target=stuck, name="stuck")
    thread.start()
    started.wait()
    trace = record(leaf)
    go.set()
    thread.join()
    found = {short(span.name): span for root in threads(trace)["stuck"] for span in root.walk()}
    assert found["stuck"].marks == ["open at start", "open at stop"]


def test_a_thread_started_while_recording_is_complete():
    def body():
        leaf()

    def outer():
        thread = threading.Thread(target=body, name="during")
        thread.start()
        thread.join()

    trace = record(outer)
    tree = calls_of(trace, "during")
    assert tree.startswith("_bootstrap\n  _bootstrap_inner\n")
    assert are_nested(tree, "run", "body", "leaf")
    assert all("cut" not in line and "open" not in line for line in tree.splitlines())


def test_a_thread_by_the_low_level_module_is_recorded():
    def body():
        leaf()
        done.release()

    done = _thread.allocate_lock()
    done.acquire()

    def outer():
        _thread.start_new_thread(body, ())
        done.acquire()

    trace = record(outer)
    assert names(trace)["body"] == 1
    assert names(trace)["leaf"] == 1
    (body_span,) = spans_named(trace, "body")
    (outer_span,) = spans_named(trace, "outer")
    assert body_span["tid"] != outer_span["tid"]


def test_a_c_function_as_a_thread_body_hurts_nobody():
    def outer():
        lock = _thread.allocate_lock()
        lock.acquire()
        _thread.start_new_thread(lock.release, ())
        lock.acquire()

    assert names(record(outer))["<start_new_thread>"] == 1


C_THREADS = r"""
#include <Python.h>
#include <pthread.h>

static void *run(void *function)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *result = PyObject_CallNoArgs(function);

    Py_XDECREF(result);
    PyGILState_Release(gil);
    return NULL;
}

/* Calls function in a new thread that Python did not make, and waits. */
int call_in_c_thread(PyObject *function)
{
    pthread_t thread;
    int failed;

    Py_BEGIN_ALLOW_THREADS
    failed = pthread_create(&thread, NULL, run, function);
    if (!failed)
        pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS
    return failed;
}

/* The same thread calls function n times, with a thread state for each. */
static int repeats;

static void *run_often(void *function)
{
    for (int i = 0; i < repeats; i++)
        run(function);
    return NULL;
}

int call_often_in_c_thread(PyObject *function, int n)
{
    pthread_t thread;
    int failed;

    repeats = n;
    Py_BEGIN_ALLOW_THREADS
    failed = pthread_create(&thread, NULL, run_often, function);
    if (!failed)
        pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS
    return failed;
}
"""


@pytest.fixture(scope="module")
def c_threads():
    library = ctypes.PyDLL(str(compiled.library(C_THREADS)))
    library.call_in_c_thread.argtypes = [ctypes.py_object]
    library.call_often_in_c_thread.argtypes = [ctypes.py_object, ctypes.c_int]
    return library


def test_a_thread_created_by_c_is_recorded(c_threads):
    """On 3.11, calls of this thread are missing until another traced thread has an event, as documented."""
    ready, go = threading.Event(), threading.Event()

    def in_c_thread():
        ready.set()
        go.wait()
        leaf()
        leaf()

    def helper():
        ready.wait()
        leaf()
        go.set()

    def outer():
        thread = threading.Thread(target=helper)
        thread.start()
        c_threads.call_in_c_thread(in_c_thread)
        thread.join()

    trace = record(outer)
    assert names(trace)["leaf"] == 3
    if sys.version_info >= (3, 12):
        (span,) = spans_named(trace, "in_c_thread")
        assert span["tid"] not in {event["tid"] for event in spans_named(trace, "outer")}


def test_a_c_thread_that_comes_and_goes_hurts_nobody(c_threads):
    def in_c_thread():
        leaf()

    trace = record(lambda: c_threads.call_often_in_c_thread(in_c_thread, 200))
    if sys.version_info >= (3, 12):
        assert names(trace)["in_c_thread"] == 200
        assert names(trace)["leaf"] == 200


def test_threads_have_the_names_python_gives_them():
    def outer():
        for name in ("first", "zweiter é", 'quoted " name'):
            thread = threading.Thread(target=leaf, name=name)
            thread.start()
            thread.join()

    found = threads(record(outer))
    assert {"MainThread", "first", "zweiter é", 'quoted " name'} <= set(found)


def test_a_thread_that_is_renamed_while_recording_has_its_last_name():
    def body():
        threading.current_thread().name = "after"
        leaf()

    def outer():
        thread = threading.Thread(target=body, name="before")
        thread.start()
        thread.join()

    renamed, done = threading.Event(), threading.Event()

    def longer():
        threading.current_thread().name = "renamed"
        renamed.set()
        done.wait()

    def stays():
        thread = threading.Thread(target=longer, name="original")
        thread.start()
        renamed.wait()

    found = threads(record(stays))
    done.set()
    assert "renamed" in found
    assert "original" not in found
    found = threads(record(outer))  # the thread may have ended before its name was read
    assert "after" in found or "before" in found


def test_the_main_thread_may_be_renamed():
    thread = threading.main_thread()
    before = thread.name
    thread.name = "chief"
    try:
        assert "chief" in threads(record(leaf))
    finally:
        thread.name = before


def test_a_subclass_of_thread_and_an_executor_are_recorded():
    from concurrent.futures import ThreadPoolExecutor

    class Mine(threading.Thread):
        def run(self):
            leaf()

    def outer():
        thread = Mine(name="mine")
        thread.start()
        thread.join()
        with ThreadPoolExecutor(3, thread_name_prefix="pool") as pool:
            list(pool.map(lambda _: leaf(), range(50)))

    trace = record(outer)
    assert names(trace)["leaf"] == 51
    assert any(name.startswith("pool_") for name in threads(trace))
    assert are_nested(calls_of(trace, "mine"), "run", "leaf")


def test_a_thread_inside_a_c_call_at_start_returns_without_a_wrong_span():
    lock = threading.Lock()
    lock.acquire()
    started = threading.Event()

    def body():
        started.set()
        lock.acquire()
        leaf()

    thread = threading.Thread(target=body, name="waiting")
    thread.start()
    started.wait()
    time.sleep(0.02)  # into the C call

    def outer():
        lock.release()
        thread.join()

    trace = record(outer)
    (root,) = threads(trace)["waiting"]
    (body_span,) = [span for span in root.walk() if short(span.name) == "body"]
    lines = text([body_span]).splitlines()
    assert lines[0] == "body (open at start)"
    assert lines[-1] == "  leaf"
    assert len(lines) == 2 or lines[1].startswith("  <")
    assert not any("cut" in line for line in lines)


def test_a_thread_inside_a_c_call_across_two_profiles_is_quiet_and_right():
    program = """
import sys, threading, time
from vestige import profile
from tree import load, threads

lock = threading.Lock()
lock.acquire()
first, second, third = threading.Event(), threading.Event(), threading.Event()

def leaf():
    pass

def crossing():
    first.set()
    second.wait()
    lock.acquire()
    leaf()
    third.set()

threading.Thread(target=crossing, name="crossing").start()
with profile() as one:
    first.wait()
    second.set()
    time.sleep(0.05)
with profile() as two:
    lock.release()
    third.wait()
for prof in (one, two):
    for root in threads(load(prof)).get("crossing", []):
        for span in root.walk():
            if span.name.endswith(": crossing"):
                print("\\n".join(span.lines()))
    print("--")
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=compiled.HERE
    )
    assert result.stderr == ""
    one, two, _ = result.stdout.split("--\n")
    assert one.count("leaf") == 0
    assert "<_thread.lock.acquire> (open at stop)" in one
    assert two.count("  leaf") == 1
    assert "cut" not in one + two


def test_two_hundred_threads_at_once():
    count = 200
    barrier = threading.Barrier(count + 1)

    def body():
        leaf()
        barrier.wait()
        leaf()

    def outer():
        crowd = [threading.Thread(target=body, name=f"t{number}") for number in range(count)]
        for thread in crowd:
            thread.start()
        barrier.wait()
        for thread in crowd:
            thread.join()

    limit = threading.stack_size(256 * 1024)
    try:
        trace = record(outer)
    finally:
        threading.stack_size(limit)
    assert names(trace)["leaf"] == 2 * count
    found = threads(trace)
    assert {f"t{number}" for number in range(count)} <= set(found)


def test_five_hundred_threads_that_are_already_there():
    count = 500
    barrier, go = threading.Barrier(count + 1), threading.Event()

    def body():
        barrier.wait()
        go.wait()
        leaf()

    limit = threading.stack_size(256 * 1024)
    try:
        crowd = [threading.Thread(target=body, name=f"t{number}") for number in range(count)]
        for thread in crowd:
            thread.start()
        barrier.wait()
    finally:
        threading.stack_size(limit)

    def outer():
        go.set()
        for thread in crowd:
            thread.join()

    trace = record(outer)
    assert names(trace)["leaf"] == count
    found = threads(trace)
    assert {f"t{number}" for number in range(count)} <= set(found)


def test_threads_that_run_at_once_do_not_mix():
    def worker(number):
        for _ in range(300):
            leaf()
            abs(-1)

    def outer():
        crowd = [threading.Thread(target=worker, args=(n,), name=f"w{n}") for n in range(8)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        trace = record(outer)
    finally:
        sys.setswitchinterval(before)
    for number in range(8):
        lines = calls_of(trace, f"w{number}").splitlines()
        assert sum(line.strip() == "leaf" for line in lines) == 300
        assert sum(line.strip() == "<abs>" for line in lines) == 300


def test_profiles_start_and_stop_while_threads_run():
    stop = False

    def worker():
        while not stop:
            leaf()
            sorted([2, 1], key=abs)

    crowd = [threading.Thread(target=worker, name=f"w{n}") for n in range(3)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)  # otherwise most of the time passes in waiting for other threads
    for thread in crowd:
        thread.start()
    try:
        for _ in range(20):
            with profile() as prof:
                time.sleep(0)
    finally:
        sys.setswitchinterval(before)
        stop = True
        for thread in crowd:
            thread.join()
    assert any(name.startswith("w") for name in threads(load(prof)))


def test_stop_in_another_thread_closes_what_the_first_is_in():
    prof = profile()
    deep, stopped = threading.Event(), threading.Event()

    def inner():
        deep.set()
        stopped.wait()

    def stopper():
        deep.wait()
        prof.stop()
        stopped.set()

    def outer():
        prof.start()
        inner()

    thread = threading.Thread(target=stopper)
    thread.start()
    outer()
    thread.join()
    trace = load(prof)
    (span,) = spans_named(trace, "inner")
    assert span["args"]["open at end"]


def test_a_thread_that_ended_before_the_stop_keeps_its_track():
    def outer():
        for number in range(50):
            thread = threading.Thread(target=leaf, name=f"short{number}")
            thread.start()
            thread.join()

    found = threads(record(outer))
    assert {f"short{number}" for number in range(50)} <= set(found)
    for number in range(50):
        assert text(found[f"short{number}"]).count("leaf") == 1


def test_every_track_has_its_own_thread_id():
    def outer():
        for number in range(30):
            thread = threading.Thread(target=leaf, name=f"short{number}")
            thread.start()
            thread.join()

    trace = record(outer)
    named = [e for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "thread_name"]
    assert len({e["tid"] for e in named}) == len(named)


def test_daemon_threads_at_exit_do_not_crash_the_process():
    program = """
import threading, time
from vestige import profile
def spin():
    while True:
        len([])
prof = profile()
prof.start()
for _ in range(4):
    threading.Thread(target=spin, daemon=True).start()
time.sleep(0.05)
"""
    ends = []
    for _ in range(3):
        result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        ends.append((result.returncode, result.stderr))
    assert set(ends) == {(0, "")}
