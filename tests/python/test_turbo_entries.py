"""On 3.11, the turbo engine makes the frames of simple calls itself: they look, live and end like the interpreter's.
The tests hold on every Python.
"""

import ctypes
import gc
import subprocess
import sys
import tracemalloc
import types
import weakref

import pytest

from tree import record, tree
from vestige import profile

SAFE = "safe"
CALLS = 3  # from the second call on, turbo makes the frame itself


def each_engine(function):
    """Returns the tree of calls by turbo, after checking that the safe engine's tree is equal."""
    turbo, safe = tree(function, engine="turbo"), tree(function, engine=SAFE)
    assert turbo == safe
    return turbo


# ---- arguments ----------------------------------------------------------


def takes_two(a, b):
    return a, b


def takes_defaults(a, b=2, c=3):
    return a, b, c


def takes_all(a, /, b=2, *rest, c=3, **names):
    return a, b, rest, c, names


def takes_keyword(a, *, b=2):
    return a, b


def has_cells(a, b=5):
    def inner():
        nonlocal a
        a += b
        return a

    return inner(), inner()


class Methods:
    def plain(self, a=1):
        return a

    @classmethod
    def of_class(cls, a):
        return cls.__name__, a

    @property
    def own(self):
        return self.plain(7)

    def __eq__(self, other):
        return other == 3

    __hash__ = None


def call_in_every_way():
    made = Methods()
    named = {"a": 1, "b": 2}
    found = []
    for _ in range(CALLS):
        found += [takes_two(1, 2), takes_two(b=2, a=1), takes_two(*(1, 2)), takes_two(**named)]
        found += [takes_defaults(1), takes_defaults(1, 5), takes_defaults(1, 5, 6), takes_defaults(1, c=9)]
        found += [takes_all(1), takes_all(1, 4, 5, c=6, d=7), takes_keyword(1), takes_keyword(1, b=5), has_cells(1)]
        found += [made.plain(), made.plain(3), made.of_class(2), made.own, made == 3, max([2, 1], key=lambda x: -x)]
    return found


def test_calls_get_their_arguments_however_they_are_given():
    bare = call_in_every_way()
    with profile(engine="turbo"):
        assert call_in_every_way() == bare
    each_engine(call_in_every_way)


def test_a_call_with_wrong_arguments_is_refused_in_the_same_words():
    def refusals():
        said = []
        for args, names in [((), {}), ((1,), {}), ((1, 2, 3), {}), ((1, 2), {"b": 3}), ((1, 2), {"c": 3})]:
            takes_two(1, 2)
            with pytest.raises(TypeError) as caught:
                takes_two(*args, **names)
            said.append(str(caught.value))
        return said

    bare = refusals()
    with profile(engine="turbo"):
        assert refusals() == bare


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # assigning code of another kind warns from 3.13 on
def test_a_function_that_gets_other_code_or_defaults_runs_these():
    def plain(a, b=1):
        return a + b

    def generates(a, b=1):
        yield from (a, b)

    def takes_rest(*rest):
        return rest

    def changing():
        first, found = plain.__code__, []
        for code in (first, generates.__code__, takes_rest.__code__, first):
            plain.__code__ = code
            for _ in range(CALLS):
                made = plain(1, 2)
                found.append(list(made) if isinstance(made, types.GeneratorType) else made)
        for defaults in ((5,), None, (1,)):
            plain.__defaults__ = defaults
            found.append([plain(1, 1), plain(4) if defaults else None])
        return found

    bare = changing()
    assert bare[3:6] == [[1, 2]] * CALLS and bare[-3:] == [[2, 9], [2, None], [2, 5]]
    with profile(engine="turbo"):
        assert changing() == bare
    each_engine(changing)


# ---- frames that outlive their call -------------------------------------


def keeps_frame(kept, number):
    text = str(number)
    kept.append(sys._getframe())
    return locals() if number % 2 else None


def fails(number):
    held = [number]  # noqa: F841
    raise ValueError(number)


def outer(kept, number):
    keeps_frame(kept, number)
    try:
        fails(number)
    except ValueError as error:
        kept.append(error.__traceback__.tb_next.tb_frame)


