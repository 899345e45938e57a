"""What belongs to an execution trace beside its file: generated kernels and contents of tensors, in a folder."""

from __future__ import annotations

import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

ID = re.compile(rb'"id": ?(\d+)')
RECORD = re.compile(rb'"name": ?"rf_id", ?"type": ?"uint64", ?"value": ?(\d+)')
DATA = re.compile(r"rf_(\d+)_(tid_\d+\.dat)")


def folder_for(path: str, create: bool) -> str | None:
    """`<stem>_resources` beside a file; None: it is not there, and could not be made."""
    stem = os.path.splitext(path.removesuffix(".gz"))[0]
    folder = f"{stem}_resources"
    if not os.path.isdir(folder):
        if not create:
            return None
        try:
            os.mkdir(folder)
        except OSError as error:
            from warnings import warn

            warn(f"no resources are collected: {folder}: {error.strerror}", stacklevel=4)
            return None
    return folder


def collect_sources(folder: str) -> None:
    """Copies the code that torch's compiler generated, if it did."""
    cache: Any = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    from shutil import copyfile

    for module in list(getattr(cache, "modules", ())):
        path = getattr(module, "__file__", None)
        try:
            if path is not None:
                copyfile(path, os.path.join(folder, os.path.basename(path)))
        except OSError as error:
            from warnings import warn

            warn(f"a generated kernel is not among the resources: {path}: {error.strerror}", stacklevel=4)


def name_data(folder: str, path: str) -> None:
    """Files of tensors are named after the call that got them; now the nodes have their ids."""
    found = {name: match for name in os.listdir(folder) if (match := DATA.fullmatch(name))}
    if not found:
        return
    wanted = {match[1].encode() for match in found.values()}
    nodes: dict[bytes, bytes] = {}
    with _open(path) as file:
        node = b""
        for line in file:
            if match := ID.search(line):
                node = match[1]
            if (match := RECORD.search(line)) and match[1] in wanted:
                nodes[match[1]] = node
    for name, match in found.items():
        node = nodes.get(match[1].encode(), b"")
        if node:
            os.replace(os.path.join(folder, name), os.path.join(folder, f"nid_{node.decode()}_{match[2]}"))
        else:  # of a call that never came to be a node
            os.unlink(os.path.join(folder, name))


def _open(path: str) -> IO[bytes]:
    if path.endswith(".gz"):
        import gzip

        return gzip.open(path)  # type: ignore[return-value]
    return open(path, "rb")
