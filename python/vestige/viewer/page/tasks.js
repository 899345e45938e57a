// The lanes of tasks and greenlets, and the arrows from the code that woke a task. All tasks of a coroutine function on
// a thread are drawn as one lane, a group, until the group is opened.

const FEW = 40; // if a trace has at most so many tasks, its groups begin open
const STILL = 120; // ms without a move before arrows are fetched
const ITEMS_MAX = 400; // the most visible steps and waits with arrows; more would hide the picture
export const MANY_WAIT = 7; // the kind of a wait in a group's lane
const KINDS = ["its next step", "a future", "a task", "several tasks", "something"];
const SWITCHED_OUT = 5; // the kind of a greenlet's wait
const IS_WAIT = 1, IS_FIRST = 2, HAD_TURN = 4, IS_OPEN = 8, IS_WOKEN = 16; // see src/view/lanes_tasks.c

export class Tasks {
  constructor(app) {
    this.app = app;
    this.arrows = new Map(); // trace -> [{lane, time_ns, waker}]
    this.groups = new Map(); // trace -> groups
    this.awaits = new Map(); // trace -> names for what tasks await
    this.busy = 0; // groups whose names are being fetched
    /** @type {number | undefined} */ this.later = undefined; // until arrows are fetched
  }

  /** Fetches the groups of a trace, and opens them if they are small. */
  async load({ trace, tasks }) {
    const { lanes, timeline, stage } = this.app;
    if (!tasks) return;
    const answer = await lanes.load(trace, "tasks"), groups = answer.lanes.map((lane) => this.groupFrom(trace, lane));
    const all = groups.reduce((sum, group) => sum + group.tasks, 0);
    this.groups.set(trace, groups);
    this.awaits.set(trace, answer.awaits);
    if (all <= FEW) await Promise.all(groups.map((group) => this.openGroup(trace, group)));
    timeline.setLanes(trace, groups);
    stage.arranged();
  }

  groupFrom(trace, lane) {
    const group = { ...lane, tasks: lane.members, name: lane.members > 1 && lane.name || this.app.names.get(trace, lane.id).name, open: false };
    return { ...group, members: lane.members === 1 ? [memberOf(group, { ...lane, lane: lane.first })] : null };
  }

  async openGroup(trace, group) {
    this.busy++;
    try {
      group.members ??= (await this.app.source.lanes(trace, "tasks", group.first, group.tasks)).lanes.map((lane) => memberOf(group, lane));
      group.open = true;
    } catch (error) {
      this.app.say(error.message);
    }
    this.busy--;
  }

  /** Opens or closes a group; for a task, scrolls to show all of it. */
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

  /** Makes a task's lane visible. */
  async reveal(trace, lane) {
    const group = this.groupOf(trace, lane);
    if (!group) return;
    this.app.timeline.unfold(trace, group.thread);
    if (group.tasks > 1 && !group.open) await this.openGroup(trace, group);
    this.app.timeline.arrange();
    this.app.stage.arranged();
  }

  /** Describes a step or wait of a task, from the item of its lane. */
  read(trace, item) {
    const has = (bit) => (item.state & bit) !== 0, { functions, objects } = this.awaits.get(trace);
    return {
      ...item, wait: has(IS_WAIT), first: has(IS_FIRST), turn: has(HAD_TURN), open: has(IS_OPEN), waker: this.wakerOf(trace, item),
      awaits: item.awaits ? functions[item.awaiting] ?? objects[item.awaits - 1] : null,
    };
  }

  /** Returns the start of an arrow: in a task's lane, or in its group's lane if the task has none. */
  wakerOf(trace, { state, start_ns: start, end_ns: end, waker_lane: lane, waker_thread: thread, waker_id: id, woken_ns: ago }) {
    return thread ? { lane, thread, id, time_ns: (state & IS_WAIT ? end : start) - ago, group: this.groupOf(trace, lane)?.lane } : null;
  }

  /** Sets what is in sight. */
  want(wishes) {
    this.app.lanes.want("tasks", wishes);
    clearTimeout(this.later);
    this.later = setTimeout(() => this.fetchArrows(wishes), STILL);
  }

  async fetchArrows(wishes) {
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    for (const { trace, from, to, threads } of wishes) {
      try {
        const tasks = threads.filter((lane) => lane >= this.groups.get(trace).length);
        const { items, count } = await this.app.source.laneBetween(trace, "tasks", tasks, Math.floor(from), Math.ceil(to) + 1, ITEMS_MAX, signal);
        if (signal.aborted) return;
        const steps = count > ITEMS_MAX ? [] : items.filter(({ state }) => state & IS_WOKEN);
        this.arrows.set(trace, steps.map((item) => ({ lane: item.lane, time_ns: item.start_ns, waker: this.wakerOf(trace, item) })));
      } catch { /* arrows are optional: the next call tries again */ }
    }
    this.later = undefined;
    this.app.stage.invalidate("overlay");
  }

  get settled() {
    return !this.busy && !this.later;
  }
}

/** Returns a task's name. asyncio names all tasks; a greenlet has a name only if the program set one. */
export function nameOf({ name }) {
  return name || "greenlet";
}

function memberOf(group, lane) {
  return { number: lane.lane, name: nameOf(lane), start_ns: lane.start_ns, end_ns: lane.end_ns, id: group.id, function: group.name, isAlone: group.tasks === 1 };
}

/** Returns "await Queue.get", "await a task" or "3 tasks wait". */
export function awaitText(kind, name, count) {
  if (kind === MANY_WAIT) return `${count >= 65535 ? "65 535 or more" : count.toLocaleString("en")} ${count === 1 ? "task waits" : "tasks wait"}`;
  if (kind === SWITCHED_OUT) return "switched out";
  return `await ${name ?? KINDS[kind] ?? KINDS[4]}`;
}
