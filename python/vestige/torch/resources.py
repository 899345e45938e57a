"""The folder that belongs to an execution trace's file: generated kernels and contents of tensors."""

from __future__ import annotations

import os
import re
import sys

from vestige.base.new_files import private_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DATA = re.compile(r"rf_(\d+)_(tid_\d+\.dat)")


def folder_for(path: str, create: bool) -> str | None:
    """Returns the folder `<stem>_resources` next to a file; None if it does not exist or could not be made."""
    stem = os.path.splitext(path.removesuffix(".gz"))[0]
    folder = f"{stem}_resources"
    if not create and not os.path.isdir(folder):
        return None
    try:
        private_folder(folder)
    except OSError as error:
        from warnings import warn

        warn(f"resources are not collected: {folder}: {error.strerror}", stacklevel=4)
        return None
    return folder


def collect_sources(folder: str) -> None:
    """Copies the code that torch's compiler generated, if there is any."""
    cache: Any = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    from shutil import copyfile

    for module in list(getattr(cache, "modules", ())):
        path = getattr(module, "__file__", None)
        try:
            if path is not None:
                copyfile(path, os.path.join(folder, os.path.basename(path)))
        except OSError as error:
            from warnings import warn

            warn(f"a generated kernel was not copied to the resources: {path}: {error.strerror}", stacklevel=4)


def name_data(folder: str, ids: Callable[[], dict[int, int]]) -> None:
    """Renames the files of tensors, from the number of the operator's call to the id of its node. `ids` has the ids by
    number.
    """
    found = [match for name in os.listdir(folder) if (match := DATA.fullmatch(name))]
    nodes = ids() if found else {}
    for match in found:
        path, node = os.path.join(folder, match[0]), nodes.get(int(match[1]))
        if node is None:  # the call has no node
            os.unlink(path)
        else:
            os.replace(path, os.path.join(folder, f"nid_{node}_{match[2]}"))
