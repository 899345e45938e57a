"""The Python stacks of allocations, compared with the interpreter's stack at the same moment."""

import ctypes
import gc
import random
import signal
import sys
import threading
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compiled
from histories import BEYOND, IS_CUT, IS_ENTRY, UNLOCKED, is_ours, record
from other_builds import HERE

SIZE = 100_000  # this size and larger: blocks that the test recognises by their size

C_THREADS = """
#include <pthread.h>
#include <stdlib.h>

void *volatile kept;

void take(long size) { kept = malloc(size); }
void give(void) { free(kept); }

static void *run(void *size) { take((long)size); give(); return NULL; }

void take_elsewhere(long size)
{
    pthread_t thread;
    pthread_create(&thread, NULL, run, (void *)size);
    pthread_join(thread, NULL);
}

void call_then_take(void (*function)(void), long size) { function(); take(size); give(); }
"""


class Moments:
    """Blocks with unique sizes, each with the stack of its allocation."""

    def __init__(self):
        self.expected = {}

    def note(self):
        """Returns the size of the block that the caller allocates in this line, and notes the stack."""
        frame = sys._getframe(1)
        size = SIZE + len(self.expected)
        stack = []
        while frame is not None:
            code = frame.f_code
            stack.append((code.co_qualname, code.co_filename, frame.f_lineno))
            frame = frame.f_back
        self.expected[size] = stack
        return size

    def check(self, history):
        found = {event.size - BEYOND: event for event in history.allocations if event.size > SIZE}
        for size, stack in self.expected.items():
            assert [frame[:3] for frame in history.frames(found[size])] == stack
        assert self.expected


# ---- programs at random ---------------------------------------------------


class Walker:
    """Calls itself in many ways, chosen by a list of numbers."""

    def __init__(self, numbers, moments):
        self.numbers = iter(numbers)
        self.moments = moments

    def step(self, depth):
        number = next(self.numbers, None)
        if number is None or depth > 12:
            bytearray(self.moments.note())
            return 0
        ways = [self.plainly, self.through_c, self.generated, self.comprehended, self.sorted, self.built, self.twice]
        return ways[number % len(ways)](depth + 1)

    def plainly(self, depth):
        bytearray(self.moments.note())
        result = self.step(depth)
        bytearray(self.moments.note())
        return result

    def through_c(self, depth):
        return next(map(self.step, [depth])) + len(bytearray(self.moments.note()))

    def generated(self, depth):
        def numbers():
            yield self.step(depth)
            yield len(bytearray(self.moments.note()))

        return sum(numbers())

    def comprehended(self, depth):
        return len([bytearray(self.moments.note()) for _ in range(2) if self.step(depth) >= 0])

    def sorted(self, depth):
        return len(sorted([1, 2], key=lambda _: len(bytearray(self.moments.note())) + self.step(depth)))

    def built(self, depth):
        class Local:
            size = len(bytearray(self.moments.note())) + self.step(depth)

        return Local.size

    def twice(self, depth):
        for _ in range(2):
            self.step(depth)
        return self.step(depth)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=60))
@settings(max_examples=40, deadline=None)
def test_the_stacks_of_any_program_are_the_interpreters(numbers):
    moments = Moments()
    history = record(lambda: Walker(numbers, moments).step(0), native_allocators=False)
    moments.check(history)


def test_stacks_of_several_threads_at_once_are_their_own():
    moments = [Moments() for _ in range(4)]

    def work(number):
        chooser = random.Random(number)
        for _ in range(6):
            Walker([chooser.randrange(7) for _ in range(16)], moments[number]).step(0)

    def run():
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    history = record(run, native_allocators=False)
    blocks = [event for event in history.allocations if event.size > SIZE]
    stacks = [(event, tuple(frame[:3] for frame in history.frames(event))) for event in blocks]
    for own in moments:
        expected = {tuple(stack) for stack in own.expected.values()}
        threads = set()
        found = set()
        for event, stack in stacks:
            if stack in expected:
                found.add(stack)
                threads.add(event.thread)
        assert found == expected


# ---- generators, greenlets, signals ----------------------------------------


def test_a_generator_shows_under_whoever_resumes_it():
    def generate():
        while True:
            yield bytearray(SIZE)

    def first(generator):
        next(generator)

    def second(generator):
        next(generator)

    def run():
        generator = generate()
        first(generator)
        second(generator)
        first(generator)

    history = record(run, native_allocators=False)
    names = [[name.rpartition(".")[2] for name in history.names(event)[:3]] for event in history.bytearrays(SIZE)]
    assert names == [["generate", "first", "run"], ["generate", "second", "run"], ["generate", "first", "run"]]


def test_greenlets_have_stacks_of_their_own():
    greenlet = pytest.importorskip("greenlet")
    moments = Moments()

    def inner(main):
        bytearray(moments.note())
        main.switch()
        bytearray(moments.note())

    def run():
        main = greenlet.getcurrent()
        other = greenlet.greenlet(inner)
        other.switch(main)
        bytearray(moments.note())
        other.switch()
        bytearray(moments.note())

    moments.check(record(run, native_allocators=False))


def test_a_signal_handler_shows_on_top_of_what_it_interrupts():
    moments = Moments()

    def handle(*_):
        bytearray(moments.note())

    def run():
        before = signal.signal(signal.SIGUSR1, handle)
        signal.raise_signal(signal.SIGUSR1)
        signal.signal(signal.SIGUSR1, before)

    moments.check(record(run, native_allocators=False))


