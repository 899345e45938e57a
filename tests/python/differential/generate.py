"""Programs: hypothesis draws them from a small syntax of fragments.

A program consists of functions, generators, coroutines and classes, and a main() that runs some of them and returns
their results. A definition calls only earlier definitions (or itself, with a smaller number), so every program ends,
and always computes the same. A fragment is a few lines with holes: for a callable, for a block. Hypothesis shrinks
programs by leaving fragments out. The generator bounds the number of calls that a function makes: about LIMIT at most.

Programs avoid some constructs that the twin could not follow: generators that are dropped before they ran,
throw(GeneratorExit), yields inside expressions, and classes whose bases are calls.
"""

import re
import textwrap

from hypothesis import strategies as st

from .fragments import CALLS, FAILING, METHODS, NATIVE, PRELUDE, SIGNATURES, SPECIAL

LIMIT = 250


class Made:
    """A definition of a program: its kind, its name, and the maximal number of calls that one call of it makes."""

    def __init__(self, kind, name, cost, uses=()):
        self.kind = kind
        self.name = name
        self.cost = cost
        self.uses = list(uses)


class Writer:
    """Draws a program from hypothesis. A block is (lines, cost)."""

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
        """Returns a definition of this kind that costs at most `room`, or None."""
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
        return self.choose(made.uses).format(o=f"{made.name}()", c=made.name), 4 * made.cost + 6

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
        return [
            f"with {self.choose(['Quiet()', 'Quiet() as q, Quiet()', 'threading.Lock()'])}:",
            *indent(body),
        ], cost + 6

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
        """Uses generators: one, or two alternately, from this function and from others."""
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
            "two": [
                start,
                f"step({name})",
                f"h = {made.name}(1)",
                "step(h)",
                f"for x in h:\n    step({name})",
                f"list({name})",
            ],
            "zip": [f"list(zip({made.name}(2), range(3)))"],
            "map": [f"list(map(lambda x: abs(x), {made.name}(2)))"],
        }
        return "\n".join(ways[self.choose(sorted(ways))]).splitlines(), 6 * made.cost + 12

    def drives(self, kind, room):
        """Uses coroutines, by hand and with asyncio."""
        made = self.pick("coroutine", room // 3)
        if made is None:
            return self.simple(kind, room)
        name = self.name("c")
        ways = {
            "drive": [f"drive({made.name}(1))"],
            "send": [
                f"{name} = {made.name}(1)",
                "try:",
                f"    {name}.send(None)",
                f"    {name}.send(None)",
                "except StopIteration:",
                "    pass",
                f"{name}.close()",
            ],
            "throw": [
                f"{name} = {made.name}(1)",
                "try:",
                f"    {name}.send(None)",
                f"    {name}.throw(Boom)",
                "except (Boom, StopIteration):",
                "    pass",
                f"{name}.close()",
            ],
            "close": [f"{name} = {made.name}(1)", f"{name}.close()"],
            "throw first": [f"{name} = {made.name}(1)", f"{name}.throw(Bang)"],
        }
        return ways[self.choose(sorted(ways))], 3 * made.cost + 8

    # ---- only in generators and coroutines ----

    def yields(self, kind, room):
        return [self.choose(["yield n", "x = yield 1", "yield abs(-1)", "yield 3"])], 1

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
            ways += [
                [
                    f"g = {ticks.name}(1)",
                    "try:",
                    "    await g.asend(None)",
                    "    await g.athrow(Boom)",
                    "except (Boom, StopAsyncIteration):",
                    "    pass",
                    "await g.aclose()",
                ]
            ]
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
            lines += [
                "    try:",
                *indent(indent(body)),
                "    except Exception as error:",
                "        seen.append(type(error).__name__)",
            ]
        if self.number(0, 3) == 3:
            lines += indent(self.threads())
        if self.number(0, 3) == 3:
            lines += indent(self.tasks())
        return [*lines, "    return seen"]

    def threads(self):
        """Starts two threads that wait for each other between their parts, so that both run at the same time."""
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
        """Starts coroutines that asyncio runs alternately."""
        made = self.pick("coroutine", LIMIT)
        if made is None:
            return []
        way = self.choose(
            ["await task(1)", "await asyncio.gather(task(1), task(2))", "await asyncio.create_task(task(2))"]
        )
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
    """Puts the helpers that the program names in front of the program, and the helpers that these name; leaves out the
    others.
    """
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
