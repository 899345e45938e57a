// The selected span: what it is, when, with what arguments, called from where, and its lines of source.

import { element } from "./elements.js";
import { placeOf } from "./names.js";
import { formatBytes, formatCount, formatMoment, formatShare, formatTime } from "./units.js";

const KINDS = {
  python: "Python function", native: "function in C", annotation: "annotation", gc: "garbage collection",
  operator: "operator", module: "module", instant: "instant", activity: "work of a device",
};

export class Details {
  /** @type {{trace: number, thread: number}} */ place; // of the span that is shown; show() sets it

  constructor(app) {
    this.app = app;
    this.element = element("details");
    this.element.addEventListener("click", (event) => {
      const button = event.target instanceof Element && event.target.closest("button");
      if (!button) return;
      if (button.dataset.parent !== undefined) this.goToParent(Number(button.dataset.parent));
      if (button.dataset.sandwich !== undefined) this.app.openSandwich(this.one);
    });
    this.clear();
  }

  clear() {
    this.span = null;
    this.element.replaceChildren(make("p", "hint", "Click a span to see what it is. Shift-drag selects a range of time for the flame graph. Press ? for all keys."));
  }

  /** Fetches and shows the span at a place; resolves with it, or null if there is none. */
  async load(trace, thread, depth, time) {
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    try {
      const span = await this.app.source.span(trace, thread, depth, time, abort.signal);
      if (abort.signal.aborted || !span) return null;
      this.show(trace, thread, span);
      return span;
    } catch (error) {
      if (error.name !== "AbortError") this.element.replaceChildren(make("p", "hint", error.message));
      return null;
    }
  }

  show(trace, thread, span) {
    this.span = span;
    this.place = { trace, thread };
    this.one = this.app.names.get(trace, span.id);
    this.element.replaceChildren(this.facts(span), this.parents(span), this.source(span));
  }

  facts(span) {
    const box = make("div", "facts");
    const head = make("h2", "", span.name || this.one.name);
    const kind = make("span", `kind ${this.one.family}`, KINDS[span.kind] ?? span.kind ?? "");
    const title = make("div", "heading");
    title.append(head, kind);
    box.append(title);
    if (span.file) box.append(make("p", "file", span.line > 0 ? `${span.file}:${span.line}` : span.file));
    const length = span.end_ns - span.start_ns;
    const rows = [
      ["Duration", formatTime(length), `${formatCount(length)} ns`],
      ["By itself", formatTime(span.self_ns), formatShare(span.self_ns, length)],
      ["Begins", formatMoment(span.start_ns)], ["Ends", formatMoment(span.end_ns)],
      ["Depth", String(span.depth)],
    ];
    rows.push(...timesOf(span, length));
    rows.push(...this.app.leftOut.rowsOf(this.place.trace, span.start_ns, span.end_ns));
    if (span.flags?.length) rows.push(["Noted", span.flags.join(", ")]);
    if (span.allocations || span.total_bytes || span.self_bytes) {
      rows.push(["Allocated", formatBytes(span.total_bytes ?? 0), `by itself ${formatBytes(span.self_bytes ?? 0)}`]);
      if (span.allocations) rows.push(["Allocations", formatCount(span.allocations)]);
    }
    box.append(listOf(rows));
    if (span.args && Object.keys(span.args).length) {
      box.append(make("h3", "", "Arguments"));
      box.append(listOf(flatten(span.args), "args"));
    }
    const button = make("button", "", "Callers and callees");
    button.type = "button";
    button.dataset.sandwich = "1";
    box.append(button);
    return box;
  }

  parents(span) {
    const box = make("div", "parents");
    box.append(make("h3", "", span.parents.length ? "Called from" : "Outermost"));
    const list = make("ol");
    span.parents.forEach((parent, at) => {
      const item = make("li");
      const button = make("button", "link", parent.name);
      button.type = "button";
      button.dataset.parent = at;
      const one = this.app.names.get(this.place.trace, parent.id);
      button.title = `${parent.name}  ${placeOf(one)}`;
      item.append(button, make("span", "note", formatTime(parent.end_ns - parent.start_ns)));
      list.prepend(item); // the caller first
    });
    box.append(list);
    return box;
  }

  source({ source }) {
    const box = make("div", "source");
    if (!source || !source.lines?.length) {
      box.append(make("p", "hint", source?.note ?? "No source is known for this."));
      return box;
    }
    box.append(make("h3", "", `Source${source.note ? `: ${source.note}` : ""}`));
    const listing = make("pre");
    source.lines.forEach((text, at) => {
      const number = source.first + at;
      const line = make("span", number === source.line ? "line here" : "line");
      line.append(make("span", "number", String(number)), make("code", "", text || " "));
      listing.append(line);
    });
    box.append(listing);
    return box;
  }

  goToParent(at) {
    const { start_ns, end_ns, depth, id } = this.span.parents[at];
    this.app.goTo(this.place.trace, this.place.thread, depth, start_ns, end_ns, id);
  }
}

/** Arguments by name are rows of their own; anything deeper stays JSON. */
/** What the span's time was, as far as the trace tells. */
function timesOf(span, length) {
  const rows = [["Running", span.running_ns], ["Waiting", span.waiting_ns], ["Preempted", span.preempted_ns], ["For the GIL", span.gil_ns], ["For locks of objects", span.object_ns]];
  return rows.filter(([, ns]) => ns !== undefined).map(([name, ns]) => [name, formatTime(ns), formatShare(ns, length)]);
}

export function flatten(args) {
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.entries(args).flatMap(([key, value]) => {
    const named = key === "arguments" && value !== null && typeof value === "object" && !Array.isArray(value);
    return named ? Object.entries(value).map(([name, one]) => [name, text(one)]) : [[key, text(value)]];
  });
}

export function make(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

export function listOf(rows, className = "") {
  const list = make("dl", className);
  for (const [key, value, note] of rows) {
    const told = make("dd", "", value);
    if (note) told.append(make("span", "note", note));
    list.append(make("dt", "", key), told);
  }
  return list;
}