def test_a_frame_that_is_kept_has_its_variables_and_its_callers():
    kept = []
    with profile(engine="turbo"):
        for number in range(CALLS * 2):
            outer(kept, number)
    gc.collect()
    assert all(gc.is_tracked(frame) for frame in kept)
    for number in range(CALLS * 2):
        own, failed = kept[2 * number : 2 * number + 2]
        assert own.f_code is keeps_frame.__code__ and own.f_locals["text"] == str(number)
        assert failed.f_code is fails.__code__ and failed.f_locals == {"number": number, "held": [number]}
        assert own.f_back.f_code is failed.f_back.f_code is outer.__code__
        assert own.f_back is failed.f_back and own.f_back.f_locals["number"] == number
        assert own.f_back.f_back.f_code.co_name == "test_a_frame_that_is_kept_has_its_variables_and_its_callers"
        assert own.f_lineno == keeps_frame.__code__.co_firstlineno + 3
        own.clear()
        assert own.f_locals == {}


def test_what_a_call_holds_is_released_when_it_ends():
    class Thing:
        pass

    def holds(thing, other=None):
        copies = [thing, other]
        return len(copies)

    def raises(thing):
        raise KeyError

    def use():
        thing = Thing()
        gone = weakref.ref(thing)
        holds(thing)
        holds(thing, thing)
        with pytest.raises(KeyError):
            raises(thing)
        counts = sys.getrefcount(thing)
        del thing
        return gone() is None, counts

    bare = use()
    functions = (holds, raises, holds.__code__, raises.__code__)
    with profile(engine="turbo"):
        use()
        before = [sys.getrefcount(each) for each in functions]
        assert [use() for _ in range(50)] == [bare] * 50
        assert [sys.getrefcount(each) for each in functions] == before


PLACES = """
import sys, weakref

class Thing:
    pass

class Held:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        return True
    async def __aenter__(self):
        return self
    async def __aexit__(self, *error):
        return True

def note(kind, thing, function):
    gone, count = weakref.ref(thing), sys.getrefcount(thing) - 3
    caller = sys._getframe(2)
    said.append((kind, count, sys.getrefcount(function), caller.f_lasti, caller.f_lineno))
    return gone

def plain(thing):
    gone = note("plain", thing, plain)
    thing = None
    said.append(gone() is None)
    return 1

def named(*rest, thing, other=5, **names):
    gone = note("named", thing, named)
    thing = None
    said.append(gone() is None)
    return 1

def rest(first, *things):
    gone = note("rest", things[0], rest)
    things = None
    said.append(gone() is None)
    return 1

def cells(thing, other=2):
    gone = note("cells", thing, cells)
    def inner():
        return thing
    del thing
    said.append(gone() is None)
    return 1

def fails(thing):
    raise KeyError(thing)

class Made:
    def method(self, thing):
        gone = note("method", thing, Made.method)
        said.append(sys.getrefcount(self))
        thing = None
        said.append(gone() is None)
        return 1

def generates():
    def local(thing):
        gone = note("local", thing, local)
        thing = None
        said.append(gone() is None)
        return 1
    received = plain(Thing()) + local((yield 1)) + (lambda thing: plain(thing))(Thing())
    yield [received, [named(thing=Thing()) for _ in range(2)]]

async def awaits():
    async with Held():
        [1, await coroutine(plain(Thing())), plain(Thing())]
        raise ValueError

async def coroutine(n):
    return n + plain(Thing())

def everywhere(n):
    x = [1, (2, plain(Thing())), {"k": rest(0, Thing()), **{"m": cells(Thing())}}]
    f"{1}{plain(Thing())!r:>{plain(Thing())}}"
    for y in [1, 2]:
        1 < plain(Thing()) < named(1, thing=Thing(), more=plain(Thing())) or plain(Thing())
        with Held() as held, Held():
            x = n and Made().method(Thing()) and held
            plain(n) if False else plain(Thing())
            raise KeyError(plain(Thing()), cells(Thing(), other=plain(Thing())))
    try:
        try:
            fails(Thing())
        finally:
            plain(Thing())
            x = {}
            x[0, plain(Thing())] = plain(Thing()), plain(thing=Thing())
    except KeyError as error:
        said.append((error.__traceback__.tb_lasti, error.__traceback__.tb_next.tb_lasti, cells(Thing())))
        said.append(sys.getrefcount(fails))
    else:
        plain(Thing())
    while n:
        n = n - (plain(Thing()) and plain(Thing()))
        if n == 3:
            continue
        match [n, plain(Thing())]:
            case [2, 1] if plain(Thing()):
                plain(Thing())
            case [1, one]:
                plain(Thing())
    maker = generates()
    next(maker)
    maker.send(Thing())
    try:
        awaits().send(None)
    except StopIteration:
        pass
    try:
        plain()
    except TypeError as error:
        said.append(error.__traceback__.tb_lasti)
    def local(thing):
        return plain(thing)
    @Made().method
    def decorated():
        pass
    class Body:
        x = plain(Thing())
    local(*[Thing()])
    local(Thing())
    plain(Thing()) ; MANY ; plain(Thing())
    try:
        raise ExceptionGroup("", [ValueError(1), KeyError(2)])
    except* ValueError:
        plain(Thing())
    except* KeyError:
        1 + plain(Thing())

def main():
    for n in range(12):
        everywhere(4)
"""


