"""Sizes, times and counts: read as people write them ("256M", "30s"), and written for people ("1.50 MiB", "2.35 ms").

Sizes use IEC units (a KiB is 1024 bytes), and people see three significant digits. Files for programs hold plain
numbers instead. Only torch's own tables (torch/table.py) differ, because they must read as torch prints them.

Runs inside the traced program's process before it is recorded, so it imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import NoReturn

# ---- as people write them ------------------------------------------------------

SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "": 10**9, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
LARGEST = 1 << 62
SMALLEST_FILE = 1 << 20  # the lowest limit that a recording accepts
SHARE_MIN = 0.001


def parse_size(name: str, value: str | int) -> int:
    """Returns bytes from a number or a text such as "256M", "1.5GiB". K, M, G and T are powers of 1024."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise TypeError(f"{name} must be a str such as '256M' or a number of bytes, not {type(value).__name__}")
    if isinstance(value, str):
        number, unit = split_unit(value)
        unit = unit.upper()
        if unit != "B":
            unit = unit.removesuffix("B").removesuffix("I") if len(unit) > 1 else unit
        size = _scaled(number, SIZES.get("" if unit == "B" else unit))
        if size is None:
            raise ValueError(f"{name}: not a size: {value!r}; write a number and K, M or G, such as 256M")
    else:
        size = value
    if not 0 < size < LARGEST:
        _refuse(name, value, size)
    return size


def parse_file_bound(name: str, value: str | int) -> int:
    """Returns a size to which a trace file can be bounded."""
    size = parse_size(name, value)
    if size < SMALLEST_FILE:
        raise ValueError(f"{name} must be at least 1M, not {value!r}")
    return size


def parse_time(name: str, value: str | float | timedelta) -> int:
    """Returns nanoseconds from a number of seconds, a timedelta, or a text such as "30s", "500ms", "2m"."""
    if isinstance(value, str):
        number, unit = split_unit(value)
        time = _scaled(number, TIMES.get(unit.lower()))
        if time is None:
            raise ValueError(f"{name}: not a time: {value!r}; write a number and us, ms, s, m or h, such as 30s")
    elif hasattr(value, "total_seconds"):
        time = round(value.total_seconds() * 10**9)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if not abs(value) < LARGEST / 10**9:  # NaN fails too
            raise ValueError(f"{name}: not a time: {value!r}")
        time = round(value * 10**9)
    else:
        raise TypeError(
            f"{name} must be a str such as '30s', a number of seconds or a timedelta, not {type(value).__name__}"
        )
    if not 0 < time < LARGEST:
        _refuse(name, value, time)
    return time


def parse_share(name: str, value: str | float) -> float:
    """Returns a share of the CPU time, given as "5%" or 0.05."""
    share = value
    if isinstance(value, str):
        number, unit = split_unit(value)
        try:
            share = float(number) / {"%": 100, "": 1}[unit]
        except (ValueError, KeyError):
            raise ValueError(f"{name}: not a share: {value!r}; write a percentage, such as 5%") from None
    if not isinstance(share, (int, float)) or isinstance(share, bool):
        raise TypeError(f"{name} must be a number or a str, not {type(value).__name__}")
    if 1 < share <= 100 and "%" not in str(value):
        raise ValueError(f"{name}: {share:g} is more than all of the CPU time; {share:g} % is written {share:g}%")
    if not SHARE_MIN <= share <= 1:
        raise ValueError(f"{name} must be from {SHARE_MIN:.1%} to 100% of the CPU time, not {share:.4%}")
    return share


def _refuse(name: str, value: object, number: int) -> NoReturn:
    raise ValueError(f"{name} must be more than 0, not {value!r}" if number <= 0 else f"{name}: {value!r} is too large")


def split_unit(text: str) -> tuple[str, str]:
    """Splits a text into its number and the unit that follows."""
    text = text.strip()
    at = 0
    while at < len(text) and text[at] in "0123456789.+-":
        at += 1
    return text[:at], text[at:].strip()


def _scaled(number: str, unit: int | None) -> int | None:
    if unit is None or not number:
        return None
    try:
        return int(number) * unit
    except ValueError:
        pass
    try:
        return round(float(number) * unit)
    except ValueError:
        return None


# ---- for people ----------------------------------------------------------------

SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
TIME_UNITS = (("s", 1e9), ("ms", 1e6), ("us", 1e3))


def size(count: float) -> str:
    """Returns `1.50 MiB`; below 1000 bytes `512 B`. Never puts four digits before the point."""
    if abs(count) < 1000:
        return f"{count:.0f} B"
    at = 0
    while abs(count) >= 999.5 and at < len(SIZE_UNITS) - 1:
        count /= 1024
        at += 1
    return f"{_three_digits(count)} {SIZE_UNITS[at]}"


def power_size(count: int) -> str:
    """Returns a power of two: `512 KiB`."""
    unit = 0
    while count >= 1024:
        count //= 1024
        unit += 1
    return f"{count} {SIZE_UNITS[unit]}"


def duration(ns: float) -> str:
    """Returns `2.35 ms`; below a microsecond `350 ns`."""
    for unit, one in TIME_UNITS:
        if abs(ns) >= one:
            return f"{_three_digits(ns / one)} {unit}"
    return f"{ns:.0f} ns"


def chosen_time(ns: int) -> str:
    """Returns a time that somebody chose, as people write it: `10 us`, not `10.0 us`."""
    for unit, one in TIME_UNITS:
        if ns >= one:
            return f"{ns / one:.6g} {unit}"
    return f"{ns} ns"


def _three_digits(value: float) -> str:
    return f"{value:.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"


def plural(count: int, one: str, more: str = "") -> str:
    """Returns `1 call`, `2,000 calls`."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def signed(text: str, value: float) -> str:
    """Returns the text of a difference, with its sign."""
    return f"+{text}" if value > 0 else text


def percent(share: float) -> str:
    """Returns a relative difference: +12%, -3.1%; from tenfold on, the factor: 12x."""
    if share >= 9:
        return f"{share + 1:.0f}x"
    return f"{share:+.0%}" if abs(share) >= 0.0995 else f"{share:+.1%}"
