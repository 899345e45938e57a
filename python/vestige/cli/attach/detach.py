"""`vestige detach`: ends a recording that `vestige attach` started, from another terminal."""

from __future__ import annotations

import os
from contextlib import closing

from vestige.base.failure import Failure
from vestige.base.private_folder import Refused
from vestige.cli.console import Parser
from vestige.recording.sockets import connect, folder_of_user, own_path

from .talk import Talk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXAMPLES = """\
  vestige detach 1234
  vestige detach --socket /run/app/vestige.sock

The report appears in the terminal that attached.
"""


def main(argv: list[str]) -> int:
    parser = Parser("detach", "End a recording that vestige attach started.", "PID | --socket PATH", EXAMPLES)
    parser.add_argument("pid", metavar="PID", type=int, nargs="?", help="number of the recorded process")
    parser.add_argument("--socket", metavar="PATH", help="reach the process that listens at PATH")
    options = parser.parse_args(argv)
    if (options.pid is None) == (options.socket is None):
        raise Failure("give the PID of a process, or --socket PATH", code=2)
    with closing(_reach(options.pid, options.socket)) as connection:
        facts = _ask(Talk(connection))
    if "error" in facts:
        raise Failure(str(facts["error"]))
    print(f"the recording has ended: {facts.get('stopped')}")
    return 0


def _reach(pid: int | None, socket: str | None) -> Any:
    """Returns a connection to whoever can end the recording: the command that attached, or the process that listens."""
    try:
        paths = [socket] if pid is None else [os.path.join(folder_of_user(), f"attach-{pid}.sock"), own_path(pid)]
    except Refused as error:
        raise Failure(str(error)) from None
    for path in paths:
        assert path is not None
        try:
            return connect(path)
        except OSError as error:
            reason = error.strerror
    raise Failure(f"{socket}: {reason}" if pid is None else f"vestige is not attached to process {pid}")


def _ask(talk: Talk) -> dict[str, Any]:
    talk.send({"do": "stop"})
    while talk.open:
        for message in talk.receive():
            return message
    return {"error": "the recording had already ended"}
