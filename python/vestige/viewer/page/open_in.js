// Hands the trace, or the selected range, to another viewer. Perfetto takes the bytes by messages between windows, as
// its documentation describes: PING until Perfetto answers PONG, then the buffer. speedscope fetches a file from an
// address that the server makes for it. Without a network, the user saves the file and opens it there later.

import { element } from "./elements.js";

const PERFETTO = "https://ui.perfetto.dev";
const PATIENCE = 20000; // ms to wait for the other page's answer

export class OpenIn {
  constructor(app) {
    this.app = app;
    this.button = element("open-in", HTMLButtonElement);
    this.menu = element("menu");
    this.button.hidden = !app.source.canExport;
    this.button.addEventListener("click", () => this.toggle());
    this.menu.addEventListener("keydown", (event) => this.key(event));
    this.menu.addEventListener("focusout", (event) => {
      if (!this.menu.contains(/** @type {Node | null} */ (event.relatedTarget)) && event.relatedTarget !== this.button) this.close();
    });
  }

  toggle() {
    if (!this.menu.hidden) return this.close();
    this.fill();
    this.menu.hidden = false;
    this.button.setAttribute("aria-expanded", "true");
    const box = this.button.getBoundingClientRect();
    this.menu.style.top = `${box.bottom + 4}px`;
    this.menu.style.right = `${Math.max(8, window.innerWidth - box.right)}px`;
    /** @type {HTMLElement} */ (this.menu.firstElementChild).focus();
  }

  close() {
    this.menu.hidden = true;
    this.button.setAttribute("aria-expanded", "false");
  }

  fill() {
    const range = this.app.view.isWhole() ? null : this.app.view.scope();
    const what = this.app.view.range ? "selected range" : "shown range";
    const items = [];
    const item = (text, action) => {
      const link = document.createElement("a"), button = document.createElement("button");
      const made = typeof action === "string" ? link : button;
      if (typeof action === "string") {
        link.href = action;
        link.download = "";
      } else {
        button.type = "button";
        button.addEventListener("click", action);
      }
      made.setAttribute("role", "menuitem");
      made.textContent = text;
      made.addEventListener("click", () => this.close());
      items.push(made);
    };
    const { source } = this.app;
    if (range) item(`Perfetto, ${what}`, () => this.perfetto(range));
    item("Perfetto, whole trace", () => this.perfetto(null));
    if (range) item(`speedscope, ${what}`, () => this.speedscope(range));
    item("speedscope, whole trace", () => this.speedscope(null));
    items.push(document.createElement("hr"));
    const suffix = range ? `, ${what}` : "";
    item(`Save for Perfetto (.pftrace)${suffix}`, source.exportAddress("perfetto", range));
    item(`Save for speedscope (.json)${suffix}`, source.exportAddress("speedscope", range));
    item(`Save as Chrome trace (.json)${suffix}`, source.exportAddress("chrome", range));
    this.menu.replaceChildren(...items);
  }

  key(event) {
    const items = /** @type {HTMLElement[]} */ ([...this.menu.querySelectorAll("[role=menuitem]")]);
    const at = items.findIndex((item) => item === document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (event.key === "Escape") {
      this.close();
      this.button.focus();
    } else if (to !== undefined) items[(to + items.length) % items.length].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  async perfetto(range) {
    const other = window.open(PERFETTO);
    if (!other) return this.app.say("The browser did not let Perfetto's window open. Allow windows for this page, or save the file.");
    this.app.say("Handing the trace to Perfetto…");
    try {
      const [buffer] = await Promise.all([this.app.source.exportBytes("perfetto", range), greet(other)]);
      const title = document.title.replace(/ · vestige$/, "");
      other.postMessage({ perfetto: { buffer, title, fileName: `${title.replace(/[^\w.-]+/g, "_")}.pftrace` } }, PERFETTO, [buffer]);
      this.app.say("Perfetto has the trace.");
    } catch (error) {
      this.app.say(`${error.message} Save the file instead and open it there.`);
    }
  }

  async speedscope(range) {
    try {
      const { open } = await this.app.source.handover(range);
      if (window.open(open)) this.app.say("speedscope fetches the trace from this server.");
      else this.app.say("The browser did not let speedscope's window open. Allow windows for this page, or save the file.");
    } catch (error) {
      this.app.say(error.message);
    }
  }
}

/** Resolves when the other page answers. */
function greet(other) {
  return new Promise((done, fail) => {
    const end = (finish, value) => {
      clearInterval(timer);
      window.removeEventListener("message", hear);
      finish(value);
    };
    const hear = (event) => event.origin === PERFETTO && event.data === "PONG" && end(done);
    const started = performance.now();
    const timer = setInterval(() => {
      if (other.closed) end(fail, new Error("Perfetto's window was closed."));
      else if (performance.now() - started > PATIENCE) end(fail, new Error("Perfetto does not answer (is there a network?)."));
      else other.postMessage("PING", PERFETTO);
    }, 50);
    window.addEventListener("message", hear);
  });
}
