// Keyboard, mouse and touch on the timeline.

/** Movement of a pointer below which it is a click, in CSS pixels. */
const CLICK = 4;
const ZOOM_STEP = 1.25;
const PAN_STEP = 0.12;
/** Time after which a finger that stays selects an area, in milliseconds. */
const LONG_PRESS = 450;

/** Connects the timeline's element with the app. */
export function listen(app, surface) {
  wheel(app, surface);
  pointers(app, surface);
  keys(app);
}

function wheel(app, surface) {
  surface.addEventListener("wheel", (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    const { width, left } = surface.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) {
      app.view.zoom(Math.exp(event.deltaY * unit * 0.0025), (event.clientX - left) / width);
      app.changedView();
      return;
    }
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (sideways) {
      app.view.pan((sideways * unit) / width);
      app.changedView();
    }
    if (!event.shiftKey && event.deltaY) app.scrollBy(event.deltaY * unit);
  }, { passive: false });
}

function pointers(app, surface) {
  const active = new Map();
  let gesture = null;
  let press = 0;
  const place = (event) => {
    const box = surface.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top, width: box.width };
  };
  const timeAt = ({ x, width }) => app.view.from + (x / width) * app.view.span;
  const beginArea = (at) => {
    gesture = { kind: "area", start: at, from: timeAt(at) };
  };

  surface.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    surface.setPointerCapture(event.pointerId);
    const at = place(event);
    active.set(event.pointerId, at);
    if (active.size === 2) {
      clearTimeout(press);
      const [one, two] = [...active.values()];
      gesture = { kind: "pinch", distance: Math.hypot(one.x - two.x, one.y - two.y), middle: (one.x + two.x) / 2 };
    } else if (event.pointerType === "touch") {
      gesture = { kind: "press", start: at, last: at };
      press = setTimeout(() => gesture?.kind === "press" && beginArea(gesture.start), LONG_PRESS);
    } else {
      gesture = event.shiftKey ? { kind: "pan", start: at, last: at } : { kind: "press", start: at, last: at, mouse: true };
    }
  });

  surface.addEventListener("pointermove", (event) => {
    const at = place(event);
    if (!active.has(event.pointerId)) {
      app.hover(at);
      return;
    }
    active.set(event.pointerId, at);
    if (!gesture) return;
    if (gesture.kind === "pinch") {
      if (active.size < 2) return;
      const [one, two] = [...active.values()];
      const distance = Math.max(10, Math.hypot(one.x - two.x, one.y - two.y));
      const middle = (one.x + two.x) / 2;
      app.view.zoom(gesture.distance / distance, middle / at.width);
      app.view.pan((gesture.middle - middle) / at.width);
      Object.assign(gesture, { distance, middle });
      app.changedView();
      return;
    }
    const far = Math.hypot(at.x - gesture.start.x, at.y - gesture.start.y) > CLICK;
    if (gesture.kind === "press" && far) {
      clearTimeout(press);
      if (gesture.mouse) beginArea(gesture.start);
      else gesture = { kind: "pan", start: gesture.start, last: gesture.start };
    }
    if (gesture.kind === "pan") {
      app.view.pan((gesture.last.x - at.x) / at.width);
      app.scrollBy(gesture.last.y - at.y);
      gesture.last = at;
      app.changedView();
    } else if (gesture.kind === "area") {
      const time = timeAt(at);
      app.markArea(Math.min(gesture.from, time), Math.max(gesture.from, time), gesture.start.y, at.y, false);
    }
  });

  const end = (event) => {
    if (!active.delete(event.pointerId)) return;
    clearTimeout(press);
    const at = place(event);
    if (gesture?.kind === "press" && event.type === "pointerup") app.click(at);
    if (gesture?.kind === "area") {
      const time = timeAt(at);
      app.markArea(Math.min(gesture.from, time), Math.max(gesture.from, time), gesture.start.y, at.y, true);
    }
    if (active.size === 0) gesture = null;
    else if (gesture?.kind === "pinch") {
      const rest = [...active.values()][0];
      gesture = { kind: "pan", start: rest, last: rest };
    }
  };
  surface.addEventListener("pointerup", end);
  surface.addEventListener("pointercancel", end);
  surface.addEventListener("pointerleave", () => app.hover(null));
  surface.addEventListener("dblclick", () => app.frameSelection());
}

/** What each key does: also the content of the help page. */
export const KEYS = [
  { keys: ["w", "+"], text: "Zoom in", run: (app) => app.zoom(1 / ZOOM_STEP) },
  { keys: ["s", "-"], text: "Zoom out", run: (app) => app.zoom(ZOOM_STEP) },
  { keys: ["a"], text: "Move left", run: (app) => app.pan(-PAN_STEP) },
  { keys: ["d"], text: "Move right", run: (app) => app.pan(PAN_STEP) },
  { keys: ["f"], text: "Show the whole of the selection, then the whole trace", run: (app) => app.frameSelection() },
  { keys: ["m"], text: "Mark the selected slice as an area", run: (app) => app.markSelection() },
  { keys: ["ArrowLeft", ","], text: "Previous slice or mark of the lane; without a selection: move left", run: (app) => app.neighbour(-1) },
  { keys: ["ArrowRight", "."], text: "Next slice or mark of the lane; without a selection: move right", run: (app) => app.neighbour(1) },
  { keys: ["ArrowUp"], text: "Containing slice; without a selection: scroll", run: (app) => app.vertical(-1) },
  { keys: ["ArrowDown"], text: "First contained slice; without a selection: scroll", run: (app) => app.vertical(1) },
  { keys: ["["], text: "Follow the flow back", run: (app) => app.followFlow(false) },
  { keys: ["]"], text: "Follow the flow on", run: (app) => app.followFlow(true) },
  { keys: ["p"], text: "Pin the selected track to the top, or take it away", run: (app) => app.pinSelected() },
  { keys: ["/"], text: "Search; Enter and Shift+Enter: next and previous", run: (app) => app.focusSearch() },
  { keys: ["n"], text: "Next match", run: (app) => app.nextMatch(true) },
  { keys: ["N"], text: "Previous match", run: (app) => app.nextMatch(false) },
  { keys: ["Escape"], text: "Clear the selection", run: (app) => app.clear() },
  { keys: ["?"], text: "This page", run: (app) => app.help() },
];

const FORMS = new Set(["INPUT", "TEXTAREA", "SELECT"]);

function keys(app) {
  window.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      if ((event.ctrlKey || event.metaKey) && event.key === "f") {
        event.preventDefault();
        app.focusSearch();
      }
      return;
    }
    if (FORMS.has(event.target.tagName) || event.target.closest?.("dialog[open]")) return;
    // Arrow keys keep their usual effect in lists and tables.
    if (event.key.startsWith("Arrow") && event.target.closest?.("[role=tablist], .panel")) return;
    const letter = event.key.length === 1 && event.key !== "N" ? event.key.toLowerCase() : event.key;
    const action = KEYS.find(({ keys: names }) => names.includes(letter));
    if (!action) return;
    event.preventDefault();
    action.run(app);
  });
}
