"""The programs with which costs.py measures the cost of recording. They are compiled like a program's own code,
because vestige's own code is not recorded; they print nothing and keep nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FILE = "<vestige costs>"

LOOPS = """
def idle():
    number = 0
    for each in range(12_000):
        number = number + each & 1023

def numbers():
    x, v, all = 0.5, 1.25, [1.5, 2.5, 3.5]
    for each in range(2_500):
        d = x - all[1]
        m = d * d + v * 0.01
        all[1] = all[1] - d * m
        v = v - m * all[0] * 0.5

def nothing():
    pass

def python():
    f = nothing
    for _ in range(1_000):
        f(); f(); f(); f(); f(); f(); f(); f(); f(); f()

def native():
    for _ in range(1_000):
        x = []
        x.append(1); x.append(1); x.append(1); x.append(1); x.append(1)
        x.append(1); x.append(1); x.append(1); x.append(1); x.append(1)
"""

# Functions with variables of several types, which are freed after the function has returned.
ENDS = """
def with_floats(x, y):
    a = x * y + 0.5
    b = a - x * 0.25
    c = b / (a + 2.0)
    d = c * c + b
    e = d / (c + 1.0)
    return a, d, e

def with_wholes(x, y):
    a = x * y + 5
    b = a - x
    c = b // (a + 2)
    d = c * c + b & 1023
    return d + 1 if d > 3 else a

def with_lists(x, y):
    known = {'a': x, 'b': y}
    known['c'] = known['a']
    found = [x, y, known['b']]
    found[1] = found[0]
    return found[1:]

def with_text(x, y):
    a = x + y
    b = a + '.'
    c = a[1:] + b[:-1]
    return f'{a} {c}'

def call(f, x, y):
    for _ in range(150):
        f(x, y); f(x, y); f(x, y); f(x, y); f(x, y)
"""

# The functions that the loops call.
CALLED = {
    "python": "nothing",
    "native": "<built-in method append of list object>",
    "floats": "with_floats",
    "wholes": "with_wholes",
    "lists": "with_lists",
    "text": "with_text",
}

# Small methods of a few classes.
SHELVES = """
class Item:
    def __init__(self, weight, link):
        self.weight = weight
        self.link = link
        self.marks = 0

    def heavier(self, other):
        return self.weight > other.weight

    def mark(self):
        self.marks += 1

    def last(self):
        item = self
        while item.link is not None:
            item = item.link
        return item


class Shelf:
    limit = 6

    def __init__(self, name):
        self.name = name
        self.items = []
        self.total = 0

    def is_full(self):
        return self.total >= self.limit

    def is_empty(self):
        return not self.items

    def put(self, item):
        self.items = [*self.items, item]
        self.total += 1
        item.mark()

    def take(self):
        item, *self.items = self.items
        self.total -= 1
        return item

    def weigh(self, item):
        return item.weight * 2 + self.total


class Cold(Shelf):
    limit = 3

    def weigh(self, item):
        if item.marks & 1:
            return item.weight
        return weigh_warm(self, item)


class Sorted(Shelf):
    def put(self, item):
        if self.is_empty() or item.heavier(self.items[-1]):
            Shelf.put(self, item)
        else:
            self.insert(item)

    def insert(self, item):
        at = 0
        while at < self.total and self.items[at].heavier(item):
            at += 1
        self.items[at:at] = [item]
        self.total += 1
        item.mark()


def weigh_warm(shelf, item):
    return Shelf.weigh(shelf, item)


class Store:
    def __init__(self, shelves, items):
        self.shelves = shelves
        self.items = items
        self.at = 0
        self.weighed = 0

    def next_shelf(self):
        self.at += 1
        if self.at >= 5:
            self.at = 0
        return self.shelves[self.at]

    def place(self, item):
        shelf = self.next_shelf()
        if shelf.is_full():
            self.clear(shelf)
        shelf.put(item)
        self.weighed += shelf.weigh(item)

    def clear(self, shelf):
        while not shelf.is_empty():
            self.returned(shelf.take())

    def returned(self, item):
        if item.link is not None and item.heavier(item.link):
            item.link.mark()


def make():
    items = []
    link = None
    for number in range(40):
        link = Item(number * 7 % 11, link if number % 5 else None)
        items += [link]
    return Store([Shelf('a'), Cold('b'), Sorted('c'), Shelf('d'), Cold('e')], items)


def without_c(rounds):
    store = make()
    for number in range(rounds):
        for item in store.items:
            store.place(item)


def describe(shelf, item, seen):
    name = shelf.name
    if not isinstance(item, Item) or name.startswith('x'):
        return 0
    known = seen.get(name)
    if known is None:
        seen[name] = known = []
    known.append(item)
    if len(known) > 8:
        known.pop()
    return min(item.weight, 3) + ord(name) % 7


