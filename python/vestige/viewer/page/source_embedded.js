// The trace as it lies in a page that `vestige view --html` wrote: the calls of source_http.js, answered here.

import { lowerBound, mergeRow, readData } from "./embedded_data.js";
import { EmbeddedLanes } from "./embedded_lanes.js";
import { packWindow } from "./window_data.js";

const RECTS_MOST = 20000;
const SEARCHED = ["devices", "marks"]; // kinds of lanes

export class EmbeddedSource {
  constructor(text) {
    this.canExport = false;
    this.data = readData(text);
    this.beside = new Map(); // of what lies beside spans, what was asked for
  }

  /** The lanes of a kind, read when somebody asks first; null: there are none. */
  async lanesOf(trace, kind) {
    const { lanes, piece } = (await this.data).traces[trace], key = `${kind}${trace}`;
    if (lanes[kind] && !this.beside.has(key)) this.beside.set(key, new EmbeddedLanes(lanes[kind], piece));
    return this.beside.get(key) ?? null;
  }

  async lanes(trace, kind, first = undefined, count = undefined) {
    return (await this.lanesOf(trace, kind))?.list(first, count) ?? { lanes: [], left_out: [0, 0] };
  }

  async laneWindow(wish) {
    return (await this.lanesOf(wish.trace, wish.kind)).window(wish);
  }

  async laneAt(trace, kind, lane, row, time) {
    return (await this.lanesOf(trace, kind)).at(lane, row, Math.floor(time));
  }

  async laneBetween(trace, kind, lanes, from, to, most) {
    return (await this.lanesOf(trace, kind)).between(lanes, from, to, most);
  }

  async callAt(trace, thread, time, id) {
    return callAt((await this.data).traces[trace].byThread, thread, time, id);
  }

  async info() {
    return (await this.data).info;
  }

  async progress() {
    return { ready: true, share: 1, what: "", traces: [] };
  }

  async names(trace) {
    return (await this.data).traces[trace].names;
  }

  async rowsOf(trace, threads) {
    const { rows } = (await this.data).traces[trace];
    return threads ? rows.filter((row) => threads.includes(row.thread)) : rows;
  }

  async window({ trace, from, to, pixels, threads, depth }) {
    const rows = (await this.rowsOf(trace, threads)).filter((row) => !depth || row.depth < depth);
    for (let finest = (to - from) / pixels, level = 0; ; finest *= 2, level++) {
      const drawn = rows.map((row) => [row.thread, row.depth, mergeRow(row, from, to, finest)]);
      if (drawn.reduce((sum, row) => sum + row[2].length, 0) <= RECTS_MOST) {
        return packWindow(from, to, level, drawn.filter((row) => row[2].length));
      }
    }
  }

  async span(trace, thread, depth, time) {
    const data = (await this.data).traces[trace];
    const stack = data.byThread.get(thread);
    const row = stack?.[depth];
    const at = row ? spanAt(row, time) : -1;
    if (at < 0) return null;
    const id = row.words[at] & 0xffffff;
    const [kind, name, file, line] = data.names.names[id] ?? [2, "", null, 0];
    const memory = row.memory?.subarray(at * 2, at * 2 + 2) ?? [0, 0];
    return {
      id, kind: data.names.kinds[kind], name, file, line, depth,
      start_ns: row.starts[at], end_ns: row.ends[at], self_ns: selfTime(row, stack[depth + 1], at),
      flags: flagsOf(row.words[at]), args: row.args.get(at) ?? null,
      self_bytes: memory[0], total_bytes: memory[1], allocations: null,
      parents: row.aside ? [] : parentsOf(stack, depth, row.starts[at], data.names.names),
      source: data.sources?.[id] ?? null,
      ...(row.aside ? {} : this.timesOf(await this.lanesOf(trace, "states"), data.waits, thread, row.starts[at], row.ends[at])),
    };
  }

