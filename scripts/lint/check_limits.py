#!/usr/bin/env python3
"""Checks what we promise to readers: functions of at most 60 lines, and files that have one job.

A file of more than 600 lines is asked whether it has one job. If it has, its line in LONGER says so; else split it where a
job ends.
"""

import ast
import sys
from pathlib import Path

from c_source import functions

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = ["src", "include", "python", "adapters", "scripts"]
LINES_MAX = 600
FUNCTION_MAX = 60
SUFFIXES = {".c", ".h", ".cpp", ".py", ".pyi", ".sh", ".js", ".mjs", ".css", ".html", ".sql", ".build"}
# Longer files with one job, and longer functions, each with the reason.
LONGER: dict[str, str] = {}


def python_functions(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1 - _documented(node)


def _documented(node):
    """Counts the lines of documentation, which do not count as code."""
    first = node.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return first.end_lineno - first.lineno + 1 if is_text else 0


def c_functions(path):
    for one in functions(path):
        if one.is_definition:
            yield one.name, one.line, one.last - one.line + 1


def look(path):
    """Yields each thing that is too long: its name in LONGER, and a message."""
    name = path.relative_to(ROOT).as_posix()
    lines = path.read_text().count("\n")
    if lines > LINES_MAX:
        yield name, f"{name}:{LINES_MAX + 1}: {lines} lines: has the file one job? Answer in LONGER, or split it by job"
    known = {".py": python_functions, ".c": c_functions, ".h": c_functions, ".cpp": c_functions}
    for function, line, length in known.get(path.suffix, lambda _: ())(path):
        if length > FUNCTION_MAX:
            yield f"{name}:{function}", f"{name}:{line}: {function}() has {length} lines; {FUNCTION_MAX} is the limit"


def main():
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)
    found = dict(long for path in paths for long in look(path))
    problems = [problem for name, problem in found.items() if name not in LONGER]
    problems += [f"scripts/lint/check_limits.py:1: {name} is no longer too long" for name in LONGER.keys() - found]
    for problem in problems:
        print(problem)
    print(f"looked at the length of {len(paths)} files and their functions")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
