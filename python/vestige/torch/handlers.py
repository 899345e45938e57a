"""Functions for on_trace_ready, which write each cycle of a profile to a file."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from vestige.profiler import profile


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[profile], None]:
    """Writes traces into a folder where TensorBoard finds them: <worker>.<time>.pt.trace.json[.gz].

    worker_name is <host>_<pid> unless given. use_python_export is torch's and changes nothing.
    """

    def handle(prof: profile) -> None:
        from time import time_ns

        if not os.path.isdir(dir_name):
            try:
                os.makedirs(dir_name, exist_ok=True)
            except OSError as error:
                raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{os.uname().nodename}_{os.getpid()}"
        suffix = ".gz" if use_gzip else ""
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time_ns()}.pt.trace.json{suffix}"))

    return handle
