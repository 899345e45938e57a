"""The command `vestige`: loads the module of a subcommand, and reports errors in one line.

Exit codes: 0; 1 for a file that cannot be used; 2 for wrong usage. `vestige run` ends with the exit code of the
program. Commands check their input where they read it. Unforeseen errors are one line too: the user sees a traceback
only if VESTIGE_TRACEBACK is set.
"""

from __future__ import annotations

import os
import sys

from vestige.base.failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .console import Parser

# The commands and their summaries, in the groups and the order of the help.
GROUPS = {
    "record": {
        "run": "run a script, module or code and record every call",
        "memory": "run a program and record every allocation",
        "attach": "record a running process for a while",
        "detach": "end a recording that attach began",
    },
    "look": {
        "view": "look at traces of any size in the browser",
        "top": "show what a recorded program does at the moment",
        "report": "show where a recorded program spent its time",
        "diff": "show what got slower from one recording to the next",
        "memory-report": "show what held memory and what was never freed",
        "info": "show what a trace contains, and how it ended",
        "device check": "compare a recording of a GPU with torch.profiler's",
    },
    "convert": {
        "export": "write traces for other programs: Perfetto, pprof, …",
        "pack": "compress traces; every command reads packed traces",
        "recover": "finish the trace of a process that died",
        "et": "check or show execution traces: graphs of operators",
    },
    "many traces": {
        "query": "query one trace or thousands in SQL, or by ready questions",
    },
    "agents": {
        "mcp": "answer an agent's questions about traces (MCP)",
    },
    "shell": {
        "completion": "print a script that completes commands and options",
    },
}
SUMMARIES = {name.partition(" ")[0]: summary for group in GROUPS.values() for name, summary in group.items()}
COMMANDS = tuple(SUMMARIES)
FOLDERS = {  # the module of a command, if it is not a file with the command's name
    "attach": "attach.command",
    "detach": "attach.detach",
    "device": "device.command",
    "diff": "diff.command",
    "et": "et.command",
    "mcp": "mcp.command",
    "memory": "memory.command",
    "memory-report": "memory.report",
    "report": "report.command",
    "top": "top.command",
}
PROGRAMS = ("run", "memory")  # commands that run a program; the words after the program's name belong to the program

TRACEBACK = "VESTIGE_TRACEBACK"  # the environment variable that shows the traceback of a failure
UNEXPECTED = "an unexpected error ended this command"
LONGEST = 200  # characters of an exception's text that are shown


def usage() -> str:
    """Returns the help of `vestige` itself: first the two commands that most people need, then all commands in
    groups.
    """
    lines = [
        "usage: vestige COMMAND [options] …",
        "",
        "  vestige run script.py --its-options   record script.py into script.<pid>.vst",
        "  vestige view script.1234.vst          show the recording in the browser",
    ]
    width = max(len(name) for group in GROUPS.values() for name in group)
    for title, group in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<{width}}  {summary}" for name, summary in group.items())]
    return "\n".join([*lines, "", "`vestige COMMAND --help` explains a command, with examples.", ""])


def main() -> NoReturn:
    """Runs the command and ends the process."""
    from vestige.base.terminal import Screens

    if sys.argv[1:2] == ["help"] and sys.argv[2:]:  # `vestige help run`
        sys.argv[1:] = [*sys.argv[2:], "--help"]
    code, program = 0, None
    with Screens():
        try:
            if sys.argv[1:2] == ["run"]:
                from .run import prepare

                program = prepare(sys.argv[2:])
            elif sys.argv[1:2] == ["memory"]:
                from .memory.command import prepare

                program = prepare(sys.argv[2:])
            else:
                code = _dispatch(sys.argv[1:])
                sys.stdout.flush()
        except SystemExit as ended:  # argparse raises it for --help
            code = ended.code if isinstance(ended.code, int) else 0
        except BaseException as error:
            code = _report(error)
    if program is not None:
        program()  # outside of the block, so that its exceptions look like those of the program alone
    raise SystemExit(code)


def _report(error: BaseException) -> int:
    """Prints in one line on stderr why a command ended. Returns the exit code."""
    if isinstance(error, KeyboardInterrupt):
        return 130
    if os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(type(error), error, error.__traceback__)
    if isinstance(error, BrokenPipeError):
        _drop_stdout()
        return 1
    from vestige.base.printable import printable

    line, code = failure_line(error)
    print(printable(f"vestige: {line}"), file=sys.stderr)
    try:
        sys.stdout.flush()
    except (Failure, OSError):
        _drop_stdout()
    return code


def failure_line(error: BaseException) -> tuple[str, int]:
    """Returns the line for the user, and the exit code."""
    if isinstance(error, Failure):
        return str(error), error.code
    if isinstance(error, MemoryError):
        return "not enough memory", 1
    if isinstance(error, OSError) and error.strerror:
        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, (str, bytes)) else ""
        return f"{where}{error.strerror}", 1
    what = " ".join(f"{type(error).__name__}: {error}".split())
    what = what if len(what) < LONGEST else what[: LONGEST - 1] + "…"
    return f"{UNEXPECTED} ({what}): a damaged file, or a bug in vestige; {TRACEBACK}=1 shows where", 1


def _drop_stdout() -> None:
    """Discards unwritten output, because the interpreter would complain about it at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except OSError:
        pass


def _dispatch(argv: list[str]) -> int:
    name = argv[0] if argv else ""
    if name in COMMANDS:
        return load(name).main(argv[1:]) or 0
    if name in ("-h", "--help", "help"):
        print(usage(), end="")
    elif name in ("-V", "--version"):
        from vestige import __version__

        print(f"vestige {__version__}")
    elif not argv:
        print(usage(), end="", file=sys.stderr)
        return 2
    else:
        raise Failure(_unknown(name), code=2)
    return 0


def load(command: str) -> Any:
    """Returns the module of a command. It has main(), or prepare() if the command runs a program."""
    home = FOLDERS.get(command, command)
    return __import__(f"{__name__}.{home}", fromlist=["main"])


def parsers() -> dict[str, Parser]:
    """Returns the parser of every command, by its name (`run`, `et check`), for completion, the reference in the docs
    and tests. No command runs, because a command makes its parser before it does anything.
    """
    from .console import ask

    found = {}
    for name in COMMANDS:
        module = load(name)
        call = module.prepare if name in PROGRAMS else module.main
        for word in getattr(module, "PARTS", ("",)):
            found[f"{name} {word}".strip()] = ask(call, [word] if word else [])
    return found


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    if name.startswith("-"):
        return f"no option {name!r}; see vestige --help"
    if os.path.exists(name):
        return f"no command {name!r}; to record a script: vestige run {name}"
    near = get_close_matches(name, COMMANDS, n=1)
    return f"no command {name!r}; " + (f"did you mean {near[0]!r}?" if near else "see vestige --help")
