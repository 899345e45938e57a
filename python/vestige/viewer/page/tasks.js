// The lanes of asyncio's tasks: which there are, what is fetched for them, and the arrows from what woke a task. All
// tasks of a coroutine function on a thread are one lane, a group, until it is opened.

import { Windows } from "./windows.js";

const FEW = 40; // tasks of a trace; its groups begin open then
const STILL = 120; // ms without a move before arrows are fetched
export const MANY_WAIT = 7; // the kind of a wait in a group's lane
const KINDS = ["its next turn", "a future", "a task", "several tasks", "something"];
const SWITCHED_OUT = 5; // the kind of a greenlet's wait

export class Tasks {
  constructor(app) {
    this.app = app;
    const { source, info } = app;
    this.windows = new Windows(
      { window: (wish, signal) => source.taskWindow(wish, signal) }, info.duration_ns,
      () => app.stage.invalidate(), (error) => app.say(error.message),
    );
    this.arrows = new Map(); // trace -> [{lane, time_ns, waker}]
    this.groups = new Map(); // trace -> groups
    this.busy = 0; // groups whose names are under way
    /** @type {number | undefined} */ this.later = undefined; // until arrows are fetched
  }

  /** Asks which groups a trace has, and opens them if they are small. */
  async load({ trace, tasks }) {
    const { source, timeline, stage } = this.app;
    if (!tasks) return;
    const { groups, left_out: leftOut } = await source.tasks(trace);
    const all = groups.reduce((sum, group) => sum + group.tasks, 0);
    for (const group of groups) {
      group.name = group.tasks > 1 && group.task || this.app.names.get(trace, group.id).name;
      group.open = false;
      group.members = group.tasks === 1 ? [memberOf(group, 0, [group.task, group.start_ns, group.end_ns])] : null;
    }
    this.groups.set(trace, groups);
    if (leftOut) this.app.banners.show(`tasks${trace}`, `${leftOut.toLocaleString("en")} steps of tasks are not shown: there are too many.`);
    if (all <= FEW) await Promise.all(groups.map((group) => this.openGroup(trace, group)));
    timeline.setLanes(trace, groups);
    stage.arranged();
  }

  async openGroup(trace, group) {
    this.busy++;
    try {
      const rows = group.members ?? await this.app.source.taskNames(trace, group.first, group.tasks);
      group.members ??= rows.map((row, at) => memberOf(group, at, row));
      group.open = true;
    } catch (error) {
      this.app.say(error.message);
    }
    this.busy--;
  }

  /** Opens or closes a group; of a task, shows all of it. */
  async toggle(track) {
    const { group, lane } = track;
    if (!group) return this.app.view.show(lane.start_ns, Math.max(lane.end_ns, lane.start_ns + 1), { step: true });
    if (group.open) group.open = false;
    else await this.openGroup(track.trace.trace, group);
    this.app.timeline.arrange();
    this.app.stage.arranged();
  }

  groupOf(trace, lane) {
    return this.groups.get(trace)?.find((one) => one.lane === lane || (lane >= one.first && lane < one.first + one.tasks)) ?? null;
  }

  /** An arrow begins in a group's lane where its task has none. */
  noteGroup(trace, waker) {
    if (waker?.lane) waker.group = this.groupOf(trace, waker.lane)?.lane;
  }

  /** Makes a task's lane visible. */
  async reveal(trace, lane) {
    const group = this.groupOf(trace, lane);
    if (!group) return;
    this.app.timeline.unfold(trace, group.thread);
    if (group.tasks > 1 && !group.open) await this.openGroup(trace, group);
    this.app.timeline.arrange();
    this.app.stage.arranged();
  }

  /** What is in sight now. */
  want(wishes) {
    for (const wish of wishes) this.windows.want(wish);
    clearTimeout(this.later);
    this.later = setTimeout(() => this.fetchArrows(wishes), STILL);
  }

  async fetchArrows(wishes) {
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    for (const { trace, from, to, threads } of wishes) {
      try {
        const { arrows } = await this.app.source.taskWakes(trace, from, to, threads, signal);
        if (signal.aborted) return;
        for (const { waker } of arrows) this.noteGroup(trace, waker);
        this.arrows.set(trace, arrows);
      } catch { /* only a help: the next wish asks again */ }
    }
    this.later = undefined;
    this.app.stage.invalidate("overlay");
  }

  get settled() {
    return this.windows.settled && !this.busy && !this.later;
  }
}

function memberOf(group, at, [name, start, end]) {
  return { number: group.first + at, name, start_ns: start, end_ns: end, id: group.id, function: group.name, isAlone: group.tasks === 1 };
}

/** "await Queue.get", "await a task", "3 tasks wait". */
export function awaitText(kind, name, count) {
  if (kind === MANY_WAIT) return `${count >= 65535 ? "65 535 or more" : count.toLocaleString("en")} ${count === 1 ? "task waits" : "tasks wait"}`;
  if (kind === SWITCHED_OUT) return "switched out";
  return `await ${name ?? KINDS[kind] ?? KINDS[4]}`;
}
