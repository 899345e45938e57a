// Gets the rectangles of what is shown. Of each trace one request is under way at most; while it is, the newest wish
// waits, and what is at hand is drawn moved and scaled. An answer that nobody can use any more is dropped. When all is
// still, a wider part is fetched, so that the next pan finds something there.

import { WindowData } from "./window_data.js";

const STALE = 400; // ms after which a request gives way to a newer wish
const STILL = 90; // ms without a wish before the margins are fetched
const MARGIN = 1; // of what is shown, on each side

export class Windows {
  constructor(source, duration, onAnswer, onError) {
    this.source = source;
    this.duration = Math.ceil(duration);
    this.onAnswer = onAnswer;
    this.onError = onError;
    this.held = new Map(); // trace -> {exact, wide, wish, busy}
    this.waiting = 0;
  }

  of(trace) {
    if (!this.held.has(trace)) this.held.set(trace, { exact: null, wide: null, wish: null, busy: null, wideBusy: null });
    return this.held.get(trace);
  }

  /** What is shown of a trace now: {trace, from, to, pixels, threads, depth}. */
  want(wish) {
    wish.from = Math.max(0, Math.floor(wish.from));
    wish.to = Math.min(this.duration, Math.ceil(wish.to));
    if (wish.to <= wish.from) return;
    wish.key = `${wish.from} ${wish.to} ${wish.pixels} ${wish.depth} ${wish.threads.join(",")}`;
    const held = this.of(wish.trace);
    if (held.busy?.wish.key === wish.key) {
      held.wish = null;
      return;
    }
    if (held.exact?.key === wish.key) { // moved back to what is there
      held.busy?.abort.abort();
      held.busy = held.wish = null;
      return;
    }
    held.wish = wish;
    held.wideBusy?.abort();
    held.wideBusy = null;
    if (held.busy && !isUseless(held.busy, wish)) return;
    held.busy?.abort.abort();
    this.send(held, wish);
  }

  async send(held, wish) {
    const busy = { wish, abort: new AbortController(), since: performance.now() };
    held.busy = busy;
    held.wish = null;
    try {
      const data = await this.fetch(wish, busy.abort.signal);
      if (held.busy !== busy) return;
      held.exact = data;
    } catch (error) {
      if (held.busy !== busy) return;
      if (error.name !== "AbortError") this.onError(error);
    }
    held.busy = null;
    this.onAnswer(wish.trace, held.wish === null);
    if (held.wish) this.send(held, held.wish);
    else this.later(held, wish);
  }

  async fetch(wish, signal) {
    return new WindowData(await this.source.window(wish, signal), wish.key, new Set(wish.threads));
  }

  later(held, wish) {
    clearTimeout(held.timer);
    held.timer = setTimeout(() => this.widen(held, wish), STILL);
  }

  async widen(held, wish) {
    if (held.busy || held.wish) return;
    const margin = (wish.to - wish.from) * MARGIN;
    const from = Math.max(0, Math.floor(wish.from - margin)), to = Math.min(this.duration, Math.ceil(wish.to + margin));
    if (held.wide && held.wide.from === from && held.wide.to === to && held.wide.key === wish.key) return;
    if (from === wish.from && to === wish.to) return;
    const abort = new AbortController();
    held.wideBusy = abort;
    try {
      const pixels = Math.round((wish.pixels * (to - from)) / (wish.to - wish.from));
      held.wide = await this.fetch({ ...wish, from, to, pixels }, abort.signal);
    } catch { /* only a help: the next wish asks again */ }
    if (held.wideBusy === abort) held.wideBusy = null;
  }

  /** The trace is longer now: answers that reached its end before are not whole any more. */
  extend(duration, before) {
    this.duration = Math.ceil(duration);
    for (const held of this.held.values()) {
      if (held.exact && held.exact.to >= before) held.exact.key = "";
      if (held.wide && held.wide.to >= before) held.wide = null;
    }
  }

  /** Whether nothing is under way or waiting. */
  get settled() {
    for (const held of this.held.values()) if (held.busy || held.wish) return false;
    return true;
  }

  drop() {
    for (const held of this.held.values()) {
      held.busy?.abort.abort();
      held.wideBusy?.abort();
      clearTimeout(held.timer);
    }
  }
}

/** A request under way may finish if its answer still shows something of what is wanted. */
function isUseless({ wish: sent, since }, wish) {
  if (performance.now() - since > STALE) return true;
  const overlap = Math.min(sent.to, wish.to) - Math.max(sent.from, wish.from);
  return overlap < (wish.to - wish.from) * 0.25;
}
