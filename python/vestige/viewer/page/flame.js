// The flame graph and the sandwich of the selected range: fetches the tree of calls, keeps it until the range, the scope or
// the weight changes, and fills both panels.

import { element } from "./elements.js";
import { FlameCanvas } from "./flame_canvas.js";
import { buildTree, calleesOf, callersOf, listFunctions, valueOf, weigh } from "./flame_model.js";
import { placeOf } from "./names.js";
import { toCss } from "./theme.js";
import { formatBytes, formatCount, formatShare, formatTime } from "./units.js";

const ROWS = 400; // the most rows of the table
const FORMAT = { time: formatTime, count: formatCount, bytes: formatBytes };

export class Flame {
  constructor(app) {
    this.app = app;
    this.root = null;
    this.key = "";
    this.one = null; // the function of the sandwich view
    this.order = "self";
    this.scope = element("scope", HTMLSelectElement);
    this.weight = element("weight", HTMLSelectElement);
    this.summaryLine = element("flame-summary");
    this.bothSummaryLine = element("both-summary");
    this.table = element("functions");
    const hover = (node, event) => this.hover(node, event);
    this.canvas = new FlameCanvas(element("flame-canvas", HTMLCanvasElement), { onHover: hover, onPick: (node) => (this.one = node.one ?? this.one) });
    this.both = new FlameCanvas(element("both-canvas", HTMLCanvasElement), { onHover: hover, onPick: (node) => node.one && this.choose(node.one) });
    this.scope.addEventListener("change", () => this.update());
    this.weight.addEventListener("change", () => this.update());
    this.table.addEventListener("click", (event) => this.clickTable(event));
    this.table.addEventListener("keydown", (event) => this.keyTable(event));
  }

