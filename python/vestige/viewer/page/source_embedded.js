// The trace in a page that `vestige view --html` wrote. Has the methods of source_http.js, but answers without a
// server.

import { lowerBound, readData } from "./embedded_data.js";
import { covered, EmbeddedLanes, factsOf } from "./embedded_lanes.js";
import { ASIDE, OPEN_AT_END, OPEN_AT_START, RAISED } from "./window_data.js";

const SEARCHED = ["calls", "devices", "marks"]; // kinds of lanes that a search covers
/** @type {[number, string][]} */
const FLAGS = [[OPEN_AT_START, "open at start"], [OPEN_AT_END, "open at end"], [RAISED, "raised"], [ASIDE, "beside the stack"]];
const SELF_BYTES = 1; // the place of self_bytes among the facts of a call

export class EmbeddedSource {
  constructor(text) {
    this.canExport = false;
    this.data = readData(text);
    this.kinds = new Map(); // lanes that were requested
  }

  /** Returns the lanes of a kind, read on first use; null if there are none. */
  async lanesOf(trace, kind) {
    const { traces, piece } = await this.data, { lanes } = traces[trace], key = `${kind}${trace}`;
    if (lanes[kind] && !this.kinds.has(key)) this.kinds.set(key, new EmbeddedLanes(lanes[kind], piece));
    return this.kinds.get(key) ?? null;
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

  /** Returns the call of a function that is open at a time, or else the innermost open call. */
  async callAt(trace, thread, time, id) {
    const calls = await this.lanesOf(trace, "calls");
    const open = stackAt(calls, thread, time).reverse();
    return open.find((call) => id && call.id === id) ?? open[0] ?? null;
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

  async window({ trace, ...wish }) {
    return (await this.lanesOf(trace, "calls")).window(wish);
  }

  async span(trace, thread, depth, time) {
    const data = (await this.data).traces[trace], calls = await this.lanesOf(trace, "calls");
    const found = calls.find(thread, depth, time);
    if (!found) return null;
    const { row, at } = found, call = calls.describe(row, at), below = calls.rowsOf(thread)[depth + 1];
    const [kind, name, file, line] = data.names.names[call.id] ?? [2, "", null, 0];
    const aside = isAside(row), start = call.start_ns, end = call.end_ns;
    const inside = below && !aside && !isAside(below) ? covered(below, start, end) : 0;
    return {
      ...call, kind: data.names.kinds[kind], name, file, line, depth,
      self_ns: end - start - inside, flags: FLAGS.filter(([bit]) => row.words[at] & bit).map(([, flag]) => flag),
      args: Object.keys(call.args).length ? call.args : null, allocations: null,
      parents: aside ? [] : stackAt(calls, thread, start).slice(0, depth).map((one) => ({ ...one, name: data.names.names[one.id]?.[1] ?? "" })),
      source: data.sources[call.id] ?? null,
      ...(aside ? {} : this.timesOf(await this.lanesOf(trace, "states"), data.waits, thread, start, end)),
    };
  }

  /** Returns how long a thread ran and waited in a range; nothing if the page has only coarse pictures of that. */
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
    const rows = { parent: [], id: [], calls: [], self_ns: [], total_ns: [], self_bytes: [] }, places = new Map();
    const calls = await this.lanesOf(trace, "calls");
    for (const thread of threads ?? calls.byLane.keys()) addFlame(rows, places, calls.rowsOf(thread), from, to);
    return { rows, left_out: 0 };
  }

  async find(trace, ids, from, to, pixels) {
    const wanted = new Set(ids), counts = new Array(pixels).fill(0);
    let total = 0;
    for (const kind of SEARCHED) total += (await this.lanesOf(trace, kind))?.count(wanted, from, to, counts) ?? 0;
    return { total, counts };
  }

  async next(trace, ids, after, back) {
    const wanted = new Set(ids);
    const found = await Promise.all(SEARCHED.map(async (kind) => {
      const item = (await this.lanesOf(trace, kind))?.next(wanted, after, back);
      return item && (kind === "calls" ? asCall(item) : { ...item, lanes: kind });
    }));
    return found.reduce((one, other) => nearer(one, other, back), null);
  }
}

/** Returns whichever of two items begins first, or last if `back`. Either may be missing. */
function nearer(one, other, back) {
  if (!one || !other) return one ?? other ?? null;
  return (back ? other.start_ns > one.start_ns : other.start_ns < one.start_ns) ? other : one;
}

function asCall({ lane, row, id, start_ns, end_ns }) {
  return { thread: lane, depth: row, id, start_ns, end_ns };
}

function isAside({ words }) {
  return (words[0] & ASIDE) !== 0;
}

/** Returns the calls that are open in a thread at a time, outermost first. */
function stackAt(calls, thread, time) {
  const rows = calls.rowsOf(thread).filter((row) => !isAside(row));
  const found = rows.map((row) => calls.find(thread, row.row, time)).filter((one) => one !== null);
  return found.map(({ row, at }) => asCall(calls.describe(row, at)));
}

/** Adds a thread's calls, clipped to the range, to the rows of a tree. */
function addFlame(rows, places, stack, from, to) {
  let above = { starts: new Float64Array(0) }, aboveFirst = 0;
  /** @type {number[]} the rows of the callers, from the first one in the range */
  let callers = [];
  for (const row of stack) {
    if (isAside(row)) break;
    const { starts, ends, words } = row, first = lowerBound(ends, from), nodes = [];
    for (let at = first, caller = aboveFirst; at < starts.length && starts[at] < to; at++) {
      while (caller + 1 < above.starts.length && above.starts[caller + 1] <= starts[at]) caller++;
      const parent = callers[caller - aboveFirst] ?? -1, node = rowOf(rows, places, parent, words[at] & 0xffffff);
      const length = Math.min(ends[at], to) - Math.max(starts[at], from);
      rows.calls[node]++;
      rows.self_ns[node] += length;
      rows.total_ns[node] += length;
      rows.self_bytes[node] += factsOf(row, at)[SELF_BYTES] ?? 0;
      if (parent >= 0) rows.self_ns[parent] -= length;
      nodes.push(node);
    }
    [above, aboveFirst, callers] = [row, first, nodes];
  }
}

function rowOf(rows, places, parent, id) {
  const key = (parent + 1) * 16777216 + id;
  let row = places.get(key);
  if (row === undefined) {
    places.set(key, (row = rows.id.length));
    for (const column of Object.values(rows)) column.push(0);
    rows.parent[row] = parent;
    rows.id[row] = id;
  }
  return row;
}
