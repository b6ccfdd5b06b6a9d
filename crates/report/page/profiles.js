// The panel's pages with call stacks: those of samples, and those of heap profiles.

import { element } from "./dom.js";
import { flameGraph } from "./flame.js";
import { GROUPINGS, MEASURES, fileName, heapWeights, samplesOf, stackTree } from "./stacks.js";
import * as time from "./time.js";

/** Functions of a stack that are listed at first. */
const MOST_FRAMES = 100;

/** Returns the list of the functions of a stack, the innermost first. */
export function stackList(model, stack) {
  const frames = model.stacks.frames(stack);
  if (!frames.length) return element("p", { class: "hint" }, "This sample has no call stack.");
  const list = element("ol", { class: "stack", "aria-label": "Functions, the innermost first" });
  const show = (from, to) => {
    for (const { name, file } of frames.slice(from, to)) {
      const path = model.strings[file];
      list.append(element("li", { title: path || null }, model.strings[name],
        path ? element("span", { class: "file" }, ` ${fileName(path)}`) : null));
    }
  };
  show(0, MOST_FRAMES);
  if (frames.length <= MOST_FRAMES) return list;
  const more = element("button", { type: "button", onclick: () => {
    show(MOST_FRAMES, frames.length);
    more.remove();
  } }, `Show ${time.count(frames.length - MOST_FRAMES)} more callers`);
  return element("div", {}, list, more);
}

function chooser(label, choices, chosen, onchoose) {
  const select = element("select", { onchange: () => onchoose(select.value) },
    ...choices.map(({ id, name }) => element("option", { value: id, selected: String(id) === String(chosen) }, name)));
  return element("label", { class: "chooser" }, `${label} `, select);
}

/** Returns a flame graph of call stacks; `valueOf(number)` is the text of a weight. */
function stackGraph(model, palette, tree, hint, valueOf) {
  const nameOf = (node) => (node.name < 0 ? node.label : model.strings[node.name] || "(no name)");
  return flameGraph(tree, {
    nameOf,
    describe: (node, top) => {
      const part = top.total > 0 ? ` (${((node.total / top.total) * 100).toFixed(1)} %)` : "";
      const file = node.file ? `, in ${model.strings[node.file]}` : "";
      return `${nameOf(node)}: ${valueOf(node.total)}${part}, ${valueOf(node.self)} by itself${file}`;
    },
    paintOf: (node) => (node.name < 0 ? null : palette.paint(node.name, "slices")),
    hint,
  });
}

/** Returns the flame graph of the samples in an area, or of the whole trace. */
export function samplesPage(model, palette, area, state) {
  const holder = element("div");
  const sources = [null, ...model.sampleSources].map((source, id) =>
    ({ id, source, name: source === null ? "all sources" : source || "unknown" }));
  const draw = () => {
    const { groups, number } = samplesOf(model, area, state.grouping, state.source);
    const where = area ? `in the area of ${time.duration(area.to - area.from)}` : "in the whole trace";
    const head = element("p", { class: "choosers" },
      element("span", {}, `${time.count(number)} samples ${where}`),
      chooser("shown", GROUPINGS, state.grouping, (grouping) => {
        state.grouping = grouping;
        draw();
        holder.querySelector("select").focus();
      }),
      sources.length > 2 ? chooser("by", sources, sources.findIndex(({ source }) => source === state.source), (id) => {
        ({ source: state.source } = sources[id]);
        draw();
        holder.querySelectorAll("select")[1].focus();
      }) : null);
    const graph = number === 0
      ? element("p", { class: "hint" }, "Drag over other rows or a longer time, or press Escape for the whole trace.")
      : stackGraph(model, palette, stackTree(model.stacks, groups),
        "Click a function to see it alone. The width is the number of samples.", (value) => time.count(value));
    holder.replaceChildren(head, graph);
  };
  draw();
  return holder;
}

/** Returns the flame graph of a heap at a dump; `state` has what is chosen. */
export function heapPage(model, palette, state, fixed = false) {
  const holder = element("div");
  const draw = (focus) => {
    const heap = model.heaps[state.heap];
    if (state.dump < 0 || state.dump >= heap.times.length) state.dump = heap.times.length - 1;
    const measure = MEASURES.find(({ id }) => id === state.measure);
    const change = (key) => (value) => {
      state[key] = key === "measure" ? value : Number(value);
      if (key === "heap") state.dump = -1;
      draw(key);
    };
    const labelOf = ({ process, name }) => {
      const { name: own, pid } = model.processes[process] ?? {};
      return `${fileName(own ?? "") || "process"} ${pid ?? ""} ${name}`.trim();
    };
    const choosers = {};
    if (!fixed) {
      choosers.heap = chooser("Heap", model.heaps.map((one, id) => ({ id, name: labelOf(one) })), state.heap,
        change("heap"));
      choosers.dump = chooser("dump", heap.times.map((at, id) => ({ id, name: `${id + 1}: ${time.exact(at)}` })),
        state.dump, change("dump"));
    }
    choosers.measure = chooser("width", MEASURES, state.measure, change("measure"));
    const weights = heapWeights(heap, state.dump, state.measure);
    const tree = stackTree(model.stacks, [{ labels: [labelOf(heap)], weights }]);
    const valueOf = (value) => time.quantity(value, measure.unit);
    holder.replaceChildren(
      element("p", { class: "choosers" }, ...Object.values(choosers)),
      tree.total > 0
        ? stackGraph(model, palette, tree, `Click a function to see it alone. The width: ${measure.name}.`, valueOf)
        : element("p", { class: "hint" }, "Nothing was in use at this dump."));
    if (focus) choosers[focus].querySelector("select").focus();
  };
  draw(null);
  return holder;
}
