// Call stacks: trees of samples and of heap profiles.
//
// A stack is the number of its innermost function; 0 is the empty stack. A caller has a lower
// number than the functions that it calls.

/** Functions below their callers, as the page has them. */
export class Stacks {
  constructor(columns) {
    this.callers = columns["stack.caller"];
    this.functions = columns["stack.function"];
    this.files = columns["stack.file"];
    this.count = this.callers.length;
  }

  /** Returns the functions of a stack, the innermost first, as pairs of names' numbers. */
  frames(stack) {
    const frames = [];
    for (let at = stack; at > 0; at = this.callers[at - 1]) {
      frames.push({ name: this.functions[at - 1], file: this.files[at - 1] });
    }
    return frames;
  }

  /** Returns for each stack whether one of its functions matches. */
  matching(matches) {
    const found = new Uint8Array(this.count + 1);
    for (let i = 0; i < this.count; i++) {
      found[i + 1] = found[this.callers[i]] || matches[this.functions[i]] ? 1 : 0;
    }
    return found;
  }
}

function node(name, label, depth) {
  return { name, label, file: 0, total: 0, self: 0, count: 0, depth, children: [] };
}

/**
 * Returns the tree of call stacks with weights, for a flame graph.
 *
 * `groups` are lists of `labels`, the way from the root to the stacks, with `weights`, a map from
 * stacks to numbers. A node has the number of its `name`, or a `label` instead, `total`, `self` and
 * `children`, the greatest first. Weights that are not above 0 are left out.
 */
export function stackTree(stacks, groups) {
  const root = node(-1, "all", -1);
  const made = [root];
  const known = new Map();
  const childOf = (above, name, label) => {
    const child = node(name, label, above.depth + 1);
    above.children.push(child);
    made.push(child);
    return child;
  };
  groups.forEach(({ labels, weights }) => {
    let top = root;
    let way = "";
    for (const label of labels) {
      way += `${label}\u0000`;
      if (!known.has(way)) known.set(way, childOf(top, -1, label));
      top = known.get(way);
    }
    const nodes = new Map();
    const nodeOf = (stack) => {
      // From the stack up to a caller that has a node already.
      const missing = [];
      let at = stack;
      for (; at > 0 && !nodes.has(at); at = stacks.callers[at - 1]) missing.push(at);
      let above = at > 0 ? nodes.get(at) : top;
      while (missing.length) {
        const next = missing.pop();
        above = childOf(above, stacks.functions[next - 1], "");
        above.file = stacks.files[next - 1];
        nodes.set(next, above);
      }
      return above;
    };
    for (const [stack, weight] of weights) {
      if (weight <= 0) continue;
      const own = stack > 0 ? nodeOf(stack) : (nodes.get(0) ?? childOf(top, -1, "no call stack"));
      if (stack === 0) nodes.set(0, own);
      own.self += weight;
    }
  });
  // A node comes after the one above it.
  for (const one of made) one.total = one.self;
  const sum = (one) => {
    for (const child of one.children) one.total += child.total;
  };
  for (let i = made.length - 1; i >= 0; i--) sum(made[i]);
  for (const one of made) one.children.sort((a, b) => b.total - a.total);
  return root;
}

/** Ways to group the samples of an area. */
export const GROUPINGS = [
  { id: "thread", name: "by process and thread" },
  { id: "process", name: "by process" },
  { id: "none", name: "all together" },
];

/**
 * Returns the groups of the samples in an area, or of the whole trace, and their number; with
 * `source`, only of those from this source.
 */
export function samplesOf(model, area, grouping, source = null) {
  const { begins, threads } = model.spans;
  const groups = new Map();
  let number = 0;
  for (const lane of model.lanes) {
    if (lane.track.kind !== "samples") continue;
    if (source !== null && lane.track.unit !== source) continue;
    if (area && !lane.track.isIn(area.tracks)) continue;
    const first = area ? lane.firstFrom(area.from) : lane.first;
    for (let span = first; span < lane.end; span++) {
      if (area && begins[span] > area.to) break;
      const thread = threads[span] - 1;
      const process = model.threads[thread]?.process ?? -1;
      const key = grouping === "none" ? -2 : grouping === "process" ? process : thread;
      let group = groups.get(key);
      if (!group) {
        group = { labels: labelsOf(model, thread, process, grouping), weights: new Map() };
        groups.set(key, group);
      }
      const stack = model.stackOf(span);
      group.weights.set(stack, (group.weights.get(stack) ?? 0) + 1);
      number++;
    }
  }
  return { groups: [...groups.values()], number };
}

/** Returns the last part of a path. */
export function fileName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

function labelsOf(model, thread, process, grouping) {
  if (grouping === "none") return [];
  const { name, pid } = model.processes[process] ?? {};
  const above = pid === undefined ? "unknown process" : `${fileName(name) || "process"} ${pid}`;
  if (grouping === "process") return [above];
  const own = model.threads[thread];
  return [above, own ? `${own.name || "thread"} ${own.tid}` : "unknown thread"];
}

/** Measures of a heap profile. */
export const MEASURES = [
  { id: "size", name: "bytes in use", unit: "bytes" },
  { id: "count", name: "allocations in use", unit: "" },
  { id: "allocated", name: "bytes allocated so far", unit: "bytes" },
  { id: "allocations", name: "allocations so far", unit: "" },
];

/** Returns the weights of a heap at a dump by their stacks, for one of the measures. */
export function heapWeights(heap, dump, measure) {
  const weights = new Map();
  const end = heap.ends[dump];
  const values = measure === "size" || measure === "allocated" ? heap.sizes : heap.counts;
  const all = measure === "size" || measure === "count";
  for (let i = heap.first; i < end; i++) {
    // Changes below 0 are frees.
    if (!all && heap.counts[i] < 0) continue;
    const stack = heap.stacks[i];
    weights.set(stack, (weights.get(stack) ?? 0) + values[i]);
  }
  return weights;
}
