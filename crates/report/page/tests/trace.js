// Small traces for the tests, without a page around them.

import { Model } from "../model.js";

/** Returns a number for each text; `strings` has the texts. */
function numbers() {
  const strings = [""];
  const number = (text) => {
    const at = strings.indexOf(text);
    return at >= 0 ? at : strings.push(text) - 1;
  };
  return { strings, number };
}

/**
 * Returns a model of slices. Each track is a list of `[name, begin, duration, depth]`; a duration
 * of -1 is that of a slice that did not end. `kinds` and `units` are those of the tracks.
 *
 * `stacks` are pairs of caller and function; stacks are numbered from 1. `sampleStacks` has a stack
 * for each span on a track of samples, and `threads` has the thread of each. `heaps` are lists of
 * dumps, `[time, [stack, count, size]…]`.
 */
export function modelOf(tracks, options = {}) {
  const { duration = 1000, flows = [], kinds = [], stacks = [], sampleStacks = [], heaps = [] } = options;
  const { processes = [], threads = [], spanThreads, units = [] } = options;
  const { strings, number } = numbers();
  const rows = { begin: [], duration: [], name: [] };
  const lanes = { track: [], spans: [], depth: [] };
  tracks.forEach((spans, track) => {
    const deepest = Math.max(...spans.map(([, , , depth]) => depth));
    for (let depth = 0; depth <= deepest; depth++) {
      const lane = spans.filter((span) => span[3] === depth).sort((a, b) => a[1] - b[1]);
      lanes.track.push(track);
      lanes.spans.push(lane.length);
      lanes.depth.push(depth);
      for (const [name, begin, length] of lane) {
        rows.begin.push(begin);
        rows.duration.push(length);
        rows.name.push(number(name));
      }
    }
  });
  const zeros = () => new Uint32Array(rows.begin.length);
  const dumps = heaps.flat();
  const changes = dumps.flatMap(([, ...list]) => list);
  return new Model(
    {
      duration,
      notices: [],
      processes,
      threads,
      heaps: heaps.map((list, i) => ({ process: 0, name: `heap ${i}`, track: kinds.indexOf("heap"), dumps: list.length })),
      tracks: tracks.map((_, i) => ({ name: `track ${i}`, kind: kinds[i] ?? "thread", unit: units[i] ?? "" })),
    },
    {
      strings,
      "span.begin": Float64Array.from(rows.begin),
      "span.duration": Float64Array.from(rows.duration),
      "span.name": Uint32Array.from(rows.name),
      "span.category": zeros(),
      "span.args": zeros(),
      "span.thread": spanThreads ? Uint32Array.from(spanThreads) : zeros(),
      "sample.stack": Uint32Array.from(sampleStacks),
      "stack.caller": Uint32Array.from(stacks, ([caller]) => caller),
      "stack.function": Uint32Array.from(stacks, ([, name]) => number(name)),
      "stack.file": new Uint32Array(stacks.length),
      "dump.time": Float64Array.from(dumps, ([time]) => time),
      "dump.changes": Uint32Array.from(dumps, ([, ...list]) => list.length),
      "heap.stack": Uint32Array.from(changes, ([stack]) => stack),
      "heap.count": Float64Array.from(changes, ([, count]) => count),
      "heap.size": Float64Array.from(changes, ([, , size]) => size),
      "lane.track": Uint32Array.from(lanes.track),
      "lane.spans": Uint32Array.from(lanes.spans),
      "lane.depth": Uint32Array.from(lanes.depth),
      "counter.track": new Uint32Array(0),
      "counter.points": new Uint32Array(0),
      "flow.from": Uint32Array.from(flows, ([from]) => from),
      "flow.to": Uint32Array.from(flows, ([, to]) => to),
      "args.bytes": new Uint8Array(0),
      "args.ends": new Float64Array(0),
    },
  );
}

/** Returns numbers that look random and are the same in every run. */
export function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state % below;
  };
}

/** Returns a track with random slices that do not overlap, on one lane. */
export function randomLane(seed, count) {
  const next = random(seed);
  const spans = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    at += next(5) === 0 ? next(200) : next(3);
    const duration = next(20) === 0 ? next(500) : next(4);
    spans.push([`name ${next(5)}`, at, duration, 0]);
    at += duration;
  }
  return { spans, end: at };
}
