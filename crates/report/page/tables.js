// The panel's lists: slices by name, processes and threads, log messages, facts and losses.

import { element, sortableTable } from "./dom.js";
import * as time from "./time.js";

/** Returns the table of slices by name. */
export function topSlices(model, sums, select) {
  if (!sums.length) return element("p", {}, "This trace has no slices.");
  return sortableTable({
    label: "Slices by name",
    rows: sums,
    onpick: (sum) => () => select(sum.longest),
    columns: [
      { name: "Name (opens the longest)", text: (sum) => model.strings[sum.name] || "(no name)" },
      { name: "Count", number: true, text: (sum) => time.count(sum.count), key: (sum) => sum.count },
      { name: "Total", number: true, text: (sum) => time.duration(sum.total), key: (sum) => sum.total },
      { name: "Self", number: true, text: (sum) => time.duration(sum.self), key: (sum) => sum.self },
      {
        name: "Mean", number: true,
        text: (sum) => time.duration(sum.total / sum.count), key: (sum) => sum.total / sum.count,
      },
      {
        name: "Longest", number: true,
        text: (sum) => time.duration(model.spans.durations[sum.longest]),
        key: (sum) => model.spans.durations[sum.longest],
      },
    ],
  });
}

/** Returns the table of kernel events by name. */
export function eventTable(model, sums, select) {
  const perSecond = ({ count }) => (model.duration > 0 ? count / (model.duration / 1e9) : 0);
  const table = sortableTable({
    label: "Events of the kernel by name",
    rows: sums,
    onpick: (sum) => () => select(sum.first),
    columns: [
      { name: "Name (opens the first)", text: (sum) => model.strings[sum.name] || "(no name)" },
      { name: "Count", number: true, text: (sum) => time.count(sum.count), key: (sum) => sum.count },
      { name: "Per second", number: true, text: (sum) => time.count(Math.round(perSecond(sum))), key: perSecond },
    ],
  });
  const leftOut = model.description.leftOutEvents;
  return leftOut ? element("div", {}, element("p", {}, `${leftOut}. The notes above tell which.`), table) : table;
}

/** Returns the table of threads with their processes. */
export function threadTable(model, showTrack) {
  const rows = model.threads.map((thread) => ({ thread, process: model.processes[thread.process] }));
  if (!rows.length) return element("p", {}, "This trace names no processes.");
  return sortableTable({
    label: "Processes and threads",
    rows,
    onpick: ({ thread }) => (thread.track >= 0 ? () => showTrack(model.tracks[thread.track]) : null),
    columns: [
      { name: "Thread", text: ({ thread }) => thread.name || "(no name)" },
      { name: "tid", number: true, text: ({ thread }) => String(thread.tid), key: ({ thread }) => thread.tid },
      { name: "Process", text: ({ process }) => process?.name ?? "" },
      {
        name: "pid", number: true, text: ({ process }) => String(process?.pid ?? ""),
        key: ({ process }) => process?.pid ?? -1,
      },
      {
        name: "On CPUs", number: true,
        text: ({ thread }) => (thread.cpuTime ? time.duration(thread.cpuTime) : ""),
        key: ({ thread }) => thread.cpuTime ?? 0,
      },
      { name: "Command line", text: ({ process }) => process?.cmdline ?? "" },
    ],
  });
}

const LEVELS = ["", "", "verbose", "debug", "info", "warning", "error", "fatal"];

/** Returns the table of log messages; `showTime` moves the timeline. */
export function logTable(model, showTime) {
  const { times, levels, threads, tags, texts } = model.logs;
  if (!times.length) return element("p", {}, "This trace has no log messages.");
  const rows = Array.from(times, (_, i) => i);
  return sortableTable({
    label: "Log messages",
    rows,
    onpick: (i) => () => showTime(times[i]),
    columns: [
      { name: "Time", text: (i) => time.exact(times[i]), key: (i) => times[i] },
      { name: "Level", text: (i) => LEVELS[levels[i]] ?? String(levels[i]), key: (i) => levels[i] },
      { name: "Thread", text: (i) => (threads[i] ? model.threadLabel(threads[i] - 1) : "") },
      { name: "Tag", text: (i) => model.strings[tags[i]] },
      { name: "Message", text: (i) => model.strings[texts[i]] },
    ],
  });
}

/** Returns the list of losses and errors, or null if there are none. */
export function noticeList(model) {
  if (!model.notices.length) return null;
  return element("ul", {}, ...model.notices.map(({ level, title, text, remedy }) =>
    element("li", { class: level }, element("strong", {}, title),
      text ? element("span", {}, ` ${text}`) : null,
      remedy ? element("p", { class: "remedy" }, ...remedyParts(remedy)) : null)));
}

/** Shows the parts of a remedy between backquotes as code. */
function remedyParts(text) {
  return text.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part));
}

/** Returns the facts of the trace. */
export function traceFacts(model) {
  const list = element("dl", { class: "facts" });
  for (const { name, value } of model.description.facts) {
    list.append(element("dt", {}, name), element("dd", {}, value));
  }
  return list;
}
