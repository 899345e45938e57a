"""Programs that examine everything that recording might change in an interpreter: frames, tracebacks, reference counts,
weak references, destructors, the collector, tracemalloc, depth, and the program's own hooks.

A program is a list of fragments, with numbers and ways to call drawn from its seed. Each fragment prints lines "name:
value"; a name consists of the fragment's name and the examined object's. proofs/nasty.py compares a program's output
with and without a recording.
"""

import random

from nasty_slots import OF_CLASSES, OF_FUNCTIONS, slot

SEEDS = range(150)

HEAD = """\
import functools, gc, operator, re, sys, threading, traceback, weakref
def say(name, value):
    print(f"{name}: {value!r}")
class Thing:
    pass
class Ends:
    def __init__(self, name, log):
        self.name, self.log = name, log
    def __del__(self):
        self.log.append((self.name, sys._getframe(1).f_code.co_name))
class Holder:
    def __init__(self, f):
        self.f = f
    def method(self, x):
        return self.f(x)
    def __getitem__(self, x):
        return self.f(x)
    def __call__(self, x):
        return self.f(x)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        return False
    @property
    def made(self):
        return self.f(Thing())
def star(f):
    def inside(*args, **named):
        return f(*args, **named)
    return inside
def only(f):
    def inside(x=None, *, y=None):
        return f(x if y is None else y)
    return inside
def drive(f):
    def steps():
        yield f((yield))
    made = steps()
    next(made)
    return made
"""

# Ways to call {f} with one argument; "from C": C code makes the call.
WAYS = {
    "plain": "{f}({x})",
    "method": "Holder({f}).method({x})",
    "object": "Holder({f})({x})",
    "subscript": "Holder({f})[{x}]",
    "lambda": "(lambda a: {f}(a))({x})",
    "closure": "only({f})({x})",
    "named": "only({f})(y={x})",
    "nested": "[0, {{'k': {f}({x})}}][1]['k']",
    "text": "f'{{{f}({x})}}'",
    "condition": "0 or {f}({x})",
    "loop": "[{f}(a) for a in [{x}]]",
    "sent": "drive({f}).send({x})",
    "from C, map": "next(map({f}, [{x}]))",
    "from C, sorted": "sorted([{x}], key={f})",
    "from C, partial": "functools.partial({f}, {x})()",
    "from C, reduce": "functools.reduce(lambda a, b: {f}(b), [0, {x}])",
    "by *": "{f}(*[{x}])",
    "through *": "star({f})({x})",
}

FRAGMENTS = {}


def fragment(name, text, **needs):
    FRAGMENTS[name] = (text, needs)


# ---- frames and tracebacks ----------------------------------------------

fragment(
    "where",
    """
    def look(x):
        frame, found = sys._getframe(1), []
        while frame is not None and len(found) < 6:
            found.append((frame.f_code.co_name, frame.f_lasti, frame.f_lineno))
            frame = frame.f_back
        say("where, {way}", found)
        return 1
    for _ in range({n}):
        {call look Thing()}
""",
)
fragment(
    "kept frame",
    """
    kept = []
    def keeps(x):
        held = [x, {n}]
        kept.append(sys._getframe())
        return 1
    for _ in range(3):
        {call keeps Thing()}
    for frame in kept:
        say("kept frame, {way}", (sorted(frame.f_locals), sys.getrefcount(frame), gc.is_tracked(frame), frame.f_lasti))
        gone = weakref.ref(frame.f_locals["x"])
        frame.clear()
        say("kept frame cleared, {way}", (frame.f_locals, gone() is None))
""",
)
fragment(
    "traceback",
    """
    def fails(x):
        return x.missing
    def through(x):
        try:
            return {call fails x}
        finally:
            len("x")
    for _ in range({n}):
        try:
            through(Thing())
        except AttributeError as error:
            at, found = error.__traceback__, []
            while at is not None:
                found.append((at.tb_frame.f_code.co_name, at.tb_lasti, at.tb_lineno, at.tb_frame.f_lasti))
                at = at.tb_next
            say("traceback, {way}", found)
            say("traceback text, {way}", traceback.format_exc())
            say("traceback counts, {way}", [sys.getrefcount(f) for f in (fails, through, error, error.__traceback__)])
            gone = weakref.ref(error.__traceback__.tb_next.tb_frame.f_locals["x"])
            del at
        say("traceback gone, {way}", gone() is None)
""",
)
fragment(
    "refused",
    """
    def takes(a, b):
        pass
    for _ in range({n}):
        for arguments in [(), (1,), (1, 2, 3)]:
            try:
                takes(*arguments)
            except TypeError as error:
                say("refused", (str(error), error.__traceback__.tb_lasti))
        try:
            takes(1)
        except TypeError as error:
            say("refused", (str(error), error.__traceback__.tb_lasti, error.__traceback__.tb_next))
        try:
            len()
        except TypeError as error:
            say("refused by C", (str(error), error.__traceback__.tb_lasti))
""",
)
fragment(
    "generator",
    """
    def makes(x):
        try:
            received = yield sys.getrefcount(x)
            yield received, sys._getframe().f_lasti, sys._getframe(1).f_lasti
        finally:
            say("generator ends", sys.exc_info()[0])
    for _ in range({n}):
        made = makes(Thing())
        say("generator", (next(made), made.send(1), sys.getrefcount(made), made.gi_frame.f_lasti))
        made.close()
        made = makes(Thing())
        next(made)
        try:
            made.throw(KeyError(1))
        except KeyError as error:
            say("generator thrown", [error.__traceback__.tb_lasti, error.__traceback__.tb_next.tb_lasti])
        made = makes(Thing())
        next(made)
        del made
""",
)