# ---- deep ones -------------------------------------------------------------


def test_a_deep_recursion_is_cut_and_right_where_it_is_not():
    depth = 5000

    def descend(left):
        if left % 7 == 0:
            bytearray(SIZE + left)
        if left:
            descend(left - 1)
        if left % 5 == 0:
            bytearray(2 * SIZE + left)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 1000)
    threading.stack_size(256 << 20)
    try:

        def run():
            thread = threading.Thread(target=descend, args=(depth,))
            thread.start()
            thread.join()

        history = record(run, native_allocators=False)
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(0)
    found = {event.size - BEYOND: event for event in history.allocations if event.size > SIZE}
    for left in range(0, depth, 35):
        for size in (SIZE + left, 2 * SIZE + left):
            frames = history.frames(found[size])
            above = depth - left + 1
            own = [frame for frame in frames if frame.function.endswith("descend")]
            # When calls return, a shortened stack is walked again once only 256 of its frames are left.
            if above < (400 if size < 2 * SIZE else 240):
                assert len(own) == above
                assert not any(frame.flags & IS_CUT for frame in frames)
            else:
                assert min(above, 256) <= len(frames) <= 1024
            assert bool(frames[-1].flags & IS_CUT) == (len(own) < above)
    assert len(history.stacks) < 6 * depth


# ---- code that comes and goes ----------------------------------------------


def test_code_at_the_address_of_code_that_ended_has_its_own_name():
    def template(size):
        return bytearray(size)

    versions = []
    for number in range(64):
        name = f"version{number}"
        versions.append({"co_name": name, "co_qualname": name, "co_firstlineno": 1000 * (number + 1)})
    places = set()
    expected = {}

    def run():
        code = template.__code__
        for number in range(100_000):
            changes = versions[number * 7 % 64]
            fresh = code.replace(**changes)
            places.add(id(fresh))
            size = SIZE + number if number % 50 == 0 else 10
            types.FunctionType(fresh, globals())(size)
            if size != 10:
                expected[size] = changes["co_name"]
            if HERE["nogil"] and number % 5000 == 0:
                gc.collect()  # which frees code there

    history = record(run, native_allocators=False, min_size=SIZE)
    assert len(places) < 50_000  # addresses were used again
    for event in history.allocations:
        if event.size > SIZE and event.size - BEYOND in expected:
            assert history.names(event)[0] == expected[event.size - BEYOND]
            assert history.frames(event)[0].line // 1000 * 1000 == 1000 * (int(expected[event.size - BEYOND][7:]) + 1)
    assert len(history.stacks) < 2000


def test_code_that_is_compiled_and_run_again_and_again_is_named_right():
    expected = {}

    def run():
        for number in range(2000):
            source = "\n" * (number % 13) + f"def made{number % 17}(): return bytearray({SIZE + number})\n"
            space = {}
            exec(compile(source, f"made{number % 5}.py", "exec"), space)
            space[f"made{number % 17}"]()
            expected[SIZE + number + BEYOND] = (f"made{number % 17}", f"made{number % 5}.py", number % 13 + 1)

    history = record(run, native_allocators=False, min_size=SIZE)
    found = {event.size: history.frames(event)[0][:3] for event in history.allocations if event.size in expected}
    assert found == expected


# ---- threads without the GIL -------------------------------------------------


def test_a_thread_that_let_go_of_the_gil_has_its_stack_and_says_so():
    library = ctypes.CDLL(str(compiled.library(C_THREADS)))
    moments = Moments()

    def run():
        library.take(ctypes.c_long(moments.note()))
        library.give()

    history = record(run)
    [(size, stack)] = moments.expected.items()
    [event] = history.sized(size)
    assert event.kind == "malloc"
    assert event.flags & UNLOCKED
    assert [frame[:3] for frame in history.frames(event)] == stack


def test_c_code_with_the_gil_has_its_stack():
    library = ctypes.PyDLL(str(compiled.library(C_THREADS)))
    moments = Moments()

    def run():
        library.take(ctypes.c_long(moments.note()))
        library.give()

    history = record(run)
    [(size, stack)] = moments.expected.items()
    [event] = history.sized(size)
    assert not event.flags & UNLOCKED
    assert [frame[:3] for frame in history.frames(event)] == stack


def test_a_thread_that_python_does_not_know_has_no_stack_and_says_so():
    library = ctypes.CDLL(str(compiled.library(C_THREADS)))
    history = record(lambda: library.take_elsewhere(ctypes.c_long(SIZE)))
    [event] = history.sized(SIZE)
    assert event.flags & UNLOCKED
    assert history.frames(event) == []
    assert any(free.serial == event.serial for free in history.frees)


def test_python_called_by_c_is_an_entry_and_python_called_by_python_is_not():
    def called():
        return bytearray(SIZE)

    def run():
        called()
        next(map(lambda _: called(), [1]))

    history = record(run, native_allocators=False)
    plain, mapped = history.bytearrays(SIZE)
    flags = [frame.flags & IS_ENTRY for frame in history.frames(mapped)]
    assert flags[1]  # the lambda
    assert not flags[0]
    assert not history.frames(plain)[0].flags & IS_ENTRY


def test_our_own_frames_are_not_shown():
    from vestige import record_function

    def run():
        with record_function("name"):
            bytearray(SIZE)

    history = record(run)
    for event in history.allocations:
        assert not any(is_ours(frame.file) for frame in history.frames(event))
