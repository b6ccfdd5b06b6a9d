// The page's state, and what its parts ask of each other.

import * as aggregate from "./aggregate.js";
import { Palette } from "./colors.js";
import { areaDetails, placeOf, spanDetails, spoken } from "./details.js";
import { element } from "./dom.js";
import { flameGraph } from "./flame.js";
import { KEYS, listen } from "./input.js";
import { Labels } from "./labels.js";
import { Layout } from "./layout.js";
import * as link from "./link.js";
import { hasPoints } from "./model.js";
import { Overview, Painter, paintRuler, themeOf } from "./paint.js";
import { heapPage, samplesPage } from "./profiles.js";
import { Search } from "./search.js";
import { eventTable, logTable, noticeList, threadTable, topSlices, traceFacts } from "./tables.js";
import * as time from "./time.js";
import { Viewport } from "./viewport.js";

const byId = (id) => document.getElementById(id);

/** Pages of the panel that are about the area, if one is marked. */
const AREA_TABS = new Set(["flame", "stacks"]);
const TABS = [
  { id: "selection", name: "Selection" },
  { id: "flame", name: "Flame graph" },
  { id: "slices", name: "Top slices" },
  { id: "stacks", name: "Call stacks", has: (model) => model.samples > 0 },
  { id: "heap", name: "Heap", has: (model) => model.heaps.length > 0 },
  { id: "events", name: "Kernel events", has: (model) => model.tracks.some(({ kind }) => kind === "events") },
  { id: "threads", name: "Threads" },
  { id: "log", name: "Log" },
  { id: "trace", name: "Trace" },
];