def with_c(rounds):
    store = make()
    seen = {}
    for number in range(rounds):
        for item in store.items:
            store.place(item)
            describe(store.next_shelf(), item, seen)

"""

# Takes text apart: most calls are of C functions.
WORDS = """
def kind_of(word, known):
    kind = known.get(word)
    if kind is None:
        if word.isdigit():
            kind = 'number'
        elif word[0].isupper() and isinstance(word, str):
            kind = 'name'
        else:
            kind = 'word'
        known[word] = kind
    return kind


class Reader:
    def __init__(self, text):
        self.text = text
        self.at = 0
        self.found = []

    def line(self):
        end = self.text.find(chr(10), self.at)
        if end < 0:
            return None
        line = self.text[self.at:end].strip()
        self.at = end + 1
        return line

    def read(self):
        known = {}
        while True:
            line = self.line()
            if line is None:
                break
            if not line or line.startswith('#'):
                continue
            name, _, rest = line.partition('=')
            for word in rest.split():
                self.add(name.rstrip(), word, kind_of(word.lower(), known))
        return len(self.found)

    def add(self, name, word, kind):
        if kind == 'number':
            value = int(word)
        else:
            value = word.replace('_', ' ')
        self.found.append((name, value, hash(word)))


def read(rounds, text):
    for _ in range(rounds):
        Reader(text).read()
"""

FUNCTIONS = 24  # functions of the irregular program
NODES = 24
STATEMENTS = (
    "self.a = (self.a * 5 + n) & 1023",
    "self.b = self.b + 1 if self.a > 300 else self.b - 1",
    "x = self.c[n & 3]",
    "self.c[n & 3] = self.a",
    "x = self.d['x']",
    "self.d['k'] = n",
    "y = (self.a, n)",
    "x = self.next.a",
)
CALLS = (  # calls of C functions
    "x = len(self.c)",
    "x = self.d.get('x')",
    "self.e.append(n)",
    "x = isinstance(n, int)",
    "x = self.s.startswith('a')",
    "x = min(n, self.a)",
    "x = self.s.find('c')",
    "x = abs(self.b)",
)


def irregular() -> str:
    """Methods that call each other, and C functions, in an order that cannot be predicted."""
    lines = ["class Node:", "    pass"]
    seed = 7
    for number in range(FUNCTIONS):
        lines.append(f"    def f{number}(self, n):")
        for chosen in (STATEMENTS, CALLS, STATEMENTS, CALLS):
            seed = seed * 75 % 65537
            lines.append("        " + chosen[seed % len(chosen)])
        one = seed * 75 % 65537
        seed = one * 75 % 65537
        lines.append("        if n > 0:")
        call = f"self.next.f{one % FUNCTIONS}(n - 1) if self.a & 1 else self.next.f{seed % FUNCTIONS}(n - 2)"
        lines.append("            " + call)
        lines.append("        return n")
    lines += ["def run(nodes):", "    for node in nodes:"]
    lines += [f"        node.f{number}(7)" for number in range(0, FUNCTIONS, 3)]
    return "\n".join(lines)


def _compiled(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(source, FILE, "exec"), names)  # noqa: S102 # the text above
    return names


def make() -> dict[str, Callable[[], object]]:
    """Returns functions that run the programs once each, by name."""
    sources = (LOOPS, ENDS, SHELVES, irregular(), WORDS)
    loops, ends, shelves, odd, words = (_compiled(source) for source in sources)
    text = "".join(f"# line {n}\n key{n} = Some words_{n} and {n} more {n * 7}\n\n" for n in range(25))
    nodes = [odd["Node"]() for _ in range(NODES)]

    def run_irregular() -> None:
        for number, node in enumerate(nodes):  # every run makes the same calls
            node.a, node.b, node.c, node.d = number, number * 3, [number] * 4, {"k": number, "x": 1}
            node.e, node.s = [], "text"
            node.next = nodes[number - 1]
        odd["run"](nodes)

    return {
        "idle": loops["idle"],
        "numbers": loops["numbers"],
        "python": loops["python"],
        "native": loops["native"],
        "floats": lambda: ends["call"](ends["with_floats"], 1.5, 2.5),
        "wholes": lambda: ends["call"](ends["with_wholes"], 15, 25),
        "lists": lambda: ends["call"](ends["with_lists"], 15, 25),
        "text": lambda: ends["call"](ends["with_text"], "abc", "def"),
        "shelves": lambda: shelves["without_c"](15),
        "shelves_c": lambda: shelves["with_c"](12),
        "irregular": run_irregular,
        "words": lambda: words["read"](3, text),
    }
