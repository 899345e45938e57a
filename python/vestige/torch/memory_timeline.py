"""Memory in use over time, in the forms of torch.profiler's export_memory_timeline: numbers by category as JSON, single
events, and a page with a plot. The exporter "memory-timeline" does the work.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from vestige import _core

SUFFIXES = (".html", ".json", ".json.gz")  # a file named *.raw.json.gz has single events


def write_timeline(path: str, trace: _core.Trace, selection: dict[str, Any], device: str | None) -> None:
    if device is not None and str(device) != "cpu":
        raise ValueError(f'device {str(device)!r}: only the memory of "cpu" is recorded')
    if not path.endswith(SUFFIXES):
        endings = ", ".join(SUFFIXES)
        raise ValueError(f"{path}: unknown format; give the file a name that ends in {endings} or .raw.json.gz")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a directory; give the name of a file")
    trace.export(path, format="memory-timeline", **selection)
