"""Reads in the source of a function what no record says: whether the function has a loop, and whether the loop copies
or searches everything that it builds. Causes use this only to explain a measured time.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .data import Node
    from .findings import Evidence

    Code = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module

LARGEST = 2_000_000  # bytes; no more of a file is read
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
MADE = {ast.List: list, ast.ListComp: list, ast.Tuple: tuple, ast.Dict: dict, ast.JoinedStr: str}
LONGEST = 60  # characters of a statement that are shown


def code_of(evidence: Evidence, node: Node) -> Code | None:
    """Returns the syntax tree of a function or module; None if its source was not found, or has changed."""
    if not evidence.is_unchanged(node.file):
        return None
    try:
        with open(node.file, "rb") as file:
            tree = ast.parse(file.read(LARGEST))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    name = node.name.rpartition(".")[2]
    if name == "<module>":
        return tree
    for each in ast.walk(tree):
        if isinstance(each, FUNCTIONS):
            begins = min([each.lineno, *(one.lineno for one in getattr(each, "decorator_list", ()))])
            if begins == node.line and getattr(each, "name", "<lambda>") == name:
                return each
    return None


def _own(code: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a function, without those of functions and classes inside."""
    body = code.body if isinstance(code.body, list) else [code.body]  # type: ignore[attr-defined]
    work: list[ast.AST] = [*body]
    while work:
        node = work.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            work.extend(ast.iter_child_nodes(node))


def lines_of_calls(code: Code, name: str) -> list[int]:
    """Returns the lines in which a function calls something of this name."""
    calls = (node for node in _own(code) if isinstance(node, ast.Call))
    names = ((getattr(call.func, "id", None) or getattr(call.func, "attr", None), call) for call in calls)
    return sorted({call.func.end_lineno or call.lineno for each, call in names if each == name})


def lines_of_loop(code: Code) -> list[int]:
    """Returns the line of the innermost loop, and of its statement if it has one only; empty if a function has several
    such loops.
    """
    loops = [node for node in _own(code) if isinstance(node, LOOPS)]
    inner = [loop for loop in loops if not any(isinstance(each, LOOPS) for each in _inside(loop))]
    if len(inner) != 1:
        return []
    loop = inner[0]
    return sorted({loop.lineno, loop.body[0].lineno} if len(loop.body) == 1 else {loop.lineno})


def lines_of_raise(code: Code) -> list[int]:
    return sorted({node.lineno for node in _own(code) if isinstance(node, ast.Raise)})


def lines_of_try(code: Code) -> list[int]:
    """Returns the line of the statement that a function tries, or the first and the last of several."""
    tries = [node for node in _own(code) if isinstance(node, ast.Try) and node.handlers]
    return sorted({tries[0].body[0].lineno, tries[0].body[-1].lineno}) if len(tries) == 1 else []


def _inside(loop: ast.AST) -> Iterator[ast.AST]:
    return (node for node in ast.walk(loop) if node is not loop)


def has_loop(code: Code) -> bool:
    return any(isinstance(node, (*LOOPS, *COMPREHENSIONS)) for node in _own(code))


CHANGES = ("append", "extend", "insert", "add", "remove", "pop", "update", "appendleft", "popleft", "discard")


def changes_argument(code: Code, name: str) -> bool:
    """Returns whether a function passes a container that it changes, and does not make anew, to something of this
    name. An attribute is taken for one that other methods change.
    """
    for call in _own(code):
        if not isinstance(call, ast.Call) or name not in (getattr(call.func, "id", ""), getattr(call.func, "attr", "")):
            continue
        argument = call.args[0] if call.args else None
        if isinstance(argument, ast.Attribute) or (isinstance(argument, ast.Name) and _changes(code, argument.id)):
            return True
    return False


def _changes(code: Code, name: str) -> bool:
    changed = False
    for node in _own(code):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changed |= node.func.attr in CHANGES and ast.unparse(node.func.value) == name
        elif isinstance(node, LOOPS):  # a value that each round makes anew does not grow
            made = (each for each in ast.walk(node) if isinstance(each, ast.Assign))
            values = (each.value for each in made if name in map(ast.unparse, each.targets))
            if any(name not in {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} for value in values):
                return False
    return changed


