// The canvas above the spans, for everything that changes with the pointer: the span under the pointer, the selected
// span and range, the line at the pointer, and arrows to a task from the code that woke it, and from calls to the
// activities of devices that they launched. The spans are not redrawn.

import { fitCanvas } from "./elements.js";
import { STRIP } from "./marks.js";
import { ROW, rowsTop } from "./timeline.js";
import { formatTime } from "./units.js";

const FAR = 12 * ROW; // CSS pixels; longer arrows are drawn whole only for the selected step

export class Overlay {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  resize(width, height, ratio) {
    this.width = width;
    this.height = height;
    fitCanvas(this.context, width, height, ratio);
  }

  /** scene: {view, timeline, top, hover, pointer, ticks, css, arrows (by trace), woken (arrow of the selected item) | null, launches} */
  draw(scene) {
    const { context } = this;
    this.scene = scene;
    context.clearRect(0, 0, this.width, this.height);
    this.drawGrid(scene.ticks, scene.css.grid);
    for (const [trace, arrows] of scene.arrows) for (const arrow of arrows) this.drawArrow(trace, arrow, 0.45);
    if (scene.woken) this.drawArrow(scene.woken.trace, scene.woken, 1);
    for (const launch of scene.launches) this.drawLaunch(launch);
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
    const track = timeline.trackOf(span);
    if (!track || (track.folded && span.kind !== "marks") || span.depth >= track.rows) return;
    const y = span.kind === "marks" ? track.top - top : rowsTop(track) - top + span.depth * ROW;
    if (y > this.height || y + ROW < 0) return;
    if (span.kind === "marks") return this.outlineMark(span, track, y, color, thick);
    const left = Math.max(this.x(span.start), -4), right = Math.min(this.x(span.end), this.width + 4);
    if (right < 0 || left > this.width) return;
    const wide = Math.max(right - left, 3);
    this.context.strokeStyle = color;
    this.context.lineWidth = thick;
    this.context.strokeRect(left + thick / 2, y + thick / 2, wide - thick, ROW - 1 - thick);
  }

  /** Draws a frame around a mark, and a line down through the calls that were open at its time. */
  outlineMark(mark, track, y, color, thick) {
    const x = this.x((mark.start + mark.end) / 2);
    if (x < -4 || x > this.width + 4) return;
    this.context.strokeStyle = this.context.fillStyle = color;
    this.context.lineWidth = thick;
    this.context.strokeRect(x - 5.5, y + 0.5, 11, STRIP - 1);
    this.context.globalAlpha = 0.5;
    this.context.fillRect(Math.round(x), y + STRIP, 1, track.height - STRIP);
    this.context.globalAlpha = 1;
  }

  /** Draws the arrow from the waker to a step of a task. If the waker is unknown, draws a question mark. */
  drawArrow(trace, { lane, time_ns: time, waker }, strength) {
    const { context } = this, { timeline, top, css } = this.scene;
    const head = timeline.lane(trace, lane);
    if (!head) return;
    const x = this.x(time), y = head.top - top + ROW / 2;
    if (x < -20 || x > this.width + 20) return;
    context.save();
    context.globalAlpha = strength;
    context.strokeStyle = context.fillStyle = css.wakes;
    context.lineWidth = strength === 1 ? 2 : 1;
    if (waker) {
      const tail = this.tailOf(trace, waker);
      if (tail) this.drawCurve(tail.x, tail.y - top, x, y, strength < 1);
    } else {
      context.font = "600 11px system-ui, sans-serif";
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText("?", x - 1, y);
    }
    context.restore();
  }

  /** Draws the arrow from a call to the activity that it launched. If either end is folded away, draws nothing. */
  drawLaunch({ trace, from, to }) {
    const { context } = this, tail = this.placeIn(trace, from), head = this.placeIn(trace, to);
    if (!tail || !head) return;
    context.save();
    context.strokeStyle = context.fillStyle = this.scene.css.wakes;
    context.lineWidth = 2;
    this.drawCurve(tail.x, tail.y, head.x, head.y, false);
    context.restore();
  }

  placeIn(trace, { lane, row, time }) {
    const { timeline, top } = this.scene, track = timeline.stream(trace, lane);
    return track && { x: this.x(time), y: track.top - top + (track.folded ? track.height / 2 : row * ROW + ROW / 2) };
  }

  /**
   * Returns where an arrow begins: in the lane of the waking task or its group, else at the lower edge of the thread.
   */
  tailOf(trace, { lane, group, thread, time_ns: time }) {
    const { timeline } = this.scene, x = this.x(time);
    const track = lane ? timeline.lane(trace, lane) ?? timeline.lane(trace, group) : null;
    if (track) return { x, y: track.top + ROW / 2 };
    const below = timeline.thread(trace, thread);
    return below && { x, y: below.top + below.height - 1 };
  }

  /**
   * canBeShort: for a start far above or below, draws only the end of the arrow, because many long arrows would hide
   * the lanes.
   */
  drawCurve(x0, y0, x1, y1, canBeShort) {
    const { context } = this;
    const down = y1 >= y0 ? 1 : -1, reach = Math.max(8, Math.abs(y1 - y0) / 2) * down;
    const edge = y1 - down * (ROW / 2 - 2);
    context.beginPath();
    if (canBeShort && (y0 < 0 || y0 > this.height || Math.abs(y1 - y0) > FAR)) {
      context.moveTo(x1, edge - down * ROW / 2);
      context.lineTo(x1, edge);
    } else {
      context.moveTo(x0, y0);
      context.bezierCurveTo(x0, y0 + reach, x1, edge - reach, x1, edge);
    }
    context.stroke();
    context.beginPath();
    context.moveTo(x1, edge + 3 * down);
    context.lineTo(x1 - 3.5, edge - 3 * down);
    context.lineTo(x1 + 3.5, edge - 3 * down);
    context.fill();
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
