"""The device of events: the CPU, by torch's name of it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class DeviceType:
    """torch's names of devices, for where torch is not loaded."""

    CPU = 0
    CUDA = 1


def device_type() -> Any:
    """The CPU, where all that is recorded ran: torch's own member if torch is loaded."""
    torch = sys.modules.get("torch.autograd")
    return torch.DeviceType.CPU if torch is not None and hasattr(torch, "DeviceType") else DeviceType.CPU
