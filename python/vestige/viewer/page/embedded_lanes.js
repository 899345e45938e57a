// Lanes of a kind as they lie in a page that `vestige view --html` wrote: what source_http.js asks the server about them. Calls
// are lanes here, too, with the numbers of their threads.

import { lowerBound } from "./embedded_data.js";
import { AWAITS, packWindow } from "./window_data.js";

const LINKED = 200;
const FULL = 65535;
const NONE = [];
const RECTS_MOST = 20000; // of a window

export class EmbeddedLanes {
  /** packed: what embed_lanes.py made of them; piece(offset, length) gives their bytes. */
  constructor({ lanes, rows, facts, texts, exact, left_out, ...more }, piece) {
    this.lanes = lanes;
    this.told = { left_out, ...more };
    this.exact = exact; // else stretches are drawn, with what is filled of them
    this.facts = facts;
    this.texts = texts;
    this.rows = rows.map(([lane, row, first, count, offset, length]) => ({ lane, row, first, ...readColumns(piece(offset, length), count) }));
    this.byLane = new Map(lanes.map(({ lane }) => [lane, []]));
    for (const row of this.rows) this.byLane.get(row.lane).push(row);
    this.linked = new Map(); // number -> those of items that came from it
    const origin = facts.findIndex(([, unit]) => unit === "origin");
    if (origin >= 0) for (const row of this.rows) row.starts.forEach((_, at) => this.link((factsOf(row, at)[origin] ?? 0) - 1, row.first + at));
  }

  link(from, to) {
    if (from < 0) return;
    if (!this.linked.has(from)) this.linked.set(from, []);
    this.linked.get(from).push(to);
  }

  list(first, count) {
    if (first !== undefined) return { lanes: this.lanes.slice(first, first + count) };
    return { lanes: this.lanes.slice(0, this.lanes[0]?.first || this.lanes.length).map((lane) => ({ ...lane })), ...this.told };
  }

  rowsOf(lane) {
    return this.byLane.get(lane) ?? [];
  }

  /** Rows up to `depth`, all if it is 0; merged further where there would be too many rectangles. */
  window({ from, to, pixels, threads = [...this.byLane.keys()], depth = 0 }) {
    const rows = threads.flatMap((lane) => this.rowsOf(lane)).filter((row) => !depth || row.row < depth);
    for (let finest = (to - from) / pixels, level = 0; ; finest *= 2, level++) {
      const drawn = rows.map((row) => [row.lane, row.row, draw(row, from, to, finest)]);
      if (drawn.reduce((sum, row) => sum + row[2].length, 0) <= RECTS_MOST) {
        return packWindow(from, to, level, drawn.filter((row) => row[2].length));
      }
    }
  }

  /** What a row shows at a time: its columns and the place there, or null. */
  find(lane, number, time) {
    const row = this.rowsOf(lane)[number], at = row ? lastUpTo(row, time) : -1;
    return at >= 0 && row.ends[at] >= time ? { row, at } : null;
  }

  at(lane, number, time) {
    const found = this.find(lane, number, time);
    return found && this.withLinks(this.describe(found.row, found.at));
  }

  /** The item, those that its facts name, and those that came from it. */
  withLinks(told) {
    for (const [name, unit] of this.facts) if (unit === "item" || unit === "origin") told[name] = told[name] ? this.item(told[name] - 1) : null;
    const linked = this.linked.get(told.number) ?? [];
    return { ...told, linked: linked.slice(0, LINKED).map((number) => this.item(number)), linked_count: linked.length };
  }

  item(number) {
    const row = this.rows.findLast((one) => one.first <= number);
    return row && number < row.first + row.starts.length ? this.describe(row, number - row.first) : null;
  }

  between(lanes, from, to, most) {
    let count = 0;
    const items = lanes.flatMap((lane) => this.rowsOf(lane)).flatMap((row) => {
      const found = [];
      for (let at = lowerBound(row.starts, from), own = 0; at < row.starts.length && row.starts[at] < to; at++) {
        if (!row.counts[at]) continue;
        count++;
        if (own++ < most) found.push(this.describe(row, at));
      }
      return found;
    });
    return { count, items: items.sort((a, b) => a.start_ns - b.start_ns).slice(0, most) };
  }

  describe(row, at) {
    const told = { number: row.first + at, lane: row.lane, row: row.row, start_ns: row.starts[at], end_ns: row.ends[at], id: row.words[at] & 0xffffff };
    const values = factsOf(row, at);
    this.facts.forEach(([name, unit], fact) => {
      const value = values[fact] ?? 0;
      told[name] = unit === "text" ? this.texts[value] ?? {} : value;
    });
    return told;
  }

