// The names at the left: processes, threads, tasks, devices and counters, but only those in sight. Each name is a
// button that folds or unfolds its rows.

import { labelOf } from "./devices.js";
import { formatBytes, formatCount, formatTime } from "./units.js";

export class Gutter {
  constructor(element, onToggle) {
    this.element = element;
    this.made = new Map(); // key -> element
    element.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-key]");
      if (button) onToggle(button.dataset.key);
    });
  }

  /** Updates the elements: those of tracks in sight stay, others are removed. */
  draw(tracks, isOpen, values) {
    const seen = new Set();
    for (const track of tracks) {
      seen.add(track.key);
      let item = this.made.get(track.key);
      if (!item) {
        item = make(track);
        this.made.set(track.key, item);
        this.element.append(item);
      }
      item.style.top = `${track.top}px`;
      item.style.height = `${track.height}px`;
      const button = item.firstChild;
      const open = isOpen(track);
      if (open !== null) button.setAttribute("aria-expanded", String(open));
      if (track.type === "counter") item.lastChild.textContent = values(track);
    }
    for (const [key, item] of this.made) {
      if (seen.has(key) || item.contains(document.activeElement)) continue;
      item.remove();
      this.made.delete(key);
    }
  }

  clear() {
    this.made.forEach((item) => item.remove());
    this.made.clear();
  }
}

function make(track) {
  const item = document.createElement("div");
  const more = track.type === "lane" && !track.group ? " task" : track.type === "stream" && !track.lane.device ? " calls" : "";
  item.className = `track ${track.type}${more}`;
  item.setAttribute("role", "listitem");
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.key = track.key;
  const [name, note, title] = describe(track);
  const bold = document.createElement("span");
  bold.className = "name";
  bold.textContent = name;
  button.append(bold);
  button.title = title;
  item.append(button);
  const small = document.createElement("span");
  small.className = "note";
  small.textContent = note;
  item.append(small);
  return item;
}

function describe(track) {
  if (track.type === "process") {
    const { title, pid, spans, file, bytes } = track.trace;
    const name = title || `process ${pid}`;
    return [name, "", `${name}\n${file ?? ""}${bytes ? ` (${formatBytes(bytes)})` : ""}\npid ${pid}, ${formatCount(spans)} spans`];
  }
  if (track.type === "thread") {
    const { name, tid, spans, depth } = track.thread;
    const shown = name || `thread ${tid}`;
    return [shown, track.folded ? "" : formatCount(spans), `${shown} (tid ${tid})\n${formatCount(spans)} spans, ${depth} deep`];
  }
  if (track.type === "lane") return describeLane(track);
  if (track.type === "device") return describeDevice(track);
  if (track.type === "stream") return describeStream(track);
  if (track.type === "more") return [track.left ? `${formatCount(track.left)} more rows` : "fewer rows", "", "The rows of the deepest calls"];
  const { title, unit } = track.counter;
  return [title, "", `${title}${unit ? ` in ${unit}` : ""}`];
}

function describeDevice({ device }) {
  const label = labelOf(device), facts = Object.entries(device.attributes).map(([name, value]) => `${name}: ${typeof value === "object" ? JSON.stringify(value) : value}`);
  const clock = device.has_clock && device.error_ns >= 0 ? [`its times are right to ${formatTime(device.error_ns)}`] : [];
  return [`${label}: ${device.name}`, "", [`${label}: ${device.name}`, ...clock, ...facts].join("\n")];
}

function describeStream({ lane, folded }) {
  const sums = `${formatCount(lane.items)} activities, busy ${formatTime(lane.busy_ns)}${lane.bytes ? `, ${formatBytes(lane.bytes)}` : ""}`;
  return [lane.title, folded ? "" : formatCount(lane.items), `${lane.title}\n${sums}`];
}

/** Describes a task, or all tasks of a coroutine function. */
function describeLane({ lane, group }) {
  if (!group) {
    const name = lane.name && lane.name !== lane.function ? `${lane.name}: ${lane.function}` : lane.function;
    return [lane.isAlone ? name : lane.name || lane.function, "", `${name}\n${formatTime(lane.end_ns - lane.start_ns)} from its first step to its last`];
  }
  const sums = `${formatCount(group.steps)} steps, ${formatTime(group.busy_ns)} running, ${formatTime(group.awaiting_ns)} awaiting`;
  return [group.name, `× ${formatCount(group.tasks)}`, `${group.name}: ${formatCount(group.tasks)} tasks\n${sums}`];
}
