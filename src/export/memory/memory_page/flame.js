// The flame graph of stacks: drawing, searching, zooming, the keyboard.

function matches(node) {
  const frame = frameOf(node);
  return (frame[0] + " " + place(frame)).toLowerCase().includes(query);
}

// What lies under a match is counted once.
function showMatched() {
  if (!query) { $("matched").textContent = ""; return; }
  const {bytes} = sums(), under = new Uint8Array(tree.count);
  let found = 0;
  for (let i = 1; i < tree.count; i++) {
    if (under[process.parents[i]]) { under[i] = 1; continue; }
    if (matches(i)) { under[i] = 1; found += bytes[i]; }
  }
  $("matched").textContent = "matches " + percent(bytes[0] ? found / bytes[0] : 0) + " · " + size(found);
}

function colorOf(node) {
  const frame = frameOf(node), text = frame[1] || frame[0];
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) | 0;
  if (process.nodeFrames[node] < 0 || node === 0) return "hsl(215 8% var(--light))";
  let turn = 0;
  for (let i = 0; i < frame[0].length; i++) turn = (turn * 31 + frame[0].charCodeAt(i)) | 0;
  const hue = (hash >>> 0) % 360 + (turn >>> 0) % 40, shade = frame[3] ? "12%" : "var(--strength)";
  return `hsl(${hue} ${shade} var(--light))`;
}

function showFlame() {
  const {bytes} = sums(), flame = $("flame"), width = flame.clientWidth, parts = [];
  const path = [];
  for (let i = root; i !== 0; i = process.parents[i]) path.push(process.parents[i]);
  boxes = new Map();
  let deepest = 0;
  const put = (node, depth, at, wide, outer) => {
    const box = element("div", wide > 24 ? label(frameOf(node)) : undefined, "frame");
    if (wide <= 24) box.classList.add("narrow");
    if (outer) box.classList.add("outer");
    if (query) box.classList.add(node !== 0 && matches(node) ? "match" : "faded");
    box.style.cssText = `left:${at}px;top:${depth * ROW}px;width:${Math.max(wide - 1, 1)}px;background:${colorOf(node)}`;
    box.dataset.node = node;
    boxes.set(node, box);
    parts.push(box);
    if (wide > 8) deepest = Math.max(deepest, depth); // thin ones may need scrolling
  };
  path.reverse().forEach((node, depth) => put(node, depth, 0, width, true));
  const scale = width / (bytes[root] || 1), todo = [[root, path.length, 0]];
  for (let step; (step = todo.pop()); ) {
    const [node, depth, at] = step;
    put(node, depth, at, node === root ? width : bytes[node] * scale, false);
    const children = [];
    for (let child = tree.first[node]; child >= 0; child = tree.next[child])
      if (bytes[child] * scale >= 1.5) children.push(child);
    children.sort((a, b) => bytes[b] - bytes[a]);
    let next = at;
    for (const child of children) {
      todo.push([child, depth + 1, next]);
      next += bytes[child] * scale;
    }
  }
  const space = element("div");
  space.style.cssText = `height:${(deepest + 1) * ROW}px`;
  flame.replaceChildren(space, ...parts);
  $("reset").hidden = root === 0;
  if (!boxes.has(selected)) selected = root;
  showMatched();
  tell(selected);
}

function tell(node) {
  const {bytes, counts} = sums(), frame = frameOf(node);
  boxes.get(selected)?.classList.remove("selected");
  selected = node;
  boxes.get(node)?.classList.add("selected");
  const name = node === 0 ? "All" : label(frame);
  $("told").textContent = `${name}: ${size(bytes[node])} in ${many(counts[node], "allocation")}, ` +
    percent(bytes[0] ? bytes[node] / bytes[0] : 0);
}

function zoom(node) {
  root = selected = node;
  showFlame();
}

const nodeAt = event => event.target.dataset.node === undefined ? -1 : +event.target.dataset.node;
$("flame").addEventListener("pointerover", event => { if (nodeAt(event) >= 0) tell(nodeAt(event)); });
$("flame").addEventListener("click", event => { if (nodeAt(event) >= 0) zoom(nodeAt(event)); });
$("flame").addEventListener("keydown", event => {
  const box = boxes.get(selected), x = box ? parseFloat(box.style.left) : 0, y = box ? parseFloat(box.style.top) : 0;
  const beside = step => [...boxes].filter(([, other]) => parseFloat(other.style.top) === y &&
      (parseFloat(other.style.left) - x) * step > 0)
    .sort((a, b) => (parseFloat(a[1].style.left) - parseFloat(b[1].style.left)) * step)[0];
  let to;
  if (event.key === "ArrowUp" && selected) to = process.parents[selected];
  else if (event.key === "ArrowDown") to = [...boxes.keys()].find(node => node && process.parents[node] === selected) ?? -1;
  else if (event.key === "ArrowRight") to = (beside(1) || [-1])[0];
  else if (event.key === "ArrowLeft") to = (beside(-1) || [-1])[0];
  else if (event.key === "Enter") { zoom(selected); event.preventDefault(); return; }
  else if (event.key === "Escape") { zoom(0); return; }
  else return;
  event.preventDefault();
  if (to >= 0) { tell(to); boxes.get(to)?.scrollIntoView({block: "nearest"}); }
});
$("reset").addEventListener("click", () => zoom(0));
$("search").addEventListener("input", () => { query = $("search").value.trim().toLowerCase(); showFlame(); showTable(); });
document.addEventListener("keydown", event => {
  if (event.key === "/" && document.activeElement !== $("search")) { $("search").focus(); event.preventDefault(); }
});
