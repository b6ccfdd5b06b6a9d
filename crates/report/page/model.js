// The trace of this page: columns, and the questions that the views ask of them.

import { Reader } from "./decode.js";
import { Lane, lowerBound, orderOf, upperBound } from "./lane.js";
import { Stacks } from "./stacks.js";

/** Duration of a span that has not ended, as written. */
const UNFINISHED = -1;

/**
 * Columns of all spans: slices, instants, stays on a CPU, states, events of the kernel, samples and
 * heap dumps.
 */
class Spans {
  constructor(columns, traceEnd) {
    this.begins = columns["span.begin"];
    this.names = columns["span.name"];
    this.categories = columns["span.category"];
    this.argSets = columns["span.args"];
    /** Number of the thread + 1, if the track does not say it. */
    this.threads = columns["span.thread"];
    this.count = this.begins.length;
    const written = columns["span.duration"];
    this.durations = new Float64Array(this.count);
    this.ends = new Float64Array(this.count);
    this.unfinished = new Uint8Array(this.count);
    for (let i = 0; i < this.count; i++) {
      const open = written[i] === UNFINISHED;
      const duration = open ? Math.max(0, traceEnd - this.begins[i]) : written[i];
      this.unfinished[i] = open ? 1 : 0;
      this.durations[i] = duration;
      this.ends[i] = this.begins[i] + duration;
    }
  }
}

/** A row of the timeline. */
class Track {
  constructor(index, description) {
    this.index = index;
    this.name = description.name;
    /**
     * `group`, `process`, `thread`, `slices`, `cpu`, `state` (of a thread), `states` (that a program
     * names), `counter`, `events` (of the kernel), `samples` (of call stacks) or `heap` (its dumps).
     */
    this.kind = description.kind;
    this.detail = description.detail ?? "";
    /** Unit of a counter, or source of samples. */
    this.unit = description.unit ?? "";
    this.parent = description.parent ?? -1;
    this.first = description.first ?? false;
    this.children = [];
    this.lanes = [];
    this.points = null;
    /** The track of its thread, for samples below one. */
    this.owner = -1;
  }

  /** Returns true if a track is in a set of tracks. Samples are in it with the row of their thread. */
  isIn(tracks) {
    return !tracks || tracks.has(this.index) || tracks.has(this.owner);
  }
}

const RANKS = [
  "group", "cpu", "events", "process", "states", "slices", "thread", "heap", "state", "samples", "counter",
];
const POINTS = new Set(["events", "samples", "heap"]);

/** Returns true if the spans of a track are single moments by their nature. */
export function hasPoints(track) {
  return POINTS.has(track.kind);
}

const NAMES = new Intl.Collator("en", { numeric: true });

/** Order of tracks below the same one: by kind, the main thread first, then by name. */
function byRank(a, b) {
  return RANKS.indexOf(a.kind) - RANKS.indexOf(b.kind) || b.first - a.first || NAMES.compare(a.name, b.name)
    || a.index - b.index;
}

/** Values of a counter: those of the trace from `first` to before `end`. */
class Points {
  constructor(times, values, first, end) {
    this.times = times;
    this.values = values;
    this.first = first;
    this.end = end;
    this.min = Infinity;
    this.max = -Infinity;
    for (let i = first; i < end; i++) {
      const value = values[i];
      if (value < this.min) this.min = value;
      if (value > this.max) this.max = value;
    }
  }

  /** Returns the lowest and highest value to show: 0 is one of them, unless all are far from it. */
  scale() {
    const isFar = this.min > 0 && this.max - this.min < this.max / 4;
    return { low: isFar ? this.min : Math.min(0, this.min), high: Math.max(0, this.max) };
  }

  /** Returns the position of the value that counts at `time`, or -1. */
  at(time) {
    const after = upperBound(this.times, this.first, this.end, time);
    return after > this.first ? after - 1 : -1;
  }

