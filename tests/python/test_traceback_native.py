"""Tracebacks of Python and C together, taken in difficult places: without the GIL, in signal handlers, at the
interpreter's end.
"""

import functools
import gc
import os
import signal
import sys
import textwrap
import threading
import traceback

import pytest

import compiled
import other_builds
from vestige import profile
from vestige.traceback import CapturedTraceback, free_dead_captured_tracebacks, gather_traceback, symbolize_tracebacks

SOURCE = (compiled.HERE / "traceback_helper.c").read_text()
HERE = str(compiled.HERE)

HAS_NATIVE = symbolize_tracebacks([gather_traceback(False, False, True)]) != [[]]
needs_native = pytest.mark.skipif(not HAS_NATIVE, reason="this build takes no native frames")


def _names_inside_of_sorted():
    taken = []
    sorted([1], key=lambda x: taken.append(gather_traceback(True, False, True)))
    return [frame["name"] for frame in symbolize_tracebacks(taken)[0]]


needs_symbols = pytest.mark.skipif(
    "builtin_sorted" not in _names_inside_of_sorted(), reason="the interpreter was stripped of its names"
)


@pytest.fixture(scope="module")
def helper():
    return compiled.module("traceback_helper", SOURCE)


def symbolize(taken):
    return symbolize_tracebacks([taken])[0]


def is_python(frame):
    return frame["filename"].endswith(".py") or frame["filename"].startswith("<")


def names(frames):
    return [frame["name"] for frame in frames]


def here():
    """Returns our frames with native frames, and the interpreter's."""
    return gather_traceback(True, False, True), traceback.extract_stack()


def agree(pair):
    """Checks that the Python frames among the native frames equal the traceback module's, and that each stands at its
    evaluation.
    """
    ours, theirs = pair
    frames = symbolize(ours)
    assert [(f["filename"], f["name"]) for f in frames if is_python(f)] == [
        (f.filename, f.name) for f in reversed(theirs) if is_python({"filename": f.filename})
    ]
    assert "_PyEval_EvalFrameDefault" not in names(frames)  # Python frames replace each evaluation
    assert not HAS_NATIVE or not is_python(frames[-1])  # no Python frame is left over
    return frames


def order(frames, wanted, until=None):
    """Returns the wanted names in order, from the innermost to the name that ends the test's own frames."""
    found = names(frames)
    return [name for name in found[: found.index(until) + 1 if until else None] if name in wanted]


# ---- the order of Python and C ----


@needs_native
def test_python_c_python_c_stand_in_the_order_they_called_each_other(helper):
    def outermost():
        return helper.first(middle)

    def middle():
        return inlined()

    def inlined():
        return helper.second(innermost)

    def innermost():
        return below()

    def below():
        return here()

    wanted = {"outermost", "middle", "inlined", "innermost", "below", "helper_first", "helper_second", "here"}
    frames = agree(outermost())
    assert order(frames, wanted) == [
        "here", "below", "innermost", "helper_second", "inlined", "middle", "helper_first", "outermost",
    ]  # fmt: skip
    assert is_python(frames[0])  # the capturing function is not shown


@needs_symbols
def test_a_function_called_back_by_sorted_stands_inside_of_it_and_its_caller_outside():
    taken = []

    def caller():
        return sorted([3], key=lambda x: taken.append(here()))

    caller()
    frames = agree(taken[0])
    assert order(frames, {"<lambda>", "caller", "builtin_sorted", "list_sort_impl"}, "caller") == [
        "<lambda>", "list_sort_impl", "builtin_sorted", "caller",
    ]  # fmt: skip


@needs_symbols
def test_nested_callbacks_stand_in_order():
    taken = []

    def add(total, value):
        return sorted([value], key=lambda x: taken.append(here()) or 0)[0]  # noqa: FURB192

    def caller():
        return functools.reduce(add, [1, 2])

    caller()
    reduce = "_functools_reduce" if sys.version_info >= (3, 14) else "functools_reduce"
    wanted = {"<lambda>", "add", "caller", "builtin_sorted", reduce}
    found = order(agree(taken[0]), wanted, "caller")
    assert found == ["<lambda>", "builtin_sorted", "add", reduce, "caller"]


