// Lanes, which are shown in addition to calls. Fetches the lanes of a kind and their pictures, for the parts that draw
// them.

import { Windows } from "./windows.js";
import { formatCount } from "./units.js";

const KINDS = ["counters", "devices", "marks", "states", "tasks"]; // those that are drawn from windows
const ITEMS_MOST = 100000; // the most items in an answer
const SAID = { devices: "activities of devices", marks: "marks of exceptions and instants", tasks: "steps and waits of tasks" };

export class Lanes {
  constructor(app) {
    this.app = app;
    this.lists = new Map(); // kind and trace -> lanes
    const made = (kind) => new Windows(
      { window: (wish, signal) => app.source.laneWindow({ ...wish, kind }, signal) }, app.info.duration_ns,
      () => app.stage.invalidate(), (error) => app.say(error.message),
    );
    this.windows = new Map(KINDS.map((kind) => [kind, made(kind)]));
  }

  /** Fetches the lanes of a kind. Resolves with the lanes and other facts about the kind. */
  async load(trace, kind) {
    const answer = await this.app.source.lanes(trace, kind), [items, texts] = answer.left_out;
    const what = items ? `${formatCount(items)} ${SAID[kind]}` : texts ? `The arguments of ${formatCount(texts)} ${SAID[kind]}` : null;
    if (what) this.app.banners.show(`${kind}${trace}`, `${what} are not shown: there are too many.`);
    this.lists.set(`${kind}${trace}`, answer.lanes);
    return answer;
  }

  /** Fetches all items of a kind, in the order of their starts, each with the thread of its lane. */
  async loadItems(trace, kind) {
    const { lanes } = await this.app.source.lanes(trace, kind);
    if (!lanes.length) return [];
    const end = Math.ceil(this.app.info.duration_ns) + 1;
    const { items } = await this.app.source.laneBetween(trace, kind, lanes.map(({ lane }) => lane), 0, end, ITEMS_MOST);
    return items.map((item) => ({ ...item, thread: lanes[item.lane].thread }));
  }

  list(kind, trace) {
    return this.lists.get(`${kind}${trace}`) ?? [];
  }

  /** Returns the lane of a thread, or null. */
  ofThread(kind, trace, thread) {
    return this.list(kind, trace).find((one) => one.thread === thread) ?? null;
  }

  /** Sets what is in sight: {trace, from, to, pixels, threads: numbers of lanes}. */
  want(kind, wishes) {
    for (const wish of wishes) this.windows.get(kind)?.want({ ...wish, depth: 0 });
  }

  extend(duration, before) {
    for (const windows of this.windows.values()) windows.extend(duration, before);
  }

  get settled() {
    return [...this.windows.values()].every((one) => one.settled);
  }
}
