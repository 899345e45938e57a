"""Options of a project, from the table [tool.vestige] of the nearest pyproject.toml. They become words on `vestige
run`'s command line, before the user's words. This module runs inside the program's process, so it loads a TOML parser
only if there is such a table, and unloads the parser again.
"""

from __future__ import annotations

import os
import sys

from vestige.base.failure import Failure
from vestige.recording.option_table import NAMES, WAITS, Option
from vestige.recording.option_table import OPTIONS as OPTIONS_OF_RECORDING

from .recording_options import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FILE = "pyproject.toml"
TABLE = b"[tool.vestige]"
BYTES_MAX = 1 << 20
# Keys, by the flags of `vestige run`, without options for a single run, such as its file, and options that load code.
OPTIONS = {
    option.flag[2:]: option
    for option in OPTIONS_OF_RECORDING
    if "run" in option.commands and "once" not in option.traits and "code" not in option.traits
}


def project_options() -> list[str]:
    """Returns the words; none if no project has options."""
    path = _find()
    text = _read(path) if path else b""
    if TABLE not in text:
        return []
    table = _load(path, text)
    found: list[str] = []
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in OPTIONS:
            from difflib import get_close_matches

            near = "".join(f", did you mean {one}?" for one in get_close_matches(name, OPTIONS, n=1, cutoff=0.7))
            raise Failure(f"{path}: [tool.vestige]: unknown option {key!r}{near}", code=2)
        _check(path, key, OPTIONS[name], value)
        found += words(OPTIONS[name], value)
    return found


def _find() -> str:
    """Returns the nearest pyproject.toml, in this folder or one around it; "" if there is none that we may trust."""
    try:
        folder = os.getcwd()
    except OSError:
        return ""
    while True:
        path = os.path.join(folder, FILE)
        try:
            status = os.stat(path)
        except OSError:
            above = os.path.dirname(folder)
            if above == folder:
                return ""
            folder = above
            continue
        return path if status.st_uid in (0, os.geteuid()) and status.st_size <= BYTES_MAX else ""


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(BYTES_MAX)
    except OSError:
        return b""


def _load(path: str, text: bytes) -> dict[str, Any]:
    loaded = set(sys.modules)
    try:
        import tomllib

        document = tomllib.loads(text.decode())
    except ValueError as error:  # the file is not TOML, or not UTF-8
        raise Failure(f"{path}: {error}", code=2) from None
    finally:
        for name in set(sys.modules) - loaded:
            if name.partition(".")[0] == "tomllib":
                del sys.modules[name]
    table = document["tool"]["vestige"] if isinstance(document.get("tool"), dict) else {}
    return table if isinstance(table, dict) else {}


def _check(path: str, key: str, option: Option, value: Any) -> None:
    if option.metavar is None:
        if not isinstance(value, bool):
            raise Failure(f"{path}: [tool.vestige]: {key} is true or false, not {value!r}", code=2)
        return
    takes_list = option.kind in (NAMES, WAITS)
    values = value if isinstance(value, list) and takes_list else [value]
    if not all(type(one) in (str, int) for one in values):
        what = "a text, or a list of texts" if takes_list else "a text or a number"
        raise Failure(f"{path}: [tool.vestige]: {key} is {what}, not {value!r}", code=2)
