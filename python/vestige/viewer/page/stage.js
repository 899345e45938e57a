// The canvases of the timeline, and when each is drawn. A frame is drawn only when something changed.

import { element } from "./elements.js";
import { Gutter } from "./gutter.js";
import { Overlay } from "./overlay.js";
import { Overview } from "./overview.js";
import { Painter } from "./draw.js";
import { Ruler, ticksOf } from "./ruler.js";
import { MANY_WAIT, awaitText } from "./tasks.js";
import { ROW, hasRows, kindOf, numberOf, rowsTop } from "./timeline.js";
import { placeOf } from "./names.js";
import { formatCount, formatMoment, formatTime } from "./units.js";
import { AWAITS, awaitsOf } from "./window_data.js";

// by the row of a lane of losses, see src/view/lanes_losses.c
const LOST = ["records could not be kept", "not recorded here", "records were dropped to stay within the limit of size or time"];
const GAP = 1;
const NEAR = 3; // a thin span within so many CSS pixels of the pointer is hit

export class Stage {
  constructor(app) {
    this.app = app;
    this.rows = element("rows");
    this.box = element("stage");
    this.painter = new Painter(element("spans", HTMLCanvasElement));
    this.overlay = new Overlay(element("overlay", HTMLCanvasElement));
    this.ruler = new Ruler(element("ruler", HTMLCanvasElement));
    this.overview = new Overview(element("overview", HTMLCanvasElement), app.view);
    this.gutter = new Gutter(element("gutter"), (key) => {
      const track = app.timeline.places.get(key);
      if (track?.type === "lane") return app.tasks.toggle(track);
      app.timeline.toggle(key);
      this.arranged();
    });
    this.losses = new Map();
    this.event = null; // the pointer's last event over the rows
    this.hover = null; // the place under the pointer
    this.pointer = null; // x of the pointer, CSS pixels
    this.whole = null; // the span last requested because its window cuts it off
    this.isAsking = false;
    this.width = this.height = this.ratio = 0;
    this.pending = null;
    this.rows.addEventListener("scroll", () => {
      this.invalidate();
      this.want();
    });
    new ResizeObserver(() => this.invalidate()).observe(this.rows);
  }

  start() {
    element("content").style.height = `${this.app.timeline.height}px`;
    this.measure();
    this.want();
    this.invalidate();
  }

  /** what: "overlay" if nothing else changed. */
  invalidate(what = "all") {
    if (this.pending === null) requestAnimationFrame(() => this.frame());
    this.pending = this.pending === "all" || what === "all" ? "all" : what;
  }

  forget() {
    this.painter.forget();
    this.invalidate();
  }

  arranged() {
    element("content").style.height = `${this.app.timeline.height}px`;
    this.gutter.clear();
    this.want();
    this.invalidate();
  }

  measure() {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(50, this.rows.clientWidth - element("gutter").offsetWidth), height = Math.max(1, this.rows.clientHeight);
    if (width === this.width && height === this.height && ratio === this.ratio) return false;
    Object.assign(this, { width, height, ratio });
    this.box.style.width = `${width}px`;
    this.box.style.height = `${height}px`;
    this.painter.resize(width, height, ratio);
    this.overlay.resize(width, height, ratio);
    element("ruler", HTMLCanvasElement).style.width = element("overview", HTMLCanvasElement).style.width = `${width}px`;
    this.ruler.resize(width, element("ruler", HTMLCanvasElement).clientHeight, ratio);
    this.overview.resize(width, element("overview", HTMLCanvasElement).clientHeight, ratio);
    return true;
  }

  shownTracks(margin = 0) {
    const top = this.rows.scrollTop;
    return this.app.timeline.between(top - margin, top + this.height + margin);
  }

