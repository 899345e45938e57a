// Marks: exceptions, and instants that the program marks itself. A thread with marks has a strip above its rows. Marks
// that are too close for separate symbols are drawn as a bar: the more marks, the higher. There are instants,
// exceptions, and exceptions that nobody caught.

import { toCss } from "./theme.js";
import { placeOf } from "./names.js";
import { formatCount, formatMoment } from "./units.js";

export const STRIP = 13; // CSS pixels above the rows of a thread
const CELL = 5; // marks within so many CSS pixels are drawn as one
const NEAR = 5; // a mark within so many CSS pixels of the pointer is hit
const INSTANTS = 0, NOT_CAUGHT = 2; // rows of a lane, see src/view/lanes_marks.c; 1: exceptions

export class Marks {
  constructor(app) {
    this.app = app;
  }

  /** Fetches which threads of a trace have marks. */
  async load({ trace, marks }) {
    const { lanes, timeline, stage } = this.app;
    const found = marks ? (await lanes.load(trace, "marks")).lanes : [];
    if (!found.length) return;
    timeline.setMarks(trace, new Set(found.map(({ thread }) => thread)));
    stage.arranged();
  }

  /** The number of parts of the shown width in which marks are drawn separately. */
  get pixels() {
    return Math.max(1, Math.round(this.app.stage.width / CELL));
  }

  /** Calls fn(x, row, data, rect) for each visible rectangle of a track; x is its middle. */
  each(track, fn) {
    const { trace } = track.trace, { stage, lanes } = this.app, { exact, wide } = lanes.windows.get("marks").of(trace);
    const data = exact ?? wide, lane = lanes.ofThread("marks", trace, track.thread.number)?.lane;
    for (const [row, first, count] of data?.threads.get(lane) ?? []) {
      for (let rect = first; rect < first + count; rect++) {
        const x = stage.x((data.start(rect) + data.end(rect)) / 2);
        if (x >= -CELL && x <= stage.width + CELL) fn(x, row, data, rect);
      }
    }
  }

  draw(context, track, y, ratio, css, matches) {
    const found = matches?.get(track.trace.trace);
    const colours = [toCss(css.annotation), toCss(css.raised)];
    context.save();
    context.scale(ratio, ratio);
    this.each(track, (x, row, data, rect) => {
      const count = data.count(rect);
      context.globalAlpha = matches && !found?.has(data.id(rect)) ? 0.25 : 1;
      context.fillStyle = colours[row === INSTANTS ? 0 : 1];
      if (count > 1) this.drawBar(context, x, y, count);
      else if (row === INSTANTS) this.drawInstant(context, x, y);
      else this.drawException(context, x, y);
      if (row === NOT_CAUGHT) context.fillRect(x - 3.5, y, 7, 1.5); // nobody caught the exception
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

  /** Returns the mark at a place of a thread's strip, with all marks that share its symbol; or null. */
  hit(track, at) {
    const near = [];
    this.each(track, (x, row, data, rect) => near.push({ away: Math.abs(x - at), x, row, data, rect }));
    const best = near.sort((a, b) => a.away - b.away)[0];
    if (!best || best.away > NEAR) return null;
    const place = { trace: track.trace.trace, thread: track.thread.number, depth: 0, kind: "marks", rect: 0, start: Infinity, end: 0, count: 0, exceptions: 0, lost: 0, id: best.data.id(best.rect) };
    for (const { row, data, rect } of near.filter((one) => Math.abs(one.x - best.x) < CELL / 2)) {
      const count = data.count(rect);
      place.count += count;
      place.exceptions += row === INSTANTS ? 0 : count;
      place.lost += row === NOT_CAUGHT ? count : 0;
      place.start = Math.min(place.start, data.start(rect) - data.scale); // places are only as exact as the window
      place.end = Math.max(place.end, data.end(rect) + data.scale + 1);
    }
    return place;
  }

  tipOf({ trace, id, count, exceptions, lost, start }) {
    const one = this.app.names.get(trace, id);
    const when = `at ${formatMoment(Math.max(0, start))}`;
    if (count === 1) {
      const what = !exceptions ? "an instant" : lost ? "an exception that nobody caught" : "an exception";
      return { title: one.name, lines: [what, exceptions ? `raised at ${placeOf(one)}` : "", when, "Click for more."] };
    }
    const kinds = [exceptions && `${formatCount(exceptions)} exceptions`, lost && `${formatCount(lost)} not caught`, count > exceptions && `${formatCount(count - exceptions)} instants`];
    return { title: `${formatCount(count)} marks, the first ${one.name}`, lines: [kinds.filter(Boolean).join(", "), when, "Click to list them, zoom in to see each of them."] };
  }
}
