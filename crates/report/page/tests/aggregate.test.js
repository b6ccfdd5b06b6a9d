import assert from "node:assert/strict";
import { test } from "node:test";
import * as aggregate from "../aggregate.js";
import { modelOf } from "./trace.js";

const nested = () => modelOf([[
  ["outer", 0, 100, 0], ["inner", 10, 20, 1], ["inner", 50, 30, 1], ["leaf", 60, 10, 2],
  ["outer", 200, 50, 0], ["open", 300, -1, 0],
]]);

const named = (model, name) => [...model.spans.names].map((_, i) => i).filter((i) => model.name(i) === name);

test("parents are the spans that contain others", () => {
  const model = nested();
  const parents = aggregate.parentsOf(model);
  const [outer] = named(model, "outer");
  const inner = named(model, "inner");
  assert.deepEqual(inner.map((span) => parents[span]), [outer, outer]);
  assert.equal(parents[named(model, "leaf")[0]], inner[1]);
  assert.equal(parents[outer], -1);
  for (let span = 0; span < model.spans.count; span++) assert.equal(model.parent(span), parents[span]);
});

test("self time is without the spans inside", () => {
  const model = nested();
  const self = aggregate.selfTimesOf(model, aggregate.parentsOf(model));
  const [outer] = named(model, "outer");
  assert.equal(self[outer], 50);
  assert.equal(model.selfTime(outer), 50);
  assert.equal(self[named(model, "inner")[1]], 20);
});

test("a span that did not end lasts to the end of the trace", () => {
  const model = nested();
  const [open] = named(model, "open");
  assert.equal(model.spans.durations[open], 700);
  assert.equal(model.spans.unfinished[open], 1);
});

test("sums are by name, the greatest first", () => {
  const model = nested();
  const sums = aggregate.sumsByName(model, aggregate.selfTimesOf(model, aggregate.parentsOf(model)));
  assert.deepEqual(sums.map(({ name, count, total, self }) => [model.strings[name], count, total, self]), [
    ["open", 1, 700, 700], ["outer", 2, 150, 100], ["inner", 2, 50, 40], ["leaf", 1, 10, 10],
  ]);
});

test("an area counts what is inside of it", () => {
  const model = nested();
  const sums = aggregate.sumsOfArea(model, { from: 55, to: 65, tracks: null });
  assert.deepEqual(sums.map(({ name, count, total }) => [model.strings[name], count, total]), [
    ["outer", 1, 10], ["inner", 1, 10], ["leaf", 1, 5],
  ]);
});

test("the flame graph is a tree of names", () => {
  const model = nested();
  const parents = aggregate.parentsOf(model);
  const tree = aggregate.flameTree(model, parents, aggregate.selfTimesOf(model, parents));
  const [open, outer] = tree.children;
  assert.deepEqual([model.strings[open.name], model.strings[outer.name]], ["open", "outer"]);
  assert.equal(tree.total, 850);
  assert.equal(outer.children[0].total, 50);
  assert.equal(outer.children[0].children[0].total, 10);
});

test("arrows are followed through all processes, and circles end", () => {
  const model = modelOf([[["a", 0, 1, 0], ["b", 10, 1, 0], ["c", 20, 1, 0]]], { flows: [[0, 1], [1, 2], [2, 0]] });
  const arrows = aggregate.flowsAround(model, 0);
  assert.ok(arrows.length >= 3 && arrows.length <= 6);
  assert.deepEqual(arrows.filter(({ near }) => near).map(({ from, to }) => [from, to]), [[0, 1], [2, 0]]);
});
