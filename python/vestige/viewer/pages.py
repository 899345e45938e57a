"""The page's own files, read once. The server sends no other files."""

from __future__ import annotations

import os

from .answers import Answer

FOLDER = os.path.join(os.path.dirname(__file__), "page")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FIRST = "index.html"


def read_pages() -> dict[str, Answer]:
    """Returns the files by the path of their address."""
    pages = {}
    for name in sorted(os.listdir(FOLDER)):
        type = TYPES.get(os.path.splitext(name)[1])
        if type is None:
            continue
        with open(os.path.join(FOLDER, name), "rb") as file:
            pages["/" if name == FIRST else f"/{name}"] = Answer(file.read(), type, is_page=True)
    return pages
