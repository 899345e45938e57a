// The trace as `vestige view` serves it. source_embedded.js has the same methods, but answers from the page itself.

export class Gone extends Error {}

const KEY = "vestige-token";

/**
 * Removes the token from the address, because somebody may see the screen or get the address. This tab keeps the token,
 * for when the page is loaded again. A cookie would be sent to every port of this machine.
 */
export function takeToken() {
  const given = new URLSearchParams(location.search).get("token");
  try {
    if (given === null) return sessionStorage.getItem(KEY) ?? "";
    sessionStorage.setItem(KEY, given);
    history.replaceState(null, "", location.pathname + location.hash);
  } catch { /* the browser stores nothing, so the token stays in the address */ }
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

  /** Makes the server read newly recorded data, then returns the answer of info(). */
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

  /** Returns the lanes of a kind, {lanes, left_out}, or some of the lanes that another lane shows as one. */
  lanes(trace, kind, first = undefined, count = undefined) {
    return this.json("/api/lanes", { trace, kind, first, count });
  }

  /** Returns a window whose rows are those of lanes. */
  async laneWindow({ trace, kind, from, to, pixels, threads }, signal) {
    return (await this.get("/api/lanes/window", { trace, kind, from, to, pixels, lanes: threads.join(",") }, signal)).arrayBuffer();
  }

  /** Returns the item that a row of a lane shows at a time, or null. */
  laneAt(trace, kind, lane, row, time, signal) {
    return this.json("/api/lanes/at", { trace, kind, lane, row, time: Math.floor(time) }, signal);
  }

  /** Returns the items of lanes that begin in a range: {count, items}. Only the first `most` are listed. */
  laneBetween(trace, kind, lanes, from, to, most, signal) {
    return this.json("/api/lanes/between", { trace, kind, lanes: lanes.join(","), from, to, most }, signal);
  }

  /** Returns the call of a function that is open at a time, or else the innermost open call, or null. */
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

  /** Folds each import into a span, or shows all of its frames. The server builds the indexes anew. */
  showImports(all) {
    return this.post("/api/imports", { all });
  }

  find(trace, ids, from, to, pixels, signal) {
    return this.post("/api/find", { trace, ids, from, to, pixels }, signal);
  }

  next(trace, ids, after, back, signal) {
    return this.post("/api/next", { trace, ids, after, back }, signal);
  }

  /** Returns the address of a file in another tool's format. `range` is {from, to}, or null for the whole trace. */
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
      const body = await answer.json().catch(() => null);
      throw new Error(body?.error ?? `The server answered ${answer.status}.`);
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
