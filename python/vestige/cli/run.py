"""`vestige run`: runs a program under recording, from its first line until after its atexit functions.

The program's output, exit code and traceback are not changed. This command adds a trace file and, on stderr at the end,
a short report; a failure of ours is one line there.
"""

from __future__ import annotations

import atexit
import os
import sys

from vestige import _core
from vestige.base.child_files import find_children, remove_children
from vestige.base.failure import Failure
from vestige.recording import endings
from vestige.recording.children import (
    abandon,
    announce,
    encode,
    is_started_again,
    start_again,
    withdraw,
)
from vestige.recording.ranks import own_path
from vestige.recording.standard_error import Draft, flush, is_there, put, say
from vestige.torch import build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from typing import Any, ClassVar, Self, TextIO

    from vestige import Trace, profile

    from .console import Parser
    from .launch import Program

USAGE = "[options] script.py … | -m module … | -c code …"
EXAMPLES = """\
  vestige run script.py --its --own options
  vestige run -o t.vst --no-c -m pytest -x
  vestige run --exclude '*/site-packages/*' -c 'import this'
  vestige run --last 30s -o t.vst server.py
  vestige run --snapshot-signal USR2 --trigger 'step>200ms' train.py

Everything after the script, module or code is passed to the program. Patterns
are like a shell's; a pattern without a slash is compared with the file's name
alone. Options that take a PATTERN, PAT, FUNC or SPEC may be repeated.
"""
OURS_ALONE = ("argparse", "gettext")  # imported only for our options; a program may have modules with these names
LINE_MAX = 80
ABANDON_S = 1.0  # how long a recording without a program waits for its copy
# the folder that contains vestige
PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLOSING_COMMAND = ("-c", "import sys; sys.path.insert(0, sys.argv[1]); from vestige.cli.closing import main; main()")
VIEW_COMMAND = ("-c", "import sys; sys.path.insert(0, sys.argv.pop(1)); from vestige.cli import main; main()")
BUILD_COMMAND = ("-c", "import sys; sys.path.insert(0, sys.argv.pop(1)); from vestige.torch.build import main; main()")
NEEDED_FOR_REPORT = ("_command", "_exceptions", "_max_snapshots", "_path", "_read", "_scope", "_shown", "_snapshots")
RECORDS_TO_REPORT = 50_000_000  # a larger trace would take too long to report


def prepare(argv: list[str]) -> Callable[[], None]:
    """Checks everything that can be checked before the program runs. Returns a function that runs the program."""
    from .project import project_options

    own, options, program = parse(_parser, argv, project_options)
    if not options.torch_profiler:
        return runner(Recording, options, program)
    if set(own) - {"--torch-profiler", "-q", "--quiet"}:
        raise Failure("--torch-profiler records nothing by itself and takes no option but -q", code=2)

    from vestige import install

    install(autograd=True)
    _build_ahead()
    return lambda: program.run(lambda: None, lambda: None)


def parse(
    make_parser: Callable[[], Parser], argv: list[str], before: Callable[[], list[str]] | None = None
) -> tuple[list[str], Namespace, Program]:
    """Returns our options as words and parsed, and the program that follows them. `before` gives words that those of
    argv override.
    """
    loaded = set(sys.modules)
    parser = make_parser()
    own, kind, target, args = split(argv, parser.options_with_value())
    options = parser.parse_args([*(before() if before else ()), *own])
    if not kind:
        raise Failure(f"nothing to run: give a script, -m module or -c code; see {parser.prog} --help", code=2)
    unload(loaded)

    from .launch import Program

    return own, options, Program(kind, target, args)


def runner(kind: type[Recording], options: Namespace, program: Program) -> Callable[[], None]:
    """Returns the object that runs and records the program. If a recorded program has run itself again by this command,
    that is a child.
    """
    path = None if options.output is None else own_path(options.output)
    if is_started_again(path, sys.argv[1:]):
        return lambda: program.run(lambda: start_again(program.name), abandon)
    recording = kind(options, program)
    _build_ahead()
    return lambda: program.run(recording.start, recording.abandon)


def _build_ahead() -> None:
    """Builds the recorder of torch's operators now, if the program may load torch. The build runs in a process of its
    own, so that it does not import modules into the program.
    """
    home = build.unbuilt()
    if home is None:
        return
    try:
        child = os.posix_spawn(
            sys.executable, [sys.executable, _isolated(), *BUILD_COMMAND, PACKAGES, home], os.environ
        )
        os.waitpid(child, 0)
    except (OSError, ValueError):  # without the recorder, the rest is recorded as usual
        pass


def unload(loaded: set[str]) -> None:
    """Unloads modules that only our options needed."""
    for name in OURS_ALONE:
        if name not in loaded:
            sys.modules.pop(name, None)


