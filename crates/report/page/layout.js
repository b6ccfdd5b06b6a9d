// Rows of the timeline: which tracks are visible, where, and how high. All sizes are CSS pixels.

/** Height of a lane of spans. */
export const LANE = 18;
/** Space above and below the content of a row. */
const PAD = 3;
const HEADER = 24;
const STATE = 12;
const COUNTER = 36;

/** Height of a track's row if it is open or closed. */
export function rowHeight(track, open) {
  switch (track.kind) {
    case "group":
    case "process":
      return HEADER + 2 * PAD;
    case "counter":
      return COUNTER + 2 * PAD;
    case "state":
      return STATE + 2 * PAD;
    default:
      return Math.max(LANE, (open ? track.lanes.length : 1) * LANE) + 2 * PAD;
  }
}

/** Returns true if a track holds other tracks and has a heading of its own. */
export function isGroup(track) {
  return track.kind === "group" || track.kind === "process";
}

const INTERESTING = ["thread", "slices", "cpu", "states", "samples", "heap"];

/**
 * Groups that begin closed: those of which only states and counters were recorded. Events of the
 * kernel are shown at once if there is nothing else.
 */
function beginsClosed(track, kinds) {
  if (!isGroup(track)) return false;
  const interesting = (child) => kinds.includes(child.kind) && child.lanes.length > 0;
  const anyInside = (child) => interesting(child) || child.children.some(anyInside);
  return !track.children.some(anyInside);
}

export class Layout {
  constructor(model) {
    this.model = model;
    const hasMore = model.tracks.some(({ kind, lanes }) => INTERESTING.includes(kind) && lanes.length > 0);
    const kinds = hasMore ? INTERESTING : ["events"];
    this.closed = new Set(model.tracks.filter((track) => beginsClosed(track, kinds)).map((track) => track.index));
    this.pinned = [];
    this.update();
  }

  /** Computes all rows again. */
  update() {
    this.rows = [];
    this.rowOf = new Map();
    let top = 0;
    const add = (track, level) => {
      const open = !this.closed.has(track.index);
      const row = { track, level, top, height: rowHeight(track, open), open };
      this.rows.push(row);
      this.rowOf.set(track.index, row);
      top += row.height;
      if (open || !isGroup(track)) for (const child of track.children) add(child, level + 1);
    };
    for (const track of this.model.roots) add(track, 0);
    this.height = top;
    this.pinnedRows = [];
    let pinnedTop = 0;
    for (const index of this.pinned) {
      const track = this.model.tracks[index];
      const open = !this.closed.has(index);
      const row = { track, level: 0, top: pinnedTop, height: rowHeight(track, open), open, pinned: true };
      this.pinnedRows.push(row);
      pinnedTop += row.height;
    }
    this.pinnedHeight = pinnedTop;
  }

  /** Opens or closes a track. */
  toggle(track) {
    if (!this.closed.delete(track.index)) this.closed.add(track.index);
    this.update();
  }

  /** Opens all tracks that hide this one. */
  show(track) {
    let changed = this.closed.delete(track.index);
    for (let at = track; at.parent >= 0; ) {
      at = this.model.tracks[at.parent];
      changed = this.closed.delete(at.index) || changed;
    }
    if (changed) this.update();
  }

  /** Pins a track to the top, or takes it from there. */
  togglePin(track) {
    const at = this.pinned.indexOf(track.index);
    if (at >= 0) this.pinned.splice(at, 1);
    else this.pinned.push(track.index);
    this.update();
  }

  /** Returns the visible rows for a scroll position and height, each with its `y`. */
  visible(scroll, height) {
    const found = this.pinnedRows.map((row) => ({ row, y: row.top }));
    const begin = this.pinnedHeight;
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const row = this.rows[middle];
      if (row.top + row.height > scroll) high = middle;
      else low = middle + 1;
    }
    for (let i = low; i < this.rows.length; i++) {
      const y = begin + this.rows[i].top - scroll;
      if (y >= height) break;
      found.push({ row: this.rows[i], y });
    }
    return found;
  }

  /** Returns the row at `y`, with its own `y`, or null. */
  rowAt(y, scroll) {
    if (y < this.pinnedHeight) {
      const row = this.pinnedRows.find(({ top, height }) => y >= top && y < top + height);
      return row ? { row, y: row.top } : null;
    }
    const place = y - this.pinnedHeight + scroll;
    const row = this.rows.find(({ top, height }) => place >= top && place < top + height);
    return row ? { row, y: this.pinnedHeight + row.top - scroll } : null;
  }

  /** Returns the lane of a row at a distance from the row's top, or null. */
  laneAt(row, y) {
    const { track, open } = row;
    if (track.lanes.length === 0) return null;
    if (track.kind === "state") return track.lanes[0];
    const depth = Math.floor((y - PAD) / LANE);
    if (depth < 0 || depth >= (open ? track.lanes.length : 1)) return null;
    return track.lanes[depth];
  }

  /** Returns top and height of a lane, from the top of its row. */
  placeOfLane(row, lane) {
    if (row.track.kind === "state") return { top: PAD, height: STATE };
    const depth = row.open ? lane.place : 0;
    return { top: PAD + depth * LANE, height: LANE - 1 };
  }

  /** Returns the middle of a lane in the scrolled rows; if it is hidden, that of its parent. */
  middleOfLane(lane) {
    let track = lane.track;
    let row = this.rowOf.get(track.index);
    if (row) {
      const place = this.placeOfLane(row, lane);
      return row.top + place.top + place.height / 2;
    }
    while (!row && track.parent >= 0) {
      track = this.model.tracks[track.parent];
      row = this.rowOf.get(track.index);
    }
    return row ? row.top + row.height / 2 : 0;
  }
}

export { PAD, COUNTER };
