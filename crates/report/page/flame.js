// Flame graph of slices: the path of names from the top, as wide as its total time.

import { element } from "./dom.js";
import { duration, count } from "./time.js";

/** Least width of a shown node, as a part of the whole. */
const LEAST = 0.001;
const MOST_NODES = 4000;
const ROW = 20;

/** Returns an element with the flame graph of a tree; `nameOf` and `paintOf` take a name's number. */
export function flameGraph(tree, nameOf, paintOf, onpick) {
  const holder = element("div", { class: "flame" });
  const path = element("p", { class: "hint", "aria-live": "polite" });
  const draw = (top, ancestors) => {
    holder.replaceChildren();
    let nodes = 0;
    let deepest = 0;
    const add = (node, left, width, depth, above) => {
      if (width < LEAST || nodes >= MOST_NODES) return;
      nodes++;
      deepest = Math.max(deepest, depth);
      const name = node.name < 0 ? "all" : nameOf(node.name) || "(no name)";
      const title = `${name}: ${duration(node.total)} in total, ${duration(node.self)} self, ${count(node.count)} times`;
      const box = element("button", { type: "button", title, "aria-label": title }, name);
      const paint = node.name < 0 ? null : paintOf(node.name);
      box.style.left = `${left * 100}%`;
      box.style.width = `${width * 100}%`;
      box.style.top = `${depth * ROW}px`;
      if (paint?.color) {
        box.style.background = `rgb(${paint.color.join(" ")})`;
        box.style.color = paint.text;
      }
      box.addEventListener("click", () => {
        if (node !== top) draw(node, above);
        else if (above.length) draw(above[above.length - 1], above.slice(0, -1));
        if (node.name >= 0) onpick(node.name);
      });
      holder.append(box);
      let at = left;
      const below = [...above, node];
      for (const child of node.children) {
        const part = node.total > 0 ? (child.total / node.total) * width : 0;
        add(child, at, Math.min(part, left + width - at), depth + 1, below);
        at += part;
      }
    };
    add(top, 0, 1, 0, ancestors);
    holder.style.height = `${(deepest + 1) * ROW}px`;
    path.textContent = ancestors.length
      ? "Click the top row to go back."
      : "Click a slice to see it alone. The width is the total time.";
  };
  draw(tree, []);
  return element("div", {}, path, holder);
}
