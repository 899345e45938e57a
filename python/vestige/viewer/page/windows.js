// Fetches the rectangles of the shown range. Each trace has at most one request in progress. Meanwhile the range that
// the user wants now waits, and the old data is drawn, moved and scaled. Answers that are no longer useful are dropped.
// Once the view rests, a wider part is fetched, so that the next pan has data.

import { WindowData } from "./window_data.js";

const STALE = 400; // ms after which a request is cancelled if the user wants another range
const STILL = 90; // ms for which the range must not change before the margins are fetched
const MARGIN = 1; // the fetched margin on each side, relative to the shown range

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

  /** Sets what is shown of a trace: {trace, from, to, pixels, threads, depth}. */
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
    if (held.exact?.key === wish.key) { // moved back to data that we have
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
    } catch { /* margins are optional: the next wish tries again */ }
    if (held.wideBusy === abort) held.wideBusy = null;
  }

  /** Call when the trace has become longer: answers that reached its old end are incomplete now. */
  extend(duration, before) {
    this.duration = Math.ceil(duration);
    for (const held of this.held.values()) {
      if (held.exact && held.exact.to >= before) held.exact.key = "";
      if (held.wide && held.wide.to >= before) held.wide = null;
    }
  }

  /** Whether no request is in progress or waiting. */
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

/** Returns whether a request in progress can be cancelled, because its answer would show nothing that is wanted. */
function isUseless({ wish: sent, since }, wish) {
  if (performance.now() - since > STALE) return true;
  const overlap = Math.min(sent.to, wish.to) - Math.max(sent.from, wish.from);
  return overlap < (wish.to - wish.from) * 0.25;
}
