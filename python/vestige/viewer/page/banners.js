// Problems of a trace or the connection, shown above the timeline.

import { formatCount, formatMoment } from "./units.js";

export class Banners {
  constructor(element) {
    this.element = element;
  }

  show(key, text, kind = "note") {
    let banner = this.element.querySelector(`[data-key="${key}"]`);
    if (!text) {
      banner?.remove();
      return;
    }
    if (!banner) {
      banner = document.createElement("div");
      banner.dataset.key = key;
      const label = document.createElement("span");
      const close = document.createElement("button");
      close.type = "button";
      close.className = "icon";
      close.textContent = "×";
      close.setAttribute("aria-label", "Dismiss this note");
      close.addEventListener("click", () => banner.remove());
      banner.append(label, close);
      this.element.append(banner);
    }
    banner.className = `banner ${kind}`;
    banner.setAttribute("role", kind === "error" ? "alert" : "note");
    banner.firstChild.textContent = text;
  }

  /** Shows a line for each incomplete trace. */
  showTraces(traces) {
    for (const trace of traces) {
      const lines = notesOf(trace);
      const name = traces.length > 1 ? `${trace.title}: ` : "";
      if (lines.length) this.show(`trace${trace.trace}`, name + lines.join(" "), trace.error ? "error" : "note");
    }
  }
}

export function notesOf(trace) {
  const lines = [];
  if (trace.error) lines.push(`This trace cannot be shown: ${trace.error}`);
  if (trace.ended === "torn") lines.push("The program did not end its recording (it was killed, crashed or called os.exec*): its records up to then are shown.");
  if (trace.ended === "recording") lines.push("The program is still recording: its records up to now are shown.");
  if (trace.ended === "damaged") {
    const where = trace.damaged_at ? ` at byte ${formatCount(trace.damaged_at)}` : "";
    lines.push(`The file is damaged${where}: the part before is shown.`);
  }
  if (trace.lost) lines.push(`${formatCount(trace.lost)} records were lost; the gaps are hatched.`);
  if (trace.budget) lines.push(`Recording had a budget of ${+(trace.budget * 100).toPrecision(3)} % of the CPU time: calls of the functions that are called most may be missing, and their time counts for their callers. A band above the rows marks these stretches.`);
  if (trace.dropped) lines.push(`${formatCount(trace.dropped)} older records were dropped to stay within the limit of size or time.`);
  return lines;
}

/** Returns the note for traces without spans. */
export function emptyNote(info) {
  if (info.traces.some((trace) => trace.spans > 0)) return null;
  const files = info.traces.filter((trace) => trace.memory).map((trace) => trace.file ?? trace.title);
  if (files.length) return `Memory alone was recorded here. Below is its curve; what held it: vestige memory-report ${files[0]}${files.length > 1 ? " …" : ""}`;
  return info.traces.length ? `Nothing was recorded: the trace has no spans${info.duration_ns > 0 ? ` in ${formatMoment(info.duration_ns)}` : ""}.` : "There is no trace to show.";
}
