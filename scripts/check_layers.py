#!/usr/bin/env python3
"""Checks the layers: which folder may include which, that each public header compiles alone, and that every file is
built.

The compilers are taken from CC and CXX, else cc and c++.
"""

import ast
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PUBLIC = ROOT / "include" / "vestige"
CORE = ROOT / "src"
EXT = ROOT / "python" / "ext"
ADAPTERS = ROOT / "adapters"

# A folder may include itself and the folders of the rows before, never a sibling.
LAYERS = [
    ["base"],
    ["os"],
    ["objects"],
    ["record", "store", "traceback"],
    ["memory", "replay"],
    ["graph", "view"],
    ["export"],
    ["tables"],
]
# The folders of src/export, in the same form; files directly in src/export may include all of them.
EXPORT_LAYERS = [
    ["output"],
    ["sums"],
    ["timeline", "memory", "graph"],
]
# In src/view, code that follows a growing trace has its own folder: walks and indexes never include it, views do.
FOLLOW = CORE / "view" / "follow"
OPENS_FOLLOW = {CORE / "view" / "view.c"}
RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row}
EXPORT_RANK = {name: rank for rank, row in enumerate(EXPORT_LAYERS) for name in row}
SESSION = len(LAYERS)  # src/session.c, above all folders

# The folders of the extension, and which others each may include. Reading and hooking do not know each other: only
# session/, which gives out the trace of its recording, and core_module.c, which puts all of it together, know both.
# calls/, program/ and thunks/ make up the hooks and call each other. Nobody knows py311/: see OF_311.
EXT_KNOWS = {
    "pch": set(),
    "base": set(),
    "read": {"base"},
    "traceback": {"base"},
    "calls": {"base", "program", "thunks"},
    "program": {"base", "calls", "thunks"},
    "thunks": {"base", "calls"},
    "py311": {"base", "calls", "program", "thunks"},
    "memory": {"base", "traceback"},
    "annotate": {"base", "program", "thunks", "traceback"},
    "session": {"base", "read", "traceback", "calls", "program", "thunks", "memory", "annotate"},
}

# Code that only Python 3.11 needs is in one folder, which other builds leave out, and which can be deleted when support
# of 3.11 ends: other folders use it through one header. Outside of the folder only these files may name that version.
OF_311 = EXT / "py311"
SHOWS_311 = EXT / "compat_py311.h"
NAMES_311 = re.compile(r"\b3\.11\b|\b3, 11\b|0x030[bB]|py311")
MAY_NAME_311 = {
    *EXT.glob("compat*.h"),
    EXT / "calls" / "engine.h",
    EXT / "calls" / "turbo_frames.h",
    EXT / "meson.build",
    ROOT / "python" / "vestige" / "cli" / "attach" / "target.py",
}

# Headers of collectors that are built into the extension, and the folder that may include each.
EXT_ADAPTERS = {ADAPTERS / "cupti" / "cupti.h": "session"}

# Headers of the core that are not installed, and the folders of the extension that may include each; "core_module" is
# core_module.c.
EXT_CORE = {
    CORE / "base" / "heap.h": "session",
    CORE / "base" / "intern.h": "session",
    CORE / "base" / "short_text.h": "calls session",
    CORE / "base" / "wait_reasons.h": "calls",
    CORE / "flight.h": "program session",
    CORE / "graph" / "nodes.h": "read",
    CORE / "memory" / "report.h": "memory read",
    CORE / "os" / "storage_guard.h": "session",
    CORE / "record" / "budget.h": "calls",
    CORE / "record" / "language.h": "annotate calls program py311 session",
    CORE / "record" / "language_lock.h": "calls program",
    CORE / "record" / "tasks.h": "calls program",
    CORE / "replay" / "imports.h": "read",
    CORE / "replay" / "named_waits.h": "read",
    CORE / "store" / "copying.h": "session",
    CORE / "tables" / "batch.h": "read",
    CORE / "tables" / "growing.h": "read",
    CORE / "tables" / "histogram.h": "read",
    CORE / "tables" / "pass.h": "read",
    CORE / "tables" / "tables.h": "read",
    CORE / "traceback" / "language.h": "traceback",
    CORE / "view" / "lanes.h": "read",
    CORE / "view" / "view.h": "read",
}

