"""Scenes of a soak: parts of programs, each of which starts and stops the profiler once or more.

A scene gets the recorder and returns a result, which the soak compares with the scene's first result. All objects of a
scene are gone when it returns.
"""

from __future__ import annotations

import cProfile
import gc
import importlib.util
import os
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from soak_program import fails, squares, work

try:
    import greenlet
except ImportError:
    greenlet = None
if hasattr(sys, "gettotalrefcount"):
    greenlet = None  # with sys.monitoring, they abort a debug build even without vestige
try:
    import _interpreters as interpreters  # type: ignore[import-not-found]
except ImportError:
    import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]

HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


class Recorder(Protocol):
    hooks: Any
    folder: str
    number: int

    def start(self, **options: Any) -> None: ...
    def stop(self) -> None: ...
    def finish(self) -> None: ...
    def fresh(self) -> None: ...
    def export(self, path: str) -> None: ...
    def nothing_is_hooked(self) -> None: ...


# ---- scenes --------------------------------------------------------------------


def calls(run: Recorder) -> Any:
    run.start()
    result = work()
    run.stop()
    return result


def start_and_stop_alone(run: Recorder) -> Any:
    run.start()
    run.stop()


def exceptions(run: Recorder) -> Any:
    def deep(level: int) -> None:
        if level == 3:
            run.start()
        if level == 6:
            [].remove(level)
        deep(level + 1)

    try:
        deep(0)
    except ValueError as error:
        run.stop()
        return len(error.args), sys.exc_info()[1] is error, work()


def generators(run: Recorder) -> Any:
    before = squares(5)
    result = [next(before)]
    run.start()
    result.append(before.send(4))
    inside = squares(4)
    result.append(next(inside))
    thrown = squares(4)
    next(thrown)
    try:
        thrown.throw(KeyError)
    except KeyError:
        result.append(-1)
    run.stop()
    result += [*before, *inside]
    run.start()
    left = squares(3)
    next(left)
    del left
    run.stop()
    return result


def coroutines(run: Recorder) -> Any:
    class Pause:
        def __await__(self) -> Any:
            return (yield len("pause"))

    async def inner(number: int) -> Any:
        return await Pause() + number

    async def outer() -> Any:
        return [await inner(number) for number in range(3)]

    driven = outer()
    got = [driven.send(None)]
    run.start()
    got.append(driven.send(10))
    run.stop()
    got.append(driven.send(20))
    try:
        driven.send(30)
    except StopIteration as end:
        got.append(end.value)
    return got


def thread_from_before(run: Recorder) -> Any:
    """The thread is inside a C call when recording starts, and ends during the recording."""
    gate, results = threading.Lock(), []
    gate.acquire()

    def body() -> None:
        with gate:
            results.append(work(2))

    thread = threading.Thread(target=body)
    thread.start()
    run.start()
    gate.release()
    thread.join()
    run.stop()
    return results


def thread_until_after(run: Recorder) -> Any:
    """The thread starts during the recording, is inside a C call at the stop, and continues afterwards."""
    gate, inside, results = threading.Lock(), threading.Event(), []
    gate.acquire()

    def body() -> None:
        results.append(work(2))
        inside.set()
        with gate:
            results.append(work(2))

    run.start()
    thread = threading.Thread(target=body)
    thread.start()
    inside.wait()
    run.stop()
    gate.release()
    thread.join()
    return results


def started_here_stopped_there(run: Recorder) -> Any:
    thread = threading.Thread(target=run.stop)
    run.start()
    result = work(2)
    thread.start()
    thread.join()
    return result


def inside_callbacks(run: Recorder) -> Any:
    """Started inside one C function's callback, stopped inside another's."""

    def starts(item: int) -> int:
        if item == 2:
            run.start()
        return -item

    def stops(item: int) -> int:
        if item == 2:
            run.stop()
        return -item

    return sorted([1, 2, 3], key=starts), work(2), sorted([1, 2, 3], key=stops), max([3, 4], key=str)


