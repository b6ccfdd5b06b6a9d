// The panel's page for what is selected: one span, a point of a counter, or an area.

import { countersOfArea, hasSlices, sumsOfArea } from "./aggregate.js";
import { element, sortableTable } from "./dom.js";
import { hasPoints } from "./model.js";
import { heapPage, stackList } from "./profiles.js";
import * as time from "./time.js";

function facts(pairs) {
  const list = element("dl", { class: "facts" });
  for (const [name, value] of pairs) {
    if (value === "" || value === null || value === undefined) continue;
    list.append(element("dt", {}, name), element("dd", {}, value));
  }
  return list;
}

function spanButton(model, span, text, select) {
  return element("button", { class: "link", type: "button", onclick: () => select(span) },
    text ?? (model.name(span) || "(no name)"));
}

/** Returns the place of a track in words: its own name and those above it. */
export function placeOf(model, track) {
  const names = [];
  for (let at = track; at; at = model.tracks[at.parent]) names.push(at.name);
  return names.join(" · ");
}

/** Returns a sentence that says what a span is, for people who hear the page. */
export function spoken(model, span) {
  const { begins, durations, unfinished } = model.spans;
  const { track } = model.lane(span);
  const length = hasPoints(track) ? kindName(track).toLowerCase()
    : unfinished[span] ? "did not end" : time.duration(durations[span]);
  return `${model.name(span) || "No name"}, ${length}, at ${time.duration(begins[span])}, ${placeOf(model, track)}`;
}

/**
 * Returns the details of a span; `select(span)` follows a link to another one. `profile` has what is
 * chosen for the graphs of heaps.
 */
export function spanDetails(model, span, select, palette, profile) {
  const { begins, durations, unfinished, threads } = model.spans;
  const lane = model.lane(span);
  const slice = hasSlices(lane.track);
  const parents = [];
  if (slice) for (let at = model.parent(span); at >= 0; at = model.parent(at)) parents.unshift(at);
  const path = element("span", {});
  parents.forEach((parent) => path.append(spanButton(model, parent, null, select), " › "));
  path.append(model.name(span) || "(no name)");
  const children = slice ? model.children(span) : null;
  const main = facts([
    ["Name", path],
    ["Category", model.category(span)],
    ["Track", placeOf(model, lane.track)],
    ["Thread", threads[span] > 0 ? model.threadLabel(threads[span] - 1) : ""],
    [hasPoints(lane.track) ? "Time" : "Begins at", time.exact(begins[span])],
    ["Duration", hasPoints(lane.track) ? "" : unfinished[span] ? "did not end while the trace was recorded" : exactDuration(durations[span])],
    ["Self time", slice && children ? time.duration(model.selfTime(span)) : ""],
    ["Contains", children ? `${time.count(children.end - children.first)} slices directly` : ""],
  ]);
  const parts = [element("section", {}, element("h3", {}, kindName(lane.track)), main)];
  const args = model.args(span);
  if (args.length) {
    parts.push(element("section", {}, element("h3", {}, "Arguments"), facts(args)));
  }
  if (lane.track.kind === "samples") {
    parts.push(element("section", {}, element("h3", {}, "Call stack"), stackList(model, model.stackOf(span))));
  }
  if (lane.track.kind === "heap") {
    Object.assign(profile, model.dumpOf(span));
    parts.push(element("section", { class: "wide" }, heapPage(model, palette, profile, true)));
  }
  const flows = flowList(model, span, select);
  if (flows) parts.push(flows);
  return element("div", { class: "columns" }, ...parts);
}

function kindName(track) {
  return {
    cpu: "On this CPU", state: "Thread state", states: "State", events: "Kernel event",
    samples: "Sample of a call stack", heap: "Heap dump",
  }[track.kind] ?? "Slice";
}

function exactDuration(ns) {
  const short = time.duration(ns);
  const whole = `${time.count(ns)} ns`;
  return short === whole ? short : `${short} (${whole})`;
}

function flowList(model, span, select) {
  const { begins } = model.spans;
  const list = element("ul", {});
  const add = (others, word) => {
    for (const other of others ?? []) {
      list.append(element("li", {}, `${word} `, spanButton(model, other, null, select),
        ` (${time.duration(Math.abs(begins[other] - begins[span]))} ${word === "from" ? "before" : "after"}, `
        + `${placeOf(model, model.lane(other).track)})`));
    }
  };
  add(model.flowsIn.get(span), "from");
  add(model.flowsOut.get(span), "to");
  return list.children.length ? element("section", {}, element("h3", {}, "Flows"), list) : null;
}

/** Returns the statistics of an area; `showStacks()` opens the call stacks of its samples. */
export function areaDetails(model, area, select, showStacks) {
  const sums = sumsOfArea(model, area);
  const where = area.tracks ? `${area.tracks.size} tracks` : "all tracks";
  const parts = [
    element("p", {}, `${time.duration(area.to - area.from)} from ${time.exact(area.from)}, ${where}. `
      + "Durations are those inside the area."),
  ];
  const samples = sums.filter(({ kind }) => kind === "samples").reduce((sum, { count }) => sum + count, 0);
  if (samples) {
    parts.push(element("p", {}, element("button", { type: "button", class: "stacks", onclick: showStacks },
      `Show the call stacks of ${time.count(samples)} samples`)));
  }
  const nameOf = (sum) => model.strings[sum.name] || "(no name)";
  const table = (title, rows, hasDurations = true) => {
    if (!rows.length) return;
    parts.push(element("h3", {}, title), sortableTable({
      label: title,
      rows,
      onpick: (sum) => () => select(sum.longest),
      columns: [
        { name: "Name", text: nameOf },
        { name: "Count", number: true, text: (sum) => time.count(sum.count), key: (sum) => sum.count },
        ...(hasDurations ? [{ name: "Total", number: true, text: (sum) => time.duration(sum.total), key: (sum) => sum.total },
        {
          name: "Mean", number: true,
          text: (sum) => time.duration(sum.total / sum.count), key: (sum) => sum.total / sum.count,
        }] : []),
      ],
    }));
  };
  table("Slices", sums.filter((sum) => sum.kind === "slice"));
  table("Threads on CPUs", sums.filter((sum) => sum.kind === "cpu"));
  table("States of threads", sums.filter((sum) => sum.kind === "state"));
  table("States", sums.filter((sum) => sum.kind === "states"));
  table("Events of the kernel", sums.filter((sum) => sum.kind === "events"), false);
  const counters = countersOfArea(model, area);
  if (counters.length) {
    parts.push(element("h3", {}, "Counters"), sortableTable({
      label: "Counters",
      rows: counters,
      columns: [
        { name: "Counter", text: ({ track }) => placeOf(model, track) },
        ...["low", "mean", "high"].map((key) => ({
          name: { low: "Lowest", mean: "Mean", high: "Highest" }[key], number: true,
          text: (row) => time.quantity(row[key], row.track.unit), key: (row) => row[key],
        })),
      ],
    }));
  }
  if (parts.length === 1) parts.push(element("p", {}, "Nothing was recorded here."));
  return element("div", {}, ...parts);
}
