"""Values of the program as JSON text, for the arguments of annotations and for metadata. A value without a JSON form
becomes its repr(). Text is cut to a bounded length, and nothing here raises. The json package is not used, because its
import would be recorded in the middle of the traced program.
"""

from __future__ import annotations

from _json import encode_basestring

TEXT_MAX = 1024
ITEMS_MAX = 32
DEPTH_MAX = 3
INT_MAX = 1 << 63


def quote(text: str) -> str:
    """Returns a JSON string. Only mandatory escapes are used, because Perfetto shows other escapes literally."""
    return encode_basestring(text)


def members(values: dict[str, object]) -> str:
    """Returns the members of a JSON object without the braces: `"a": 1, "b": "x"`."""
    return ", ".join([f"{quote(cut(name))}: {_render_safely(value)}" for name, value in values.items()])


def render(value: object, depth: int = 0) -> str:
    """Returns the JSON text of a value. If a container's text would be too long, returns the beginning of that text as
    a string.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(cut(str.__str__(value)))
    if isinstance(value, int) and -INT_MAX <= value < INT_MAX:
        return int.__repr__(value)
    if isinstance(value, float):
        return _number(value)
    if type(value) in (list, tuple, dict) and depth < DEPTH_MAX:
        text = _container(value, depth)
        return text if len(text) <= TEXT_MAX else quote(cut(text))
    return quote(cut(_repr(value)))


def _render_safely(value: object) -> str:
    """Renders a value; another thread may change a container meanwhile."""
    try:
        return render(value)
    except Exception:
        return quote(f"<{type(value).__name__} object>")


def cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"


def _number(value: float) -> str:
    text = float.__repr__(value)
    return quote(text) if text in ("nan", "inf", "-inf") else text


def _container(value: object, depth: int) -> str:
    parts: list[str] = []
    if isinstance(value, dict):
        for key, item in value.items():
            if len(parts) == ITEMS_MAX:
                parts.append(f"{quote('…')}: {len(value) - ITEMS_MAX}")
                break
            name = key if isinstance(key, str) else _repr(key)
            parts.append(f"{quote(cut(name))}: {render(item, depth + 1)}")
        return "{" + ", ".join(parts) + "}"
    assert isinstance(value, (list, tuple))
    parts = [render(item, depth + 1) for item in value[:ITEMS_MAX]]
    if len(value) > ITEMS_MAX:
        parts.append(quote(f"… {len(value) - ITEMS_MAX} more"))
    return "[" + ", ".join(parts) + "]"


def _repr(value: object) -> str:
    """Returns repr(value). That runs the program's code, which may raise or return anything."""
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__} object>"
