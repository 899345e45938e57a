"""Checks the built pages: every link and anchor has a target, and pages load nothing from the network."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """Collects a page's links, the resources that it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if attributes.get("id"):
            self.anchors.add(attributes["id"])
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag in LOADS and attributes.get(LOADS[tag]):
            self.loads.append(attributes[LOADS[tag]])


def defects(folder: Path) -> list[str]:
    """Returns a line for each problem."""
    pages = {path: Page(path.read_text()) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        for target in page.links + page.loads:
            if not leads_somewhere(target, path, pages):
                found.append(f"{name}: {target} leads nowhere")
        found += [f"{name}: loads {target}" for target in page.loads if is_elsewhere(target)]
    for path in [*folder.rglob("*.css"), *pages]:
        for target in re.findall(
            r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)|@import\s+['\"]?(https?:[^'\";]+)", path.read_text()
        ):
            found.append(f"{path.relative_to(folder)}: loads {''.join(target)}")
    return sorted(set(found))


def is_elsewhere(target: str) -> bool:
    return bool(urlsplit(target).netloc)


def leads_somewhere(target: str, path: Path, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return True  # not checked: there may be no network
    there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not there.exists():
        return False
    return not parts.fragment or there not in pages or unquote(parts.fragment) in pages[there].anchors
