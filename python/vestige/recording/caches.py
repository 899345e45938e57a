"""Notes functions whose lru_cache had no room for all values: how often a value was found, and how often not.

The interpreter counts both, so no hook is needed. The functions are looked for when a recording ends, in the modules of
the program and in their classes, but not in the standard library and in packages.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from os.path import dirname
from types import CodeType, FunctionType, ModuleType

from vestige.base.library_files import library_of
from vestige.render import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

METADATA = "vestige.caches"
FULL = 2  # a cache is noted if this many times its room of values were not found

_kind: Any = type(lru_cache(lambda: None))
_members_of_type = type.__dict__["__dict__"].__get__


def note_caches(profile: Any) -> None:
    """Writes a list into the metadata: file, line, name, room, found, not found."""
    rows = [
        f"[{quote(code.co_filename)}, {code.co_firstlineno}, {quote(code.co_qualname)}, {room}, {hits}, {misses}]"
        for code, room, hits, misses in _full_caches()
    ]
    if rows:
        profile._session.set_metadata(METADATA, "[" + ", ".join(rows) + "]")


def _full_caches() -> Iterator[tuple[CodeType, int, int, int]]:
    seen: set[int] = set()
    value: Any
    for value in _values(dirname(sys.modules["os"].__file__ or "")):
        if type(value) in (staticmethod, classmethod):
            value = value.__func__
        if type(value) is not _kind or id(value) in seen:
            continue
        seen.add(id(value))
        hits, misses, room, size = value.cache_info()
        function = getattr(value, "__wrapped__", None)
        if room and size >= room and misses >= FULL * room and type(function) is FunctionType:
            yield function.__code__, room, hits, misses


def _values(stdlib: str) -> Iterator[object]:
    """Yields the members of the program's modules and of their classes. Runs no code of the program."""
    for module in list(sys.modules.values()):
        if type(module) is not ModuleType:
            continue
        members = dict(vars(module))
        file = members.get("__file__")
        if type(file) is not str or library_of(file, stdlib):
            continue
        for value in members.values():
            yield value
            if issubclass(type(value), type) and members.get("__name__") == _members_of_type(value).get("__module__"):
                yield from list(_members_of_type(value).values())
