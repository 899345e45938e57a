"""Tells the user's own functions from those of libraries. A library is code in site-packages or dist-packages,
anywhere, or in the standard library of the recording Python, which the trace names. So a package that is installed in a
venv inside the project is a library. The project itself is not, even if it was installed with `pip install -e` or lies
below Python's prefix. An archive counts as its folder. C functions and generated code count as their callers' code. If
only library code ran, the package that the program was started with counts as the user's own.
"""

from __future__ import annotations

from vestige.base.library_files import PACKAGES, library_of

from .kinds import NATIVE, OPERATOR, PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    # kind, name, file, file to show, line
    from vestige._core import Function

OWN, LIBRARY, FOLLOWS = "own", "library", "follows"
TYPED_IN = ("<stdin>", "<ipython-input-", "<doctest ", "<python-input-", "<console>")
STDLIB = "vestige.stdlib"  # a key of the metadata


def classify(functions: Sequence[Function | None], metadata: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Returns, by id of function, whose code the function is, and the library's name."""
    stdlib = metadata.get(STDLIB, "")
    command = metadata.get("vestige.command")
    words = [str(word) for word in command] if isinstance(command, list) else []
    kinds, names = [], []
    for function in functions:
        kind, name = _classify(function, stdlib, words) if function else (FOLLOWS, "")
        kinds.append(kind)
        names.append(name)
    _find_own(functions, kinds, names, words)
    return kinds, names


def _classify(function: Function, stdlib: str, words: list[str]) -> tuple[str, str]:
    kind, file = function.kind, function.file
    if kind != PYTHON:
        return (FOLLOWS, "") if kind in (NATIVE, OPERATOR) else (OWN, "")
    name = library_of(file, stdlib)
    if name:
        return LIBRARY, name
    if file.startswith("<") and not file.startswith(TYPED_IN):
        return (OWN if file == "<string>" and "-c" in words[:4] else FOLLOWS), ""
    return OWN, ""


def _find_own(functions: Sequence[Function | None], kinds: list[str], names: list[str], words: list[str]) -> None:
    """If only library code ran, marks the package that the program was started with as the user's own: the package
    given to -m, or else the first package that ran.
    """
    python = [i for i, f in enumerate(functions) if f and f.kind == PYTHON]
    launchers = {i for i in python if kinds[i] == OWN and _is_launcher(functions[i])}
    # A script of the user's own has functions.
    with_functions = {f.file for f in functions if f and f.kind == PYTHON and f.name != "<module>"}
    launchers = {i for i in launchers if functions[i].file not in with_functions}  # type: ignore[union-attr]
    own = [i for i in python if kinds[i] == OWN and i not in launchers]
    if len(python) > len(launchers):
        for i in launchers:
            kinds[i] = FOLLOWS
    if own or not python:
        return
    first = words[words.index("-m") + 1].partition(".")[0] if "-m" in words[:-1] else ""
    if not first or first not in [names[i] for i in python]:
        installed = [names[i] for i in python if any(f"/{p}/" in functions[i].file for p in PACKAGES)]  # type: ignore[union-attr]
        first = installed[0] if installed else ""
    for i in python:
        if first and names[i] == first:
            kinds[i] = OWN


def _is_launcher(function: Function | None) -> bool:
    """Returns whether the function is in a script that pip wrote, such as .venv/bin/tool."""
    assert function is not None
    parts = function.file.split("/")
    return len(parts) > 2 and parts[-2] == "bin" and not parts[-1].endswith(".py")