# The folders of python/vestige, and which others each may import; modules at the top may import all except cli.
PACKAGE = ROOT / "python" / "vestige"
ROOMS = {
    "base": set(),
    "reading": {"base"},
    "recording": {"base", "torch"},  # forks and ends of processes stop torch's adapter
    "torch": {"base", "reading", "recording"},
    "query": {"base", "reading"},
    "viewer": {"base", "reading"},
    "middleware": {"base"},
    "startup": {"recording"},
    "cli": {"base", "reading", "recording", "torch", "query", "viewer"},
    "": {"base", "reading", "recording", "torch", "query", "viewer"},
}
# modules at the top that these folders may import; other folders may import any
ABOVE = {"base": {"render"}, "reading": {"tables"}}
ENTRANCES = {"__main__", "notebook"}  # these run the command line, or show its reports

LINES_MAX = 600
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.MULTILINE)

problems = []


def problem(path, text, what):
    """Notes a problem at the first place where `text` occurs in the file."""
    line = path.read_text().partition(text)[0].count("\n") + 1
    problems.append(f"{path.relative_to(ROOT)}:{line}: {what}")


def sources(*folders):
    found = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".c", ".h", ".cpp")]
    return sorted(found)


def includes(path):
    """Yields each #include of a file: its text, and our file that it names, if any."""
    for quote, name in INCLUDE.findall(path.read_text()):
        home = EXT if EXT in path.parents else CORE
        places = [ROOT / "include"] if quote == "<" else [path.parent, home, ROOT / "include", ADAPTERS, CORE]
        found = [place / name for place in places if (place / name).is_file()]
        yield quote, name, found[0].resolve() if found else None


def layer(path):
    """Returns the folder of a file under src/, or None for files directly there, such as session.c."""
    parts = path.relative_to(CORE).parts
    return parts[0] if len(parts) > 1 else None


def export_room(path):
    """Returns the folder of a file under src/export/, or None for files directly there: export.c and exporter.h."""
    parts = path.relative_to(CORE / "export").parts
    return parts[0] if len(parts) > 1 else None


def check_export(path, name, target):
    """Files of src/export include other files of it only downwards."""
    own, theirs = export_room(path), export_room(target)
    if own is not None and own not in EXPORT_RANK:
        problem(path, name, f"the folder src/export/{own} has no place among the layers")
    elif theirs not in (own, None) and EXPORT_RANK[theirs] >= EXPORT_RANK.get(own, len(EXPORT_LAYERS)):
        problem(path, name, f"export/{own} must not include {name}: export/{theirs} is not below it")


def check_core():
    """The core never includes Python, and includes only downwards."""
    for path in sources(PUBLIC, CORE):
        own = layer(path) if CORE in path.parents else "the public headers"
        if own not in RANK and own not in (None, "the public headers"):
            problems.append(f"{path.relative_to(ROOT)}: the folder src/{own} has no place among the layers")
            continue
        for _, name, target in includes(path):
            if Path(name).name == "Python.h":
                problem(path, name, "the core must not know Python")
            if target is None or CORE not in target.parents:
                continue
            if PUBLIC in path.parents:
                problem(path, name, f"a public header must not include {name}")
                continue
            theirs = layer(target)
            if theirs == own == "export":
                check_export(path, name, target)
            if FOLLOW in target.parents and own == "view" and FOLLOW not in path.parents and path not in OPENS_FOLLOW:
                problem(path, name, f"view must not include {name}: it is for view.c")
            if theirs != own and RANK.get(theirs, SESSION) >= RANK.get(own, SESSION):
                problem(path, name, f"{own} must not include {name}: {theirs or 'session'} is not below it")