def split(argv: list[str], with_value: set[str]) -> tuple[list[str], str, str, list[str]]:
    """Splits argv into our options, the kind of program ("" if there is none), its name, and its arguments."""
    at = 0
    while at < len(argv):
        word = argv[at]
        if word[:2] in ("-m", "-c"):
            kind = "module" if word[1] == "m" else "code"
            rest = ([word[2:]] if word[2:] else []) + argv[at + 1 :]
            if not rest:
                raise Failure(f"{word} needs the {kind} to run", code=2)
            return argv[:at], kind, rest[0], rest[1:]
        if word == "--" and argv[at + 1 :]:
            return argv[:at], "script", argv[at + 1], argv[at + 2 :]
        if word == "-" or not word.startswith("-"):
            return argv[:at], "script", word, argv[at + 1 :]
        at += 2 if word in with_value else 1
    return argv, "", "", []


def _parser() -> Parser:
    from .console import Parser
    from .recording_options import add_options

    parser = Parser("run", "Run a program and record every call it makes.", USAGE, EXAMPLES)
    add_options(parser, "run")
    parser.shorten_help()
    return parser


class Recording:
    """The recording of the whole run."""

    _fixed: ClassVar[dict[str, Any]] = {"with_stack": True}  # options that no flag changes

    def __init__(self, options: Namespace, program: Program) -> None:
        from vestige.render import quote

        self._process = os.getpid()
        self._shown = own_path(options.output or f"{program.name}.{self._process}.vst")
        self._path = os.path.abspath(self._shown)
        self._read = self._path  # where the report finds the records
        self._quiet = options.quiet
        self._view = getattr(options, "view", False)
        self._paused = getattr(options, "paused", False)
        self._max_snapshots = getattr(options, "max_snapshots", 0)
        self._snapshots: tuple[list[tuple[str, str, str | None]], int] = ([], 0)
        self._exceptions = getattr(options, "exceptions", False)
        self._over = False
        # whether children of an overwritten recording must be removed
        self._stale = options.overwrite and not options.children
        try:
            self._profile = self._make(options)
        except ValueError as error:
            raise Failure(str(error), code=2) from None
        chosen = {f"vestige.{name}": self._profile._options[name] for name in ("only", "max_depth", "budget")}
        self._scope = {key: value for key, value in chosen.items() if value is not None}
        self._arguments = sys.argv[1:]
        self._command = program.command
        command = ", ".join(map(quote, program.command))
        self._profile._set_metadata("vestige.command", f"[{command}]")
        self._profile._set_metadata("vestige.process_name", quote(program.name))

    def _make(self, options: Namespace) -> profile:
        from vestige import profile
        from vestige.recording import options as recording_options

        from .recording_options import recorded

        recording_options.on_stderr = True
        return profile(**{**recorded(options), **self._fixed, "output": self._path})

    def start(self) -> None:
        """Starts recording. The recording's end is registered before the program can register functions, so it runs
        last.
        """
        atexit.register(self._finish)
        endings.close_with(self._close_elsewhere)
        try:
            if self._stale:
                remove_children(self._path)
            if _core.local_files():
                from vestige.base.copies import resume_copies

                resume_copies(self._path, say)
            announce(self._path, self._arguments)
            if self._paused:
                self._wait(overwrites=self._profile._overwrite)
            else:
                self._profile.start()
            return
        except FileExistsError:
            message = f"{self._shown}: already exists; --force overwrites it"
        except Exception as error:
            from vestige.base.failure import explain

            message = explain(self._shown, error) if isinstance(error, OSError) else str(error)
        self._over = True
        say(message)
        raise SystemExit(2)

    def _wait(self, *, overwrites: bool) -> None:
        """Prepares the recording, which begins when somebody attaches."""
        from vestige.recording import control

        if os.path.lexists(self._path) and not overwrites:
            raise FileExistsError(self._path)
        control.offer(self._profile)
        control.listen(os.environ.get(control.LISTEN))
        if not self._quiet:
            say(f"paused: vestige attach {self._process} records it")

    def abandon(self) -> None:
        """Removes the trace, because there is no program to run."""
        self._over = True
        self._profile.finish()
        withdraw()
        if self._profile._started:
            self._profile._session.wait_storage(ABANDON_S)
            if os.path.lexists(self._path):
                os.unlink(self._path)

    def _finish(self) -> None:
        if self._over or os.getpid() != self._process:
            return
        if not self._end():
            return
        flush(sys.stdout)
        flush(sys.stderr)
        if not self._quiet:
            draft = Draft()
            self.write_report(draft)
            put(draft.text)
        if self._view:
            self._open_viewer()

    def _open_viewer(self) -> None:
        """Runs the viewer in a process of its own, until Ctrl-C. The program's exit code does not change."""
        words = (*VIEW_COMMAND, PACKAGES, "view", self._path)
        child = os.posix_spawn(sys.executable, [sys.executable, _isolated(), *words], os.environ)
        while True:
            try:
                os.waitpid(child, 0)
                return
            except KeyboardInterrupt:  # the viewer got the signal too, and ends
                continue
            except ChildProcessError:  # the program collects its child processes itself
                return

    def _end(self) -> bool:
        """Ends the recording. Returns whether it can be reported."""
        self._over = True
        try:
            self._profile.finish()
            withdraw()
            if not self._profile._started:
                if not self._quiet:
                    say("nothing was recorded: nobody attached")
                return False
            self._snapshots = self._profile._session.snapshots()
            self._read = self._readable()
            return not self._profile._session.was_cut and (is_there() or self._view)
        except Exception as error:
            say(f"{self._shown}: the trace could not be finished: {error}")
            return False

    def _readable(self) -> str:
        """Returns the file that has the records and does not keep this process waiting; "" if there is none."""
        storage = self._profile._session.storage()
        if storage is None:
            return self._path
        return storage["local"] if storage["local"] and not storage["freed"] else ""

    def _close_elsewhere(self) -> list[bytes] | None:
        """Returns the command that makes the report after the program has called os._exit, when our code must not run
        here any more.
        """
        if self._over or os.getpid() != self._process:
            return None
        if not self._end() or self._quiet or not sys.executable:
            return None
        facts = {name: getattr(self, name) for name in NEEDED_FOR_REPORT}
        encoding = getattr(sys.__stderr__, "encoding", None) or "utf-8"
        words = [*CLOSING_COMMAND, PACKAGES, type(self).__module__, type(self).__name__, encoding, encode(facts)]
        return list(map(os.fsencode, (sys.executable, _isolated(), *words)))

    @classmethod
    def over(cls, facts: dict[str, Any]) -> Self:
        """Returns a recording that has ended in another process, for its report."""
        self = cls.__new__(cls)
        vars(self).update(facts)
        return self

    def write_report(self, draft: Draft) -> None:
        """Writes the report, or the reason why there is none."""
        from vestige.base.terminal import Screen

        out: Any = Screen(draft)  # type: ignore[arg-type]
        try:
            self.report(out)
        except (Exception, KeyboardInterrupt) as error:
            print(f"vestige: no report: {error or type(error).__name__}", file=out)

    def report(self, out: TextIO) -> None:
        from shlex import quote

        from vestige._core import Trace

        from .report.end import show

        self._tell_snapshots(out)
        trace = Trace(self._read) if self._read else None
        children = self._children(trace)
        paths = (self._read, *children) if trace is not None else ()
        records = sum(Trace(path).info()["records"] for path in paths)
        if trace is not None and records <= RECORDS_TO_REPORT:
            show(self._read, self._metadata(trace), out, children)
            also = "--tree, --threads, --gc" + ", --exceptions" * self._exceptions
            print(f"vestige report {quote(self._shown)}   # every function; also {also}", file=out)
            print(f"vestige view {quote(self._shown)}   # the timeline, in the browser", file=out)
        else:
            print(f"a large trace; for a report:  vestige report {quote(self._shown)}", file=out)
        self._tell_children(children, out)
        self._tell_devices(trace, out)
        stem = os.path.splitext(self._shown)[0]
        export = f"vestige export {quote(self._shown)} -o {quote(stem + '.json.gz')}"
        print(f"{export}   # open it at ui.perfetto.dev", file=out)

    def _metadata(self, _: Trace) -> dict[str, Any]:
        """The metadata that the report needs, without parsing JSON in the program's process."""
        from vestige.reading.libraries import STDLIB

        stdlib = os.path.dirname(getattr(os, "__file__", ""))
        return {STDLIB: stdlib, "vestige.command": self._command, **self._scope}

    def _children(self, trace: Trace | None) -> list[str]:
        """Returns the files of child processes, unless to look for them may wait for a slow disk."""
        if trace is None or self._read != self._path:
            return []
        return find_children(self._path, trace.info()["trace_id"])

    def _tell_children(self, others: list[str], out: TextIO) -> None:
        if self._read != self._path:
            print(f"vestige info {self._shown}   # child processes, too", file=out)
        if others:
            folder = os.path.dirname(self._shown)
            print(_listed([os.path.join(folder, os.path.basename(path)) for path in others]), file=out)

    def _tell_devices(self, trace: Trace | None, out: TextIO) -> None:
        if trace is not None and any(device["platform"] == "cuda" for device in trace.info().get("devices", ())):
            from vestige.recording.devices import UNPROVEN

            print(UNPROVEN, file=out)

    def _tell_snapshots(self, out: TextIO) -> None:
        written, refused = self._snapshots
        folder = os.path.dirname(self._shown)
        for path, reason, error in written:
            shown = os.path.join(folder, os.path.basename(path))
            print(f"snapshot {shown}  ({reason})" + (f": {error}" if error else ""), file=out)
        if refused:
            print(f"{refused:,} more were requested, but --max-snapshots allows only {self._max_snapshots}", file=out)


def _isolated() -> str:
    """The option with which the interpreter ignores the program's files and environment."""
    return "-sS" if "PYTHONHOME" in os.environ else "-IS"


def _listed(files: list[str]) -> str:
    line = f"and {len(files):,} child process{'es' * (len(files) > 1)}:"
    for number, name in enumerate(files):
        if number and len(line) + len(name) > LINE_MAX - 3:
            return f"{line} …"
        line += f" {name}"
    return line
