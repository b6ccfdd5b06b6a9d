// Names of the tracks, left of the timeline, as a tree that keyboards and screen readers can use.

import { element } from "./dom.js";
import { isGroup } from "./layout.js";

export class Labels {
  constructor(holder, app) {
    this.holder = holder;
    this.app = app;
    this.items = new Map();
    this.focused = null;
    holder.addEventListener("keydown", (event) => this.#key(event));
    holder.addEventListener("wheel", (event) => {
      event.preventDefault();
      app.scrollBy(event.deltaY * (event.deltaMode === 1 ? 16 : 1));
    }, { passive: false });
  }

  /** Shows the labels of the visible rows. */
  update() {
    const { app, holder } = this;
    const rows = app.layout.visible(app.scroll, app.surface.clientHeight);
    const seen = new Set();
    for (const { row, y } of rows) {
      const key = `${row.pinned ? "p" : ""}${row.track.index}`;
      seen.add(key);
      let item = this.items.get(key);
      if (!item) {
        item = this.#item(row);
        this.items.set(key, item);
        holder.append(item);
      }
      const selected = app.selectedTrack === row.track;
      this.#set(item, row, y, selected);
    }
    for (const [key, item] of this.items) {
      if (!seen.has(key) && item !== document.activeElement) {
        item.remove();
        this.items.delete(key);
      }
    }
    const items = [...this.items.values()];
    if (items.length && !items.some((item) => item.tabIndex === 0)) items[0].tabIndex = 0;
  }

  #item(row) {
    const { app } = this;
    const { track } = row;
    const toggles = isGroup(track) || track.lanes.length > 1;
    const pin = element("button", { type: "button", class: "pin", tabindex: -1, title: "Pin to the top (P)",
      "aria-label": "Pin to the top", onclick: (event) => { event.stopPropagation(); app.togglePin(track); } }, "↑");
    const item = element("div", {
      role: "treeitem", tabindex: -1, class: `label ${track.kind}${row.pinned ? " pinned" : ""}`,
      title: track.detail ? `${track.name} (${track.detail})` : track.name,
      onclick: () => {
        app.selectedTrack = track;
        if (toggles) app.toggle(track);
        else app.redraw();
      },
    }, element("span", { class: "name" }, track.name), element("span", { class: "detail" }, track.detail), pin);
    item.track = track;
    item.style.paddingLeft = `${6 + row.level * 12}px`;
    item.setAttribute("aria-level", String(row.level + 1));
    return item;
  }

  #set(item, row, y, selected) {
    const state = `${y}/${row.height}/${row.open}/${selected}/${this.app.layout.pinned.includes(row.track.index)}`;
    if (item.state === state) return;
    item.state = state;
    item.style.transform = `translateY(${y}px)`;
    item.style.height = `${row.height}px`;
    item.classList.toggle("selected", selected);
    item.setAttribute("aria-selected", String(selected));
    const toggles = isGroup(row.track) || row.track.lanes.length > 1;
    if (toggles) item.setAttribute("aria-expanded", String(row.open));
    item.querySelector(".pin").setAttribute("aria-pressed", String(this.app.layout.pinned.includes(row.track.index)));
  }

  #key(event) {
    const { app } = this;
    const track = event.target.track;
    if (!track) return;
    const rows = app.layout.rows;
    const at = rows.findIndex((row) => row.track === track);
    const go = (row) => {
      if (!row) return;
      app.selectedTrack = row.track;
      const room = app.surface.clientHeight - app.layout.pinnedHeight;
      if (row.top < app.scroll) app.scrollTo(row.top);
      else if (row.top + row.height > app.scroll + room) app.scrollTo(row.top + row.height - room);
      this.update();
      const item = this.items.get(String(row.track.index));
      for (const other of this.items.values()) other.tabIndex = -1;
      if (item) {
        item.tabIndex = 0;
        item.focus();
      }
      app.say(app.place(row.track));
    };
    const open = !app.layout.closed.has(track.index);
    const actions = {
      ArrowDown: () => go(rows[at + 1]),
      ArrowUp: () => go(rows[at - 1]),
      Home: () => go(rows[0]),
      End: () => go(rows[rows.length - 1]),
      ArrowRight: () => (open ? go(rows[at + 1]) : app.toggle(track)),
      ArrowLeft: () => (open && isGroup(track) ? app.toggle(track) : go(app.layout.rowOf.get(track.parent))),
      Enter: () => this.#enter(track),
      " ": () => app.toggle(track),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  /** Selects the first visible span of a track. */
  #enter(track) {
    const { app } = this;
    const lane = track.lanes[0];
    if (!lane) {
      app.toggle(track);
      return;
    }
    const span = lane.firstEndingAfter(app.view.from);
    app.select(span < lane.end ? span : lane.end - 1, true);
    app.surface.focus();
  }
}
