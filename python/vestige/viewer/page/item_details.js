// The details of an item of a lane: a step or wait of a task, an activity of a device, a mark.

import { labelOf } from "./devices.js";
import { placeOf } from "./names.js";
import { nameOf } from "./tasks.js";
import { formatBytes, formatCount, formatMoment, formatTime } from "./units.js";

const LISTED = 12; // the most listed activities of a call
const MARKS_LISTED = 50; // the most listed marks; a picture merges marks that are close
const KINDS = ["?", "kernel", "copy", "set", "synchronisation", "overhead", "runtime call", "driver call"]; // see <vestige/device.h>
const COPIED = [2, 3], ON_THREAD = [5, 6, 7];
const NOT_CAUGHT = 2, UNKNOWN = 3; // ends of exceptions, see vst_exception_end

export class ItemDetails {
  constructor(app) {
    this.app = app;
    this.shown = null; // the selected item: {trace, kind, found}
  }

  name(trace, id) {
    return this.app.names.get(trace, id).name;
  }

  /** Fetches and shows the item of a lane's row at a time. Resolves with the item, or null. */
  async load(kind, trace, lane, row, time) {
    const { details, source } = this.app;
    const loaded = await details.ask(async (signal) => {
      const item = await source.laneAt(trace, kind, lane, row, time, signal);
      return item && (kind === "tasks" ? this.ofTask(trace, lane, item) : this.ofDevice(trace, item));
    });
    if (!loaded) return null;
    this.shown = { trace, kind, found: loaded.found };
    details.show(loaded.content);
    return { ...loaded.found, name: loaded.content.title };
  }

  // ---- tasks

  async laneOf(trace, number) {
    return number ? (await this.app.source.lanes(trace, "tasks", number, 1)).lanes[0] : null;
  }

  /** Describes a step or wait of a task. In a group's lane, describes the step of the task that ran. */
  async ofTask(trace, lane, item) {
    const { app } = this, own = item.step ?? (app.tasks.groups.get(trace)[lane] ? null : item);
    if (!own) return null;
    const read = app.tasks.read(trace, own);
    const [task, awaited, waking] = await Promise.all([read.lane, read.awaited, read.waker?.lane].map((number) => this.laneOf(trace, number)));
    const found = { ...read, id: task.id }, { wait, waker } = found;
    const awaits = found.awaits ? `${found.awaits}${found.awaiting ? ` (${this.name(trace, found.awaiting)})` : ""}` : "nothing: it ended here, or the trace does not know";
    const link = (to, text, number, time) => ({ to, text, go: () => app.goToLane(trace, number, time) });
    const by = waker && this.name(trace, waker.id), note = waker && `at ${formatMoment(waker.time_ns)}`;
    const woken = !waker ? unwoken(found) : waking ? { ...link("waker", `${nameOf(waking)}: ${by}`, waker.lane, waker.time_ns), note }
      : { to: "waker", text: `${by}, a callback of the event loop`, note, go: () => app.goToNext(trace, waker.id, waker.time_ns + 1, true) };
    const content = {
      title: `${nameOf(task)}: ${wait ? `awaiting ${found.awaits ?? "something"}` : this.name(trace, task.id)}`, kind: wait ? "wait of a task" : "step of a task",
      rows: [
        ["Coroutine", this.name(trace, task.id)],
        ["Duration", formatTime(found.end_ns - found.start_ns), found.open ? "goes on when the recording ends" : ""],
        ["Begins", formatMoment(found.start_ns)], ["Ends", formatMoment(found.end_ns)],
        ["Whole task", `${formatTime(task.busy_ns)} in ${task.steps} ${task.steps === 1 ? "step" : "steps"}, ${formatTime(task.awaiting_ns)} awaiting`, task.end],
      ],
      links: wait ? [] : [{ to: "call", text: "Show the call", go: () => app.goToNext(trace, found.id, found.start_ns + 1, true) }],
      columns: [
        [{ heading: wait ? "Awaits" : "Then awaits", lines: [awaits, ...(awaited ? [link("awaited", nameOf(awaited), found.awaited, found.start_ns)] : [])] }],
        [{ heading: wait ? "Then woken by" : "Woken by", lines: [woken] }],
      ],
    };
    return { found, content };
  }

  // ---- devices

  ofDevice(trace, found) {
    const { app } = this, length = found.end_ns - found.start_ns, onThread = ON_THREAD.includes(found.kind);
    const lane = /** @type {any} */ (app.devices.lane(trace, found.lane)), device = app.devices.device(trace, lane.device);
    const rows = [["Duration", formatTime(length), `${formatCount(length)} ns`], ["Begins", formatMoment(found.start_ns)], ["Ends", formatMoment(found.end_ns)]];
    if (device) rows.push(["Device", labelOf(device), device.name], ["Stream", lane.name || String(lane.stream)]);
    else rows.push(["Thread", app.devices.placeOf(trace, lane)]);
    if (found.launch) rows.push(["After the call", formatTime(found.start_ns - found.launch.start_ns)]);
    if (COPIED.includes(found.kind)) rows.push(["Bytes", formatBytes(found.bytes), `${formatCount(found.bytes)} bytes`], ["Bandwidth", `${(length > 0 ? found.bytes / length : 0).toPrecision(4)} GB/s`]);
    const columns = [this.causesOf(trace, found, onThread), onThread ? this.launchedBy(trace, found) : []];
    return { found, content: { title: this.name(trace, found.id), kind: KINDS[found.kind] ?? "?", family: "activity", rows, args: argsOf(found, lane), columns } };
  }

