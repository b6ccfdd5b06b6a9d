// Times and numbers as texts. All times are nanoseconds.

const UNITS = [
  { size: 1e9, name: "s" },
  { size: 1e6, name: "ms" },
  { size: 1e3, name: "µs" },
  { size: 1, name: "ns" },
];

function trimmed(value, digits) {
  const text = value.toFixed(digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** Returns a duration with at most four significant digits, such as `12.5 ms`. */
export function duration(ns) {
  if (ns === 0) return "0";
  if (ns < 0) return `-${duration(-ns)}`;
  if (ns >= 3600e9) return `${Math.floor(ns / 3600e9)} h ${Math.floor((ns % 3600e9) / 60e9)} min`;
  if (ns >= 60e9) return `${Math.floor(ns / 60e9)} min ${trimmed((ns % 60e9) / 1e9, 1)} s`;
  for (const { size, name } of UNITS) {
    if (ns >= size || size === 1) {
      const value = ns / size;
      const digits = size === 1 ? 0 : value >= 100 ? 1 : value >= 10 ? 2 : 3;
      return `${trimmed(value, digits)} ${name}`;
    }
  }
  throw new Error("the last unit fits all");
}

/** Returns a time since the begin of the trace, exact to the nanosecond, such as `1.250 000 120 s`. */
export function exact(ns) {
  if (ns < 0) return `-${exact(-ns)}`;
  const seconds = Math.floor(ns / 1e9);
  const rest = String(Math.round(ns - seconds * 1e9)).padStart(9, "0");
  return `${seconds}.${rest.slice(0, 3)} ${rest.slice(3, 6)} ${rest.slice(6)} s`;
}

/** Returns a step of 1, 2 or 5 times a power of ten that is at least `least`. */
export function step(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least) return Math.max(1, factor * power);
  return Math.max(1, 10 * power);
}

/** Returns the text of a tick of the ruler: `ns` at steps of `every`. */
export function tick(ns, every) {
  if (ns === 0) return "0";
  const unit = UNITS.find(({ size }) => Math.abs(ns) >= size || size === 1);
  const digits = Math.max(0, Math.ceil(Math.log10(unit.size / every) - 1e-9));
  return `${(ns / unit.size).toFixed(Math.min(9, digits))} ${unit.name}`;
}

/** Returns a number with its thousands apart. */
export function count(value) {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** Returns a value of a counter with its unit. */
export function quantity(value, unit = "") {
  let text;
  if (unit === "bytes" || unit === "B") return bytes(value);
  if (unit === "ns") return duration(value);
  if (Number.isInteger(value)) text = count(value);
  else text = String(Number(value.toPrecision(6)));
  return unit ? `${text} ${unit}` : text;
}

/** Returns a size, such as `1.5 MB`. */
export function bytes(value) {
  const size = Math.abs(value);
  for (const [limit, name] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (size >= limit) return `${trimmed(value / limit, 2)} ${name}`;
  }
  return `${value} B`;
}
