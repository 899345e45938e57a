// The stretches in which a budget left functions out: a band along the upper edge of every thread, and a line in tips
// and details that names the functions.

import { lowerBound } from "./embedded_data.js";
import { formatCount, formatShare, formatTime } from "./units.js";

export const BAND = 4; // CSS pixels
const NAMED = 4; // functions in a line

export class LeftOut {
  constructor(app) {
    this.app = app;
    this.held = new Map(); // trace -> {starts, ends, items}
  }

  async load({ trace, left_out: some }) {
    const items = some ? await this.app.lanes.loadItems(trace, "left_out") : [];
    if (items.length) this.held.set(trace, { items, starts: items.map((one) => one.start_ns), ends: items.map((one) => one.end_ns) });
  }

  /** Calls fn(at, held) for each stretch that overlaps a range. */
  each(trace, from, to, fn) {
    const held = this.held.get(trace);
    if (!held) return;
    for (let at = lowerBound(held.ends, from); at < held.starts.length && held.starts[at] < to; at++) fn(at, held);
  }

  draw(context, track, y, ratio, color) {
    const { view, stage } = this.app;
    let from = NaN, to = NaN;
    const paint = () => context.fillRect(from, y, Math.max(to - from, 1), BAND);
    context.save();
    context.scale(ratio, ratio);
    context.fillStyle = color;
    this.each(track.trace.trace, view.from, view.to, (at, { starts, ends }) => {
      const left = Math.max(stage.x(starts[at]), -1), right = Math.min(stage.x(ends[at]), stage.width + 1);
      if (left <= to + 0.5) to = Math.max(to, right);
      else {
        if (to >= from) paint();
        [from, to] = [left, right];
      }
    });
    if (to >= from) paint();
    context.restore();
  }

  /** Returns the functions left out between two times and the share of the time, or null. */
  within(trace, from, to) {
    const found = new Set();
    let ns = 0, all = false;
    this.each(trace, from, to, (at, { items, starts, ends }) => {
      ns += Math.max(0, Math.min(to, ends[at]) - Math.max(from, starts[at]));
      const { ids = [] } = items[at].functions;
      if (ids === null) all = true;
      else for (const id of ids) found.add(id);
    });
    if (!all && !found.size) return null;
    return { ns, text: all ? "every function" : this.listed(trace, [...found]) };
  }

  listed(trace, ids) {
    const names = ids.slice(0, NAMED).map((id) => this.app.names.get(trace, id).name);
    const more = ids.length - names.length;
    return names.join(", ") + (more > 0 ? ` and ${formatCount(more)} more` : "");
  }

  /** Returns a line for the tip of a span, or "". */
  lineOf(trace, from, to) {
    const found = this.within(trace, from, to);
    return found ? `left out inside, to stay within the budget: ${found.text}` : "";
  }

  /** Returns rows for the details of a span. */
  rowsOf(trace, from, to) {
    const found = this.within(trace, from, to);
    return found ? [["Left out inside", found.text, `${formatTime(found.ns)}, ${formatShare(found.ns, to - from)} of it`]] : [];
  }
}
