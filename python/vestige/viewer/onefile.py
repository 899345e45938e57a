"""The page and a trace in one file, for `vestige view --html`: it needs no server, no network and no other file.

A page from a file may not import modules, so they become functions of one script, each run once, in the order in which
they need each other. They keep to two forms for that: `import { a, b } from "./x.js";` and `export` before a function,
class or const. The page may run that one script and that one style, by their hashes, and reach nothing else.
"""

from __future__ import annotations

import base64
import html
import os
import re

from vestige.base.content_hash import content_hash
from vestige.base.printable import printable

FOLDER = os.path.join(os.path.dirname(__file__), "page")
FIRST = "app.js"
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def one_file(data: bytes, title: str) -> str:
    """The page around a container as embed.pack makes it."""
    style, script = _read("app.css"), _join_modules()
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
    page = _replace(page, '<link rel="stylesheet" href="app.css">', f"<style>{style}</style>")
    page = _replace(page, '<script type="module" src="app.js"></script>\n', "")
    text = base64.b64encode(data).decode()
    tail = f'<script type="application/gzip+base64" id="vestige-data">{text}</script>\n<script>{script}</script>\n'
    return _replace(page, "</body>", tail + "</body>")


def _join_modules() -> str:
    done: list[str] = []
    parts: list[str] = []
    _add_module(FIRST, done, parts)
    script = '"use strict";\n' + "".join(parts)
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("the page's modules hold what would end their script")
    return script


def _add_module(name: str, done: list[str], parts: list[str]) -> None:
    """A module after those it needs."""
    if name in done:
        return
    done.append(name)
    text = _read(name)
    for found in IMPORT.finditer(text):
        _add_module(found[2], done, parts)
    names = ", ".join(found[2] for found in EXPORT.finditer(text))
    text = IMPORT.sub(lambda found: f"const {{{found[1].replace(' as ', ': ')}}} = {_variable(found[2])};\n", text)
    text = EXPORT.sub(r"\1", text)
    if re.search(r"^(import|export)\b", text, re.MULTILINE):
        raise ValueError(f"{name} imports or exports in a form that cannot be joined")
    parts.append(f"const {_variable(name)} = (() => {{\n{text}return {{ {names} }};\n}})();\n")


def _variable(name: str) -> str:
    return "module_" + name.removesuffix(".js")


def _read(name: str) -> str:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def _replace(page: str, old: str, new: str) -> str:
    if page.count(old) != 1:
        raise ValueError(f"the page must have exactly one {old}")
    return page.replace(old, new)
