// The elements of index.html by their ids. One that is missing, or of another kind than its user takes it for, is a
// mistake of ours, and is found where it is asked for.

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
