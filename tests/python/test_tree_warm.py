"""The interpreter specialises code that runs often; recording specialised code gives the tree of new code."""

import pytest

from tree import record, tree


def leaf():
    pass


class Thing:
    def __init__(self, x=0):
        self.x = x

    def method(self):
        return leaf()

    @property
    def value(self):
        return leaf()

    def __getitem__(self, key):
        return leaf()

    def __add__(self, other):
        return leaf()

    def __len__(self):
        return 1

    def __call__(self):
        return leaf()


class Override:
    def __getattribute__(self, name):
        return leaf()


def numbers():
    leaf()
    yield 1
    yield 2


def delegating():
    yield from numbers()


THING, OVERRIDE = Thing(), Override()


def calls_functions():
    leaf()
    (lambda: leaf())()


def makes_objects():
    Thing()
    Thing(x=3)
    Thing(*[1])


def uses_slots():
    THING.method()
    THING.value
    THING[1]
    THING + 1
    THING()
    OVERRIDE.anything
    len(THING)


def calls_builtins():
    items = []
    items.append(1)
    len(items)
    isinstance(items, list)
    type(items)
    str(1)
    tuple(items)
    "a".join(("b", "c"))
    abs(-1)
    max(1, 2)
    sorted(items, key=abs)
    items.sort()
    items.pop()


def iterates():
    for _ in numbers():
        pass
    for _ in delegating():
        pass
    [leaf() for _ in (1, 2)]
    sum(n for n in (1, 2))


def raises():
    try:
        fails()
    except KeyError:
        leaf()


def fails():
    raise KeyError


PROGRAMS = [calls_functions, makes_objects, uses_slots, calls_builtins, iterates, raises]


def copied(function):
    """Returns the same function with a copy of its code, which never ran."""
    return type(function)(function.__code__.replace(), function.__globals__, function.__name__)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_warm_code_has_the_tree_of_cold_code(program):
    cold = tree(copied(program))
    for _ in range(3000):
        program()
    assert tree(program) == cold
    assert cold.count("\n") >= 2


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_code_that_was_recorded_before_is_recorded_again_alike(program):
    first = tree(program)
    for _ in range(20):
        record(leaf)
        program()
    assert tree(program) == first


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_code_that_becomes_warm_while_recorded_stays_right(program):
    def often():
        for _ in range(300):
            program()

    whole = tree(often).splitlines()
    once = ["  " + line for line in tree(program).splitlines()]
    assert whole == ["often", *once * 300]
