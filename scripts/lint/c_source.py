"""Reads C and C++ sources for checks: the declarations at the outermost level, without comments and strings.

This is no parser. It knows sources as clang-format leaves them, which is enough to find functions and their lines.
"""

import re
from dataclasses import dataclass
from pathlib import Path

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
NOT_NAMES = {
    "__attribute__",
    "_Static_assert",
    "static_assert",
    "_Alignas",
    "alignas",
    "__asm__",
    "asm",
    "decltype",
    "PyDoc_STRVAR",
}


@dataclass
class Function:
    name: str
    line: int  # where the declaration begins
    last: int
    is_definition: bool


def strip(text: str, keep_directives: bool = False) -> str:
    """Replaces comments, strings and, unless they are kept, directives by blanks; lines keep their numbers."""
    text = NOISE.sub(_blank, text)
    return text if keep_directives else DIRECTIVE.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def functions(path: Path) -> list[Function]:
    """Returns all functions that a file declares or defines at its outermost level, or inside namespaces and extern
    "C".
    """
    text = strip(path.read_text())
    found: list[Function] = []
    begin = at = 0
    while at < len(text):
        if text[at] == ";":
            found += _function(text, begin, at, at, False)
            begin = at = at + 1
        elif text[at] == "}":  # end of a namespace
            begin = at = at + 1
        elif text[at] == "(":
            at = _closing(text, at, "()")
        elif text[at] == "{":
            head = text[begin:at]
            if re.search(r"\bextern\b|\bnamespace\b", head) and "(" not in head:
                begin = at = at + 1
                continue
            last = _closing(text, at, "{}")
            definition = [] if re.search(r"=\s*$", head) else _function(text, begin, at, last, True)
            found += definition
            at = last
            if definition:
                begin = last
        else:
            at += 1
    return found


def _closing(text: str, at: int, pair: str) -> int:
    """Returns the place behind the bracket that closes the bracket at `at`."""
    depth = 0
    for match in re.compile(f"[{re.escape(pair)}]").finditer(text, at):
        depth += 1 if match[0] == pair[0] else -1
        if depth == 0:
            return match.end()
    return len(text)


def _function(text: str, begin: int, end: int, last: int, is_definition: bool) -> list[Function]:
    head = text[begin:end]
    if re.match(r"\s*typedef\b", head) or "=" in head.partition("(")[0]:
        return []
    plain = re.sub(r"__attribute__\s*\(\(.*?\)\)(?=\s)", lambda match: " " * len(match[0]), head)
    names = [match for match in CALLED.finditer(plain) if match[1] not in NOT_NAMES]
    if not names:
        return []
    first = begin + len(head) - len(head.lstrip())
    return [Function(names[0][1], text.count("\n", 0, first) + 1, text.count("\n", 0, last) + 1, is_definition)]