fragment(
    "running generator",
    """
    made = []
    def referents(x):
        return len(gc.get_referents(made[-1]))
    def runs():
        a, b = [1], [2]
        yield {call referents Thing()}
    for _ in range({n}):
        made.append(runs())
        say("running generator, {way}", next(made[-1]))
""",
)

# ---- counts, weak references, destructors --------------------------------

fragment(
    "counts",
    """
    def counts(x):
        say("counts, {way}", (sys.getrefcount(x), sys.getrefcount(counts), len(gc.get_referrers(x))))
        gone = weakref.ref(x)
        del x
        say("counts gone, {way}", gone() is None)
        return 1
    for _ in range({n}):
        {call counts Thing()}
""",
)
fragment(
    "callbacks",
    """
    log = []
    def drops(x):
        one = weakref.ref(x, lambda _: log.append(("one", sys._getframe(1).f_code.co_name)))
        two = weakref.ref(x, lambda _: log.append(("two", sys._getframe(1).f_lineno)))
        x = None
        log.append("dropped")
        return 1
    for _ in range({n}):
        {call drops Thing()}
        log.append("returned")
    say("callbacks, {way}", log)
    cache = weakref.WeakValueDictionary()
    def fills(x):
        cache[{n}] = x
        del x
        say("callbacks cache, {way}", len(cache))
        return 1
    {call fills Thing()}
""",
)
fragment(
    "destructors",
    """
    log = []
    def inner(x):
        local = Ends("local", log)
        x = None
        log.append("inner")
        return 1
    def two(a, b, c=Ends("default", log)):
        log.append("two")
        a = None
        return b and 1
    for _ in range({n}):
        {call inner Ends("given", log)}
        log.append("between")
        two(Ends("a", log), Ends("b", log))
        two(b=Ends("kb", log), a=Ends("ka", log))
        two(Ends("pa", log), b=Ends("nb", log), c=Ends("c", log))
    say("destructors, {way}", log)
""",
)
fragment(
    "destructors and exceptions",
    """
    log = []
    def breaks(x):
        other = Ends("other", log)
        raise ValueError({n})
    for _ in range({n}):
        try:
            {call breaks Ends("given", log)}
        except ValueError as error:
            log.append("caught")
        log.append("after")
    say("destructors and exceptions, {way}", log)
    class Bad:
        def __del__(self):
            raise KeyError("in __del__")
    sys.unraisablehook = lambda args: log.append((args.exc_type.__name__, args.exc_traceback.tb_lasti))
    def drops(x):
        del x
        return 1
    {call drops Bad()}
    sys.unraisablehook = sys.__unraisablehook__
    say("destructor raises, {way}", log[-1])
""",
)
fragment(
    "peak",
    """
    import tracemalloc
    def grows(x):
        x = bytes(len(x))
        return 1
    tracemalloc.start()
    for _ in range({n}):
        tracemalloc.reset_peak()
        {call grows bytes(1 << 20)}
        say("peak, {way}", tracemalloc.get_traced_memory()[1] >> 19)
    tracemalloc.stop()
""",
)