def said_in(engine):
    """Returns what calls at many places report about their arguments, in new functions."""
    many = ";".join(f"n = n{number}" for number in range(300))
    head = ";".join(f"n{number} = {number}" for number in range(300))
    space = {"said": []}
    exec(compile(head + PLACES.replace("MANY", many), "places.py", "exec"), space)
    if engine is None:
        space["main"]()
    else:
        with profile(engine=engine):
            space["main"]()
    return space["said"]


def test_arguments_live_as_long_as_without_us_wherever_a_call_stands():
    bare = said_in(None)
    assert True in bare and len(bare) > 500
    assert said_in("turbo") == bare


def test_a_destructor_that_runs_as_a_call_ends_is_seen_in_its_caller():
    class Ends:
        def __del__(self):
            ended.append(sys._getframe(1).f_code.co_name)

    def holds(thing):
        pass

    def caller():
        holds(Ends())

    ended = []

    def work():
        for _ in range(CALLS):
            caller()

    work()
    bare = ended.copy()
    ended.clear()
    record(work, engine="turbo")
    assert ended == bare
    each_engine(work)


# ---- depth --------------------------------------------------------------


def test_recursion_ends_where_it_does_without_us():
    def dive(depth):
        reached[0] = depth
        dive(depth + 1)

    def deepest():
        with pytest.raises(RecursionError):
            dive(0)
        return reached[0]

    reached = [0]
    bare = deepest()
    with profile(engine="turbo") as prof:
        assert deepest() == bare
        assert deepest() == bare
    calls = [event for event in prof.events() if event.name.endswith("dive")]
    assert len(calls) == 2 * (bare + 1)


RECURSION_THROUGH_LEN = """
from vestige import profile

class Deep:
    def __len__(self):
        reached[0] += 1
        return len(self)

def deepest():
    reached[0] = 0
    try:
        len(Deep())
    except RecursionError:
        return reached[0]

reached = [0]
deepest()  # the interpreter specializes the call
bare = deepest()
with profile(engine="turbo"):
    recorded = deepest()
print(bare, recorded, deepest())
"""


def test_recursion_through_len_ends_where_it_does_without_us(tmp_path):
    """Runs in a new process: on 3.12, the interpreter specializes no C call once another tool has watched calls."""
    done = subprocess.run([sys.executable, "-c", RECURSION_THROUGH_LEN], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    bare, recorded, after = map(int, done.stdout.split())
    assert bare > 700 and after == bare
    assert recorded - bare in (0, 1)  # as if the outermost call were specialized, too


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="later, sys.monitoring allocates for each function")
def test_tracemalloc_counts_nothing_of_ours():
    def blocks():
        gc.collect()
        space = {}
        exec(compile("def f(x): return [x]\nkept = [f(n) for n in range(5)]\n", "counted.py", "exec"), space)
        found = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "counted.py")])
        return sorted((block.traceback[0].lineno, block.count) for block in found.statistics("lineno"))

    tracemalloc.start()
    try:
        bare = blocks()
        with profile(engine="turbo"):
            assert blocks() == bare
    finally:
        tracemalloc.stop()


# ---- afterwards ---------------------------------------------------------


def words_of(function):
    """Returns the memory of a function object without its reference count."""
    size = type(function).__basicsize__
    return ctypes.string_at(id(function), size)[8:]


def make_plain():
    """Returns a function, another function that calls it a few times, and the memory of the first."""

    def plain(a):
        return a

    def calls():
        for number in range(CALLS):
            plain(number)

    plain(0)
    return plain, calls, words_of(plain)


def test_after_the_recording_a_function_is_what_it_was():
    plain, calls, before = make_plain()
    with profile(engine="turbo"):
        calls()
        during = words_of(plain)
    assert (during != before) == (sys.version_info[:2] == (3, 11))
    sorted([0], key=plain)  # C code calls the function by its address
    assert words_of(plain) == before


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="only on 3.11 has a function another address")
def test_while_a_budget_takes_the_hook_away_a_function_is_what_it_was():
    plain, calls, before = make_plain()
    with profile(engine="turbo", budget=0.001):
        calls()
        assert words_of(plain) != before
        for _ in range(2000):
            sorted(range(2000), key=plain)
            if words_of(plain) == before:
                break
        assert words_of(plain) == before
