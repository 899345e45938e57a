// The page: opens the source, creates the parts and connects them. Each part draws and decides by itself; matters of
// several parts are handled here.

import { Banners, emptyNote } from "./banners.js";
import { Counters } from "./counters.js";
import { Details } from "./details.js";
import { Devices } from "./devices.js";
import { element } from "./elements.js";
import { Flame } from "./flame.js";
import { Follow } from "./follow.js";
import { Help } from "./help.js";
import { Input } from "./input.js";
import { ItemDetails } from "./item_details.js";
import { Lanes } from "./lanes.js";
import { Tasks } from "./tasks.js";
import { Marks } from "./marks.js";
import { Names } from "./names.js";
import { OpenIn } from "./open_in.js";
import { Panel } from "./panel.js";
import { Search } from "./search.js";
import { EmbeddedSource } from "./source_embedded.js";
import { HttpSource, takeToken } from "./source_http.js";
import { LeftOut } from "./left_out.js";
import { Stage } from "./stage.js";
import { Theme } from "./theme.js";
import { Timeline } from "./timeline.js";
import { Tip } from "./tip.js";
import { formatMoment, formatTime } from "./units.js";
import { View } from "./view.js";
import { Windows } from "./windows.js";

class App {
  // make() sets these fields before anything uses them.
  /** @type {View} */ view;
  /** @type {Timeline} */ timeline;
  /** @type {Windows} */ windows;
  /** @type {Counters} */ counters;
  /** @type {Lanes} */ lanes;
  /** @type {Tasks} */ tasks;
  /** @type {Devices} */ devices;
  /** @type {LeftOut} */ leftOut;
  /** @type {Marks} */ marks;
  /** @type {ItemDetails} */ items;
  /** @type {Stage} */ stage;
  /** @type {Panel} */ panel;
  /** @type {Details} */ details;
  /** @type {Flame} */ flame;
  /** @type {Search} */ search;
  /** @type {Help} */ help;
  /** @type {OpenIn} */ openIn;
  /** @type {Input} */ input;
  /** @type {Follow} */ follow;

  constructor(source) {
    this.source = source;
    this.banners = new Banners(element("banners"));
    this.tip = new Tip(element("tip"));
    this.names = new Names();
    this.theme = new Theme(() => this.themeChanged());
    source.onGone = () => this.gone();
    source.onBack = () => this.back();
  }

  get colors() {
    return this.theme.colors;
  }

  async open() {
    this.info = await this.awaitIndex();
    const { info } = this;
    await Promise.all(info.traces.filter((trace) => !trace.error).map(async ({ trace }) => this.names.add(trace, await this.source.names(trace))));
    document.title = `${titleOf(info)} · vestige`;
    element("title").textContent = titleOf(info);
    element("title").title = info.traces.map((trace) => trace.file ?? trace.title).join("\n");
    this.banners.showTraces(info.traces);
    this.showLegend(info.traces);
    this.banners.show("empty", emptyNote(info));
    this.make(info);
    element("loading").hidden = true;
    await this.loadRest();
    this.follow.start();
  }

  showLegend(traces) {
    const parts = { "legend-states": traces.some((one) => one.states), "legend-marks": traces.some((one) => one.marks) };
    for (const [id, isThere] of Object.entries(parts)) element(id).hidden = !isThere;
    element("legend").hidden = !Object.values(parts).includes(true);
  }

