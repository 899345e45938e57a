// What a flame graph does when it is looked at in a browser: a click on a frame
// makes it as wide as the picture, ctrl-F or the field searches by regular
// expression. Part of every .svg that the exporter writes.

/**
 * A part of the picture, which the exporter wrote: it is always there.
 * @template {Element} T
 * @param {T | null} part
 * @returns {T}
 */
function there(part) {
  if (!part) throw new Error("a part of this picture is missing");
  return part;
}

/** @type {NodeListOf<SVGGElement>} */
const groups = document.querySelectorAll("#frames > g");
const frames = Array.from(groups).map((g) => ({
  g, title: there(g.querySelector("title")).textContent, rect: there(g.querySelector("rect")), text: there(g.querySelector("text")),
  x: Number(g.dataset.x), w: Number(g.dataset.w), d: Number(g.dataset.d),
}));
const WIDTH = 1180, LEFT = 10, CHARACTER = 6.6;
const found = there(document.getElementById("found"));
const back = there(document.getElementById("back"));
let shown = { x: 0, w: 1, d: 0 };

function label(frame, width) {
  const room = Math.floor((width - 6) / CHARACTER);
  const name = frame.title.slice(0, frame.title.lastIndexOf(" ("));
  if (room < 3) return "";
  return name.length <= room ? name : "…" + name.slice(name.length - room + 1);
}

function draw() {
  for (const frame of frames) {
    const outside = frame.d < shown.d;
    const from = Math.max(frame.x, shown.x), to = Math.min(frame.x + frame.w, shown.x + shown.w);
    const visible = to - from > shown.w * 1e-9 && to > from;
    frame.g.style.display = visible ? "" : "none";
    if (!visible) continue;
    const x = LEFT + ((from - shown.x) / shown.w) * WIDTH, width = ((to - from) / shown.w) * WIDTH;
    frame.rect.setAttribute("x", String(x));
    frame.rect.setAttribute("width", String(width));
    frame.text.setAttribute("x", String(x + 3));
    frame.text.textContent = label(frame, width);
    frame.g.style.opacity = outside ? "0.5" : "1";
  }
  back.style.display = shown.w < 1 ? "" : "none";
}

function zoom(frame) {
  shown = { x: frame.x, w: frame.w, d: frame.d };
  draw();
}

function search(expression) {
  let pattern;
  try {
    pattern = expression ? new RegExp(expression) : null;
  } catch {
    found.textContent = "no regular expression: " + expression;
    return;
  }
  const spans = [];
  for (const frame of frames) {
    const match = pattern !== null && pattern.test(frame.title);
    frame.rect.classList.toggle("match", match);
    if (match) spans.push([frame.x, frame.x + frame.w]);
  }
  spans.sort((a, b) => a[0] - b[0]);
  let share = 0, end = 0;
  for (const [from, to] of spans) {
    share += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  found.textContent = pattern === null ? "" : `${expression}: ${(share * 100).toFixed(1)}% of the time`;
}

for (const frame of frames) frame.g.addEventListener("click", () => zoom(frame));
back.addEventListener("click", () => zoom({ x: 0, w: 1, d: 0 }));
const ask = () => search(prompt("Search by regular expression (nothing: no search)") || "");
there(document.getElementById("search")).addEventListener("click", ask);
addEventListener("keydown", (event) => {
  if ((event.ctrlKey && event.key === "f") || event.key === "F3") {
    event.preventDefault();
    ask();
  } else if (event.key === "Escape") {
    zoom({ x: 0, w: 1, d: 0 });
  }
});
