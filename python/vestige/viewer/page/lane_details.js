// What is told of a step of a task, or of a wait between two of them, in the panel of details.

import { formatMoment, formatTime } from "./units.js";
import { listOf, make } from "./details.js";

export class LaneDetails {
  constructor(app) {
    this.app = app;
    this.shown = null; // {trace, found} of what is selected
    app.details.element.addEventListener("click", (event) => {
      const button = event.target instanceof Element && event.target.closest("button[data-to]");
      if (button instanceof HTMLElement) this.follow(button.dataset.to);
    });
  }

  /** Fetches and shows what a lane has at a time; resolves with it, or null. */
  async load(trace, lane, time) {
    this.app.details.abort?.abort();
    const abort = (this.app.details.abort = new AbortController());
    try {
      const found = await this.app.source.taskAt(trace, lane, time, abort.signal);
      if (abort.signal.aborted || !found) return null;
      this.app.tasks.noteGroup(trace, found.waker);
      this.shown = { trace, found };
      this.show(trace, found);
      return { ...found, name: this.title(trace, found) };
    } catch (error) {
      if (error.name !== "AbortError") this.app.say(error.message);
      return null;
    }
  }

  title(trace, found) {
    const what = found.wait ? `awaiting ${found.awaits ?? "something"}` : this.app.names.get(trace, found.id).name;
    return `${found.task.name || "a task"}: ${what}`;
  }

  show(trace, found) {
    const { task, waker } = found;
    const facts = make("div", "facts"), heading = make("div", "heading");
    heading.append(make("h2", "", this.title(trace, found)), make("span", "kind", found.wait ? "wait of a task" : "step of a task"));
    facts.append(heading, listOf([
      ["Coroutine", this.app.names.get(trace, found.id).name],
      ["Duration", formatTime(found.end_ns - found.start_ns), found.open ? "goes on when the recording ends" : ""],
      ["Begins", formatMoment(found.start_ns)], ["Ends", formatMoment(found.end_ns)],
      ["Whole task", `${formatTime(task.running_ns)} in ${task.steps} ${task.steps === 1 ? "step" : "steps"}, ${formatTime(task.awaiting_ns)} awaiting`, task.end],
    ]));
    if (!found.wait) facts.append(link("call", "Show the call"));
    const waits = make("div", "parents");
    waits.append(make("h3", "", found.wait ? "Awaits" : "Then awaits"));
    const told = found.awaits ? `${found.awaits}${found.function ? ` (${found.function})` : ""}` : "nothing: it ended here, or the trace does not tell";
    waits.append(make("p", "", told));
    if (found.awaited_task) waits.append(link("awaited", found.awaited_task));
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
    return [link("waker", waker.lane ? `${waker.task || "a task"}: ${by}` : `${by}, a callback of the event loop`), make("p", "note", `at ${formatMoment(waker.time_ns)}`)];
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
