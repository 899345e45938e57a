// Holds the shown range of time, the selected range and the selected span. Draws nothing; each change
// dispatches an event.

const NARROWEST = 40; // the least width in ns
const PAUSE = 700; // ms without a change, after which the next change is a separate step for undo

export class View extends EventTarget {
  constructor(duration) {
    super();
    this.duration = Math.max(duration, 1);
    this.least = this.most = 0;
    this.extend(this.duration);
    this.from = this.least;
    this.to = this.most;
    this.range = null; // {from, to}: selected by shift-drag
    this.span = null; // the selected span: {trace, thread, depth, start, end, id}
    this.past = [];
    this.moved = -Infinity;
  }

  /** Call when the trace has become longer. */
  extend(duration) {
    const air = duration * 0.01;
    this.duration = duration;
    this.least = -air;
    this.most = duration + air;
  }

  get width() {
    return this.to - this.from;
  }

  notify(what) {
    this.dispatchEvent(new Event(what));
  }

  show(from, to, { step = false, remember = true } = {}) {
    const width = Math.min(Math.max(to - from, NARROWEST), this.most - this.least);
    const middle = (from + to) / 2;
    let start = to - from === width ? from : middle - width / 2;
    start = Math.min(Math.max(start, this.least), this.most - width);
    if (start === this.from && start + width === this.to) return;
    const now = performance.now();
    if (remember && (step || now - this.moved > PAUSE)) {
      this.past.push([this.from, this.to]);
      if (this.past.length > 200) this.past.shift();
    }
    this.moved = step ? -Infinity : now;
    this.from = start;
    this.to = start + width;
    this.notify("move");
  }

  /** Zooms in if factor < 1; the time `at` (ns) keeps its place. */
  zoom(factor, at, options) {
    const width = Math.min(Math.max(this.width * factor, NARROWEST), this.most - this.least);
    const share = (at - this.from) / this.width;
    const from = at - share * width;
    this.show(from, from + width, options);
  }

  pan(ns, options) {
    const by = Math.min(Math.max(ns, this.least - this.from), this.most - this.to);
    this.show(this.from + by, this.to + by, options);
  }

  reset() {
    this.show(this.least, this.most, { step: true });
  }

  undo() {
    const last = this.past.pop();
    if (last) this.show(last[0], last[1], { step: true, remember: false });
  }

  /** Zooms to the selected range, else the selected span, else shows everything. */
  fit() {
    const target = this.range ?? (this.span && { from: this.span.start, to: this.span.end });
    if (!target) return this.reset();
    // a mark has no length
    const least = this.span?.kind === "marks" && !this.range ? this.width * 0.05 : NARROWEST / 4;
    const air = Math.max((target.to - target.from) * (this.range ? 0 : 0.05), least);
    this.show(target.from - air, target.to + air, { step: true });
  }

  selectRange(range) {
    this.range = range && range.to - range.from >= 1 ? range : null;
    this.notify("range");
  }

  selectSpan(span) {
    this.span = span;
    this.notify("span");
  }

  /** Selects a range and shows it, with air on both sides. */
  begin(from, to) {
    const air = (to - from) * 0.1;
    this.selectRange({ from, to });
    this.show(from - air, to + air, { step: true });
  }

  /** Moves as little as possible to make a span visible. */
  reveal(start, end) {
    if (start === end) return start < this.from || start > this.to ? this.show(start - this.width / 2, start + this.width / 2, { step: true }) : undefined;
    const inside = end > this.from && start < this.to;
    const wide = end - start > this.width * 0.01;
    if (inside && wide && (start >= this.from || end <= this.to)) return;
    if (inside && start >= this.from && end <= this.to) return;
    const width = Math.min(this.width, Math.max((end - start) * 8, NARROWEST));
    const middle = (start + Math.min(end, start + width)) / 2;
    this.show(middle - width / 2, middle + width / 2, { step: true });
  }

  /** The range for flame graphs and exports: the selected range, else the shown range, in whole ns within the trace. */
  scope() {
    const { from, to } = this.range ?? this;
    const start = Math.max(0, Math.floor(from));
    return { from: start, to: Math.max(start + 1, Math.min(Math.ceil(this.duration), Math.ceil(to))) };
  }

  isWhole() {
    const { from, to } = this.scope();
    return from <= 0 && to >= Math.ceil(this.duration);
  }
}