  causesOf(trace, found, onThread) {
    const { app } = this, made = found.launch ?? found; // a call itself
    const link = (to, item, note) => ({ to, text: this.name(trace, item.id), note, go: () => app.goToActivity(trace, item) });
    const from = found.launch ? link("launch", found.launch, `at ${formatMoment(found.launch.start_ns)}`)
      : onThread ? (found.op || found.annotation ? null : "no operator or annotation") : "a call that the trace does not have";
    const around = [["operator", found.op], ["annotation", found.annotation]].filter(([, id]) => id).map(([to, id]) => (
      { heading: `In the ${to}`, lines: [{ to, text: this.name(trace, id), go: () => app.goToCall(trace, app.devices.lane(trace, made.lane).thread, made.start_ns, id) }] }));
    return [{ heading: onThread ? "Made in" : "Launched by", lines: from ? [from] : [] }, ...around];
  }

  launchedBy(trace, { linked, linked_count: count }) {
    const lines = linked.slice(0, LISTED).map((item) => (
      { to: "launched", text: this.name(trace, item.id), note: formatTime(item.end_ns - item.start_ns), go: () => this.app.goToActivity(trace, item) }));
    return [{ heading: count ? `Launched ${formatCount(count)}` : "Launched nothing", lines: [...lines, ...(count > LISTED ? [`and ${formatCount(count - LISTED)} others`] : [])] }];
  }

  // ---- marks

  /** Fetches and shows the marks of a thread between two times. Resolves with the marks. */
  async loadMarks(trace, thread, from, to) {
    const { details, source, lanes } = this.app;
    const loaded = await details.ask(async (signal) => {
      const found = await source.laneBetween(trace, "marks", [lanes.ofThread("marks", trace, thread).lane], from, to, MARKS_LISTED, signal);
      if (!found.count) return null;
      return { found, content: found.count === 1 ? await this.ofMark(trace, thread, found.items[0]) : this.ofMarks(trace, thread, found) };
    });
    if (!loaded) return null;
    details.show(loaded.content);
    return loaded.found;
  }

  caughtIn(trace, mark) {
    if (mark.end === NOT_CAUGHT) return "nowhere: it left the outermost call";
    if (mark.end === UNKNOWN) return "not known: records are missing";
    return mark.caught_in ? `${this.name(trace, mark.caught_in)} ${placeOf(this.app.names.get(trace, mark.caught_in))}` : "a call that is not recorded";
  }

  async ofMark(trace, thread, mark) {
    const { file, line, name } = this.app.names.get(trace, mark.id), rows = [["At", formatMoment(mark.start_ns)]];
    if (mark.end) {
      rows.push(["Raised at", file ? `${file}:${line}` : "not known"]);
      if (mark.raised_in) rows.push(["Raised in", this.name(trace, mark.raised_in)]);
      rows.push(["Caught in", this.caughtIn(trace, mark)]);
    }
    return {
      title: name, kind: mark.end ? "exception" : "instant", rows, args: mark.args, ...(mark.end ? { source: await this.app.source.source(trace, mark.id) } : {}),
      links: [{ to: "call", text: mark.end ? "Show the call that raised it" : "Show the call around it", go: () => this.app.goToCall(trace, thread, mark.start_ns, mark.raised_in) }],
    };
  }

  ofMarks(trace, thread, { count, items }) {
    const lines = items.map((mark) => {
      const one = this.app.names.get(trace, mark.id);
      return {
        to: "mark", before: formatMoment(mark.start_ns), text: mark.end ? `${one.name} at ${placeOf(one)}` : one.name,
        note: mark.end ? `caught in ${this.caughtIn(trace, mark)}` : "", go: () => this.app.goToMark(trace, thread, mark.start_ns),
      };
    });
    return { list: { heading: count > items.length ? `${formatCount(count)} marks, of which the first ${items.length}` : `${count} marks`, lines } };
  }
}

/** Returns why a task has no waker. */
function unwoken({ wait, open, first, turn }) {
  if (wait && open) return "nobody: it is still waiting";
  if (!wait && first) return "nobody: its first step";
  return turn ? "nobody: it only let other tasks run" : "unknown";
}

/** Returns arguments by the names that Kineto gives them. */
function argsOf({ context, correlation, external, args }, { device, stream }) {
  const place = device ? { context, stream } : {};
  return { ...place, correlation, ...(external ? { "External id": external } : {}), ...args };
}
