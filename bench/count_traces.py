"""Generated traces, which counts.py reads and exports: equal at any time and place."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "python"))
import handmade as h

CALLS = 8_000
BLOCKS = 4_000
FUNCTIONS = 200
DEPTH_MAX = 12
FREE = 0x82


class Dice:
    """Pseudo-random numbers, equal on every Python."""

    def __init__(self):
        self._state = 88172645463325252

    def roll(self, sides):
        self._state ^= self._state << 13 & (1 << 64) - 1
        self._state ^= self._state >> 7
        self._state ^= self._state << 17 & (1 << 64) - 1
        return (self._state >> 11) % sides


def functions():
    return [
        h.define(id, f"function_{id}", f"package/part_{id % 16}/module_{id % 40}.py", id) for id in range(1, FUNCTIONS)
    ]


def wander():
    """Goes up and down through calls, like a program."""
    dice, stack, words = Dice(), [], []
    for _ in range(CALLS):
        while stack and dice.roll(DEPTH_MAX) < len(stack):
            words.append(h.leave(stack.pop(), 20 + dice.roll(3000)))
        stack.append(1 + (len(stack) * 7 + dice.roll(9)) % (FUNCTIONS - 1))
        words.append(h.enter(stack[-1], 20 + dice.roll(300)))
    words += [h.leave(id) for id in reversed(stack)]
    return words


def history():
    """Allocates blocks of every size; one in eight is live at the end."""
    dice, words = Dice(), []
    for number in range(BLOCKS):
        address = 0x7F0000000000 + number * 0x10000
        words += h.allocate(
            address, 16 + dice.roll(1 << dice.roll(16)), 1 + dice.roll(FUNCTIONS - 1), 20 + dice.roll(300)
        )
        if dice.roll(8):
            words += (20 << 32 | h.MALLOC << 10 | FREE << 2 | 3, address)
    return words


def write(folder):
    """Writes read.vst and read_memory.vst, the names that instructions.py expects."""
    stacks = [h.stack(id, id // 2, id) for id in range(1, FUNCTIONS)]
    calls = h.trace(h.definitions(h.thread(), *functions()), h.records(*wander()))
    memory = h.trace(h.definitions(h.has_memory(), h.thread(), *functions(), *stacks), h.records(*history()))
    (folder / "read.vst").write_bytes(calls)
    (folder / "read_memory.vst").write_bytes(memory)
