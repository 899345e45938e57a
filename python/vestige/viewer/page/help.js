// The overlay that explains keys and colours.

import { element, make } from "./elements.js";
import { toCss } from "./theme.js";

const KEYS = [
  ["Drag, A D, ← →", "pan in time"],
  ["Wheel, pinch, W S", "zoom at the pointer"],
  ["↑ ↓, Shift + wheel", "scroll; the wheel over the names too"],
  ["Shift + drag", "select a range of time"],
  ["Click, Shift + arrows", "select a span, go to its neighbour, caller, callee"],
  ["Double click, f", "zoom to the span or the range"],
  ["0", "show the whole trace"],
  ["u, Backspace", "back to where you were before"],
  ["/ or Ctrl + F", "search; n and N, Enter: next, previous"],
  ["g, c, i", "flame graph, callers and callees, details"],
  ["[ ]", "fold or unfold all threads; a name: that one, or a group of tasks"],
  ["t", "light or dark"],
  ["Esc", "deselect, close the panel"],
];
const ALONE = "This page has no server: it cannot open other tools, fold or unfold imports, or count the allocations of a call. `vestige view` can.";
const COLOURS = [
  ["python", "Python functions; those of one file have similar hues"], ["native", "functions in C"],
  ["operator", "operators: a line beneath"], ["module", "modules of a model"],
  ["annotation", "your annotations: a line above"], ["gc", "garbage collections"],
];

export class Help {
  constructor(app) {
    this.app = app;
    this.dialog = element("keys", HTMLDialogElement);
    element("help", HTMLButtonElement).addEventListener("click", () => this.toggle());
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
  }

  toggle() {
    if (this.dialog.open) return this.dialog.close();
    this.fill();
    this.dialog.showModal();
  }

  fill() {
    const title = make("h2", "", "Keys");
    title.id = "keys-title";
    const keys = make("dl");
    for (const [key, what] of KEYS) keys.append(make("dt", "", key), make("dd", "", what));
    const colours = make("dl");
    colours.className = "colours";
    for (const [family, what] of COLOURS) {
      const swatch = make("dt");
      swatch.style.background = toCss(this.app.theme.palette.fill(family, 2));
      const strong = toCss(this.app.colors[family] ?? 0);
      if (family === "annotation") swatch.style.borderTop = `2px solid ${strong}`;
      if (family === "operator" || family === "module") swatch.style.borderBottom = `2px solid ${strong}`;
      colours.append(swatch, make("dd", "", what));
    }
    const note = make("p", "", "Pale and grained: many short spans drawn as one; the paler, the less of that time was spent in them. Hatched: records are missing there. A red band above the rows of a thread: a budget left functions out (vestige run --budget). A red end: an exception ended the call. Paler than its neighbours: the thread was off the processor; with diagonal lines, it waited for the GIL, or without one for locks of objects and for a stopped world (vestige run --sched). In the lane of a task, the pale parts are waits; an arrow comes from the code that woke the task. Marks above the rows of a thread: triangles are exceptions (vestige run --exceptions), with a line above if nobody caught them; diamonds are instants that the program marks; bars stand for several marks.");
    const close = /** @type {HTMLButtonElement} */ (make("button", "", "Close"));
    close.type = "button";
    close.addEventListener("click", () => this.dialog.close());
    const alone = make("p", "", this.app.source.canExport ? "" : ALONE);
    this.dialog.replaceChildren(title, keys, make("h2", "", "Colours"), colours, note, alone, close);
  }
}
