// The lanes of tasks as they lie in a page that `vestige view --html` wrote: the calls of source_http.js about them. Lanes
// are numbered as the server numbers them: groups first, then tasks.

import { lowerBound, readNumbers } from "./embedded_data.js";
import { MANY_WAIT } from "./tasks.js";
import { AWAITS, packWindow } from "./window_data.js";

const WAKES_MOST = 200;
const LOOK_BACK = 64; // steps inside of which others of a group may run
const NOTHING = 0; // awaits nobody: the others shall have their turn

export class EmbeddedTasks {
  constructor(packed, piece, names) {
    this.groups = packed.groups;
    this.leftOut = packed.left_out;
    this.awaits = packed.awaits;
    this.end = packed.end_ns;
    this.names = names;
    this.lanes = packed.lanes.map(([name, start, end, steps, running, awaiting, became, count, offset, length]) => (
      { name, start, end, told: { name, steps, running_ns: running, awaiting_ns: awaiting, end: became }, ...readSteps(piece(offset, length), count) }));
    this.groups.forEach((group) => {
      for (let lane = group.first; lane < group.first + group.tasks; lane++) this.lane(lane).group = group;
    });
    this.inTime = new Map(); // group's lane -> its steps in order of time
  }

  lane(number) {
    return this.lanes[number - this.groups.length];
  }

  listGroups() {
    return { groups: this.groups.map((group) => ({ ...group })), left_out: this.leftOut };
  }

  listNames(first, count) {
    return this.lanes.slice(first - this.groups.length, first - this.groups.length + count).map(({ name, start, end }) => [name, start, end]);
  }

  window({ from, to, pixels, threads }) {
    const finest = (to - from) / pixels;
    const rows = threads.map((lane) => [lane, 0, lane < this.groups.length ? this.drawGroup(lane, from, to, finest) : this.drawTask(this.lane(lane), from, to, finest)]);
    return packWindow(from, to, 0, rows.filter((row) => row[2].length));
  }

  drawTask(lane, from, to, finest) {
    const picture = new Row(finest);
    if (!lane) return picture.rects;
    for (let at = Math.max(0, lowerBound(lane.starts, from) - 1); at < lane.starts.length && lane.starts[at] < to; at++) {
      picture.addStep(lane.starts[at], lane.ends[at], lane.group.id);
      if (lane.awaits[at] >= 0) picture.addWait(lane.ends[at], this.waitEnd(lane, at), lane.awaiting[at], lane.awaits[at], 1);
    }
    return picture.rects;
  }

  drawGroup(number, from, to, finest) {
    const picture = new Row(finest), { starts, ends, alive } = this.steps(number), { id } = this.groups[number];
    let reached = -Infinity;
    for (let at = this.stepAt(number, from); at < starts.length && starts[at] < to; at++) {
      if (ends[at] > reached) {
        picture.addStep(Math.max(starts[at], reached), ends[at], id);
        reached = ends[at];
      }
      if (alive[at]) picture.addWait(reached, at + 1 < starts.length ? starts[at + 1] : this.end, id, MANY_WAIT, alive[at]);
    }
    return picture.rects;
  }

  /** The steps of all tasks of a group in order of time, and how many tasks have begun and not ended behind each. */
  steps(number) {
    const known = this.inTime.get(number);
    if (known) return known;
    const group = this.groups[number], all = [];
    for (let lane = group.first; lane < group.first + group.tasks; lane++) {
      this.lane(lane).starts.forEach((start, at) => all.push([start, lane, at]));
    }
    all.sort((a, b) => a[0] - b[0]);
    let living = 0;
    const alive = all.map(([, lane, at]) => {
      const own = this.lane(lane);
      living += at === 0 ? 1 : 0;
      if (at === own.starts.length - 1 && own.awaits[at] < 0) living--;
      return living;
    });
    const steps = { starts: Float64Array.from(all, (one) => one[0]), ends: Float64Array.from(all, ([, lane, at]) => this.lane(lane).ends[at]), alive, all };
    this.inTime.set(number, steps);
    return steps;
  }

  /** The last step of a group that begins at a time or before and ends at it or later; else the last before it. */
  stepAt(number, time) {
    const { starts, ends } = this.steps(number);
    const before = lowerBound(starts, time + 0.5);
    for (let at = before - 1; at >= Math.max(0, before - LOOK_BACK); at--) if (ends[at] >= time) return at;
    return Math.max(0, before - 1);
  }

  waitEnd(lane, at) {
    return at + 1 < lane.starts.length ? lane.starts[at + 1] : this.end;
  }

