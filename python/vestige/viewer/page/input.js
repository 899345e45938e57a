// Translates pointer, wheel, touch and keys into moves of the view. A held key keeps moving the view.

import { element } from "./elements.js";

const STEP = { w: ["zoom", 0.82], s: ["zoom", 1.22], a: ["pan", -0.12], d: ["pan", 0.12], ArrowLeft: ["pan", -0.12], ArrowRight: ["pan", 0.12] };
const SCROLL = { ArrowUp: -54, ArrowDown: 54, PageUp: -400, PageDown: 400 };
const CLICK = 4; // a press that moves by more pixels is no click

export class Input {
  constructor(app) {
    this.app = app;
    this.stage = element("stage");
    this.rows = element("rows");
    this.pressed = new Map(); // pointers
    this.drag = null;
    this.held = new Set();
    this.stage.addEventListener("pointerdown", (event) => this.press(event));
    this.stage.addEventListener("pointermove", (event) => this.move(event));
    this.stage.addEventListener("pointerup", (event) => this.release(event));
    this.stage.addEventListener("pointercancel", (event) => this.release(event));
    this.stage.addEventListener("pointerleave", () => this.app.stage.point(null));
    this.stage.addEventListener("dblclick", (event) => this.twice(event));
    this.stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    window.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("keyup", (event) => this.held.delete(event.key.toLowerCase()));
    window.addEventListener("blur", () => this.held.clear());
  }

  get view() {
    return this.app.view;
  }

  time(event) {
    const box = this.stage.getBoundingClientRect();
    return this.view.from + ((event.clientX - box.left) / box.width) * this.view.width;
  }

  press(event) {
    if (event.button > 1) return;
    this.stage.setPointerCapture(event.pointerId);
    if (event.isPrimary) this.pressed.clear(); // pointers whose release was never reported
    this.pressed.set(event.pointerId, event);
    if (this.pressed.size === 2) return this.beginPinch();
    const time = this.time(event);
    this.drag = { x: event.clientX, y: event.clientY, time, top: this.rows.scrollTop, kind: event.shiftKey ? "range" : "pan", moved: false };
    if (event.shiftKey) event.preventDefault();
  }

  beginPinch() {
    const [a, b] = [...this.pressed.values()];
    this.drag = { kind: "pinch", a: this.time(a), b: this.time(b), moved: true };
  }

  move(event) {
    if (this.pressed.has(event.pointerId)) this.pressed.set(event.pointerId, event);
    if (!this.drag) return this.app.stage.point(event);
    const { drag } = this;
    if (drag.kind === "pinch") return this.pinch();
    if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < CLICK) return;
    drag.moved = true;
    this.app.stage.point(null);
    if (drag.kind === "range") {
      const [from, to] = [drag.time, this.time(event)].sort((a, b) => a - b);
      this.view.selectRange({ from: Math.max(0, from), to: Math.min(this.view.duration, to) });
      return;
    }
    this.stage.classList.add("dragging");
    this.view.pan(drag.time - this.time(event));
    this.rows.scrollTop = drag.top + drag.y - event.clientY;
  }

  /** Two fingers: the points under both fingers stay there. */
  pinch() {
    const { drag } = this;
    if (this.pressed.size < 2 || !drag) return;
    const box = this.stage.getBoundingClientRect();
    const [x0, x1] = [...this.pressed.values()].map((event) => (event.clientX - box.left) / box.width);
    if (Math.abs(x1 - x0) < 0.01) return;
    const width = Math.abs((drag.b - drag.a) / (x1 - x0));
    const from = drag.a - x0 * width;
    this.view.show(from, from + width);
  }

  release(event) {
    this.pressed.delete(event.pointerId);
    const { drag } = this;
    this.drag = null;
    this.stage.classList.remove("dragging");
    if (!drag || event.type === "pointercancel") return;
    if (!drag.moved) this.app.click(event);
    else if (drag.kind === "range") this.app.rangeChosen();
  }

  twice(event) {
    const place = this.app.stage.hit(event);
    if (place?.rect >= 0) this.view.show(place.start - (place.end - place.start) * 0.05, place.end + (place.end - place.start) * 0.05, { step: true });
  }

  wheel(event) {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    if (event.shiftKey && !event.ctrlKey) {
      this.rows.scrollTop += (event.deltaY || event.deltaX) * unit;
      return;
    }
    const box = this.stage.getBoundingClientRect();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.view.pan((event.deltaX * unit / box.width) * this.view.width);
      return;
    }
    const speed = event.ctrlKey ? 0.01 : 0.0018; // a touchpad sends a pinch as small wheel steps with ctrl
    this.view.zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY * unit)) * speed), this.time(event));
  }

  key(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if ((event.ctrlKey || event.metaKey) && key === "f") {
      this.app.focusSearch();
      return event.preventDefault();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest?.("input, select, textarea, [role=menu]")) return;
    if (event.shiftKey && key.startsWith("Arrow")) this.app.walk(key);
    else if (STEP[key]) this.hold(key);
    else if (SCROLL[key]) this.rows.scrollBy({ top: SCROLL[key] });
    else if (!this.command(event.key)) return;
    event.preventDefault();
  }

  command(key) {
    const { app, view } = this;
    const commands = {
      f: () => view.fit(), 0: () => view.reset(), u: () => view.undo(), Backspace: () => view.undo(),
      "/": () => app.focusSearch(), n: () => app.search.go(false), N: () => app.search.go(true),
      g: () => app.panel.open("flame"), c: () => app.panel.open("sandwich"), i: () => app.panel.open("details"),
      "[": () => app.foldAll(), "]": () => app.foldAll(), t: () => app.theme.toggle(), "?": () => app.help.toggle(),
      "+": () => view.zoom(0.82, app.center()), "=": () => view.zoom(0.82, app.center()), "-": () => view.zoom(1.22, app.center()),
      Escape: () => app.escape(),
    };
    if (!commands[key]) return false;
    commands[key]();
    return true;
  }

  /** Makes one step immediately, then more steps while the key stays down. */
  hold(key) {
    if (this.held.has(key.toLowerCase())) return;
    this.held.add(key.toLowerCase());
    this.step(key, 1);
    const started = performance.now();
    let last = started;
    const run = (now) => {
      if (!this.held.has(key.toLowerCase())) return;
      if (now - started > 180) this.step(key, Math.min(now - last, 50) / 90);
      last = now;
      requestAnimationFrame(run);
    };
    requestAnimationFrame(run);
  }

  step(key, share) {
    const [what, amount] = STEP[key];
    if (what === "zoom") this.view.zoom(amount ** share, this.app.center());
    else this.view.pan(this.view.width * amount * share);
  }
}
