"""Processes that proofs start: each in a new session, of which no process is left at the end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def started(
    command: list[str], place: Path, variables: dict[str, str], out: IO[bytes], err: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a command in a folder. When the block ends, all processes that the command started are killed."""
    process = subprocess.Popen(
        command, cwd=place, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
    )
    try:
        yield process
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def ending(code: int) -> str:
    """Returns how a process ended, from its exit code."""
    return f"exit {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def text_of(file: IO[bytes]) -> str:
    """Returns the whole output."""
    file.seek(0)
    return file.read().decode(errors="replace")
