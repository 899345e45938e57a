"""Generated programs, recorded by every engine of this Python, against an oracle that uses no hooks.

A failing program is shrunk and printed as source with both trees; paste it into a new test below. `make check
NAME=differential` runs thousands of programs.
"""

import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import vestige
from differential import compare, generate
from differential.compare import HIDDEN, SHOWN, Different

ACCURACY = Path(__file__).parents[2] / "docs" / "how" / "accuracy.md"
PROGRAMS = 50  # per Python; five Pythons make 250
# No explain phase, because hypothesis may set a trace function there.
PHASES = [Phase.generate, Phase.shrink]


@seed(sys.version_info[1])  # each Python has its own programs, the same ones in each run
@settings(max_examples=PROGRAMS, deadline=None, database=None, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(generate.programs(), st.sampled_from([0, 0, 3]))
def test_a_generated_program_is_recorded_as_it_ran(program, warm):
    compare.check(program, warm=warm)


def test_every_difference_that_is_let_pass_is_documented():
    text = " ".join(ACCURACY.read_text().split())
    for difference in HIDDEN + SHOWN:
        assert difference.says in text


# ---- programs that once told something ---------------------------------

TOUR = """
import asyncio, re, threading, types

def leaf(n=1):
    return abs(n)

def numbers(n):
    leaf()
    x = yield n
    try:
        yield 2
    finally:
        leaf()

def delegating(n):
    x = yield from numbers(n)
    return x

class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)

class Thing(metaclass=Meta):
    def __init__(self):
        leaf()
    def items(self):
        return [leaf(x) for x in range(2)]
    @property
    def size(self):
        return 1
    def __del__(self):
        leaf()

class Pause:
    def __await__(self):
        yield

async def ticks():
    yield 1
    await Pause()
    yield 2

async def inner():
    await Pause()
    async for x in ticks():
        leaf()

async def stopped():
    g = ticks()
    async for x in g:
        break
    await g.aclose()

async def outer(n):
    leaf()
    await inner()

def generators():
    g = numbers(1); next(g); g.close()
    g = delegating(1); next(g); next(g)
    try:
        g.throw(KeyError)
    except KeyError:
        pass
    g = delegating(1); next(g); del g
    g = numbers(1)
    try:
        g.throw(ValueError)
    except ValueError:
        pass
    g = numbers(1); g.close()
    g = (leaf(x) for x in range(2)); next(g); g.close()
    g = (leaf(x) for x in range(2)); g.close()

def main():
    sorted([1, 2], key=leaf)
    generators()
    thing = Thing(); thing.items(); thing.size; kept = thing.items; kept(); del thing, kept
    exec("leaf(2)\\nf = lambda: leaf(3)\\nf()", {"leaf": leaf})
    with threading.Lock():
        leaf()
    types.MethodType(len, [1])()
    c = outer(1)
    try:
        while True:
            c.send(None)
    except StopIteration:
        pass
    class Local(Thing):
        x = leaf()
    for wrong in (lambda: len(), lambda: list.append(), lambda: len(3), lambda: leaf(1, 2)):
        try:
            wrong()
        except TypeError:
            pass
    thread = threading.Thread(target=leaf, name="worker")
    thread.start()
    thread.join()
    asyncio.run(outer(1))
    asyncio.run(stopped())
    return re.sub("a", lambda match: str(leaf(1)), "aa")
"""


@pytest.mark.parametrize("warm", [0, 20])
def test_a_tour_of_everything_is_recorded_as_it_ran(warm):
    compare.check(TOUR, warm=warm)


# ---- the comparison itself ---------------------------------------------

SMALL = """
def leaf(n):
    return abs(n)

def failing():
    len(3)

def numbers():
    yield leaf(1)
    yield leaf(2)

def main():
    [2, 1].sort(key=leaf)
    try:
        failing()
    except TypeError:
        [].append(1)
    for x in numbers():
        leaf(x)
"""


def places(nodes):
    """Yields every place in a tree as (siblings, index)."""
    for index, node in enumerate(nodes):
        yield nodes, index
        yield from places(node.children)


def drop(siblings, index):
    siblings[index : index + 1] = siblings[index].children


def lose(siblings, index):
    del siblings[index]


def rename(siblings, index):
    siblings[index].name += "x"


def turn(siblings, index):
    siblings[index].raised = not siblings[index].raised


def double(siblings, index):
    siblings.insert(index, siblings[index])


def move_up(siblings, index):
    node = siblings[index]
    if node.children:
        siblings.insert(index + 1, node.children.pop())
    else:
        rename(siblings, index)


@pytest.mark.parametrize("engine", vestige._core.engines)
@pytest.mark.parametrize("change", [drop, lose, rename, turn, double, move_up])
def test_a_recording_with_one_span_wrong_is_noticed(engine, change, monkeypatch):
    _, expected = compare.run_twin(SMALL)
    _, trace = compare.run_recorded(SMALL, engine, 0)
    compare.compare(SMALL, engine, 0, compare.expected_of(expected, engine), compare.recorded_of(trace, engine))
    count = len(list(places(compare.recorded(trace)["MainThread"])))
    assert count == 20
    read = compare.recorded
    for number in range(count):

        def spoilt(trace):
            found = read(trace)
            siblings, index = list(places(found["MainThread"]))[number]  # noqa: B023
            change(siblings, index)
            return found

        monkeypatch.setattr(compare, "recorded", spoilt)
        with pytest.raises(Different) as caught:
            compare.compare(SMALL, engine, 0, compare.expected_of(expected, engine), compare.recorded_of(trace, engine))
        monkeypatch.undo()
        assert SMALL in str(caught.value)
        assert re.search(r"# expected, MainThread:\n(?s:.+)# recorded:\n", str(caught.value))


def test_a_thread_that_is_missing_is_noticed():
    with pytest.raises(Different, match="worker"):
        compare.compare("", "profile", 0, {"MainThread": "main", "worker": "leaf"}, {"MainThread": "main"})


def test_a_twin_that_computes_something_else_is_noticed(monkeypatch):
    twin = compare.run_twin
    monkeypatch.setattr(compare, "run_twin", lambda source: (7, twin(source)[1]))
    with pytest.raises(Different, match="its twin 7"):
        compare.check(SMALL)
