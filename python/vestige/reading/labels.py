"""Short names of functions, for places without room for file and line. Names that many functions share get an addition
that distinguishes them. Reports use this inside programs that are ending, so it imports little.
"""

from __future__ import annotations

from .kinds import NATIVE, PYTHON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from vestige._core import Function

    class Imports(Protocol):
        """A trace, as far as it knows which modules were imported."""

        def import_name(self, imported: int, module: int = ..., /) -> str: ...


MODULE_CODE = "<module>"
SHARED = ("<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")  # names that many functions share
BARE = "forward"  # the name shared by every module of a framework, if the trace does not know the class
IMPORTS_CODE = 1  # for Trace.import_name(): an import that ran the module's code


def plain_name(name: str) -> str:
    """Returns `acquire` for `<built-in method acquire of _thread.lock object>`."""
    words = name.split(" ", 3)
    return words[2].rstrip(">") if name.startswith("<built-in ") and len(words) > 2 else name


def is_module(function: Function) -> bool:
    """Returns whether the function is a module's code, or stands for a module without code (VST_MODULE_NAMED in
    <vestige/wire.h>).
    """
    if function.kind == PYTHON:
        return function.name == MODULE_CODE
    return function.kind == NATIVE and function.name.startswith(f"{MODULE_CODE} ")


def distinct_name(trace: Imports, number: int, function: Function) -> str:
    """Returns `<module> pandas.core.frame`, `<lambda> app.py:12`, `forward net.py:7`; else the function's name."""
    name, file = function.name, function.shown_file
    if function.kind != PYTHON:
        return name
    if name == MODULE_CODE:
        module = trace.import_name(IMPORTS_CODE, number).removeprefix("import ")
        return f"{name} {module or file}"
    if name == BARE or name.rpartition(".")[2] in SHARED:
        return f"{name} {file.rpartition('/')[2]}:{function.line}"
    return name


def short_name(trace: Imports, number: int, function: Function) -> str:
    """Returns distinct_name(), but only `acquire` for functions in C."""
    return plain_name(function.name) if function.kind == NATIVE else distinct_name(trace, number, function)
