// Draws trees as boxes, downwards (callees) and upwards (callers), with zoom, pointer and keys: the one flame graph of the
// viewer, of the page of a memory history, of differences and of exported pictures. flame_model.js makes trees of rows; the
// owner sets the look of boxes and shows texts about them (onHover, onPick).

import { fitCanvas } from "./elements.js";
import { layOut } from "./flame_model.js";
import { cutTo } from "./units.js";

const BOX = 20;
const FONT = "11.5px system-ui, sans-serif";

export class FlameCanvas {
  constructor(canvas, /** @type {{onHover: Function, onPick: Function, onZoom?: Function}} */ { onHover, onPick, onZoom }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.onHover = onHover;
    this.onPick = onPick;
    this.onZoom = onZoom;
    this.trees = []; // [{root, up}]
    this.boxes = [];
    this.focus = null; // the node that fills the whole width
    this.current = null;
    this.event = null; // the pointer's last event over the canvas
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("click", (event) => this.click(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /**
   * @param {{root: object, up: boolean}[]} trees
   * @param {object | null} current the node that is marked
   */
  show(trees, current = null) {
    this.trees = trees;
    this.current = current;
    this.zoom(null);
  }

  /** look: {fill: node -> colour, text, match, matchText, accent: colours, matches: one -> bool, or null} */
  draw(look = this.look) {
    this.look = look;
    const wide = this.canvas.parentElement.clientWidth;
    if (!wide || !look) return;
    this.boxes = [];
    let upper = 0;
    for (const { root, up } of this.trees) {
      for (const box of this.arrange(root, wide, up)) {
        if (up) {
          upper = Math.max(upper, box.level);
          if (box.level === 0) continue; // the function itself is drawn with its callees
        }
        this.boxes.push({ ...box, row: up ? -box.level : box.level });
      }
    }
    let lower = 0;
    for (const box of this.boxes) {
      box.row += upper;
      lower = Math.max(lower, box.row);
    }
    this.resize(wide, Math.max((lower + 1) * BOX + 2, this.canvas.parentElement.clientHeight - 4));
    for (const box of this.boxes) this.drawBox(box);
    this.mark();
    if (this.event) this.point(this.event); // another box may be under the pointer now
  }

  /** Arranges boxes: the focus and its ancestors fill the whole width. */
  arrange(root, wide, up) {
    const path = [];
    if (!up) for (let node = this.focus; node; node = node.parent) path.unshift(node);
    if (path[0] !== root) return layOut(root, 0, wide, 0.6);
    const boxes = path.slice(0, -1).map((node, level) => ({ node, x: 0, width: wide, level, outer: true }));
    const below = layOut(this.focus, 0, wide, 0.6);
    return boxes.concat(below.map((box) => ({ ...box, level: box.level + path.length - 1 })));
  }

  resize(wide, tall) {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.style.width = `${wide}px`;
    this.canvas.style.height = `${tall}px`;
    fitCanvas(this.context, wide, tall, ratio);
    this.context.font = FONT;
    this.context.textBaseline = "middle";
  }

  drawBox({ node, x, width, row, outer }) {
    const { context, look } = this;
    const { matches } = look;
    const matched = node.one && matches?.(node.one);
    context.globalAlpha = outer ? 0.6 : matches && !matched ? 0.4 : 1;
    context.fillStyle = matched ? look.match : look.fill(node);
    context.fillRect(x, row * BOX, Math.max(width - (width > 3 ? 1 : 0), 0.5), BOX - 1);
    context.globalAlpha = 1;
    if (width > 24) {
      context.fillStyle = matched ? look.matchText : look.text;
      const { name = "all", place } = node.one ?? {};
      const text = fitText(context, name, place, width - 9);
      if (text) context.fillText(text, x + 4, row * BOX + BOX / 2);
    }
  }

  mark() {
    const box = this.boxes.find((one) => one.node === this.current);
    if (!box) return;
    this.context.strokeStyle = this.look.accent;
    this.context.lineWidth = 2;
    this.context.strokeRect(box.x + 1, box.row * BOX + 1, Math.max(box.width - 3, 1), BOX - 3);
  }

  at(event) {
    const row = Math.floor(event.offsetY / BOX);
    return this.boxes.find((box) => box.row === row && event.offsetX >= box.x && event.offsetX < box.x + box.width) ?? null;
  }

  point(event) {
    this.event = event;
    const box = event && this.at(event);
    this.canvas.style.cursor = box ? "pointer" : "default";
    this.onHover(box?.node ?? null, event);
  }

  click(event) {
    const box = this.at(event);
    if (!box) return this.zoom(null);
    this.current = box.node;
    this.zoom(box.node);
    this.onPick(box.node);
  }

  zoom(node) {
    this.focus = node;
    this.draw();
    this.onZoom?.(node);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && (this.focus || this.current)) {
      this.current = null;
      this.zoom(null);
    } else if (event.key === "Enter" && this.current) {
      this.zoom(this.current);
      this.onPick(this.current);
    } else if (event.key.startsWith("Arrow") && !event.shiftKey) this.step(event.key);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Goes to the box to the left or right, above or below the current one. */
  step(key) {
    const here = this.boxes.find((box) => box.node === this.current);
    if (!here) this.current = this.boxes[0]?.node ?? null;
    else {
      const down = { ArrowDown: 1, ArrowUp: -1 }[key] ?? 0;
      const middle = here.x + here.width / 2;
      const row = this.boxes.filter((box) => box.row === here.row + down).sort((a, b) => a.x - b.x);
      const next = down > 0 ? row.find((box) => box.x >= here.x - 0.01 && box.x < here.x + here.width)
        : down < 0 ? row.find((box) => box.x <= middle && box.x + box.width >= middle)
          : row[row.findIndex((box) => box.node === here.node) + (key === "ArrowRight" ? 1 : -1)];
      if (next) this.current = next.node;
    }
    this.draw();
    const box = this.boxes.find((one) => one.node === this.current);
    if (!box) return;
    const room = this.canvas.parentElement;
    if (box.row * BOX < room.scrollTop) room.scrollTop = box.row * BOX;
    if ((box.row + 1) * BOX > room.scrollTop + room.clientHeight) room.scrollTop = (box.row + 1) * BOX - room.clientHeight;
    this.onHover(box.node, null);
  }
}

/** Returns a name with its place if both fit, else as much of the name as fits. */
function fitText(context, text, place, room) {
  for (const whole of place ? [`${text}  ${place}`, text] : [text]) if (context.measureText(whole).width <= room) return whole;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(cutTo(text, middle)).width <= room) low = middle;
    else high = middle - 1;
  }
  return low >= 2 ? cutTo(text, low) : "";
}
