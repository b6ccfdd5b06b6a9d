import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, paintOf, rgb } from "../colors.js";
import { Layout } from "../layout.js";
import * as link from "../link.js";
import { Search } from "../search.js";
import * as time from "../time.js";
import { Viewport } from "../viewport.js";
import { modelOf } from "./trace.js";

test("durations have units that fit", () => {
  assert.deepEqual([0, 1, 999, 1500, 12_345_678, 2.5e9, 61e9, 7260e9].map(time.duration),
    ["0", "1 ns", "999 ns", "1.5 µs", "12.35 ms", "2.5 s", "1 min 1 s", "2 h 1 min"]);
});

test("exact times have all nanoseconds", () => {
  assert.equal(time.exact(1_250_000_120), "1.250 000 120 s");
  assert.equal(time.exact(-5), "-0.000 000 005 s");
});

test("ticks are at 1, 2 and 5 times a power of ten", () => {
  assert.deepEqual([0.3, 3, 15, 30, 70].map(time.step), [1, 5, 20, 50, 100]);
  assert.equal(time.tick(2.75e9, 5e7), "2.75 s");
  assert.equal(time.tick(0, 1), "0");
});

test("zooming keeps the time under the pointer", () => {
  const view = new Viewport(1e9);
  view.set(2e8, 6e8);
  const before = view.from + 0.25 * view.span;
  view.zoom(0.5, 0.25);
  assert.ok(Math.abs(view.from + 0.25 * view.span - before) < 1);
  assert.ok(Math.abs(view.span - 2e8) < 1);
});

test("the view stays at the trace, and never gets too narrow", () => {
  const view = new Viewport(1000);
  view.zoom(1e-9);
  assert.ok(view.span >= 10 - 1e-6);
  view.pan(1e9);
  assert.ok(view.to <= 1050 + 1e-6);
  view.zoom(1e9);
  assert.ok(view.from >= -50 - 1e-6 && view.to <= 1050 + 1e-6);
});

test("movements end at their goal, or at once if they are unwanted", () => {
  const view = new Viewport(1000);
  view.moveTo(100, 200, 0);
  assert.equal(view.advance(50), true);
  assert.equal(view.advance(1000), false);
  assert.deepEqual([view.from, view.to], [100, 200]);
  const calm = new Viewport(1000, () => true);
  calm.moveTo(100, 200, 0);
  assert.deepEqual([calm.from, calm.to], [100, 200]);
});

test("links lead back to the same view", () => {
  const text = link.encode({ from: 1.4, to: 99.7, span: 3, pinned: [1, 0], tab: "flame" });
  assert.deepEqual(link.decode(text, { spans: 4, tracks: 2 }), { range: [1, 100], span: 3, pinned: [1, 0], tab: "flame" });
});

test("nonsense in links is left out", () => {
  const decoded = link.decode("#from=9&to=1&span=99&pin=7,x,-1", { spans: 4, tracks: 2 });
  assert.deepEqual(decoded, { range: null, span: null, pinned: [], tab: null });
});

test("search finds names without regard to case, in the order of time", () => {
  const model = modelOf([[["Load", 50, 1, 0], ["other", 60, 1, 0]], [["reload", 10, 1, 0]]]);
  const search = new Search(model);
  search.run("LOAD");
  assert.deepEqual([...search.found].map((span) => model.name(span)), ["reload", "Load"]);
  assert.equal(model.name(search.step(true, 30)), "Load");
  assert.equal(model.name(search.step(true, 30)), "reload");
  assert.equal(model.name(search.step(false, 30)), "Load");
  search.run("nothing");
  assert.equal(search.step(true, 0), -1);
});

test("matches are drawn once in each column", () => {
  const model = modelOf([Array.from({ length: 100 }, (_, i) => [i % 10 ? "many" : "rare", i * 10, 0, 0])],
    { kinds: ["events"] });
  const search = new Search(model);
  const drawn = (text, from, perColumn, width) => {
    search.run(text);
    const columns = [];
    search.columns(model.lanes[0], from, perColumn, width, (span, column) => columns.push([model.spans.begins[span], column]));
    return columns;
  };
  assert.deepEqual(drawn("rare", 0, 250, 4), [[0, 0], [300, 1], [500, 2], [800, 3]]);
  assert.deepEqual(drawn("rare", 350, 100, 2), [[400, 0], [500, 1]]);
  assert.equal(drawn("many", 0, 1, 1000).length, 90);
  assert.deepEqual(drawn("none", 0, 1, 10), []);
});

test("rows are found at their place, pinned ones at the top", () => {
  const model = modelOf([[["a", 0, 1, 0], ["b", 0, 1, 1]], [["c", 0, 1, 0]]]);
  const layout = new Layout(model);
  const [first, second] = layout.rows;
  assert.equal(layout.rowAt(second.top + 1, 0).row, second);
  assert.equal(layout.laneAt(first, 25), model.tracks[0].lanes[1]);
  layout.togglePin(model.tracks[1]);
  assert.equal(layout.rowAt(1, 0).row.pinned, true);
  assert.equal(layout.rowAt(layout.pinnedHeight + 1, 0).row.track, model.tracks[0]);
  layout.toggle(model.tracks[0]);
  assert.equal(layout.laneAt(layout.rows[0], 25), null);
});

test("texts on slices have a contrast of at least 4.5, and marks one of 3", () => {
  for (let i = 0; i < 500; i++) {
    const { color, text } = paintOf(`slice ${String.fromCharCode(97 + (i % 26))}${"x".repeat(i % 37)}`, "slices");
    const ink = text === "#fff" ? [255, 255, 255] : [0, 0, 0];
    assert.ok(contrast(color, ink) >= 4.5, `${color} with ${text}`);
  }
  for (const background of [[255, 255, 255], [20, 23, 29]]) {
    for (let i = 0; i < 500; i++) {
      const { color } = paintOf(`event_${String.fromCharCode(97 + (i % 26))}${"x".repeat(i % 37)}`, "events");
      assert.ok(contrast(color, background) >= 3, `a mark of ${color} on ${background}`);
    }
  }
  assert.deepEqual(rgb(0, 100, 50), [255, 0, 0]);
});
