// The data of the page, and the selection that is shown: a process, one of its views of memory, the tree of its stacks.

import { element } from "./elements.js";
import { addRows, addUp, makeRoot } from "./flame_model.js";
import { Names } from "./names.js";
import { formatCount } from "./units.js";

export const data = JSON.parse(element("data").textContent);
/** @type {Record<string, string>} */
export const MODES = { peak: "Peak", leaks: "Never freed", temporary: "Temporary", total: "All allocated", reserved: "Reserved" };
const OTHERS = { index: -1, name: "(others)", title: "(others)", text: "(others)", family: "native", shade: 0 };

export const shown = {
  process: data.processes[0],
  mode: "peak",
  query: "", // in lower case
  frames: /** @type {any[]} */ ([]), // {index, name, place, title, text, family, shade}
  root: makeRoot(),
  nodes: /** @type {any[]} */ ([]), // parents before their children
};

/** Selects a process: makes the tree of its rows. */
export function chooseProcess(process) {
  const names = new Names();
  const frames = process.frames.map(([name, file, line, native], index) => {
    const { family, shade } = names.intern(native ? "native" : "python", name, file, line);
    const place = file && `${file}${line ? `:${line}` : ""}`;
    return { index, name, place, title: place ? `${name}  ${place}` : name, text: `${name} ${place}`.toLowerCase(), family, shade };
  });
  const [first, ...others] = process.nodeFrames.map((frame) => frames[frame] ?? OTHERS);
  const root = Object.assign(makeRoot(), { one: first, row: 0 });
  const parents = process.parents.slice(1).map((parent) => parent - 1);
  const nodes = addRows(root, parents, (row) => others[row], (node, row) => (node.row = row + 1));
  Object.assign(shown, { process, frames, root, nodes: [root, ...nodes] });
  chooseMode(shown.mode);
}

/** Selects a view: computes the bytes of each node itself, and including the nodes below. */
export function chooseMode(mode) {
  shown.mode = mode;
  addUp(shown.root, (node) => shown.process[`${mode}Bytes`][node.row]);
  for (const node of shown.nodes) node.count = shown.process[`${mode}Count`][node.row];
  for (const node of [...shown.nodes].reverse()) if (node.parent) node.parent.count += node.count;
}

export function matches(one) {
  return one !== shown.root.one && one.text.includes(shown.query);
}

export function many(count, one) {
  return `${formatCount(count)} ${one}${count === 1 ? "" : "s"}`;
}
