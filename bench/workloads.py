"""Loops that the profilers are measured on: they do nothing but call.

A call is written out ten times in a loop, so that the loop hardly counts. Each function here makes exactly
CALLS calls of the kind in its name.
"""

from operator import itemgetter

CALLS = 1000


def nothing():
    pass


class Thing:
    def method(self):
        pass


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def python_function():
    f = nothing
    for _ in range(CALLS // 10):
        f(); f(); f(); f(); f(); f(); f(); f(); f(); f()  # fmt: skip


def python_method():
    t = Thing()
    for _ in range(CALLS // 10):
        t.method(); t.method(); t.method(); t.method(); t.method()  # fmt: skip
        t.method(); t.method(); t.method(); t.method(); t.method()  # fmt: skip


FIB = 13
FIB_CALLS = 753


def recursion():
    fib(FIB)


def c_len():
    x = "abc"
    for _ in range(CALLS // 10):
        len(x); len(x); len(x); len(x); len(x); len(x); len(x); len(x); len(x); len(x)  # fmt: skip


def c_abs():
    x = -7
    for _ in range(CALLS // 10):
        abs(x); abs(x); abs(x); abs(x); abs(x); abs(x); abs(x); abs(x); abs(x); abs(x)  # fmt: skip


def c_append():
    x = []
    for _ in range(CALLS // 10):
        x.append(1); x.append(1); x.append(1); x.append(1); x.append(1)  # fmt: skip
        x.append(1); x.append(1); x.append(1); x.append(1); x.append(1)  # fmt: skip


def c_get():
    d = {"k": 1}
    for _ in range(CALLS // 10):
        d.get("k"); d.get("k"); d.get("k"); d.get("k"); d.get("k")  # fmt: skip
        d.get("k"); d.get("k"); d.get("k"); d.get("k"); d.get("k")  # fmt: skip


def c_sum():
    """A C function that takes keywords (METH_FASTCALL | METH_KEYWORDS)."""
    x = ()
    for _ in range(CALLS // 10):
        sum(x); sum(x); sum(x); sum(x); sum(x); sum(x); sum(x); sum(x); sum(x); sum(x)  # fmt: skip


def c_class():
    for _ in range(CALLS // 10):
        bytes(3); bytes(3); bytes(3); bytes(3); bytes(3)  # fmt: skip
        bytes(3); bytes(3); bytes(3); bytes(3); bytes(3)  # fmt: skip


first = itemgetter(0)


def c_object():
    f, x = first, (1,)
    for _ in range(CALLS // 10):
        f(x); f(x); f(x); f(x); f(x); f(x); f(x); f(x); f(x); f(x)  # fmt: skip


def numbers(count):
    for i in range(count):
        yield i


RESUMPTIONS = CALLS + 1  # the last resume finds the end


def generator():
    for _ in numbers(CALLS):
        pass


def half():
    """A Python call with a C call inside."""
    len("abc")


def mixed(calls):
    """Makes this many calls, half of Python functions and half of C functions, for traces to export."""
    f = half
    for _ in range(calls // 20):
        f(); f(); f(); f(); f(); f(); f(); f(); f(); f()  # fmt: skip
