"""`vestige attach`: records a running process for a while, and reports where its time went.

The command asks the process through a Unix socket (recording/control.py): either a socket at which the process listens,
or a socket of this command, to which a script connects that runs in the process (entry.py). The recording belongs to
the connection: it ends with this command, however the command ends.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing

from vestige import TraceError
from vestige.base.copies import complete_copies
from vestige.base.failure import Failure, explain
from vestige.base.private_folder import Refused
from vestige.base.quantities import chosen_time, parse_time
from vestige.cli.console import Parser, check_absent
from vestige.cli.recording_options import add_options, recorded
from vestige.recording.sockets import InUse, answers, connect, folder_of_user, listen_at, own_path, peer

from .entry import HAS_REMOTE, check_version, enter
from .gdb import needs
from .held import Held, Interrupts, over
from .talk import Talk
from .target import Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

USAGE = "PID | --socket PATH [options]"
EXAMPLES = """\
  vestige attach 1234                          until Ctrl-C
  vestige attach 1234 --for 10s -o t.vst
  vestige attach 1234 --no-c --exclude '*/site-packages/*'
  vestige attach --socket /run/app/vestige.sock --for 10s

`vestige detach 1234`, in another terminal, ends the recording too. The process
continues as before. Python 3.14 and later need nothing else; older Pythons need
gdb, and the process stands still while gdb starts the recording. A program that
calls vestige.listen() does not need gdb.
"""


def main(argv: list[str]) -> int:
    options = _parser().parse_args(argv)
    if (options.pid is None) == (options.socket is None):
        raise Failure("give the PID of a process, or --socket PATH", code=2)
    request = _request(options)
    try:
        with Interrupts() as interrupts:
            if options.socket is not None:
                return _attach_by_socket(options, request, interrupts)
            return _attach(options, request, interrupts)
    except (InUse, Refused) as error:
        raise Failure(str(error)) from None


def _parser() -> Parser:
    parser = Parser("attach", "Record a running process.", USAGE, EXAMPLES)
    parser.add_argument("pid", metavar="PID", type=int, nargs="?", help="number of the process to record")
    group = parser.group("attaching")
    seconds = group.add_argument(
        "--for", dest="seconds", metavar="TIME", help="stop after TIME (10s, 5m; default: at Ctrl-C)"
    )
    parser.often.append(seconds)
    group.add_argument("--socket", metavar="PATH", help="record the process that listens at PATH (vestige.listen())")
    group.add_argument(
        "--wait",
        metavar="TIME",
        default="10s",
        help="how long to wait until the process runs Python code (default: 10s)",
    )
    group.add_argument("--gdb", action="store_true", help="enter the process by gdb, even on Python 3.14 and later")
    group.add_argument(
        "--standstill", metavar="TIME", default="1s", help="how long gdb may hold the process (default: 1s)"
    )
    add_options(parser, "attach")
    parser.shorten_help()
    return parser


def _request(options: Namespace) -> dict[str, Any]:
    """Returns the request to the process, after checking everything that can be checked without touching the
    process.
    """
    from vestige import profile

    output = None if options.output is None else os.path.abspath(options.output)
    try:
        wanted = _wanted(options)
        seconds = None if options.seconds is None else parse_time("--for", options.seconds) / 1e9
        options.wait_s = parse_time("--wait", options.wait) / 1e9
        options.limit_s = parse_time("--standstill", options.standstill) / 1e9
        profile(output=output or "t.vst", **wanted)
    except ValueError as error:
        raise Failure(str(error), code=2) from None
    check_absent(options.output, force=options.overwrite)
    if output is not None and options.socket is None and not os.path.isdir(os.path.dirname(output)):
        raise Failure(f"{options.output}: its folder does not exist", code=2)
    plain = _wanted(_parser().parse_args([]))
    return {
        "output": output,
        "folder": os.getcwd(),
        "seconds": seconds,
        "chosen": [name for name, value in wanted.items() if value != plain[name]],
        "options": wanted,
    }


def _wanted(options: Namespace) -> dict[str, Any]:
    """Returns the keywords of the profile, except the file, which the process may have to choose."""
    given = {**recorded(options), "with_stack": True}
    del given["output"]
    return given


def _attach_by_socket(options: Namespace, request: dict[str, Any], interrupts: Interrupts) -> int:
    try:
        connection = connect(options.socket)
    except OSError as error:
        raise Failure(f"{options.socket}: {error.strerror}") from None
    with closing(connection):
        pid, uid = peer(connection)
        if os.geteuid() not in (0, uid) and uid != 0:
            raise Failure(f"{options.socket}: a process of another user listens there")
        held = Held(Talk(connection), None, f"process {pid}" if pid else options.socket, interrupts)
        return _record(options, request, held)


def _attach(options: Namespace, request: dict[str, Any], interrupts: Interrupts) -> int:
    target = Target(options.pid)
    address = os.path.join(folder_of_user(), f"attach-{target.pid}.sock")
    try:
        door = listen_at(address)
    except OSError as error:
        raise Failure(f"attaching needs a socket: {explain(address, error)}") from None
    except InUse:
        raise Failure(
            f"vestige is attached to process {target.pid} already; vestige detach {target.pid} ends that"
        ) from None
    who = f"process {target.pid}"
    still_s = 0.0
    try:
        listening = own_path(target.pid)
        if answers(listening):
            connection = connect(listening)
        else:
            check_version(target)
            limit_s = options.limit_s if options.gdb or not HAS_REMOTE else None
            if limit_s is not None:
                needs()
                _say(f"{who} stands still for up to {limit_s:g} s while gdb starts the recording")
            connection, still_s = enter(target, door, address, options.wait_s, limit_s)
        if still_s:
            _say(f"it stood still for {still_s:.2f} s")
        with closing(connection):
            return _record(options, request, Held(Talk(connection), door, who, interrupts, target.handle))
    finally:
        os.close(target.handle)
        os.unlink(address)
        door.close()


def _record(options: Namespace, request: dict[str, Any], held: Held) -> int:
    held.begin(request)
    for line in held.answer.get("notes", ()):
        _say(str(line).removeprefix("vestige: "))
    name, path, seconds = held.answer.get("name", "?"), held.answer["recording"], request["seconds"]
    end = "Ctrl-C ends it" if seconds is None else f"for {chosen_time(int(seconds * 1e9))}"
    _say(f"recording {held.who} ({name}) into {_shown(path)}; {end}")
    held.wait()
    return _close(options, held)


def _close(options: Namespace, held: Held) -> int:
    """Reports how the recording ended, and shows the report."""
    who, facts, path = held.who, held.facts, str(held.answer["recording"])
    if facts is None:
        _say(f"{who} has ended, or runs another program now")
    elif facts.get("trouble"):
        raise Failure(f"{_shown(path)}: the trace could not be finished: {facts['trouble']}")
    elif facts.get("was_cut"):
        raise Failure(f"{_shown(path)}: somebody else truncated the file, and recording ended there")
    elif facts.get("lost"):
        _say(f"{_shown(path)}: {facts['lost']:,} records could not be kept; is the disk full?")
    if facts is not None and facts.get("hooks"):
        _say(f"{who} still has {facts['hooks']:,} hooks of vestige; please report this")
    complete_copies(path, _say)
    if not os.path.exists(path):
        _say(f"the trace is {path} where the process runs")
        return 0
    recording = over(held, options, _shown)
    if not options.quiet:
        try:
            recording.report(sys.stdout)
        except TraceError as error:
            raise Failure(f"no report: {error}") from None
    if options.view:
        sys.stdout.flush()
        recording._open_viewer()
    return 0


def _shown(path: str) -> str:
    """Returns the path relative to this folder, if that is shorter."""
    folder = os.getcwd()
    return os.path.relpath(path, folder) if os.path.dirname(path) == folder else path


def _say(line: str) -> None:
    print(f"vestige: {line}", file=sys.stderr, flush=True)
