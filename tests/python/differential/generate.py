"""Programs: hypothesis draws them from a small syntax of fragments.

A program is functions, generators, coroutines and classes, each of which calls only those before it (or itself, with a
smaller number), and a main() that runs some and returns what it saw. A fragment is a few lines with holes in it: for a
callable, for a block. So programs end, they are the same each time, and hypothesis shrinks them by leaving fragments out.
How many calls a function makes at most is counted as it is made: none makes more than LIMIT.

What programs avoid, because the twin (oracle.py) could not follow: generators that are dropped before they ran, throw(GeneratorExit),
yields inside of expressions, classes whose bases are calls.
"""

import re
import textwrap

from hypothesis import strategies as st

LIMIT = 250

# What programs use, put in front of those that name it.
PRELUDE = {
    "asyncio": "import asyncio",
    "functools": "import functools",
    "operator": "import operator",
    "re": "import re",
    "threading": "import threading",
    "types": "import types",
    "weakref": "import weakref",
    "Boom": "class Boom(Exception):\n    pass",
    "Bang": "class Bang(Exception):\n    pass",
    "step": "def step(generator):\n    return next(generator, None)",
    "keep": "def keep(function):\n    return function",
    "drive": (
        "def drive(coroutine):\n    try:\n        while True:\n            coroutine.send(None)\n"
        "    except StopIteration as stop:\n        return stop.value"
    ),
    "Pause": "class Pause:\n    def __await__(self):\n        return (yield_once())",
    "yield_once": "def yield_once():\n    yield",
    "through": "@types.coroutine\ndef through(n):\n    x = yield\n    return x",
    "gone": "def gone(reference):\n    abs(1)",
    "Meta": (
        "class Meta(type):\n    def __call__(cls, *args):\n        return super().__call__(*args)\n"
        "    def __prepare__(name, bases):\n        return {}\n    @property\n    def kind(cls):\n        return len(cls.__name__)"
    ),
    "Base": (
        "class Base:\n    def __init_subclass__(cls):\n        super().__init_subclass__()\n"
        "    def method(self, n=1):\n        return n\n"
        "    @classmethod\n    def made(cls, n=1):\n        return cls()"
    ),
    "Quiet": (
        "class Quiet:\n    def __enter__(self):\n        return self\n"
        "    def __exit__(self, *error):\n        return error[0] is not None and issubclass(error[0], Boom)"
    ),
    "AsyncQuiet": (
        "class AsyncQuiet:\n    async def __aenter__(self):\n        await Pause()\n"
        "    async def __aexit__(self, *error):\n        await Pause()\n        return error[0] is Boom"
    ),
}

SIGNATURES = ["n=1", "n=1, *rest, **named", "n=1, /", "n=1, *, key=0"]

# A call of {f}, a Python function that takes a number; each with how often it is called.
CALLS = [
    ("{f}({n})", 1),
    ("{f}(*[{n}])", 1),
    ("{f}(*[{n}], **{{}})", 1),
    ("functools.partial({f}, {n})()", 1),
    ("(lambda: {f}({n}))()", 1),
    ("keep({f})({n})", 1),
    ("types.MethodType({f}, {n})()", 1),
    ("sorted([2, 1], key={f})", 2),
    ("[2, 1].sort(key={f})", 2),
    ("max([2, 1], key=lambda x: {f}(x))", 2),
    ("list(map({f}, [1, 2]))", 2),
    ("[*map({f}, [1, 2])]", 2),
    ("next(map({f}, [1]), None)", 1),
    ("list(filter({f}, [1, 2]))", 2),
    ("functools.reduce(lambda a, b: {f}(b), [1, 2, 1])", 2),
    ("re.sub('a', lambda match: str({f}({n})), 'aba')", 2),
    ("[{f}(x) for x in range(2)]", 2),
    ("{{{f}(x) for x in range(2)}}", 2),
    ("{{x: {f}(x) for x in range(2)}}", 2),
    ("[[{f}(y) for y in range(x)] for x in range(3)]", 3),
    ("sum({f}(x) for x in range(2))", 2),
    ("any({f}(x) for x in [0, 0, 1])", 3),
    ("list({f}(x) for x in range(2) if {f}(x))", 4),
    ("' '.join(str({f}(x)) for x in range(2))", 2),
    ("dict(a={f}(1), b={f}(2))", 2),
    ("exec('x = f({n})', {{'f': {f}}})", 1),
    ("exec('\\ndef g(n):\\n    return [f(n) for _ in range(2)]\\ng({n})\\n', {{'f': {f}}})", 2),
    ("eval('f({n}) + abs(-1)', {{'f': {f}}})", 1),
    ("exec(compile('\\nclass C:\\n    x = f({n})\\nC()\\n', 'made.py', 'exec'), {{'f': {f}}})", 1),
    ("{f}(1, 2, 3, 4, k=5)", 1),
    ("{f}(*[1, 2], *[3], **{{'z': 1}})", 1),
    ("print({f}({n}), {f}({n}), sep=' ')", 2),
    ("isinstance({f}({n}), int) and hash({f}({n}))", 2),
    ("iter({f}, 1).__next__()", 1),
    ("next(iter({f}, 7), None)", 1),
    ("[x for x in iter(lambda: {f}(1), 1)]", 1),
    ("functools.lru_cache({f})(1)", 1),
    ("functools.cmp_to_key(lambda a, b: {f}(a))(1) < functools.cmp_to_key(len)(2)", 1),
]

