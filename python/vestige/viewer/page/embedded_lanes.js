// Lanes of a kind as they lie in a page that `vestige view --html` wrote: the calls of source_http.js about them.

import { lowerBound, readNumbers } from "./embedded_data.js";
import { AWAITS, packWindow } from "./window_data.js";

const LINKED = 200;
const FULL = 65535;
const FACTS_AT = 6; // behind gap, length, word, what is idle of it, count, how many facts there are

export class EmbeddedLanes {
  /** packed: what embed_lanes.py made of them; piece(offset, length) gives their bytes. */
  constructor({ lanes, rows, facts, texts, exact, left_out, ...more }, piece) {
    this.lanes = lanes;
    this.told = { left_out, ...more };
    this.exact = exact; // else stretches are drawn, with what is filled of them
    this.facts = facts;
    this.texts = texts;
    this.rows = rows.map(([lane, row, first, count, offset, length]) => ({ lane, row, first, ...readColumns(readNumbers(piece(offset, length)), count) }));
    this.byLane = new Map(lanes.map(({ lane }) => [lane, []]));
    for (const row of this.rows) this.byLane.get(row.lane).push(row);
    this.linked = new Map(); // number -> those of items that came from it
    const origin = facts.findIndex(([, unit]) => unit === "origin");
    if (origin >= 0) for (const row of this.rows) row.starts.forEach((_, at) => this.link(factOf(row, at, origin) - 1, row.first + at));
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

  window({ from, to, pixels, threads }) {
    const finest = (to - from) / pixels;
    const drawn = threads.flatMap((lane) => this.rowsOf(lane)).map((row) => [row.lane, row.row, draw(row, from, to, finest)]);
    return packWindow(from, to, 0, drawn.filter((row) => row[2].length));
  }

  at(lane, number, time) {
    const row = this.rowsOf(lane)[number], at = row ? lastUpTo(row, time) : -1;
    return at >= 0 && row.ends[at] >= time ? this.withLinks(this.describe(row, at)) : null;
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
    this.facts.forEach(([name, unit], fact) => {
      const value = factOf(row, at, fact);
      told[name] = unit === "text" ? this.texts[value] ?? {} : value;
    });
    return told;
  }

  /** How much of a range each row of a lane covers. */
  busy(lane, from, to) {
    return this.rowsOf(lane).map(({ starts, ends }) => {
      let sum = 0;
      for (let at = lowerBound(ends, from); at < starts.length && starts[at] < to; at++) sum += Math.max(0, Math.min(ends[at], to) - Math.max(starts[at], from));
      return sum;
    });
  }

  /** Adds to each part how many with these ids it has; returns how many there are. */
  find(wanted, from, to, counts) {
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

function factOf({ numbers, places }, at, fact) {
  const place = places[at];
  return fact < numbers[place + FACTS_AT - 1] ? numbers[place + FACTS_AT + fact] : 0;
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
    else rects.push((run = Object.assign([start, end, words[at], busy[at], counts[at]], { busyTime: busy[at] * length, votes: length + 1 })));
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

/** Facts stay where they are; `places` says where each item begins. */
function readColumns(numbers, count) {
  const row = {
    numbers, places: new Uint32Array(count), starts: new Float64Array(count), ends: new Float64Array(count),
    words: new Uint32Array(count), busy: new Float32Array(count), counts: new Uint32Array(count),
  };
  for (let at = 0, place = 0, time = 0; at < count; at++) {
    row.places[at] = place;
    time = row.starts[at] = time + numbers[place];
    row.ends[at] = time + numbers[place + 1];
    row.words[at] = numbers[place + 2];
    row.busy[at] = 1 - numbers[place + 3] / FULL;
    row.counts[at] = numbers[place + 4];
    place += FACTS_AT + numbers[place + 5];
  }
  return row;
}
