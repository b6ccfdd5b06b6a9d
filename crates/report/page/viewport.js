// The visible stretch of time: panning, zooming, and the way there.

/** The shortest visible stretch, in nanoseconds. */
const SHORTEST = 10;
/** Part of the whole trace that may be seen before its begin and after its end. */
const MARGIN = 0.05;
/** Duration of a movement, in milliseconds. */
const MOVEMENT = 150;

export class Viewport {
  /** `duration` is that of the trace, `calm()` returns true if movements are unwanted. */
  constructor(duration, calm = () => false) {
    this.duration = Math.max(duration, SHORTEST);
    this.calm = calm;
    this.from = -MARGIN * this.duration;
    this.to = this.duration * (1 + MARGIN);
    this.movement = null;
  }

  /** The visible duration. */
  get span() {
    return this.to - this.from;
  }

  #clamped(from, to) {
    const low = -MARGIN * this.duration;
    const high = this.duration * (1 + MARGIN);
    const span = Math.min(Math.max(to - from, SHORTEST), high - low);
    const middle = (from + to) / 2;
    const begin = Math.min(Math.max(middle - span / 2, low), high - span);
    return [begin, begin + span];
  }

  /** Shows a stretch of time at once. */
  set(from, to) {
    this.movement = null;
    [this.from, this.to] = this.#clamped(from, to);
  }

  /** Moves to a stretch of time; call `advance` for each frame. */
  moveTo(from, to, now) {
    const [begin, end] = this.#clamped(from, to);
    if (this.calm()) {
      this.set(begin, end);
      return;
    }
    this.movement = { start: now, from: [this.from, this.to], to: [begin, end] };
  }

  /** Takes the movement's next step; returns true while there are more. */
  advance(now) {
    const movement = this.movement;
    if (!movement) return false;
    const part = Math.min(1, (now - movement.start) / MOVEMENT);
    const eased = 1 - (1 - part) ** 3;
    const between = (i) => movement.from[i] + (movement.to[i] - movement.from[i]) * eased;
    this.from = between(0);
    this.to = between(1);
    if (part === 1) {
      [this.from, this.to] = movement.to;
      this.movement = null;
    }
    return this.movement !== null;
  }

  /** Shifts the view by a part of its own width. */
  pan(part) {
    const by = part * this.span;
    this.set(this.from + by, this.to + by);
  }

  /** Changes the visible duration by `factor`; the time at `anchor` (0 to 1) stays in place. */
  zoom(factor, anchor = 0.5) {
    const fixed = this.from + anchor * this.span;
    const [low, high] = [-MARGIN * this.duration, this.duration * (1 + MARGIN)];
    const span = Math.min(Math.max(this.span * factor, SHORTEST), high - low);
    this.set(fixed - anchor * span, fixed + (1 - anchor) * span);
  }

  /** Moves to show all of a stretch with some room around it. */
  frame(from, to, now) {
    const room = Math.max((to - from) * 0.25, SHORTEST);
    this.moveTo(from - room, to + room, now);
  }

  /** Moves so that a stretch is visible, and keeps the scale if it is there already. */
  reveal(from, to, now) {
    if (from >= this.from && to <= this.to) return;
    const span = Math.max(this.span, (to - from) * 1.5);
    const middle = (from + to) / 2;
    this.moveTo(middle - span / 2, middle + span / 2, now);
  }
}
