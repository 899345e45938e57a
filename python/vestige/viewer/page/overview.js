// The whole trace in a strip: the stack depths of the busiest threads over time, and a box around the shown part. Drag
// the box to pan, its edges to zoom; drag elsewhere to choose a new part.

import { fitCanvas } from "./elements.js";
import { WindowData } from "./window_data.js";

const BANDS = 8; // threads at most
const GRIP = 6;

export class Overview {
  constructor(canvas, view) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.view = view;
    this.bands = []; // {curve: Float32Array, color}
    this.drag = null;
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", () => (this.drag = null));
    canvas.addEventListener("pointercancel", () => (this.drag = null));
    canvas.addEventListener("dblclick", () => view.reset());
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  resize(width, height, ratio) {
    this.width = width;
    this.height = height;
    fitCanvas(this.context, width, height, ratio);
  }

  /** Fetches the curves once. They stay valid unless the trace grows. */
  async load(source, traces, duration) {
    const bands = [];
    const chosen = traces.flatMap((trace) => trace.threads.map((thread) => ({ trace: trace.trace, thread })))
      .sort((a, b) => b.thread.spans - a.thread.spans).slice(0, BANDS);
    const pixels = 512, to = Math.max(1, Math.ceil(duration));
    for (const trace of new Set(chosen.map((one) => one.trace))) {
      const threads = chosen.filter((one) => one.trace === trace).map((one) => one.thread.number);
      const data = new WindowData(await source.window({ trace, from: 0, to, pixels, threads, depth: 32 }));
      for (const thread of threads) bands.push({ curve: depthCurve(data, thread, pixels), trace });
    }
    this.bands = bands.sort((a, b) => a.trace - b.trace);
  }

  draw(css) {
    const { context, width, height, view } = this;
    context.clearRect(0, 0, width, height);
    const tall = height / Math.max(this.bands.length, 1);
    this.bands.forEach(({ curve }, at) => {
      context.fillStyle = css.band[at % css.band.length];
      context.beginPath();
      const floor = (at + 1) * tall;
      context.moveTo(this.x(0), floor);
      curve.forEach((value, pixel) => {
        const y = floor - value * (tall - 2);
        context.lineTo(this.x((pixel / curve.length) * view.duration), y);
        context.lineTo(this.x(((pixel + 1) / curve.length) * view.duration), y);
      });
      context.lineTo(this.x(view.duration), floor);
      context.fill();
    });
    const [left, right] = this.box();
    context.fillStyle = css.shade;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, width - right, height);
    context.fillStyle = css.accent;
    for (const x of [left, right]) {
      context.fillRect(x - 0.75, 0, 1.5, height);
      context.beginPath();
      context.roundRect(x - 2.5, height / 2 - 8, 5, 16, 2);
      context.fill();
    }
    const share = (view.from - view.least) / Math.max(view.most - view.least - view.width, 1);
    this.canvas.setAttribute("aria-valuenow", String(Math.round(100 * share)));
  }

  x(ns) {
    return ((ns - this.view.least) / (this.view.most - this.view.least)) * this.width;
  }

  ns(x) {
    return this.view.least + (x / this.width) * (this.view.most - this.view.least);
  }

  box() {
    const left = this.x(this.view.from), right = this.x(this.view.to);
    const lack = Math.max(0, 4 - (right - left)) / 2; // keeps the box wide enough to be seen
    return [left - lack, right + lack];
  }

  begin(event) {
    const x = event.offsetX, [left, right] = this.box();
    const near = (edge) => Math.abs(x - edge) <= GRIP;
    const kind = right - left > 3 * GRIP && near(left) ? "left" : right - left > 3 * GRIP && near(right) ? "right"
      : x > left && x < right && right - left < this.width - 4 ? "pan" : "choose";
    this.drag = { kind, at: this.ns(x), from: this.view.from, to: this.view.to };
    this.canvas.setPointerCapture(event.pointerId);
  }

  move(event) {
    const x = event.offsetX, [left, right] = this.box();
    if (!this.drag) {
      const grip = Math.abs(x - left) <= GRIP || Math.abs(x - right) <= GRIP;
      this.canvas.style.cursor = grip ? "ew-resize" : x > left && x < right && right - left < this.width - 4 ? "grab" : "crosshair";
      return;
    }
    const { kind, at, from, to } = this.drag, now = this.ns(Math.min(Math.max(x, 0), this.width));
    if (kind === "pan") this.view.pan(from + now - at - this.view.from);
    else if (kind === "left") this.view.show(Math.min(now, to - 1), to);
    else if (kind === "right") this.view.show(from, Math.max(now, from + 1));
    else if (Math.abs(now - at) * (this.width / (this.view.most - this.view.least)) > 3) this.view.show(Math.min(now, at), Math.max(now, at));
  }

  key(event) {
    const { view } = this;
    const actions = {
      ArrowLeft: () => view.pan(-view.width / 4), ArrowRight: () => view.pan(view.width / 4),
      "+": () => view.zoom(0.5, (view.from + view.to) / 2), "-": () => view.zoom(2, (view.from + view.to) / 2),
      Home: () => view.pan(-Infinity), End: () => view.pan(Infinity),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
    actions[event.key]();
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Returns the depth of a thread's stack in each pixel, as a share of the greatest depth. */
function depthCurve(data, thread, pixels) {
  const curve = new Float32Array(pixels);
  const scale = pixels / (2 ** 32 - 1);
  for (const [, first, count] of data.threads.get(thread) ?? []) {
    for (let rect = first; rect < first + count; rect++) {
      const left = data.words[rect * 4] * scale, right = data.words[rect * 4 + 1] * scale, busy = data.busy(rect);
      for (let pixel = Math.floor(left); pixel < Math.min(right, pixels); pixel++) {
        curve[pixel] += busy * (Math.min(right, pixel + 1) - Math.max(left, pixel));
      }
    }
  }
  const most = curve.reduce((a, b) => Math.max(a, b), 1);
  return curve.map((value) => value / most);
}