  /** Calls `draw(column, low, high, last)` with the values that count in each column. */
  columns(from, perColumn, width, draw) {
    let at = this.at(from);
    for (let column = 0; column < width; column++) {
      const border = from + (column + 1) * perColumn;
      const next = lowerBound(this.times, Math.max(at + 1, this.first), this.end, border);
      if (at < 0 && next === this.first) continue;
      let low = Infinity;
      let high = -Infinity;
      // Only a bounded number of the values of a column is looked at.
      const begin = Math.max(at, this.first);
      const step = Math.max(1, Math.floor((next - begin) / 64));
      for (let i = begin; i < next; i += step) {
        low = Math.min(low, this.values[i]);
        high = Math.max(high, this.values[i]);
      }
      at = next - 1;
      draw(column, low, high, this.values[at]);
    }
  }
}

/** The whole trace. */
export class Model {
  constructor(description, columns) {
    this.description = description;
    this.duration = description.duration;
    this.strings = columns.strings;
    this.notices = description.notices;
    this.processes = description.processes;
    this.threads = description.threads;
    this.spans = new Spans(columns, description.duration);
    this.tracks = description.tracks.map((track, index) => new Track(index, track));
    this.roots = [];
    for (const track of this.tracks) {
      (track.parent < 0 ? this.roots : this.tracks[track.parent].children).push(track);
    }
    for (const track of this.tracks) {
      const above = this.tracks[track.parent]?.kind;
      if (track.kind === "samples" && (above === "thread" || above === "state")) track.owner = track.parent;
    }
    this.roots.sort(byRank);
    for (const track of this.tracks) track.children.sort(byRank);
    this.#addLanes(columns["lane.track"], columns["lane.spans"], columns["lane.depth"]);
    this.#addPoints(columns);
    this.stacks = new Stacks(columns);
    this.#addSamples(columns["sample.stack"]);
    this.#addHeaps(description.heaps, columns);
    this.flowFrom = columns["flow.from"];
    this.flowTo = columns["flow.to"];
    this.#linkFlows();
    this.logs = {
      times: columns["log.time"],
      levels: columns["log.level"],
      threads: columns["log.thread"],
      tags: columns["log.tag"],
      texts: columns["log.text"],
    };
    this.argBytes = columns["args.bytes"];
    this.argEnds = columns["args.ends"];
  }

