// Colours of spans by their names, the same in every run.

/** Hues that are told apart well beside each other. */
const HUES = [205, 28, 130, 268, 350, 48, 175, 310, 90, 230, 12, 155];
const STATES = {
  Running: [130, 45, 38],
  Runnable: [48, 85, 55],
  "Runnable (Preempted)": [48, 85, 55],
  "Uninterruptible Sleep": [28, 85, 50],
  "Uninterruptible Sleep (IO)": [12, 75, 50],
  Sleeping: null,
  Idle: null,
};

function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) {
    value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  }
  return value >>> 0;
}

/** Converts hue (0 to 360), saturation and lightness (0 to 100) to red, green and blue. */
export function rgb(hue, saturation, lightness) {
  const s = saturation / 100;
  const l = lightness / 100;
  const channel = (n) => {
    const k = (n + hue / 30) % 12;
    const a = s * Math.min(l, 1 - l);
    return Math.round(255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

/** Returns the relative luminance of a colour, as WCAG 2 defines it. */
export function luminance([red, green, blue]) {
  const linear = (value) => {
    const part = value / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

/** Returns the contrast of two colours, from 1 to 21. */
export function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function pack([red, green, blue], alpha = 255) {
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Luminance of marks: a contrast of at least 3 with the background in the light and in the dark. */
const MARKS = { least: 0.135, most: 0.28 };
const MARK_KINDS = new Set(["events", "samples", "heap"]);

/** Returns the colour of a mark with this hue and saturation, near a lightness. */
function markColor(hue, saturation, lightness) {
  let at = lightness;
  while (at < 100 && luminance(rgb(hue, saturation, at)) < MARKS.least) at++;
  while (at > 0 && luminance(rgb(hue, saturation, at)) > MARKS.most) at--;
  return rgb(hue, saturation, at);
}

/** Paint of a span: its colour as a pixel, and the colour of the text on it. */
export function paintOf(name, kind) {
  let color;
  if (kind === "state") {
    const state = STATES[name];
    if (state === null) return { color: null, pixel: pack([128, 128, 128], 40), text: "#777" };
    color = rgb(...(state ?? [0, 0, 50]));
  } else {
    const value = hash(name.replace(/\d+/g, ""));
    const hue = HUES[value % HUES.length];
    const make = MARK_KINDS.has(kind) ? markColor : rgb;
    color = make(hue, 48 + ((value >>> 8) % 3) * 8, 40 + ((value >>> 12) % 4) * 8);
  }
  const text = contrast(color, [255, 255, 255]) >= contrast(color, [0, 0, 0]) ? "#fff" : "#000";
  return { color, pixel: pack(color), text };
}

/** Paints by string number, made when first asked for. */
export class Palette {
  constructor(strings) {
    this.strings = strings;
    this.slices = new Map();
    this.states = new Map();
    this.marks = new Map();
  }

  /** Returns the paint of a name on a track of a kind. */
  paint(name, kind) {
    const paints = kind === "state" ? this.states : MARK_KINDS.has(kind) ? this.marks : this.slices;
    let paint = paints.get(name);
    if (!paint) {
      paint = paintOf(this.strings[name], kind);
      paints.set(name, paint);
    }
    return paint;
  }
}
