"""Records everything that a timeline can show: calls of all kinds on two threads, deep calls, annotations with
arguments, overlapping annotations, counters, instants and memory; with torch, operators and arrows between them.

    python timeline.py OUT
"""

import sys
import threading

import vestige

try:
    import torch
except ImportError:
    torch = None


def fall(n):
    return len("x") if n == 0 else fall(n - 1)


def overlap():
    """Two annotations that overlap, neither inside the other."""
    first, second = vestige.record_function("first"), vestige.record_function("second")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)


def train():
    net = torch.nn.Linear(4, 2)
    net(torch.ones(3, 4)).sum().backward()


def main():
    with vestige.record_function("annotated", 'text, "quoted"'), vestige.record_function("stack", stack=True):
        fall(3)
    fall(150)
    overlap()
    for value in (1, 2.5):
        vestige.counter("a counter", value)
    vestige.instant("a mark", key="text")
    thread = threading.Thread(target=fall, args=(5,), name="a worker")
    thread.start()
    thread.join()
    if torch is not None:
        train()


if __name__ == "__main__":
    with vestige.profile(output=sys.argv[1], record_shapes=True, profile_memory=True):
        main()