  /** How much of a range each row of a lane covers. */
  busy(lane, from, to) {
    return this.rowsOf(lane).map((row) => covered(row, from, to));
  }

  /** Adds to each part how many with these ids it has; returns how many there are. */
  count(wanted, from, to, counts) {
    let total = 0;
    for (const { starts, words } of this.rows) {
      for (let at = lowerBound(starts, from); at < starts.length && starts[at] < to; at++) {
        if (!wanted.has(words[at] & 0xffffff)) continue;
        counts[Math.min(counts.length - 1, Math.floor(((starts[at] - from) / (to - from)) * counts.length))]++;
        total++;
      }
    }
    return total;
  }

  next(wanted, after, back) {
    /** @type {any} */
    let best = null;
    for (const row of this.rows) {
      let at = back ? lowerBound(row.starts, after) - 1 : lowerBound(row.starts, after + 0.5);
      while (at >= 0 && at < row.starts.length && !wanted.has(row.words[at] & 0xffffff)) at += back ? -1 : 1;
      if (at < 0 || at >= row.starts.length) continue;
      if (best && (back ? row.starts[at] <= best.start_ns : row.starts[at] >= best.start_ns)) continue;
      best = this.describe(row, at);
    }
    return best;
  }
}

/** How much of a range a row covers. */
export function covered({ starts, ends }, from, to) {
  let sum = 0;
  for (let at = lowerBound(ends, from); at < starts.length && starts[at] < to; at++) sum += Math.max(0, Math.min(ends[at], to) - Math.max(starts[at], from));
  return sum;
}

/** The facts of an item; those behind the last of them are 0. */
export function factsOf({ bytes, places }, at) {
  if (!bytes[places[at]]) return NONE;
  const reader = new Varints(bytes, places[at]);
  return Array.from({ length: reader.next() }, () => reader.next());
}

/** The last item that begins at a time or before, or -1. */
function lastUpTo(row, time) {
  let at = lowerBound(row.starts, time + 0.5) - 1;
  while (at >= 0 && !row.counts[at]) at--;
  return at;
}

/** A row's rectangles: what is narrow and close is one run, waits that are wide enough stand between them. */
function draw(row, from, to, finest) {
  const rects = [], { starts, ends, words, busy, counts } = row;
  /** @type {any} the last rectangle */ let run = null;
  for (let at = Math.max(0, lastUpTo(row, from)); at < starts.length && starts[at] < to; at++) {
    const start = starts[at], end = ends[at], length = end - start;
    if (!counts[at] || end < from || ((words[at] & AWAITS) && length <= finest)) continue;
    if (run && length < finest && end - run[0] <= finest) addTo(run, end, words[at], busy[at] * length, counts[at], length + 1);
    else {
      const rect = [start, end, words[at], busy[at], counts[at]];
      run = length < finest ? Object.assign(rect, { busyTime: busy[at] * length, votes: length + 1 }) : null;
      rects.push(rect);
    }
  }
  return rects;
}

/** The id is the winner of a vote weighted by time. */
function addTo(run, end, word, busyTime, count, votes) {
  const left = run.votes - votes, same = (run[2] & 0xffffff) === (word & 0xffffff);
  run[2] = (same || left >= 0 ? run[2] : word) & 0xffffff;
  run.votes = same ? run.votes + votes : Math.abs(left);
  run.busyTime += busyTime;
  run[1] = end;
  run[3] = end > run[0] ? run.busyTime / (end - run[0]) : 1;
  run[4] += count;
}

/** Unsigned LEB128. Times pass 2^32, so they are added up as doubles. */
class Varints {
  constructor(bytes, place) {
    this.bytes = bytes;
    this.place = place;
  }

  next() {
    let value = 0, scale = 1, byte;
    do {
      byte = this.bytes[this.place++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    return value;
  }
}

/** Of each item the time since the one before began, its length, its id and flags, what is idle of it, its count, and how many
 * facts follow. Facts stay where they are; `places` says where. */
function readColumns(bytes, count) {
  const row = {
    bytes, places: new Uint32Array(count), starts: new Float64Array(count), ends: new Float64Array(count),
    words: new Uint32Array(count), busy: new Float32Array(count), counts: new Uint32Array(count),
  };
  const reader = new Varints(bytes, 0);
  for (let at = 0, time = 0; at < count; at++) {
    time = row.starts[at] = time + reader.next();
    row.ends[at] = time + reader.next();
    row.words[at] = reader.next();
    row.busy[at] = 1 - reader.next() / FULL;
    row.counts[at] = reader.next();
    row.places[at] = reader.place;
    for (let facts = reader.next(); facts > 0; facts--) reader.next();
  }
  return row;
}