  /** What is known of how long a thread ran and waited in a range; nothing where that is only drawn. */
  timesOf(states, { switches, gil_waits: gil, object_waits: objects }, thread, from, to) {
    if (!states?.exact) return {};
    const lane = states.lanes.find((one) => one.thread === thread)?.lane;
    const [waiting = 0, preempted = 0, waited = 0] = lane === undefined ? [] : states.busy(lane, from, to);
    const times = switches ? { running_ns: to - from - waiting - preempted, waiting_ns: waiting, preempted_ns: preempted } : {};
    if (objects) return { ...times, object_ns: waited };
    return gil ? { ...times, gil_ns: waited } : times;
  }

  async source(trace, id) {
    return (await this.data).traces[trace].sources?.[id] ?? null;
  }

  async flame(trace, from, to, threads) {
    const tree = { rows: [], places: new Map() };
    const { byThread } = (await this.data).traces[trace];
    for (const [thread, stack] of byThread) {
      if (!threads || threads.includes(thread)) addFlame(tree, stack, from, to);
    }
    const column = (at) => tree.rows.map((row) => row[at]);
    return { rows: { parent: column(0), id: column(1), calls: column(2), self_ns: column(3), total_ns: column(4), self_bytes: column(5) }, left_out: 0 };
  }

  async find(trace, ids, from, to, pixels) {
    const wanted = new Set(ids), counts = new Array(pixels).fill(0);
    let total = 0;
    for (const row of await this.rowsOf(trace)) {
      for (let at = lowerBound(row.starts, from); at < row.starts.length && row.starts[at] < to; at++) {
        if (!wanted.has(row.words[at] & 0xffffff)) continue;
        counts[Math.min(pixels - 1, Math.floor(((row.starts[at] - from) / (to - from)) * pixels))]++;
        total++;
      }
    }
    for (const kind of SEARCHED) total += (await this.lanesOf(trace, kind))?.find(wanted, from, to, counts) ?? 0;
    return { total, counts };
  }

  async next(trace, ids, after, back) {
    const wanted = new Set(ids);
    /** @type {{thread: number, depth: number, start_ns: number, end_ns: number, id: number} | null} */
    let best = null;
    for (const row of await this.rowsOf(trace)) {
      let at = back ? lowerBound(row.starts, after) - 1 : lowerBound(row.starts, after + 1);
      const step = back ? -1 : 1;
      while (at >= 0 && at < row.starts.length && !wanted.has(row.words[at] & 0xffffff)) at += step;
      if (at < 0 || at >= row.starts.length) continue;
      const start = row.starts[at];
      if (best && (back ? start <= best.start_ns : start >= best.start_ns)) continue;
      best = { thread: row.thread, depth: row.depth, start_ns: start, end_ns: row.ends[at], id: row.words[at] & 0xffffff };
    }
    const found = await Promise.all(SEARCHED.map(async (kind) => {
      const item = (await this.lanesOf(trace, kind))?.next(wanted, after, back);
      return item && { ...item, lanes: kind };
    }));
    return [best, ...found].reduce((one, other) => nearer(one, other, back), null);
  }

  async counters(trace, from, to, pixels) {
    const { counters } = (await this.data).traces[trace];
    return counters.map(({ name, thread, unit, times, values }) => (
      { name, thread, unit, points: thin(times, values, from, to, pixels) }));
  }

  async leftOut(trace) {
    return (await this.data).traces[trace].left_out;
  }

  async losses(trace, from, to) {
    return (await this.data).traces[trace].losses.filter((one) => one.end_ns >= from && one.start_ns < to);
  }
}

/** Which of two, one of which may be missing, begins first, or last. */
function nearer(one, other, back) {
  if (!one || !other) return one ?? other ?? null;
  return (back ? other.start_ns > one.start_ns : other.start_ns < one.start_ns) ? other : one;
}

function spanAt(row, time) {
  const at = lowerBound(row.ends, time + 0.5); // ends after it
  if (at < row.starts.length && row.starts[at] <= time) return at;
  const exact = lowerBound(row.starts, time); // a span of no length
  return row.starts[exact] === time ? exact : -1;
}

