#!/usr/bin/env python3
"""Finds unused names in C: functions, macros and constants that only their declarations name.

The compiler reports static functions; this script looks at all files. Names in public headers are for others, and may
be used by tests and examples only; all other names must be used by code that we ship.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from c_source import DIRECTIVE, functions, strip

ROOT = Path(__file__).resolve().parent.parent.parent
PUBLIC = ROOT / "include"
SHIPPED = ["include", "src", "python/ext", "adapters"]
OTHERS = ["tests", "examples", "fuzz", "bench"]
WORD = re.compile(r"[A-Za-z_]\w*")
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
ENUM = re.compile(r"\benum\b[^{};()]*\{([^}]*)\}")
PASTED = re.compile(r"(\w+)##")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Names that other programs use: the interpreter, the loader, tools.
KNOWN = {
    "PY_SSIZE_T_CLEAN": "Python's headers",
    "NEED_OPCODE_TABLES": "Python's headers",
    "UNW_LOCAL_ONLY": "libunwind's header",
    "PyInit__core": "Python",
    "watch_forks": "a constructor: the loader",
    "choose_clock": "a constructor: the loader",
    "watch_thread_ends": "a constructor: the loader",
    "onOperatorRegistered": "torch: a virtual function",
    "vst__table_count": "tests, which ask whether all was freed",
}


def files(folders):
    return [
        path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".c", ".h", ".cpp")
    ]


def words_of(paths):
    """Counts each word outside comments; strings count, because they may contain the name of a symbol."""
    count = Counter()
    for path in paths:
        count.update(WORD.findall(COMMENT.sub(" ", path.read_text())))
    return count


def declared(path):
    """Yields each name that a file declares, with its line: functions, macros, constants of enumerations."""
    text = strip(path.read_text(), keep_directives=True)
    for one in functions(path):
        yield one.name, one.line
    for match in DEFINE.finditer(text):
        yield match[1], text.count("\n", 0, match.start(1)) + 1
    plain = DIRECTIVE.sub(lambda directive: re.sub(r"[^\n]", " ", directive[0]), text)
    for match in ENUM.finditer(plain):
        at = match.start(1)
        for part in match[1].split(","):
            if name := WORD.search(part):
                yield name[0], plain.count("\n", 0, at + name.start()) + 1
            at += len(part) + 1


def is_guard(name, path):
    return name.endswith("_H") or (name.endswith("_H_") and path.suffix == ".h")


def main():
    shipped = files(SHIPPED)
    declarations, places = Counter(), {}
    for path in shipped:
        for name, line in declared(path):
            declarations[name] += 1
            if not is_guard(name, path):
                places.setdefault(name, (path, line))
    inside, outside = words_of(shipped), words_of(files(OTHERS))
    inside += words_of((ROOT / "python" / "vestige").rglob("*.py"))
    pasted = tuple({prefix for path in shipped for prefix in PASTED.findall(path.read_text())})
    problems = []
    for name, (path, line) in places.items():
        used = inside[name] - declarations[name] + (outside[name] if PUBLIC in path.parents else 0)
        if used <= 0 and name not in KNOWN and not name.startswith(pasted):
            where = path.relative_to(ROOT).as_posix()
            problems.append(f"{where}:{line}: nothing uses {name}" + (", but tests" if outside[name] else ""))
    for problem in sorted(problems):
        print(problem)
    print(f"looked who uses {len(places)} functions, macros and constants of {len(shipped)} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
