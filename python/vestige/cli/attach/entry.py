"""Enters a running process: makes its Python run startup/attached.py, which connects to a socket of this command. The
script is the installed file, so no file is written for an attachment, and none is left behind, however this command
ends. Anything that differs between attachments is sent through the socket.
"""

from __future__ import annotations

import os
import re
import select
import sys
import time

from vestige import __version__
from vestige.base.failure import Failure
from vestige.recording.children import ABI, STARTUP
from vestige.recording.sockets import adopt, peer

from . import gdb, remote
from .entry_block import SCRIPT
from .target import OLDEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .target import Target

HAS_REMOTE = sys.version_info >= (3, 14)
PACKAGES = os.path.dirname(os.path.dirname(STARTUP))
OURS = re.compile(r"(?:attach-)?(\d+)\.")  # files that belong to a process
LOOK_EVERY_S = 0.1


def check_version(target: Target) -> None:
    """Raises Failure unless this installation's package can be loaded into the process."""
    found = target.version()
    if found is None:
        raise Failure(f"process {target.pid} is a Python before {OLDEST}, which vestige does not support")
    if found != sys.version_info[:2]:
        there, here = (f"{major}.{minor}" for major, minor in (found, sys.version_info[:2]))
        raise Failure(f"process {target.pid} is Python {there}, this vestige is for {here}: use the vestige of {there}")


def enter(target: Target, door: Any, address: str, patience_s: float, limit_s: float | None) -> tuple[Any, float]:
    """Returns a connection to the process, and for how long the process stood still. Uses gdb if `limit_s` limits that
    time.
    """
    _sweep(os.path.dirname(address))
    why = address.removesuffix("sock") + "why"  # the script writes the reason of a failure here
    _remove(why)
    still_s, any_thread = 0.0, False
    try:
        if limit_s is None:
            remote.inject(target, SCRIPT)
        else:
            still_s, any_thread = gdb.inject(target, limit_s)
        connection = _accept(target, door, why, patience_s, any_thread=any_thread)
    finally:
        _remove(why)
    facts = f"{PACKAGES}\0{ABI}\0{__version__}".encode("utf-8", "surrogateescape")
    connection.sendall(b"%08d" % len(facts) + facts)
    return connection, still_s


def _accept(target: Target, door: Any, why: str, patience_s: float, *, any_thread: bool) -> Any:
    """Waits for the connection, which the script opens as soon as it runs."""
    waits = select.poll()
    waits.register(door.fileno(), select.POLLIN)
    waits.register(target.handle, select.POLLIN)
    until = time.monotonic() + patience_s
    while True:
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise Failure(_silent(target, patience_s, any_thread=any_thread))
        ready = [descriptor for descriptor, _ in waits.poll(min(left_s, LOOK_EVERY_S) * 1000)]
        if door.fileno() in ready:
            connection = adopt(door._accept()[0])
            if peer(connection) == (target.pid, os.geteuid()):
                return connection
            connection.close()  # somebody wants to detach, but there is no recording yet
        elif target.handle in ready:
            raise Failure(f"process {target.pid} has ended")
        elif os.path.islink(why):
            raise Failure(f"process {target.pid}: {os.readlink(why)}")


def _silent(target: Target, patience_s: float, *, any_thread: bool) -> str:
    """Returns why the script did not run."""
    if trouble := target.trouble(target.status()):
        return trouble
    whose = "" if any_thread else " in its main thread"
    where = target.waits_in()
    doing = f"it waits in the system ({where})" if where else "it runs code that is not Python's"
    more = ", --gdb has any thread do it" if HAS_REMOTE and not any_thread and target.takes_any_thread() else ""
    return (
        f"process {target.pid} ran no Python code{whose} for {patience_s:g} s: {doing}; nothing was started there. "
        f"--wait waits longer{more}, vestige.listen() needs no such moment"
    )


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _sweep(folder: str) -> None:
    """Removes files that belonged to processes that have ended."""
    for name in os.listdir(folder):
        found = OURS.match(name)
        if found and not os.path.exists(f"/proc/{found[1]}"):
            _remove(os.path.join(folder, name))
