// Marks as they lie in a page that `vestige view --html` wrote: the calls of source_http.js about them.

import { lowerBound, readNumbers } from "./embedded_data.js";

const LISTED = 50;
const ENDS = ["", "caught", "not caught", "unknown"];
const COLUMNS = 5; // gap, id, end, raised in, caught in

export class EmbeddedMarks {
  /** packed: what embed_beside.py made of them; piece(offset, length) gives their bytes. */
  constructor(packed, piece, names) {
    this.names = names;
    this.leftOut = packed.left_out;
    this.rows = packed.threads.map(([thread, exceptions, lost, count, offset, length]) => {
      const numbers = readNumbers(piece(offset, length), count * COLUMNS), times = new Float64Array(count);
      let time = 0;
      for (let at = 0; at < count; at++) times[at] = time += numbers[at * COLUMNS];
      return { thread, exceptions, lost, times, numbers, args: new Map() };
    });
    for (const [row, at, values] of packed.args) this.rows[row].args.set(at, values);
  }

  threads() {
    return { threads: this.rows.map(({ thread, times, exceptions, lost }) => [thread, times.length, exceptions, lost]), left_out: this.leftOut };
  }

  draw({ from, to, pixels, threads }) {
    return threads.map((thread) => {
      const row = this.rows.find((one) => one.thread === thread), cells = [];
      if (!row) return cells;
      for (let at = lowerBound(row.times, from); at < row.times.length && row.times[at] < to; at++) {
        const part = Math.min(pixels - 1, Math.floor(((row.times[at] - from) / (to - from)) * pixels));
        if (cells[cells.length - 1]?.[0] !== part) cells.push([part, 0, 0, 0, row.numbers[at * COLUMNS + 1]]);
        const cell = cells[cells.length - 1], end = row.numbers[at * COLUMNS + 2];
        cell[1]++;
        cell[2] += end ? 1 : 0;
        cell[3] += end === 2 ? 1 : 0;
      }
      return cells;
    });
  }

  /** callAt(thread, time, id) finds the call around a mark. */
  between(thread, from, to, callAt) {
    const row = this.rows.find((one) => one.thread === thread);
    if (!row) return { count: 0, marks: [] };
    const first = lowerBound(row.times, from), count = Math.max(0, lowerBound(row.times, to) - first);
    const marks = [];
    for (let at = first; at < first + Math.min(count, LISTED); at++) marks.push(this.describe(row, at, callAt));
    return { count, marks };
  }

  describe(row, at, callAt) {
    const [id, end, raisedIn, caughtIn] = row.numbers.subarray(at * COLUMNS + 1, (at + 1) * COLUMNS);
    const [, name, file, line] = this.names[id] ?? [5, "", null, 0];
    return {
      thread: row.thread, time_ns: row.times[at], id, name, file, line, end: ENDS[end] ?? "unknown",
      raised_in: raisedIn, caught_in: caughtIn, args: row.args.get(at) ?? null, call: callAt(row.thread, row.times[at], raisedIn),
    };
  }

  /** Adds to each part how many with these ids it has; returns how many there are. */
  find(wanted, from, to, counts) {
    let total = 0;
    for (const { times, numbers } of this.rows) {
      for (let at = lowerBound(times, from); at < times.length && times[at] < to; at++) {
        if (!wanted.has(numbers[at * COLUMNS + 1])) continue;
        counts[Math.min(counts.length - 1, Math.floor(((times[at] - from) / (to - from)) * counts.length))]++;
        total++;
      }
    }
    return total;
  }

  next(wanted, after, back) {
    /** @type {any} */
    let best = null;
    for (const { thread, times, numbers } of this.rows) {
      const step = back ? -1 : 1;
      let at = back ? lowerBound(times, after) - 1 : lowerBound(times, after + 1);
      while (at >= 0 && at < times.length && !wanted.has(numbers[at * COLUMNS + 1])) at += step;
      if (at < 0 || at >= times.length) continue;
      if (best && (back ? times[at] <= best.start_ns : times[at] >= best.start_ns)) continue;
      best = { thread, depth: 0, start_ns: times[at], end_ns: times[at], id: numbers[at * COLUMNS + 1], mark: true };
    }
    return best;
  }
}
