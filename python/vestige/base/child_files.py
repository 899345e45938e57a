"""The files of child processes: `t.123.vst` and `t.123.1.vst` are recordings of process 123, next to `t.vst`. Imports
only modules that a recorded program has loaded already, because a forked child makes its name here.
"""

from __future__ import annotations

import os

from vestige import _core
from vestige.render import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES_MAX = 10_000  # names that one process tries at most


def child_path(root: str) -> str:
    """Returns the file of the first recording that this process, a child, makes next to its parent's."""
    return f"{_stem(root)}.{os.getpid()}.vst"


def child_paths(root: str) -> Iterator[str]:
    """Yields the names that this process may use, in order; it may have made recordings before."""
    yield child_path(root)
    stem = f"{_stem(root)}.{os.getpid()}"
    for number in range(1, NAMES_MAX):
        yield f"{stem}.{number}.vst"


def _stem(root: str) -> str:
    return root.removesuffix(".vst")


def named_as_children(root: str) -> list[str]:
    """Returns files whose names say that they are children of this file."""
    folder, name = os.path.split(_stem(root))
    found: list[str] = []
    try:
        entries = os.listdir(folder or ".")
    except OSError:
        return found
    for entry in entries:
        words = entry[len(name) :].split(".")
        if not entry.startswith(name) or words[0] or words[-1] != "vst" or not 3 <= len(words) <= 4:
            continue
        if all(word.isdigit() for word in words[1:-1]):
            found.append(os.path.join(folder, entry))
    return sorted(found)


def find_children(root: str, trace: str) -> list[str]:
    """Returns the files of a recording's children, found by the name of its file and by its id."""
    return [path for path in named_as_children(root) if _root_of(path) == quote(trace)]


def _root_of(path: str) -> str | None:
    try:
        return _core.Trace(path).metadata().get("vestige.root")
    except (OSError, _core.TraceError):
        return None


def remove_children(root: str) -> None:
    """Removes the files of the children of a recording that is about to be overwritten."""
    try:
        trace = _core.Trace(root).info()["trace_id"]
        for path in find_children(root, trace):
            os.unlink(path)
    except (OSError, _core.TraceError):
        pass
