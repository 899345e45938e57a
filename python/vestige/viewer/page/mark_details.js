// What is told of a mark, or of several that are drawn as one, in the panel of details.

import { listOf, make } from "./details.js";
import { placeOf } from "./names.js";
import { formatCount, formatMoment } from "./units.js";

const LISTED = 50; // marks; a picture merges what is close
const NOT_CAUGHT = 2, UNKNOWN = 3; // ends of exceptions, see vst_exception_end

export class MarkDetails {
  constructor(app) {
    this.app = app;
    this.trace = this.thread = 0;
    this.marks = []; // those that are listed
    app.details.element.addEventListener("click", (event) => {
      const button = event.target instanceof Element && event.target.closest("button[data-mark]");
      if (!(button instanceof HTMLElement)) return;
      const mark = this.marks[Number(button.dataset.mark)];
      if (button.dataset.call) this.app.goToCall(this.trace, this.thread, mark.start_ns, mark.raised_in);
      else this.app.goToMark(this.trace, this.thread, mark.start_ns);
    });
  }

  /** Fetches and shows the marks of a thread between two times; resolves with them. */
  async load(trace, thread, from, to) {
    const { details } = this.app;
    details.abort?.abort();
    const abort = (details.abort = new AbortController());
    try {
      const found = await this.app.source.laneBetween(trace, "marks", [this.app.lanes.ofThread("marks", trace, thread).lane], from, to, LISTED, abort.signal);
      if (abort.signal.aborted || !found.count) return null;
      this.trace = trace;
      this.thread = thread;
      this.marks = found.items;
      details.span = null;
      if (found.count === 1) await this.showOne(found.items[0], abort.signal);
      else details.element.replaceChildren(this.list(found));
      return found;
    } catch (error) {
      if (error.name !== "AbortError") this.app.say(error.message);
      return null;
    }
  }

  name(id) {
    return this.app.names.get(this.trace, id).name;
  }

  became(mark) {
    if (mark.end === NOT_CAUGHT) return "nowhere: it left the outermost call";
    if (mark.end === UNKNOWN) return "not known: records are missing";
    return mark.caught_in ? `${this.name(mark.caught_in)} ${placeOf(this.app.names.get(this.trace, mark.caught_in))}` : "a call that is not recorded";
  }

  async showOne(mark, signal) {
    const facts = make("div", "facts"), heading = make("div", "heading");
    heading.append(make("h2", "", this.name(mark.id)), make("span", "kind", mark.end ? "exception" : "instant"));
    const { file, line } = this.app.names.get(this.trace, mark.id), rows = [["At", formatMoment(mark.start_ns)]];
    if (mark.end) {
      rows.push(["Raised at", file ? `${file}:${line}` : "not known"]);
      if (mark.raised_in) rows.push(["Raised in", this.name(mark.raised_in)]);
      rows.push(["Caught in", this.became(mark)]);
    }
    facts.append(heading, listOf(rows));
    if (Object.keys(mark.args).length) {
      facts.append(make("h3", "", "Arguments"));
      facts.append(listOf(Object.entries(mark.args).map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]), "args"));
    }
    const button = make("button", "", mark.end ? "Show the call that raised it" : "Show the call around it");
    button.type = "button";
    button.dataset.mark = "0";
    button.dataset.call = "1";
    facts.append(button);
    const source = mark.end ? await this.app.source.source(this.trace, mark.id) : null;
    if (signal.aborted) return;
    this.app.details.element.replaceChildren(facts, mark.end ? this.app.details.source({ source }) : make("div"));
    this.app.details.element.lastElementChild.classList.add("rest");
  }

  list({ count, items: marks }) {
    const box = make("div", "parents marks all");
    box.append(make("h3", "", count > marks.length ? `${formatCount(count)} marks, of which the first ${marks.length}` : `${count} marks`));
    const list = make("ol");
    marks.forEach((mark, at) => {
      const item = make("li");
      const one = this.app.names.get(this.trace, mark.id), where = mark.end ? `${one.name} at ${placeOf(one)}` : one.name;
      const button = make("button", "link", where);
      button.type = "button";
      button.dataset.mark = at;
      item.append(make("span", "note", formatMoment(mark.start_ns)), button, make("span", "note", mark.end ? `caught in ${this.became(mark)}` : ""));
      list.append(item);
    });
    box.append(list);
    return box;
  }
}
