"""Records a program with an engine, reads the tree, and compares it with the oracle's.

The comparison covers the program's functions and the C functions that they call, thread by thread: names, nesting,
order, and whether an exception ended a call. Calls of the standard library in between (threading, asyncio, re) are
skipped, and so are the C functions that they call, because the twin does not log them.
"""

import contextlib
import gc
import io
import sys
import threading
import warnings

import vestige
from tree import load, threads
from usable import usable_engines

from . import oracle
from .facts import FILE
from .oracle import Node

FILES = (FILE, "<string>", "made.py")
NAMEDTUPLE = "<string>(1): <lambda>"  # the library's: programs have no lambda in the first line of a string


class Difference:
    """An entry of the table: a documented difference between an engine and the oracle."""

    def __init__(self, engines, says, leaves_out):
        self.engines = engines  # the engines that differ
        self.says = says  # the sentence in docs/how/accuracy.md that documents the difference
        self.leaves_out = leaves_out  # (node, parent) -> whether the comparison leaves out the node


PYTHON = sys.version_info[:2]
SAFE = ("profile", "monitoring")

# C functions that an operation or a type calls, and that no program here calls itself.
BY_OPERATIONS = {
    "<built-in method __format__ of object object>",
    "<built-in method __format__ of int object>",
}

C_CALLS_C = "C functions that C calls are spans under `turbo` alone"
WITH = "and so are those that an operation calls: `__format__` in an f-string, `__enter__` in a `with`"
REFUSED = "called with arguments which the interpreter refuses for it (`len()`) has a span except under `turbo`"
NO_SELF = "a method that is called without its object (`list.append()`) under `monitoring` alone"

CALLABLES = "On 3.11 the safe engine shows all callables that C calls."

# Applied to the recorded tree: nodes that an engine shows but the oracle lacks.
SHOWN = [
    Difference(
        ["turbo"], C_CALLS_C, lambda node, parent: is_native(node) and is_native(parent) and node.name != parent.name
    ),
    Difference(["turbo"], WITH, lambda node, parent: node.name in BY_OPERATIONS),
    Difference(["profile"], CALLABLES, lambda node, parent: is_callable(node) and is_native(parent)),
]

# Applied to the expected tree: nodes that an engine does not show.
HIDDEN = [
    Difference(SAFE, C_CALLS_C, lambda node, parent: node.why == "from C"),
    Difference(["turbo"], C_CALLS_C, lambda node, parent: node.why == "from C" and is_native(parent)),  # see SHOWN
    Difference(SAFE, WITH, lambda node, parent: node.why == "by with"),
    Difference(["turbo"], REFUSED, lambda node, parent: node.why in ("arguments", "self")),
    Difference(["profile"], NO_SELF, lambda node, parent: node.why == "self"),
]


# ---- trees -------------------------------------------------------------


def is_native(node):
    return node is not None and node.name.startswith("<built-in ")


def is_callable(node):
    return node.name.startswith("<built-in type ") or node.name.startswith("<built-in method __call__ of ")


def without(children, parent, differences):
    """The children less those that a difference leaves out, whose own children take their place."""
    found = []
    for node in children:
        below = without(node.children, node, differences)
        if any(difference.leaves_out(node, parent) for difference in differences):
            found.extend(below)
        else:
            kept = Node(node.name, node.why)
            kept.raised, kept.children = node.raised, below
            found.append(kept)
    return found


def lines(children, depth=0):
    for node in children:
        yield "  " * depth + node.name + (" (raised)" if node.raised else "")
        yield from lines(node.children, depth + 1)


def texts(trees):
    """{thread: its tree}; threads that called nothing of the program's are left out."""
    found = {thread: "\n".join(lines(children)) for thread, children in trees.items()}
    return {thread: text for thread, text in found.items() if text}


# ---- recording ---------------------------------------------------------


def recorded(trace):
    """{thread: nodes} of a trace, the library's frames looked through."""
    found = {}
    for thread, roots in threads(trace).items():
        roots.sort(key=lambda span: span.start)
        found[thread] = of_program(roots, False)
    return found


