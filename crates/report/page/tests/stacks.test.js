import assert from "node:assert/strict";
import { test } from "node:test";
import { eventsByName, hasSlices, sumsOfArea } from "../aggregate.js";
import { Layout } from "../layout.js";
import { Search } from "../search.js";
import { heapWeights, samplesOf, stackTree } from "../stacks.js";
import { modelOf } from "./trace.js";

// main calls work, which calls leaf; other has no caller.
const STACKS = [[0, "main"], [1, "work"], [2, "leaf"], [0, "other"]];

const sampled = () => modelOf(
  [[["leaf", 10, 0, 0], ["work", 20, 0, 0], ["leaf", 30, 0, 0]], [["other", 25, 0, 0], ["no call stack", 40, 0, 0]]],
  {
    kinds: ["samples", "samples"],
    stacks: STACKS,
    sampleStacks: [3, 2, 3, 4, 0],
    spanThreads: [1, 1, 1, 2, 2],
    processes: [{ name: "app", pid: 7 }],
    threads: [{ name: "main", tid: 7, process: 0, track: 0 }, { name: "helper", tid: 8, process: 0, track: 1 }],
  },
);

const shown = (model, node) => [
  node.name < 0 ? node.label : model.strings[node.name], node.total, node.self, ...node.children.map((child) => shown(model, child)),
];

test("functions are below their callers, the greatest first", () => {
  const model = sampled();
  const { groups, number } = samplesOf(model, null, "none");
  assert.equal(number, 5);
  assert.deepEqual(shown(model, stackTree(model.stacks, groups)), ["all", 5, 0,
    ["main", 3, 0, ["work", 3, 1, ["leaf", 2, 2]]], ["other", 1, 1], ["no call stack", 1, 1]]);
});

test("samples are grouped by process and thread", () => {
  const model = sampled();
  const tree = stackTree(model.stacks, samplesOf(model, null, "thread").groups);
  assert.deepEqual(tree.children.map(({ label, total }) => [label, total]), [["app 7", 5]]);
  assert.deepEqual(tree.children[0].children.map(({ label, total }) => [label, total]), [["main 7", 3], ["helper 8", 2]]);
  const byProcess = stackTree(model.stacks, samplesOf(model, null, "process").groups);
  assert.deepEqual(byProcess.children.map(({ label, children }) => [label, children.length]), [["app 7", 3]]);
});

test("an area has the samples between its ends, on its tracks", () => {
  const model = sampled();
  assert.equal(samplesOf(model, { from: 20, to: 30, tracks: null }, "none").number, 3);
  assert.equal(samplesOf(model, { from: 0, to: 999, tracks: new Set([1]) }, "none").number, 2);
  assert.equal(samplesOf(model, { from: 31, to: 39, tracks: null }, "none").number, 0);
});

test("samples of several sources are told apart", () => {
  const model = modelOf([[["main", 10, 0, 0]], [["main", 20, 0, 0], ["main", 30, 0, 0]]], {
    kinds: ["samples", "samples"], units: ["page-faults", "cpu-clock"], stacks: STACKS, sampleStacks: [1, 1, 1],
    spanThreads: [1, 1, 1],
  });
  assert.deepEqual(model.sampleSources, ["cpu-clock", "page-faults"]);
  assert.deepEqual(["cpu-clock", "page-faults", null].map((source) => samplesOf(model, null, "none", source).number),
    [2, 1, 3]);
  assert.equal(model.tracks[0].detail, "page-faults");
});

test("a sample has its stack, the innermost function first", () => {
  const model = sampled();
  const names = (span) => model.stacks.frames(model.stackOf(span)).map(({ name }) => model.strings[name]);
  assert.deepEqual(names(0), ["leaf", "work", "main"]);
  assert.deepEqual(names(3), ["other"]);
  assert.deepEqual(names(4), []);
});

test("a search for a function finds the samples whose stack has it", () => {
  const search = new Search(sampled());
  search.run("WORK");
  assert.deepEqual([...search.found], [0, 1, 2]);
  search.run("helper");
  assert.equal(search.found.length, 0);
});

test("stacks of many functions do not overflow", () => {
  const depth = 50_000;
  const stacks = Array.from({ length: depth }, (_, i) => [i, i % 2 ? "even" : "odd"]);
  const model = modelOf([[["odd", 1, 0, 0]]], { kinds: ["samples"], stacks, sampleStacks: [depth], spanThreads: [1] });
  assert.equal(stackTree(model.stacks, samplesOf(model, null, "none").groups).total, 1);
  assert.equal(model.stacks.frames(depth).length, depth);
});

test("a dump of a heap has the changes up to it", () => {
  const model = modelOf([[["heap dump 1", 10, 0, 0], ["heap dump 2", 20, 0, 0]]], {
    kinds: ["heap"],
    stacks: STACKS,
    heaps: [[[10, [3, 5, 500], [3, -2, -200], [4, 1, 7]], [20, [3, 1, 50], [4, -1, -7]]]],
  });
  const [heap] = model.heaps;
  const weights = (dump, measure) => Object.fromEntries(heapWeights(heap, dump, measure));
  assert.deepEqual(weights(0, "size"), { 3: 300, 4: 7 });
  assert.deepEqual(weights(0, "count"), { 3: 3, 4: 1 });
  assert.deepEqual(weights(1, "size"), { 3: 350, 4: 0 });
  assert.deepEqual(weights(1, "allocated"), { 3: 550, 4: 7 });
  assert.deepEqual(weights(1, "allocations"), { 3: 6, 4: 1 });
  const tree = stackTree(model.stacks, [{ labels: ["heap"], weights: heapWeights(heap, 1, "size") }]);
  assert.deepEqual(shown(model, tree), ["all", 350, 0, ["heap", 350, 0, ["main", 350, 0, ["work", 350, 0, ["leaf", 350, 350]]]]]);
  assert.deepEqual([0, 1].map((span) => model.dumpOf(span)), [{ heap: 0, dump: 0 }, { heap: 0, dump: 1 }]);
});

test("events, samples and states are no slices, and have sums of their own", () => {
  const model = modelOf(
    [[["irq", 10, 0, 0], ["irq", 20, 0, 0], ["print", 30, 0, 0]], [["idle", 0, 50, 0]], [["work", 0, 100, 0]]],
    { kinds: ["events", "states", "thread"] },
  );
  assert.deepEqual(model.tracks.map(hasSlices), [false, false, true]);
  const sums = sumsOfArea(model, { from: 0, to: 100, tracks: null });
  assert.deepEqual(sums.map(({ kind, name, count }) => [kind, model.strings[name], count]),
    [["slice", "work", 1], ["states", "idle", 1], ["events", "irq", 2], ["events", "print", 1]]);
  assert.deepEqual(eventsByName(model).map(({ name, count, first }) => [model.strings[name], count, first]),
    [["irq", 2, 0], ["print", 1, 2]]);
});

test("kernel events begin closed beside slices, and open alone", () => {
  const events = { name: "Kernel events", kind: "group" };
  const closed = (kind) => {
    const model = modelOf([[], [["irq", 10, 0, 0]], [["work", 0, 100, 0]]].map((lane) => lane), {
      kinds: ["group", "events", kind],
    });
    Object.assign(model.tracks[0], events);
    model.tracks[1].parent = 0;
    model.tracks[0].children.push(model.tracks[1]);
    return new Layout(model).closed.has(0);
  };
  assert.equal(closed("thread"), true);
  assert.equal(closed("counter"), false);
});