# ---- the collector and tracemalloc ----------------------------------------

fragment(
    "collector",
    """
    def cycle(x):
        x.itself = x
        return 1
    gc.collect()
    gc.disable()
    for _ in range({n}):
        {call cycle Thing()}
    say("collector, {way}", gc.collect())
    before = len(gc.get_objects())
    kept = [Thing() for _ in range({n})]
    say("collector objects", len(gc.get_objects()) - before)
    say("collector again", gc.collect())
    say("collector garbage", (len(gc.garbage), gc.isenabled(), gc.get_threshold()))
    gc.enable()
""",
)
fragment(
    "collector counts",
    """
    seen = []
    def watch(phase, info):
        seen.append((phase, info["generation"], info["collected"], info["uncollectable"]))
    gc.collect()
    gc.callbacks.append(watch)
    gc.set_threshold(50, 3, 3)
    def makes(x):
        a, b = [x], [x]
        a.append(b), b.append(a)
        return 1
    for _ in range({m}):
        {call makes Thing()}
    gc.set_threshold(700, 10, 10)
    gc.callbacks.remove(watch)
    say("collector counts, {way}", (len(seen), seen[:6]))
    say("collector callbacks", gc.callbacks)
""",
)
fragment(
    "collector young",
    """
    gc.collect()
    before = gc.get_count()[0]
    kept = [[] for _ in range({n})]
    say("collector young", gc.get_count()[0] - before)
""",
)
fragment(
    "tracemalloc",
    """
    import tracemalloc
    def allocates(x):
        return [bytes(1000 + i) for i in range({n})]
    tracemalloc.start(3)
    made = allocates(1)
    before = tracemalloc.take_snapshot()
    kept = [allocates(1) for _ in range(3)]
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    own = [tracemalloc.Filter(True, __file__)]
    found = after.filter_traces(own).compare_to(before.filter_traces(own), "lineno")
    say("tracemalloc", sorted((s.traceback[0].lineno, s.count_diff, s.size_diff) for s in found))
    blocks = after.filter_traces(own).statistics("lineno")
    say("tracemalloc blocks", sorted((s.traceback[0].lineno, s.count) for s in blocks))
""",
)

# ---- hooks of the program ----------------------------------------------------

fragment(
    "setprofile",
    """
    seen = []
    def profiler(frame, event, arg):
        seen.append((event, frame.f_code.co_name, getattr(arg, "__name__", None)))
    def work(x):
        len("x"), [].append(x), sorted([2, 1], key=abs)
        return 1
    def all_of_it():
        sys.setprofile(profiler)
        {call work 1}
        {native}
        sys.setprofile(None)
    for _ in range(2):
        all_of_it()
    say("setprofile, {way}", seen)
    say("setprofile left", sys.getprofile())
""",
)
fragment(
    "setprofile in threads",
    """
    seen = []
    def profiler(frame, event, arg):
        if frame.f_code.co_filename == __file__:
            seen.append((event, frame.f_code.co_name, getattr(arg, "__name__", None)))
    def work():
        [abs(-{n}) for _ in range(2)]
    threading.setprofile(profiler)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    threading.setprofile(None)
    say("setprofile in threads", seen)
""",
)
fragment(
    "settrace",
    """
    seen = []
    def tracer(frame, event, arg):
        if len(seen) > 400:
            return None
        frame.f_trace_opcodes = {n} % 2 == 0
        seen.append((event, frame.f_code.co_name, frame.f_lineno, frame.f_lasti))
        return tracer
    def work(x):
        for _ in range(2):
            len("x")
        try:
            raise KeyError
        except KeyError:
            pass
        return 1
    def all_of_it():
        sys.settrace(tracer)
        {call work 1}
        {native}
        sys.settrace(None)
    all_of_it()
    say("settrace, {way}", seen)
    say("settrace left", sys.gettrace())
""",
)
fragment(
    "settrace jumps",
    """
    def tracer(frame, event, arg):
        if event == "line" and frame.f_code is jumps.__code__ and frame.f_lineno == first + 2:
            frame.f_lineno = first + 3
        return tracer
    first = sys._getframe().f_lineno + 1
    def jumps(log):
        log.append(1)
        log.append(2)
        log.append({n})
        return log
    sys.settrace(tracer)
    found = jumps([])
    sys.settrace(None)
    say("settrace jumps", found)
""",
)
fragment(
    "monitoring",
    """
    if hasattr(sys, "monitoring"):
        seen, m, e = [], sys.monitoring, sys.monitoring.events
        m.use_tool_id(2, "nasty")
        def callback(name):
            def note(code, *rest):
                if code.co_filename == __file__:
                    shown = [getattr(r, "__name__", r if isinstance(r, int) else type(r).__name__) for r in rest]
                    seen.append((name, code.co_name, *shown))
                    return m.DISABLE if {n} % 2 and name in ("LINE", "JUMP") else None
            return note
        names = ["PY_START", "PY_RETURN", "PY_YIELD", "PY_RESUME", "CALL", "RAISE", "PY_UNWIND", "LINE", "JUMP"]
        for name in names + ["C_RETURN", "C_RAISE"]:
            m.register_callback(2, getattr(e, name), callback(name))
        def work(x):
            for _ in range(2):
                len("x")
            return 1
        def makes():
            yield work(1)
        def all_of_it():
            m.set_events(2, sum(getattr(e, name) for name in names))
            {call work 1}
            list(makes())
            {native}
            m.set_events(2, 0)
        all_of_it()
        for name in names + ["C_RETURN", "C_RAISE"]:
            m.register_callback(2, getattr(e, name), None)
        m.free_tool_id(2)
        say("monitoring, {way}", seen)
""",
)
fragment(
    "signals",
    """
    import signal
    seen = []
    def handler(number, frame):
        seen.append((number, frame.f_code.co_name, frame.f_lineno))
    def raises(x):
        signal.raise_signal(signal.SIGUSR1)
        return 1
    signal.signal(signal.SIGUSR1, handler)
    for _ in range({n}):
        {call raises Thing()}
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    say("signals, {way}", seen)
""",
)

