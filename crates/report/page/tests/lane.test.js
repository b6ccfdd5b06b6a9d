import assert from "node:assert/strict";
import { test } from "node:test";
import { LongestIndex, lowerBound, orderOf, upperBound } from "../lane.js";
import { modelOf, random, randomLane } from "./trace.js";

test("the longest span of any stretch is found", () => {
  const next = random(7);
  const durations = Float64Array.from({ length: 5000 }, () => next(1e6));
  const index = new LongestIndex(durations, 100, 4900);
  for (let i = 0; i < 2000; i++) {
    const begin = 100 + next(4799);
    const end = begin + 1 + next(4900 - begin);
    const longest = index.longest(begin, end);
    assert.ok(longest >= begin && longest < end);
    assert.equal(durations[longest], Math.max(...durations.subarray(begin, end)));
  }
});

test("bounds are those of a sorted column", () => {
  const column = [1, 3, 3, 5];
  assert.equal(lowerBound(column, 0, 4, 3), 1);
  assert.equal(upperBound(column, 0, 4, 3), 3);
  assert.equal(upperBound(column, 0, 4, 9), 4);
});

test("the order of a column is that of its values", () => {
  const next = random(3);
  const column = Float64Array.from({ length: 3000 }, () => next(7) * 1e9 + next(1000) - 5000);
  const sorted = [...orderOf(column)].map((i) => column[i]);
  assert.deepEqual(sorted, [...column].sort((a, b) => a - b));
});

test("equal values keep their order", () => {
  assert.deepEqual([...orderOf(Float64Array.of(5, 5, 1, 5))], [2, 0, 1, 3]);
});

test("each column of pixels shows the longest span that begins there or one that covers it", () => {
  const { spans, end } = randomLane(11, 4000);
  const model = modelOf([spans], { duration: end });
  const { begins, ends, durations } = model.spans;
  const lane = model.tracks[0].lanes[0];
  for (const [from, width] of [[0, 300], [end / 3, 77], [-50, 1000]]) {
    const perColumn = end / 2 / width;
    const shown = new Map();
    let calls = 0;
    lane.columns(from, perColumn, width, (span, left, right) => {
      calls++;
      assert.ok(left >= 0 && right <= width && left < right);
      for (let column = left; column < right; column++) shown.set(column, span);
    });
    assert.ok(calls <= 2 * width + 2, `${calls} calls for ${width} columns`);
    for (let column = 0; column < width; column++) {
      const begin = from + column * perColumn;
      const inside = [];
      for (let span = lane.first; span < lane.end; span++) {
        if (begins[span] < begin + perColumn && (ends[span] > begin || begins[span] >= begin)) inside.push(span);
      }
      const span = shown.get(column);
      if (span === undefined) {
        assert.equal(inside.length, 0, `column ${column} is empty`);
        continue;
      }
      assert.ok(inside.includes(span) || ends[span] >= begin, `column ${column} shows a span of another time`);
      assert.ok(durations[span] >= 0);
    }
  }
});

test("a span is found by its time, and a short one also near it", () => {
  const model = modelOf([[["a", 10, 10, 0], ["b", 30, 0, 0], ["c", 50, 5, 0]]]);
  const lane = model.tracks[0].lanes[0];
  assert.equal(lane.at(15), 0);
  assert.equal(lane.at(25), -1);
  assert.equal(lane.at(31, 4), 1);
  assert.equal(lane.at(29, 4), 1);
  assert.equal(lane.at(55), -1);
});
