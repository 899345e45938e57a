"""Calls of Python and C functions, recursion, a generator, an exception, garbage collections, annotations, arguments."""

import gc

import vestige


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def squares(count):
    for number in range(count):
        yield number * number


def by_price(order):
    return order[1]


def fail(reason):
    raise ValueError(reason)


class Node:
    """Each is garbage that refers to itself."""

    def __init__(self):
        self.itself = self


def weigh(apples, *, unit="kg"):
    return f"{apples} {unit}"


def nest(depth):
    return depth and nest(depth - 1)


def main():
    fibonacci(6)
    sum(squares(4))
    sorted([(number, number * 37 % 11) for number in range(5)], key=by_price)
    try:
        fail("caught")
    except ValueError:
        pass
    for _ in range(3):
        Node()
    gc.collect()
    weigh(3)
    weigh("two \N{GREEN APPLE}", unit='"lb"')
    with vestige.record_function("load", "a\n\"b\""):
        nest(12)
        vestige.instant("arrived", at=1.5)
        for value in (1, 2.5, -3):
            vestige.counter("depth of the queue", value)
    exec(compile("def naïve(): pass\nnaïve()", "<string ü>", "exec"), {})


main()