  /** Requests the data of the visible rows, and of one screen above and below. */
  want() {
    const { view, windows } = this.app;
    const wishes = new Map(), tasks = new Map(), streams = new Map(), marks = new Map(), states = new Map(), counters = new Map();
    const pixels = Math.round(this.width * this.ratio);
    const bottom = this.rows.scrollTop + 2 * this.height;
    const ask = (asked, trace, lane, wide) => {
      if (!asked.has(trace)) asked.set(trace, { trace, from: view.from, to: view.to, pixels: wide, threads: [], depth: 0 });
      asked.get(trace).threads.push(lane);
    };
    for (const track of this.shownTracks(this.height)) {
      const { trace } = track.trace;
      if (track.type === "counter") ask(counters, trace, track.counter.lane, Math.round(this.width));
      if (track.type === "lane" || track.type === "stream") {
        ask(track.type === "lane" ? tasks : streams, trace, numberOf(track), pixels);
      }
      if (track.type !== "thread") continue;
      for (const [kind, asked, wide] of [["marks", marks, this.app.marks.pixels], ["states", states, pixels]]) {
        const lane = this.app.lanes.ofThread(kind, trace, track.thread.number);
        if (lane) ask(asked, trace, lane.lane, wide);
      }
      if (!wishes.has(trace)) wishes.set(trace, { trace, from: view.from, to: view.to, pixels, threads: [], depth: 32 });
      const wish = wishes.get(trace);
      wish.threads.push(track.thread.number);
      if (!track.folded) wish.depth = Math.max(wish.depth, Math.ceil(Math.min(track.rows, (bottom - track.top) / ROW) / 32) * 32);
    }
    for (const wish of wishes.values()) windows.want(wish);
    if (tasks.size) this.app.tasks.want([...tasks.values()]);
    this.app.lanes.want("devices", streams.values());
    this.app.lanes.want("marks", marks.values());
    this.app.lanes.want("states", states.values());
    this.app.lanes.want("counters", counters.values());
  }

  frame() {
    const all = this.pending === "all";
    this.pending = null;
    if (this.measure()) this.want();
    if (this.event) this.aim();
    const { app } = this, { view, timeline, theme } = app;
    const css = theme.colors, top = this.rows.scrollTop;
    const ticks = ticksOf(view, this.width);
    if (all) {
      const tracks = this.shownTracks();
      const matches = app.search?.ids ?? null;
      this.painter.draw({
        view, tracks, top, windows: app.windows, lanes: app.lanes, names: app.names, palette: theme.palette, matches, css,
        text: css.text, faint: css.faint, matchText: css.matchText,
      });
      this.drawTracks(tracks, top);
      element("scale").textContent = this.ruler.draw(view, ticks, css);
      this.overview.draw(css);
      this.gutter.draw(tracks, (track) => isOpen(track, timeline), (track) => app.counters.textFor(track, this.pointerTime()));
    }
    this.overlay.draw({ view, timeline, top, hover: this.hover, pointer: this.pointer, ticks: ticks.ticks, css, arrows: app.tasks.arrows, woken: app.wokenSpan(), launches: app.devices.arrows() });
    if (all && [app.windows, app.lanes].every((one) => one.settled)) document.dispatchEvent(new Event("vestige-settled"));
  }

  /** Draws over the spans: the lines of processes, losses, counters. */
  drawTracks(tracks, top) {
    const { context, ratio } = this.painter, css = this.app.colors;
    for (const track of tracks) {
      const y = track.top - top;
      if (track.type === "process" || track.type === "device") {
        context.fillStyle = css.band[0];
        context.globalAlpha = 0.18;
        context.fillRect(0, Math.round((y + 3) * ratio), this.painter.width, Math.round((track.height - 6) * ratio));
        context.globalAlpha = 1;
      } else if (track.type === "counter") {
        context.fillStyle = css.edge;
        context.fillRect(0, Math.round((y + track.height - 2) * ratio), this.painter.width, 1);
        this.app.counters.draw(context, track, y, ratio, css);
      } else if (track.type === "thread") {
        this.drawLosses(track, y);
        this.app.leftOut.draw(context, track, y, ratio, css.loss);
        if (track.inset) this.app.marks.draw(context, track, y, ratio, css, this.app.search?.ids ?? null);
      }
    }
  }

  drawLosses(track, y) {
    const found = this.losses.get(track.trace.trace)?.filter((one) => one.thread === track.thread.number);
    if (!found?.length) return;
    const { context, ratio } = this.painter, { view } = this.app;
    context.save();
    context.scale(ratio, ratio);
    for (const { start_ns, end_ns } of found) {
      const left = Math.max(this.x(start_ns), -2), right = Math.min(Math.max(this.x(end_ns), this.x(start_ns) + 3), this.width + 2);
      if (right < 0 || left > this.width || end_ns < view.from) continue;
      context.fillStyle = this.hatch();
      context.fillRect(left, y, right - left, track.height);
    }
    context.restore();
  }

  hatch() {
    const color = this.app.colors.loss;
    const { hatched } = this;
    if (hatched && hatched.color === color) return hatched.pattern;
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const context = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
    context.strokeStyle = color;
    context.lineWidth = 1.4;
    for (const shift of [-8, 0, 8]) {
      context.moveTo(shift - 1, 9);
      context.lineTo(shift + 9, -1);
    }
    context.stroke();
    this.hatched = { color, pattern: this.painter.context.createPattern(tile, "repeat") };
    return this.hatched.pattern;
  }

