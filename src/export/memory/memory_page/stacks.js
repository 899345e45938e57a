// The flame graph of stacks, and the description of the box under the pointer.

import { matches, many, shown } from "./data.js";
import { element } from "./elements.js";
import { FlameCanvas } from "./flame_canvas.js";
import { valueOf } from "./flame_model.js";
import { toCss } from "./theme.js";
import { formatBytes, formatShare } from "./units.js";

export const graph = new FlameCanvas(element("flame", HTMLCanvasElement), {
  onHover: tell, onPick: tell, onZoom: (node) => (element("reset").hidden = !node || node === shown.root),
});

function tell(node) {
  if (!node) return;
  const name = node === shown.root ? "All" : node.one.title;
  element("told").textContent = `${name}: ${formatBytes(node.value)} in ${many(node.count, "allocation")}, ${formatShare(node.value, shown.root.value)}`;
}

/** Call after another process or view was selected. */
export function showStacks() {
  graph.show([{ root: shown.root, up: false }]);
  tell(shown.root);
}

/** Call after a change of theme, size or query. Nodes below a match are not counted again. */
export function drawStacks(theme) {
  const { text, match, matchText, accent } = theme.colors;
  const fill = ({ one }) => toCss(theme.palette.fill(one.family, one.shade));
  graph.draw({ fill, text, match: toCss(match), matchText, accent, matches: shown.query ? matches : null });
  const found = valueOf(shown.root, matches);
  element("matched").textContent = shown.query ? `matches ${formatShare(found, shown.root.value)} · ${formatBytes(found)}` : "";
}
