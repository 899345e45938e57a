"""Checks the metadata of a trace once, when it is read, because a trace may come from anywhere and may be damaged.
After the check, each key that vestige knows has the shape that vestige writes, or is missing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

DEPTH_MAX = 64  # the deepest nesting of foreign JSON that is accepted; deeper recursion could fail
INTEGER = 1 << 63


def load_json(text: str) -> Any:
    """Parses JSON that somebody else wrote. Returns the text itself if it is not JSON, or is nested too deeply."""
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if _is_shallow(value) else text


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [one for each in level if isinstance(each, (list, dict)) for one in _members(each)]
        if not level:
            return True
    return False


def _members(value: list[Any] | dict[str, Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


def check_shapes(loaded: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the metadata without values that vestige would not have written. Foreign keys are kept as they are."""
    checked = {}
    for key, value in loaded.items():
        shape = SHAPES.get(key)
        value = value if shape is None else shape(value)
        if value is not None:
            checked[key] = value
    return checked


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _integer(value: Any) -> int | None:
    return value if type(value) is int and abs(value) < INTEGER else None


def _command(value: Any) -> list[str] | str | None:
    """Accepts a list of words, or one text, because some programs write the command as text."""
    return [str(word) for word in value] if isinstance(value, list) else _text(value)


def _members_of(**shapes: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a check for objects: the named members must have these shapes; other members may be anything."""

    def check(value: Any) -> Any:
        if not isinstance(value, dict):
            return None
        kept = {name: shapes[name](one) if name in shapes else one for name, one in value.items()}
        return {name: one for name, one in kept.items() if one is not None or name not in shapes}

    return check


def _counts(value: Any) -> dict[str, int] | None:
    if not isinstance(value, dict):
        return None
    return {name: count for name, count in value.items() if _integer(count) is not None}


def _sources(value: Any) -> dict[int, tuple[int, int]] | None:
    """Returns, by id of function, the time when its file was written, and the file's size."""
    if not isinstance(value, list):
        return None
    rows = [row for row in value if isinstance(row, list) and len(row) == 3 and None not in map(_integer, row)]
    return {number: (modified_ns, size) for number, modified_ns, size in rows}


def _caches(value: Any) -> list[list[Any]] | None:
    """Returns rows of file, line, name, room, and how often a value was found, and not found."""
    if not isinstance(value, list):
        return None
    shape = (_text, _integer, _text, _positive, _integer, _integer)
    rows = [row for row in value if isinstance(row, list) and len(row) == len(shape)]
    return [row for row in rows if None not in [check(one) for check, one in zip(shape, row)]]


def _texts(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    return {name: text for name, text in value.items() if isinstance(text, str)}


def _names(value: Any) -> list[str] | None:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else None


def _positive(value: Any) -> int | None:
    number = _integer(value)
    return number if number and number > 0 else None


def _share(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value <= 1 else None


SHAPES: dict[str, Callable[[Any], Any]] = {
    "distributedInfo": _members_of(rank=_integer, world_size=_integer),
    "host_name": _text,
    "vestige.budget": _share,
    "vestige.caches": _caches,
    "vestige.command": _command,
    "vestige.engine": _text,
    "vestige.exit": _members_of(by=_text, code=_integer),
    "vestige.exceptions": _integer,
    "vestige.fallbacks": _texts,
    "vestige.max_depth": _positive,
    "vestige.memory": _members_of(sample_bytes=_integer),
    "vestige.not_covered": _texts,
    "vestige.only": _names,
    "vestige.parent": _members_of(pid=_integer, tid=_integer, time_ns=_integer, how=_text),
    "vestige.process_name": _text,
    "vestige.processor_waits": _counts,
    "vestige.processors": _positive,
    "vestige.profiler": _text,
    "vestige.python": _text,
    "vestige.raised": _counts,
    "vestige.root": _text,
    "vestige.sources": _sources,
    "vestige.stdlib": _text,
    "vestige.turbo": _counts,
}
