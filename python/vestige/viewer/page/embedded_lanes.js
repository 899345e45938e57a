// Lanes of a kind in a page that `vestige view --html` wrote. Answers the requests that source_http.js sends to the
// server. Calls are lanes here too, with the numbers of their threads.

import { lowerBound } from "./embedded_data.js";
import { AWAITS, packWindow } from "./window_data.js";

const LINKED = 200;
const FULL = 65535;
const NONE = [];
const RECTS_MOST = 20000; // the most rectangles of a window

export class EmbeddedLanes {
  /** `packed` was made by embed_lanes.py; piece(offset, length) returns bytes. */
  constructor({ lanes, rows, facts, texts, exact, left_out, ...more }, piece) {
    this.lanes = lanes;
    this.more = { left_out, ...more };
    this.exact = exact; // if false, rows hold stretches with the share that is filled, instead of items
    this.facts = facts;
    this.texts = texts;
    this.hasValues = lanes.some(({ least }) => least !== undefined);
    this.rows = rows.map(([lane, row, first, count, offset, length]) => ({ lane, row, first, ...readColumns(piece(offset, length), count, this.hasValues) }));
    this.byLane = new Map(lanes.map(({ lane }) => [lane, []]));
    for (const row of this.rows) this.byLane.get(row.lane).push(row);
    this.linked = new Map(); // number of an item -> numbers of the items that came from it
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
    return { lanes: this.lanes.slice(0, this.lanes[0]?.first || this.lanes.length).map((lane) => ({ ...lane })), ...this.more };
  }

  rowsOf(lane) {
    return this.byLane.get(lane) ?? [];
  }

  /** Returns the rows up to `depth` (0: all), merged further if there would be too many rectangles. */
  window({ from, to, pixels, threads = [...this.byLane.keys()], depth = 0 }) {
    const rows = threads.flatMap((lane) => this.rowsOf(lane)).filter((row) => !depth || row.row < depth);
    for (let finest = (to - from) / pixels, level = 0; ; finest *= 2, level++) {
      const drawn = rows.map((row) => [row.lane, row.row, draw(row, from, to, finest)]);
      if (drawn.reduce((sum, row) => sum + row[2].length, 0) <= RECTS_MOST) {
        return packWindow(from, to, level, drawn.filter((row) => row[2].length), this.hasValues);
      }
    }
  }

  /** Returns the item that a row shows at a time, as its columns and its place there; or null. */
  find(lane, number, time) {
    const row = this.rowsOf(lane)[number], at = row ? lastUpTo(row, time) : -1;
    return at >= 0 && row.ends[at] >= time ? { row, at } : null;
  }

  at(lane, number, time) {
    const found = this.find(lane, number, time);
    return found && this.withLinks(this.describe(found.row, found.at));
  }

  /** Adds the items that an item's facts name, and the items that came from it. */
  withLinks(item) {
    for (const [name, unit] of this.facts) if (unit === "item" || unit === "origin") item[name] = item[name] ? this.item(item[name] - 1) : null;
    const linked = this.linked.get(item.number) ?? [];
    return { ...item, linked: linked.slice(0, LINKED).map((number) => this.item(number)), linked_count: linked.length };
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
    const item = { number: row.first + at, lane: row.lane, row: row.row, start_ns: row.starts[at], end_ns: row.ends[at], id: row.words[at] & 0xffffff };
    const values = factsOf(row, at);
    this.facts.forEach(([name, unit], fact) => {
      const value = values[fact] ?? 0;
      item[name] = unit === "text" ? this.texts[value] ?? {} : value;
    });
    return item;
  }

  /** Returns the share of a range that each row of a lane covers. */
  busy(lane, from, to) {
    return this.rowsOf(lane).map((row) => covered(row, from, to));
  }

  /** Adds to each part the number of its items with these ids. Returns their total number. */
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

/** Returns the share of a range that a row covers. */
export function covered({ starts, ends }, from, to) {
  let sum = 0;
  for (let at = lowerBound(ends, from); at < starts.length && starts[at] < to; at++) sum += Math.max(0, Math.min(ends[at], to) - Math.max(starts[at], from));
  return sum;
}

/** Returns the facts of an item. Facts after the last are 0. */
export function factsOf({ bytes, places }, at) {
  if (!bytes[places[at]]) return NONE;
  const reader = new Varints(bytes, places[at]);
  return Array.from({ length: reader.next() }, () => reader.next());
}

/** Returns the last item that begins at or before a time, or -1. */
function lastUpTo(row, time) {
  let at = lowerBound(row.starts, time + 0.5) - 1;
  while (at >= 0 && !row.counts[at]) at--;
  return at;
}

/** Returns a row's rectangles. Narrow items that are close become one run; waits that are wide enough stay separate. */
function draw(row, from, to, finest) {
  const rects = [], { starts, ends, words, busy, counts, values } = row;
  /** @type {any} the last rectangle */ let run = null;
  for (let at = Math.max(0, lastUpTo(row, from)); at < starts.length && starts[at] < to; at++) {
    const start = starts[at], end = ends[at], length = end - start;
    if (!counts[at] || end < from || ((words[at] & AWAITS) && length <= finest)) continue;
    if (run && length < finest && end - run[0] <= finest) {
      addTo(run, end, words[at], busy[at] * length, counts[at], length + 1);
      if (values) run[5] = [Math.min(run[5][0], values[at][0]), Math.max(run[5][1], values[at][1]), values[at][2]];
    } else {
      const rect = [start, end, words[at], busy[at], counts[at], values?.[at]];
      run = length < finest ? Object.assign(rect, { busyTime: busy[at] * length, votes: length + 1 }) : null;
      rects.push(rect);
    }
  }
  return rects;
}

/** Adds an item to a run. The run's id is found by a vote weighted by time. */
function addTo(run, end, word, busyTime, count, votes) {
  const left = run.votes - votes, same = (run[2] & 0xffffff) === (word & 0xffffff);
  run[2] = (same || left >= 0 ? run[2] : word) & 0xffffff;
  run.votes = same ? run.votes + votes : Math.abs(left);
  run.busyTime += busyTime;
  run[1] = end;
  run[3] = end > run[0] ? run.busyTime / (end - run[0]) : 1;
  run[4] += count;
}

/** Reads unsigned LEB128. Sums of times exceed 2^32, so they are doubles. */
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

/** Reads the items of a row: for each item the time since the start of the item before, its length, its id and flags, its idle
 * share, its count, and the number of facts that follow. Facts are not copied; `places` says where they are. Values stand
 * behind the facts. */
function readColumns(bytes, count, hasValues) {
  const row = {
    bytes, places: new Uint32Array(count), starts: new Float64Array(count), ends: new Float64Array(count),
    words: new Uint32Array(count), busy: new Float32Array(count), counts: new Uint32Array(count),
    values: /** @type {number[][] | null} */ (hasValues ? [] : null),
  };
  const reader = new Varints(bytes, 0), view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0, time = 0; at < count; at++) {
    time = row.starts[at] = time + reader.next();
    row.ends[at] = time + reader.next();
    row.words[at] = reader.next();
    row.busy[at] = 1 - reader.next() / FULL;
    row.counts[at] = reader.next();
    row.places[at] = reader.place;
    for (let facts = reader.next(); facts > 0; facts--) reader.next();
    if (!row.values) continue;
    row.values.push([0, 8, 16].map((place) => view.getFloat64(reader.place + place, true)));
    reader.place += 24;
  }
  return row;
}
