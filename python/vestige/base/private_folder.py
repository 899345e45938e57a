"""Folders that nobody else can put anything into, for native code that this process will load. A path is safe if only
this user and root could have changed what it leads to: each folder and each link on the way belongs to one of the two,
and others cannot write there, or only as in /tmp, where they cannot touch other people's files. The last folder
belongs to this user, and others cannot even look into it.
"""

from __future__ import annotations

import os
import stat

LINKS_MAX = 40  # the kernel's own limit


class Refused(Exception):
    """The message says which folder is not safe, and why."""


def check(path: str) -> None:
    """Raises Refused unless nobody else could have changed what is at this absolute path."""
    trusted = {0, os.geteuid(), os.lstat("/").st_uid}  # in a sandbox, root may appear as nobody
    names, at, links = _names(path), "/", 0
    while True:
        facts = os.lstat(at)
        if facts.st_uid not in trusted:
            raise Refused(f"{at} belongs to another user")
        if stat.S_ISLNK(facts.st_mode):
            links += 1
            if links > LINKS_MAX:
                raise Refused(f"{path} leads through too many links")
            target = os.readlink(at)
            names = [*_names(target), *names]
            at = "/" if target.startswith("/") else os.path.dirname(at)
            continue
        if stat.S_ISDIR(facts.st_mode) and not facts.st_mode & stat.S_ISVTX:
            _check_mode(at, facts)
        if not names:
            return
        name = names.pop(0)
        at = os.path.dirname(at) if name == ".." else os.path.join(at, name)


def make(path: str) -> None:
    """Makes the folder, and missing ones on the way, for this user alone. Raises Refused if the result is not safe,
    OSError if it cannot be made."""
    missing = []
    at = path
    while not os.path.lexists(at):
        missing.append(at)
        at = os.path.dirname(at)
    check(at)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:  # another process made it first
            pass
    check(path)
    facts = os.lstat(path)
    if not stat.S_ISDIR(facts.st_mode):
        raise Refused(f"{path} is not a folder")
    if facts.st_uid == os.geteuid() and facts.st_mode & 0o077:
        os.chmod(path, 0o700)


def is_own_file(path: str) -> bool:
    """Returns whether this is an ordinary file that this user or root owns and others cannot write."""
    facts = os.lstat(path)
    return stat.S_ISREG(facts.st_mode) and facts.st_uid in (0, os.geteuid()) and not facts.st_mode & 0o022


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _check_mode(path: str, facts: os.stat_result) -> None:
    if facts.st_mode & 0o002 or (facts.st_mode & 0o020 and not _is_own_group(facts.st_gid)):
        raise Refused(f"other users can write to {path}")


def _is_own_group(group: int) -> bool:
    """Many systems give each user a group of the same name with permission to write; nobody else is in it."""
    import grp
    import pwd

    if group == 0:
        return True
    try:
        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return group == user.pw_gid and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}
