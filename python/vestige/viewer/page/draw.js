// Rectangles to pixels. All spans of one depth have equal height, so each row is painted as one line of pixels, which
// is then copied downwards. This makes 20,000 rectangles cheap; calls of fillRect would be too slow. Labels are drawn
// afterwards as text.

import { cutTo, differsAtEnd } from "./units.js";
import { MANY_WAIT, awaitText } from "./tasks.js";
import { ROW, foldedRow, foldedRows, hasRows, kindOf, numberOf, rowsTop } from "./timeline.js";
import { mix } from "./theme.js";
import { AWAITS, RAISED, awaitsOf } from "./window_data.js";

const FONT = 11.5;
const LABEL_LEAST = 22; // rectangles of fewer CSS pixels have no label
const FAINTEST = 0.3; // the least strength of a merged run's colour, however idle the run
const PALER = 0.6; // the share of a colour that is removed while the thread is off the processor
const AWAITING = 0.3; // the share of a colour that remains while a task waits
const GIL = 2; // the row of a lane of states in which threads wait for the GIL, see src/view/lanes_states.c
const HATCH = 7; // CSS pixels between the lines of a hatching

export class Painter {
  // resize() sets these; call it before draw().
  /** @type {number} */ ratio;
  /** @type {number} */ width;
  /** @type {number} */ height;
  /** @type {ImageData} */ image;
  /** @type {Uint32Array} */ pixels;
  /** @type {Uint32Array[]} */ lines;
  // draw() sets these for the functions that it calls.
  /** @type {number} */ back;
  /** @type {number} */ scale;
  /** @type {any[]} */ labels;

  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.widths = new Map(); // text width by letter
    this.tables = new Map(); // colours by id, of each trace
  }

  resize(width, height, ratio) {
    this.ratio = ratio;
    this.width = Math.max(1, Math.round(width * ratio));
    this.height = Math.max(1, Math.round(height * ratio));
    this.canvas.width = this.width;
    this.canvas.height = this.height;
    this.image = this.context.createImageData(this.width, this.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.lines = [0, 1, 2].map(() => new Uint32Array(this.width)); // the upper edge, middle and lower edge of a row
  }

  /** Colours are kept until the theme or the matches change. */
  forget() {
    this.tables.clear();
  }

  /** scene: {view, tracks, top, windows, lanes, names, palette, matches (trace -> Set of ids) | null, marks} */
  draw(scene) {
    const started = performance.now();
    this.scene = scene;
    this.back = scene.palette.back;
    this.pixels.fill(this.back);
    this.labels = [];
    this.scale = this.width / scene.view.width; // device pixels per ns
    for (const track of scene.tracks) if (hasRows(track)) this.drawThread(track);
    this.context.putImageData(this.image, 0, 0);
    this.drawLabels();
    this.took = performance.now() - started;
  }

  drawThread(track) {
    const trace = track.trace.trace, thread = numberOf(track);
    const { lanes, windows } = this.scene;
    const own = lanes.windows.get(kindOf(track)) ?? windows;
    this.own = track.lane?.id ?? 0;
    const table = this.table(trace);
    const height = track.folded ? foldedRow(track) : ROW;
    const last = track.folded ? foldedRows(track) : track.rows;
    for (const [data, clipLeft, clipRight] of this.partsOf(own.of(trace), thread)) {
      for (const [depth, first, count] of data.threads.get(thread) ?? []) {
        if (depth >= last) continue;
        const y = (rowsTop(track) - this.scene.top + (track.folded ? 2 : 0) + depth * height) * this.ratio;
        if (y >= this.height || y + height * this.ratio <= 0) continue;
        this.drawRow(data, first, count, table, y, height, clipLeft, clipRight, !track.folded);
      }
    }
    const states = track.type === "thread" ? lanes.ofThread("states", trace, thread) : null;
    if (!states) return;
    for (const part of this.partsOf(lanes.windows.get("states").of(trace), states.lane)) this.shade(part, states.lane, track, last * height + (track.folded ? 2 : 0));
  }

  /**
   * Returns the available data of a track, and between which device pixels each piece is drawn: [data, left, right].
   */
  partsOf({ exact, wide }, number) {
    const ready = exact && exact.asked.has(number), parts = [];
    const [left, right] = ready ? this.span(exact) : [0, 0];
    if (wide && wide.asked.has(number)) {
      if (!ready) parts.push([wide, 0, this.width]);
      else parts.push([wide, 0, Math.min(left, this.width)], [wide, Math.max(right, 0), this.width]);
    }
    if (ready) parts.push([exact, Math.max(left, 0), Math.min(right, this.width)]);
    return parts.filter(([, clipLeft, clipRight]) => clipRight > clipLeft);
  }

  /** Draws stretches off the processor paler, and hatches waits for the GIL. The background stays unchanged. */
  shade([data, clipLeft, clipRight], lane, track, height) {
    const top = Math.max(0, Math.round((rowsTop(track) - this.scene.top) * this.ratio));
    const bottom = Math.min(this.height, Math.round((rowsTop(track) - this.scene.top + height) * this.ratio));
    const step = Math.round(HATCH * this.ratio), thick = Math.max(1, Math.round(1.5 * this.ratio));
    const off = new Float32Array(this.width), gil = new Float32Array(this.width);
    for (const row of data.threads.get(lane) ?? []) this.addShares(data, row, row[0] === GIL ? gil : off);
    for (let x = clipLeft; x < clipRight; x++) {
      if (off[x] < 0.02 && gil[x] < 0.5) continue;
      for (let line = top; line < bottom; line++) {
        const place = line * this.width + x, color = this.pixels[place];
        if (color === this.back) continue;
        const hatched = gil[x] >= 0.5 && (x + line) % step < thick;
        this.pixels[place] = hatched ? mix(color, this.back, 0.15) : mix(color, this.back, 1 - PALER * Math.min(1, off[x]));
      }
    }
  }

  /** Adds to each pixel the share of the pixel that the rectangles of a row fill. */
  addShares(data, [, first, count], shares) {
    const { from } = this.scene.view;
    for (let rect = first; rect < first + count; rect++) {
      const left = (data.start(rect) - from) * this.scale, right = (data.end(rect) - from) * this.scale, busy = data.busy(rect);
      for (let x = Math.max(0, Math.floor(left)); x < Math.min(this.width, right); x++) shares[x] += (Math.min(right, x + 1) - Math.max(left, x)) * busy;
    }
  }

  span(data) {
    const { from } = this.scene.view;
    return [Math.round((data.from - from) * this.scale), Math.round((data.to - from) * this.scale)];
  }

  drawRow(data, first, count, table, y, height, clipLeft, clipRight, labelled) {
    for (const line of this.lines) line.fill(this.back, clipLeft, clipRight);
    this.paintLine(data, first, count, table, clipLeft, clipRight, labelled ? y : NaN);
    const gap = height > 4 ? Math.max(1, Math.round(this.ratio)) : 0;
    const top = Math.round(y), bottom = Math.round(y + height * this.ratio) - gap;
    const edge = height > 8 ? Math.round(2 * this.ratio) : 0;
    for (let line = Math.max(top, 0); line < Math.min(bottom, this.height); line++) {
      const from = line - top < edge ? this.lines[0] : bottom - line <= edge ? this.lines[2] : this.lines[1];
      this.pixels.set(from.subarray(clipLeft, clipRight), line * this.width + clipLeft);
    }
  }

  /** Paints the rectangles of one row into the three lines. */
  paintLine(data, first, count, table, clipLeft, clipRight, labelY) {
    const { words } = data;
    const [upper, middle, lower] = this.lines;
    const base = (data.from - this.scene.view.from) * this.scale, unit = data.scale * this.scale;
    const end = first + count;
    const least = LABEL_LEAST * this.ratio;
    for (let rect = firstVisible(words, first, end, (clipLeft - base) / unit); rect < end; rect++) {
      const at = rect * 4;
      const left = base + words[at] * unit, right = base + words[at + 1] * unit;
      if (left >= clipRight) break;
      const word = words[at + 2], id = word & 0xffffff, tail = words[at + 3], runs = tail >>> 16;
      const fill = table.fill[id] ?? table.other;
      const busy = runs > 1 ? FAINTEST + (1 - FAINTEST) * ((tail & 0xffff) / 65535) : 1;
      if (right - left < 1.5) {
        const x = Math.floor(left < clipLeft ? clipLeft : left);
        const share = Math.max(FAINTEST, Math.min(1, right - left) * busy);
        upper[x] = middle[x] = lower[x] = mix(fill, middle[x], share);
        continue;
      }
      const x0 = Math.max(Math.round(left), clipLeft);
      let x1 = Math.min(Math.round(right), clipRight);
      const ends = x1 === Math.round(right);
      if (ends && right - left >= 4) x1 -= 1;
      const awaits = (word & AWAITS) !== 0;
      const color = awaits ? mix(fill, this.back, AWAITING) : runs > 1 ? mix(fill, this.back, busy) : fill;
      middle.fill(color, x0, x1);
      upper.fill(runs === 1 && !awaits ? table.upper[id] || color : color, x0, x1);
      lower.fill(runs === 1 && !awaits ? table.lower[id] || color : color, x0, x1);
      if (awaits) { /* no grain, because nothing runs there */ } else if (runs > 1) this.grain(x0, x1, color);
      else if (word & RAISED && ends && right - left >= 6) {
        for (const line of this.lines) line.fill(table.raised, Math.max(x0, x1 - Math.round(2 * this.ratio)), x1);
      }
      if (!Number.isNaN(labelY) && x1 - x0 >= least) this.labels.push(x0, x1, labelY, awaits ? word : id, runs, table, this.own);
    }
  }

  /** Draws a run of many short spans with a fine grain, so that it does not look like one long span. */
  grain(x0, x1, color) {
    const lighter = mix(color, this.back, 0.72);
    const step = Math.max(3, Math.round(3 * this.ratio));
    for (let x = x0 + (step - (x0 % step)); x < x1; x += step) {
      this.lines[0][x] = this.lines[1][x] = this.lines[2][x] = lighter;
    }
  }

  table(trace) {
    let table = this.tables.get(trace);
    if (table) return table;
    const { names, palette, matches, css } = this.scene;
    const found = matches?.get(trace);
    const functions = names.table(trace);
    const size = functions.length;
    table = { fill: new Uint32Array(size), upper: new Uint32Array(size), lower: new Uint32Array(size), faded: new Uint8Array(size), functions };
    functions.forEach((one, id) => {
      if (!one) return;
      let fill = palette.fill(one.family, one.shade);
      const strong = css[one.family];
      if (matches && !found?.has(id)) {
        fill = mix(fill, this.back, 0.28);
        table.faded[id] = 1;
      } else if (matches) {
        fill = css.match;
        table.faded[id] = 2;
      } else if (one.family === "annotation") table.upper[id] = strong;
      else if (one.family === "operator" || one.family === "module") table.lower[id] = strong;
      table.fill[id] = fill;
    });
    table.other = palette.fill("native", 0);
    table.raised = css.raised;
    this.tables.set(trace, table);
    return table;
  }

  drawLabels() {
    const { context, labels, ratio } = this;
    context.font = `${FONT * ratio}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    const { text, faint, matchText } = this.scene;
    const pad = 4 * ratio;
    for (let at = 0; at < labels.length; at += 7) {
      const x0 = labels[at], x1 = labels[at + 1], y = labels[at + 2], word = labels[at + 3], runs = labels[at + 4], table = labels[at + 5], own = labels[at + 6];
      const id = word & 0xffffff, awaits = (word & AWAITS) !== 0;
      const one = table.functions[id];
      if (!one && !awaits) continue;
      const name = awaits ? awaitText(awaitsOf(word), id === own ? null : one?.name, runs) : runs > 1 ? `${runs >= 65535 ? "65 535+" : runs} × ${one.name}` : one.name;
      const room = x1 - x0 - 2 * pad, whole = this.shorten(name, room);
      const brief = awaitsOf(word) === MANY_WAIT ? String(runs) : id !== own && one ? one.name : "";
      const shown = awaits && whole !== name ? this.shorten(brief, room) : whole;
      if (!shown) continue;
      context.fillStyle = table.faded[id] === 1 ? faint : table.faded[id] === 2 ? matchText : text;
      context.fillText(shown, x0 + pad, y + (ROW / 2) * ratio);
    }
  }

  /** Returns as much of a text as fits. Each letter is measured once. */
  shorten(text, room) {
    const end = differsAtEnd(text), dots = this.letter("…");
    for (let at = 0, cut = -1, width = 0; at < text.length; at++) {
      if (width + dots <= room) cut = at;
      width += this.letter(text[end ? text.length - 1 - at : at]);
      if (width > room) return cut >= 2 ? cutTo(text, cut) : "";
    }
    return text;
  }

  letter(letter) {
    const key = letter + this.ratio;
    let width = this.widths.get(key);
    if (width === undefined) this.widths.set(key, (width = this.context.measureText(letter).width));
    return width;
  }
}

/** Returns the first rectangle that ends after a place (in units of the window). */
function firstVisible(words, first, end, place) {
  let low = first, high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (words[middle * 4 + 1] < place) low = middle + 1;
    else high = middle;
  }
  return low;
}
