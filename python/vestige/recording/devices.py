"""How a recording gets collectors of device activities: the built-in one for CUDA, which uses libcupti, and those in
libraries that the user names.
"""

from __future__ import annotations

import os
import sys

from vestige import _core

from .option_table import read_names
from .options import tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

LIBCUPTI = "VESTIGE_LIBCUPTI"  # environment variable that names the library to use
# where NVIDIA's packages install it
PACKAGED = ("nvidia/cu13/lib/libcupti.so.13", "nvidia/cuda_cupti/lib/libcupti.so.12")
UNPROVEN = (
    "vestige's collector for CUDA has not yet run on a GPU; `vestige device check` compares it with torch.profiler"
)

_loaded: set[str] = set()  # paths of loaded libraries
_told: set[str] = set()  # lines that were shown


def read_devices(given: dict[str, Any]) -> list[str]:
    """Registers the collectors that the user asks for, and puts options into `given` with which child processes
    register them, too. Returns lines about activities that cannot be collected.
    """
    value = given["devices"]
    libraries: tuple[str, ...] = ()
    if not isinstance(value, bool):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            raise TypeError(f"devices must be True, False or a list of paths, not {type(value).__name__}")
        libraries = tuple(map(os.path.abspath, read_names("devices", value)))
    names = sorted(activity.name for activity in given["activities"] or () if activity.name != "CPU")
    if value is True and "CUDA" not in names:
        names.append("CUDA")
    for path in libraries:
        _load(path)
    lines = []
    for name in names:
        trouble = cuda_trouble() if name == "CUDA" else "" if libraries else "vestige has no collector for it"
        if trouble:
            lines.append(f"vestige: no {name} activity is collected: {trouble}")
    given["devices"] = libraries or bool(value) or "CUDA" in names
    return lines


def cuda_trouble() -> str:
    """Registers the collector for CUDA. Returns the reason if that fails, "" otherwise."""
    named = os.environ.get(LIBCUPTI) or None
    found = [os.path.join(folder, path) for path in PACKAGED for folder in sys.path if folder]
    return _core.collect_cuda(named, tuple(os.fsencode(path) for path in found if os.path.exists(path)))


def _load(path: str) -> None:
    if path in _loaded:
        return
    try:
        _core.load_collector(path)
    except OSError as error:
        raise ValueError(f"devices: {path}: {str(error).removeprefix(f'{path}: ')}") from None
    _loaded.add(path)


def tell_once(lines: Iterable[str]) -> None:
    """Shows the user each line that was not shown before in this process."""
    for line in lines:
        if line not in _told:
            _told.add(line)
            tell(line, UserWarning)


def settle() -> None:
    """Waits until devices have finished the launched work, so that it is recorded, as torch.profiler does."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    try:
        if cuda is not None and cuda.is_initialized():
            cuda.synchronize()
    except Exception:  # never raise into the program, which sees the error at its own next call
        pass