def inside_a_collection(run: Recorder) -> Any:
    def callback(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            run.start()

    gc.callbacks.append(callback)
    gc.collect(0)
    gc.callbacks.remove(callback)

    class Last:
        def __del__(self) -> None:
            run.stop()

    last = Last()
    result = work(2)
    del last
    return result


def collections(run: Recorder) -> Any:
    class Cycle:
        def __init__(self) -> None:
            self.me = self
            self.bound = [].append

    run.start()
    seen = [weakref.ref(Cycle()) for _ in range(3)]
    gc.collect(1)
    run.stop()
    gc.collect(1)
    return [reference() for reference in seen]


EXTENSIONS = [
    name
    for name in ("_bisect", "_heapq", "_statistics", "_struct", "_csv", "_json", "_queue", "_zoneinfo", "_random")
    if importlib.util.find_spec(name) and name not in sys.builtin_module_names
]


def imports(run: Recorder) -> Any:
    """An extension is imported again before, during and after recording; its module objects are freed in between."""
    found = []
    name = EXTENSIONS[run.number % len(EXTENSIONS)]
    own = sys.modules.get(name)

    def anew() -> None:
        sys.modules.pop(name, None)
        module = importlib.import_module(name)
        found.append(len(vars(module)) > 3)
        if name == "_bisect":
            module.bisect_right([1, 2, 3], 2)

    anew()
    run.start()
    anew()
    run.stop()
    anew()
    sys.modules.pop(name)
    if own is not None:
        sys.modules[name] = own
    return found


def freed_definitions(run: Recorder) -> Any:
    """C functions of a module whose definitions are freed with them: before, during and after recording."""
    module = types.ModuleType("made_for_now")
    sys.modules[module.__name__] = module
    made: Any = module  # for type checkers
    made.kept = run.hooks.heap_function()
    made.gone = run.hooks.heap_function()
    made.never = run.hooks.heap_function()
    del made.never
    run.start()
    result = [made.kept(1), made.gone(2)]
    del made.gone
    made.inside = run.hooks.heap_function()
    result.append(made.inside(3))
    run.stop()
    result += [made.kept(4), made.inside(5)]
    del made.kept
    run.start()
    result.append(made.inside(6))
    last = made.inside
    del made.inside, sys.modules[module.__name__]
    run.stop()
    return [*result, last(7)]


def code_that_dies(run: Recorder) -> Any:
    space: dict[str, Any] = {}
    run.start()
    exec("def made(n):\n    return abs(n) + 1\nclass Made(list):\n    pass\n", space)
    result = space["made"](-3), space["Made"]([1]).__len__()
    made = space["Made"]()
    made.append(1)
    run.stop()
    return result, len(made), space.pop("made")(5)


def recursion(run: Recorder) -> Any:
    def down(n: int) -> int:
        return n if n == 0 else down(n - 1)

    run.start()
    result = down(60)
    run.stop()
    return result, down(60)


def a_trace_function(run: Recorder) -> Any:
    lines: list[int] = []

    def tracer(frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code is fails.__code__:
            lines.append(frame.f_lineno)
        return tracer

    before = sys.gettrace()
    run.start()
    sys.settrace(tracer)
    work(2)
    sys.settrace(before)
    run.stop()
    return lines


def another_profiler(run: Recorder) -> Any:
    profiler = cProfile.Profile()

    def counted() -> int:
        return len("seen")

    run.start()
    with profiler:
        counted()
        work(2)
        counted()
    run.stop()
    counts = [entry.callcount for entry in profiler.getstats() if entry.code is counted.__code__]
    # In cProfile, all threads share one stack: without the GIL, another thread makes it count a call too many or too
    # few.
    return counts if HAS_GIL else [count > 0 for count in counts]


def in_greenlets(run: Recorder) -> Any:
    if greenlet is None:
        return None
    result = []

    def other() -> None:
        result.append(work(2))
        main.switch()
        result.append(work(2))

    main = greenlet.getcurrent()
    first = greenlet.greenlet(other)
    first.switch()
    run.start()
    second = greenlet.greenlet(other)
    second.switch()
    first.switch()
    run.stop()
    second.switch()
    return result


def in_child(body: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            body()
            code = 0
        except BaseException as error:
            print("in a child:", repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forks(run: Recorder) -> Any:
    """The child is not recorded, has no hooks, and may start its own recording."""
    right = work(2)

    def child() -> None:
        run.nothing_is_hooked()
        assert work(2) == right
        run.fresh()
        run.start()
        assert work(2) == right
        run.stop()
        run.nothing_is_hooked()

    run.start()
    code = in_child(child)
    result = work(2)
    run.stop()
    return code, result


def forks_that_are_followed(run: Recorder) -> Any:
    right = work(2)

    def child() -> None:
        assert work(2) == right
        run.finish()
        run.nothing_is_hooked()
        assert work(2) == right

    run.fresh()
    run.start(output=os.path.join(run.folder, "followed.vst"), overwrite=True, children=True)
    code = in_child(child)
    run.stop()
    run.finish()
    files = os.listdir(run.folder)
    for name in files:
        os.unlink(os.path.join(run.folder, name))
    return code, len(files)


def memory(run: Recorder) -> Any:
    run.fresh()
    run.start(profile_memory=True)
    result = work(2), len(bytearray(100_000))
    run.stop()
    run.fresh()
    return result


def exports(run: Recorder) -> Any:
    run.fresh()
    run.start()
    result = work(2)
    run.stop()
    path = os.path.join(run.folder, "t.json")
    run.export(path)
    with open(path) as file:
        seen = "soak_program.py" in file.read()
    os.unlink(path)
    return result, seen


def sub_interpreters(run: Recorder) -> Any:
    """Runs in a child, because each run leaves megabytes behind, even without a recording."""

    def child() -> None:
        run.fresh()
        run.start()
        other = interpreters.create()
        interpreters.run_string(other, "def f(n):\n    return len('x' * n)\nassert [f(n) for n in range(9)][-1] == 8")
        run.stop()
        run.nothing_is_hooked()
        interpreters.run_string(other, "assert len('x' * 3) == 3")
        interpreters.destroy(other)

    run.start()
    run.stop()
    return in_child(child)


# How often each scene runs, in about ten thousand starts.
SCENES: dict[Callable[[Any], Any], int] = {
    calls: 2500,
    start_and_stop_alone: 1500,
    exceptions: 800,
    generators: 800,
    coroutines: 500,
    thread_from_before: 400,
    thread_until_after: 400,
    started_here_stopped_there: 400,
    inside_callbacks: 500,
    inside_a_collection: 200,
    collections: 300,
    imports: 200,
    freed_definitions: 500,
    code_that_dies: 300,
    recursion: 300,
    a_trace_function: 200,
    another_profiler: 200,
    in_greenlets: 300,
    forks: 20,
    forks_that_are_followed: 6,
    memory: 30,
    exports: 20,
    sub_interpreters: 2,
}
