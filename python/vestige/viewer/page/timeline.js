// The rows and their positions: processes, their threads with a row for each depth, their devices with a lane for each
// stream, and counters below them. Positions are CSS pixels from the top of all rows. Only rows in sight are ever
// looked at one by one.

import { STRIP } from "./marks.js";

export const ROW = 18;
const PROCESS = 26;
const THREAD_GAP = 8;
const FOLDED = 22;
const COUNTER = 46;
const MANY = 40; // with more threads than this, only the first few of each process begin unfolded
const DEEPEST = 4096;
const TALL = 2400; // about three screens; several processes that are taller begin folded
// a thread with more rows than this, and with lanes, begins with its first few rows, because the lanes are below them
const DEEP = 24;
const FIRST = 16;

export class Timeline {
  // arrange() sets these.
  /** @type {{type: string, key: string, top: number, height: number, trace: any, thread?: any, inset?: number, counter?: any, lane?: any, group?: any, rows?: number, left?: number, folded?: boolean, device?: any}[]} */
  tracks;
  /** @type {Map<string, any>} */ places;
  /** @type {number} */ height;

  constructor(traces) {
    this.traces = traces;
    this.folded = new Set(); // keys of tracks
    this.counters = new Map(); // trace -> [{lane, name, unit, thread, title}]
    this.lanes = new Map(); // trace -> groups of tasks, see tasks.js
    this.devices = new Map(); // trace -> {devices, lanes}, see devices.js
    this.marks = new Map(); // trace -> threads that have marks, see marks.js
    for (const trace of traces) { // traces that only have allocations, or no spans, come last
      trace.threads.sort((a, b) => Number(b.spans > 0) - Number(a.spans > 0));
      for (const thread of trace.threads) if (!thread.spans) this.folded.add(threadKey(trace, thread));
    }
    const all = traces.reduce((sum, trace) => sum + trace.threads.length, 0);
    for (const trace of traces) {
      trace.threads.forEach((thread, at) => {
        if (all > MANY && at >= Math.max(1, Math.floor(MANY / 4 / traces.length))) this.folded.add(threadKey(trace, thread));
      });
    }
    this.arrange();
    // shows all processes first; a click on a name unfolds one
    if (traces.length > 1 && this.height > TALL) this.toggleAll();
  }

  arrange() {
    this.tracks = [];
    this.places = new Map();
    let top = 0;
    for (const trace of this.traces) {
      const key = `p${trace.trace}`;
      top = this.add({ type: "process", key, trace, top, height: PROCESS }, 0);
      if (this.folded.has(key)) continue;
      for (const thread of trace.threads) top = this.addThread(trace, thread, top);
      top = this.addDevices(trace, top);
      for (const counter of this.counters.get(trace.trace) ?? []) {
        const counterKey = `c${trace.trace}:${counter.thread ?? ""}:${counter.name}`;
        const height = this.folded.has(counterKey) ? FOLDED : COUNTER;
        top = this.add({ type: "counter", key: counterKey, trace, counter, top, height }, 4);
      }
      top += 10;
    }
    this.height = top;
  }

  addThread(trace, thread, top) {
    const key = threadKey(trace, thread);
    const folded = this.folded.has(key);
    const all = Math.min(Math.max(thread.depth, 1), DEEPEST);
    const inset = this.marks.get(trace.trace)?.has(thread.number) ? STRIP : 0;
    const lanes = folded ? [] : (this.lanes.get(trace.trace) ?? []).filter((group) => group.thread === thread.number);
    const calls = folded ? [] : this.streams(trace.trace, (lane) => !lane.device && lane.thread === thread.number);
    const deep = lanes.length + calls.length > 0 && all > DEEP, more = deepKey(trace.trace, thread.number);
    const rows = deep && this.folded.has(more) ? FIRST : all;
    const height = inset + (folded ? FOLDED : rows * ROW);
    top = this.add({ type: "thread", key, trace, thread, top, inset, rows, folded, height }, folded || lanes.length || calls.length ? 2 : THREAD_GAP);
    if (deep) top = this.add({ type: "more", key: more, trace, thread, left: all - rows, top, height: ROW }, 2);
    for (const lane of calls) top = this.addStream(trace, lane, top);
    for (const group of lanes) top = this.addGroup(trace, group, top);
    return lanes.length || calls.length ? top + THREAD_GAP : top;
  }

