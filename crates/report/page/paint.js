// Drawing of the timeline on a canvas.
//
// Spans are drawn as pixels: each lane is a line of a picture that is one pixel high per lane, and
// the browser stretches the lines to their place. So the work for a frame depends on the width of
// the canvas and the number of visible lanes, and not on the number of spans.

import { COUNTER, LANE, PAD, isGroup } from "./layout.js";
import { hasPoints } from "./model.js";
import * as time from "./time.js";

/** Least width of a span with a text, in CSS pixels. */
const TEXT_WIDTH = 28;
/** Most lanes that are drawn above each other for a closed group. */
const MOST_SUMMARY_LANES = 200;
/** Most arrows that are drawn at once. */
const MOST_ARROWS = 300;

/** Kinds of tracks that a closed group shows in its heading. */
const SUMMED = new Set(["thread", "slices", "cpu", "states", "events", "samples"]);
/** Kinds of tracks whose moments are thin marks instead of diamonds. */
const TICKS = new Set(["events", "samples"]);
/** Width of the mark of a moment, in CSS pixels, if there is room. */
const TICK = 2;

/** Returns the colours of the page's theme. */
export function themeOf(element) {
  const style = getComputedStyle(element);
  const value = (name) => style.getPropertyValue(name).trim();
  return {
    background: value("--background"),
    text: value("--text"),
    faint: value("--faint"),
    line: value("--line"),
    header: value("--header"),
    accent: value("--accent"),
    area: value("--area"),
    font: value("--font"),
  };
}

