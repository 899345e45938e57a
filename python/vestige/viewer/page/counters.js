// Curves of memory and counters, below the threads of their process. They are lanes whose items have values.

import { toCss } from "./theme.js";
import { formatValue } from "./units.js";

export class Counters {
  constructor(app) {
    this.app = app;
  }

  /** Fetches which curves a trace has. Resolves with whether that changed. */
  async load(trace) {
    const { lanes } = await this.app.lanes.load(trace, "counters");
    return this.app.timeline.setCounters(trace, lanes.map(({ lane, id, thread, what, name }) => (what === "counter"
      ? { lane, name: this.app.names.get(trace, id).name, unit: "", thread } : { lane, name, unit: "bytes", thread: null })));
  }

  /** Returns the picture that has a curve, or null, and the number of the curve's lane. */
  find(track) {
    const { trace } = track.trace, { lane } = track.counter, { exact, wide } = this.app.lanes.windows.get("counters").of(trace);
    return { data: [exact, wide].find((one) => one?.asked.has(lane)) ?? null, lane };
  }

  /** Returns the value of a counter at a time, or null. */
  valueAt(track, time) {
    const { data, lane } = this.find(track), rect = data?.find(lane, 0, time, 0) ?? -1;
    return rect < 0 ? null : data.valueOf(rect)[2];
  }

  /** The text next to a counter: its value at a time, or else its maximum. */
  textFor(track, time) {
    const value = time === null ? null : this.valueAt(track, time), { unit } = track.counter;
    if (value !== null) return formatValue(value, unit);
    const { items, most } = this.scaleOf(track);
    return items ? `max ${formatValue(most, unit)}` : "";
  }

  /** Returns the lane of a curve, with its least and greatest value. */
  scaleOf(track) {
    return this.app.lanes.list("counters", track.trace.trace)[track.counter.lane];
  }

  draw(context, track, y, ratio, css) {
    const { stage } = this.app, { data, lane } = this.find(track);
    const row = data?.threads.get(lane)?.[0];
    if (!row?.[2]) return;
    const { least, most } = this.scaleOf(track), low = Math.min(least ?? 0, 0), high = Math.max(most ?? 1, low + 1e-12);
    const tall = track.height - 6;
    const toY = (value) => y + 3 + tall - ((value - low) / (high - low)) * tall;
    const curve = new Path2D(), first = Math.max(stage.x(data.start(row[1])), 0);
    let previous = null;
    for (let rect = row[1]; rect < row[1] + row[2]; rect++) {
      const x = Math.max(stage.x(data.start(rect)), 0), [lowest, highest, last] = data.valueOf(rect);
      if (previous === null) curve.moveTo(x, toY(highest));
      else curve.lineTo(x, toY(previous));
      curve.lineTo(x, toY(highest));
      if (lowest !== highest) curve.lineTo(x, toY(lowest));
      curve.lineTo(x, toY(last));
      previous = last;
    }
    const end = Math.max(first, Math.min(stage.x(data.end(row[1] + row[2] - 1)), stage.width));
    curve.lineTo(end, toY(previous));
    const area = new Path2D(curve);
    area.lineTo(end, toY(low));
    area.lineTo(first, toY(low));
    context.save();
    context.scale(ratio, ratio);
    context.fillStyle = css.area;
    context.fill(area);
    context.strokeStyle = toCss(css.curve);
    context.lineWidth = 1.25;
    context.stroke(curve);
    context.restore();
  }
}
