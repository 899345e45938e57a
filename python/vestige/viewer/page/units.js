// Formats numbers for people: times, bytes and counts, and the steps of a ruler. Also shortens names.

/** @type {[number, string][]} */
const UNITS = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

/** Formats a duration in ns with about three digits: "1.53 ms", "2 min 05 s". */
export function formatTime(ns) {
  if (ns < 0) return "−" + formatTime(-ns);
  if (ns >= 60e9 - 5e6) {
    const seconds = Math.round(ns / 1e9);
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
    return `${Math.floor(seconds / 3600)} h ${String(Math.floor(seconds / 60) % 60).padStart(2, "0")} min`;
  }
  let unit = UNITS[0];
  for (const one of UNITS) if (ns >= one[0] * 0.99995) unit = one;
  return `${threeDigits(ns / unit[0])} ${unit[1]}`;
}

function threeDigits(value) {
  if (value >= 100 || Number.isInteger(value)) return String(Math.round(value));
  return value >= 10 ? trim(value.toFixed(1)) : trim(value.toFixed(2));
}

function trim(text) {
  return text.replace(/\.?0+$/, "");
}

/** Formats a moment in ns from the start, to the nanosecond: "1.234 567 890 s". */
export function formatMoment(ns) {
  const whole = Math.floor(Math.abs(ns));
  const [scale, unit] = whole >= 1e9 ? UNITS[3] : whole >= 1e6 ? UNITS[2] : whole >= 1e3 ? UNITS[1] : UNITS[0];
  const digits = scale === 1 ? "" : String(whole % scale).padStart(Math.log10(scale), "0");
  const parts = digits.match(/\d{3}/g) ?? [];
  while (parts.length && parts[parts.length - 1] === "000") parts.pop();
  const head = formatCount(Math.floor(whole / scale));
  return `${ns < 0 ? "−" : ""}${head}${parts.length ? "." + parts.join(" ") : ""} ${unit}`;
}

export function formatBytes(bytes) {
  if (bytes < 0) return "−" + formatBytes(-bytes);
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (bytes >= 1024 && at < names.length - 1) {
    bytes /= 1024;
    at++;
  }
  return `${at ? threeDigits(bytes) : bytes} ${names[at]}`;
}

/** Formats a whole number with thin spaces between thousands. */
export function formatCount(count) {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, " ");
}

export function formatShare(part, all) {
  if (!all) return "0 %";
  const share = (100 * part) / all;
  return share > 0 && share < 0.05 ? "< 0.1 %" : `${trim(share.toFixed(1))} %`;
}

/** Formats a value of a counter in its unit. */
export function formatValue(value, unit) {
  if (unit === "bytes") return formatBytes(Math.round(value));
  if (unit === "ns") return formatTime(value);
  const size = Math.abs(value);
  const text = size >= 1e15 || (size > 0 && size < 1e-3) ? value.toExponential(2)
    : Number.isInteger(value) ? formatCount(value) : trim(value.toPrecision(5));
  return unit ? `${text} ${unit}` : text;
}

/**
 * Chooses the step of a ruler: 1, 2 or 5 times a power of ten (minutes above 60 s), with at most `most` steps in the
 * range.
 */
export function chooseStep(range, most) {
  const least = Math.max(range / Math.max(most, 1), 1);
  for (let scale = 1; scale < 1e11; scale *= 10) {
    for (const factor of [1, 2, 5]) {
      const step = scale * factor;
      if (step >= 20e9) break;
      if (step >= least) return step;
    }
  }
  for (const seconds of [30, 60, 120, 300, 600, 1200, 3600, 7200, 14400, 43200]) {
    if (seconds * 1e9 >= least) return seconds * 1e9;
  }
  return Math.ceil(least / 86400e9) * 86400e9;
}

/** Formats a tick's label. In a short range far from 0, labels count from `base`: "+200 µs". */
export function formatTick(ns, base, step) {
  if (base) return "+" + tickText(ns - base, step);
  return tickText(ns, step);
}

function tickText(ns, step) {
  if (ns === 0) return "0";
  if (Math.abs(ns) >= 60e9 && step >= 1e9) return formatTime(ns).replace(/ 00 (s|min)$/, "");
  let unit = UNITS[0];
  for (const one of UNITS) if (Math.abs(ns) >= one[0]) unit = one;
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit[0]) - 1e-9));
  return `${(ns / unit[0]).toFixed(digits)} ${unit[1]}`;
}

/** Chooses the time from which ticks count: 0, or a round moment before the range if numbers would be long. */
export function chooseBase(from, step) {
  if (from < step * 1000) return 0;
  const coarse = 10 ** Math.ceil(Math.log10(step * 100));
  return Math.floor(from / coarse) * coarse;
}

/**
 * Returns whether names begin alike and differ at their end, as "import pandas.core.frame" and Outer.inner do. "import
 * (extension module)" does not.
 */
export function differsAtEnd(text) {
  return /[./ ]/.test(text) && !text.endsWith(")");
}

/** Cuts a text to so many letters, and marks the cut with dots. */
export function cutTo(text, letters) {
  return differsAtEnd(text) ? "…" + text.slice(text.length - letters) : text.slice(0, letters) + "…";
}
