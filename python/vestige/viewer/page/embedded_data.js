// Reads the data that `vestige view --html` puts into a page: gzip of a container with JSON and columns of varints.

import { ASIDE } from "./window_data.js";

/** The text of the data's element to {info, traces}, each trace with rows of spans as columns. */
export async function readData(text) {
  const zipped = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([zipped]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(stream).arrayBuffer();
  const length = new DataView(bytes).getUint32(0, true);
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const base = Math.ceil((4 + length) / 8) * 8;
  return { info: json.info, traces: json.traces.map((trace) => readTrace(trace, bytes, base)) };
}

function readTrace(trace, bytes, base) {
  const rows = trace.rows.map(([thread, depth, count, offset, length], at) => {
    const row = readSpans(new Uint8Array(bytes, base + offset, length), count);
    const memory = trace.memory?.[at];
    row.memory = memory ? readNumbers(new Uint8Array(bytes, base + memory[0], memory[1]), count * 2) : null;
    row.aside = count > 0 && (row.words[0] & ASIDE) !== 0;
    return Object.assign(row, { thread, depth, args: new Map() });
  });
  for (const [row, at, values] of trace.args ?? []) rows[row].args.set(at, values);
  const counters = (trace.counters ?? []).map((one) => ({
    ...one,
    times: new Float64Array(bytes, base + one.times, one.count),
    values: new Float64Array(bytes, base + one.values, one.count),
  }));
  return { ...trace, rows, counters, byThread: groupRows(rows), piece: (offset, size) => new Uint8Array(bytes, base + offset, size) };
}

function groupRows(rows) {
  const found = new Map();
  for (const row of rows) {
    if (!found.has(row.thread)) found.set(row.thread, []);
    found.get(row.thread)[row.depth] = row;
  }
  return found;
}

/** gap, duration and word of each span, in order of start. */
function readSpans(bytes, count) {
  const numbers = readNumbers(bytes, count * 3);
  const row = { starts: new Float64Array(count), ends: new Float64Array(count), words: new Uint32Array(count) };
  let time = 0;
  for (let at = 0; at < count; at++) {
    row.starts[at] = time + numbers[at * 3];
    time = row.ends[at] = row.starts[at] + numbers[at * 3 + 1];
    row.words[at] = numbers[at * 3 + 2];
  }
  return row;
}

/** Unsigned LEB128; by default all that there are. Times pass 2^32, so they are added up as doubles. */
export function readNumbers(bytes, count = bytes.reduce((sum, byte) => sum + Number(byte < 128), 0)) {
  const numbers = new Float64Array(count);
  let at = 0;
  for (let which = 0; which < count; which++) {
    let value = 0, scale = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    numbers[which] = value;
  }
  return numbers;
}

/** The first place of a sorted column whose value is not less. */
export function lowerBound(column, value) {
  let low = 0, high = column.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Spans of a row as rectangles: those of `finest` ns or more as they are, shorter neighbours as one run. */
export function mergeRow(row, from, to, finest) {
  const rects = [];
  /** @type {(number[] & {busyTime: number, longest: number}) | null} the last of the rectangles, if it can grow */
  let run = null;
  const { starts, ends, words } = row;
  for (let at = lowerBound(ends, from); at < starts.length && starts[at] < to; at++) {
    const start = starts[at], end = ends[at], length = end - start;
    if (length >= finest) {
      run = null;
      rects.push([start, end, words[at], 1, 1]);
    } else if (run && start - run[1] < finest) {
      run.busyTime += length;
      run.longest = Math.max(run.longest, length);
      if (run.longest === length) run[2] = words[at];
      run[1] = end;
      run[4]++;
      run[3] = run[1] > run[0] ? run.busyTime / (run[1] - run[0]) : 1;
    } else {
      run = Object.assign([start, end, words[at], 1, 1], { busyTime: length, longest: length });
      rects.push(run);
    }
  }
  return rects;
}