  fillScopes(traces) {
    const add = (parent, value, text) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = text;
      parent.append(option);
    };
    if (traces.length > 1) add(this.scope, "", "all processes");
    for (const trace of traces) {
      const title = trace.title || `process ${trace.pid}`;
      add(this.scope, `${trace.trace}`, traces.length > 1 ? `${title}: all threads` : "all threads");
      for (const thread of trace.threads.slice(0, 200)) {
        add(this.scope, `${trace.trace}:${thread.number}`, `${traces.length > 1 ? `${title}: ` : ""}${thread.name || thread.tid}`);
      }
    }
  }

  get visible() {
    return this.app.panel.tab === "flame" || this.app.panel.tab === "sandwich";
  }

  /** Fetches again if the requested range or scope has changed. */
  async update() {
    if (!this.visible) return;
    const { from, to } = this.app.view.scope();
    const [trace, thread] = this.scope.value.split(":");
    const key = `${from} ${to} ${this.scope.value}`;
    this.app.panel.showRange(from, to);
    if (key === this.key && this.root) {
      if (this.shown !== this.showing()) this.show();
      return;
    }
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    this.key = key;
    this.root = null;
    this.summaryLine.textContent = this.bothSummaryLine.textContent = "Adding up…";
    const traces = this.app.info.traces.filter((one) => trace === "" || one.trace === Number(trace));
    try {
      const answers = await Promise.all(traces.map(async (one) => {
        const threads = thread === undefined ? undefined : [Number(thread)];
        return { trace: one.trace, ...(await this.app.source.flame(one.trace, from, to, threads, abort.signal)) };
      }));
      this.left = answers.reduce((sum, one) => sum + (one.left_out ?? 0), 0);
      this.root = buildTree(answers, this.app.names);
      if (this.one && !this.app.names.functions.includes(this.one)) this.one = null;
      this.show();
    } catch (error) {
      if (error.name === "AbortError") return;
      this.key = "";
      this.summaryLine.textContent = this.bothSummaryLine.textContent = error.message;
    }
  }

  /** Returns a key of what the panel shows. While the key stays equal, nothing is drawn anew and no zoom is lost. */
  showing() {
    return `${this.key} ${this.weight.value} ${this.app.panel.tab}`;
  }

  show() {
    const { root } = this;
    if (!root) return;
    this.shown = this.showing();
    weigh(root, this.weight.value);
    if (this.app.panel.tab === "flame") this.canvas.show([{ root, up: false }]);
    this.draw();
    if (this.app.panel.tab === "sandwich") this.showSandwich();
  }

  summary(node) {
    const format = FORMAT[this.weight.value];
    if (!this.root?.value) return this.weight.value === "bytes" ? "No allocation was recorded here." : "Nothing ran here.";
    const left = this.left ? ` · ${formatCount(this.left)} of the smallest left out` : "";
    const { matches } = this.canvas.look;
    const found = matches ? ` · ${formatShare(valueOf(this.root, matches), this.root.value)} in matches` : "";
    if (!node.one) return `All: ${format(node.value)}${found}${left}`;
    const place = placeOf(node.one);
    return `${node.one.name}${place ? `  ${place}` : ""} · ${format(node.value)} (${formatShare(node.value, this.root.value)})`
      + ` · by itself ${format(node.own ?? 0)} · ${formatCount(node.count)} calls`;
  }

  showSandwich() {
    this.functions = listFunctions(this.root);
    this.fillTable();
    const row = this.functions.find((one) => one.one === this.one) ?? this.functions[0];
    if (row) this.choose(row.one);
    else {
      this.both.show([]);
      this.bothSummaryLine.textContent = this.summary(this.root);
    }
  }

  /** Returns the table lines that show a function. */
  lines() {
    return /** @type {HTMLElement[]} */ ([...this.table.querySelectorAll("tr[data-one]")]);
  }

  choose(one) {
    this.one = one;
    if (!this.root) return; // show() draws the graph when the tree is there
    for (const line of this.lines()) {
      const chosen = Number(line.dataset.one) === one.index;
      line.setAttribute("aria-selected", String(chosen));
      if (chosen) line.scrollIntoView({ block: "nearest" });
    }
    const callees = calleesOf(this.root, one);
    this.both.show([{ root: callersOf(this.root, one), up: true }, { root: callees, up: false }], callees);
    this.bothSummaryLine.textContent = `Callers above, callees below · ${this.summary(callees)}`;
    const room = this.both.canvas.parentElement;
    const row = this.both.boxes.find((box) => box.node === callees)?.row ?? 0;
    room.scrollTop = Math.max(0, row * 20 - room.clientHeight / 2);
  }

  fillTable() {
    const format = FORMAT[this.weight.value];
    const { order, root, functions = [] } = this;
    if (!root) return;
    const rows = [...functions].sort((a, b) => (order === "name" ? a.one.name.localeCompare(b.one.name) : b[order] - a[order]));
    const cells = rows.slice(0, ROWS).map(({ one, self, total, count }) => [one, format(self), formatShare(self, root.value), format(total), formatCount(count)]);
    const table = document.createElement("table");
    table.setAttribute("role", "grid");
    table.setAttribute("aria-label", "Functions");
    const head = table.createTHead().insertRow();
    for (const [key, text] of [["self", "Self"], ["", "%"], ["total", "Total"], ["count", "Calls"], ["name", "Function"]]) {
      const cell = document.createElement("th");
      if (key) {
        const button = document.createElement("button");
        button.type = "button";
        button.dataset.order = key;
        button.textContent = text;
        cell.append(button);
        cell.setAttribute("aria-sort", key === order ? (key === "name" ? "ascending" : "descending") : "none");
      } else cell.textContent = text;
      head.append(cell);
    }
    const body = table.createTBody();
    for (const [one, ...texts] of cells) {
      const line = body.insertRow();
      line.dataset.one = one.index;
      line.tabIndex = -1;
      for (const text of texts) line.insertCell().textContent = text;
      const name = line.insertCell();
      name.textContent = one.name;
      name.title = `${one.name}  ${placeOf(one)}`;
    }
    this.table.replaceChildren(table);
  }

  clickTable(event) {
    const order = event.target.closest("button")?.dataset.order;
    if (order) {
      this.order = order;
      this.fillTable();
      /** @type {HTMLElement} */ (this.table.querySelector(`button[data-order=${order}]`)).focus();
    }
    const line = event.target.closest("tr[data-one]");
    if (line) this.choose(this.app.names.functions[Number(line.dataset.one)]);
  }

  keyTable(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.shiftKey) return;
    const lines = this.lines();
    const at = lines.findIndex((line) => line.getAttribute("aria-selected") === "true");
    const line = lines[Math.min(Math.max(at + step, 0), lines.length - 1)];
    if (line) this.choose(this.app.names.functions[Number(line.dataset.one)]);
    event.preventDefault();
    event.stopPropagation();
  }

  hover(node, event) {
    const line = this.app.panel.tab === "flame" ? this.summaryLine : this.bothSummaryLine;
    if (node && this.root) line.textContent = this.summary(node);
    this.app.tip.show(node?.one && this.root && event ? { title: node.one.name, lines: [placeOf(node.one), this.summary(node).split(" · ").slice(1).join(" · ")] } : null, event);
  }

  /** Call after a change of theme, size or matches. */
  draw() {
    const { palette } = this.app.theme;
    const { text, match, matchText, accent, edge } = this.app.colors;
    const found = this.app.search?.functions;
    const fill = ({ one }) => (one ? toCss(palette.fill(one.family, one.shade)) : edge);
    const look = { fill, text, match: toCss(match), matchText, accent, matches: found?.size ? (one) => found.has(one.index) : null };
    this.canvas.look = this.both.look = look;
    if (this.app.panel.tab === "flame") {
      if (this.root) this.summaryLine.textContent = this.summary(this.root);
      this.canvas.draw();
    }
    if (this.app.panel.tab === "sandwich") this.both.draw();
  }
}
