"""A drawing of an execution trace as a page: the picture to move about in, all operators as a tree, details of each.

One file: nothing is loaded from elsewhere.
"""

from __future__ import annotations

import json

from .et_svg import write_picture
from .et_tree import shown_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from .et_draw import Drawing
    from .et_tree import Operator

ROWS = 20000  # operators of the tree beside the picture

HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>%s</title>
<style>
html, body { margin: 0; height: 100%%; font: 13px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: #1c2733 }
body { display: grid; grid-template-columns: 340px 1fr; background: #fbfcfd }
aside { display: flex; flex-direction: column; border-right: 1px solid #d9e0e7; background: #fff; min-height: 0; height: 100vh }
#search { margin: 10px; padding: 6px 9px; border: 1px solid #c3ccd6; border-radius: 6px; font: inherit }
#tree { flex: 1; overflow: auto; padding: 0 6px 12px; font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, monospace }
#tree details { margin-left: 13px } #tree > details { margin-left: 0 }
#tree summary, #tree .leaf { white-space: nowrap; cursor: pointer; padding: 1px 4px; border-radius: 4px }
#tree .leaf { margin-left: 26px } #tree summary:hover, #tree .leaf:hover { background: #eef3f8 }
#tree .chosen { background: #dbe8f8 !important } #tree .found { background: #fdf1c9 }
#tree i { font-style: normal; color: #71808f } #tree b { font-weight: 400; color: #c0512f }
#facts { border-top: 1px solid #d9e0e7; padding: 10px 12px; max-height: 40vh; overflow: auto; word-break: break-word }
#facts h2 { font-size: 14px; margin: 0 0 6px } #facts dt { color: #71808f } #facts dd { margin: 0 }
#facts dl { margin: 0; display: grid; grid-template-columns: max-content 1fr; gap: 1px 12px } #facts code { font: 12px ui-monospace, "DejaVu Sans Mono", monospace }
main { position: relative; overflow: hidden; height: 100vh } main svg { width: 100%%; height: 100%%; cursor: grab }
#tools { position: absolute; right: 14px; top: 12px; display: flex; gap: 6px }
#tools button { font: inherit; padding: 3px 10px; border: 1px solid #c3ccd6; border-radius: 6px; background: #fff; cursor: pointer }
.box { cursor: pointer } .box.chosen .body { stroke: #d9481c !important; stroke-width: 2.4 }
svg.some .edge { opacity: .16 } svg.some .label { opacity: .2 }
svg.some .edge.near { opacity: 1; stroke: #d9481c; stroke-width: 1.8 } svg.some .label.near { opacity: 1; fill: #a43510 }
</style></head><body>
<aside><input id="search" type="search" placeholder="find an operator or a shape"><div id="tree"></div>
<div id="facts">Choose an operator.</div></aside>
<main><div id="tools"><button id="in">+</button><button id="out">−</button><button id="fit">fit</button></div>
"""

TAIL = """</main>
<script>
"use strict";
const svg = document.querySelector("main svg"), whole = svg.getAttribute("viewBox").split(" ").map(Number);
let view = whole.slice();
const byId = new Map(), rows = new Map(), tree = document.getElementById("tree");
function show() { svg.setAttribute("viewBox", view.join(" ")); }
function zoom(factor, x, y) {
  const box = svg.getBoundingClientRect();
  const fx = x === undefined ? .5 : (x - box.left) / box.width, fy = y === undefined ? .5 : (y - box.top) / box.height;
  view = [view[0] + view[2] * fx * (1 - factor), view[1] + view[3] * fy * (1 - factor), view[2] * factor, view[3] * factor];
  show();
}
function fit() {
  const shape = svg.getBoundingClientRect(), ratio = shape.height / shape.width;
  const width = Math.min(whole[2], Math.max(900, shape.width));
  view = [Math.max(0, (whole[2] - width) / 2), 0, width, width * ratio];
  if (whole[2] <= width * 1.2) view = [0, 0, whole[2], whole[2] * ratio];
  show();
}
svg.addEventListener("wheel", e => { e.preventDefault(); zoom(Math.exp(e.deltaY * .0015), e.clientX, e.clientY); }, {passive: false});
let held = null;
svg.addEventListener("pointerdown", e => { held = [e.clientX, e.clientY, false]; });
window.addEventListener("pointermove", e => {
  if (!held) return;
  const dx = e.clientX - held[0], dy = e.clientY - held[1];
  if (Math.abs(dx) + Math.abs(dy) < 3 && !held[2]) return;
  const scale = view[2] / svg.getBoundingClientRect().width;
  view[0] -= dx * scale; view[1] -= dy * scale; held = [e.clientX, e.clientY, true]; show();
});
window.addEventListener("pointerup", () => { setTimeout(() => { held = null; }); });
document.getElementById("in").onclick = () => zoom(.8);
document.getElementById("out").onclick = () => zoom(1.25);
document.getElementById("fit").onclick = () => { view = whole.slice(); show(); };
function text(parent, tag, words) { const e = document.createElement(tag); e.textContent = words; parent.append(e); return e; }
function choose(id, move) {
  document.querySelectorAll(".chosen").forEach(e => e.classList.remove("chosen"));
  document.querySelectorAll(".near").forEach(e => e.classList.remove("near"));
  const node = byId.get(id), facts = document.getElementById("facts");
  svg.classList.toggle("some", node !== undefined);
  if (!node) { facts.textContent = "Choose an operator."; return; }
  const row = rows.get(id);
  if (row) {
    for (let e = row.parentElement; e && e !== tree; e = e.parentElement) if (e.tagName === "DETAILS" && e.firstChild !== row) e.open = true;
    row.classList.add("chosen"); row.scrollIntoView({block: "nearest"});
  }
  if (node.box !== undefined) {
    const box = document.getElementById("b" + node.box);
    box.classList.add("chosen");
    document.querySelectorAll(".e" + node.box).forEach(e => e.classList.add("near"));
    if (move) {
      const at = box.getBoundingClientRect(), frame = svg.getBoundingClientRect(), scale = view[2] / frame.width;
      view[0] += (at.left + at.width / 2 - frame.left - frame.width / 2) * scale;
      view[1] += (at.top + at.height / 2 - frame.top - frame.height / 2) * scale; show();
    }
  }
  facts.textContent = ""; text(facts, "h2", node.name);
  const list = document.createElement("dl"); facts.append(list);
  for (const [name, value] of node.facts) { text(list, "dt", name); text(text(list, "dd", ""), "code", value); }
}
function add(parent, node) {
  let row;
  if (node.children.length) {
    const details = document.createElement("details"); parent.append(details);
    row = text(details, "summary", "");
    if (node.open) details.open = true;
    let filled = false;
    const fill = () => { if (!filled) { filled = true; for (const child of node.children) add(details, child); } };
    if (node.open) fill(); else details.addEventListener("toggle", fill, {once: true});
    node.fill = () => { details.open = true; fill(); };
  } else { row = text(parent, "div", ""); row.className = "leaf"; }
  text(row, "span", node.name); if (node.gave) text(row, "i", " " + node.gave); if (node.time) text(row, "b", "  " + node.time);
  row.addEventListener("click", () => choose(node.id, true));
  rows.set(node.id, row);
}
const tops = [];
for (const [id, parent, name, gave, time, box, facts] of NODES) {
  const node = {id, parent: byId.get(parent), name, gave, time, facts, children: [], open: !byId.has(parent)};
  if (box >= 0) node.box = box;
  byId.set(id, node);
  (node.parent ? node.parent.children : tops).push(node);
}
for (const node of tops) add(tree, node);
const drawn = new Map(); for (const node of byId.values()) if (node.box !== undefined && !drawn.has(node.box)) drawn.set(node.box, node.id);
document.querySelectorAll("g.box").forEach(e => e.addEventListener("click", () => { if (!held || !held[2]) reveal(drawn.get(Number(e.id.slice(1)))); }));
function reveal(id, move) {
  const path = []; for (let n = byId.get(id); n; n = n.parent) path.unshift(n);
  for (const n of path.slice(0, -1)) if (n.fill) n.fill();
  choose(id, move);
}
svg.addEventListener("click", e => { if (!e.target.closest(".box") && !(held && held[2])) choose(null); });
let hits = [], hit = 0;
document.getElementById("search").addEventListener("input", e => {
  const words = e.target.value.toLowerCase();
  hits = words ? [...byId.values()].filter(n => (n.name + " " + n.gave).toLowerCase().includes(words)).map(n => n.id) : [];
  hit = 0; if (hits.length) reveal(hits[0], true); else choose(null);
});
document.getElementById("search").addEventListener("keydown", e => {
  if (e.key === "Enter" && hits.length) { hit = (hit + 1) % hits.length; reveal(hits[hit], true); }
});
fit();
const asked = Number(location.hash.slice(1)); if (asked) reveal(asked, true);
</script></body></html>
"""


def write_page(drawing: Drawing, file: TextIO) -> None:
    title = drawing.tree.path.replace("&", "&amp;").replace("<", "&lt;")
    file.write(HEAD % title)
    write_picture(drawing, file, standalone=False)
    head, tail = TAIL.split("NODES", 1)
    file.write(head)
    rows = json.dumps(_rows(drawing), ensure_ascii=False, separators=(",", ":"))
    file.write(rows.replace("</", "<\\/").replace("<!--", "<\\!--"))
    file.write(tail)


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
        rows.append([operator.id, operator.parent, operator.name, gave, time, boxes.get(operator.id, -1), _facts(operator)])
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
