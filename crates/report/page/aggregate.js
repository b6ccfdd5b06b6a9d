// Sums over many spans: by name, as a flame graph, and for an area.

const SLICES = new Set(["thread", "slices", "process"]);

/** Returns true if the spans of a track are slices (and not stays on a CPU or states). */
export function hasSlices(track) {
  return SLICES.has(track.kind);
}

/** Returns for each span the number of the span that directly contains it, or -1. */
export function parentsOf(model) {
  const { begins, ends, count } = model.spans;
  const parents = new Int32Array(count).fill(-1);
  for (const lane of model.lanes) {
    if (lane.depth === 0 || !hasSlices(lane.track)) continue;
    const above = lane.track.lanes[lane.place - 1];
    let candidate = above.first;
    for (let span = lane.first; span < lane.end; span++) {
      while (candidate + 1 < above.end && begins[candidate + 1] <= begins[span]) candidate++;
      // Two spans may meet at one time: the one that ends there is no parent of a longer one.
      let parent = candidate;
      while (parent > above.first && begins[parent] > begins[span]) parent--;
      if (begins[parent] <= begins[span] && ends[parent] >= ends[span]) parents[span] = parent;
    }
  }
  return parents;
}

/** Returns for each span its duration without the spans in it. */
export function selfTimesOf(model, parents) {
  const { durations, count } = model.spans;
  const self = Float64Array.from(durations);
  for (let span = 0; span < count; span++) {
    const parent = parents[span];
    if (parent >= 0) self[parent] -= durations[span];
  }
  for (let span = 0; span < count; span++) if (self[span] < 0) self[span] = 0;
  return self;
}

/** Returns sums of slices by name, those with the greatest total first. */
export function sumsByName(model, selfTimes) {
  const { durations, names } = model.spans;
  const sums = new Map();
  for (const lane of model.lanes) {
    if (!hasSlices(lane.track)) continue;
    for (let span = lane.first; span < lane.end; span++) {
      let sum = sums.get(names[span]);
      if (!sum) {
        sum = { name: names[span], count: 0, total: 0, self: 0, longest: span };
        sums.set(names[span], sum);
      }
      sum.count++;
      sum.total += durations[span];
      sum.self += selfTimes[span];
      if (durations[span] > durations[sum.longest]) sum.longest = span;
    }
  }
  return [...sums.values()].sort((a, b) => b.total - a.total);
}

/** Returns sums of the spans in an area: by track kind and name, with clipped durations. */
export function sumsOfArea(model, { from, to, tracks }) {
  const { begins, ends, durations, names } = model.spans;
  const kinds = new Map();
  for (const lane of model.lanes) {
    if (!lane.track.isIn(tracks)) continue;
    const kind = hasSlices(lane.track) ? "slice" : lane.track.kind;
    if (!kinds.has(kind)) kinds.set(kind, new Map());
    const sums = kinds.get(kind);
    for (let span = lane.firstEndingAfter(from - 1); span < lane.end && begins[span] <= to; span++) {
      if (ends[span] < from) continue;
      let sum = sums.get(names[span]);
      if (!sum) {
        sum = { kind, name: names[span], count: 0, total: 0, longest: span };
        sums.set(names[span], sum);
      }
      sum.count++;
      sum.total += Math.max(0, Math.min(ends[span], to) - Math.max(begins[span], from));
      if (durations[span] > durations[sum.longest]) sum.longest = span;
    }
  }
  const all = [];
  for (const sums of kinds.values()) for (const sum of sums.values()) all.push(sum);
  return all.sort((a, b) => b.total - a.total || b.count - a.count);
}

/** Returns the events of the kernel by name, the most frequent first, each with its first event. */
export function eventsByName(model) {
  const { names, begins } = model.spans;
  const sums = new Map();
  for (const lane of model.lanes) {
    if (lane.track.kind !== "events") continue;
    for (let span = lane.first; span < lane.end; span++) {
      const sum = sums.get(names[span]);
      if (!sum) sums.set(names[span], { name: names[span], count: 1, first: span });
      else {
        sum.count++;
        if (begins[span] < begins[sum.first]) sum.first = span;
      }
    }
  }
  return [...sums.values()].sort((a, b) => b.count - a.count);
}

