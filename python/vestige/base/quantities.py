"""Numbers for people: three digits that matter, with their unit. Not for files, which have plain numbers."""

from __future__ import annotations


def duration(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            value = ns / size
            return f"{value:.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f} {unit}"
    return f"{ns:.0f} ns"


def size(count: float) -> str:
    """A power of 1024 each."""
    for unit, one in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if abs(count) >= one:
            value = count / one
            return f"{value:.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f} {unit}"
    return f"{count:.0f} B"


def plural(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def signed(text: str, value: float) -> str:
    """What was made of a value that is a difference, with its sign."""
    return f"+{text}" if value > 0 else text


def percent(share: float) -> str:
    """Of a difference: +12%, -3.1%; a factor where that says more."""
    if share >= 9:
        return f"{share + 1:.0f}x"
    return f"{share:+.0%}" if abs(share) >= 0.0995 else f"{share:+.1%}"
