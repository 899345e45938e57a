"""Computations of the scenes of a soak, and threads that run all the time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

# ---- what is computed ------------------------------------------------------


class Point:
    __slots__ = ("x", "y")

    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y

    def __lt__(self, other: Point) -> bool:
        return (self.x, self.y) < (other.x, other.y)

    @classmethod
    def of(cls, number: int) -> Point:
        return cls(number % 7, number % 3)


def fails(number: int) -> int:
    if number % 2:
        raise ValueError(number)
    return [1, 2, 3].index(number + 9)


def squares(count: int) -> Iterator[int]:
    total = 0
    try:
        for number in range(count):
            sent = yield number * number
            total += sent or 0
    finally:
        total += len("end")


def work(times: int = 3) -> tuple[Any, ...]:
    """Calls of every kind, at call sites that the interpreter specialises."""
    found = []
    for number in range(times):
        found.append(len(str(number)) + isinstance(number, int))
        try:
            fails(number)
        except ValueError as error:
            found.append(type(error).__name__)
    points = sorted([Point.of(number) for number in range(times)], key=lambda point: (point.y, point.x))
    words = list("bac")
    words.sort(key=str.upper)
    return (
        *found,
        sum(squares(times)),
        [point.x for point in points],
        words,
        dict.fromkeys(words),
        max(words, key=len),
    )


# ---- what runs all the time -----------------------------------------------


class Company:
    """Threads that run, or wait in C, through all starts and stops; a suspended generator and a C call that has not
    returned.
    """

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._held = threading.Lock()
        self._held.acquire()
        self.trouble: list[str] = []
        self.turns = 0
        self._threads = [threading.Thread(target=body, name=body.__name__) for body in (self._busy, self._waits)]
        for thread in self._threads:
            thread.start()
        self.suspended = squares(1 << 60)
        self.expected = 0
        next(self.suspended)

    def _busy(self) -> None:
        right = work()
        while not self._ended.wait(0.002):
            self.turns += 1
            if work() != right:
                self.trouble.append("a thread beside the recording computed something else")

    def _waits(self) -> None:
        self._held.acquire()
        self._held.release()

    def resume(self) -> int:
        """Resumes one generator, sometimes under a recording and sometimes not."""
        self.expected += 1
        return next(self.suspended) - self.expected * self.expected

    def leave(self) -> None:
        self._ended.set()
        self._held.release()
        for thread in self._threads:
            thread.join()
        self.suspended.close()
