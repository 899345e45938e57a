// The lanes of devices as they lie in a page that `vestige view --html` wrote: the calls of source_http.js about them.
// Lanes are numbered as the server numbers them; activities by lane, row and time, of those that the page has.

import { lowerBound, mergeRow, readNumbers } from "./embedded_data.js";
import { packWindow } from "./window_data.js";

const FIELDS = ["starts", "ends", "words", "kind", "device", "context", "bytes", "launch", "op", "annotation", "text", "correlation", "external"];
const ON_THREAD = 5; // kinds from this one on
const COPY = 2, SET = 3;
const LAUNCHED_MOST = 200;

export class EmbeddedDevices {
  constructor(packed, piece, names) {
    this.told = { devices: packed.devices, lanes: packed.lanes, left_out: packed.left_out };
    this.kinds = packed.kinds;
    this.texts = packed.texts;
    this.names = names;
    this.rows = packed.rows.map((row) => readRow(row, piece));
    this.launched = new Map(); // number of a call -> [row, at] of what came from it
    for (const row of this.rows) row.launch.forEach((call, at) => call && this.listOf(call - 1).push([row, at]));
  }

  listOf(call) {
    if (!this.launched.has(call)) this.launched.set(call, []);
    return this.launched.get(call);
  }

  list() {
    return { ...this.told, lanes: this.told.lanes.map((lane) => ({ ...lane })) };
  }

  window({ from, to, pixels, threads }) {
    const asked = new Set(threads), finest = (to - from) / pixels;
    const drawn = this.rows.filter((row) => asked.has(row.lane)).map((row) => [row.lane, row.row, mergeRow(row, from, to, finest)]);
    return packWindow(from, to, 0, drawn.filter((row) => row[2].length));
  }

  at(lane, number, time, callAt) {
    const row = this.rows.find((one) => one.lane === lane && one.row === number);
    const at = row ? lowerBound(row.starts, time + 0.5) - 1 : -1;
    if (at < 0 || row.ends[at] < time) return null;
    const call = row.launch[at] ? this.place(row.launch[at] - 1) : null;
    const [made, place] = call ?? [row, at], launched = this.launched.get(row.first + at) ?? [];
    const { thread } = this.told.lanes[made.lane], start = made.starts[place];
    const cause = (id) => (id ? this.causeOf(id, thread, start, callAt) : null);
    return {
      ...this.describe(row, at),
      launch: call && { ...this.brief(...call), thread },
      launched: launched.slice(0, LAUNCHED_MOST).map(([one, which]) => this.brief(one, which)), launched_count: launched.length,
      op: cause(row.op[at]), annotation: cause(row.annotation[at]),
    };
  }

  /** The row of an activity, and where it is there. */
  place(number) {
    const row = this.rows.findLast((one) => one.first <= number);
    return row && number < row.first + row.starts.length ? [row, number - row.first] : null;
  }

  brief(row, at) {
    const id = row.words[at];
    return { lane: row.lane, row: row.row, id, name: this.names[id]?.[1] ?? "", start_ns: row.starts[at], end_ns: row.ends[at] };
  }

  describe(row, at) {
    const kind = row.kind[at], length = row.ends[at] - row.starts[at], isCopied = kind === COPY || kind === SET;
    return {
      ...this.brief(row, at), kind: this.kinds[kind] ?? "?", device: kind >= ON_THREAD ? 0 : row.device[at],
      context: row.context[at], stream: this.told.lanes[row.lane].stream,
      correlation: String(row.correlation[at]), external: row.external[at] ? String(row.external[at]) : null, args: this.texts[row.text[at]] ?? {},
      bytes: isCopied ? row.bytes[at] : null, bandwidth: isCopied ? (length > 0 ? row.bytes[at] / length : 0) : null,
    };
  }

  causeOf(id, thread, time, callAt) {
    const call = thread ? callAt(thread, time, id) : null;
    return { id, name: this.names[id]?.[1] ?? "", thread, call: call?.id === id ? call : null };
  }

  find(wanted, from, to, counts) {
    let total = 0;
    for (const { starts, words } of this.rows) {
      for (let at = lowerBound(starts, from); at < starts.length && starts[at] < to; at++) {
        if (!wanted.has(words[at])) continue;
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
      while (at >= 0 && at < row.starts.length && !wanted.has(row.words[at])) at += back ? -1 : 1;
      if (at < 0 || at >= row.starts.length) continue;
      if (best && (back ? row.starts[at] <= best.start_ns : row.starts[at] >= best.start_ns)) continue;
      best = { ...this.brief(row, at), depth: row.row, device: true };
    }
    return best;
  }
}

/** The columns of a row's activities; times are since the start before, and lengths. */
function readRow([lane, row, first, count, offset, length], piece) {
  const numbers = readNumbers(piece(offset, length), count * FIELDS.length);
  /** @type {any} */
  const columns = Object.fromEntries(FIELDS.map((name, field) => [name, Float64Array.from({ length: count }, (_, at) => numbers[at * FIELDS.length + field])]));
  for (let at = 0, time = 0; at < count; at++) {
    time = columns.starts[at] += time;
    columns.ends[at] += time;
  }
  return { lane, row, first, ...columns };
}