  make(info) {
    const shown = info.traces.filter((trace) => !trace.error);
    this.view = new View(info.duration_ns);
    this.timeline = new Timeline(shown);
    this.windows = new Windows(this.source, info.duration_ns, () => this.stage.invalidate(), (error) => this.say(error.message));
    this.counters = new Counters(this);
    this.lanes = new Lanes(this);
    this.tasks = new Tasks(this);
    this.devices = new Devices(this);
    this.marks = new Marks(this);
    this.leftOut = new LeftOut(this);
    this.stage = new Stage(this);
    this.panel = new Panel(this);
    this.details = new Details(this);
    this.items = new ItemDetails(this);
    this.flame = new Flame(this);
    this.flame.fillScopes(shown);
    this.search = new Search(this);
    this.help = new Help(this);
    this.openIn = new OpenIn(this);
    this.input = new Input(this);
    this.follow = new Follow(this);
    this.listen();
    this.stage.start();
    if (info.first_shown_ns) this.view.begin(...info.first_shown_ns);
  }

  listen() {
    const { view } = this;
    view.addEventListener("move", () => this.moved());
    view.addEventListener("range", () => {
      this.stage.invalidate("overlay");
      this.updateLater();
    });
    view.addEventListener("span", () => this.stage.invalidate("overlay"));
    element("fit", HTMLButtonElement).addEventListener("click", () => view.fit());
    element("undo", HTMLButtonElement).addEventListener("click", () => view.undo());
    element("reset", HTMLButtonElement).addEventListener("click", () => view.reset());
    element("theme", HTMLButtonElement).addEventListener("click", () => this.theme.toggle());
    const imports = element("imports", HTMLButtonElement);
    imports.hidden = !this.source.showImports || Boolean(this.info.live);
    imports.setAttribute("aria-pressed", String(Boolean(this.info.imports_folded)));
    imports.addEventListener("click", () => this.switchImports());
  }

  /** Shows the frames of imports, or folds them. Rows and ids change, so the page reloads. */
  async switchImports() {
    if (!this.source.showImports) return;
    try {
      await this.source.showImports(this.info.imports_folded);
      location.reload();
    } catch (error) {
      this.say(error.message);
    }
  }

  /** Waits until every index is built, and shows the progress. */
  async awaitIndex() {
    for (;;) {
      const info = await this.source.info();
      if (info.ready) return info;
      let progress;
      do {
        progress = await this.source.progress();
        element("loading-text").textContent = "Indexing the trace, once";
        element("loading-what").textContent = `${progress.what} · ${Math.floor(100 * progress.share)} %`;
        element("loading-share", HTMLProgressElement).value = progress.share;
      } while (!progress.ready);
    }
  }

  /** Loads data that the first picture does not need. */
  async loadRest() {
    const { traces } = this.timeline;
    await this.stage.overview.load(this.source, traces, this.info.duration_ns).catch(() => {});
    this.stage.invalidate();
    for (const one of traces) {
      const { trace } = one;
      try {
        if (one.states) await this.lanes.load(trace, "states").then(() => this.stage.want());
        await this.marks.load(one);
        await this.leftOut.load(one);
        await this.tasks.load(one);
        await this.devices.load(one);
        this.stage.losses.set(trace, await this.lanes.loadItems(trace, "losses"));
        if (await this.counters.load(trace)) this.stage.arranged();
      } catch (error) {
        this.say(error.message);
      }
    }
    this.stage.invalidate();
  }

  moved() {
    element("undo", HTMLButtonElement).disabled = !this.view.past.length;
    this.stage.invalidate();
    this.stage.want();
    this.updateLater();
  }

