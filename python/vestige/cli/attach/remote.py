"""The way into Python 3.14 and later: sys.remote_exec. The process does not stand still; its main thread runs the
script between two instructions of the program.
"""

from __future__ import annotations

import sys

from vestige.base.failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .target import Target

DISABLED = "has remote debugging disabled (PYTHON_DISABLE_REMOTE_DEBUG, or -X disable-remote-debug)"


def inject(target: Target, script: str) -> None:
    """Makes the process run a script soon."""
    interpreter: Any = sys
    try:
        interpreter.remote_exec(target.pid, script)
    except PermissionError:
        raise Failure(target.refused()) from None
    except (OSError, RuntimeError) as error:
        if not target.status():
            raise Failure(f"process {target.pid} has ended") from None
        if "not enabled" in str(error):
            raise Failure(
                f"process {target.pid} {DISABLED}; a program that calls vestige.listen() can be recorded"
            ) from None
        raise Failure(f"process {target.pid}: {getattr(error, 'strerror', None) or error}") from None
