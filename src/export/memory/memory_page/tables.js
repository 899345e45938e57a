// The tables below the graphs: lines, stacks, sizes.

import { matches, shown } from "./data.js";
import { element, make } from "./elements.js";
import { formatBytes, formatCount, formatShare } from "./units.js";

const ROWS = 50, CALLERS = 6;
const VIEWS = ["total", "peak", "leaks", "temporary", "reserved"]; // in the order of a line's numbers
const TABLES = { lines: lineRows, stacks: stackRows, sizes: sizeRows };

function rowOf(bytes, count, where) {
  const row = make("tr"), cell = make("td");
  cell.append(...where);
  row.append(...[formatBytes(bytes), formatShare(bytes, shown.root.value), formatCount(count)].map((text) => make("td", "", text)), cell);
  return row;
}

function lineRows() {
  const at = 1 + 2 * VIEWS.indexOf(shown.mode);
  const lines = shown.process.lines.filter((line) => line[at + 1] > 0 && (!shown.query || matches(shown.frames[line[0]])));
  return lines.sort((a, b) => b[at] - a[at]).slice(0, ROWS).map((line) => {
    const { name, place } = shown.frames[line[0]];
    return rowOf(line[at], line[at + 1], [make("code", "", place || name), place ? ` ${name}` : ""]);
  });
}

/** Returns a node and its callers, outermost last, without the root. */
function stackOf(node) {
  const stack = [];
  for (let at = node; at.parent; at = at.parent) stack.push(at.one);
  return stack;
}

function stackRows() {
  const bytes = shown.process[`${shown.mode}Bytes`], counts = shown.process[`${shown.mode}Count`];
  const nodes = shown.nodes.filter((node) => node.parent && counts[node.row] > 0 && node.one.index >= 0);
  const found = shown.query ? nodes.filter((node) => stackOf(node).some(matches)) : nodes;
  return found.sort((a, b) => bytes[b.row] - bytes[a.row]).slice(0, ROWS).map((node) => {
    const [own, ...callers] = stackOf(node).map((one) => one.title);
    const told = callers.slice(0, CALLERS).join("  ←  ") + (callers.length > CALLERS ? "  ← …" : "");
    return rowOf(bytes[node.row], counts[node.row], [make("code", "", own), make("div", "callers", told)]);
  });
}

function sizeRows() {
  const { sizes } = shown.process, most = Math.max(...sizes, 1);
  const all = sizes.reduce((sum, count) => sum + count, 0), rows = [];
  sizes.forEach((count, i) => {
    if (!count) return;
    const row = make("tr"), cell = make("td"), bar = make("div", "bar");
    bar.style.width = `${(100 * count) / most}%`;
    cell.append(bar);
    const texts = [i ? `${formatBytes(2 ** (i - 1))} – ${formatBytes(2 ** i)}` : "0 B", formatShare(count, all), formatCount(count)];
    row.append(...texts.map((text) => make("td", "", text)), cell);
    rows.push(row);
  });
  return rows;
}

export function showTable(table) {
  const made = make("table"), head = make("tr");
  const last = { lines: "Line", stacks: "Stack", sizes: "" }[table];
  head.append(...[table === "sizes" ? "Size" : "Bytes", "%", "Count", last].map((title) => make("th", "", title)));
  made.append(head, ...TABLES[table]());
  element("table").replaceChildren(made);
}