def of_program(spans, caller_is_ours):
    found = []
    for span in spans:
        native = span.name.startswith("<built-in ")
        file, _, _ = span.name.rpartition("(") if native else span.name.partition("(")
        ours = caller_is_ours if native else file in FILES and span.name != NAMEDTUPLE
        children = of_program(span.children, ours)
        if not ours:
            found.extend(children)
            continue
        # such as "cut" or "open at stop": no call may have these marks
        odd = [f" ({mark})" for mark in span.marks if mark != "raised"]
        node = Node(span.name + "".join(odd))
        node.raised = "raised" in span.marks
        node.children = children
        found.append(node)
    return found


@contextlib.contextmanager
def quietly():
    """The collector waits, for nobody knows when it would run; what a program warns of is its own business."""
    collecting, unraisable = gc.isenabled(), sys.unraisablehook
    gc.disable()
    sys.unraisablehook = lambda _: None
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = unraisable
        if collecting:
            gc.enable()


def run_recorded(source, engine, warm):
    """(what the program computes, the trace). It ran so often before, as quickened code is other code."""
    namespace = {"__name__": "program"}
    exec(compile(source, FILE, "exec"), namespace)
    main = namespace["main"]
    with quietly():
        for _ in range(warm):
            main()
        prof = vestige.profile(engine=engine)
        with prof:
            result = main()
    trace = load(prof)
    assert prof._session.engine == engine
    return result, trace


def run_twin(source):
    namespace, runtime = oracle.load(source)
    with quietly():
        result = namespace["main"]()
    return result, {thread: root.children for thread, root in runtime.log.threads.items()}


# ---- comparing ---------------------------------------------------------


class Different(AssertionError):
    pass


def expected_of(trees, engine):
    hidden = [difference for difference in HIDDEN if engine in difference.engines]
    return texts({thread: without(nodes, None, hidden) for thread, nodes in trees.items()})


def recorded_of(trace, engine):
    shown = [difference for difference in SHOWN if engine in difference.engines]
    return texts({thread: without(nodes, None, shown) for thread, nodes in recorded(trace).items()})


def check(source, engines=None, warm=0):
    """How many calls were compared, by engine. Raises Different, with the program and both trees, if an engine is
    wrong.
    """
    twin_result, trees = run_twin(source)
    calls = {}
    for engine in engines or usable_engines():
        result, trace = run_recorded(source, engine, warm)
        if result != twin_result:
            raise Different(f"{source}\n\nThe program computes {result!r}, its twin {twin_result!r}.")
        expected = expected_of(trees, engine)
        compare(source, engine, warm, expected, recorded_of(trace, engine))
        calls[engine] = sum(text.count("\n") + 1 for text in expected.values())
    return calls


COPIES = 8


def check_at_once(source):
    """Compares copies of the program, each on its own thread, all in parallel: for Pythons without the GIL. Threads
    that a program starts are not compared, since those of all copies have the same names."""
    (engine,) = usable_engines()
    twin_result, trees = run_twin(source)
    barrier, results = threading.Barrier(COPIES), {}

    def run(main):
        barrier.wait(600)  # the process itself may be stopped for a while
        results[threading.current_thread().name] = main()

    def copy(number):
        namespace = {"__name__": "program"}
        exec(compile(source, FILE, "exec"), namespace)
        return threading.Thread(target=run, args=(namespace["main"],), name=f"copy {number}")

    threads_at_once = [copy(number) for number in range(COPIES)]
    with quietly():
        prof = vestige.profile(engine=engine)
        with prof:
            for thread in threads_at_once:
                thread.start()
            for thread in threads_at_once:
                thread.join()
    if any(results.get(thread.name) != twin_result for thread in threads_at_once):
        raise Different(f"{source}\n\nA copy of the program computes {results!r}, its twin {twin_result!r}.")
    tree = expected_of(trees, engine).get("MainThread", "")
    found = recorded_of(load(prof), engine)
    found = {thread.name: found.get(thread.name, "") for thread in threads_at_once}
    compare(source, engine, 0, dict.fromkeys(found, tree), found)
    return COPIES * (tree.count("\n") + 1)


def compare(source, engine, warm, expected, found):
    if expected == found:
        return
    parts = [f"engine {engine} on Python {PYTHON[0]}.{PYTHON[1]}, after {warm} runs", source]
    for thread in sorted({*expected, *found}):
        if expected.get(thread) != found.get(thread):
            parts.append(f"# expected, {thread}:\n{expected.get(thread)}\n# recorded:\n{found.get(thread)}")
    raise Different("\n\n".join(parts))
