"""The devices of events, by torch's names."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CUDA = "cuda"


class DeviceType:
    """torch's names of devices, for processes without torch."""

    CPU = 0
    CUDA = 1
    PrivateUse1 = 20


def device_type(name: str = "CPU") -> Any:
    """Returns the type of device; by default CPU, for events of threads. Returns torch's own member if torch is
    loaded.
    """
    torch = sys.modules.get("torch.autograd")
    return getattr(torch.DeviceType if torch is not None and hasattr(torch, "DeviceType") else DeviceType, name)


def type_of(platform: str) -> Any:
    """Returns CUDA for CUDA's devices, and PrivateUse1 for other platforms, because torch has no names for those."""
    return device_type("CUDA" if platform == CUDA else "PrivateUse1")


def name_of(platform: str) -> str:
    """Returns the device name in titles of table columns."""
    if platform == CUDA:
        return platform
    torch = sys.modules.get("torch")
    known = getattr(getattr(torch, "_C", None), "_get_privateuse1_backend_name", None)
    return str(known()) if known is not None else "privateuseone"


def is_on_cpu(event: Any) -> bool:
    return int(event.device_type) == DeviceType.CPU