  /** Returns the lanes of a trace's devices for which a test holds. */
  streams(trace, test) {
    return (this.devices.get(trace)?.lanes ?? []).filter(test);
  }

  /** Adds a group for each device. Before the groups come calls of threads that the trace does not have. */
  addDevices(trace, top) {
    for (const lane of this.streams(trace.trace, (one) => !one.device && !this.hasThread(trace, one.thread))) top = this.addStream(trace, lane, top);
    for (const device of this.devices.get(trace.trace)?.devices ?? []) {
      const key = deviceKey(trace.trace, device.number);
      top = this.add({ type: "device", key, trace, device, top, height: PROCESS }, 0);
      if (this.folded.has(key)) continue;
      for (const lane of this.streams(trace.trace, (one) => one.device === device.number)) top = this.addStream(trace, lane, top);
      top += THREAD_GAP;
    }
    return top;
  }

  hasThread(trace, number) {
    return trace.threads.some((thread) => thread.number === number);
  }

  addStream(trace, lane, top) {
    const key = streamKey(trace.trace, lane.lane), folded = this.folded.has(key);
    return this.add({ type: "stream", key, trace, lane, top, rows: lane.rows, folded, height: folded ? FOLDED : lane.rows * ROW }, 2);
  }

  /**
   * Adds a lane for all tasks of a coroutine function, if there are several, and a lane for each task if the group is
   * open.
   */
  addGroup(trace, group, top) {
    if (group.tasks > 1) top = this.addLane(trace, { number: group.lane, id: group.id, name: group.name }, group, top);
    if (group.tasks === 1 || group.open) for (const lane of group.members) top = this.addLane(trace, lane, null, top);
    return top;
  }

  addLane(trace, lane, group, top) {
    return this.add({ type: "lane", key: laneKey(trace.trace, lane.number), trace, lane, group, top, rows: 1, folded: false, height: ROW }, 0);
  }

  add(track, gap) {
    this.tracks.push(track);
    this.places.set(track.key, track);
    return track.top + track.height + gap;
  }

