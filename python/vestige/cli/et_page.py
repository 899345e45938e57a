"""A drawing of an execution trace as a page: the picture to move about in, all operators as a tree, details of each.

One file: nothing is loaded from elsewhere.
"""

from __future__ import annotations

import json
import os
import re
from html import escape

from .et_svg import write_picture
from .et_tree import shown_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from .et_draw import Drawing
    from .et_tree import Operator

ROWS = 20000  # operators of the tree beside the picture


def write_page(drawing: Drawing, file: TextIO) -> None:
    with open(os.path.join(os.path.dirname(__file__), "et_page.html"), encoding="utf-8") as template:
        parts = re.split(r"{{(\w+)}}", template.read())
    for index, part in enumerate(parts):
        if index % 2 == 0:
            file.write(part)
        elif part == "title":
            file.write(escape(drawing.tree.path))
        elif part == "picture":
            write_picture(drawing, file, standalone=False)
        else:
            rows = json.dumps(_rows(drawing), ensure_ascii=False, separators=(",", ":"))
            file.write(rows.replace("</", "<\\/").replace("<!--", "<\\!--"))


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