export class App {
  constructor(model) {
    this.model = model;
    this.layout = new Layout(model);
    this.palette = new Palette(model.strings);
    this.search = new Search(model);
    const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.view = new Viewport(model.duration, () => calm.matches);
    this.scroll = 0;
    this.selected = -1;
    this.selectedTrack = null;
    this.area = null;
    this.flows = [];
    this.tab = "selection";
    this.tabs = TABS.filter(({ has }) => !has || has(model));
    /** What is chosen for the graphs of call stacks. */
    this.profile = { grouping: "thread", source: null, heap: 0, dump: -1, measure: "size" };
    this.made = new Map();
    this.frame = 0;
    this.surface = byId("surface");
    this.painter = new Painter(byId("canvas"), model, this.palette);
    this.overview = new Overview(byId("overview"), model);
    this.labels = new Labels(byId("labels"), this);
    this.#header();
    this.#tabs();
    listen(this, this.surface);
    this.#overviewInput();
    new ResizeObserver(() => this.redraw()).observe(this.surface);
    for (const query of ["(prefers-color-scheme: dark)", "print"]) {
      window.matchMedia(query).addEventListener("change", () => this.#newTheme());
    }
    window.addEventListener("hashchange", () => this.#follow(location.hash));
    this.#newTheme();
    this.#follow(location.hash);
    this.showTab(this.tab);
    // The first search needs the spans in the order of time.
    setTimeout(() => model.timeOrder(), 500);
  }

  // Header and panel.

  #header() {
    const { model } = this;
    document.title = `${model.description.title} – Esatto report`;
    byId("title").textContent = model.description.title;
    byId("facts").textContent = model.description.summary;
    const notices = noticeList(model);
    if (notices) {
      const grave = model.notices.some(({ level }) => level === "error" || level === "loss");
      byId("notices-title").textContent = grave ? "Losses and errors" : "Notes";
      byId("notices-list").replaceWith(notices);
      byId("notices").hidden = false;
      byId("notices").open = grave;
      byId("notices").classList.toggle("calm", !grave);
    }
    const input = byId("search");
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.find(input.value), 60);
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        clearTimeout(timer);
        if (this.search.text !== input.value) this.find(input.value);
        this.nextMatch(!event.shiftKey);
      } else if (event.key === "Escape") {
        input.value = "";
        this.find("");
        input.blur();
      }
    });
    byId("next").addEventListener("click", () => this.nextMatch(true));
    byId("previous").addEventListener("click", () => this.nextMatch(false));
    byId("whole").addEventListener("click", () => this.#whole());
    byId("theme").addEventListener("click", () => this.#switchTheme());
    byId("help").addEventListener("click", () => this.help());
    byId("help-close").addEventListener("click", () => byId("help-page").close());
    byId("keys").append(...KEYS.map(({ keys, text }) =>
      element("tr", {}, element("td", {}, ...keys.flatMap((key, i) =>
        [i ? " or " : "", element("kbd", {}, KEY_NAMES[key] ?? key.toUpperCase())])), element("td", {}, text))));
  }

  #tabs() {
    const list = byId("tabs");
    for (const { id, name } of this.tabs) {
      const button = element("button", {
        type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "content", onclick: () => this.showTab(id),
      }, name);
      list.append(button);
    }
    list.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      const at = this.tabs.findIndex(({ id }) => id === this.tab);
      const next = this.tabs[(at + step + this.tabs.length) % this.tabs.length].id;
      this.showTab(next);
      byId(`tab-${next}`).focus();
    });
  }

  /** Opens a page of the panel. */
  showTab(tab) {
    this.tab = this.tabs.some(({ id }) => id === tab) ? tab : "selection";
    for (const { id } of this.tabs) {
      const button = byId(`tab-${id}`);
      button.setAttribute("aria-selected", String(id === this.tab));
      button.tabIndex = id === this.tab ? 0 : -1;
      if (id === this.tab) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    const content = byId("content");
    content.setAttribute("aria-labelledby", `tab-${this.tab}`);
    content.replaceChildren(this.#page(this.tab));
    content.scrollTop = 0;
    this.#remember();
  }

  #page(tab) {
    const select = (span) => this.select(span, true);
    const once = (make) => {
      if (!this.made.has(tab)) this.made.set(tab, make());
      return this.made.get(tab);
    };
    switch (tab) {
      case "flame":
        return this.#flame();
      case "slices":
        return once(() => topSlices(this.model, this.sums(), select));
      case "stacks":
        return samplesPage(this.model, this.palette, this.area, this.profile);
      case "heap":
        return heapPage(this.model, this.palette, this.profile);
      case "events":
        return once(() => eventTable(this.model, aggregate.eventsByName(this.model), select));
      case "threads":
        return once(() => threadTable(this.model, (track) => this.showTrack(track)));
      case "log":
        return once(() => logTable(this.model, (at) => this.showTime(at)));
      case "trace":
        return once(() => traceFacts(this.model));
      default:
        if (this.selected >= 0) return spanDetails(this.model, this.selected, select, this.palette, this.profile);
        if (this.area) return areaDetails(this.model, this.area, select, () => this.showTab("stacks"));
        return element("p", { class: "hint" },
          "Click a slice or a mark to see its details. Drag over the timeline to sum up an area. Press ? for the keys.");
    }
  }

  /** Returns the sums of slices by name. */
  sums() {
    this.#parents();
    this.nameSums ??= aggregate.sumsByName(this.model, this.selfTimes);
    return this.nameSums;
  }

  #parents() {
    if (this.parents) return;
    this.parents = aggregate.parentsOf(this.model);
    this.selfTimes = aggregate.selfTimesOf(this.model, this.parents);
  }

  #flame() {
    this.#parents();
    const tree = aggregate.flameTree(this.model, this.parents, this.selfTimes, this.area);
    if (!tree.children.length) return element("p", {}, "There are no slices here.");
    const nameOf = ({ name }) => (name < 0 ? "all" : this.model.strings[name] || "(no name)");
    return flameGraph(tree, {
      nameOf,
      describe: (node) => `${nameOf(node)}: ${time.duration(node.total)} in total, `
        + `${time.duration(node.self)} self, ${time.count(node.count)} times`,
      paintOf: ({ name }) => (name < 0 ? null : this.palette.paint(name, "slices")),
      onpick: ({ name }) => name >= 0 && this.#highlight(name),
      hint: "Click a slice to see it alone. The width is the total time.",
    });
  }

  #highlight(name) {
    byId("search").value = this.model.strings[name];
    this.find(this.model.strings[name]);
  }

  // What is selected.

  /** Selects a span; with `reveal`, the timeline moves to it. */
  select(span, reveal = false) {
    this.selected = span;
    this.area = null;
    this.flows = span >= 0 ? aggregate.flowsAround(this.model, span) : [];
    if (span >= 0) {
      const lane = this.model.lane(span);
      this.selectedTrack = lane.track;
      if (reveal) {
        const { begins, ends } = this.model.spans;
        this.view.reveal(begins[span], ends[span], performance.now());
        this.#revealLane(lane);
      }
      this.say(spoken(this.model, span));
    }
    // Without a selection, the pages of the area show the whole trace.
    this.showTab(span < 0 && AREA_TABS.has(this.tab) ? this.tab : "selection");
    this.redraw();
  }

  #revealLane(lane) {
    this.layout.show(lane.track);
    const middle = this.layout.middleOfLane(lane);
    const room = this.surface.clientHeight - this.layout.pinnedHeight;
    if (middle < this.scroll + 20 || middle > this.scroll + room - 20) this.scrollTo(middle - room / 2);
  }

  /** Marks an area; `done` is false while the pointer still moves. */
  markArea(from, to, top, bottom, done) {
    byId("tip").hidden = true;
    const tracks = top === null ? null : this.#tracksBetween(Math.min(top, bottom), Math.max(top, bottom));
    this.selected = -1;
    this.flows = [];
    this.area = { from, to, tracks };
    if (done) {
      this.say(`Area of ${time.duration(to - from)}`);
      this.showTab(AREA_TABS.has(this.tab) ? this.tab : "selection");
    }
    this.redraw();
  }

  #tracksBetween(top, bottom) {
    const tracks = new Set();
    const addAll = (track) => {
      tracks.add(track.index);
      track.children.forEach(addAll);
    };
    for (const { row, y } of this.layout.visible(this.scroll, this.surface.clientHeight)) {
      if (y + row.height <= top || y > bottom) continue;
      if (row.open) tracks.add(row.track.index);
      else addAll(row.track);
    }
    return tracks;
  }

  /** Marks the stretch of the selected span as an area on all tracks. */
  markSelection() {
    if (this.selected < 0) return;
    const { begins, ends } = this.model.spans;
    this.markArea(begins[this.selected], ends[this.selected], null, null, true);
  }

  clear() {
    this.select(-1);
    this.selectedTrack = null;
    this.labels.update();
  }

  /** Shows the selection, or the whole trace if it is shown already or there is none. */
  frameSelection() {
    const { begins, ends } = this.model.spans;
    const range = this.selected >= 0 ? [begins[this.selected], ends[this.selected]]
      : this.area ? [this.area.from, this.area.to] : null;
    if (!range || (this.framed && this.framed[0] === range[0] && this.framed[1] === range[1])) {
      this.framed = null;
      this.#whole();
      return;
    }
    this.view.frame(...range, performance.now());
    this.framed = range;
    this.redraw();
  }

  #whole() {
    this.view.moveTo(0, this.model.duration, performance.now());
    this.redraw();
  }

  neighbour(step) {
    if (this.selected < 0) {
      this.pan(step * 0.12);
      return;
    }
    const lane = this.model.lane(this.selected);
    const next = this.selected + step;
    if (next >= lane.first && next < lane.end) this.select(next, true);
  }

  vertical(step) {
    if (this.selected < 0) {
      this.scrollBy(step * 60);
      return;
    }
    const next = step < 0 ? this.model.parent(this.selected) : (this.model.children(this.selected)?.first ?? -1);
    if (next >= 0) this.select(next, true);
  }

  followFlow(forward) {
    const map = forward ? this.model.flowsOut : this.model.flowsIn;
    const next = this.selected >= 0 ? map.get(this.selected)?.[0] : undefined;
    if (next !== undefined) this.select(next, true);
  }

  pinSelected() {
    if (this.selectedTrack) this.togglePin(this.selectedTrack);
  }

  togglePin(track) {
    this.layout.togglePin(track);
    this.redraw();
    this.#remember();
  }

  toggle(track) {
    this.layout.toggle(track);
    this.scrollBy(0);
    this.redraw();
  }

  showTrack(track) {
    this.layout.show(track);
    this.selectedTrack = track;
    const row = this.layout.rowOf.get(track.index);
    if (row) this.scrollTo(row.top);
    this.redraw();
  }

  showTime(at) {
    this.view.moveTo(at - this.view.span / 2, at + this.view.span / 2, performance.now());
    this.redraw();
  }

  // Pointer.

  /** Returns the span at a place of the timeline, or -1, and its row. */
  #hit({ x, y, width }) {
    const found = this.layout.rowAt(y, this.scroll);
    if (!found) return { span: -1, row: null };
    const lane = this.layout.laneAt(found.row, y - found.y);
    const perPixel = this.view.span / width;
    const at = this.view.from + x * perPixel;
    if (!lane) return { span: -1, row: found.row, at };
    let span = lane.at(at, perPixel * 5);
    if (span >= 0 && this.model.spans.ends[span] < at - perPixel * 6) span = -1;
    return { span, row: found.row, at };
  }

  click(place) {
    const { span, row } = this.#hit(place);
    if (span >= 0) {
      this.select(span);
      return;
    }
    if (row && (row.track.kind === "group" || row.track.kind === "process")) this.toggle(row.track);
    this.select(-1);
    this.selectedTrack = row?.track ?? null;
    this.redraw();
  }

  hover(place) {
    const tip = byId("tip");
    const { span, row, at } = place ? this.#hit(place) : { span: -1, row: null };
    let text = "";
    if (span >= 0 && hasPoints(row.track)) {
      const thread = this.model.spans.threads[span];
      text = `${this.model.name(span) || "(no name)"}${thread ? ` · ${this.model.threadLabel(thread - 1)}` : ""}`;
    } else if (span >= 0) {
      const { durations, unfinished } = this.model.spans;
      const length = unfinished[span] ? "did not end" : durations[span] ? time.duration(durations[span]) : "instant";
      text = `${this.model.name(span) || "(no name)"} · ${length}`;
    } else if (row?.track.points) {
      const point = row.track.points.at(at);
      if (point >= 0) text = `${row.track.name}: ${time.quantity(row.track.points.values[point], row.track.unit)}`;
    }
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const left = Math.min(place.x + 12, place.width - tip.offsetWidth - 4);
    tip.style.transform = `translate(${Math.max(0, left)}px, ${place.y + 16}px)`;
  }

  #overviewInput() {
    const canvas = byId("overview");
    const go = (event) => {
      const box = canvas.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * this.model.duration;
      this.view.set(at - this.view.span / 2, at + this.view.span / 2);
      this.changedView();
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      go(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) go(event);
    });
  }

  // Search.

  find(text) {
    this.search.run(text);
    this.#matchText();
    this.redraw();
  }

  #matchText() {
    const { text, found, at } = this.search;
    byId("matches").textContent = !text ? ""
      : found.length === 0 ? "no match"
        : at < 0 ? `${time.count(found.length)} found` : `${time.count(at + 1)} of ${time.count(found.length)}`;
  }

  nextMatch(forward) {
    const from = this.selected >= 0 ? this.model.spans.begins[this.selected] : this.view.from;
    const span = this.search.step(forward, from);
    this.#matchText();
    if (span >= 0) this.select(span, true);
  }

  focusSearch() {
    byId("search").focus();
    byId("search").select();
  }

  help() {
    byId("help-page").showModal();
  }

  /** Tells people who hear the page what has happened. */
  say(text) {
    byId("said").textContent = text;
  }

  // View.

  zoom(factor) {
    this.view.zoom(factor);
    this.changedView();
  }

  pan(part) {
    this.view.pan(part);
    this.changedView();
  }

  scrollBy(pixels) {
    this.scrollTo(this.scroll + pixels);
  }

  scrollTo(place) {
    const room = Math.max(0, this.layout.height + this.layout.pinnedHeight - this.surface.clientHeight + 8);
    this.scroll = Math.min(Math.max(0, place), room);
    this.redraw();
  }

  changedView() {
    this.framed = null;
    this.redraw();
  }

  /** Asks for a new frame. */
  redraw() {
    if (!this.frame) this.frame = requestAnimationFrame((now) => this.#paint(now));
  }

  #paint(now) {
    this.frame = 0;
    const more = this.view.advance(now);
    const { view, layout, scroll, selected, area, flows, theme } = this;
    const search = this.search.text ? this.search : null;
    this.painter.paint({ view, layout, scroll, selected, area, flows, theme, search });
    paintRuler(byId("ruler"), view, theme);
    this.overview.paint(view, theme);
    this.labels.update();
    byId("range").textContent = `${time.duration(Math.max(0, view.from))} to ${time.duration(view.to)}`;
    if (more) this.redraw();
    else this.#remember();
  }

  #newTheme() {
    this.theme = themeOf(document.documentElement);
    this.redraw();
  }

  #switchTheme() {
    const root = document.documentElement;
    const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const dark = (root.dataset.theme ?? system) === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    this.#newTheme();
  }

  // Links.

  #remember() {
    clearTimeout(this.linkTimer);
    this.linkTimer = setTimeout(() => {
      const { view, selected, layout, tab } = this;
      this.link = link.encode({
        from: view.from, to: view.to, span: selected, pinned: layout.pinned, tab: tab === "selection" ? "" : tab,
      });
      history.replaceState(null, "", this.link);
    }, 250);
  }

  #follow(text) {
    if (!text || text === this.link) return;
    const { range, span, pinned, tab } = link.decode(text, {
      spans: this.model.spans.count, tracks: this.model.tracks.length,
    });
    if (range) this.view.set(...range);
    this.layout.pinned = pinned;
    this.layout.update();
    if (span !== null) {
      this.select(span);
      this.#revealLane(this.model.lane(span));
    }
    if (tab) this.showTab(tab);
    this.redraw();
  }

  /** Returns the place of a track in words. */
  place(track) {
    return placeOf(this.model, track);
  }
}

const KEY_NAMES = {
  ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc", N: "Shift+N",
};
