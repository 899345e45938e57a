// Puts the page together; runs last.

import { chooseMode, chooseProcess, data, MODES, shown } from "./data.js";
import { element, make } from "./elements.js";
import { commandOf, showProcess } from "./process.js";
import { drawStacks, graph, showStacks } from "./stacks.js";
import { showTable } from "./tables.js";
import { Theme } from "./theme.js";
import { drawUsage } from "./usage.js";

let table = "lines";
const search = element("search", HTMLInputElement), processes = element("process", HTMLSelectElement);

function makeTabs(id, names, chosen, change) {
  element(id).replaceChildren(...Object.entries(names).map(([value, title]) => {
    const made = make("label"), input = /** @type {HTMLInputElement} */ (make("input"));
    Object.assign(input, { type: "radio", name: id, value, checked: value === chosen });
    input.addEventListener("change", () => change(value));
    made.append(input, title);
    return made;
  }));
}

function draw() {
  drawUsage();
  drawStacks(theme);
}

/** Call after another process or view was selected. */
function show() {
  showStacks();
  draw();
  showTable(table);
}

function choose(process) {
  chooseProcess(process);
  showProcess();
  show();
}

if (!data.processes.some((one) => one.reserved)) delete MODES.reserved;
makeTabs("modes", MODES, shown.mode, (value) => {
  chooseMode(value);
  show();
});
makeTabs("tables", { lines: "Lines", stacks: "Stacks", sizes: "Sizes" }, table, (value) => showTable((table = value)));
data.processes.forEach((one, i) => processes.append(new Option(`${one.pid}  ${commandOf(one)}`, String(i))));
processes.hidden = data.processes.length < 2;
processes.addEventListener("change", () => choose(data.processes[Number(processes.value)]));
element("reset").addEventListener("click", () => graph.zoom(null));
search.addEventListener("input", () => {
  shown.query = search.value.trim().toLowerCase();
  draw();
  showTable(table);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || document.activeElement === search) return;
  search.focus();
  event.preventDefault();
});
const theme = new Theme(() => shown.root.one && draw());
choose(shown.process);
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (width === window.innerWidth) return;
  width = window.innerWidth;
  draw();
});
