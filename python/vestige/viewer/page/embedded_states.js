// When threads ran, as it lies in a page that `vestige view --html` wrote. Where there were too many stretches for a page,
// these are equal parts of the time, each with the share of it.

import { lowerBound, readNumbers } from "./embedded_data.js";

const WAITS = 0, PREEMPTED = 1, GIL = 2;
const COLUMNS = 3; // gap, length, share

export class EmbeddedStates {
  constructor({ exact, kinds, switches, gil, objects }, piece) {
    this.exact = exact;
    this.switches = switches;
    this.gil = gil;
    this.objects = objects; // locks of objects and a stopped world, where there is no GIL
    this.kinds = kinds.map((rows) => new Map(rows.map(([thread, count, offset, length]) => [thread, readRow(readNumbers(piece(offset, length), count * COLUMNS), count)])));
  }

  /** For each thread in turn, a byte a pixel: what part it was off the processor; then what part it waited for the GIL. */
  draw({ from, to, pixels, threads }) {
    const bytes = new Uint8Array(threads.length * 2 * pixels), shares = new Float64Array(pixels);
    threads.forEach((thread, number) => {
      [[WAITS, PREEMPTED], [GIL]].forEach((kinds, which) => {
        shares.fill(0);
        for (const kind of kinds) addShares(shares, this.kinds[kind].get(thread), from, to);
        const start = (2 * number + which) * pixels;
        shares.forEach((share, at) => (bytes[start + at] = Math.min(255, Math.round(share))));
      });
    });
    return bytes.buffer;
  }

  /** What is known of how long a thread ran and waited in a range; nothing where it is only drawn. */
  times(thread, from, to) {
    if (!this.exact) return {};
    const [waiting, preempted, gil] = this.kinds.map((kind) => sumOf(kind.get(thread), from, to));
    const times = this.switches ? { running_ns: to - from - waiting - preempted, waiting_ns: waiting, preempted_ns: preempted } : {};
    if (this.objects) return { ...times, object_ns: gil };
    return this.gil ? { ...times, gil_ns: gil } : times;
  }
}

function readRow(numbers, count) {
  const row = { starts: new Float64Array(count), ends: new Float64Array(count), shares: new Uint8Array(count) };
  let time = 0;
  for (let at = 0; at < count; at++) {
    row.starts[at] = time + numbers[at * COLUMNS];
    time = row.ends[at] = row.starts[at] + numbers[at * COLUMNS + 1];
    row.shares[at] = numbers[at * COLUMNS + 2];
  }
  return row;
}

function addShares(shares, row, from, to) {
  if (!row) return;
  const pixel = (to - from) / shares.length;
  for (let at = lowerBound(row.ends, from); at < row.starts.length && row.starts[at] < to; at++) {
    const start = (row.starts[at] - from) / pixel, end = (row.ends[at] - from) / pixel;
    for (let x = Math.max(0, Math.floor(start)); x < shares.length && x < end; x++) {
      shares[x] += (Math.min(end, x + 1) - Math.max(start, x)) * row.shares[at];
    }
  }
}

function sumOf(row, from, to) {
  let sum = 0;
  if (!row) return sum;
  for (let at = lowerBound(row.ends, from); at < row.starts.length && row.starts[at] < to; at++) {
    sum += Math.max(0, Math.min(row.ends[at], to) - Math.max(row.starts[at], from));
  }
  return sum;
}
