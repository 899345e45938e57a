// The elements of index.html by their ids, and the sizes of canvases. element() throws if an element is missing or of
// the wrong kind.

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {{ new (): T, prototype: T }} [kind]
 * @returns {T}
 */
export function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof (kind ?? HTMLElement))) throw new Error(`no ${kind?.name ?? "element"} with the id ${id}`);
  return /** @type {T} */ (found);
}

/** Makes an element. */
export function make(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

/**
 * Sets a canvas's size in CSS pixels; `ratio` is the number of screen pixels per CSS pixel. Clears the canvas.
 * @param {CanvasRenderingContext2D} context
 * @param {number} width
 * @param {number} height
 * @param {number} ratio
 */
export function fitCanvas(context, width, height, ratio) {
  context.canvas.width = Math.round(width * ratio);
  context.canvas.height = Math.round(height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
}