  at(number, time) {
    if (number < this.groups.length) {
      const steps = this.steps(number), found = this.stepAt(number, time);
      if (!(steps.starts[found] <= time && steps.ends[found] >= time)) return null;
      return this.describe(steps.all[found][1], steps.all[found][2], false);
    }
    const lane = this.lane(number), at = lane ? lowerBound(lane.starts, time + 0.5) - 1 : -1;
    if (at < 0) return null;
    const waits = time > lane.ends[at];
    if (waits && (lane.awaits[at] < 0 || time > this.waitEnd(lane, at))) return null;
    return this.describe(number, at, waits);
  }

  describe(number, at, wait) {
    const lane = this.lane(number), isLast = at + 1 === lane.starts.length;
    const woken = wait ? (isLast ? -1 : at + 1) : at, awaiting = lane.awaiting[at];
    const waker = this.wakerOf(lane, woken), awaited = lane.awaits[at] >= 0 ? lane.awaited[at] : 0;
    return {
      lane: number, wait, first: at === 0, turn: woken > 0 && lane.awaits[woken - 1] === NOTHING, open: wait && isLast,
      start_ns: wait ? lane.ends[at] : lane.starts[at], end_ns: wait ? this.waitEnd(lane, at) : lane.ends[at], id: lane.group.id,
      awaits: lane.awaits[at] < 0 ? null : this.awaits[`${lane.awaits[at]} ${awaiting}`] ?? null, awaiting, awaited,
      function: awaiting ? this.names[awaiting]?.[1] ?? null : null, awaited_task: awaited ? this.lane(awaited)?.name ?? null : null,
      waker: waker && { ...waker, ...(waker.lane ? { task: this.lane(waker.lane)?.name } : {}) }, task: lane.told,
    };
  }

  wakerOf(lane, at) {
    return at >= 0 ? lane.wakers.get(at) ?? null : null;
  }

  wakes(from, to, lanes) {
    const arrows = [];
    for (const number of lanes) {
      const lane = number < this.groups.length ? null : this.lane(number);
      if (!lane) continue;
      for (let at = Math.max(1, lowerBound(lane.starts, from)); at < lane.starts.length && lane.starts[at] <= to; at++) {
        if (lane.awaits[at - 1] <= NOTHING) continue;
        const waker = this.wakerOf(lane, at);
        arrows.push({ lane: number, time_ns: lane.starts[at], waker: waker && { ...waker } });
      }
    }
    return { arrows: arrows.length > WAKES_MOST ? [] : arrows, count: arrows.length };
  }
}

/** A lane's rectangles: steps that are close and short are one run, waits that are wide enough stand between them. */
class Row {
  constructor(finest) {
    this.finest = finest;
    this.rects = [];
    /** @type {any} */ this.run = null; // the last rectangle, if it can grow
  }

  addStep(start, end, id) {
    const { run, finest, rects } = this;
    if (end - start >= finest) {
      rects.push([start, end, id, 1, 1]);
      this.run = null;
    } else if (run && start - run[1] < finest) {
      run.busy += end - start;
      run[1] = end;
      run[4]++;
      run[3] = run[1] > run[0] ? run.busy / (run[1] - run[0]) : 1;
    } else {
      this.run = Object.assign([start, end, id, 1, 1], { busy: end - start });
      rects.push(this.run);
    }
  }

  addWait(start, end, id, kind, count) {
    if (end - start <= this.finest) return;
    this.rects.push([start, end, (id | AWAITS | (kind << 29)) >>> 0, 1, count]);
    this.run = null;
  }
}

/** gap, length, 1 + awaits, awaiting, awaited and the waker of each step. */
function readSteps(bytes, count) {
  const steps = {
    starts: new Float64Array(count), ends: new Float64Array(count), awaits: new Int8Array(count),
    awaiting: new Uint32Array(count), awaited: new Uint32Array(count), wakers: new Map(),
  };
  const read = readNumbers(bytes);
  let time = 0, place = 0;
  for (let at = 0; at < count; at++) {
    steps.starts[at] = time + read[place];
    time = steps.ends[at] = steps.starts[at] + read[place + 1];
    steps.awaits[at] = read[place + 2] - 1;
    steps.awaiting[at] = read[place + 3];
    steps.awaited[at] = read[place + 4];
    const lane = read[place + 5];
    if (lane) steps.wakers.set(at, { lane: lane - 1, thread: read[place + 6], id: read[place + 7], time_ns: steps.starts[at] - read[place + 8] });
    place += lane ? 9 : 6;
  }
  return steps;
}
