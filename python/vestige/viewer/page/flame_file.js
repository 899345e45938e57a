// A flame graph in a file of its own: every .svg that is exported, and the page of a difference. The picture there is for
// where no script runs. Its boxes are the rows of the tree: data-x, data-w and data-d say where they begin, how wide they are,
// and how deep. The canvas takes the picture's place, with search, zoom and keys.

import { FlameCanvas } from "./flame_canvas.js";
import { addRows, makeRoot, valueOf } from "./flame_model.js";
import { formatShare } from "./units.js";

const picture = /** @type {Element} */ (document.querySelector("svg"));

/** An element of HTML, in whatever document this is. */
function make(name, text = "", style = {}) {
  const made = /** @type {HTMLElement} */ (document.createElementNS("http://www.w3.org/1999/xhtml", name));
  made.textContent = text;
  Object.assign(made.style, style);
  return made;
}

/** The tree of the picture's boxes. Of the same x, the one around the others comes first. */
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
const told = make("p", "", { minHeight: "1.4em", margin: "6px 0", overflowWrap: "anywhere" });
const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", "", { display: "block" }));
canvas.tabIndex = 0;
canvas.setAttribute("role", "application");
canvas.setAttribute("aria-label", "Flame graph. Arrow keys move, Enter zooms in, Escape out.");
for (const element of [matched, told]) element.setAttribute("aria-live", "polite");

export const graph = new FlameCanvas(canvas, { onHover: tell, onPick: tell, onZoom: (node) => (reset.hidden = !node) });

function tell(node) {
  if (node) told.textContent = node.one?.title ?? heads[0]?.textContent ?? "";
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
    text = "no regular expression";
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
  body.append(...heads, bar, told, room);
  picture.replaceWith(page);
} else picture.replaceWith(...heads, bar, told, room);

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
tell(root);
