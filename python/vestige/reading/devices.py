"""Names of devices and the accuracy of their clocks, as text for people."""

from __future__ import annotations

from vestige.base.printable import one_line
from vestige.base.quantities import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def label(device: dict[str, Any]) -> str:
    """Returns `cuda 0: NVIDIA H100`, in one line."""
    return one_line(f"{device['platform']} {device['ordinal']}: {device['name']}")


def clock(device: dict[str, Any]) -> str:
    """Returns how far off the device's times may be; "" if the device uses the recorder's clock."""
    if not device["has_clock"]:
        return ""
    if device["error_ns"] < 0:
        return "its clock was never compared with ours"
    return f"its times are right to {duration(device['error_ns'])}"