  x(ns) {
    return ((ns - this.app.view.from) / this.app.view.width) * this.width;
  }

  pointerTime() {
    return this.pointer === null ? null : this.app.view.from + (this.pointer / this.width) * this.app.view.width;
  }

  /** Returns what is under the pointer: null outside of threads; with rect -1 if no span is there. */
  hit(event) {
    const box = this.box.getBoundingClientRect();
    if (event.clientY >= box.bottom) return null; // the rows have become lower
    const x = event.clientX - box.left, y = event.clientY - box.top + this.rows.scrollTop;
    const track = this.app.timeline.at(y);
    if (!track || !hasRows(track)) return null;
    const depth = this.app.timeline.depthAt(track, y);
    if (track.type === "thread" && y < rowsTop(track)) return this.app.marks.hit(track, x);
    const time = this.app.view.from + (x / this.width) * this.app.view.width;
    return this.rectAt(track, depth, time, (NEAR / this.width) * this.app.view.width);
  }

  rectAt(track, depth, time, slack) {
    const { trace } = track.trace, place = { trace, thread: numberOf(track), depth, time, kind: kindOf(track) };
    const { exact, wide } = this.windowsOf(place, trace);
    for (const data of [exact, wide]) {
      const rect = data?.find(place.thread, depth, time, slack) ?? -1;
      if (rect >= 0) return this.complete(describe(data, rect, place));
    }
    return { ...place, rect: -1 };
  }

  /** Gives a span that its window cuts off its true length, or requests the length. */
  complete(place) {
    if (!place.cut || place.count > 1) return place;
    const time = Math.round((place.start + place.end) / 2), { whole } = this;
    const isKnown = whole && ["trace", "thread", "depth", "id", "kind"].every((key) => whole[key] === place[key]);
    if (isKnown && whole.start - 1 < time && time < whole.end + 1) return { ...place, start: whole.start, end: whole.end, cut: whole.cut };
    if (!this.isAsking) this.askWhole(place, time);
    return place;
  }

  async askWhole(place, time) {
    const { source } = this.app, { trace, thread, depth, kind } = place;
    this.isAsking = true;
    try {
      const found = await (kind ? source.laneAt(trace, kind, thread, depth, time) : source.span(trace, thread, depth, time));
      this.whole = found ? { ...place, start: found.start_ns, end: found.end_ns, cut: false } : place;
    } catch {
      this.whole = place;
    }
    this.isAsking = false;
    this.invalidate("overlay");
  }

  windowsOf({ kind }, trace) {
    const { lanes, windows } = this.app;
    return (lanes.windows.get(kind) ?? windows).of(trace);
  }

  /** Handles an event of the pointer over the rows; null: the pointer has left them. */
  point(event) {
    this.event = event;
    this.pointer = event ? event.clientX - this.box.getBoundingClientRect().left : null;
    if (!event) this.aim();
    this.invalidate(this.app.timeline.counters.size ? "all" : "overlay");
  }

  /** Finds the place under the pointer. Called for each frame, because the picture may move under a resting pointer. */
  aim() {
    const { event } = this, place = event ? this.hit(event) : null;
    this.hover = place && place.rect >= 0 ? place : null;
    this.box.classList.toggle("over", Boolean(this.hover));
    this.app.tip.show(this.hover ? this.tipOf(this.hover) : event ? this.lossTip(place) : null, event);
  }

  tipOf(place) {
    if (place.kind === "tasks") return this.laneTip(place);
    if (place.kind === "devices") return this.deviceTip(place);
    if (place.kind === "marks") return this.app.marks.tipOf(place);
    const { trace, id, start, end, count, raised } = place;
    const one = this.app.names.get(trace, id);
    const title = count > 1 ? `${count >= 65535 ? "65 535 or more" : formatCount(count)} spans, mostly ${one.name}` : one.name;
    const lines = [placeOf(one), timeOf(place)];
    if (raised) lines.push("left by an exception");
    lines.push(this.app.leftOut.lineOf(trace, start, end));
    return { title, lines };
  }

