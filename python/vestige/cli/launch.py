"""Runs a script, module, folder, archive or code as the interpreter itself would: sys.argv, sys.path[0], __main__, exit
code and traceback are those of `python …`. This module does not know about recording.
"""

from __future__ import annotations

import builtins
import os
import sys
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from types import CodeType, FunctionType, ModuleType, TracebackType

from vestige._core import leave_out, run_program
from vestige.base.failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_kept: list[ModuleType] = []  # the former __main__, whose code may still run


class Program:
    """The program to run. `kind` is "script", "archive" (a folder or zip file), "module" or "code"."""

    def __init__(self, kind: str, target: str, args: list[str]) -> None:
        if kind == "script" and os.sep not in target and not os.path.lexists(target):
            target = _find_script(target) or target
        self.kind = kind
        self.target = target
        self.args = args
        self.path = _absolute(target)
        self.source: bytes | str = target
        if kind == "script" and target != "-":
            if _is_importable(self.path):
                self.kind = "archive"
            else:
                self.source = _read(self.path, target)
                _check_source(self.source, self.path, target)

    @property
    def name(self) -> str:
        """The name for the trace file."""
        if self.kind == "code":
            return "command"
        if self.kind == "module":
            return self.target
        if self.target == "-":
            return "stdin"
        return os.path.splitext(os.path.basename(os.path.normpath(self.path)))[0]

    @property
    def command(self) -> list[str]:
        """The words that would follow `python` on a command line."""
        option = {"module": ["-m"], "code": ["-c"]}.get(self.kind, [])
        return [*option, self.target, *self.args]

    def run(self, start: Callable[[], None], abandon: Callable[[], None]) -> None:
        """Runs the program. Calls start() right before the program's first code, and abandon() if there turns out to be
        no program.
        """
        namespace = _fresh_main()
        sys.orig_argv[:] = [*_interpreter(), *self.command]
        sys.argv[:] = [{"module": "-m", "code": "-c"}.get(self.kind, self.target), *self.args]
        self._set_path()
        try:
            if self.kind in ("module", "archive"):
                start()
                self._run_module(namespace, abandon)
            else:
                code = self._compile(namespace)
                start()
                run_program(code, namespace)
        except SystemExit:
            raise
        except BaseException:
            _shorten_next_traceback()
            raise

    def _set_path(self) -> None:
        """Sets sys.path[0]. The interpreter has put the folder of `vestige` there, unless an option forbids it."""
        if not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
            del sys.path[0]
        elif self.kind != "archive":
            return
        if self.kind == "module":
            first = os.getcwd()
        elif self.kind == "archive":
            first = self.path
        elif self.kind == "code" or self.target == "-":
            first = ""
        else:
            first = os.path.dirname(os.path.realpath(self.path))
        sys.path.insert(0, first)

    def _compile(self, namespace: dict[str, Any]) -> CodeType:
        if self.kind == "code":
            _show_code_in_tracebacks(self.target)
            return compile(self.source, "<string>", "exec", dont_inherit=True)
        if self.target == "-":
            _set_file(namespace, "<stdin>")
            return compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True)
        _set_file(namespace, self.path)
        if self.path.endswith(".pyc"):
            loader = SourcelessFileLoader("__main__", self.path)
            namespace["__loader__"] = loader
            code = loader.get_code("__main__")
            assert code is not None
            return code
        namespace["__loader__"] = SourceFileLoader("__main__", self.path)
        return compile(self.source, self.path, "exec", dont_inherit=True)

    def _run_module(self, namespace: dict[str, Any], abandon: Callable[[], None]) -> None:
        """Runs a module by the function that `python -m` calls, which imports the packages around the module. This
        function and the next one are on the program's stack, as without vestige, but are not recorded.
        """
        import runpy

        internals: Any = runpy
        around: dict[str, Any] = dict(vars(runpy))
        for name in ("_run_code", "_run_module_as_main"):
            function = getattr(internals, name)
            code = function.__code__.replace()
            leave_out(code)
            around[name] = FunctionType(code, around, name, function.__defaults__)
        try:
            if self.kind == "module":
                run_program(around["_run_module_as_main"], (self.target, True))
            else:
                run_program(around["_run_module_as_main"], ("__main__", False))
        except SystemExit:
            if namespace.get("__spec__") is None:  # there was no module to run
                abandon()
            raise