# Calls in C alone.
NATIVE = [
    "len([1])",
    "abs(-1)",
    "[].append(1)",
    "list.append([], 1)",
    "{}.get(1)",
    "{}.setdefault(1, [])",
    "'a'.join(['b'])",
    "'a b'.split()",
    "len(*[[1]])",
    "[].append(*[1])",
    "[3, 1].sort(reverse=True)",
    "sorted([2, 1], reverse=True)",
    "getattr(1, 'real')",
    "getattr(1, 'nothing', None)",
    "isinstance(1, int)",
    "max(1, 2)",
    "dict.fromkeys([1])",
    "bytes.fromhex('00')",
    "str.maketrans({})",
    "keep([].append)(1)",
    "keep(len)([])",
    "types.MethodType(len, [])()",
    "functools.partial(len, [])()",
    "int('3')",
    "str(3)",
    "(3).__add__(4)",
    "divmod(7, 2)",
    "operator.add(1, 2)",
    "operator.itemgetter(0)([1])",
    "'{} {}'.format(1, 'a')",
    "f'{1:>4} {len([])}'",
    "range(3).index(2)",
    "re.compile('a').match('a').group()",
    "{1}.union({2})",
    "callable(len) and id(len) and None",
    "[*zip([1], [2])]",
    "sum(x for x in [1, 2])",
    "list(map(abs, [1]))",
    "sorted([[1], []], key=len)",
]

# Calls in C that fail: by what they do, or by how they are called.
FAILING = [
    "len(3)",
    "{}.pop(1)",
    "[].pop()",
    "next(iter([]))",
    "int('x')",
    "getattr(1, 'nothing')",
    "[].index(1)",
    "ord('ab')",
    "sorted([1, 'a'])",
    "sorted([1], key=3)",
    "hash([])",
    "[1].sort(key=lambda x: 1 / 0)",
    "len()",
    "len([], [])",
    "len(x=1)",
    "abs(x=1)",
    "[].append()",
    "[].append(1, 2)",
    "[].clear(1)",
    "list.append()",
    "list.append(1, 2)",
    "[].append(*[])",
    "{}.get()",
    "isinstance(1)",
    "sorted()",
    "sorted([], key=1, nothing=2)",
    "'a'.join([1])",
    "exec('raise KeyError', {})",
    "eval('1 +', {})",
    "keep(None)(1)",
    "None.nothing",
]

