// Marks: exceptions, and instants that the program marks itself. A thread that has any gets a strip above its rows. Marks
// that are too close to be told apart are drawn as one bar, the higher the more they are.

import { toCss } from "./theme.js";
import { placeOf } from "./names.js";
import { formatCount, formatMoment } from "./units.js";

export const STRIP = 13; // CSS pixels above the rows of a thread
const CELL = 5; // CSS pixels that share a mark
const NEAR = 5; // CSS pixels from the pointer within which a mark is taken
const STILL = 40; // ms without a move before marks are fetched
const MARGIN = 0.5; // of what is shown, on each side

export class Marks {
  constructor(app) {
    this.app = app;
    this.held = new Map(); // trace -> {from, to, parts, threads: thread -> cells}
    this.busy = 0;
    /** @type {number | undefined} */ this.later = undefined;
  }

  /** Asks which threads of a trace have any. */
  async load({ trace, marks }) {
    const { source, timeline, stage, banners } = this.app;
    if (!marks) return;
    const { threads, left_out: leftOut } = await source.marks(trace);
    if (leftOut) banners.show(`marks${trace}`, `${formatCount(leftOut)} marks of exceptions and instants are not shown: there are too many.`);
    if (!threads.length) return;
    timeline.setMarks(trace, new Map(threads.map(([thread, ...counts]) => [thread, counts])));
    stage.arranged();
  }

  /** What is in sight now: [{trace, threads}]. */
  want(wishes) {
    this.wishes = wishes.filter((wish) => wish.threads.length);
    clearTimeout(this.later);
    this.later = this.wishes.length ? setTimeout(() => this.fetch(), STILL) : undefined;
  }

  async fetch() {
    const { view, stage, source } = this.app;
    this.later = undefined;
    this.abort?.abort();
    const { signal } = (this.abort = new AbortController());
    const margin = view.width * MARGIN;
    const from = Math.max(0, Math.floor(view.from - margin)), to = Math.min(Math.ceil(view.duration), Math.ceil(view.to + margin)) + 1;
    const pixels = Math.max(1, Math.min(1 << 14, Math.round(((to - from) / view.width) * stage.width / CELL)));
    this.busy++;
    for (const { trace, threads } of this.wishes ?? []) {
      try {
        const drawn = await source.drawMarks({ trace, from, to, pixels, threads }, signal);
        if (signal.aborted) break;
        this.held.set(trace, { from, to, pixels, threads: new Map(threads.map((thread, at) => [thread, drawn[at]])) });
      } catch { /* only a help: the next wish asks again */ }
    }
    this.busy--;
    stage.invalidate();
  }

  get settled() {
    return !this.busy && this.later === undefined;
  }

  /** Calls fn(x, cell) for each cell of a track that is in sight; x is its middle. */
  each(track, fn) {
    const held = this.held.get(track.trace.trace), { stage } = this.app;
    const length = held ? (held.to - held.from) / held.pixels : 0;
    for (const cell of held?.threads.get(track.thread.number) ?? []) {
      const x = stage.x(held.from + (cell[0] + 0.5) * length);
      if (x >= -CELL && x <= stage.width + CELL) fn(x, cell, held.from + cell[0] * length, held.from + (cell[0] + 1) * length);
    }
  }

  draw(context, track, y, ratio, css, matches) {
    const found = matches?.get(track.trace.trace);
    const colours = [toCss(css.annotation), toCss(css.raised)];
    context.save();
    context.scale(ratio, ratio);
    this.each(track, (x, [, count, exceptions, lost, id]) => {
      context.globalAlpha = matches && !found?.has(id) ? 0.25 : 1;
      context.fillStyle = colours[exceptions ? 1 : 0];
      if (count > 1) this.drawBar(context, x, y, count);
      else if (exceptions) this.drawException(context, x, y);
      else this.drawInstant(context, x, y);
      if (lost) context.fillRect(x - 3.5, y, 7, 1.5); // nobody caught it
    });
    context.restore();
  }

  drawBar(context, x, y, count) {
    const height = Math.min(STRIP - 2, 4 + 1.5 * Math.log2(count));
    context.fillRect(x - (CELL - 1) / 2, y + STRIP - 1 - height, CELL - 1, height);
  }

  drawException(context, x, y) {
    context.beginPath();
    context.moveTo(x - 4, y + 3);
    context.lineTo(x + 4, y + 3);
    context.lineTo(x, y + STRIP - 1);
    context.fill();
  }

  drawInstant(context, x, y) {
    context.beginPath();
    context.moveTo(x, y + 3);
    context.lineTo(x + 3.5, y + 7.5);
    context.lineTo(x, y + STRIP - 1);
    context.lineTo(x - 3.5, y + 7.5);
    context.fill();
  }

  /** The mark at a place of a thread's strip, or null. */
  hit(track, at) {
    /** @type {any} */
    let best = null, nearest = NEAR;
    this.each(track, (x, [, count, exceptions, lost, id], start, end) => {
      if (Math.abs(x - at) > nearest) return;
      nearest = Math.abs(x - at);
      best = { trace: track.trace.trace, thread: track.thread.number, depth: 0, isMark: true, rect: 0, start, end, time: start, count, exceptions, lost, id };
    });
    return best;
  }

  tipOf({ trace, id, count, exceptions, lost, start }) {
    const one = this.app.names.get(trace, id);
    const when = `at ${formatMoment(Math.max(0, start))}`;
    if (count === 1) {
      const what = !exceptions ? "an instant" : lost ? "an exception that nobody caught" : "an exception";
      return { title: one.name, lines: [what, exceptions ? `raised at ${placeOf(one)}` : "", when, "Click for more."] };
    }
    const kinds = [exceptions && `${formatCount(exceptions)} exceptions`, lost && `${formatCount(lost)} not caught`, count > exceptions && `${formatCount(count - exceptions)} instants`];
    return { title: `${formatCount(count)} marks, the first ${one.name}`, lines: [kinds.filter(Boolean).join(", "), when, "Click to list them, zoom in to tell them apart."] };
  }
}
