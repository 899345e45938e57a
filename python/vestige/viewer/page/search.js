// Search: names that match, in all traces. Matching spans stand out, other spans fade, the ruler shows where matches
// are, and n and N go from match to match in order of time. A text matches anywhere and ignores case; /…/ is a regular
// expression.

import { element } from "./elements.js";
import { formatCount } from "./units.js";

const WAIT = 150;

export class Search {
  constructor(app) {
    this.app = app;
    this.query = element("query", HTMLInputElement);
    this.output = element("matches");
    this.buttons = { next: element("next", HTMLButtonElement), previous: element("previous", HTMLButtonElement) };
    this.ids = null; // trace -> Set of ids; null: no search
    this.functions = new Set();
    this.at = null; // the last visited match
    /** @type {number | undefined} */
    this.timer = undefined; // waits until typing stops
    this.query.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.run(), WAIT);
    });
    element("search").addEventListener("submit", (event) => event.preventDefault());
    this.query.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.go(event.shiftKey);
      if (event.key === "Escape") {
        this.query.value = "";
        this.run();
        element("rows").focus();
      }
      event.stopPropagation();
    });
    this.buttons.next.addEventListener("click", () => this.go(false));
    this.buttons.previous.addEventListener("click", () => this.go(true));
  }

  run() {
    clearTimeout(this.timer);
    const text = this.query.value.trim();
    const test = matcher(text);
    this.ids = null;
    this.functions = new Set();
    this.at = null;
    this.query.setAttribute("aria-invalid", String(test === undefined));
    if (test) {
      this.ids = new Map();
      for (const { trace } of this.app.info.traces) {
        const found = new Set();
        this.app.names.table(trace).forEach((one, id) => {
          if (!one || !test(one.name)) return;
          found.add(id);
          this.functions.add(one.index);
        });
        this.ids.set(trace, found);
      }
    }
    const any = this.functions.size > 0;
    this.buttons.next.disabled = this.buttons.previous.disabled = !any;
    this.output.textContent = test === undefined ? "invalid pattern" : !test ? "" : any ? "…" : "no match";
    this.app.matchesChanged();
    this.count();
  }

  /** Counts the matches that begin in each pixel of the shown range, and in the whole trace. */
  async count() {
    this.abort?.abort();
    if (!this.functions.size) return this.app.showMarks(null);
    const abort = (this.abort = new AbortController());
    const from = Math.max(0, Math.floor(this.app.view.from));
    const to = Math.min(Math.ceil(this.app.view.duration), Math.ceil(this.app.view.to));
    const pixels = Math.max(1, Math.round(this.app.stage.width / 2));
    if (to <= from) return;
    try {
      const answers = await Promise.all([...(this.ids ?? [])].filter(([, ids]) => ids.size)
        .map(([trace, ids]) => this.app.source.find(trace, [...ids], from, to, pixels, abort.signal)));
      const counts = new Float64Array(pixels);
      for (const answer of answers) answer.counts.forEach((count, at) => (counts[at] += count));
      const total = answers.reduce((sum, answer) => sum + answer.total, 0);
      this.output.textContent = `${formatCount(total)} here`;
      this.output.title = `${formatCount(total)} spans, marks and activities of ${formatCount(this.functions.size)} names begin in the shown range`;
      this.app.showMarks({ from, to, counts });
    } catch (error) {
      if (error.name !== "AbortError") this.output.textContent = "";
    }
  }

  /** Goes to the next match after the last visited match, or else after the left edge; wraps around. */
  async go(back) {
    if (this.timer && this.query.value.trim() && !this.ids) this.run();
    if (!this.functions.size) return;
    const { view } = this.app;
    const start = this.at ? this.at.start_ns : back ? Math.ceil(view.to) : Math.floor(view.from) - 1;
    let found = await this.nearest(start, back);
    const around = !found;
    if (around) found = await this.nearest(back ? Math.ceil(view.duration) + 1 : -1, back);
    if (!found) return this.app.say("No match.");
    this.at = found;
    if (found.lanes === "devices") this.app.goToActivity(found.trace, found);
    else if (found.lanes) this.app.goToMark(found.trace, this.app.lanes.list(found.lanes, found.trace)[found.lane].thread, found.start_ns);
    else this.app.goTo(found.trace, found.thread, found.depth, found.start_ns, found.end_ns, found.id);
    if (around) this.app.say(back ? "Continued from the end." : "Continued from the beginning.");
  }

  async nearest(after, back) {
    const answers = await Promise.all([...(this.ids ?? [])].filter(([, ids]) => ids.size).map(async ([trace, ids]) => {
      const found = await this.app.source.next(trace, [...ids], after, back);
      return found && { ...found, trace };
    }));
    return answers.filter(Boolean).sort((a, b) => (back ? b.start_ns - a.start_ns : a.start_ns - b.start_ns))[0] ?? null;
  }
}

/** Returns a test for names; null for an empty text, undefined for an invalid expression. */
function matcher(text) {
  if (!text) return null;
  const pattern = text.match(/^\/(.+)\/([a-z]*)$/);
  if (pattern) {
    try {
      const expression = new RegExp(pattern[1], pattern[2].includes("i") ? "i" : "");
      return (name) => expression.test(name);
    } catch {
      return undefined;
    }
  }
  const low = text.toLowerCase();
  return (name) => name.toLowerCase().includes(low);
}
