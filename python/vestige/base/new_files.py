"""Makes new files and folders. Never writes to a file that somebody else put at the same name, or through a link."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager

from .failure import Failure, explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yields the name of a new, empty file next to `path`. The file becomes `path` when the block ends, and is removed
    if the block raises. It has the mode of any new file. If `path` is a device or a pipe, the caller writes to it
    directly.
    """
    if is_device(path):
        yield path
        return
    temporary = _create_beside(path)
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


@contextmanager
def writing(path: str, mode: str = "w", **how: Any) -> Iterator[Any]:
    """Yields a file, which appears at `path` once it is completely written. Raises Failure if the system refuses."""
    try:
        with replacing(path) as temporary, open(temporary, mode, **how) as file:
            yield file
    except OSError as error:
        raise Failure(explain(path, error)) from None


def is_device(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _create_beside(path: str) -> str:
    while True:
        name = f"{path}.{os.urandom(6).hex()}.tmp"
        try:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        except FileExistsError:
            continue
        return name


def private_folder(path: str) -> None:
    """Makes a folder that only the user may look into. Raises PermissionError if it exists and is not the user's own,
    because somebody else could put links into it.
    """
    try:
        os.mkdir(path, 0o700)
        return
    except FileExistsError:
        pass
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
        raise PermissionError(1, "not a folder that only this user can write to; remove it or choose another", path)