# ---- depth ---------------------------------------------------------------------

fragment(
    "depth",
    """
    def deep(name, function):
        reached = [0]
        def down():
            reached[0] += 1
        for turn in ("first", "again"):
            reached[0] = 0
            try:
                function(down)
            except RecursionError:
                pass
            say(f"depth, {{name}}, {{turn}}", reached[0])
    sys.setrecursionlimit({limit})
    {slots}
    sys.setrecursionlimit(1000)
""",
)

NATIVE = [
    "abs(-1)",
    "len('x')",
    "[3].index(3)",
    "isinstance(1, int)",
    "str(1)",
    "max([1, 2], key=lambda v: v)",
    "hash(1)",
]


def call(drawn, text):
    """Replaces {call f x} in the text by the program's way to call, and draws its numbers and names."""
    way = drawn.choice(list(WAYS))
    numbers = {"n": drawn.randint(2, 12), "m": drawn.randint(150, 400), "limit": drawn.choice([300, 500, 1000])}

    def called(part):
        function, _, argument = part.partition(" ")
        return WAYS[way].format(f=function, x=argument)

    slots = drawn.sample([*OF_CLASSES, *OF_FUNCTIONS], 10) if "{slots}" in text else []
    out = []
    for line in text.strip("\n").splitlines():
        at = line.find("{call ")
        if at >= 0:
            end = line.index("}", at)
            line = line[:at] + called(line[at + 6 : end]) + line[end + 1 :]
        if line.strip() == "{slots}":
            out.extend("    " + each for name in slots for each in slot(name))
            continue
        for name, number in numbers.items():
            line = line.replace("{" + name + "}", str(number))
        line = (
            line.replace("{way}", way).replace("{native}", drawn.choice(NATIVE)).replace("{{", "{").replace("}}", "}")
        )
        out.append(line)
    return "\n".join(out)


def program(seed):
    """Returns the source of a program: four fragments, and a test of depth in every third program."""
    drawn = random.Random(seed)
    names = [name for name in FRAGMENTS if name != "depth"]
    chosen = drawn.sample(names, 4) + (["depth"] if seed % 3 == 0 else [])
    parts = [HEAD]
    for number, name in enumerate(chosen):
        parts.append(f"def fragment_{number}():\n{call(drawn, FRAGMENTS[name][0])}\n")
    parts.extend(f"fragment_{number}()" for number in range(len(chosen)))
    return "\n".join(parts) + "\n"
