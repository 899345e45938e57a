// The panel of details: shows the selected thing as (label, value) rows, links, and lines of source. This file
// describes spans; item_details.js describes items of lanes.

import { element, make } from "./elements.js";
import { placeOf } from "./names.js";
import { formatBytes, formatCount, formatMoment, formatShare, formatTime } from "./units.js";

const KINDS = {
  python: "Python function", native: "function in C", annotation: "annotation", gc: "garbage collection",
  operator: "operator", module: "module", instant: "instant", activity: "activity of a device",
};

export class Details {
  constructor(app) {
    this.app = app;
    this.element = element("details");
    this.clear();
  }

  clear() {
    this.element.replaceChildren(make("p", "hint", "Click a span to see what it is. Shift-drag selects a range of time for the flame graph. Press ? for all keys."));
  }

  /** Resolves with the result of fetch(signal); null if fetch fails, or another request comes first. */
  async ask(fetch) {
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    try {
      const found = await fetch(abort.signal);
      return abort.signal.aborted ? null : found;
    } catch (error) {
      if (error.name !== "AbortError") this.app.say(error.message);
      return null;
    }
  }

  /** Shows a content: {title, kind, family, file, rows: [label, value, note], args, links (below the rows), columns (lists of
   * sections {heading, lines: links or texts}), source}, or {list: a section}. A link is {to, text, note, go, title}. @param {any} content */
  show({ title, kind, family = "", file = "", rows = [], args = {}, links = [], columns = [], source = undefined, list = null }) {
    if (list) return this.element.replaceChildren(sectionsOf([list], "parents marks all"));
    const box = make("div", "facts"), heading = make("div", "heading");
    heading.append(make("h2", "", title), make("span", `kind ${family}`, kind));
    box.append(heading);
    if (file) box.append(make("p", "file", file));
    box.append(listOf(rows));
    if (Object.keys(args).length) box.append(make("h3", "", "Arguments"), listOf(flatten(args), "args"));
    box.append(...links.map((one) => buttonOf(one, "")));
    const boxes = [box, ...columns.map((sections) => sectionsOf(sections, "parents")), ...(source === undefined ? [] : [sourceOf(source)])];
    if (boxes.length === 1) boxes.push(make("div"));
    if (boxes.length === 2) boxes[1].classList.add("rest");
    this.element.replaceChildren(...boxes);
  }

  /** Fetches and shows the span at a place. Resolves with the span, or null if there is none. */
  async load(trace, thread, depth, time) {
    const span = await this.ask((signal) => this.app.source.span(trace, thread, depth, time, signal));
    if (span) this.show(this.describe(trace, thread, span));
    return span;
  }

  describe(trace, thread, span) {
    const { app } = this, one = app.names.get(trace, span.id), length = span.end_ns - span.start_ns;
    const rows = [
      ["Duration", formatTime(length), `${formatCount(length)} ns`],
      ["By itself", formatTime(span.self_ns), formatShare(span.self_ns, length)],
      ["Begins", formatMoment(span.start_ns)], ["Ends", formatMoment(span.end_ns)],
      ["Depth", String(span.depth)],
      ...timesOf(span, length), ...app.leftOut.rowsOf(trace, span.start_ns, span.end_ns),
    ];
    if (span.flags?.length) rows.push(["Noted", span.flags.join(", ")]);
    if (span.allocations || span.total_bytes || span.self_bytes) {
      rows.push(["Allocated", formatBytes(span.total_bytes ?? 0), `by itself ${formatBytes(span.self_bytes ?? 0)}`]);
      if (span.allocations) rows.push(["Allocations", formatCount(span.allocations)]);
    }
    const parents = span.parents.map((parent) => ({
      to: "parent", text: parent.name, title: `${parent.name}  ${placeOf(app.names.get(trace, parent.id))}`, note: formatTime(parent.end_ns - parent.start_ns),
      go: () => app.goTo(trace, thread, parent.depth, parent.start_ns, parent.end_ns, parent.id),
    }));
    return {
      title: span.name || one.name, kind: KINDS[span.kind] ?? span.kind ?? "", family: one.family, rows, args: span.args ?? {}, source: span.source,
      file: span.file ? (span.line > 0 ? `${span.file}:${span.line}` : span.file) : "",
      links: [{ to: "sandwich", text: "Callers and callees", go: () => app.openSandwich(one) }],
      // the caller comes first
      columns: [[{ heading: parents.length ? "Called from" : "Outermost", lines: parents.reverse() }]],
    };
  }
}

/** Rows with the times of a span, as far as the trace knows them. */
function timesOf(span, length) {
  const rows = [["Running", span.running_ns], ["Waiting", span.waiting_ns], ["Preempted", span.preempted_ns], ["For the GIL", span.gil_ns], ["For locks of objects", span.object_ns]];
  return rows.filter(([, ns]) => ns !== undefined).map(([name, ns]) => [name, formatTime(ns), formatShare(ns, length)]);
}

function sectionsOf(sections, className) {
  const box = make("div", className);
  for (const { heading, lines } of sections) {
    const list = make("ol");
    list.append(...lines.map(lineOf));
    box.append(make("h3", "", heading), list);
  }
  return box;
}

/** A list item: a text, or a link with notes before and after it. */
function lineOf(line) {
  const item = make("li");
  if (typeof line === "string") {
    item.append(make("span", "", line));
    return item;
  }
  if (line.before) item.append(make("span", "note", line.before));
  item.append(buttonOf(line, "link"), make("span", "note", line.note ?? ""));
  return item;
}

function buttonOf({ to, text, go, title = "" }, className) {
  const button = make("button", className, text);
  button.type = "button";
  button.title = title;
  button.dataset.to = to;
  button.addEventListener("click", go);
  return button;
}

function sourceOf(source) {
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

/** Turns named arguments into rows; nested values stay JSON. */
function flatten(args) {
  const text = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  return Object.entries(args).flatMap(([key, value]) => {
    const named = key === "arguments" && value !== null && typeof value === "object" && !Array.isArray(value);
    return named ? Object.entries(value).map(([name, one]) => [name, text(one)]) : [[key, text(value)]];
  });
}

function listOf(rows, className = "") {
  const list = make("dl", className);
  for (const [key, value, note] of rows) {
    const shown = make("dd", "", value);
    if (note) shown.append(make("span", "note", note));
    list.append(make("dt", "", key), shown);
  }
  return list;
}
