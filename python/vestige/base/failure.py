"""The exception for a problem that the command reports in one line, without a traceback."""

from __future__ import annotations


class Failure(Exception):
    """A line for the user, and the exit code of the command: 1 for a file that cannot be used, 2 for wrong usage."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def explain(path: str, error: Exception) -> str:
    """Returns a line with the file and the problem: `t.vst: No such file or directory`."""
    if isinstance(error, OSError) and error.strerror:
        return f"{path}: {error.strerror}"
    return str(error) if path in str(error) else f"{path}: {error}"
