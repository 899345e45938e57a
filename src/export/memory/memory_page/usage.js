// The curve of live bytes over time, with the resident set and a cursor.

import { shown } from "./data.js";
import { element, fitCanvas } from "./elements.js";
import { formatBytes, formatTime } from "./units.js";

let cursor = -1;
const canvas = element("usage", HTMLCanvasElement);

const MARGIN = {left: 74, right: 14, top: 22, bottom: 24};

/** Clears the canvas. Returns its context and the scales for drawing. */
function usageChart() {
  const style = getComputedStyle(document.documentElement), { process } = shown;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  fitCanvas(g, width, height, window.devicePixelRatio || 1);
  g.font = "12px system-ui, sans-serif";
  g.clearRect(0, 0, width, height);
  const points = process.points, resident = process.residentPoints || [];
  const end = points.length ? Math.max(points[points.length - 1][2], 1) : 1;
  const most = Math.max(process.peak.bytes, ...resident.map(point => point[1]), 1);
  const inner = {width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom};
  return {
    g, width, height, points, resident, end, most,
    color: name => style.getPropertyValue(name).trim(),
    x: ns => MARGIN.left + inner.width * ns / end,
    y: bytes => height - MARGIN.bottom - inner.height * bytes / most,
    timeAt: offset => (offset - MARGIN.left) / inner.width * end,
  };
}

function drawAxes({g, x, y, color, width, height, end, most}) {
  g.strokeStyle = color("--edge");
  g.fillStyle = color("--faint");
  g.textAlign = "right";
  g.textBaseline = "middle";
  for (let i = 0; i <= 4; i++) {
    const bytes = most * i / 4;
    g.beginPath(); g.moveTo(MARGIN.left, y(bytes) + .5); g.lineTo(width - MARGIN.right, y(bytes) + .5); g.stroke();
    g.fillText(formatBytes(bytes), MARGIN.left - 8, y(bytes));
  }
  g.textBaseline = "alphabetic";
  for (let i = 0; i <= 5; i++) {
    g.textAlign = i === 0 ? "left" : i === 5 ? "right" : "center";
    g.fillText(formatTime(Math.round(end * i / 5)), x(end * i / 5), height - 6);
  }
}

/** Draws the curve, and the area below. A point has the highest and the last value of a period. */
function drawLive({g, x, y, color, points, end}) {
  g.beginPath();
  g.moveTo(x(0), y(0));
  let last = 0;
  for (const [maxAt, max, lastAt, then] of points) {
    g.lineTo(x(maxAt), y(last));
    g.lineTo(x(maxAt), y(max));
    g.lineTo(x(lastAt), y(max));
    g.lineTo(x(lastAt), y(then));
    last = then;
  }
  g.strokeStyle = color("--accent");
  g.lineWidth = 1.5;
  g.stroke();
  g.lineTo(x(end), y(0));
  g.fillStyle = color("--area");
  g.fill();
}

function drawResident({g, x, y, color, resident, end}) {
  if (!resident.length) return;
  g.beginPath();
  for (const [maxAt, max, lastAt, then] of resident) {
    g.lineTo(x(Math.max(maxAt, 0)), y(max));
    g.lineTo(x(Math.max(lastAt, 0)), y(then));
  }
  g.strokeStyle = g.fillStyle = color("--operator");
  g.stroke();
  const [at, bytes] = resident[resident.length - 1].slice(2);
  g.textAlign = "right";
  g.textBaseline = "middle";
  g.fillText("resident", x(Math.min(at, end)), Math.max(y(bytes) - 10, 8));
}

function drawPeak({g, x, y, color, width}) {
  const bytes = shown.process.peak.bytes, peakX = x(shown.process.peak_ns - shown.process.firstNs), onRight = peakX > width / 2;
  g.strokeStyle = g.fillStyle = color("--raised");
  g.setLineDash([4, 3]);
  g.beginPath(); g.moveTo(peakX, y(0)); g.lineTo(peakX, y(bytes)); g.stroke();
  g.setLineDash([]);
  g.beginPath(); g.arc(peakX, y(bytes), 4, 0, 7); g.fill();
  g.textAlign = onRight ? "right" : "left";
  g.textBaseline = "middle";
  g.fillText("peak " + formatBytes(bytes), peakX + (onRight ? -2 : 2), y(bytes) - 13);
}

/** Draws the line at the cursor. Returns the text about that moment for the chart's caption. */
function drawCursor({g, x, y, color, height, points, resident}) {
  if (cursor < 0 || cursor >= points.length) return "";
  const [at, bytes] = points[cursor];
  g.fillStyle = color("--text");
  g.fillRect(x(at) - .5, MARGIN.top, 1, height - MARGIN.bottom - MARGIN.top);
  g.beginPath(); g.arc(x(at), y(bytes), 3, 0, 7); g.fill();
  const seen = resident.findLast(point => point[0] <= at);
  return formatBytes(bytes) + (seen ? ", " + formatBytes(seen[1]) + " resident," : "") + " after " + formatTime(at);
}

/** Returns the index of the first point that ends at that time or later; if there is none, of the last point. */
function pointAt(points, at) {
  let low = 0, high = points.length - 1;
  while (low < high) {
    const middle = low + high >> 1;
    if (points[middle][2] < at) low = middle + 1; else high = middle;
  }
  return low;
}

export function drawUsage() {
  const chart = usageChart();
  if (!chart.points.length) return;
  drawAxes(chart);
  drawLive(chart);
  drawResident(chart);
  drawPeak(chart);
  element("usage-told").textContent = drawCursor(chart);
  canvas.onpointermove = event => {
    cursor = pointAt(chart.points, chart.timeAt(event.offsetX));
    drawUsage();
  };
}

canvas.addEventListener("pointerleave", () => { cursor = -1; drawUsage(); });
canvas.addEventListener("keydown", event => {
  const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -50, PageDown: 50}[event.key];
  if (event.key === "Home") cursor = 0;
  else if (event.key === "End") cursor = shown.process.points.length - 1;
  else if (step) cursor = Math.min(Math.max(cursor + step, 0), shown.process.points.length - 1);
  else return;
  event.preventDefault();
  drawUsage();
});
