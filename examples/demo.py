"""A small program with something of everything: threads, recursion, a generator, calls of C functions, an exception,
garbage collections, annotations. It does the same in every run and prints how often each of its functions was called,
so that a trace of it can be checked: `vestige run examples/demo.py`.
"""

import gc
import threading

import vestige

THREADS = 3
FIBONACCI = 15
NUMBERS = 50
ORDERS = 40


def fibonacci_calls(n):
    """How many calls fibonacci(n) is, without making them: calls(n) = 1 + calls(n - 1) + calls(n - 2)."""
    before, calls = 1, 1
    for _ in range(n - 1):
        before, calls = calls, 1 + calls + before
    return calls


EXPECTED_CALLS = {
    "main": 1,
    "worker": THREADS,
    "fibonacci": THREADS * fibonacci_calls(FIBONACCI),
    "squares": NUMBERS + 1,  # every resume counts, including the last
    "sort_orders": 1,
    "by_price": ORDERS,
    "fail": 1,
    "make_garbage": 1,
    "Node.__init__": 200,
}


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def squares(count):
    for number in range(count):
        yield number * number


def by_price(order):
    return order[1]


def sort_orders():
    """A C function that calls back into Python."""
    orders = [(number, number * 37 % 101) for number in range(ORDERS)]
    return sorted(orders, key=by_price)


def fail():
    raise ValueError("this one is caught")


class Node:
    def __init__(self):
        self.itself = self


def make_garbage():
    for _ in range(100):
        Node()
    gc.collect()
    for _ in range(100):
        Node()
    return gc.collect()


def worker(results, index):
    with vestige.record_function(f"job {index}"):
        results[index] = fibonacci(FIBONACCI)


def main():
    results = {}
    threads = [threading.Thread(target=worker, args=(results, i), name=f"worker {i}") for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for joined, thread in enumerate(threads, start=1):
        thread.join()
        vestige.counter("joined", joined)
    total = sum(squares(NUMBERS))
    cheapest = sort_orders()[0]
    try:
        fail()
    except ValueError as error:
        vestige.instant("caught", message=str(error))
    make_garbage()
    print(f"fibonacci {sorted(results.values())}, squares {total}, cheapest order {cheapest}")


if __name__ == "__main__":
    main()
    for name, calls in EXPECTED_CALLS.items():
        print(f"{calls:6} {name}")