def line_of_sum(code: Code) -> int:
    """Returns the line of a call sum(…, []) or sum(…, ()); 0 if there is none."""
    for call in _own(code):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "sum":
            starts = [*call.args[1:], *(one.value for one in call.keywords if one.arg == "start")]
            if any(_kind_of(start) in (list, tuple) for start in starts):
                return call.lineno
    return 0


def copies(code: Code) -> tuple[int, str] | None:
    """Returns the line and text of a statement that each round of a loop runs and that copies or searches the container
    to which the loop adds; None if there is none.
    """
    kinds = _kinds(code)
    for loop in _own(code):
        if isinstance(loop, LOOPS):
            for statement in loop.body:
                if _copies(statement, kinds) or _searches(statement, loop, kinds):
                    text = ast.unparse(statement).partition("\n")[0]
                    return statement.lineno, text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return None


def _kinds(code: Code) -> dict[str, type]:
    """Returns the types of names, from the first value that is assigned to each."""
    kinds: dict[str, type] = {}
    for node in sorted((each for each in _own(code) if isinstance(each, (ast.Assign, ast.AnnAssign))), key=_line):
        if node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        pairs = [(target, node.value) for target in targets]
        for target, value in list(pairs):
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs += zip(target.elts, value.elts)
        for target, value in pairs:
            kind = _kind_of(value)
            if isinstance(target, (ast.Name, ast.Attribute)) and kind is not None:
                kinds.setdefault(ast.unparse(target), kind)
    return kinds


def _line(node: ast.stmt) -> int:
    return node.lineno


def _kind_of(value: ast.expr) -> type | None:
    for made, kind in MADE.items():
        if isinstance(value, made):
            return kind
    if isinstance(value, ast.Constant) and isinstance(value.value, (str, bytes)):
        return type(value.value)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and not value.args:
        return {"list": list, "tuple": tuple, "str": str, "bytes": bytes}.get(value.func.id)
    return None


def _copies(statement: ast.stmt, kinds: dict[str, type]) -> bool:
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        kind = kinds.get(ast.unparse(statement.target))
        return kind in (tuple, bytes)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    name = ast.unparse(statement.targets[0])
    value = statement.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        parts = _added(value)
        if name not in (ast.unparse(part) for part in parts):
            return False
        known = [kind for kind in [kinds.get(name), *(_kind_of(part) for part in parts)] if kind is not None]
        # A str that grows at its end is not copied.
        at_end = ast.unparse(parts[0]) == name
        return bool(known) and not (known[0] is str and at_end and isinstance(statement.targets[0], ast.Name))
    if isinstance(value, (ast.List, ast.Tuple)):
        return any(isinstance(each, ast.Starred) and ast.unparse(each.value) == name for each in value.elts)
    if isinstance(value, ast.Dict):
        return any(key is None and ast.unparse(each) == name for key, each in zip(value.keys, value.values))
    if isinstance(value, ast.JoinedStr):
        later = (each.value for each in value.values[1:] if isinstance(each, ast.FormattedValue))
        return any(ast.unparse(each) == name for each in later)
    return False


def _added(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [*_added(value.left), *_added(value.right)]
    return [value]


def _searches(statement: ast.stmt, loop: ast.AST, kinds: dict[str, type]) -> bool:
    """Returns whether the statement is an `if` that searches a list to which the loop appends."""
    if not isinstance(statement, ast.If):
        return False
    for node in ast.walk(statement.test):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[-1], (ast.In, ast.NotIn)):
            continue
        name = ast.unparse(node.comparators[-1])
        adds = (f"{name}.append", f"{name}.extend", f"{name}.insert")
        calls = (ast.unparse(each.func) for each in ast.walk(loop) if isinstance(each, ast.Call))
        if kinds.get(name) is list and any(call in adds for call in calls):
            return True
    return False
