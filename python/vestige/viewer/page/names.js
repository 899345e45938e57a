// The meaning of ids. Each trace has ids of its own. Equal functions of several traces are one *function* here, so that
// colours agree between processes, and flame graphs of several traces add up.

import { SHADES } from "./theme.js";

export const NO_NAME = "(unknown)";

export class Names {
  constructor() {
    this.functions = []; // {index, kind, name, file, line, family, shade}
    this.byKey = new Map();
    this.traces = new Map(); // trace -> functions by id
  }

  /** Adds the names of a trace as the server gives them: [kind, name, file, line] by id. */
  add(trace, { kinds, names }) {
    const found = names.map((row) => (row ? this.intern(kinds[row[0]] ?? "native", row[1], row[2], row[3]) : null));
    this.traces.set(trace, found);
  }

  intern(kind, name, file, line) {
    const key = `${kind}\n${name}\n${file ?? ""}\n${line}`;
    let one = this.byKey.get(key);
    if (!one) {
      const family = familyOf(kind);
      // Functions of one file have similar hues and different lightness.
      const own = hash(name), place = (hash(file ?? name) + (own >>> 8) % 3) % 8, tone = own % (SHADES / 8);
      one = { index: this.functions.length, kind, name: shorten(name), file, line, family, shade: tone * 8 + place };
      this.functions.push(one);
      this.byKey.set(key, one);
    }
    return one;
  }

  get(trace, id) {
    return this.traces.get(trace)?.[id & 0xffffff] ?? this.intern("native", NO_NAME, null, 0);
  }

  table(trace) {
    return this.traces.get(trace) ?? [];
  }
}

/** Shortens "<built-in function sleep>" and the like to "sleep", because the colour shows the kind. */
function shorten(name) {
  return name?.match(/^<(?:built-in|method|slot wrapper|bound) (?:function |method |type )?'?([^\s'>]+)/)?.[1] ?? (name || NO_NAME);
}

function familyOf(kind) {
  return ["python", "operator", "annotation", "module", "gc", "activity"].includes(kind) ? kind : "native";
}

/** FNV-1a of the text's UTF-16 units. */
function hash(text) {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  value ^= value >>> 15;
  return value >>> 0;
}

/** Returns the place of a function in short: "model.py:31". */
export function placeOf(one) {
  if (!one.file) return "";
  const file = one.file.split(/[\\/]/).pop();
  return one.line > 0 ? `${file}:${one.line}` : file;
}
