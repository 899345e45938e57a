// The trace as `vestige view` serves it. The other source, source_embedded.js, answers the same calls from the page itself.

export class Gone extends Error {}

const KEY = "vestige-token";

/** Takes the token out of the address: somebody who sees the screen, or is sent the address, must not get it. This tab
 * keeps it, for when the page is loaded again. Not in a cookie: those go to every port of this machine. */
export function takeToken() {
  const given = new URLSearchParams(location.search).get("token");
  try {
    if (given === null) return sessionStorage.getItem(KEY) ?? "";
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname + location.hash);
  } catch { /* a browser that keeps nothing: the address must */ }
  return given ?? "";
}

export class HttpSource {
  constructor(token) {
    this.token = token;
    this.canExport = true;
    this.onGone = () => {};
    this.onBack = () => {};
  }

  info(signal) {
    return this.json("/api/info", {}, signal);
  }

  /** What info() says, after what was recorded meanwhile was read. */
  follow() {
    return this.json("/api/follow");
  }

  progress() {
    return this.json("/api/progress", { wait: 1 });
  }

  names(trace) {
    return this.json("/api/names", { trace });
  }

  async window({ trace, from, to, pixels, threads, depth }, signal) {
    const asked = { trace, from, to, pixels, threads: threads?.join(",") };
    if (depth) asked.depth = depth;
    return (await this.get("/api/window", asked, signal)).arrayBuffer();
  }

  /** Which lanes of a kind a trace has: {lanes, left_out}, or some of those that are shown as one in another. */
  lanes(trace, kind, first = undefined, count = undefined) {
    return this.json("/api/lanes", { trace, kind, first, count });
  }

  /** A window whose rows are those of such lanes. */
  async laneWindow({ trace, kind, from, to, pixels, threads }, signal) {
    return (await this.get("/api/lanes/window", { trace, kind, from, to, pixels, lanes: threads.join(",") }, signal)).arrayBuffer();
  }

  /** The item that a row of a lane shows at a time, or null. */
  laneAt(trace, kind, lane, row, time, signal) {
    return this.json("/api/lanes/at", { trace, kind, lane, row, time: Math.floor(time) }, signal);
  }

  /** The items of lanes that begin in a range: {count, items}, of which only the first `most` are listed. */
  laneBetween(trace, kind, lanes, from, to, most, signal) {
    return this.json("/api/lanes/between", { trace, kind, lanes: lanes.join(","), from, to, most }, signal);
  }

  /** The call of a function around a time, else the innermost there, or null. */
  callAt(trace, thread, time, id) {
    return this.json("/api/call", { trace, thread, time, id });
  }

  span(trace, thread, depth, time, signal) {
    return this.json("/api/span", { trace, thread, depth, time: Math.floor(time) }, signal);
  }

  source(trace, id) {
    return this.json("/api/source", { trace, id });
  }

  flame(trace, from, to, threads, signal) {
    return this.json("/api/flame", { trace, from, to, threads: threads?.join(","), limit: 20000 }, signal);
  }

  /** Imports folded into a span each, or with all of their frames: the indexes are built anew. */
  showImports(all) {
    return this.post("/api/imports", { all });
  }

  find(trace, ids, from, to, pixels, signal) {
    return this.post("/api/find", { trace, ids, from, to, pixels }, signal);
  }

  next(trace, ids, after, back, signal) {
    return this.post("/api/next", { trace, ids, after, back }, signal);
  }

  counters(trace, from, to, pixels, signal) {
    return this.json("/api/counters", { trace, from, to, pixels }, signal);
  }

  losses(trace, from, to, signal) {
    return this.json("/api/losses", { trace, from, to }, signal);
  }

  leftOut(trace) {
    return this.json("/api/left_out", { trace });
  }

  /** The address of a file in another tool's format; range is {from, to} or null for the whole. */
  exportAddress(format, range) {
    return this.address("/api/export", { to: format, from: range?.from, to_ns: range?.to, token: this.token });
  }

  async exportBytes(format, range) {
    const asked = { to: format, from: range?.from, to_ns: range?.to };
    return (await this.get("/api/export", asked)).arrayBuffer();
  }

  handover(range) {
    return this.json("/api/handover", { to: "speedscope", from: range?.from, to_ns: range?.to });
  }

  address(path, asked) {
    const query = Object.entries(asked).filter(([, value]) => value !== undefined && value !== null);
    return query.length ? `${path}?${new URLSearchParams(query.map(([key, value]) => [key, String(value)]))}` : path;
  }

  async json(path, asked = {}, signal = undefined) {
    return (await this.get(path, asked, signal)).json();
  }

  get(path, asked, signal) {
    return this.send(this.address(path, asked), { signal });
  }

  async post(path, body, signal) {
    const headers = { "Content-Type": "application/json" };
    return (await this.send(path, { method: "POST", body: JSON.stringify(body), headers, signal })).json();
  }

  async send(address, options) {
    const headers = { ...options.headers, "X-Vestige-Token": this.token };
    for (;;) {
      const answer = await this.reach(address, { ...options, headers, cache: "no-store" });
      if (answer.ok) return answer;
      if (answer.status === 503) { // the index of this trace is still being built
        await new Promise((done) => setTimeout(done, 1000 * (Number(answer.headers.get("Retry-After")) || 1)));
        continue;
      }
      const told = await answer.json().catch(() => null);
      throw new Error(told?.error ?? `The server answered ${answer.status}.`);
    }
  }

  async reach(address, options) {
    try {
      const answer = await fetch(address, options);
      this.onBack();
      return answer;
    } catch (error) {
      if (error.name === "AbortError") throw error;
      this.onGone();
      throw new Gone("The server does not answer.");
    }
  }
}
