// Curves of memory and counters, below the threads of their process. A curve is fetched once the shown range stops
// moving; until then the last curve is drawn, shifted and scaled.

import { toCss } from "./theme.js";
import { formatValue } from "./units.js";

const WAIT = 60;

export class Counters {
  constructor(source, duration, onChange) {
    this.source = source;
    this.duration = Math.max(1, Math.ceil(duration));
    this.onChange = onChange;
    this.whole = new Map(); // trace -> counters over the whole trace, for their list and their heights
    this.shown = new Map(); // trace -> {from, to, pixels, counters}
    this.timers = new Map();
  }

  async load(trace) {
    const pixels = 256;
    const counters = await this.source.counters(trace, 0, this.duration, pixels);
    const data = { from: 0, to: this.duration, pixels, counters };
    for (const one of counters) [one.least, one.most] = reach(one.points);
    this.whole.set(trace, data);
    return counters;
  }

  /** Fetches the curves of a trace for a range, a moment after the last call. */
  want(trace, from, to, pixels) {
    from = Math.max(0, Math.floor(from));
    to = Math.min(this.duration, Math.ceil(to));
    const key = `${from} ${to} ${pixels}`;
    if (!this.whole.get(trace)?.counters.length || to <= from || this.timers.get(trace)?.key === key) return;
    const last = this.timers.get(trace);
    clearTimeout(last?.timer);
    last?.abort.abort();
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const counters = await this.source.counters(trace, from, to, pixels, abort.signal);
        this.shown.set(trace, { from, to, pixels, counters });
        this.onChange();
      } catch { /* the last curve stays */ }
    }, WAIT);
    this.timers.set(trace, { key, timer, abort });
  }

  find(track) {
    const same = (one) => one.name === track.counter.name && one.thread === track.counter.thread;
    const whole = this.whole.get(track.trace.trace), shown = this.shown.get(track.trace.trace);
    const scale = whole?.counters.find(same);
    for (const data of [shown, whole]) {
      const counter = data?.counters.find(same);
      if (counter) return { data, counter, scale: scale ?? counter };
    }
    return null;
  }

  /** Returns the value of a counter at a time, or null. */
  valueAt(track, time) {
    const found = this.find(track);
    if (!found) return null;
    const { data, counter } = found;
    const pixel = ((time - data.from) / (data.to - data.from)) * data.pixels;
    let value = null;
    for (const [at, , , last] of counter.points) {
      if (at > pixel) break;
      value = last;
    }
    return value;
  }

  /** The text next to a counter: its value at a time, or else its maximum. */
  textFor(track, time) {
    const value = time === null ? null : this.valueAt(track, time);
    const found = this.find(track);
    if (value !== null) return formatValue(value, track.counter.unit);
    return found && Number.isFinite(found.scale.most) ? `max ${formatValue(found.scale.most, track.counter.unit)}` : "";
  }

  draw(context, track, view, y, width, ratio, css) {
    const found = this.find(track);
    if (!found || !found.counter.points.length) return;
    const { data, counter, scale } = found;
    const low = Math.min(scale.least ?? 0, 0), high = Math.max(scale.most ?? 1, low + 1e-12);
    const tall = track.height - 6;
    const toX = (pixel) => (((data.from + (pixel / data.pixels) * (data.to - data.from)) - view.from) / view.width) * width;
    const toY = (value) => y + 3 + tall - ((value - low) / (high - low)) * tall;
    const curve = new Path2D();
    let previous = null;
    const points = counter.points;
    const first = Math.max(toX(points[0][0]), 0);
    for (const [pixel, least, most, last] of points) {
      const x = Math.max(toX(pixel), 0);
      if (previous === null) curve.moveTo(x, toY(most));
      else curve.lineTo(x, toY(previous));
      curve.lineTo(x, toY(most));
      if (least !== most) curve.lineTo(x, toY(least));
      curve.lineTo(x, toY(last));
      previous = last;
    }
    const ended = ((track.trace.end_ns - view.from) / view.width) * width;
    const end = Math.max(Math.min(toX(data.pixels), width, ended), Math.max(toX(points[points.length - 1][0]), 0));
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

function reach(points) {
  let least = Infinity, most = -Infinity;
  for (const [, low, high] of points) {
    least = Math.min(least, low);
    most = Math.max(most, high);
  }
  return [least, most];
}
