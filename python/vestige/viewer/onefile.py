"""Writes the page and a trace into one file, for `vestige view --html`. The file needs no server, no network and no
other file. Its policy allows only the page's script and style, by their hashes, and no connections.
"""

from __future__ import annotations

import base64
import html
import os

from vestige.base.content_hash import content_hash
from vestige.base.printable import printable

from .modules import join_modules
from .pages import FOLDER


def one_file(data: bytes, title: str) -> str:
    """Returns the page with a container that embed.pack() made."""
    style, script = _read("theme.css") + _read("app.css"), join_modules([FOLDER], "app.js")
    policy = (
        f"default-src 'none'; script-src '{content_hash(script)}'; style-src '{content_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    page = _read("index.html")
    page = _replace(page, "<title>vestige</title>", f"<title>{html.escape(printable(title))} · vestige</title>")
    page = _replace(
        page,
        '<meta charset="utf-8">',
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
    )
    page = _replace(page, '<link rel="stylesheet" href="theme.css">\n', "")
    page = _replace(page, '<link rel="stylesheet" href="app.css">', f"<style>{style}</style>")
    page = _replace(page, '<script type="module" src="app.js"></script>\n', "")
    text = base64.b64encode(data).decode()
    tail = f'<script type="application/gzip+base64" id="vestige-data">{text}</script>\n<script>{script}</script>\n'
    return _replace(page, "</body>", tail + "</body>")


def _read(name: str) -> str:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def _replace(page: str, old: str, new: str) -> str:
    if page.count(old) != 1:
        raise ValueError(f"the page must have exactly one {old}")
    return page.replace(old, new)
