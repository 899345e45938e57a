// Elements and words: sizes, times and the names of frames.

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(bytes) >= 1000 && unit + 1 < units.length) { bytes /= 1024; unit++; }
  const digits = unit === 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2;
  return bytes.toFixed(digits) + " " + units[unit];
}

function time(ns) {
  for (const [unit, length] of /** @type {[string, number][]} */ ([["s", 1e9], ["ms", 1e6], ["µs", 1e3]]))
    if (ns >= length) return (ns / length).toPrecision(3) + " " + unit;
  return ns + " ns";
}

const number = count => count.toLocaleString("en");
const many = (count, one) => number(count) + " " + one + (count === 1 ? "" : "s");
const percent = share => (100 * share).toFixed(share < 0.0995 ? 1 : 0) + " %";

function frameOf(node) {
  const frame = process.nodeFrames[node];
  return frame < 0 ? ["(others)", "", 0, 0] : process.frames[frame];
}

const place = frame => frame[1] && frame[1] + (frame[2] ? ":" + frame[2] : "");
const label = frame => frame[1] ? frame[0] + "  " + place(frame) : frame[0];
