"""Tells the user where the records are if a recording is copied to a slow disk."""

from __future__ import annotations

import os

from vestige.render import quote

from .metadata import METADATA_STORAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WAIT_S = 0.5  # how long the end of a recording waits for the copy


def tell_begin(prof: Any) -> None:
    """Notes in the trace that it is copied, and says so."""
    storage = prof._session.storage()
    if storage is None:
        return
    local, disk = storage["local"] or "memory", storage["file_system"]
    prof._session.set_metadata(METADATA_STORAGE, f'{{"local": {quote(local)}, "file_system": {quote(disk)}}}')
    if prof._is_child:
        return
    if storage["copier_errno"]:
        how = f"no process can be started that copies it ({os.strerror(storage['copier_errno'])}); the next command of "
        prof._tell_storage(f"recorded into {local}: {how}vestige that reads it copies it")
    else:
        prof._tell_storage(f"recorded into {local} and copied" + (f", because it is on {disk}" if disk else ""))


def tell_end(prof: Any) -> None:
    """Waits for the copy, but not for a disk that stalls, and says where the records are that it lacks."""
    storage = prof._session.storage()
    if storage is None or prof._session.wait_storage(WAIT_S):
        return
    storage = prof._session.storage()
    error = os.strerror(storage["errno"]) if storage["errno"] else "the disk is slow"
    if storage["copier_errno"]:
        error = f"no process copies it: {os.strerror(storage['copier_errno'])}"
    local = storage["local"] or "memory"
    prof._tell_storage(f"not complete yet ({error}); until vestige has copied the rest, it is in {local}")