def _interpreter() -> list[str]:
    """Returns the interpreter and its options, as they stood before the command, which is a script, a module or code.
    sys.orig_argv must name only the program, because programs start themselves again by sys.orig_argv.
    """
    words = sys.orig_argv[: -len(sys.argv)]
    own = sys.orig_argv[-len(sys.argv)]
    if own == sys.argv[0]:
        return words
    letter = "c" if sys.argv[0] == "-c" else "m"
    option = own if own.startswith("-") else words.pop()  # `-mvestige`, or `-m` before it
    others = option.partition(letter)[0]
    return words if others == "-" else [*words, others]


def _find_script(name: str) -> str | None:
    """Returns a command of this name that is written in Python, from the interpreter's folder or from PATH."""
    folders = [os.path.dirname(sys.executable or ""), *os.environ.get("PATH", "").split(os.pathsep)]
    for folder in filter(None, folders):
        path = os.path.join(folder, name)
        if not os.access(path, os.X_OK) or os.path.isdir(path):
            continue
        with open(path, "rb") as file:
            lines = file.readline(1000), file.readline(1000)
        # If the interpreter's name is too long for the first line, it is in the second line.
        return path if lines[0].startswith(b"#!") and b"python" in lines[0] + lines[1] else None
    return None


def _absolute(path: str) -> str:
    """Makes a path absolute like the interpreter, which keeps `..`."""
    if path == ".":
        path = ""
    return os.path.join(os.getcwd(), path) if path else os.getcwd()


def _is_importable(path: str) -> bool:
    for hook in sys.path_hooks:
        try:
            hook(path)
            return True
        except ImportError:
            pass
    return False


def _read(path: str, shown: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Failure(f"can't open file {shown!r}: {error.strerror}", code=2) from None


def _check_source(source: bytes, path: str, shown: str) -> None:
    """Raises an error that says what to do, for a file that the interpreter could not run either."""
    if b"\0" not in source or path.endswith(".pyc"):
        return
    kind = "machine code" if source.startswith(b"\x7fELF") else "a binary file"
    advice = "name the Python script itself: vestige run script.py"
    raise Failure(f"{shown} is {kind}, not a Python script; {advice}", code=2)


def _fresh_main() -> dict[str, Any]:
    old = sys.modules["__main__"]
    _kept.append(old)
    module = ModuleType("__main__")
    namespace = vars(module)
    namespace["__loader__"] = BuiltinImporter
    if "__annotations__" in vars(old):
        namespace["__annotations__"] = {}
    namespace["__builtins__"] = builtins
    sys.modules["__main__"] = module
    return namespace


def _set_file(namespace: dict[str, Any], path: str) -> None:
    """Sets __file__ as the interpreter does. From 3.15 on, __cached__ is not set."""
    namespace["__file__"] = path
    if sys.version_info < (3, 15):
        namespace["__cached__"] = None


def _show_code_in_tracebacks(source: str) -> None:
    """Makes tracebacks show the lines of `-c`, as the interpreter does from 3.13 on."""
    if sys.version_info >= (3, 13):
        import linecache

        lines = [line + "\n" for line in source.splitlines()]
        linecache.cache["<string>"] = (len(source), None, lines, "<string>")


def _shorten_next_traceback() -> None:
    """Makes the next uncaught exception, which is already raised, appear without the frames around the program."""
    hook = getattr(sys, "excepthook", None)
    if hook is None:
        return

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        sys.excepthook = hook
        traceback = _of_program(traceback)
        error.__traceback__ = traceback
        sys.last_traceback = traceback
        hook(kind, error, traceback)

    sys.excepthook = show


def _of_program(traceback: TracebackType | None) -> TracebackType | None:
    part = traceback
    while part is not None and part.tb_frame.f_code is not Program.run.__code__:
        part = part.tb_next
    if part is None:
        return traceback
    while part is not None and _is_plumbing(part.tb_frame.f_code.co_filename):
        part = part.tb_next
    return part


def _is_plumbing(file: str) -> bool:
    return file == __file__ or file.startswith("<frozen importlib")