WAYS = {
    "attribute": "class C:\n    def __getattr__(self, name): return take()\nC().x",
    "class body": "class C:\n    take()",
    "comparison": "class C:\n    def __lt__(self, other): return take() and True\nC() < C()",
    "context manager": textwrap.dedent(
        """
        class C:
            def __enter__(self): take()
            def __exit__(self, *e): take(); return True
        with C():
            raise KeyError
        """
    ),
    "exec": "exec('take()')",
    "exception": "class E(Exception):\n    def __init__(self): take()\ntry:\n    raise E\nexcept E: take()",
    "finalizer": "class C:\n    def __del__(self): take()\nx = C()\ndel x",
    "generator": "def g():\n    yield take()\n    yield from (take() for _ in [1])\nlist(g()); [*g()]",
    "generator closed": "def g():\n    try:\n        yield\n    finally: take()\nx = g()\nnext(x)\nx.close()",
    "import": "import sys\nclass F:\n    def find_spec(self, *a): take()\nsys.meta_path.insert(0, F())\n"
    "try:\n    import does_not_exist\nexcept ImportError: pass\nfinally: del sys.meta_path[0]",
    "iteration": "class C:\n    def __iter__(self): return self\n"
    "    def __next__(self): take(); raise StopIteration\n"
    "for x in C(): pass\n[*C()]\na, *b = [1, *C()]",
    "map": "list(map(lambda x: take(), [1]))",
    "operators": "class C:\n    def __add__(self, o): take(); return self\n    __matmul__ = __iadd__ = __add__\n"
    "    def __getitem__(self, k): return take()\n    def __setitem__(self, k, v): take()\n"
    "    def __bool__(self): return bool(take())\n    def __eq__(self, o): return take()\n"
    "    def __format__(self, s): take(); return ''\n"
    "c = C()\nc + c; c @ c; c += c; c[0]; c[1] = 2; not c; c == c; f'{c}'\nif c: pass",
    "mappings": "class M(dict):\n    def __missing__(self, k): take(); return 1\n"
    "    def __getitem__(self, k): take(); return 1\n"
    "    def keys(self): take(); return []\nf = lambda **k: 0\nf(**M()); {**M()}; '%(a)s' % M()\n"
    "exec('x = y', {}, M())",
    "matching": "class P:\n    __match_args__ = ('x',)\n    @property\n    def x(self): take(); return 1\n"
    "match P():\n    case P(2): pass\n    case P(x=1): pass\n",
    "more operators": "class C:\n    def __neg__(self): return take()\n"
    "    __pos__ = __invert__ = __len__ = __hash__ = __index__ = __neg__\n"
    "    def __contains__(self, x): return take()\n    def __delitem__(self, k): take()\n"
    "    def __delattr__(self, k): take()\n"
    "    def __setattr__(self, k, v): take()\n    def __call__(self, *a, **k): return take()\n"
    "    def __repr__(self): take(); return ''\n"
    "c = C()\n-c; +c; ~c; len(c); hash(c); [1, 2][c]; 1 in c; 1 not in c; c.x = 1\ndel c[0], c.x\n"
    "c(); c(1, *[2], **{'a': 1})\n"
    "f'{c!r}'; {c: 1}; {c}; (0, 1, 2)[:c]; [0, 1][c:]; print(end=repr(c))",
    "asynchronous": "class A:\n    async def __aenter__(self): take()\n"
    "    async def __aexit__(self, *e): take(); return True\n"
    "    def __aiter__(self): take(); return self\n    async def __anext__(self): take(); raise StopAsyncIteration\n"
    "    def __await__(self): take(); return iter(())\nasync def f():\n    async with A(): raise KeyError\n"
    "    async for x in A(): pass\n    await A()\ntry:\n    f().send(None)\nexcept StopIteration: pass",
    "exceptions of odd types": "class T(type):\n    def __instancecheck__(self, o): return take()\n"
    "    def __subclasscheck__(self, c): return take()\n"
    "class E(Exception, metaclass=T): pass\nisinstance(1, E)\ntry:\n    raise ValueError\n"
    "except (KeyError, ValueError) as e: take()\n"
    "try:\n    try:\n        1 / 0\n    finally: take()\nexcept ZeroDivisionError as e: take()",
    "partial": "import functools\nfunctools.partial(take)()",
    "star arguments": "take(*[], **{})",
    "type call": "class C:\n    def __new__(cls): take(); return object.__new__(cls)\n"
    "    def __init__(self): take()\nC()",
}


