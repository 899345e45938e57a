// The ruler above the rows: times in units that fit the zoom, and a mark wherever the search matches.

import { fitCanvas } from "./elements.js";
import { chooseBase, chooseStep, formatMoment, formatTick } from "./units.js";

const APART = 110; // the least CSS pixels between labels

/** Returns the ticks of a range, as many as fit. */
export function ticksOf(view, width) {
  const step = chooseStep(view.width, width / APART);
  const ticks = [];
  for (let at = Math.ceil(Math.max(view.from, 0) / step) * step; at <= Math.min(view.to, view.duration); at += step) ticks.push(at);
  return { step, ticks, base: chooseBase(view.from, step) };
}

export class Ruler {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.marks = null; // {from, to, counts}: the number of matches in each pixel
  }

  resize(width, height, ratio) {
    this.width = width;
    this.height = height;
    fitCanvas(this.context, width, height, ratio);
  }

  draw(view, { step, ticks, base }, css) {
    const { context, width, height } = this;
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const tick of ticks) {
      const x = Math.round(((tick - view.from) / view.width) * width);
      context.fillStyle = css.edge;
      context.fillRect(x, height - 8, 1, 8);
      context.fillStyle = css.faint;
      context.fillText(formatTick(tick, base, step), x + 4, height / 2 + 3);
    }
    if (this.marks) this.drawMarks(view, css.matchMark);
    return base ? `${formatMoment(base)} +` : "";
  }

  drawMarks(view, color) {
    const { from, to, counts } = this.marks;
    const pixel = (to - from) / counts.length;
    this.context.fillStyle = color;
    for (let at = 0; at < counts.length; at++) {
      if (!counts[at]) continue;
      const x = ((from + (at + 0.5) * pixel - view.from) / view.width) * this.width;
      const tall = Math.min(6, 3 + Math.log2(counts[at]) / 3);
      this.context.fillRect(Math.round(x) - 1, 0, 2, tall);
    }
  }
}
