"""Allocations that stay, that go at once, that come from another thread; a large one by mmap."""

import mmap
import threading

kept = []


def keep(count):
    for number in range(count):
        kept.append(bytearray(100 + number))


def churn(count):
    for _ in range(count):
        bytearray(50_000)


def grow(depth):
    if depth:
        return grow(depth - 1)
    kept.append(bytes(3_000_000))


def map_and_unmap():
    mapped = mmap.mmap(-1, 1 << 20)
    mapped.close()


def main():
    keep(10)
    churn(5)
    grow(6)
    thread = threading.Thread(target=keep, args=(4,), name="keeper")
    thread.start()
    thread.join()
    map_and_unmap()
    del kept[::2]


main()