@needs_native
@pytest.mark.parametrize("way", WAYS)
def test_python_called_in_any_way_stands_where_it_was_evaluated(way):
    taken = []

    def take():
        taken.append(here())
        return 1

    exec(compile(WAYS[way], "<way>", "exec"), {"take": take})
    assert taken
    for pair in taken:
        agree(pair)


@needs_symbols
def test_functions_that_are_not_entered_yet_are_left_out_and_do_not_disturb_the_order():
    """Up to 3.11, any new object can trigger a collection, so collections also run while a function makes its cells."""
    taken = []

    def collecting(phase, info):
        if phase == "start":
            taken.append(here())

    def make(a, b=1, c=2, d=3):
        return lambda: (a, b, c, d)  # four cells

    def work(number):
        kept = [[] for _ in range(number % 7)]  # so that any of these objects may trigger the collection
        return sorted([number], key=make), kept

    threshold = gc.get_threshold()
    gc.callbacks.append(collecting)
    gc.set_threshold(1)
    try:
        for number in range(50):
            work(number)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collecting)
    stacks = [names(agree(pair)) for pair in taken]
    stacks = [found for found in stacks if "work" in found]  # the loop around work() makes objects, too
    assert stacks
    for found in stacks:
        between = found[found.index("collecting") : found.index("work")]
        assert any("gc" in name.lower() for name in between)  # the collector called this function


@needs_native
def test_greenlets_have_their_own_python_frames():
    greenlet = pytest.importorskip("greenlet")
    taken = []

    def work(depth):
        if depth:
            return work(depth - 1)
        for _ in range(3):
            taken.append(here())
            parent.switch()
        return None

    parent = greenlet.getcurrent()
    workers = [greenlet.greenlet(work) for _ in range(4)]
    for turn in range(3):
        for depth, worker in enumerate(workers):
            worker.switch(*([depth * 3] if turn == 0 else []))
    assert len(taken) == 12
    for ours, theirs in taken:
        frames = symbolize(ours)
        assert [f["name"] for f in frames if is_python(f)] == [f.name for f in reversed(theirs)]


@needs_native
def test_skipped_frames_take_along_what_they_called(helper):
    def outer():
        return helper.first(inner)

    def inner():
        return [CapturedTraceback.extract(cpp=True, skip=skip) for skip in (0, 1, 2, 3)]

    wanted = {"outer", "inner", "helper_first"}
    inlined = sys.version_info >= (3, 12)  # a comprehension has no frame of its own
    found = [order([{"name": f.name} for f in reversed(tb.summary())], wanted) for tb in outer()]
    assert found[0] == ["inner", "helper_first", "outer"]
    assert found[1 if inlined else 2] == ["outer"]
    assert found[2 if inlined else 3] == []


@needs_native
def test_c_that_takes_a_traceback_is_part_of_it(helper):
    def caller():
        return helper.capture()

    assert order(symbolize(caller()), {"helper_capture", "caller"}) == ["helper_capture", "caller"]


def test_equal_stacks_taken_from_c_and_in_python_have_one_object(helper):
    *_, first, second = [helper.capture() for _ in range(200)]  # until the interpreter has specialized the call
    assert first is second


# ---- without the GIL ----


def test_a_thread_without_the_gil_takes_it_to_capture(helper):
    def caller():
        return helper.capture_without_gil(), traceback.extract_stack()

    agree(caller())


def test_a_thread_that_python_does_not_know_has_no_python_frames_and_needs_no_gil(helper):
    assert not any(map(is_python, symbolize(helper.capture_in_c_thread())))


def test_a_traceback_released_by_a_c_thread_is_freed_later(helper):
    free_dead_captured_tracebacks()
    code = sys._getframe().f_code
    before = sys.getrefcount(code)
    helper.release_in_c_thread()
    assert free_dead_captured_tracebacks() == 1
    assert sys.getrefcount(code) == before


def test_gil_then_device_lock_and_device_lock_then_release_do_not_deadlock(helper):
    assert helper.deadlock(30_000) > 0
    assert other_builds.HERE["nogil"] is not getattr(sys, "_is_gil_enabled", lambda: True)()
    free_dead_captured_tracebacks()


