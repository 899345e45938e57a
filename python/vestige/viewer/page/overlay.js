// What changes with the pointer, on a canvas above the spans: the span under it, the selected one, the selected range, the
// line at the pointer. Redrawing it leaves the spans alone.

import { ROW } from "./timeline.js";
import { formatTime } from "./units.js";

export class Overlay {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  resize(width, height, ratio) {
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /** scene: {view, timeline, top, hover, pointer, ticks, css} */
  draw(scene) {
    const { context } = this;
    this.scene = scene;
    context.clearRect(0, 0, this.width, this.height);
    this.drawGrid(scene.ticks, scene.css.grid);
    if (scene.hover) this.outline(scene.hover, scene.css.text, 1);
    if (scene.view.span) this.outline(scene.view.span, scene.css.accent, 2);
    if (scene.view.range) this.drawRange(scene.view.range);
    if (scene.pointer !== null) {
      context.fillStyle = scene.css.pointer;
      context.fillRect(Math.round(scene.pointer), 0, 1, this.height);
    }
  }

  x(ns) {
    const { view } = this.scene;
    return ((ns - view.from) / view.width) * this.width;
  }

  drawGrid(ticks, color) {
    this.context.fillStyle = color;
    for (const tick of ticks) this.context.fillRect(Math.round(this.x(tick)), 0, 1, this.height);
  }

  outline(span, color, thick) {
    const { timeline, top } = this.scene;
    const track = timeline.thread(span.trace, span.thread);
    if (!track || track.folded || span.depth >= track.rows) return;
    const y = track.top - top + span.depth * ROW;
    if (y > this.height || y + ROW < 0) return;
    const left = Math.max(this.x(span.start), -4), right = Math.min(this.x(span.end), this.width + 4);
    if (right < 0 || left > this.width) return;
    const wide = Math.max(right - left, 3);
    this.context.strokeStyle = color;
    this.context.lineWidth = thick;
    this.context.strokeRect(left + thick / 2, y + thick / 2, wide - thick, ROW - 1 - thick);
  }

  drawRange({ from, to }) {
    const { context, scene } = this;
    const left = this.x(from), right = this.x(to);
    context.fillStyle = scene.css.shade;
    if (left > 0) context.fillRect(0, 0, Math.min(left, this.width), this.height);
    if (right < this.width) context.fillRect(Math.max(right, 0), 0, this.width - Math.max(right, 0), this.height);
    context.fillStyle = scene.css.accent;
    for (const edge of [left, right]) context.fillRect(Math.round(edge) - (edge === right ? 1 : 0), 0, 1, this.height);
    const text = formatTime(to - from);
    context.font = "600 12px system-ui, sans-serif";
    const wide = context.measureText(text).width + 14;
    const middle = Math.min(Math.max((Math.max(left, 0) + Math.min(right, this.width)) / 2, wide / 2 + 2), this.width - wide / 2 - 2);
    context.beginPath();
    context.roundRect(middle - wide / 2, 4, wide, 20, 4);
    context.fill();
    context.fillStyle = scene.css.onAccent;
    context.textBaseline = "middle";
    context.fillText(text, middle - wide / 2 + 7, 14.5);
  }
}
