"""A drawing of an execution trace as a page: the picture to move about in, all operators as a tree, details of each.

One file: nothing is loaded from elsewhere, and nothing runs in it but the page's own script, by its hash.
"""

from __future__ import annotations

import json
import os
import re
from html import escape

from vestige.base.content_hash import content_hash

from .svg import STYLE, write_picture
from .tree import shown_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from .draw import Drawing
    from .tree import Operator

ROWS = 20000  # operators of the tree beside the picture


def write_page(drawing: Drawing, file: TextIO) -> None:
    with open(os.path.join(os.path.dirname(__file__), "page.html"), encoding="utf-8") as page:
        template = page.read()
    parts = re.split(r"{{(\w+)}}", template)
    for index, part in enumerate(parts):
        if index % 2 == 0:
            file.write(part)
        elif part == "title":
            file.write(escape(drawing.tree.path))
        elif part == "policy":
            file.write(_policy(template))
        elif part == "picture":
            write_picture(drawing, file, standalone=False)
        else:
            rows = json.dumps(_rows(drawing), ensure_ascii=False, separators=(",", ":"))
            file.write(rows.replace("<", "\\u003c"))


def _policy(template: str) -> str:
    """Allows the page's script, its style and the picture's."""
    ((style,), (script,)) = (re.findall(f"<{name}>(.*?)</{name}>", template, re.DOTALL) for name in ("style", "script"))
    return (
        f"default-src 'none'; script-src '{content_hash(script)}'; "
        f"style-src '{content_hash(style)}' '{content_hash(STYLE)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _rows(drawing: Drawing) -> list[list[Any]]:
    """The threads and operators, parents first; each that is drawn with the number of its box."""
    boxes = {box.operator.id: index for index, box in enumerate(drawing.boxes)}
    rows: list[list[Any]] = [
        [top.id, 0, f"thread {top.tid}", "", "", -1, [["node", str(top.id)]]] for top in drawing.tree.threads
    ]
    for operator in drawing.tree.walk():
        if len(rows) >= ROWS:
            break
        gave = ", ".join(text for _, text in operator.gave)
        time = shown_time(operator.duration)
        rows.append(
            [operator.id, operator.parent, operator.name, gave, time, boxes.get(operator.id, -1), _facts(operator)]
        )
    return rows


def _facts(operator: Operator) -> list[list[str]]:
    facts = [["node", str(operator.id)], ["thread", str(operator.tid)], ["rf id", str(operator.rf_id)]]
    if operator.duration is not None:
        facts.append(["took", shown_time(operator.duration)])
    facts += [["given", f"#{number} {text}" if number else text] for number, text in operator.given]
    facts += [["gave", f"#{number} {text}" if number else text] for number, text in operator.gave]
    if operator.seq_id >= 0:
        facts.append(["sequence", str(operator.seq_id)])
    return [*facts, *([["schema", operator.schema]] if operator.schema else [])]