# A special method: its line, what it ends with, and how it is used.
SPECIAL = {
    "__init__": ("self, *args", "pass", ["{o}.__class__()"]),
    "__eq__": ("self, other", "return False", ["{o} == 1", "[1, {o}].count(2)", "{o} in [1, 2]", "[{o}].index({o})", "1 != {o}"]),
    "__hash__": ("self", "return 7", ["hash({o})", "{{{o}: 1}}", "{{}}.get({o})", "len({{{o}, {o}}})"]),
    "__getattr__": ("self, name", "return len(name)", ["{o}.nothing", "getattr({o}, 'nothing')", "hasattr({o}, 'x')"]),
    "__getattribute__": ("self, name", "return object.__getattribute__(self, name)", ["{o}.__class__", "hasattr({o}, 'x')"]),
    "__setattr__": ("self, name, value", "pass", ["setattr({o}, 'x', 1)"]),
    "__len__": ("self", "return 2", ["len({o})", "bool({o})", "1 if {o} else 2"]),
    "__bool__": ("self", "return True", ["bool({o})", "not {o}", "any([{o}])", "[*filter(None, [{o}])]"]),
    "__iter__": ("self", "yield 1", ["[*{o}]", "list({o})", "sorted({o})", "[x for x in {o}]", "dict.fromkeys({o})", "max({o})"]),
    "__call__": ("self, n=1, *more", "return n", ["{o}(1)", "sorted([1, 2], key={o})", "functools.partial({o}, 1)()", "[*map({o}, [1, 2])]"]),
    "__lt__": ("self, other", "return True", ["sorted([{o}, {o}])", "{o} < 1", "min({o}, {o})"]),
    "__str__": ("self", "return 's'", ["str({o})", "f'{{{o}}}'", "'%s' % {o}", "print({o})", "'{{}}'.format({o})"]),
    "__repr__": ("self", "return 'r'", ["repr({o})", "f'{{{o}!r}}'", "str([{o}])"]),
    "__format__": ("self, spec", "return spec", ["format({o}, 'x')", "f'{{{o}:abc}}'", "'{{:a}}'.format({o})"]),
    "__contains__": ("self, item", "return True", ["1 in {o}", "operator.contains({o}, 1)"]),
    "__getitem__": ("self, key", "return [1, 2][key]", ["{o}[0]", "operator.itemgetter(1)({o})", "operator.getitem({o}, 5)"]),
    "__add__": ("self, other", "return 3", ["{o} + 1", "operator.add({o}, 1)", "functools.reduce(operator.add, [{o}, 1])"]),
    "__index__": ("self", "return 1", ["[1, 2][{o}]", "hex({o})", "range({o})"]),
    "__enter__": ("self", "return self", ["{o}.__enter__()"]),
    "__del__": ("self", "pass", ["{o}"]),
}

METHODS = {
    "plain": ("def {name}(self, n=1):", ["{o}.{name}(1)", "keep({o}.{name})(1)", "{c}.{name}({o}, 1)", "[*map({o}.{name}, [1, 2])]", "{o}.{name}(*[1])"]),
    "static": ("@staticmethod\ndef {name}(n=1):", ["{o}.{name}(1)", "{c}.{name}(1)", "sorted([1], key={c}.{name})"]),
    "class": ("@classmethod\ndef {name}(cls, n=1):", ["{o}.{name}(1)", "{c}.{name}(1)", "keep({c}.{name})()"]),
    "property": ("@property\ndef {name}(self, n=1):", ["{o}.{name}", "getattr({o}, '{name}')"]),
    "cached": ("@functools.cached_property\ndef {name}(self, n=1):", ["({o}.{name}, {o}.{name})"]),
}


class Made:
    """Something that a program defined: its kind, its name, how many calls one call of it makes at most."""

    def __init__(self, kind, name, cost, uses=()):
        self.kind = kind
        self.name = name
        self.cost = cost
        self.uses = list(uses)


