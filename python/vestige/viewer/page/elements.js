// The elements of index.html by their ids. A missing element, or one of the wrong kind, is a mistake of ours:
// element() throws at once.

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
