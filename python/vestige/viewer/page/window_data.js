// The binary answer to a request for a window of time: rows of 16-byte rectangles. See src/view/view.h.

const MAGIC = 0x4e495756; // "VWIN"
export const RAISED = 1 << 24;
export const ASIDE = 1 << 25; // not on the stack: the span need not nest
export const OPEN_AT_START = 1 << 26;
export const OPEN_AT_END = 1 << 27;
export const AWAITS = 1 << 28; // a wait of a task: see src/view/lanes_tasks.h
const UNIT = 2 ** 32 - 1;

/** An answer, read in place. Rectangle i of a row has start, end (parts of the window), id and flags, busy, count. */
export class WindowData {
  /** `key` names the request, `asked` has its threads. */
  constructor(buffer, key, asked) {
    this.key = key;
    this.asked = asked;
    const view = new DataView(buffer);
    if (buffer.byteLength < 32 || view.getUint32(0, true) !== MAGIC) throw new Error("The answer is not a window of a trace.");
    const rows = view.getUint32(4, true), rects = view.getUint32(8, true);
    this.level = view.getUint32(12, true);
    this.from = Number(view.getBigInt64(16, true));
    this.to = Number(view.getBigInt64(24, true));
    this.words = new Uint32Array(buffer, 32 + rows * 16, rects * 4);
    this.rects = rects;
    const valuesAt = 32 + (rows + rects) * 16;
    this.values = new Float64Array(buffer.slice(valuesAt)); // three for each rectangle of a curve
    const heads = new Uint32Array(buffer, 32, rows * 4);
    this.threads = new Map(); // thread -> [[depth, first, count], …]
    for (let at = 0; at < heads.length; at += 4) {
      const found = this.threads.get(heads[at]);
      const row = [heads[at + 1], heads[at + 2], heads[at + 3]];
      if (found) found.push(row);
      else this.threads.set(heads[at], [row]);
    }
    this.scale = (this.to - this.from) / UNIT; // ns per unit
  }

  start(rect) {
    return this.from + this.words[rect * 4] * this.scale;
  }

  end(rect) {
    return this.from + this.words[rect * 4 + 1] * this.scale;
  }

  /** Returns whether a rectangle reaches an edge of the window: its span may continue outside. */
  isCut(rect) {
    return this.words[rect * 4] === 0 || this.words[rect * 4 + 1] === UNIT;
  }

  id(rect) {
    return this.words[rect * 4 + 2] & 0xffffff;
  }

  flags(rect) {
    return this.words[rect * 4 + 2] & 0xff000000;
  }

  busy(rect) {
    return (this.words[rect * 4 + 3] & 0xffff) / 65535;
  }

  count(rect) {
    return this.words[rect * 4 + 3] >>> 16;
  }

  /** Returns the least, the greatest and the last value of a rectangle of a curve. */
  valueOf(rect) {
    return this.values.subarray(rect * 3, rect * 3 + 3);
  }

  /**
   * Returns the number of the rectangle of a thread and depth that covers a time, or is at most `slack` ns away; or -1.
   */
  find(thread, depth, time, slack) {
    const row = this.threads.get(thread)?.find(([one]) => one === depth);
    if (!row) return -1;
    let low = row[1], high = row[1] + row[2] - 1;
    while (low < high) { // finds the last rectangle that begins at or before the time
      const middle = (low + high + 1) >> 1;
      if (this.start(middle) <= time) low = middle;
      else high = middle - 1;
    }
    let best = -1, nearest = slack;
    for (const rect of [low, low + 1]) {
      if (rect >= row[1] + row[2]) continue;
      const away = Math.max(this.start(rect) - time, time - this.end(rect), 0);
      if (away < nearest || away === 0) {
        best = rect;
        nearest = away;
        if (away === 0) break;
      }
    }
    return best;
  }
}

/** Returns the kind of object that a wait is for. */
export function awaitsOf(word) {
  return word >>> 29;
}

/** Builds such an answer from a page's own data. rows: [[thread, depth, [[start, end, word, busy, count, value], …]], …] */
export function packWindow(from, to, level, rows, hasValues) {
  const count = rows.reduce((sum, row) => sum + row[2].length, 0);
  const buffer = new ArrayBuffer(32 + rows.length * 16 + count * (hasValues ? 40 : 16));
  const view = new DataView(buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, rows.length, true);
  view.setUint32(8, count, true);
  view.setUint32(12, level, true);
  view.setBigInt64(16, BigInt(from), true);
  view.setBigInt64(24, BigInt(to), true);
  const words = new Uint32Array(buffer, 32);
  let at = rows.length * 4, first = 0;
  const units = UNIT / (to - from);
  rows.forEach(([thread, depth, rects], row) => {
    words.set([thread, depth, first, rects.length], row * 4);
    first += rects.length;
    for (const [start, end, word, busy, runs] of rects) {
      words[at++] = Math.max(0, Math.min(UNIT, Math.round((start - from) * units)));
      words[at++] = Math.max(0, Math.min(UNIT, Math.round((end - from) * units)));
      words[at++] = word;
      words[at++] = Math.round(busy * 65535) | (Math.min(runs, 65535) << 16);
    }
  });
  if (hasValues) new Float64Array(buffer, at * 4 + 32).set(rows.flatMap((row) => row[2].flatMap((rect) => rect[5])));
  return buffer;
}
