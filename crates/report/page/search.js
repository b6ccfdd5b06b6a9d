// Search for spans by name, category or function, in the order of time.

export class Search {
  constructor(model) {
    this.model = model;
    this.clear();
  }

  clear() {
    this.text = "";
    this.names = null;
    this.stacks = null;
    this.found = new Uint32Array(0);
    this.at = -1;
    this.ofLanes = null;
  }

  /** Returns the matches on a lane, in the order of time. */
  ofLane(lane) {
    if (!this.ofLanes) {
      this.ofLanes = new Map();
      for (const span of this.found) {
        const own = this.model.lane(span);
        if (!this.ofLanes.has(own)) this.ofLanes.set(own, []);
        this.ofLanes.get(own).push(span);
      }
    }
    return this.ofLanes.get(lane) ?? [];
  }

  /**
   * Calls `draw(span, column)` for the matches on a lane that begin in `width` columns of
   * `perColumn` nanoseconds from time `from` on, for at most one in each column.
   */
  columns(lane, from, perColumn, width, draw) {
    const spans = this.ofLane(lane);
    const { begins } = this.model.spans;
    const firstFrom = (low, time) => {
      let high = spans.length;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (begins[spans[middle]] >= time) high = middle;
        else low = middle + 1;
      }
      return low;
    };
    for (let at = firstFrom(0, from); at < spans.length; ) {
      const column = Math.floor((begins[spans[at]] - from) / perColumn);
      if (column >= width) return;
      draw(spans[at], column);
      at = firstFrom(at + 1, from + (column + 1) * perColumn);
    }
  }

  /** Returns true if a span matches. A sample matches if a function of its stack does. */
  matches(span) {
    const { names, categories } = this.model.spans;
    return this.names[names[span]] || this.names[categories[span]] || this.stacks?.[this.model.stackOf(span)];
  }

  /** Finds all spans whose name or category contains `text`, without regard to case. */
  run(text) {
    this.clear();
    const wanted = text.trim().toLowerCase();
    if (!wanted) return;
    this.text = text;
    const { strings, stacks } = this.model;
    const matches = new Uint8Array(strings.length);
    let any = false;
    for (let i = 1; i < strings.length; i++) {
      if (strings[i].toLowerCase().includes(wanted)) {
        matches[i] = 1;
        any = true;
      }
    }
    this.names = matches;
    if (!any) return;
    if (this.model.samples) this.stacks = stacks.matching(matches);
    const order = this.model.timeOrder();
    let number = 0;
    const found = new Uint32Array(order.length);
    for (let i = 0; i < order.length; i++) {
      const span = order[i];
      if (this.matches(span)) found[number++] = span;
    }
    this.found = found.slice(0, number);
  }

  /** Returns the next match after `span`, or the previous one, around the ends; -1 without any. */
  step(forward, now) {
    const { found } = this;
    if (found.length === 0) return -1;
    if (this.at < 0) {
      const { begins } = this.model.spans;
      let first = found.findIndex((span) => begins[span] >= now);
      if (first < 0) first = 0;
      this.at = forward ? first : (first + found.length - 1) % found.length;
    } else {
      this.at = (this.at + (forward ? 1 : found.length - 1)) % found.length;
    }
    return found[this.at];
  }
}