  /** Updates the search and the flame graph once the range stops moving. */
  updateLater() {
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      this.search.count();
      this.flame.update();
    }, 200);
  }

  themeChanged() {
    this.stage?.forget();
    this.flame?.draw();
  }

  matchesChanged() {
    this.stage.forget();
    this.flame.draw();
  }

  showMarks(marks) {
    this.stage.ruler.marks = marks;
    this.stage.invalidate();
  }

  center() {
    return this.stage.pointerTime() ?? (this.view.from + this.view.to) / 2;
  }

  async click(event) {
    const place = this.stage.hit(event);
    element("rows").focus({ preventScroll: true });
    if (place === null || place.rect < 0) {
      this.view.selectSpan(null);
      if (this.view.range) this.view.selectRange(null);
      return;
    }
    await this.select(place);
  }

  /** Shows the marks of a thread between two times. */
  async selectMarks({ trace, thread, start, end, id }) {
    const found = await this.items.loadMarks(trace, thread, Math.max(0, Math.floor(start)), Math.ceil(end));
    if (!found) return null;
    const [first] = found.items;
    const [from, to] = found.count === 1 ? [first.start_ns, first.start_ns] : [start, end];
    this.view.selectSpan({ trace, thread, depth: 0, kind: "marks", start: from, end: to, id });
    this.panel.open("details");
    this.say(found.count === 1 ? `${this.names.get(trace, first.id).name} at ${formatMoment(first.start_ns)}` : `${found.count} marks`);
    return found;
  }

  /** Scrolls to a mark and selects it. */
  async goToMark(trace, thread, time) {
    if (this.timeline.unfold(trace, thread)) this.stage.arranged();
    this.view.reveal(time, time);
    await this.selectMarks({ trace, thread, start: time, end: time + 1, id: 0 });
    this.stage.scrollTo(trace, thread, 0);
  }

  /** Shows the call of a function that is open at a time, or else the innermost open call. */
  async goToCall(trace, thread, time, id) {
    const call = await this.source.callAt(trace, thread, time, id).catch(() => null);
    if (!call) this.say("No such call is in the trace.");
    else await this.goTo(trace, thread, call.depth, call.start_ns, call.end_ns, call.id);
  }

  /** Shows the next call of a function that begins after a time, or the last one before it. */
  async goToNext(trace, id, time, back) {
    const call = await this.source.next(trace, [id], time, back).catch(() => null);
    if (call) await this.goTo(trace, call.thread, call.depth, call.start_ns, call.end_ns, call.id);
    else this.say("No such call is in the trace.");
  }

  /**
   * Selects the span at a place of a rectangle. If the rectangle stands for many spans, selects the span there, or else
   * the first.
   */
  async select(place) {
    const { trace, thread, depth, time, start, kind = "" } = place;
    if (kind === "marks") return this.selectMarks(place);
    if (kind) return this.selectItem(kind, trace, thread, depth, time, start);
    const found = await this.details.load(trace, thread, depth, time)
      ?? await this.details.load(trace, thread, depth, Math.ceil(start));
    if (!found) return null;
    this.view.selectSpan({ trace, thread, depth, start: found.start_ns, end: found.end_ns, id: found.id });
    this.panel.open("details");
    const name = found.name || this.names.get(trace, found.id).name;
    this.say(`${name}, ${formatTime(found.end_ns - found.start_ns)}, begins at ${formatMoment(found.start_ns)}, depth ${depth}`);
    return found;
  }

  /**
   * Selects the item of a lane's row at a time, or else the item where a rectangle begins. In a group's lane, selects
   * the step of a task.
   */
  async selectItem(kind, trace, lane, row, time, start) {
    const found = await this.items.load(kind, trace, lane, row, time) ?? await this.items.load(kind, trace, lane, row, Math.ceil(start));
    if (!found) return null;
    this.view.selectSpan({ trace, thread: lane, depth: row, kind, start: found.start_ns, end: found.end_ns, id: found.id });
    this.panel.open("details");
    this.say(`${found.name}, ${formatTime(found.end_ns - found.start_ns)}, begins at ${formatMoment(found.start_ns)}`);
    return found;
  }

  /** Scrolls to an activity of a device and selects it. */
  async goToActivity(trace, { lane, row, start_ns: start, end_ns: end, id }) {
    if (this.timeline.unfoldStream(trace, lane)) this.stage.arranged();
    this.view.selectSpan({ trace, thread: lane, depth: row, kind: "devices", start, end, id });
    this.view.reveal(start, end);
    await this.selectItem("devices", trace, lane, row, start, start);
    this.stage.scrollTo(trace, lane, row, { kind: "devices" });
  }

  /** Returns the arrow that belongs to the selected item of a lane, or null. */
  wokenSpan() {
    const { shown } = this.items;
    if (shown?.kind !== "tasks" || this.view.span?.kind !== "tasks") return null;
    const { trace, found } = shown;
    if (found.turn || (found.wait ? found.open : found.first)) return null;
    return { trace, lane: found.lane, time_ns: found.wait ? found.end_ns : found.start_ns, waker: found.waker };
  }

  /** Scrolls to a task's step or wait at a time, and selects it. */
  async goToLane(trace, lane, time) {
    await this.tasks.reveal(trace, lane);
    const found = await this.selectItem("tasks", trace, lane, 0, time, time);
    if (!found) return;
    this.view.reveal(found.start_ns, found.end_ns);
    this.stage.scrollTo(trace, lane, 0, { kind: "tasks" });
  }

  /** Scrolls to a span and selects it. */
  async goTo(trace, thread, depth, start, end, id) {
    if (this.timeline.unfold(trace, thread, depth)) this.stage.arranged();
    this.view.selectSpan({ trace, thread, depth, start, end, id });
    this.view.reveal(start, end);
    await this.select({ trace, thread, depth, time: start, start });
    this.stage.scrollTo(trace, thread, depth);
  }

  /** Shift with an arrow key: goes to a neighbour, the caller, or the first callee. */
  async walk(key) {
    const { span } = this.view;
    const next = span ? this.stage.neighbour(span, key) : this.stage.firstShown();
    if (!next) return this.say(span ? "No span there." : "No span is shown.");
    if (await this.select(next)) {
      this.view.reveal(this.view.span.start, this.view.span.end);
      if (!next.kind && this.timeline.unfold(next.trace, next.thread, next.depth)) this.stage.arranged();
      this.stage.scrollTo(next.trace, next.thread, next.depth, next);
    }
  }

  rangeChosen() {
    if (!this.view.range) return;
    const { from, to } = this.view.range;
    this.say(`Selected ${formatTime(to - from)} from ${formatMoment(from)}`);
    if (this.panel.tab === null) this.panel.open("flame");
  }

  openSandwich(one) {
    this.flame.one = one;
    this.flame.shown = "";
    this.panel.open("sandwich");
  }

  focusSearch() {
    element("query", HTMLInputElement).focus();
    element("query", HTMLInputElement).select();
  }

  foldAll() {
    this.timeline.toggleAll();
    this.stage.arranged();
  }

  escape() {
    if (this.view.range) this.view.selectRange(null);
    else if (this.view.span) this.view.selectSpan(null);
    else this.panel.close();
  }

  say(text) {
    element("status").textContent = text;
  }

  gone() {
    this.banners.show("gone", "The server does not answer: vestige view was stopped, or the connection is lost. The data fetched so far stays visible. To go on, start vestige view again and open the address that it prints.", "error");
    clearTimeout(this.knock);
    this.knock = setTimeout(() => this.source.info().catch(() => {}), 2000);
  }

  back() {
    if (!element("banners").querySelector('[data-key="gone"]')) return;
    this.banners.show("gone", null);
    this.stage?.want();
  }
}

function titleOf(info) {
  const [first] = info.traces;
  const name = first?.name || first?.file || first?.title || "trace";
  return info.traces.length > 1 ? `${name} (${info.traces.length} processes)` : name;
}

async function main() {
  const data = document.getElementById("vestige-data");
  const app = new App(data ? new EmbeddedSource(data.textContent) : new HttpSource(takeToken()));
  Object.assign(window, { vestige: app }); // for the console, and for tests
  try {
    await app.open();
  } catch (error) {
    element("loading-text").textContent = "The trace cannot be shown";
    element("loading-what").textContent = error.message;
    element("loading-share").hidden = true;
    throw error;
  }
}

main();
