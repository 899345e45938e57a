// The panel below the timeline: its tabs, its height, opening and closing.

import { element } from "./elements.js";
import { formatTime } from "./units.js";

const NAMES = ["details", "flame", "sandwich"];

export class Panel {
  constructor(app) {
    this.app = app;
    this.tab = null; // the name of the open tab
    this.element = element("panel");
    this.splitter = element("splitter");
    this.height = 236;
    for (const name of NAMES) element(`tab-${name}`).addEventListener("click", () => this.open(name));
    element("tabs").addEventListener("keydown", (event) => this.key(event));
    element("close", HTMLButtonElement).addEventListener("click", () => this.close());
    this.splitter.addEventListener("pointerdown", (event) => this.drag(event));
    this.splitter.addEventListener("keydown", (event) => {
      const step = { ArrowUp: 24, ArrowDown: -24 }[event.key];
      if (!step) return;
      this.resize(this.height + step);
      event.preventDefault();
      event.stopPropagation();
    });
    this.close();
  }

  open(name) {
    const before = this.tab;
    this.tab = name;
    this.element.hidden = this.splitter.hidden = false;
    for (const one of NAMES) {
      const chosen = one === name;
      const tab = element(`tab-${one}`);
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      element(one).hidden = !chosen;
    }
    element("scope-box").hidden = name === "details";
    this.resize(this.height);
    if (before !== name) this.app.flame?.update();
  }

  close() {
    this.tab = null;
    this.element.hidden = this.splitter.hidden = true;
    this.app.stage.invalidate();
  }

  resize(height) {
    const room = element("main").clientHeight;
    this.height = Math.round(Math.min(Math.max(height, 120), Math.max(room - 160, 120)));
    this.element.style.height = `${this.height}px`;
    this.splitter.setAttribute("aria-valuenow", String(this.height));
    this.app.stage.invalidate();
    this.app.flame?.draw();
  }

  drag(event) {
    const start = event.clientY, height = this.height;
    const move = (moved) => this.resize(height + start - moved.clientY);
    const end = () => {
      this.splitter.removeEventListener("pointermove", move);
      this.splitter.removeEventListener("pointerup", end);
    };
    this.splitter.setPointerCapture(event.pointerId);
    this.splitter.addEventListener("pointermove", move);
    this.splitter.addEventListener("pointerup", end);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || event.target.getAttribute("role") !== "tab") return;
    const next = NAMES[(NAMES.indexOf(this.tab) + step + NAMES.length) % NAMES.length];
    this.open(next);
    element(`tab-${next}`).focus();
    event.preventDefault();
    event.stopPropagation();
  }

  showRange(from, to) {
    const { view } = this.app;
    const what = view.range ? "the selected" : view.isWhole() ? "all" : "the shown";
    element("range-shown").textContent = `${what} ${formatTime(to - from)}`;
  }
}