def check_outside():
    """The extension and the adapters include public headers and their own; EXT_CORE lists the exceptions."""
    unused = {(header, name) for header, names in EXT_CORE.items() for name in names.split()}
    for home in (EXT, ADAPTERS):
        for path in sources(home):
            for quote, name, target in includes(path):
                if target is None:
                    if quote == '"' or name.startswith("vestige/"):
                        problem(path, name, f"{name} is neither a public header nor our own")
                elif home is EXT and (room(path) or path.stem) in {**EXT_ADAPTERS, **EXT_CORE}.get(target, "").split():
                    unused.discard((target, room(path) or path.stem))
                elif home not in target.parents and (quote == '"' or PUBLIC not in target.parents):
                    problem(path, name, f"{name} must be a public header, written <vestige/...>")
    for header, name in sorted(unused):
        problems.append(f"EXT_CORE: python/ext/{name} does not include {header.relative_to(CORE)}")


def room(path):
    """Returns the folder of a file under python/ext, or None for core_module.c and the headers next to it."""
    parts = path.relative_to(EXT).parts
    return parts[0] if len(parts) > 1 else None


def check_extension():
    """A folder of the extension includes only folders that EXT_KNOWS lists; every folder may include files outside the
    folders.
    """
    for path in sources(EXT):
        own = room(path)
        if own is not None and own not in EXT_KNOWS:
            problems.append(f"{path.relative_to(ROOT)}: EXT_KNOWS does not say what python/ext/{own} may include")
            continue
        for _, name, target in includes(path):
            theirs = room(target) if target is not None and EXT in target.parents else None
            if path == SHOWS_311 and theirs == OF_311.name:
                continue
            if own is None and path.suffix == ".h" and theirs is not None:
                problem(path, name, f"{path.name} is for all folders and must not include {name}")
            elif own is not None and theirs not in (None, own) and theirs not in EXT_KNOWS[own]:
                problem(path, name, f"{own} must not include {name}: it may know {', '.join(sorted(EXT_KNOWS[own]))}")


def imports(path):
    """Yields each import of the package's own modules in a file: the line, and the full name of the module."""
    home = ["vestige", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name.split(".")[1:]) for name in names if name.split(".")[0] == "vestige")


def check_rooms():
    """Folders of the package import downwards only, and nothing below the command line imports it."""
    folders = {path.parent.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE}
    for folder in sorted(folders - set(ROOMS)):
        problems.append(f"python/vestige/{folder} has no place among the rooms")
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        room = parts[0] if len(parts) > 1 else ""
        if room not in ROOMS or (not room and path.stem in ENTRANCES):
            continue
        for line, names in imports(path):
            theirs = names[0] if names and names[0] in ROOMS else ""
            at_top = names[0] if names and (PACKAGE / f"{names[0]}.py").exists() else ""
            if theirs not in ("", room) and theirs not in ROOMS[room]:
                what = f"{room or 'what stands at the top'} must not import {theirs}"
            elif at_top and at_top not in ABOVE.get(room, {at_top}):
                what = f"{room} must not import vestige.{at_top}"
            else:
                continue
            problems.append(f"{path.relative_to(ROOT)}:{line}: {what}")


def check_versions():
    """One header and its parts have the differences between Pythons; the build selects the other files."""
    for path in sources(PUBLIC, CORE, EXT, ADAPTERS):
        if "PY_VERSION_HEX" in path.read_text() and path not in EXT.glob("compat*.h"):
            problem(path, "PY_VERSION_HEX", "PY_VERSION_HEX belongs in python/ext/compat.h")


# Included by bench/instructions.py; one of them needs valgrind's headers.
COMPILED_WHERE_USED = {"bench/empty_hooks.c", "bench/even_malloc.c", "bench/marks.c"}


def check_311():
    """Only the listed files name Python 3.11, so that no code for it stays when its folder is deleted."""
    for folder in (PUBLIC, CORE, ROOT / "python", ADAPTERS):
        for path in sorted(folder.rglob("*")):
            if path.suffix not in (".c", ".h", ".cpp", ".py", ".pyi", ".build"):
                continue
            found = NAMES_311.search(path.read_text().replace(f'"{SHOWS_311.name}"', ""))
            if found is not None and path not in MAY_NAME_311 and OF_311 not in path.parents:
                problem(path, found[0], f"{found[0]} belongs in python/ext/py311")


