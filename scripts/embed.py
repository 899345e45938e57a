#!/usr/bin/env python3
"""Writes a file as the text of a C array: embed.py FILE OUT NAME. Of a page, embed.py --script FILE OUT writes its script.

In a page, CONTENTS-OF-style.css stands for what is in that file, which lies beside the page. HASH-OF-script and
HASH-OF-style stand for the hashes of what is inside of <script> and <style>, by which a Content-Security-Policy allows
these and no others.
"""

import base64
import hashlib
import re
import sys
from pathlib import Path


def with_contents(page: bytes, folder: Path) -> bytes:
    """Fills in files, without the end of their last line: the page has one there."""
    return re.sub(
        rb"CONTENTS-OF-([\w.]+)",
        lambda found: (folder / found[1].decode()).read_bytes().removesuffix(b"\n"),
        page,
    )


def inside_of(element: bytes, page: bytes) -> bytes:
    """What is inside of the element without attributes: a script with a type holds data and does not run."""
    (inside,) = re.findall(rb"<%s>(.*?)</%s>" % (element, element), page, re.DOTALL)
    return inside


def with_hashes(page: bytes) -> bytes:
    for element in re.findall(rb"HASH-OF-(\w+)", page):
        found = b"sha256-" + base64.b64encode(hashlib.sha256(inside_of(element, page)).digest())
        page = page.replace(b"HASH-OF-" + element, found)
    return page


def embed(source: Path, out: Path, name: str) -> None:
    data = with_hashes(with_contents(source.read_bytes(), source.parent))
    words = [str(byte) if byte < 128 else f"'\\x{byte:02x}'" for byte in data]
    lines = [", ".join(words[at : at + 20]) for at in range(0, len(words), 20)]
    out.write_text(f"static const char {name}[] = {{\n" + ",\n".join(lines) + ",\n0};\n")


if sys.argv[1] == "--script":
    page = Path(sys.argv[2])
    Path(sys.argv[3]).write_bytes(inside_of(b"script", with_contents(page.read_bytes(), page.parent)))
else:
    embed(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