  laneTip(place) {
    const { trace, thread, id, word, count } = place;
    const one = this.app.names.get(trace, id), { lane } = this.app.timeline.lane(trace, thread);
    const lines = [timeOf({ ...place, count: 1 })];
    if (!(word & AWAITS)) return { title: `${lane.name}: ${count > 1 ? `${formatCount(count)} steps` : one.name}`, lines };
    const kind = awaitsOf(word);
    const what = awaitText(kind, id === lane.id ? null : one.name, count);
    return { title: `${lane.name}: ${what}`, lines: kind === MANY_WAIT ? lines : [placeOf(one), ...lines] };
  }

  deviceTip(place) {
    const { trace, thread, id, count } = place;
    const one = this.app.names.get(trace, id), { lane } = this.app.timeline.stream(trace, thread);
    const title = count > 1 ? `${count >= 65535 ? "65 535 or more" : formatCount(count)} activities, mostly ${one.name}` : one.name;
    return { title, lines: [this.app.devices.placeOf(trace, lane), timeOf(place)] };
  }

  lossTip(place) {
    if (place?.kind) return null;
    const loss = place && this.losses.get(place.trace)?.find((one) => one.thread === place.thread
      && place.time >= one.start_ns && place.time <= one.end_ns);
    if (!loss) return null;
    const what = `${loss.records ? formatCount(loss.records) + " " : ""}${LOST[loss.row]}`;
    return { title: loss.row === GAP ? "Not recorded here" : what, lines: [formatTime(loss.end_ns - loss.start_ns)] };
  }

  /** Returns the span to the left or right of another, above or below it; null if there is none. */
  neighbour({ trace, thread, depth, start, end, kind }, key) {
    const track = this.app.timeline.trackOf({ trace, thread, kind });
    if (!track || kind === "marks") return null;
    const { exact } = this.windowsOf({ kind }, trace);
    const middle = Math.max(start, Math.min((start + end) / 2, end));
    if (key === "ArrowUp") return depth > 0 ? present(this.rectAt(track, depth - 1, middle, 1)) : null;
    const row = exact?.threads.get(thread)?.find(([one]) => one === (key === "ArrowDown" ? depth + 1 : depth));
    if (!row) return null;
    const [level, first, count] = row;
    for (let step = 0; step < count; step++) {
      const rect = key === "ArrowLeft" ? first + count - 1 - step : first + step;
      const from = exact.start(rect), to = exact.end(rect), slack = exact.scale * 2;
      const fits = key === "ArrowLeft" ? from < start - slack && to <= start + slack
        : key === "ArrowRight" ? from >= end - slack && from > start + slack : to > start && from >= start - slack && from < end;
      if (fits) return describe(exact, rect, { trace, thread, depth: level, time: Math.ceil(from), kind });
    }
    return null;
  }

  firstShown() {
    for (const track of this.shownTracks()) {
      if (track.type !== "thread") continue;
      const { exact } = this.app.windows.of(track.trace.trace);
      const row = exact?.threads.get(track.thread.number)?.[0];
      if (row?.[2]) return describe(exact, row[1], { trace: track.trace.trace, thread: track.thread.number, depth: row[0], time: Math.ceil(exact.start(row[1])) });
    }
    return null;
  }

  scrollTo(trace, thread, depth, { kind = "" } = {}) {
    const track = this.app.timeline.trackOf({ trace, thread, kind });
    if (!track) return;
    const y = rowsTop(track) + (track.folded ? 0 : depth * ROW);
    const { scrollTop } = this.rows;
    if (y < scrollTop + ROW) this.rows.scrollTop = y - 3 * ROW;
    else if (y + ROW > scrollTop + this.rows.clientHeight) this.rows.scrollTop = y - this.rows.clientHeight + 4 * ROW;
  }
}

/** Returns whether a track is unfolded; null if it cannot be folded. */
function isOpen(track, timeline) {
  if (track.type === "lane") return track.group ? track.group.open : null;
  return !timeline.folded.has(track.key);
}

/** Returns the length and the beginning of a span. If its window cuts the span off, returns those of the known part. */
function timeOf({ start, end, count, busy, cut }) {
  const length = `${cut ? "at least " : ""}${formatTime(end - start)}`;
  return `${length}${count > 1 ? `, busy ${Math.round(busy * 100)} %` : ""}${cut ? "" : ` · at ${formatMoment(start)}`}`;
}

function present(place) {
  return place.rect >= 0 ? place : null;
}

function describe(data, rect, place) {
  return {
    ...place, rect, start: data.start(rect), end: data.end(rect), id: data.id(rect), word: data.flags(rect),
    count: data.count(rect), busy: data.busy(rect), raised: (data.flags(rect) & (1 << 24)) !== 0, cut: data.isCut(rect),
  };
}

