"""What a recording notes of the source files of its functions when it ends: when each was written, and its size.

A page that is made to be sent carries lines of these files alone, and only while they are as they were: a trace that
somebody else made may name any file of the reader's, but does not know this of it. A program that was killed has noted
nothing.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from vestige._core import Session

KEY = "vestige.sources"
FILES_MAX = 10_000


def note_sources(session: Session) -> None:
    """[[id of one of its functions, mtime in ns, size], …]: files are named by definitions already. Nothing is read,
    and whatever goes wrong, the recording is whole without it."""
    try:
        noted = []
        for name, number in session.source_files().items():
            try:
                found = os.stat(name)
            except (OSError, ValueError):  # "<string>", or one that is gone
                continue
            if stat.S_ISREG(found.st_mode):
                noted.append(f"[{number},{found.st_mtime_ns},{found.st_size}]")
        session.set_metadata(KEY, f"[{','.join(noted[:FILES_MAX])}]")
    except Exception:
        pass
