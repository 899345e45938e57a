#!/usr/bin/env python3
"""Checks that state of the extension has a home: the struct in the state.h of its folder, where each field has its guard.

Any other variable that can change and outlives a call is reported: at file level, `extern`, or `static` in a function.
A comment `state: <reason>` on its line allows one. Not reported are

- constants,
- variables of a thread, which need no guard,
- tables that the interpreter takes without const (PyMethodDef and its like, lists of keywords).
"""

import re
import sys
from pathlib import Path

from c_source import strip

ROOT = Path(__file__).resolve().parent.parent.parent
EXT = ROOT / "python" / "ext"

HOME = re.compile(r"\bstruct\s+vpy_\w+_(state|hooks)\s+vpy_\w+\s*$")
OF_THREADS = re.compile(r"\b(_Thread_local|VST_THREAD_LOCAL)\b")
TABLES = re.compile(
    r"\b(PyMethodDef|PyMemberDef|PyGetSetDef|PyType_Slot|PyType_Spec|PyModuleDef|PyModuleDef_Slot|PyTypeObject)\s+\w+\s*(\[[^]]*\])?\s*$"
    r"|^static char \*\w+\[\]$"
)
ATTRIBUTE = re.compile(r"\b(VST_READ_BY_HOOKS|VST_OWN_LINE|VST_TLS_MODEL)\b|__attribute__\s*\(\(.*?\)\)(?=\s|$)")
POINTER_TO_FUNCTION = re.compile(r"^[^()]*\(\*(const )?\w+(\[[^]]*\])?\)\s*\(")
NOT_VARIABLES = re.compile(r"^(typedef|enum|_Static_assert|static_assert|VST_ASSERT|return|goto|for|if)\b")


def declarations(text):
    """Yields the place and text of each statement at file level, and of each statement in a function that begins with
    `static`; replaces text in braces and behind `=` by a blank.
    """
    begin = at = 0
    inside = 0  # depth of braces of functions
    while at < len(text):
        char = text[at]
        if char == "{":
            head = text[begin:at]
            if re.search(r"[=,\]]\s*$", head) or re.search(r"\b(struct|union|enum)\b[^()]*$", head):
                at = closing(text, at)  # an initializer or a type
                continue
            inside += 1
            begin = at + 1
        elif char == "}":
            inside -= 1
            begin = at + 1
        elif char == ";":
            statement = text[begin:at]
            place = begin + len(statement) - len(statement.lstrip())
            if not inside or statement.lstrip().startswith("static "):
                yield place, statement.strip()
            begin = at + 1
        at += 1


def closing(text, at):
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, at):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def without_braces(statement):
    while "{" in statement:
        at = statement.index("{")
        statement = f"{statement[:at]} {statement[closing(statement, at) :]}"
    return statement


def is_state(statement):
    """Returns whether a statement declares a variable that can change."""
    head = without_braces(statement).partition("=")[0]
    head = " ".join(ATTRIBUTE.sub(" ", head).split())
    if NOT_VARIABLES.search(head) or re.match(r"(struct|union)( \w+)?$", head) or " " not in head:
        return False  # not a declaration, or the declaration of a type
    if "(" in head and not POINTER_TO_FUNCTION.search(head):
        return False  # a function
    if HOME.search(head) or OF_THREADS.search(head) or TABLES.search(head):
        return False
    pointer = POINTER_TO_FUNCTION.search(head)
    declarator = pointer[0].partition("(*")[2] if pointer else head.rpartition("*")[2] if "*" in head else head
    return not re.search(r"\bconst\b", declarator)


def look(path):
    source = path.read_text()
    lines = source.split("\n")
    for place, statement in declarations(strip(source)):
        first = source.count("\n", 0, place)
        last = first + statement.count("\n")
        if is_state(statement) and not any("state: " in line for line in lines[first : last + 1]):
            yield f"{path.relative_to(ROOT)}:{first + 1}: {' '.join(statement.split())[:60]}"


def main():
    paths = sorted(path for path in EXT.rglob("*.[ch]") if path.name[:6] != "compat")
    problems = [problem for path in paths for problem in look(path)]
    for problem in problems:
        print(f"{problem}: put it into the struct in the folder's state.h, with its guard")
    print(f"looked for state in {len(paths)} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