/** The call of a function around a time, else the innermost there. */
function callAt(byThread, thread, time, id) {
  const stack = byThread.get(thread) ?? [];
  /** @type {any} */
  let inner = null;
  for (let depth = stack.length - 1; depth >= 0; depth--) {
    const row = stack[depth], at = row && !row.aside ? spanAt(row, time) : -1;
    if (at < 0) continue;
    const call = { id: row.words[at] & 0xffffff, depth, start_ns: row.starts[at], end_ns: row.ends[at] };
    inner ??= call;
    if (!id || call.id === id) return call;
  }
  return inner;
}

function flagsOf(word) {
  return word & (1 << 24) ? ["raised"] : [];
}

function selfTime(row, below, at) {
  let self = row.ends[at] - row.starts[at];
  if (!below || below.aside || row.aside) return self;
  for (let child = lowerBound(below.starts, row.starts[at]); child < below.starts.length; child++) {
    if (below.starts[child] >= row.ends[at]) break;
    self -= below.ends[child] - below.starts[child];
  }
  return self;
}

function parentsOf(stack, depth, time, names) {
  const parents = [];
  for (let level = 0; level < depth; level++) {
    const at = stack[level] ? spanAt(stack[level], time) : -1;
    if (at < 0) continue;
    const id = stack[level].words[at] & 0xffffff;
    parents.push({ id, name: names[id]?.[1] ?? "", depth: level, start_ns: stack[level].starts[at], end_ns: stack[level].ends[at] });
  }
  return parents;
}

/** Adds a thread's calls, clipped to the range, to the tree of calls. */
function addFlame(tree, stack, from, to) {
  /** @type {any} the row of the callers */
  let above = null;
  /** @type {number[]} its nodes, from the first one in the range */
  let aboveNodes = [];
  let aboveFirst = 0;
  for (const row of stack) {
    if (!row || row.aside) break;
    const first = lowerBound(row.ends, from);
    const nodes = [];
    let parentAt = aboveFirst;
    for (let at = first; at < row.starts.length && row.starts[at] < to; at++) {
      const length = Math.min(row.ends[at], to) - Math.max(row.starts[at], from);
      let parent = -1;
      if (above) {
        while (parentAt + 1 < above.starts.length && above.starts[parentAt + 1] <= row.starts[at]) parentAt++;
        parent = aboveNodes[parentAt - aboveFirst] ?? -1;
      }
      const node = nodeOf(tree, parent, row.words[at] & 0xffffff);
      const found = tree.rows[node];
      found[2]++;
      found[3] += length;
      found[4] += length;
      found[5] += row.memory ? row.memory[at * 2] : 0;
      if (parent >= 0) tree.rows[parent][3] -= length;
      nodes.push(node);
    }
    above = row;
    aboveNodes = nodes;
    aboveFirst = first;
  }
}

function nodeOf(tree, parent, id) {
  const key = (parent + 1) * 16777216 + id;
  let node = tree.places.get(key);
  if (node === undefined) {
    node = tree.rows.length;
    tree.rows.push([parent, id, 0, 0, 0, 0]);
    tree.places.set(key, node);
  }
  return node;
}

/** A curve's points by pixel: [pixel, least, most, last]. The value before the range stands at pixel 0. */
function thin(times, values, from, to, pixels) {
  const points = [];
  let at = lowerBound(times, from);
  if (at > 0) points.push([0, values[at - 1], values[at - 1], values[at - 1]]);
  for (; at < times.length && times[at] < to; at++) {
    const pixel = Math.min(pixels - 1, Math.floor(((times[at] - from) / (to - from)) * pixels));
    const last = points[points.length - 1];
    if (last && last[0] === pixel) {
      last[1] = Math.min(last[1], values[at]);
      last[2] = Math.max(last[2], values[at]);
      last[3] = values[at];
    } else points.push([pixel, values[at], values[at], values[at]]);
  }
  return points;
}