/** Returns lowest, highest and mean value (weighted by time) of the counters in an area. */
export function countersOfArea(model, { from, to, tracks }) {
  const rows = [];
  for (const track of model.tracks) {
    const { points } = track;
    if (!points || (tracks && !tracks.has(track.index))) continue;
    let at = Math.max(points.at(from), points.first);
    if (at >= points.end || points.times[at] > to) continue;
    let low = Infinity;
    let high = -Infinity;
    let weighted = 0;
    let covered = 0;
    for (; at < points.end && points.times[at] <= to; at++) {
      const begin = Math.max(from, points.times[at]);
      const end = Math.min(to, at + 1 < points.end ? points.times[at + 1] : model.duration);
      low = Math.min(low, points.values[at]);
      high = Math.max(high, points.values[at]);
      weighted += points.values[at] * Math.max(0, end - begin);
      covered += Math.max(0, end - begin);
    }
    rows.push({ track, low, high, mean: covered > 0 ? weighted / covered : low });
  }
  return rows;
}

/**
 * Returns the tree of slices by the path of their names, for an area or the whole trace.
 *
 * A node has `name`, `total`, `self`, `count`, `depth` and `children`, the greatest first.
 */
export function flameTree(model, parents, selfTimes, area = null) {
  const { begins, ends, names, count, durations } = model.spans;
  const root = { name: -1, total: 0, self: 0, count: 0, depth: -1, children: [] };
  const nodes = [root];
  const nodeOf = new Int32Array(count);
  const known = new Map();
  // Most slices have the parent and the name of a recent one.
  const recentKeys = new Float64Array(4096).fill(-1);
  const recentNodes = new Int32Array(4096);
  const childOf = (above, name) => {
    const key = above * model.strings.length + name;
    const slot = key % 4096;
    if (recentKeys[slot] === key) return recentNodes[slot];
    let child = known.get(key);
    if (child === undefined) {
      child = nodes.length;
      const node = { name, total: 0, self: 0, count: 0, depth: nodes[above].depth + 1, children: [] };
      nodes.push(node);
      nodes[above].children.push(node);
      known.set(key, child);
    }
    recentKeys[slot] = key;
    recentNodes[slot] = child;
    return child;
  };
  for (const lane of model.lanes) {
    if (!hasSlices(lane.track)) continue;
    if (area?.tracks && !area.tracks.has(lane.track.index)) continue;
    for (let span = lane.first; span < lane.end; span++) {
      if (area && (begins[span] > area.to || ends[span] < area.from)) continue;
      const above = parents[span] >= 0 ? nodeOf[parents[span]] : 0;
      const child = childOf(above, names[span]);
      const node = nodes[child];
      nodeOf[span] = child;
      node.count++;
      const inside = area
        ? Math.max(0, Math.min(ends[span], area.to) - Math.max(begins[span], area.from))
        : durations[span];
      node.total += inside;
      if (durations[span] > 0) node.self += selfTimes[span] * (inside / durations[span]);
      if (above === 0) root.total += inside;
    }
  }
  for (const node of nodes) node.children.sort((a, b) => b.total - a.total);
  return root;
}

/** Returns the spans and arrows that are linked with a span by flows, nearest first. */
export function flowsAround(model, span, most = 200) {
  const arrows = [];
  const walk = (map, make) => {
    const seen = new Set([span]);
    let front = [span];
    for (let near = true; front.length && arrows.length < most; near = false) {
      const next = [];
      for (const at of front) {
        for (const other of map.get(at) ?? []) {
          if (arrows.length >= most) break;
          arrows.push({ ...make(at, other), near });
          if (!seen.has(other)) {
            seen.add(other);
            next.push(other);
          }
        }
      }
      front = next;
    }
  };
  walk(model.flowsOut, (from, to) => ({ from, to }));
  walk(model.flowsIn, (to, from) => ({ from, to }));
  return arrows;
}
