"""Random programs, each with a log that its own functions write: the recorded tree must equal the log."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tree import record, short, spans_of

NAMES = ["a", "b", "c", "d"]


class Planned(Exception):
    pass


def program_of(inner):
    """A program is a list of steps: (action, name of the function, the function's program, whether it raises)."""
    kinds = st.sampled_from(["call", "sort", "generate", "delegate", "drop", "throw"])
    return st.lists(st.tuples(kinds, st.sampled_from(NAMES), inner, st.booleans()), min_size=1, max_size=4)


programs = program_of(program_of(program_of(program_of(st.just([])) | st.just([]))))


class Log:
    """An independent log: the functions themselves enter and leave it."""

    def __init__(self):
        self.root = ("", [], "")
        self.stack = [self.root[1]]

    def enter(self, name):
        children = []
        self.stack[-1].append([name, children, ""])
        self.stack.append(children)

    def leave(self, raised=False):
        self.stack.pop()
        if raised:
            self.stack[-1][-1][2] = "raised"


log = Log()


def a(program, fails):
    body(a, program, fails)


def b(program, fails):
    body(b, program, fails)


def c(program, fails):
    body(c, program, fails)


def d(program, fails):
    body(d, program, fails)


FUNCTIONS = {"a": a, "b": b, "c": c, "d": d}


def body(function, program, fails):
    """Runs inside the function's frame; the comparison ignores this call."""
    log.enter(function.__name__)
    raised = True
    try:
        perform(program)
        if fails:
            raise Planned
        raised = False
    finally:
        log.leave(raised)


def generator(program, fails):
    """Yields between its steps; each stretch between two yields is a span."""
    log.enter("generator")
    suspended = False
    raised = True
    try:
        for step in program:
            perform([step])
            log.leave()
            suspended = True
            try:
                yield
            finally:
                log.enter("generator")
                suspended = False
        if fails:
            raise Planned
        raised = False
    finally:
        assert not suspended
        log.leave(raised)


def delegating(program, fails):
    """Each stretch gives a stretch of this generator and of the inner one; the last inner stretch closes with this
    generator.
    """
    log.enter("delegating")
    raised = True
    inner = generator(program, fails)
    try:
        while True:
            try:
                next_of(inner)
            except StopIteration:
                break
            log.leave()
            try:
                yield
            finally:
                log.enter("delegating")
        raised = False
    finally:
        log.leave(raised)


def next_of(iterator):
    return iterator.__next__()


def perform(program):
    for kind, name, inner, fails in program:
        try:
            if kind == "call":
                FUNCTIONS[name](inner, fails)
            elif kind == "sort":
                sorted([1], key=lambda _: FUNCTIONS[name](inner, fails))
            elif kind == "generate":
                for _ in generator(inner, fails):
                    pass
            elif kind == "delegate":
                for _ in delegating(inner, fails):
                    pass
            elif kind == "drop":
                iterator = generator(inner, fails)
                for _ in iterator:
                    break
                iterator.close()
            elif kind == "throw":
                iterator = generator(inner, fails)
                for _ in iterator:
                    break
                iterator.throw(Planned())
        except Planned:
            pass


KNOWN = {*NAMES, "generator", "delegating"}


def recorded(spans):
    """Returns (name, children, mark) of the spans that the log can have."""
    found = []
    for span in spans:
        children = recorded(span.children)
        if short(span.name) in KNOWN:
            found.append([short(span.name), children, "raised" if "raised" in span.marks else ""])
        else:
            found.extend(children)
    return found


def started(tree):
    """The log has no entry for a generator that never ran, nor for one that got an exception before it ran: leave both
    out.
    """
    return [
        [name, started(children), mark]
        for name, children, mark in tree
        if not (name == "generator" and not children and mark == "raised")
    ]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs)
def test_a_random_program_is_recorded_as_it_logged_itself(program):
    global log
    log = Log()
    trace = record(perform, program)
    expected = log.root[1]
    assert started(recorded(spans_of(trace))) == started(expected)
