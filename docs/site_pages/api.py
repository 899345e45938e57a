"""The reference of the Python API, from signatures and docstrings.

A docstring here is plain text: paragraphs, code that is indented by four blanks, and lists of arguments, whose names
stand at the margin and whose texts are aligned. Methods of a class that is written in C have theirs in the stub,
_core.pyi.
"""

import ast
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import vestige

ARGUMENT = re.compile(r"^(\S.*?)(?: {2,}|(?<=\w) (?=False: |True: ))(\S.*)$")
WIDTH = 88


class Undocumented(Exception):
    """A public name has no docstring."""


def markdown(name: str) -> str:
    """Returns the section of a public name; for a module, its docstring and all its names."""
    thing = find(name)
    if inspect.ismodule(thing):
        names = [f"{name}.{word}" for word in getattr(thing, "__all__", ())]
        return "\n".join([*docstring(thing, name), *map(markdown, names)])
    parts = [f"### {name}\n", signature(thing, name), *docstring(thing, name)]
    if isinstance(thing, type) and issubclass(thing, enum.Enum):
        parts.append("Members: " + ", ".join(f"`{member}`" for member in thing.__members__) + ".\n")
    elif isinstance(thing, type) and stubs().get(thing.__name__):
        parts += [text for one in stubs()[thing.__name__].items() for text in stubbed(*one)]
    elif isinstance(thing, type) and not issubclass(thing, BaseException):
        parts += [text for word in members(thing) for text in member(thing, word)]
    return "\n".join(parts)


def find(name: str):
    parts = name.split(".")
    thing = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], 2):
        if not hasattr(thing, part):
            importlib.import_module(".".join(parts[:number]))
        thing = getattr(thing, part)
    return thing


def members(cls: type) -> Iterator[str]:
    """Returns public methods and properties with their own docstrings, in alphabetical order."""
    for word in dir(cls):
        if not word.startswith("_") and not isinstance(inspect.getattr_static(cls, word), (str, int, bool)):
            yield word


def member(cls: type, word: str) -> list[str]:
    thing = inspect.getattr_static(cls, word)
    what = getattr(thing, "__func__", thing)
    if not inspect.getdoc(what):
        return []
    arguments = text_of(what, skip_self=not isinstance(thing, staticmethod)) if callable(what) else ""
    return [f"`{word}{arguments}`\n", *docstring(what, f"{cls.__name__}.{word}", indent=": ")]


@cache
def stubs() -> dict[str, dict[str, tuple[str, str]]]:
    """Returns, for each class of the stub, its methods with a docstring and their arguments."""
    tree = ast.parse((Path(vestige.__file__).parent / "_core.pyi").read_text())
    return {
        one.name: {
            method.name: (arguments_of(method), ast.get_docstring(method) or "")
            for method in one.body
            if isinstance(method, ast.FunctionDef) and ast.get_docstring(method) and not method.name.startswith("_")
        }
        for one in tree.body
        if isinstance(one, ast.ClassDef) and one.name == "Trace"
    }


def arguments_of(method: ast.FunctionDef) -> str:
    arguments = method.args
    for one in [*arguments.args, *arguments.kwonlyargs]:
        one.annotation = None
    arguments.args = arguments.args[1:]
    return f"({ast.unparse(arguments)})"


def stubbed(name: str, what: tuple[str, str]) -> list[str]:
    return [f"`{name}{what[0]}`\n", *indented(blocks(what[1]), ": ")]


def signature(thing, name: str) -> str:
    if not callable(thing) or (isinstance(thing, type) and issubclass(thing, (enum.Enum, BaseException))):
        return ""
    text = name + text_of(thing)
    if len(text) > WIDTH:
        inside = split_arguments(text[len(name) + 1 : text.rindex(")")])
        text = name + "(\n" + "".join(f"    {argument},\n" for argument in inside) + text[text.rindex(")") :]
    return f"```python\n{text}\n```\n"


def text_of(thing, *, skip_self: bool = False) -> str:
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(…)"
    parameters = list(found.parameters.values())
    if skip_self and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    return str(found.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def split_arguments(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    found, depth, quote, begin = [], 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            found.append(text[begin:place].strip())
            begin = place + 1
    return [*found, text[begin:].strip()]


def docstring(thing, name: str, *, indent: str = "") -> list[str]:
    text = inspect.getdoc(thing)
    if not text:
        raise Undocumented(f"{name} is public and has no docstring")
    return indented(blocks(text), indent) if indent else blocks(text)


def blocks(text: str) -> list[str]:
    """Converts a docstring to Markdown."""
    found = [block for block in re.split(r"\n\n+", text) if "PYTEST_DONT_REWRITE" not in block]
    return [part for block in found for part in rendered(block.splitlines())]


def indented(parts: list[str], indent: str) -> list[str]:
    body = "\n".join(parts).rstrip().splitlines()
    return [indent + body[0], *(f"  {line}" if line else "" for line in body[1:]), ""]


def rendered(lines: list[str]) -> Iterator[str]:
    """Converts a block of a docstring to Markdown."""
    if lines[0].startswith("    "):
        yield "```python\n" + "\n".join(line[4:] for line in lines) + "\n```\n"
        return
    # Arguments may follow a sentence without a blank line between.
    begin = next((n for n, line in enumerate(lines) if is_argument(lines, n)), len(lines))
    if begin:
        yield plain(" ".join(lines[:begin])) + "\n"
    if begin < len(lines):
        yield "\n".join(["| argument | |", "|---|---|", *arguments(lines[begin:])]) + "\n"


def is_argument(lines: list[str], number: int) -> bool:
    line = lines[number]
    following = lines[number + 1] if number + 1 < len(lines) else ""
    return bool(ARGUMENT.match(line)) or (bool(re.match(r"^\w[\w, .]*$", line)) and following.startswith("     "))


def arguments(lines: list[str]) -> Iterator[str]:
    rows: list[list[str]] = []
    for number, line in enumerate(lines):
        found = ARGUMENT.match(line)
        if line.startswith(" ") and rows:
            rows[-1][1] += " " + line.strip()
        elif found:
            rows.append([found[1], found[2]])
        elif is_argument(lines, number):
            rows.append([line, ""])
        elif rows:
            rows[-1][1] += " " + line
    for names, text in rows:
        words = ", ".join(f"`{word.strip()}`" for word in names.split(","))
        yield f"| {words} | {plain(text.strip())} |"


def plain(text: str) -> str:
    """Converts plain text to Markdown: code in backticks stays code, and other markup is escaped."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        part.replace("|", r"\|") if part.startswith("`") else re.sub(r"([<>*_|\[\]])", r"\\\1", part) for part in parts
    )
