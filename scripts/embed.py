#!/usr/bin/env python3
"""Writes a file as the text of a C array: embed.py FILE OUT NAME.

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
    """Without the end of a file's last line, which is in the page."""
    return re.sub(
        rb"CONTENTS-OF-([\w.]+)",
        lambda found: (folder / found[1].decode()).read_bytes().removesuffix(b"\n"),
        page,
    )


def with_hashes(page: bytes) -> bytes:
    """Of elements without attributes: one with a type holds data, which is not run."""
    for element in re.findall(rb"HASH-OF-(\w+)", page):
        (inside,) = re.findall(rb"<%s>(.*?)</%s>" % (element, element), page, re.DOTALL)
        found = b"sha256-" + base64.b64encode(hashlib.sha256(inside).digest())
        page = page.replace(b"HASH-OF-" + element, found)
    return page


source = Path(sys.argv[1])
data = with_hashes(with_contents(source.read_bytes(), source.parent))
words = [str(byte) if byte < 128 else f"'\\x{byte:02x}'" for byte in data]
lines = [", ".join(words[at : at + 20]) for at in range(0, len(words), 20)]
Path(sys.argv[2]).write_text(f"static const char {sys.argv[3]}[] = {{\n" + ",\n".join(lines) + ",\n0};\n")