def check_build():
    """A meson.build names every file: a file that is not built is not tested."""
    lists = {
        "include/vestige": ["*.h"],
        "src": ["**/*.c"],
        "python/ext": ["**/*.c"],
        "python": ["vestige/**/*.py", "vestige/**/*.pyi", "vestige/py.typed"],
        "tests/c": ["test_*.c"],
        "adapters": ["cupti/*.c"],
        "examples/c": ["*.c"],
        "fuzz": ["*.c"],
        "bench": ["*.c"],
    }
    for folder, patterns in lists.items():
        home = ROOT / folder
        named = set(re.findall("#.*|'([^']*)'", (home / "meson.build").read_text()))
        for path in sorted(path for pattern in patterns for path in home.glob(pattern)):
            name = path.relative_to(home).as_posix()
            if name not in named and path.stem not in named and f"{folder}/{name}" not in COMPILED_WHERE_USED:
                problems.append(f"{folder}/{name} is missing in {folder}/meson.build")


def check_names():
    """Code of the core or the extension uses every name that files of the core share; a name that occurs only once is dead.

    A macro whose name another macro pastes together counts as used.
    """
    text = {path: re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in sources(PUBLIC, CORE, EXT)}
    used = Counter(name for code in text.values() for name in re.findall(r"\b(?:vst__|VST_)\w+", code))
    pasted = tuple(name for code in text.values() for name in re.findall(r"\b((?:vst__|VST_)\w+)##", code))
    for path, code in text.items():
        if CORE in path.parents:
            for name in sorted({name for name in re.findall(r"\b(?:vst__|VST_)\w+", code) if used[name] == 1}):
                if not name.startswith(pasted):
                    problem(path, name, f"{name} is not used")


def chapters():
    """Returns the pages for developers: the first page, and a chapter in each folder that needs one."""
    return [
        ROOT / "ARCHITECTURE.md",
        ROOT / "CONTRIBUTING.md",
        *sorted(p for top in (CORE, EXT.parent, ADAPTERS) for p in top.rglob("README.md")),
    ]


def check_pages():
    """Files that the pages for developers name exist: whoever moves a file changes its names in the pages."""
    named = re.compile(r"`((?:include|src|python|adapters|scripts|tests|fuzz)/[\w/.-]+\.(?:c|h|cpp|js|py|sh))`")
    for page in chapters():
        for name in sorted(set(named.findall(page.read_text()))):
            if not (ROOT / name).exists():
                problem(page, name, f"{name} is not there")


def check_headers():
    """Each public header compiles alone, as C11 and as C++17."""
    languages = [
        (os.environ.get("CC", "cc"), ["-x", "c", "-std=c11"]),
        (os.environ.get("CXX", "c++"), ["-x", "c++", "-std=c++17"]),
    ]
    for header in sorted(PUBLIC.glob("*.h")):
        for compiler, options in languages:
            command = [*shlex.split(compiler), *options, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-"]
            program = f'#include "{header}"\n'
            result = subprocess.run(command, input=program, stderr=subprocess.PIPE, text=True)
            if result.returncode:
                problems.append(f"include/vestige/{header.name} does not compile alone ({options[-1]}):")
                problems.append(result.stderr.rstrip())


def warn_about_long_files():
    for path in sources(PUBLIC, CORE, EXT, ADAPTERS):
        lines = path.read_text().count("\n")
        if lines > LINES_MAX:
            print(f"warning: {path.relative_to(ROOT)} has {lines} lines; {LINES_MAX} is what we aim for")


def main():
    check_core()
    check_outside()
    check_extension()
    check_rooms()
    check_versions()
    check_311()
    check_build()
    check_names()
    check_pages()
    check_headers()
    warn_about_long_files()
    print(
        f"looked at {len(sources(PUBLIC, CORE, EXT, ADAPTERS))} files: layers, Python.h, PY_VERSION_HEX, Meson's lists;"
    )
    print(f"compiled {len(list(PUBLIC.glob('*.h')))} public headers alone, as C11 and C++17")
    for line in problems:
        print(line)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
