// Flame graphs: the path of names from the top, each as wide as its total.

import { element } from "./dom.js";

/** Least width of a shown node, as a part of the whole. */
const LEAST = 0.001;
const MOST_NODES = 4000;
const ROW = 20;

/**
 * Returns an element with the flame graph of a tree.
 *
 * `nameOf(node)` and `describe(node, top)` are texts, `paintOf(node)` is a paint or null, and
 * `onpick(node)` is called when a node is clicked. `hint` says what the width is.
 */
export function flameGraph(tree, { nameOf, describe, paintOf, onpick = () => {}, hint }) {
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
      const title = describe(node, tree);
      const box = element("button", { type: "button", title, "aria-label": title }, nameOf(node));
      const paint = paintOf(node);
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
        // The box with the focus is gone.
        holder.querySelector("button")?.focus();
        onpick(node);
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
    path.textContent = ancestors.length ? "Click the top row to go back." : hint;
  };
  draw(tree, []);
  return element("div", {}, path, holder);
}
