#!/usr/bin/env python3
"""Writes a file as the text of a C array: embed.py FILE OUT NAME. A module of JavaScript becomes one
script with all modules that it imports.

In a page, CONTENTS-OF-style.css stands for the contents of that file, and CONTENTS-OF-start.js for the script of that
module. These files are in the page's folder or in the viewer's. HASH-OF-script and HASH-OF-style stand for the hashes
of the contents of <script> and <style>, so that a Content-Security-Policy can allow only these.
"""

import base64
import hashlib
import re
import runpy
import sys
from pathlib import Path

VIEWER = Path(__file__).parent.parent / "python/vestige/viewer"


def contents(folder: Path, name: str) -> bytes:
    """Removes the last newline, because the page has one there."""
    if name.endswith(".js"):
        join = runpy.run_path(str(VIEWER / "modules.py"))["join_modules"]
        return join([folder, VIEWER / "page"], name).encode().removesuffix(b"\n")
    path = next(path for path in (folder / name, VIEWER / "page" / name) if path.exists())
    return path.read_bytes().removesuffix(b"\n")


def with_contents(page: bytes, folder: Path) -> bytes:
    return re.sub(rb"CONTENTS-OF-([\w.]+)", lambda found: contents(folder, found[1].decode()), page)


def inside_of(element: bytes, page: bytes) -> bytes:
    """Returns the contents of the element without attributes: a script with a type is data and does not run."""
    (inside,) = re.findall(rb"<%s>(.*?)</%s>" % (element, element), page, re.DOTALL)
    return inside


def with_hashes(page: bytes) -> bytes:
    for element in re.findall(rb"HASH-OF-(\w+)", page):
        found = b"sha256-" + base64.b64encode(hashlib.sha256(inside_of(element, page)).digest())
        page = page.replace(b"HASH-OF-" + element, found)
    return page


def embed(source: Path, out: Path, name: str) -> None:
    if source.suffix == ".js":
        data = contents(source.parent, source.name)
    else:
        data = with_hashes(with_contents(source.read_bytes(), source.parent))
    words = [str(byte) if byte < 128 else f"'\\x{byte:02x}'" for byte in data]
    lines = [", ".join(words[at : at + 20]) for at in range(0, len(words), 20)]
    out.write_text(f"static const char {name}[] = {{\n" + ",\n".join(lines) + ",\n0};\n")


embed(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
