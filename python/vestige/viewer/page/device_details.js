// What is told of a kernel, a copy, or a call of a device's runtime, in the panel of details.

import { labelOf } from "./devices.js";
import { formatBytes, formatCount, formatMoment, formatTime } from "./units.js";
import { flatten, listOf, make } from "./details.js";

const LISTED = 12; // of what came from a call
const KINDS = ["?", "kernel", "copy", "set", "synchronisation", "overhead", "runtime call", "driver call"]; // see <vestige/device.h>
const COPIED = [2, 3], ON_THREAD = [5, 6, 7];

export class DeviceDetails {
  constructor(app) {
    this.app = app;
    this.shown = null; // {trace, found} of what is selected
    app.details.element.addEventListener("click", (event) => {
      const button = event.target instanceof Element && event.target.closest("button[data-device]");
      if (button instanceof HTMLElement) this.follow(button.dataset.device, Number(button.dataset.at ?? 0));
    });
  }

  /** Fetches and shows what a lane has at a time; resolves with it, or null. */
  async load(trace, lane, row, time) {
    this.app.details.abort?.abort();
    const abort = (this.app.details.abort = new AbortController());
    try {
      const found = await this.app.source.laneAt(trace, "devices", lane, row, time, abort.signal);
      if (abort.signal.aborted || !found) return null;
      this.shown = { trace, found };
      this.show(trace, found);
      return { ...found, name: this.name(found.id) };
    } catch (error) {
      if (error.name !== "AbortError") this.app.say(error.message);
      return null;
    }
  }

  name(id) {
    return this.app.names.get(this.shown?.trace, id).name;
  }

  show(trace, found) {
    this.app.details.span = null;
    this.app.details.element.replaceChildren(this.facts(trace, found), this.causes(found), this.launched(found));
  }

  facts(trace, found) {
    const box = make("div", "facts"), heading = make("div", "heading"), length = found.end_ns - found.start_ns;
    heading.append(make("h2", "", this.name(found.id)), make("span", "kind activity", KINDS[found.kind] ?? "?"));
    const lane = /** @type {any} */ (this.app.devices.lane(trace, found.lane)), device = this.app.devices.device(trace, lane.device);
    const rows = [
      ["Duration", formatTime(length), `${formatCount(length)} ns`],
      ["Begins", formatMoment(found.start_ns)], ["Ends", formatMoment(found.end_ns)],
    ];
    if (device) rows.push(["Device", labelOf(device), device.name], ["Stream", lane.name || String(lane.stream)]);
    else rows.push(["Thread", this.app.devices.placeOf(trace, lane)]);
    if (found.launch) rows.push(["After the call", formatTime(found.start_ns - found.launch.start_ns)]);
    if (COPIED.includes(found.kind)) rows.push(["Bytes", formatBytes(found.bytes), `${formatCount(found.bytes)} bytes`], ["Bandwidth", `${(length > 0 ? found.bytes / length : 0).toPrecision(4)} GB/s`]);
    box.append(heading, listOf(rows), make("h3", "", "Arguments"), listOf(argsOf(found, lane), "args"));
    return box;
  }

  causes(found) {
    const box = make("div", "parents"), onDevice = !ON_THREAD.includes(found.kind);
    box.append(make("h3", "", onDevice ? "Launched by" : "Made in"));
    if (found.launch) box.append(link("launch", this.name(found.launch.id)), make("p", "note", `at ${formatMoment(found.launch.start_ns)}`));
    else if (onDevice) box.append(make("p", "", "a call that the trace does not have"));
    for (const [what, id] of [["operator", found.op], ["annotation", found.annotation]]) {
      if (id) box.append(make("h3", "", `In the ${what}`), link(what, this.name(id)));
    }
    if (!found.op && !found.annotation && !onDevice) box.append(make("p", "", "no operator or annotation"));
    return box;
  }

  launched(found) {
    const box = make("div", "parents");
    if (!ON_THREAD.includes(found.kind)) return box;
    const count = found.linked_count;
    box.append(make("h3", "", count ? `Launched ${formatCount(count)}` : "Launched nothing"));
    found.linked.slice(0, LISTED).forEach((one, at) => box.append(link("launched", this.name(one.id), at), make("span", "note", formatTime(one.end_ns - one.start_ns))));
    if (count > LISTED) box.append(make("p", "note", `and ${formatCount(count - LISTED)} others`));
    return box;
  }

  follow(to, at) {
    if (!this.shown) return;
    const { trace, found } = this.shown, { app } = this;
    if (to === "launch" || to === "launched") return app.goToActivity(trace, to === "launch" ? found.launch : found.linked[at]);
    const made = found.launch ?? found; // a call itself
    return app.goToCall(trace, app.devices.lane(trace, made.lane).thread, made.start_ns, to === "operator" ? found.op : found.annotation);
  }
}

/** By the names that Kineto gives them. */
function argsOf({ context, correlation, external, args }, { device, stream }) {
  const place = device ? { context, stream } : {};
  return flatten({ ...place, correlation, ...(external ? { "External id": external } : {}), ...args });
}

function link(to, text, at = 0) {
  const button = make("button", "link", text);
  button.type = "button";
  button.dataset.device = to;
  button.dataset.at = String(at);
  return button;
}