class Writer:
    """Draws a program. A block is (lines, cost)."""

    def __init__(self, draw):
        self.draw = draw
        self.made = []
        self.counter = 0

    # ---- drawing ----

    def choose(self, items):
        return self.draw(st.sampled_from(items))

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def name(self, prefix):
        self.counter += 1
        return f"{prefix}{self.counter}"

    def pick(self, kind, room):
        """One of that kind which costs no more than that, or None."""
        fitting = [made for made in self.made if made.kind == kind and made.cost <= room]
        return self.choose(fitting) if fitting else None

    # ---- expressions ----

    def native(self):
        return self.choose(NATIVE), 3

    def call(self, room):
        form, times = self.choose(CALLS)
        function = self.pick("plain", room // times - 3)
        if function is None:
            return self.native()
        return form.format(f=function.name, n=self.number(0, 2)), times * (function.cost + 3)

    def use(self, room):
        made = self.pick("class", room // 4 - 3)
        if made is None:
            return self.native()
        form, times = self.choose(made.uses), 4
        return form.format(o=self.choose([f"{made.name}()", "o"]).replace("o", f"{made.name}()"), c=made.name), times * made.cost + 6

    def expression(self, room):
        return self.choose([self.call, self.call, self.use, lambda _: self.native()])(room)

    # ---- statements: each gets what kind of function it stands in, and how much it may cost ----

    def simple(self, kind, room):
        text, cost = self.expression(room)
        return [text], cost

    def fails(self, kind, room):
        return [self.choose(FAILING)], 4

    def raises(self, kind, room):
        return [f"raise {self.choose(['Boom', 'Boom(1)', 'Bang', 'KeyError'])}"], 2

    def repeated(self, kind, room):
        text, cost = self.expression(room // 12)
        return ["for _ in range(12):", f"    {text}"], 12 * cost

    def loop(self, kind, room):
        lines, cost = self.block(kind, room // 2)
        return ["for _ in range(2):", *indent(lines)], 2 * cost

    def attempt(self, kind, room):
        body, cost = self.block(kind, room // 3)
        lines = ["try:", *indent(body)]
        shape = self.number(1, 7)
        caught = self.choose(["Boom", "(Boom, TypeError)", "Exception", "LookupError as error"])
        if shape & 1 or not shape & 4:
            handler, more = self.block(kind, room // 3)
            again = self.choose([[], [], ["raise"], ["raise Bang from None"]])
            lines += [f"except {caught}:", *indent(handler + again)]
            cost += more
        if shape & 2 and (shape & 1 or not shape & 4):
            after, more = self.block(kind, room // 6)
            lines += ["else:", *indent(after)]
            cost += more
        if shape & 4:
            last, more = self.block(kind, room // 6)
            lines += ["finally:", *indent(last)]
            cost += more
        return lines, cost

    def manage(self, kind, room):
        body, cost = self.block(kind, room // 2)
        return [f"with {self.choose(['Quiet()', 'Quiet() as q, Quiet()', 'threading.Lock()'])}:", *indent(body)], cost + 6

    def closure(self, kind, room):
        body, cost = self.block("plain", room // 3)
        name = self.name("inner")
        lines = [f"def {name}(n):", *indent(body), "    return n"]
        how = self.choose([f"{name}(1)", f"sorted([1], key={name})", f"[*map({name}, [1])]", f"keep({name})(2)"])
        return [*lines, how], cost + 4

    def define_class(self, kind, room):
        text, cost = self.call(room // 2)
        name = self.name("Local")
        head = self.choose(["", "(Base)", "(metaclass=Meta)", "(Base, metaclass=Meta)"])
        lines = [f"class {name}{head}:", f"    x = {text}", "    def method(self, n=1):", "        return n"]
        if "Base" in head:
            lines[-1] = "        return super().method(n)"
        return [*lines, self.choose([f"{name}().method(1)", f"{name}()", f"{name}.method({name}())"])], cost + 12

    def weak(self, kind, room):
        made = self.pick("class", room // 4)
        if made is None:
            return ["abs(1)"], 1
        return [f"w = {made.name}()", "r = weakref.ref(w, gone)", "del w"], made.cost + 4

    def kept(self, kind, room):
        made = self.pick("class", room // 6)
        if made is None:
            return ["abs(1)"], 1
        uses = [self.choose(made.uses).format(o="o", c=made.name) for _ in range(self.number(1, 2))]
        return [f"o = {made.name}()", *uses, self.choose(["del o", "o = None"])], 6 * made.cost + 6

    def generate(self, kind, room):
        """Drives generators: one, or two in turn, from here and from elsewhere."""
        made = self.pick("generator", room // 6)
        if made is None:
            return self.simple(kind, room)
        name = self.name("g")
        start = f"{name} = {made.name}({self.number(0, 2)})"
        ways = {
            "for": [f"for x in {made.name}(1):", "    abs(x)"],
            "break": [f"for x in {made.name}(1):", "    break"],
            "list": [f"list({made.name}(2))"],
            "sorted": [f"sorted({made.name}(2), key=abs)"],
            "unpack": [f"[*{made.name}(2)]"],
            "expression": [f"sum(abs(x) for x in {made.name}(2))"],
            "step": [start, f"step({name})", f"next({name}, None)", f"step({name})"],
            "send": [start, f"next({name})", f"{name}.send(1)"],
            "close": [start, f"step({name})", f"{name}.close()"],
            "close twice": [start, f"step({name})", f"{name}.close()", f"{name}.close()"],
            "throw": [start, f"step({name})", f"{name}.throw({self.choose(['Boom', 'Bang(1)', 'KeyError'])})"],
            "throw first": [start, f"{name}.throw(Boom)"],
            "close first": [start, f"{name}.close()"],
            "drop": [start, f"step({name})", f"del {name}"],
            "two": [start, f"h = {made.name}(1)", f"step({name})", "step(h)", f"list({name})", f"for x in h:\n    step({name})"],
            "zip": [f"list(zip({made.name}(2), {made.name}(2)))"],
            "map": [f"list(map(lambda x: abs(x), {made.name}(2)))"],
        }
        return "\n".join(ways[self.choose(sorted(ways))]).splitlines(), 6 * made.cost + 12

    def drives(self, kind, room):
        """Drives coroutines, by hand and by asyncio."""
        made = self.pick("coroutine", room // 3)
        if made is None:
            return self.simple(kind, room)
        name = self.name("c")
        ways = {
            "drive": [f"drive({made.name}(1))"],
            "send": [f"{name} = {made.name}(1)", "try:", f"    {name}.send(None)", f"    {name}.send(None)", "except StopIteration:", "    pass", f"{name}.close()"],
            "throw": [f"{name} = {made.name}(1)", "try:", f"    {name}.send(None)", f"    {name}.throw(Boom)", "except (Boom, StopIteration):", "    pass", f"{name}.close()"],
            "close": [f"{name} = {made.name}(1)", f"{name}.close()"],
            "throw first": [f"{name} = {made.name}(1)", f"{name}.throw(Bang)"],
        }
        return ways[self.choose(sorted(ways))], 3 * made.cost + 8

    # ---- only in generators and coroutines ----

    def yields(self, kind, room):
        return [self.choose(["yield n", "x = yield 1", "yield abs(-1)", "yield"]).replace("yield abs", "yield abs")], 1

    def delegates(self, kind, room):
        made = self.pick("generator", room // 4)
        source = f"{made.name}(1)" if made else self.choose(["[1, 2]", "map(abs, [1])", "(abs(x) for x in [1, 2])"])
        return [self.choose([f"yield from {source}", f"x = yield from {source}"])], 4 * (made.cost if made else 2)

    def awaits(self, kind, room):
        made = self.pick("coroutine", room // 2)
        ticks = self.pick("async generator", room // 4)
        ways = [["await Pause()"], ["await through(1)"], ["x = await through(2)"]]
        if made:
            ways += [[f"await {made.name}(1)"], [f"x = await {made.name}(2)"]] * 2
        body, cost = self.block(kind, room // 4)
        ways += [["async with AsyncQuiet():", *indent(body)]]
        if ticks:
            ways += [[f"async for x in {ticks.name}(1):", *indent(body)]] * 2
            ways += [[f"g = {ticks.name}(1)", "async for x in g:", "    break", "await g.aclose()"]]
            ways += [[f"g = {ticks.name}(1)", "try:", "    await g.asend(None)", "    await g.athrow(Boom)", "except (Boom, StopAsyncIteration):", "    pass", "await g.aclose()"]]
        return self.choose(ways), (made.cost if made else 0) + 4 * (ticks.cost if ticks else 0) + 3 * cost + 8

    # ---- blocks and definitions ----

    STATEMENTS = ["simple"] * 5 + ["generate"] * 3 + ["attempt"] * 3 + [
        "fails", "raises", "repeated", "loop", "manage", "closure", "define_class", "weak", "kept", "drives",
    ]  # fmt: skip
    OWN = {
        "plain": [],
        "generator": ["yields"] * 6 + ["delegates"] * 3,
        "coroutine": ["awaits"] * 7,
        "async generator": ["yields"] * 5 + ["awaits"] * 4,
    }

    def block(self, kind, room):
        lines, cost = [], 0
        for _ in range(self.number(1, 3)):
            if room - cost < 8:
                break
            statement = self.choose(self.STATEMENTS + self.OWN[kind])
            more, price = getattr(self, statement)(kind, room - cost)
            lines += more
            cost += price
        return lines or ["pass"], cost

    def function(self, kind):
        name = self.name({"plain": "f", "generator": "g", "coroutine": "c", "async generator": "a"}[kind])
        body, cost = self.block(kind, LIMIT)
        if kind == "plain" and cost < LIMIT // 3 and self.draw(st.booleans()):
            body = [f"if isinstance(n, int) and 0 < n < 3:\n    {name}(n - 1)", *body]
            cost *= 3
        if kind in ("generator", "async generator"):
            body = [*body, "yield 7"]
        end = [] if kind in ("generator", "async generator") else ["return 1"]
        start = "async def" if kind in ("coroutine", "async generator") else "def"
        signature = self.choose(SIGNATURES) if kind == "plain" else "n=1"
        self.made.append(Made(kind, name, cost + 1))
        return [f"{start} {name}({signature}):", *indent(body + end), ""]

    def class_(self):
        name = self.name("C")
        bases = [made.name for made in self.made if made.kind == "class"]
        head = self.choose(["", "", "(Base)", "(metaclass=Meta)", *(f"({base})" for base in bases[-2:])])
        lines, dearest, uses = [f"class {name}{head}:"], 1, []
        for special in self.draw(st.lists(st.sampled_from(sorted(SPECIAL)), min_size=0, max_size=3, unique=True)):
            arguments, end, how = SPECIAL[special]
            body, cost = self.block("plain", LIMIT // 8)
            if special in ("__del__", "__setattr__", "__getattribute__"):
                body = ["try:", *indent(body), "except Exception:", "    pass"]
            lines += [f"    def {special}({arguments}):", *indent(indent(body)), f"        {end}"]
            dearest, uses = max(dearest, cost), uses + how
        for kind in self.draw(st.lists(st.sampled_from(sorted(METHODS)), min_size=0, max_size=2, unique=True)):
            method = self.name("m")
            start, how = METHODS[kind]
            body, cost = self.block("plain", LIMIT // 8)
            lines += [*indent(start.format(name=method).splitlines()), *indent(indent(body)), "        return 1"]
            dearest = max(dearest, cost)
            uses += [use.replace("{name}", method) for use in how]
        if len(lines) == 1:
            lines += ["    pass"]
        inherited = [made for made in self.made if f"({made.name})" == head]
        for made in inherited:
            dearest, uses = max(dearest, made.cost), uses + made.uses
        if "Meta" in head:
            uses += ["{c}.kind"]
        if head == "(Base)":
            uses += ["{c}.made(1)", "{o}.method()", "Base.method({o})"]
        self.made.append(Made("class", name, dearest + 2, uses or ["{o}"]))
        return [*lines, ""]

    def main(self):
        lines = ["def main():", "    seen = []"]
        for _ in range(self.number(1, 4)):
            body, _ = self.block("plain", LIMIT * 2)
            lines += ["    try:", *indent(indent(body)), "    except Exception as error:", "        seen.append(type(error).__name__)"]
        if self.number(0, 3) == 3:
            lines += indent(self.threads())
        if self.number(0, 3) == 3:
            lines += indent(self.tasks())
        return [*lines, "    return seen"]

    def threads(self):
        """Two threads that meet between their parts, so that both run at once."""
        function = self.pick("plain", LIMIT)
        if function is None:
            return []
        return textwrap.dedent(f"""\
            barrier = threading.Barrier(2, timeout=10)
            def work(n):
                for _ in range(2):
                    barrier.wait()
                    try:
                        {function.name}(n)
                    except Exception:
                        len([])
            workers = [threading.Thread(target=work, args=(x,), name="worker %d" % x) for x in range(2)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            """).splitlines()

    def tasks(self):
        """Coroutines that asyncio runs in turn."""
        made = self.pick("coroutine", LIMIT)
        if made is None:
            return []
        way = self.choose(["await task(1)", "await asyncio.gather(task(1), task(2))", "await asyncio.create_task(task(2))"])
        return textwrap.dedent(f"""\
            async def task(n):
                for _ in range(n):
                    await asyncio.sleep(0)
                    try:
                        {self.choose([f"await {made.name}(n)", f"drive({made.name}(n))"])}
                    except Exception:
                        abs(1)
            async def tasks():
                {way}
            asyncio.run(tasks())
            """).splitlines()

    def program(self):
        definitions = {}
        for _ in range(self.number(1, 6)):
            kind = self.choose(["plain", "plain", "generator", "coroutine", "async generator", "class", "class"])
            lines = self.class_() if kind == "class" else self.function(kind)
            definitions[self.made[-1].name] = "\n".join(lines)
        return with_definitions({**PRELUDE, **definitions}, "\n".join(self.main()))


def indent(lines):
    return ["    " + line for line in "\n".join(lines).splitlines()]


def with_definitions(definitions, text):
    """What the program names goes in front of it, and what that names too; the rest is left out."""
    used = set()
    while True:
        whole = "\n".join([text, *(definitions[name] for name in used)])
        found = {name for name in definitions if re.search(rf"\b{name}\b", whole)}
        if found == used:
            break
        used = found
    return "\n".join([*(text for name, text in definitions.items() if name in used), "", text, ""])


@st.composite
def programs(draw):
    return Writer(draw).program()
