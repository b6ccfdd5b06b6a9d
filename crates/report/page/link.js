// Links to a view: the part of the address after `#`.

/** Returns the text for a view: visible stretch, selected span, pinned tracks and open tab. */
export function encode({ from, to, span, pinned, tab }) {
  const parts = [`from=${Math.round(from)}`, `to=${Math.round(to)}`];
  if (span >= 0) parts.push(`span=${span}`);
  if (pinned?.length) parts.push(`pin=${pinned.join(",")}`);
  if (tab) parts.push(`tab=${encodeURIComponent(tab)}`);
  return `#${parts.join("&")}`;
}

/** Reads such a text. Parts that are missing or make no sense are null, or empty. */
export function decode(text, { spans, tracks }) {
  const fields = new URLSearchParams(text.replace(/^#/, ""));
  const number = (name) => {
    const value = fields.get(name);
    return value !== null && /^-?\d+$/.test(value) ? Number(value) : null;
  };
  const from = number("from");
  const to = number("to");
  const span = number("span");
  const valid = (value, count) => value !== null && value >= 0 && value < count;
  return {
    range: from !== null && to !== null && to > from ? [from, to] : null,
    span: valid(span, spans) ? span : null,
    pinned: (fields.get("pin") ?? "")
      .split(",")
      .filter((part) => /^\d+$/.test(part))
      .map(Number)
      .filter((track) => valid(track, tracks)),
    tab: fields.get("tab"),
  };
}