export class Painter {
  constructor(canvas, model, palette) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.lines = document.createElement("canvas");
    this.linesContext = this.lines.getContext("2d", { willReadFrequently: true });
    this.model = model;
    this.palette = palette;
    this.widths = new Map();
  }

  /** Draws a frame. `state` has the view, the layout, the scroll position and what is selected. */
  paint(state) {
    const { canvas, context } = this;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const frame = { ...state, context, ratio, width, height };
    frame.x = (ns) => ((ns - state.view.from) / state.view.span) * width;
    context.fillStyle = state.theme.background;
    context.fillRect(0, 0, width, height);
    this.#grid(frame);
    const rows = state.layout.visible(state.scroll, height);
    const pinned = rows.filter(({ row }) => row.pinned);
    const scrolled = rows.filter(({ row }) => !row.pinned);
    context.save();
    context.beginPath();
    context.rect(0, state.layout.pinnedHeight, width, height);
    context.clip();
    this.#rows(frame, scrolled);
    this.#arrows(frame);
    context.restore();
    if (pinned.length) {
      context.fillStyle = state.theme.background;
      context.fillRect(0, 0, width, state.layout.pinnedHeight);
      this.#rows(frame, pinned);
      context.fillStyle = state.theme.accent;
      context.fillRect(0, state.layout.pinnedHeight - 1, width, 1);
    }
    this.#area(frame);
  }

  #grid({ context, theme, view, width, height, x }) {
    const every = time.step((view.span / width) * 90);
    context.fillStyle = theme.line;
    for (let at = Math.ceil(view.from / every) * every; at < view.to; at += every) {
      context.fillRect(Math.round(x(at)), 0, 1, height);
    }
  }

  #rows(frame, rows) {
    const { context, theme, width } = frame;
    const lines = [];
    const points = [];
    for (const { row, y } of rows) {
      context.fillStyle = isGroup(row.track) ? theme.header : theme.line;
      if (isGroup(row.track)) context.fillRect(0, y, width, row.height - 1);
      else context.fillRect(0, y + row.height - 1, width, 1);
      if (row.track.points) points.push({ row, y });
      for (const lane of this.#lanesOf(frame, row)) {
        const place = frame.layout.placeOfLane(row, lane);
        const summary = isGroup(row.track);
        lines.push({
          lane,
          y: summary ? y + PAD : y + place.top,
          height: summary ? row.height - 2 * PAD - 1 : place.height,
          summary,
        });
      }
    }
    for (const { row, y } of points) this.#counter(frame, row, y);
    this.#spans(frame, lines);
  }

  /** Returns the lanes of a row; for a closed group, the outermost ones of all that it holds. */
  #lanesOf(frame, row) {
    if (!isGroup(row.track)) return row.open ? row.track.lanes : row.track.lanes.slice(0, 1);
    if (row.open) return [];
    const lanes = [];
    const collect = (track) => {
      // A group may hold very many tracks, and this happens in each frame.
      if (lanes.length >= MOST_SUMMARY_LANES) return;
      if (SUMMED.has(track.kind) && track.lanes.length) lanes.push(track.lanes[0]);
      track.children.forEach(collect);
    };
    collect(row.track);
    return lanes;
  }

  #spans(frame, lines) {
    if (!lines.length) return;
    const { context, ratio, width, view, search } = frame;
    const isMatch = search ? (span) => search.matches(span) : null;
    const { spans } = this.model;
    const columns = Math.max(1, Math.round(width * ratio));
    const perColumn = view.span / columns;
    if (this.lines.width !== columns || this.lines.height < lines.length) {
      this.lines.width = columns;
      this.lines.height = Math.max(lines.length, 64);
    }
    const image = this.linesContext.createImageData(columns, lines.length);
    const pixels = new Uint32Array(image.data.buffer);
    const texts = [];
    lines.forEach(({ lane, summary }, line) => {
      const kind = lane.track.kind;
      const start = line * columns;
      let paint = null;
      let paintName = -1;
      const ticks = hasPoints(lane.track) && !summary ? [] : null;
      lane.columns(view.from, perColumn, columns, (span, left, right) => {
        const name = spans.names[span];
        if (name !== paintName) {
          paint = this.palette.paint(name, kind);
          paintName = name;
        }
        let pixel = paint.pixel;
        if (summary) pixel = ((pixel & 0xffffff) | 0x90000000) >>> 0;
        else if (isMatch && !isMatch(span)) pixel = ((pixel & 0xffffff) | 0x38000000) >>> 0;
        pixels.fill(pixel, start + left, start + right);
        if (ticks) {
          ticks.push({ line, span, left, pixel });
          return;
        }
        const room = (right - left) / ratio;
        if (room >= 3 && left > 0) pixels[start + left] = ((pixel & 0xffffff) | 0x80000000) >>> 0;
        if (room >= TEXT_WIDTH && !summary && kind !== "state") texts.push({ line, span, left, right, paint });
      });
      if (ticks) this.#ticks(frame, kind, ticks, { pixels, start, columns, texts });
      // Matches that share a column with others would be hidden by them.
      if (search && !summary) {
        search.columns(lane, view.from, perColumn, columns, (span, column) => {
          pixels[start + column] = this.palette.paint(spans.names[span], kind).pixel;
        });
      }
    });
    this.linesContext.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    lines.forEach(({ y, height }, line) => {
      context.drawImage(this.lines, 0, line, columns, 1, 0, y, width, height);
    });
    context.font = `11px ${frame.theme.font}`;
    context.textBaseline = "middle";
    for (const { line, span, left, right, paint } of texts) {
      const dimmed = isMatch && !isMatch(span);
      context.fillStyle = dimmed || !paint ? frame.theme.text : paint.text;
      const room = (right - left) / ratio - 6;
      const text = this.#fitting(context, this.model.strings[spans.names[span]], room);
      if (text) context.fillText(text, left / ratio + 4, lines[line].y + lines[line].height / 2 + 0.5);
    }
    this.#instants(frame, lines);
    this.#marks(frame, lines);
  }

  /** Widens the marks of moments as far as there is room, and notes their texts. */
  #ticks({ ratio }, kind, ticks, { pixels, start, columns, texts }) {
    // A diamond is drawn over the mark.
    const space = TICKS.has(kind) ? 0 : Math.round(5 * ratio);
    ticks.forEach(({ line, span, left, pixel }, i) => {
      const next = ticks[i + 1]?.left ?? columns;
      const right = Math.min(next, left + Math.max(1, Math.round(TICK * ratio)));
      pixels.fill(pixel, start + left, start + right);
      const begin = right + space;
      if ((next - begin) / ratio >= TEXT_WIDTH) texts.push({ line, span, left: begin, right: next, paint: null });
    });
  }

  /** Draws diamonds for instants that stand alone. */
  #instants(frame, lines) {
    const { context, view, width, x } = frame;
    const { spans } = this.model;
    for (const { lane, y, height, summary } of lines) {
      const { kind } = lane.track;
      if (summary || kind === "state" || kind === "cpu" || TICKS.has(kind)) continue;
      let lastX = -Infinity;
      lane.columns(view.from, view.span / width, width, (span) => {
        if (spans.durations[span] !== 0) return;
        const at = x(spans.begins[span]);
        if (at - lastX < 4) return;
        lastX = at;
        const name = spans.names[span];
        const [r, g, b] = this.palette.paint(name, lane.track.kind).color;
        const alpha = frame.search && !frame.search.matches(span) ? 0.25 : 1;
        context.fillStyle = `rgba(${r},${g},${b},${alpha})`;
        context.beginPath();
        context.moveTo(at, y);
        context.lineTo(at + 5, y + height / 2);
        context.lineTo(at, y + height);
        context.lineTo(at - 5, y + height / 2);
        context.fill();
      });
    }
  }

  /** Draws the frame of the selected span, and the ends of unfinished ones. */
  #marks(frame, lines) {
    const { context, selected, theme, x } = frame;
    if (selected < 0) return;
    const lane = this.model.lane(selected);
    const { begins, ends } = this.model.spans;
    for (const line of lines) {
      if (line.lane !== lane || line.summary) continue;
      let left = x(begins[selected]);
      let right = Math.max(x(ends[selected]), left + 2);
      if (ends[selected] === begins[selected] && !TICKS.has(lane.track.kind)) {
        // Around the diamond.
        left -= 6;
        right = left + 12;
      }
      context.strokeStyle = theme.background;
      context.lineWidth = 4;
      context.strokeRect(left - 1, line.y - 1, right - left + 2, line.height + 2);
      context.strokeStyle = theme.accent;
      context.lineWidth = 2;
      context.strokeRect(left - 1, line.y - 1, right - left + 2, line.height + 2);
    }
  }

  #counter(frame, row, y) {
    const { context, ratio, width, view, theme } = frame;
    const { points, unit } = row.track;
    const columns = Math.max(1, Math.round(width * ratio));
    const { low, high } = points.scale();
    const scale = high > low ? COUNTER / (high - low) : 0;
    const base = y + PAD + COUNTER - (Math.max(0, low) - low) * scale;
    const height = (value) => y + PAD + COUNTER - (value - low) * scale;
    context.fillStyle = theme.faint;
    context.beginPath();
    context.moveTo(0, base);
    let begun = false;
    let lastX = 0;
    points.columns(view.from, view.span / columns, columns, (column, _lowest, highest, last) => {
      const left = column / ratio;
      if (!begun) context.lineTo(left, base);
      begun = true;
      context.lineTo(left, height(highest));
      context.lineTo(left + 1 / ratio, height(last));
      lastX = left + 1 / ratio;
    });
    context.lineTo(lastX, base);
    context.closePath();
    context.fill();
    context.strokeStyle = theme.accent;
    context.lineWidth = 1;
    context.stroke();
    context.fillStyle = theme.text;
    context.font = `10px ${theme.font}`;
    context.textBaseline = "top";
    if (Number.isFinite(points.max)) context.fillText(time.quantity(points.max, unit), 3, y + PAD);
  }

  #arrows(frame) {
    const { context, layout, scroll, theme, flows, x } = frame;
    if (!flows?.length) return;
    const { begins, ends } = this.model.spans;
    const yOf = (span) => layout.pinnedHeight + layout.middleOfLane(this.model.lane(span)) - scroll;
    for (const { from, to, near } of flows.slice(0, MOST_ARROWS)) {
      // The arrow leaves the end of the first span, or its begin if the second begins before that.
      const startX = x(Math.min(ends[from], Math.max(begins[from], begins[to])));
      const endX = x(begins[to]);
      const startY = yOf(from);
      const endY = yOf(to);
      const bend = Math.max(16, Math.min(80, Math.abs(endX - startX) / 2));
      context.strokeStyle = theme.accent;
      context.globalAlpha = near ? 1 : 0.45;
      context.lineWidth = near ? 2 : 1.25;
      context.beginPath();
      context.moveTo(startX, startY);
      context.bezierCurveTo(startX + bend, startY, endX - bend, endY, endX - 5, endY);
      context.stroke();
      context.fillStyle = theme.accent;
      context.beginPath();
      context.moveTo(endX, endY);
      context.lineTo(endX - 7, endY - 4);
      context.lineTo(endX - 7, endY + 4);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  #area({ context, area, theme, height, x }) {
    if (!area) return;
    const left = x(area.from);
    const right = x(area.to);
    context.fillStyle = theme.area;
    context.fillRect(left, 0, right - left, height);
    context.fillStyle = theme.accent;
    context.fillRect(left, 0, 1, height);
    context.fillRect(right, 0, 1, height);
  }

  /** Returns the part of a text that fits into `room` pixels. */
  #fitting(context, text, room) {
    let width = this.widths.get(text);
    if (width === undefined) {
      width = context.measureText(text).width;
      if (this.widths.size > 20000) this.widths.clear();
      this.widths.set(text, width);
    }
    if (width <= room) return text;
    const letters = Math.floor((text.length * (room - 8)) / width);
    return letters >= 2 ? `${text.slice(0, letters)}…` : "";
  }
}

