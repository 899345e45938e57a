"""Completes a page before Sphinx parses it.

Some comments stand for text that is made when the site is built, so that nobody has to keep it current:

    <!-- made: overview -->            what `vestige --help` prints
    <!-- made: options -->             the options of a recording, from their table
    <!-- made: columns -->             the columns of reports, from their table
    <!-- made: commands -->            the command line, from the parsers
    <!-- made: api vestige.profile --> a public name, from its docstring
    <!-- file: bench/RESULTS.md -->    a Markdown file of the repository, with its headings one level down
    <!-- code: src/store/format.h -->  a source file, as a block of code

All other comments are dropped. A link to a file of the repository becomes a link to the page that shows the file;
where no page shows it, the text stays without the link. A link to a file that does not exist is an error.
"""

import os
import re
from pathlib import Path

from . import api, commands

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
COMMENT = re.compile(r"^<!-- (made|file|code): (.+?) -->$", re.MULTILINE)
OTHER_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
LANGUAGES = {".h": "c", ".c": "c", ".py": "python", ".sh": "sh"}


class DeadLink(Exception):
    """A link, or one of our comments, names a file that does not exist."""


def complete(srcdir: Path, docname: str, source: list[str]) -> None:
    """For Sphinx's event `source-read`: changes the text of a page in place."""
    page = Path(srcdir) / f"{docname}.md"
    if not page.exists():
        return
    text = outside_of_code(source[0], lambda part: resolve_links(part, page, page))
    text = COMMENT.sub(lambda found: replacement(found[1], found[2], page), text)
    source[0] = OTHER_COMMENT.sub("", text)


def replacement(kind: str, what: str, page: Path) -> str:
    if kind == "made":
        made = {name: getattr(commands, name) for name in ("overview", "options", "columns", "commands")}
        return made[what]() if what in made else api.markdown(what.removeprefix("api "))
    path = ROOT / what
    if not path.exists():
        raise DeadLink(f"{page.relative_to(ROOT)}: there is no {what}")
    text = path.read_text()
    if kind == "code":
        return f"```{LANGUAGES[path.suffix]}\n{text.rstrip()}\n```"
    text = outside_of_code(text, lambda part: re.sub(r"^#(?=#* )", "##", part, flags=re.MULTILINE))
    text = outside_of_code(text, lambda part: resolve_links(part, path, page))
    return OTHER_COMMENT.sub("", text)


def outside_of_code(text: str, change) -> str:
    """Changes the text outside fences."""
    parts, place = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[place : fence.start()]), fence[0]]
        place = fence.end()
    return "".join([*parts, change(text[place:])])


def resolve_links(text: str, source: Path, page: Path) -> str:
    """Converts links of the file `source` for `page`."""
    return LINK.sub(lambda found: resolved(found, source, page), text)


def resolved(found: re.Match, source: Path, page: Path) -> str:
    picture, text, target = found.groups()
    path, _, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target) or not path:
        return found[0]
    there = (source.parent / path).resolve()
    if not there.exists():
        raise DeadLink(f"{source.relative_to(ROOT)}: the link to {target} leads nowhere")
    there = shown_on().get(there, there)
    if DOCS not in there.parents:
        return text
    anchor = f"#{anchor}" if anchor else ""
    return f"{picture}[{text}]({os.path.relpath(there, page.parent)}{anchor})"


def shown_on() -> dict[Path, Path]:
    """Returns the repository's files, and the page that shows each."""
    found = {ROOT / "README.md": DOCS / "index.md", DOCS: DOCS / "index.md"}
    for page in DOCS.rglob("*.md"):
        for kind, what in COMMENT.findall(page.read_text()):
            if kind != "made":
                found.setdefault(ROOT / what, page)
    return found