  #addLanes(tracks, counts, depths) {
    this.laneOfSpan = new Uint32Array(this.spans.count);
    this.lanes = [];
    let first = 0;
    for (let i = 0; i < counts.length; i++) {
      const lane = new Lane(this.spans, first, first + counts[i]);
      const track = this.tracks[tracks[i]];
      lane.track = track;
      // Its place on the track. The depth begins again at 0 if a track shows several as one.
      lane.place = track.lanes.length;
      lane.depth = depths[i];
      track.lanes.push(lane);
      this.lanes.push(lane);
      this.laneOfSpan.fill(i, lane.first, lane.end);
      first = lane.end;
    }
  }

  #addPoints(columns) {
    const tracks = columns["counter.track"];
    const counts = columns["counter.points"];
    let first = 0;
    for (let i = 0; i < tracks.length; i++) {
      const end = first + counts[i];
      this.tracks[tracks[i]].points = new Points(columns["point.time"], columns["point.value"], first, end);
      first = end;
    }
  }

  /** The column has the stacks of all samples, in the order of the lanes. */
  #addSamples(stacks) {
    this.sampleStacks = stacks;
    let first = 0;
    for (const lane of this.lanes) {
      if (lane.track.kind !== "samples") continue;
      lane.firstStack = first;
      first += lane.end - lane.first;
    }
    this.samples = first;
    const sampled = this.tracks.filter(({ kind }) => kind === "samples");
    /** What the samples come from, such as counters of the processor. */
    this.sampleSources = [...new Set(sampled.map(({ unit }) => unit))].sort();
    if (this.sampleSources.length < 2) return;
    // Rows with samples of several sources say which.
    for (const track of sampled) track.detail = [track.detail, track.unit].filter(Boolean).join(", ");
  }

  #addHeaps(heaps, columns) {
    let dump = 0;
    let end = 0;
    this.heaps = heaps.map(({ process, name, track, dumps }) => {
      const heap = {
        process, name, track, first: end, times: [], ends: [],
        stacks: columns["heap.stack"], counts: columns["heap.count"], sizes: columns["heap.size"],
      };
      for (const last = dump + dumps; dump < last; dump++) {
        end += columns["dump.changes"][dump];
        heap.times.push(columns["dump.time"][dump]);
        heap.ends.push(end);
      }
      return heap;
    });
  }

  /** Returns the call stack of a sample; 0 for other spans. */
  stackOf(span) {
    const lane = this.lane(span);
    return lane.firstStack === undefined ? 0 : this.sampleStacks[lane.firstStack + span - lane.first];
  }

  /** Returns the heap and the dump that a span shows, as numbers. */
  dumpOf(span) {
    const lane = this.lane(span);
    return { heap: this.heaps.findIndex(({ track }) => track === lane.track.index), dump: span - lane.first };
  }

  #linkFlows() {
    this.flowsOut = new Map();
    this.flowsIn = new Map();
    const add = (map, key, value) => {
      const list = map.get(key);
      if (list) list.push(value);
      else map.set(key, [value]);
    };
    for (let i = 0; i < this.flowFrom.length; i++) {
      add(this.flowsOut, this.flowFrom[i], this.flowTo[i]);
      add(this.flowsIn, this.flowTo[i], this.flowFrom[i]);
    }
  }

  /** Returns all spans in the order of their begins. */
  timeOrder() {
    this.order ??= orderOf(this.spans.begins);
    return this.order;
  }

  /** Returns the name of a span. */
  name(span) {
    return this.strings[this.spans.names[span]];
  }

  /** Returns the category of a span, or an empty text. */
  category(span) {
    return this.strings[this.spans.categories[span]];
  }

  /** Returns the lane of a span. */
  lane(span) {
    return this.lanes[this.laneOfSpan[span]];
  }

  /** Returns the span that directly contains another one, or -1. */
  parent(span) {
    const lane = this.lane(span);
    if (lane.depth === 0) return -1;
    const above = lane.track.lanes[lane.place - 1];
    return above.at(this.spans.begins[span]);
  }

  /** Returns the spans that a span directly contains: lane, first and end, or null. */
  children(span) {
    const lane = this.lane(span);
    const below = lane.track.lanes[lane.place + 1];
    if (!below || below.depth === 0) return null;
    const { begins, ends } = this.spans;
    const first = lowerBound(begins, below.first, below.end, begins[span]);
    let end = lowerBound(begins, first, below.end, ends[span]);
    // A span without duration may stand exactly at the end.
    while (end < below.end && begins[end] === ends[span] && ends[end] === ends[span]) end++;
    return first < end ? { lane: below, first, end } : null;
  }

  /** Returns the duration of a span without that of the spans in it. */
  selfTime(span) {
    const { durations } = this.spans;
    let time = durations[span];
    const children = this.children(span);
    if (children) for (let i = children.first; i < children.end; i++) time -= durations[i];
    return Math.max(0, time);
  }

  /** Returns the arguments of a span as pairs of name and text. */
  args(span) {
    const set = this.spans.argSets[span];
    if (set === 0) return [];
    const begin = set === 1 ? 0 : this.argEnds[set - 2];
    const reader = new Reader(this.argBytes.subarray(begin, this.argEnds[set - 1]));
    const args = [];
    while (reader.at < reader.bytes.length) {
      args.push([this.strings[reader.varint()], this.#argValue(reader)]);
    }
    return args;
  }

  #argValue(reader) {
    switch (reader.bytes[reader.at++]) {
      case 0:
        return this.strings[reader.varint()];
      case 1:
        return String(reader.signed());
      case 2:
        return String(reader.double());
      case 3:
        return reader.varint() ? "true" : "false";
      case 4:
        return String(reader.big(true));
      case 5:
        return String(reader.big(false));
      case 6:
        return `0x${reader.big(false).toString(16)}`;
      default:
        throw new Error("an argument of this page has an unknown form");
    }
  }

  /** Returns name and place of a thread by its number. */
  threadLabel(number) {
    const thread = this.threads[number];
    if (!thread) return "";
    const process = this.processes[thread.process];
    const name = thread.name || `thread ${thread.tid}`;
    return process?.name && process.name !== name ? `${name} (${process.name})` : name;
  }
}
