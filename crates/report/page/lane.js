// Lanes: runs of spans that do not overlap, sorted by time, and the index that makes any stretch
// of them cheap to draw.

/** Children of a node of the index. */
const FANOUT = 16;

/**
 * Index of the longest span of any stretch of a lane.
 *
 * Level 0 has one entry for each `FANOUT` spans, level 1 one for each `FANOUT` entries of level 0,
 * and so on. An entry is the number of the longest span below it.
 */
export class LongestIndex {
  constructor(durations, first, end) {
    this.durations = durations;
    this.first = first;
    this.levels = [];
    let below = null;
    let count = end - first;
    while (count > FANOUT) {
      const size = Math.ceil(count / FANOUT);
      const level = new Uint32Array(size);
      for (let node = 0; node < size; node++) {
        const begin = node * FANOUT;
        const stop = Math.min(begin + FANOUT, count);
        let best = below ? below[begin] : first + begin;
        for (let i = begin + 1; i < stop; i++) {
          const other = below ? below[i] : first + i;
          if (durations[other] > durations[best]) best = other;
        }
        level[node] = best;
      }
      this.levels.push(level);
      below = level;
      count = size;
    }
  }

  /** Returns the longest of the spans from `begin` to before `end`; there is at least one. */
  longest(begin, end) {
    const { durations, levels } = this;
    let best = begin;
    const consider = (span) => {
      if (durations[span] > durations[best]) best = span;
    };
    let low = begin - this.first;
    let high = end - this.first;
    let entry = (i) => this.first + i;
    for (let level = 0; ; level++) {
      const above = levels[level];
      if (!above || high - low <= 2 * FANOUT) {
        for (let i = low; i < high; i++) consider(entry(i));
        return best;
      }
      while (low % FANOUT !== 0) consider(entry(low++));
      while (high % FANOUT !== 0) consider(entry(--high));
      low /= FANOUT;
      high /= FANOUT;
      entry = (i) => above[i];
    }
  }
}

/** Returns the first position of `column[low..high]` whose value is greater than `value`. */
export function upperBound(column, low, high, value) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column[middle] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Returns the first position of `column[low..high]` whose value is at least `value`. */
export function lowerBound(column, low, high, value) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column[middle] >= value) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Returns the positions of a column in ascending order of their values, by a radix sort. */
export function orderOf(column) {
  const count = column.length;
  let least = Infinity;
  let most = -Infinity;
  for (let i = 0; i < count; i++) {
    if (column[i] < least) least = column[i];
    if (column[i] > most) most = column[i];
  }
  // Keys in two parts: integers sort much faster than floating-point numbers are divided.
  const low = new Uint32Array(count);
  const high = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    const key = column[i] - least;
    high[i] = key / 0x100000000;
    low[i] = key - high[i] * 0x100000000;
  }
  let order = new Uint32Array(count);
  let other = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  for (let bits = 0; 2 ** bits <= most - least; bits += 16) {
    const part = bits < 32 ? low : high;
    const shift = bits % 32;
    const places = new Uint32Array(0x10001);
    for (let i = 0; i < count; i++) places[((part[i] >>> shift) & 0xffff) + 1]++;
    for (let i = 0; i < 0x10000; i++) places[i + 1] += places[i];
    for (let i = 0; i < count; i++) {
      const row = order[i];
      other[places[(part[row] >>> shift) & 0xffff]++] = row;
    }
    [order, other] = [other, order];
  }
  return order;
}

/** Spans of one lane: those of the trace from `first` to before `end`. */
export class Lane {
  constructor(spans, first, end) {
    this.spans = spans;
    this.first = first;
    this.end = end;
    this.index = null;
  }

  /** Returns the first span that ends after `time`, or `end`. */
  firstEndingAfter(time) {
    const { begins, ends } = this.spans;
    const after = upperBound(begins, this.first, this.end, time);
    return after > this.first && ends[after - 1] > time ? after - 1 : after;
  }

  /** Returns the first span that begins at `time` or later, or `end`. */
  firstFrom(time) {
    return lowerBound(this.spans.begins, this.first, this.end, time);
  }

  /** Returns the span at `time`, or -1. Spans shorter than `slack` count as long as that. */
  at(time, slack = 0) {
    const { begins, ends } = this.spans;
    const after = upperBound(begins, this.first, this.end, time);
    const before = after - 1;
    if (before >= this.first && Math.max(ends[before], begins[before] + slack) > time) return before;
    if (after < this.end && begins[after] - time <= slack / 2) return after;
    return -1;
  }

  /** Returns the longest of the spans from `begin` to before `end`; there is at least one. */
  longest(begin, end) {
    if (end - begin === 1) return begin;
    this.index ??= new LongestIndex(this.spans.durations, this.first, this.end);
    return this.index.longest(begin, end);
  }

  /**
   * Calls `draw(span, left, right)` for the spans from time `from` on, in `width` columns of
   * `perColumn` nanoseconds. A span at least a column wide is drawn at its place; shorter ones
   * share a column, and the longest of them is drawn. The work depends on `width`, not on the
   * number of spans.
   */
  columns(from, perColumn, width, draw) {
    const { begins, ends } = this.spans;
    let span = this.firstEndingAfter(from);
    const to = from + perColumn * width;
    while (span < this.end && begins[span] < to) {
      const left = Math.max(0, Math.floor((begins[span] - from) / perColumn));
      const border = from + (left + 1) * perColumn;
      if (ends[span] >= border) {
        const right = Math.min(width, Math.ceil((ends[span] - from) / perColumn));
        draw(span, left, right);
        span++;
        continue;
      }
      const next = lowerBound(begins, span + 1, this.end, border);
      const last = next - 1;
      // A span that leaves the column is drawn by itself.
      const stop = ends[last] >= border ? last : next;
      draw(this.longest(span, stop), left, left + 1);
      span = stop;
    }
  }
}
