// A flame graph in a file of its own: every exported .svg, and the page of a difference. The picture in the file is for
// readers without scripts. Its boxes are the rows of the tree: data-x, data-w and data-d give their position, width and
// depth. The canvas replaces the picture, and adds search, zoom and keys.

import { FlameCanvas } from "./flame_canvas.js";
import { addRows, makeRoot, valueOf } from "./flame_model.js";
import { formatShare } from "./units.js";

const picture = /** @type {Element} */ (document.querySelector("svg"));

/** Makes an HTML element, also inside an SVG document. */
function make(name, text = "", style = {}) {
  const made = /** @type {HTMLElement} */ (document.createElementNS("http://www.w3.org/1999/xhtml", name));
  made.textContent = text;
  Object.assign(made.style, style);
  return made;
}

/** Reads the tree from the picture's boxes. If boxes have equal x, the enclosing box comes first. */
function readTree() {
  const boxes = /** @type {SVGSVGElement[]} */ ([...picture.querySelectorAll("svg[data-d]")]);
  const rows = boxes.map((box) => {
    const title = box.querySelector("title")?.textContent ?? "", name = box.querySelector("text")?.textContent;
    const [x, value, depth] = [box.dataset.x, box.dataset.w, box.dataset.d].map(Number);
    return { x, value, depth, title, fill: box.getAttribute("fill"), name: name ?? title.slice(0, title.lastIndexOf(" (")), index: 0 };
  }).sort((a, b) => a.x - b.x || a.depth - b.depth);
  const open = [];
  const parents = rows.map(({ depth }, row) => {
    rows[row].index = row;
    open[depth] = row;
    return depth ? open[depth - 1] : -1;
  });
  const all = makeRoot();
  addRows(all, parents, (row) => rows[row], (node, row) => (node.value = rows[row].value));
  const roots = [...all.children.values()];
  all.value = roots.reduce((sum, node) => sum + node.value, 0);
  if (roots.length !== 1) return all;
  roots[0].parent = null;
  return roots[0];
}

const root = readTree();
const heads = [...picture.querySelectorAll(":scope > text")].map((text) => make("p", text.textContent ?? "", { margin: "0 0 4px" }));
const query = /** @type {HTMLInputElement} */ (make("input", "", { font: "inherit", width: "300px" }));
query.type = "search";
query.placeholder = "Search by regular expression ( / )";
query.setAttribute("aria-label", "Search by regular expression");
const reset = make("button", "Show all", { font: "inherit" });
const matched = make("span");
const summary = make("p", "", { minHeight: "1.4em", margin: "6px 0", overflowWrap: "anywhere" });
const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", "", { display: "block" }));
canvas.tabIndex = 0;
canvas.setAttribute("role", "application");
canvas.setAttribute("aria-label", "Flame graph. Arrow keys move, Enter zooms in, Escape out.");
for (const element of [matched, summary]) element.setAttribute("aria-live", "polite");

export const graph = new FlameCanvas(canvas, { onHover: summarize, onPick: summarize, onZoom: (node) => (reset.hidden = !node) });

function summarize(node) {
  if (node) summary.textContent = node.one?.title ?? heads[0]?.textContent ?? "";
  canvas.title = node?.one?.title ?? "";
}

/** @param {((one: any) => boolean) | null} matches */
function draw(matches = null) {
  graph.draw({ fill: ({ one }) => one?.fill ?? "#ddd", text: "#111", match: "#d0d", matchText: "#fff", accent: "#111", matches });
}

function search() {
  let pattern = /** @type {RegExp | null} */ (null), text = "";
  try {
    pattern = query.value ? new RegExp(query.value) : null;
  } catch {
    text = "invalid regular expression";
  }
  const matches = pattern && ((one) => /** @type {RegExp} */ (pattern).test(one.title));
  matched.textContent = matches ? `${formatShare(valueOf(root, matches), root.value)} matches` : text;
  draw(matches);
}

const bar = make("div", "", { display: "flex", gap: "12px", alignItems: "center" });
bar.append(query, reset, matched);
const room = make("div", "", { height: "80vh", overflow: "auto" });
room.append(canvas);
const body = make("body", "", { font: "13px system-ui, sans-serif", margin: "1em", background: "#fff", color: "#111" });
if (picture === document.documentElement) {
  const page = make("html");
  page.append(body);
  body.append(...heads, bar, summary, room);
  picture.replaceWith(page);
} else picture.replaceWith(...heads, bar, summary, room);

query.addEventListener("input", search);
reset.addEventListener("click", () => graph.zoom(null));
addEventListener("resize", () => graph.draw());
addEventListener("keydown", (event) => {
  const find = event.key === "F3" || (event.key === "f" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && event.target !== query);
  if (find) {
    query.focus();
    event.preventDefault();
  } else if (event.key === "Escape") graph.zoom(null);
});
draw();
graph.show([{ root, up: false }]);
summarize(root);