  /** Returns the tracks that are at least partly between two heights, in order. */
  between(top, bottom) {
    let low = 0, high = this.tracks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tracks[middle].top + this.tracks[middle].height <= top) low = middle + 1;
      else high = middle;
    }
    const found = [];
    while (low < this.tracks.length && this.tracks[low].top < bottom) found.push(this.tracks[low++]);
    return found;
  }

  at(y) {
    return this.between(y, y + 0.5).find((track) => y >= track.top) ?? null;
  }

  /** Returns the depth at a height of a thread's track, or -1. */
  depthAt(track, y) {
    const below = y - rowsTop(track);
    if (below < 0) return -1;
    if (track.folded) return Math.min(track.rows - 1, Math.floor(below / foldedRow(track)));
    const depth = Math.floor(below / ROW);
    return depth < track.rows ? depth : -1;
  }

  thread(trace, number) {
    return this.places.get(`t${trace}:${number}`) ?? null;
  }

  lane(trace, number) {
    return this.places.get(laneKey(trace, number)) ?? null;
  }

  stream(trace, number) {
    return this.places.get(streamKey(trace, number)) ?? null;
  }

  /** Returns the track of a place on the screen, or of a selected span. */
  trackOf({ trace, thread, kind = "" }) {
    return kind === "tasks" ? this.lane(trace, thread) : kind === "devices" ? this.stream(trace, thread) : this.thread(trace, thread);
  }

  toggle(key) {
    if (!this.folded.delete(key)) this.folded.add(key);
    this.arrange();
  }

  /** Folds every thread and counter, or unfolds all if none is unfolded. */
  toggleAll() {
    const keys = this.traces.flatMap((trace) => [
      ...trace.threads.map((thread) => threadKey(trace, thread)), ...this.streams(trace.trace, () => true).map((lane) => streamKey(trace.trace, lane.lane)),
    ]);
    const open = keys.some((key) => !this.folded.has(key));
    for (const key of keys) {
      if (open) this.folded.add(key);
      else this.folded.delete(key);
    }
    this.arrange();
  }

  /** Unfolds a thread down to a depth. Returns whether anything changed. */
  unfold(trace, number, depth = 0) {
    const keys = [`p${trace}`, `t${trace}:${number}`];
    if (depth >= FIRST) keys.push(deepKey(trace, number));
    const changed = keys.map((key) => this.folded.delete(key)).includes(true);
    if (changed) this.arrange();
    return changed;
  }

  /** Unfolds a lane of a device. Returns whether anything changed. */
  unfoldStream(trace, number) {
    const lane = this.streams(trace, (one) => one.lane === number)[0];
    if (!lane) return false;
    const around = lane.device ? deviceKey(trace, lane.device) : `t${trace}:${lane.thread}`;
    const changed = [`p${trace}`, around, streamKey(trace, number)].map((key) => this.folded.delete(key)).includes(true);
    if (changed) this.arrange();
    return changed;
  }

  /** Sets the devices that have activities, and all their lanes. */
  setDevices(trace, devices, lanes) {
    this.devices.set(trace, { devices, lanes });
    for (const { device, thread } of lanes) if (!device) this.folded.add(deepKey(trace, thread));
    this.arrange();
  }

  setLanes(trace, groups) {
    this.lanes.set(trace, groups);
    for (const { thread } of groups) this.folded.add(deepKey(trace, thread));
    this.arrange();
  }

  setMarks(trace, threads) {
    this.marks.set(trace, threads);
    this.arrange();
  }

  setCounters(trace, counters) {
    const times = (name) => counters.filter((one) => one.name === name).length;
    const { threads } = this.traces.find((one) => one.trace === trace);
    const title = ({ name, thread }) => (times(name) < 2 ? name
      : `${name} · ${threads.find((one) => one.number === thread)?.name ?? "process"}`);
    const listed = counters.map((one) => ({ ...one, title: title(one) }));
    if (JSON.stringify(listed) === JSON.stringify(this.counters.get(trace) ?? [])) return false;
    this.counters.set(trace, listed);
    this.arrange();
    return true;
  }
}

function threadKey(trace, thread) {
  return `t${trace.trace}:${thread.number}`;
}

/** Returns the key for folding a thread's rows after the first few. */
function deepKey(trace, number) {
  return `m${trace}:${number}`;
}

function laneKey(trace, number) {
  return `l${trace}:${number}`;
}

function deviceKey(trace, number) {
  return `d${trace}:${number}`;
}

function streamKey(trace, number) {
  return `s${trace}:${number}`;
}

/** Whether a track has rows of rectangles. */
export function hasRows({ type }) {
  return type === "thread" || type === "lane" || type === "stream";
}

/** Returns the kind of lanes that a track shows; "": calls. */
export function kindOf({ type }) {
  return type === "lane" ? "tasks" : type === "stream" ? "devices" : "";
}

/** Returns the number by which windows know a track's rows: its thread's or its lane's. */
export function numberOf(track) {
  return track.type === "lane" ? track.lane.number : track.type === "stream" ? track.lane.lane : track.thread.number;
}

/** Returns where the rows of a track begin: below the strip of its marks. */
export function rowsTop(track) {
  return track.top + (track.inset ?? 0);
}

/** Returns the height of one depth in a folded thread. */
export function foldedRow(track) {
  return Math.max(2, Math.min(6, Math.floor((FOLDED - 4) / track.rows)));
}

/** Returns how many depths a folded thread shows. */
export function foldedRows(track) {
  return Math.min(track.rows, Math.floor((FOLDED - 2) / foldedRow(track)));
}
