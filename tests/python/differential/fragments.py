"""The fragments from which programs are built: {f} is a function of the program, {n} a number, {o} an object, {c} its
class.
"""

# Helpers of the generated programs. A helper is put in front of a program that names it.
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
        "    def __prepare__(name, bases):\n        return {}\n"
        "    @property\n    def kind(cls):\n        return len(cls.__name__)"
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

# Calls of {f}, a Python function that takes a number; each with the number of calls it makes.
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

# Calls of C functions only.
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

# Calls of C functions that fail: inside the function, or because of wrong arguments.
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

# Special methods: the method's header line, its last line, and an expression that uses it.
SPECIAL = {
    "__init__": ("self, *args", "pass", ["{o}.__class__()"]),
    "__eq__": (
        "self, other",
        "return False",
        ["{o} == 1", "[1, {o}].count(2)", "{o} in [1, 2]", "[{o}].index({o})", "1 != {o}"],
    ),
    "__hash__": ("self", "return 7", ["hash({o})", "{{{o}: 1}}", "{{}}.get({o})", "len({{{o}, {o}}})"]),
    "__getattr__": ("self, name", "return len(name)", ["{o}.nothing", "getattr({o}, 'nothing')", "hasattr({o}, 'x')"]),
    "__getattribute__": (
        "self, name",
        "return object.__getattribute__(self, name)",
        ["{o}.__class__", "hasattr({o}, 'x')"],
    ),
    "__setattr__": ("self, name, value", "pass", ["setattr({o}, 'x', 1)"]),
    "__len__": ("self", "return 2", ["len({o})", "bool({o})", "1 if {o} else 2"]),
    "__bool__": ("self", "return True", ["bool({o})", "not {o}", "any([{o}])", "[*filter(None, [{o}])]"]),
    "__iter__": (
        "self",
        "yield 1",
        ["[*{o}]", "list({o})", "sorted({o})", "[x for x in {o}]", "dict.fromkeys({o})", "max({o})"],
    ),
    "__call__": (
        "self, n=1, *more",
        "return n",
        ["{o}(1)", "sorted([1, 2], key={o})", "functools.partial({o}, 1)()", "[*map({o}, [1, 2])]"],
    ),
    "__lt__": ("self, other", "return True", ["sorted([{o}, {o}])", "{o} < 1", "min({o}, {o})"]),
    "__str__": ("self", "return 's'", ["str({o})", "f'{{{o}}}'", "'%s' % {o}", "print({o})", "'{{}}'.format({o})"]),
    "__repr__": ("self", "return 'r'", ["repr({o})", "f'{{{o}!r}}'", "str([{o}])"]),
    "__format__": ("self, spec", "return spec", ["format({o}, 'x')", "f'{{{o}:abc}}'", "'{{:a}}'.format({o})"]),
    "__contains__": ("self, item", "return True", ["1 in {o}", "operator.contains({o}, 1)"]),
    "__getitem__": (
        "self, key",
        "return [1, 2][key]",
        ["{o}[0]", "operator.itemgetter(1)({o})", "operator.getitem({o}, 5)"],
    ),
    "__add__": (
        "self, other",
        "return 3",
        ["{o} + 1", "operator.add({o}, 1)", "functools.reduce(operator.add, [{o}, 1])"],
    ),
    "__index__": ("self", "return 1", ["[1, 2][{o}]", "hex({o})", "range({o})"]),
    "__enter__": ("self", "return self", ["{o}.__enter__()"]),
    "__del__": ("self", "pass", ["{o}"]),
}

METHODS = {
    "plain": (
        "def {name}(self, n=1):",
        [
            "{o}.{name}(1)",
            "keep({o}.{name})(1)",
            "{c}.{name}({o}, 1)",
            "[*map({o}.{name}, [1, 2])]",
            "{o}.{name}(*[1])",
        ],
    ),
    "static": ("@staticmethod\ndef {name}(n=1):", ["{o}.{name}(1)", "{c}.{name}(1)", "sorted([1], key={c}.{name})"]),
    "class": ("@classmethod\ndef {name}(cls, n=1):", ["{o}.{name}(1)", "{c}.{name}(1)", "keep({c}.{name})()"]),
    "property": ("@property\ndef {name}(self, n=1):", ["{o}.{name}", "getattr({o}, '{name}')"]),
    "cached": ("@functools.cached_property\ndef {name}(self, n=1):", ["({o}.{name}, {o}.{name})"]),
}
