"""`%load_ext vestige` in IPython and Jupyter: `%%vestige` records a cell, `%vestige` a statement, and shows the result.

IPython is imported only when it loads this extension.
"""

from __future__ import annotations

import ast
import os
import sys
import threading

from . import TraceError
from .profiler import profile
from .reading.overview import ROWS, of_trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from .reading.overview import Overview

LONG = ("rows=", "memory", "output=", "force", "no-c", "quiet")
USAGE = "see %vestige?"
VARIABLE = "_vestige"
CO_COROUTINE = 0x80  # the value of inspect's constant


class Result:
    """The result of a cell; a notebook shows it as a table."""

    def __init__(self, overview: Overview, rows: int) -> None:
        self._overview = overview
        self._rows = rows

    def _repr_html_(self) -> str:
        return self._overview.html(self._rows)

    def __repr__(self) -> str:
        return self._overview.text(self._rows)


class CellSyntaxError(Exception):
    """Raised if a cell does not compile. IPython shows it like its own SyntaxError."""


def load_ipython_extension(shell: Any) -> None:
    from IPython.core.magic import Magics, line_cell_magic, magics_class

    @magics_class
    class VestigeMagics(Magics):
        @line_cell_magic
        def vestige(self, line: str, cell: str | None = None) -> None:
            """Record every call of a cell or a statement, and show where the time went.

                %%vestige [-n ROWS] [--memory] [--no-c] [-o FILE.vst [--force]] [-q]
                %vestige [options] statement

            -n, --rows     how many functions to show (12)
            --memory       record allocations too
            --no-c         leave out functions written in C
            -o, --output   keep the trace in a file; --force overwrites it
            -q, --quiet    show nothing; the variable `_vestige` has the profile, as always
            """
            options, rest = self.parse_options(line, "n:o:q", *LONG, posix=True, strict=False, preserve_non_opts=True)
            if cell is not None and rest.strip():
                raise _usage(f"%%vestige takes options alone, not {rest.strip()!r}; {USAGE}")
            if cell is None and not rest.strip():
                raise _usage(f"%vestige needs a statement to record, %%vestige a cell; {USAGE}")
            run(self.shell, cell if cell is not None else rest, options, first_line=1 if cell is None else 2)

    shell.register_magics(VestigeMagics)


def _usage(message: str) -> Exception:
    from IPython.core.error import UsageError

    error: Exception = UsageError(message)
    return error


def run(shell: Any, source: str, options: dict[str, Any], first_line: int) -> None:
    rows = _rows(options)
    output = options.get("o", options.get("output"))
    name, parts = _compile(shell, source, first_line)
    threads = _other_threads()
    _check_await(parts)
    try:
        prof = profile(
            profile_memory="memory" in options,
            c_functions="no-c" not in options,
            output=None if output is None else os.path.expanduser(output),
            overwrite="force" in options,
        )
        prof.start()
    except (TraceError, OSError, RuntimeError, ValueError) as error:
        raise _usage(f"%%vestige: {error}") from None
    shell.user_ns[VARIABLE] = prof
    value, raised = None, None
    try:
        for code in parts:
            value = _execute(shell, code, shell.user_ns)
    except BaseException as caught:
        raised = caught
    finally:
        prof.stop()
        if output is not None:
            prof.finish()
    if value is not None and raised is None and not source.rstrip().endswith(";"):
        sys.displayhook(value)
    if "q" not in options and "quiet" not in options:
        _show(shell, prof, name, threads, rows, raised, output)
    if raised is not None:
        _show_as_without(shell, raised, name)
        raise raised


def _rows(options: dict[str, Any]) -> int:
    text = options.get("n", options.get("rows", str(ROWS)))
    if not text.isdigit() or int(text) < 1:
        raise _usage(f"-n takes a number of rows, not {text!r}; {USAGE}")
    return int(text)


def _compile(shell: Any, source: str, first_line: int) -> tuple[str, list[Any]]:
    """Returns the code's file and its compiled parts. The last expression is a part of its own: its value is shown
    after the recording. Lines are those of the cell, in which the code begins at `first_line`.
    """
    try:
        text = "# %%vestige\n" * (first_line - 1) + shell.transform_cell(source)
        name = shell.compile.cache(text, shell.displayhook.prompt_count, raw_code=source)
        tree = shell.transform_ast(shell.compile.ast_parse(text, filename=name))
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        last = tree.body[-1] if tree.body else None
        pieces: list[tuple[ast.AST, str]] = []
        if isinstance(last, ast.Expr) and shell.ast_node_interactivity != "none":
            tree.body.pop()
            pieces.append((ast.Expression(last.value), "eval"))
        if tree.body:
            pieces.insert(0, (tree, "exec"))
        with shell.compile.extra_flags(flags):
            parts = [shell.compile(piece, name, mode) for piece, mode in pieces]
    except (SyntaxError, OverflowError, ValueError, TypeError, MemoryError) as error:
        failure = CellSyntaxError(str(error))
        if isinstance(error, SyntaxError):
            lines = shell.SyntaxTB.structured_traceback(type(error), error, [])
            failure._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
        raise failure from None
    return name, parts


def _check_await(parts: list[Any]) -> None:
    """Refuses `await` where an event loop runs already, as in a notebook: asyncio does not nest loops."""
    if not any(code.co_flags & CO_COROUTINE for code in parts):
        return
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise _usage("%%vestige cannot record `await` at the top level here: put it into a function, or use profile()")


def _execute(shell: Any, code: Any, names: dict[str, Any]) -> Any:
    value = eval(code, names)  # noqa: S307 (the user's own cell)
    return shell.loop_runner(value) if code.co_flags & CO_COROUTINE else value


def _show(
    shell: Any,
    prof: profile,
    name: str,
    threads: set[int],
    rows: int,
    error: BaseException | None,
    output: str | None,
) -> None:
    from IPython.display import display

    from .cli.report import cell

    results = prof._read()
    overview = of_trace(results.trace, results.selection, memory=prof.profile_memory, cell=os.path.basename(name))
    places = cell.Places(results.trace, {name: shell.displayhook.prompt_count, **_numbers(shell)})
    for row in overview.rows:
        row.shown = places.text(row.shown)
    cell.explain(overview, results.trace, results.selection, name, threads, places)
    if error is not None:
        overview.note = f"up to {type(error).__name__}"
    elif output is not None:
        overview.note = f"recorded in {output}"
    display(Result(overview, rows))


def _other_threads() -> set[int]:
    """Returns the ids of all other threads, with those that Python did not start."""
    return {int(tid) for tid in os.listdir("/proc/self/task")} - {threading.get_native_id()}


def _numbers(shell: Any) -> dict[str, int]:
    """Returns the numbers of the cells that ran, by their files. Old versions of IPython do not have them."""
    return dict(getattr(shell.compile, "_filename_map", {}))


def _show_as_without(shell: Any, error: BaseException, name: str) -> None:
    """Makes IPython show the traceback from the cell's own frame on, so that it looks as it does without vestige."""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != name:
        traceback = traceback.tb_next
    if traceback is None or isinstance(error, SyntaxError):
        return
    lines = shell.InteractiveTB.structured_traceback(type(error), error, traceback, tb_offset=0)
    try:
        error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
    except AttributeError:
        pass