def test_nor_do_they_while_recordings_start_and_stop(helper):
    """Without the GIL, a start stops all threads, and one of them waits for the device's lock."""
    released = []
    thread = threading.Thread(target=lambda: released.extend(helper.deadlock(300) for _ in range(10)))
    thread.start()
    while thread.is_alive():
        with profile():
            CapturedTraceback.extract()
    thread.join()
    assert len(released) == 10


def test_threads_capture_and_drop_at_the_same_time():
    failed = []

    def work(number):
        kept = []
        for i in range(3000):
            kept.append(CapturedTraceback.extract(cpp=i % 10 == 0))
            if len(kept) > number * 7:
                kept.clear()
        if kept and kept[-1].summary()[-1].name != "work":
            failed.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


# ---- signals ----


def test_a_python_signal_handler_can_capture():
    taken = []

    def handler(number, frame):
        taken.append(here())

    def interrupted():
        signal.raise_signal(signal.SIGUSR1)
        return 1

    old = signal.signal(signal.SIGUSR1, handler)
    try:
        interrupted()
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert order(agree(taken[0]), {"handler", "interrupted"}) == ["handler", "interrupted"]


@needs_native
def test_a_c_signal_handler_takes_addresses_that_are_named_later(helper):
    frames = symbolize(helper.signal())
    assert "on_signal" in names(frames)
    assert "helper_signal" in names(frames)
    assert not any(map(is_python, frames))


# ---- deep, forked, at the end ----


def test_a_stack_of_100000_python_frames(workplace):
    workplace.write(
        "p.py",
        """
        import sys, threading
        from vestige.traceback import CapturedTraceback

        def recurse(depth):
            if depth:
                return recurse(depth - 1)
            return CapturedTraceback.extract(), CapturedTraceback.extract(cpp=True)

        def work():
            for taken in recurse(100_000):
                summary = taken.summary()
                print(sum(frame.name == "recurse" for frame in summary), len(taken.format()) < 200 + len(summary) // 2)

        sys.setrecursionlimit(200_000)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """,
    )
    result = workplace.python("p.py")
    assert result.stderr == ""
    first, second = result.stdout.splitlines()
    assert first == "100001 True"
    assert second.split()[0] == "100001"


def test_a_forked_child_names_the_parents_and_takes_its_own():
    kept = CapturedTraceback.extract()
    expected = kept.format()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            same = kept.format() == expected and CapturedTraceback.extract(cpp=True).summary()
            os.write(writing, b"same" if same else b"not")
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert pipe.read() == b"same"
    assert os.waitpid(child, 0)[1] == 0
    assert kept.format() == expected


END = """
    import atexit, sys, threading
    sys.path.insert(0, {here!r})
    import compiled
    from vestige.traceback import CapturedTraceback, gather_traceback
"""


def test_capture_at_exit_and_in_destructors_of_the_last_moment(workplace):
    workplace.write(
        "p.py",
        """
        import atexit, os, sys
        from vestige.traceback import CapturedTraceback, symbolize_tracebacks

        class Last:  # what it needs it has: of modules there is nothing left
            def __init__(self):
                self.capture, self.name, self.write = CapturedTraceback.extract, symbolize_tracebacks, os.write

            def __del__(self):
                self.name([self.capture().tb, self.capture(cpp=True).tb])
                self.write(1, b"done\\n")

        def leaving():
            names = [frame.name for frame in CapturedTraceback.extract().summary()]
            os.write(1, f"leaving {names}\\n".encode())

        atexit.register(leaving)
        keep = Last()
        cycle = [Last()]
        cycle.append(cycle)
        sys.last = keep
        """,
    )
    result = workplace.python("p.py")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == "leaving ['leaving']"
    assert lines.count("done") == 2


def test_threads_capture_while_the_interpreter_ends_and_after_it(workplace):
    compiled.need_compiler()
    workplace.write(
        "p.py",
        textwrap.dedent(END.format(here=HERE))
        + textwrap.dedent(
            """
            helper = compiled.module("traceback_helper", (compiled.HERE / "traceback_helper.c").read_text())
            helper.capture_after_the_end()
            threading.Thread(target=helper.capture_until_exit, daemon=True).start()
            while helper.captures() < 1000:
                gather_traceback(True, False, False)
            kept = CapturedTraceback.extract()
            sys.kept = kept
            """
        ),
    )
    for _ in range(3):
        result = workplace.python("p.py")
        assert result.stdout == "initialized 0, captured\n"
        assert (result.returncode, result.stderr) == (0, "")
