// What is told of a step of a task, or of a wait between two of them, in the panel of details.

import { formatMoment, formatTime } from "./units.js";
import { listOf, make } from "./details.js";
import { nameOf } from "./tasks.js";

export class LaneDetails {
  constructor(app) {
    this.app = app;
    this.shown = null; // {trace, found} of what is selected
    app.details.element.addEventListener("click", (event) => {
      const button = event.target instanceof Element && event.target.closest("button[data-to]");
      if (button instanceof HTMLElement) this.follow(button.dataset.to);
    });
  }

  /** Fetches and shows what a lane has at a time; resolves with it, or null. In a group's lane that is a task's step. */
  async load(trace, lane, time) {
    this.app.details.abort?.abort();
    const abort = (this.app.details.abort = new AbortController());
    try {
      const item = await this.app.source.laneAt(trace, "tasks", lane, 0, time, abort.signal);
      const own = item?.step ?? (this.app.tasks.groups.get(trace)[lane] ? null : item);
      if (abort.signal.aborted || !own) return null;
      const found = this.app.tasks.read(trace, own);
      const [task, awaited, waker] = await Promise.all([found.lane, found.awaited, found.waker?.lane].map((number) => this.laneOf(trace, number)));
      if (abort.signal.aborted) return null;
      this.shown = { trace, found: { ...found, id: task.id, task, awaitedName: awaited && nameOf(awaited), wakerName: waker && nameOf(waker) } };
      this.show(trace, this.shown.found);
      return { ...this.shown.found, name: this.title(trace, this.shown.found) };
    } catch (error) {
      if (error.name !== "AbortError") this.app.say(error.message);
      return null;
    }
  }

  async laneOf(trace, number) {
    return number ? (await this.app.source.lanes(trace, "tasks", number, 1)).lanes[0] : null;
  }

  title(trace, found) {
    const what = found.wait ? `awaiting ${found.awaits ?? "something"}` : this.app.names.get(trace, found.id).name;
    return `${nameOf(found.task)}: ${what}`;
  }

  show(trace, found) {
    const { task, waker } = found;
    const facts = make("div", "facts"), heading = make("div", "heading");
    heading.append(make("h2", "", this.title(trace, found)), make("span", "kind", found.wait ? "wait of a task" : "step of a task"));
    facts.append(heading, listOf([
      ["Coroutine", this.app.names.get(trace, found.id).name],
      ["Duration", formatTime(found.end_ns - found.start_ns), found.open ? "goes on when the recording ends" : ""],
      ["Begins", formatMoment(found.start_ns)], ["Ends", formatMoment(found.end_ns)],
      ["Whole task", `${formatTime(task.busy_ns)} in ${task.steps} ${task.steps === 1 ? "step" : "steps"}, ${formatTime(task.awaiting_ns)} awaiting`, task.end],
    ]));
    if (!found.wait) facts.append(link("call", "Show the call"));
    const waits = make("div", "parents");
    waits.append(make("h3", "", found.wait ? "Awaits" : "Then awaits"));
    const told = found.awaits ? `${found.awaits}${found.awaiting ? ` (${this.app.names.get(trace, found.awaiting).name})` : ""}` : "nothing: it ended here, or the trace does not tell";
    waits.append(make("p", "", told));
    if (found.awaitedName) waits.append(link("awaited", found.awaitedName));
    const woken = make("div", "parents");
    woken.append(make("h3", "", found.wait ? "Then woken by" : "Woken by"));
    woken.append(...this.wokenBy(trace, found, waker));
    this.app.details.span = null;
    this.app.details.element.replaceChildren(facts, waits, woken);
  }

  wokenBy(trace, found, waker) {
    if (!waker) {
      return [make("p", "", unwoken(found))];
    }
    const by = this.app.names.get(trace, waker.id).name;
    return [link("waker", waker.lane ? `${found.wakerName}: ${by}` : `${by}, a callback of the event loop`), make("p", "note", `at ${formatMoment(waker.time_ns)}`)];
  }

  async follow(to) {
    if (!this.shown) return;
    const { trace, found } = this.shown, { app } = this;
    if (to === "awaited") return app.goToLane(trace, found.awaited, found.start_ns);
    if (to === "waker" && found.waker.lane) return app.goToLane(trace, found.waker.lane, found.waker.time_ns);
    const id = to === "waker" ? found.waker.id : found.id;
    const call = await app.source.next(trace, [id], (to === "waker" ? found.waker.time_ns : found.start_ns) + 1, true).catch(() => null);
    if (call) await app.goTo(trace, call.thread, call.depth, call.start_ns, call.end_ns, call.id);
    else app.say("The call is not there.");
  }
}

/** Why there is no waker. */
function unwoken({ wait, open, first, turn }) {
  if (wait && open) return "nobody: it waits still";
  if (!wait && first) return "nobody: its first step";
  return turn ? "nobody: it let others have their turn" : "unknown";
}

function link(to, text) {
  const button = make("button", "link", text);
  button.type = "button";
  button.dataset.to = to;
  return button;
}
