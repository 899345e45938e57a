// Follows traces that are being recorded: asks the server for new data and updates the parts of the page. While the end
// of the trace is visible, the picture moves with the end. After the user pans away from the end, the picture stays.

import { element } from "./elements.js";

const PAUSE = 500; // ms between two requests
const REST = 5000; // ms between two readings of counters, lanes and other things besides spans

export class Follow {
  constructor(app) {
    this.app = app;
    this.rest = Infinity; // when counters and lanes are read again
    this.functions = new Map(app.info.traces.map((trace) => [trace.trace, trace.functions]));
    this.button = element("follow", HTMLButtonElement);
    this.button.hidden = !app.info.follows;
    this.button.addEventListener("click", () => this.goToEnd());
  }

  start() {
    this.rest = performance.now() + REST;
    if (this.app.info.follows) this.later();
  }

  later() {
    setTimeout(() => this.step().catch((error) => {
      this.app.say(error.message);
      this.later();
    }), PAUSE);
  }

  async step() {
    const info = await this.app.source.follow();
    await this.take(info);
    if (performance.now() >= this.rest) {
      await this.app.loadRest();
      this.rest = performance.now() + REST;
    }
    if (info.follows) return this.later();
    this.button.hidden = true;
    this.app.banners.showTraces(info.traces);
    this.app.say("The recording ended.");
    await this.app.loadRest();
  }

  /** Whether the end of the trace is visible. */
  get atEnd() {
    return this.app.view.to >= this.app.view.duration;
  }

  goToEnd() {
    const { view } = this.app, width = Math.min(view.width, view.duration);
    view.show(view.most - width, view.most, { step: true });
  }

  async take(info) {
    const { app } = this;
    const known = new Map(app.timeline.traces.map((trace) => [trace.trace, trace]));
    let rows = false;
    for (const trace of info.traces.filter((one) => !one.error)) {
      if (this.functions.get(trace.trace) !== trace.functions) {
        this.functions.set(trace.trace, trace.functions);
        app.names.add(trace.trace, await app.source.names(trace.trace));
      }
      const before = known.get(trace.trace);
      if (!before) app.timeline.traces.push(trace);
      rows = (before ? takeThreads(before, trace) : true) || rows;
    }
    app.info = info;
    this.extend(info.duration_ns);
    if (rows) {
      app.timeline.arrange();
      app.flame.fillScopes(app.timeline.traces);
      app.stage.arranged();
    }
    this.button.setAttribute("aria-pressed", String(this.atEnd));
  }

  /** Extends the timeline. Anything drawn up to the old end is drawn anew. */
  extend(duration) {
    const { app } = this, { view } = app, before = view.duration;
    if (duration <= before) return;
    const atEnd = this.atEnd, isWhole = view.from <= 0 && atEnd;
    view.extend(duration);
    for (const windows of [app.windows, app.lanes]) windows?.extend(duration, before);
    if (isWhole) view.show(view.least, view.most, { remember: false });
    else if (atEnd) view.show(view.from + duration - before, view.to + duration - before, { remember: false });
    app.stage.whole = null; // a span that was open at the old end is longer now
    app.stage.want();
    app.stage.invalidate();
  }
}

/** Takes over new facts about a trace's threads. Returns whether rows changed. */
function takeThreads(before, now) {
  const known = new Map(before.threads.map((thread) => [thread.number, thread]));
  let rows = false;
  for (const thread of now.threads) {
    const old = known.get(thread.number);
    if (!old) before.threads.push(thread);
    rows = rows || !old || old.depth !== thread.depth || old.name !== thread.name;
    if (old) Object.assign(old, thread);
  }
  Object.assign(before, { ...now, threads: before.threads });
  return rows;
}