/** Fits a canvas to its place, and fills it. Returns its context and its size in CSS pixels. */
function cleared(canvas, color) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d", { alpha: false });
  context.scale(ratio, ratio);
  context.fillStyle = color;
  context.fillRect(0, 0, width, height);
  return { context, width, height };
}

/** Draws the ruler above the timeline. */
export function paintRuler(canvas, view, theme) {
  const { context, width, height } = cleared(canvas, theme.background);
  const every = time.step((view.span / width) * 90);
  context.font = `11px ${theme.font}`;
  context.textBaseline = "middle";
  for (let at = Math.ceil(view.from / every) * every; at < view.to; at += every) {
    const x = Math.round(((at - view.from) / view.span) * width);
    context.fillStyle = theme.faint;
    context.fillRect(x, height - 6, 1, 6);
    context.fillStyle = theme.text;
    context.fillText(time.tick(Math.round(at), every), x + 4, height / 2);
  }
}

/** Draws the whole trace as one line of density, with the visible part marked. */
export class Overview {
  constructor(canvas, model) {
    this.canvas = canvas;
    this.density = densityOf(model, 400);
    this.duration = Math.max(1, model.duration);
  }

  paint(view, theme) {
    const { canvas, density } = this;
    const { context, width, height } = cleared(canvas, theme.header);
    context.fillStyle = theme.faint;
    const step = width / density.length;
    density.forEach((part, i) => {
      const bar = part * (height - 4);
      context.fillRect(i * step, height - bar, Math.max(1, step - 0.5), bar);
    });
    const left = (Math.max(0, view.from) / this.duration) * width;
    const right = (Math.min(this.duration, view.to) / this.duration) * width;
    context.fillStyle = theme.area;
    context.fillRect(left, 0, Math.max(2, right - left), height);
    context.fillStyle = theme.accent;
    context.fillRect(left, 0, 1, height);
    context.fillRect(Math.max(left + 1, right - 1), 0, 1, height);
  }
}

/** Returns the number of events in each of `parts` equal stretches of the trace, at most 1. */
export function densityOf(model, parts) {
  const counts = new Float64Array(parts);
  const { begins, count } = model.spans;
  const scale = parts / Math.max(1, model.duration);
  for (let i = 0; i < count; i++) {
    counts[Math.min(parts - 1, Math.max(0, Math.floor(begins[i] * scale)))]++;
  }
  const most = Math.max(1, ...counts);
  return Array.from(counts, (value) => (value === 0 ? 0 : Math.max(0.06, Math.sqrt(value / most))));
}

export { LANE };
