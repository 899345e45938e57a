"""Sizes and times as people write them: `512M`, `2G`, `200ms`, `1.5s`."""

from __future__ import annotations

SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
TIMES = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def parse_size(text: str) -> int:
    """Bytes: a number and K, M, G or T, in steps of 1024; `B` or `iB` may follow."""
    number, unit = _split(text)
    scale = SIZES.get(unit.upper().removesuffix("B").removesuffix("I"))
    if number is None or scale is None:
        raise ValueError(f"{text!r} is not a size: use a number and K, M, G or T, as in 512M")
    return int(number * scale)


def parse_time(text: str) -> int:
    """Nanoseconds: a number and ns, us, ms, s, m or h."""
    number, unit = _split(text)
    scale = TIMES.get(unit)
    if number is None or scale is None:
        raise ValueError(f"{text!r} is not a time: use a number and ns, us, ms, s, m or h, as in 200ms")
    return int(number * scale)


def _split(text: str) -> tuple[float | None, str]:
    text = text.strip()
    at = len(text)
    while at and not (text[at - 1].isdigit() or text[at - 1] == "."):
        at -= 1
    try:
        number = float(text[:at])
    except ValueError:
        return None, ""
    return (number if 0 < number < 1e15 else None), text[at:].strip()
