"""Options of a project: the table [tool.vestige] of the nearest pyproject.toml, as words of `vestige run`'s own command
line, which come before what the user writes. It runs inside the program's process, so it loads a parser of TOML only
where there is such a table, and unloads it again.
"""

from __future__ import annotations

import os
import sys

from vestige.base.failure import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .console import Parser

FILE = "pyproject.toml"
TABLE = b"[tool.vestige]"
BYTES_MAX = 1 << 20
# Not those that are about one run, as its file.
OPTIONS = (
    *("quiet", "view", "no-c", "no-gc", "include", "exclude", "record-args", "only", "max-depth", "max-size", "last"),
    *(
        "min-duration",
        "sched",
        "compensate",
        "budget",
        "exceptions",
        "no-children",
        "snapshot-signal",
        "trigger",
        "max-snapshots",
        "engine",
    ),
)


def project_options(parser: Parser) -> list[str]:
    """Empty where no project has any."""
    path = _find()
    text = _read(path) if path else b""
    if TABLE not in text:
        return []
    table = _load(path, text)
    words: list[str] = []
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in OPTIONS:
            from difflib import get_close_matches

            near = "".join(f", did you mean {one}?" for one in get_close_matches(name, OPTIONS, n=1, cutoff=0.7))
            raise Failure(f"{path}: [tool.vestige]: unknown option {key!r}{near}", code=2)
        words += _words(path, key, f"--{name}", value, takes_value=f"--{name}" in parser.options_with_value())
    return words


def _find() -> str:
    """The nearest, in this folder or one around it; "" if there is none that is ours to trust."""
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
    except ValueError as error:  # not TOML, not UTF-8
        raise Failure(f"{path}: {error}", code=2) from None
    finally:
        for name in set(sys.modules) - loaded:
            if name.partition(".")[0] == "tomllib":
                del sys.modules[name]
    table = document["tool"]["vestige"] if isinstance(document.get("tool"), dict) else {}
    return table if isinstance(table, dict) else {}


def _words(path: str, key: str, option: str, value: Any, *, takes_value: bool) -> list[str]:
    if not takes_value:
        if not isinstance(value, bool):
            raise Failure(f"{path}: [tool.vestige]: {key} is true or false, not {value!r}", code=2)
        return [option] * value
    values = value if isinstance(value, list) else [value]
    if isinstance(value, bool) or not all(type(one) in (str, int) for one in values):
        raise Failure(f"{path}: [tool.vestige]: {key} is a text, or a list of texts, not {value!r}", code=2)
    return [f"{option}={one}" for one in values]
