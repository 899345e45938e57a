"""Unix sockets that only this user can reach, by the module _socket: the package around it would load a dozen others
into the program.

A socket has mode 0600 and lies in a folder that nobody else can enter; none has an abstract name, which anybody could
connect to. On each connection the kernel says who is at the other end.
"""

from __future__ import annotations

import os
import stat
import sys
from _socket import AF_UNIX, SO_PEERCRED, SOCK_STREAM, SOL_SOCKET, socket

from vestige.base import private_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PATH_MAX = 107  # bytes of a socket's address
WAITING_MAX = 4  # connections that nobody has accepted yet
CREDENTIALS_SIZE = 12  # three ints: pid, uid, gid


class InUse(Exception):
    """Another process listens at this path already."""


def folder_of_user() -> str:
    """Returns the folder for sockets and scripts that other processes of this user must find, so it does not depend on
    their environment. Makes it if needed; raises Refused if somebody else could have put things there.
    """
    path = f"/tmp/vestige-{os.geteuid()}"  # noqa: S108 (make() checks whose it is)
    try:
        private_folder.make(path)
    except OSError as error:  # "Read-only file system" alone says nothing
        raise private_folder.Refused(f"{path}, which attaching needs, cannot be made: {error.strerror}") from None
    return path


def own_path(pid: int) -> str:
    """Returns the default path of the socket at which a process listens."""
    return os.path.join(folder_of_user(), f"{pid}.sock")


def listen_at(path: str) -> Any:
    """Returns a socket that listens at this path. Removes a socket that an ended process left there."""
    if len(os.fsencode(path)) > PATH_MAX:
        raise ValueError(f"{path}: too long for a socket: at most {PATH_MAX} bytes")
    _check_folder(os.path.dirname(path))
    _remove_left(path)
    door = socket(AF_UNIX, SOCK_STREAM)
    try:
        door.bind(path)
        os.chmod(path, 0o600)
        door.listen(WAITING_MAX)
    except BaseException:
        door.close()
        raise
    return door


def _check_folder(folder: str) -> None:
    if not os.path.lexists(folder):
        private_folder.make(folder)
    private_folder.check(folder)
    facts = os.stat(folder)
    if facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise private_folder.Refused(f"{folder}: others can enter this folder; use one with mode 700")


def _remove_left(path: str) -> None:
    """Removes the socket of a process that has ended."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(facts.st_mode):
        raise FileExistsError(17, "something else than a socket is there", path)
    if answers(path):
        raise InUse(f"{path}: another process listens there")
    os.unlink(path)


def answers(path: str) -> bool:
    """Returns whether a process listens there."""
    probe = socket(AF_UNIX, SOCK_STREAM)
    try:
        probe.setblocking(False)
        probe.connect(path)
    except BlockingIOError:  # a process listens, and other connections wait
        return True
    except OSError:
        return False
    finally:
        probe.close()
    return True


def connect(path: str) -> Any:
    """Connects to a socket of this user."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def adopt(descriptor: int) -> Any:
    """Returns the socket of a descriptor, such as an accepted one."""
    return socket(fileno=descriptor)


def peer(connection: Any) -> tuple[int, int]:
    """Returns the process at the other end (0 if its number is not known here), and its user."""
    facts = connection.getsockopt(SOL_SOCKET, SO_PEERCRED, CREDENTIALS_SIZE)
    return int.from_bytes(facts[:4], sys.byteorder), int.from_bytes(facts[4:8], sys.byteorder)


def is_trusted(connection: Any) -> bool:
    return peer(connection)[1] in (0, os.geteuid())
