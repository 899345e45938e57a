// Lanes, which are shown in addition to calls. Fetches the lanes of a kind and their pictures, for the parts that draw
// them.

import { Windows } from "./windows.js";
import { formatCount } from "./units.js";

const KINDS = ["devices", "marks", "states", "tasks"];
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
