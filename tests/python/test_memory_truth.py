"""Programs with known memory use: arrays, tensors, leaks and the peak are recorded exactly."""

import pytest

from histories import BEYOND, history_of
from vestige.reading.memory import read_memory

MIB = 1 << 20

NUMPY = """\
import numpy
from vestige import memory

def make():
    return numpy.ones(100 * 131072)

memory.start("o.vst")
kept = make()
small = numpy.zeros(1000, dtype=numpy.uint8) + 1
memory.stop()
"""

TORCH = """\
import torch
from vestige import memory

def make():
    return torch.zeros(64 * 262144)

memory.start("o.vst")
kept = make()
memory.stop()
"""

LEAK = """\
from vestige import memory

cache = []

def leak(number):
    cache.append(bytearray(1000 + number))

def work(number):
    return bytearray(5000)

memory.start("o.vst")
for number in range(1000):
    work(number)
    if number % 3 == 0:
        leak(number)
memory.stop()
"""

PEAK = """\
from vestige import memory

memory.start("o.vst")
blocks = [bytearray(1 << 20) for _ in range(30)]
del blocks[:20]
blocks += [bytearray(1 << 20) for _ in range(35)]
del blocks[:]
blocks += [bytearray(1 << 20) for _ in range(12)]
memory.stop()
"""


def run(workplace, source):
    workplace.write("program.py", source)
    done = workplace.python("program.py")
    assert (done.returncode, done.stderr) == (0, "")
    return history_of(workplace.path / "o.vst")


def test_an_array_of_numpys_shows_at_its_line_with_its_size(workplace):
    pytest.importorskip("numpy")
    history = run(workplace, NUMPY)
    [event] = [event for event in history.allocations if event.size >= 100 * MIB]
    assert event.size < 100 * MIB + 4096
    assert [(frame.function, frame.line) for frame in history.frames(event)[-2:]] == [("make", 5), ("<module>", 8)]
    assert event in history.live()
    assert any(event.size == 1000 and history.frames(event)[-1].line == 9 for event in history.allocations)


def test_a_tensor_of_torchs_shows_at_its_line_with_its_size(workplace):
    pytest.importorskip("torch")
    history = run(workplace, TORCH)
    [event] = [event for event in history.allocations if event.size >= 64 * MIB]
    assert event.size < 64 * MIB + 4096
    assert [(frame.function, frame.line) for frame in history.frames(event)[-2:]] == [("make", 5), ("<module>", 8)]
    assert event in history.live()


def test_a_leak_is_there_with_its_count_and_bytes(workplace):
    history = run(workplace, LEAK)
    leaked = [event for event in history.live() if 1000 + BEYOND <= event.size < 2000 + BEYOND]
    assert len(leaked) == 334
    assert sum(event.size for event in leaked) == sum(1000 + number + BEYOND for number in range(0, 1000, 3))
    for event in leaked:
        assert [(frame.function, frame.line) for frame in history.frames(event)] == [("leak", 6), ("<module>", 15)]
    assert not [event for event in history.live() if event.size == 5000 + BEYOND]
    assert len(history.bytearrays(5000)) == 1000


def test_the_peak_is_what_was_held_then(workplace):
    history = run(workplace, PEAK)
    peak = max(event.live_bytes for event in history.events)
    assert 45 * MIB <= peak < 45 * MIB * 1.01
    assert 12 * MIB <= history.events[-1].live_bytes < 12 * MIB * 1.01
    assert read_memory(history.trace, rows=0).views["peak"].bytes == peak


def test_a_program_with_many_threads_adds_up(workplace):
    """Each thread keeps some blocks, frees others, and frees some of its neighbour's."""
    source = """\
    import queue, threading
    from vestige import memory

    handed = queue.Queue()
    kept = []

    def work(number):
        for step in range(300):
            block = bytearray(7000 + number)
            if step % 3 == 0:
                kept.append(block)
            elif step % 3 == 1:
                handed.put(block)
                if step > 30:
                    handed.get()

    memory.start("o.vst")
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    memory.stop()
    """
    history = run(workplace, source)
    blocks = [event for event in history.allocations if 0 <= event.size - BEYOND - 7000 < 8]
    assert len(blocks) == 8 * 300
    assert {event.thread for event in blocks if event.size == 7000 + BEYOND} != {event.thread for event in blocks}
    live = [event for event in history.live() if 0 <= event.size - BEYOND - 7000 < 8]
    assert len(live) == 8 * (100 + 10)  # each block is kept, and handed on before anybody took it
    for number in range(8):
        assert len([event for event in blocks if event.size == 7000 + number + BEYOND]) == 300


def test_native_frames_come_with_the_python_stack_if_asked(workplace):
    source = """\
    from vestige import memory

    memory.start("o.vst", native=True)
    kept = bytearray(4321)
    memory.stop()
    """
    history = run(workplace, source)
    [event] = history.bytearrays(4321)
    kinds = {1: 0, 2: 0}
    both = history.stacks[event.stack]
    assert both.kind == 3
    for number in (both.parent, both.address):
        while number:
            kinds[history.stacks[number].kind] += 1
            number = history.stacks[number].parent
    assert kinds[1] == 1
    assert kinds[2] >= 3
