// Light and dark, and the colours of spans. A colour is a number, in the byte order of a canvas's pixels (ABGR on the
// little-endian machines that browsers run on). Text on any colour has a contrast of at least 4.5.

const KEY = "vestige-theme";
export const SHADES = 24;

// Hues by the kind of span. Calls of Python functions spread over blues and greens; other kinds stand out.
const FAMILIES = {
  python: { from: 165, to: 262, strength: 1 },
  native: { from: 208, to: 226, strength: 0.22 },
  module: { from: 18, to: 38, strength: 0.75 },
  operator: { from: 36, to: 54, strength: 1.25, deep: 0.8 },
  annotation: { from: 284, to: 320, strength: 0.95 },
  activity: { from: 96, to: 148, strength: 1 },
  gc: { from: 350, to: 358, strength: 1.2 },
};
const LOOK = {
  light: { strength: 42, light: [80, 84, 76], dark: false, back: "#ffffff", text: "#14202b" },
  dark: { strength: 30, light: [31, 27, 35], dark: true, back: "#15191e", text: "#eef2f6" },
};

export class Theme {
  constructor(onChange) {
    this.asked = window.matchMedia("(prefers-color-scheme: dark)");
    this.chosen = null;
    try {
      this.chosen = localStorage.getItem(KEY);
    } catch { /* a page from a file may have no storage */ }
    this.onChange = onChange;
    this.asked.addEventListener("change", () => this.apply());
    this.apply();
  }

  get dark() {
    return this.chosen ? this.chosen === "dark" : this.asked.matches;
  }

  toggle() {
    this.chosen = this.dark ? "light" : "dark";
    try {
      localStorage.setItem(KEY, this.chosen);
    } catch { /* without storage, the choice lasts as long as the page */ }
    this.apply();
  }

  apply() {
    document.documentElement.dataset.theme = this.dark ? "dark" : "light";
    this.palette = new Palette(this.dark ? LOOK.dark : LOOK.light);
    const style = getComputedStyle(document.documentElement);
    this.colors = readColors((name) => style.getPropertyValue(`--${name}`).trim());
    this.onChange?.();
  }
}

/** Reads the colours of canvases from the style sheet, as numbers where pixels are set one by one. */
function readColors(css) {
  const packed = (name) => pack(parse(css(name)));
  return {
    text: css("span-text"), faint: css("faint"), edge: css("edge"), accent: css("accent"), onAccent: css("on-accent"),
    grid: css("grid"), wakes: css("wakes"), pointer: css("pointer"), shade: css("shade"), loss: css("loss"), area: css("area"),
    match: packed("match"), matchText: css("match-text"), matchMark: css("match-mark"), curve: packed("curve"),
    annotation: packed("annotation"), operator: packed("operator"), module: packed("module"), raised: packed("raised"),
    band: [css("band-a"), css("band-b")],
  };
}

/** Packed colours of all families, and the arithmetic of mixing them. */
class Palette {
  constructor(look) {
    this.back = pack(parse(look.back));
    this.text = look.text;
    this.fills = {};
    for (const [family, { from, to, strength, deep = 1 }] of Object.entries(FAMILIES)) {
      this.fills[family] = new Uint32Array(SHADES);
      for (let shade = 0; shade < SHADES; shade++) {
        const hue = from + ((to - from) * (shade % 8)) / 7;
        const light = look.light[Math.floor(shade / 8)] * (look.dark ? deep : 1); // because yellows are bright
        this.fills[family][shade] = pack(fromHsl(hue, Math.min(look.strength * strength, 90), light));
      }
    }
  }

  fill(family, shade) {
    return (this.fills[family] ?? this.fills.native)[shade % SHADES];
  }
}

/** Mixes `share` of colour a over colour b. */
export function mix(a, b, share) {
  const keep = Math.max(0, Math.min(256, Math.round(share * 256)));
  const drop = 256 - keep;
  const red = ((a & 255) * keep + (b & 255) * drop) >> 8;
  const green = (((a >> 8) & 255) * keep + ((b >> 8) & 255) * drop) >> 8;
  const blue = (((a >> 16) & 255) * keep + ((b >> 16) & 255) * drop) >> 8;
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

export function toCss(packed) {
  return `rgb(${packed & 255} ${(packed >> 8) & 255} ${(packed >> 16) & 255})`;
}

export function parse(hex) {
  const value = parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** @param {number[]} color red, green and blue */
export function pack([red, green, blue]) {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

function fromHsl(hue, strength, light) {
  const s = strength / 100, l = light / 100;
  const reach = s * Math.min(l, 1 - l);
  const at = (n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (l - reach * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [at(0), at(8), at(4)];
}
