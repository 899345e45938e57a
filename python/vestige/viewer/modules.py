"""A page's modules as one script. A page from a file may not import modules, so each module becomes a function in one
script. Each function runs once, after the modules that it needs. Modules use only two forms: `export` before a
function, class or const, and `import { a } from "./x.js";`. The build of the core runs this file by itself.
"""

import os
import re

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
ENDS = re.compile(r"</script|<!--|]]>", re.IGNORECASE)  # text that would end a script, in a page or in an SVG


def join_modules(folders: "list[str]", first: str) -> str:
    """Returns a script of a module and all modules that it needs. Looks for each in the folders, in their order."""
    done: list[str] = []
    parts: list[str] = []
    _add_module(folders, first, done, parts)
    script = '"use strict";\n' + "".join(parts)
    if ENDS.search(script):
        raise ValueError("a module contains text that would end the script, such as `</script>`")
    return script


def _add_module(folders: "list[str]", name: str, done: "list[str]", parts: "list[str]") -> None:
    """Adds a module after the modules that it needs."""
    if name in done:
        return
    done.append(name)
    text = _read(folders, name)
    for found in IMPORT.finditer(text):
        _add_module(folders, found[2], done, parts)
    names = ", ".join(found[2] for found in EXPORT.finditer(text))
    text = IMPORT.sub(lambda found: f"const {{{found[1].replace(' as ', ': ')}}} = {_variable(found[2])};\n", text)
    text = EXPORT.sub(r"\1", text)
    if re.search(r"^(import|export)\b", text, re.MULTILINE):
        raise ValueError(f"{name} imports or exports in a form that cannot be joined")
    parts.append(f"const {_variable(name)} = (() => {{\n{text}return {{ {names} }};\n}})();\n")


def _variable(name: str) -> str:
    return "module_" + name.removesuffix(".js")


def _read(folders: "list[str]", name: str) -> str:
    path = next(path for folder in folders if os.path.exists(path := os.path.join(folder, name)))
    with open(path, encoding="utf-8") as file:
        return file.read()
