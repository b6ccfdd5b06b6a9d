// Start: reads the blocks of the page, and shows the trace.

import { App } from "./app.js";
import { readColumns } from "./decode.js";
import { Model } from "./model.js";

async function start() {
  const status = document.getElementById("status");
  try {
    const description = JSON.parse(document.getElementById("description").textContent);
    const columns = await readColumns(description.columns, (block) => {
      const holder = document.getElementById(`block-${block}`);
      const text = holder.textContent;
      // Each block is needed once.
      holder.remove();
      return text;
    });
    const model = new Model(description, columns);
    status.hidden = true;
    document.getElementById("main").hidden = false;
    new App(model).redraw();
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    const old = typeof DecompressionStream === "undefined";
    status.textContent = old
      ? "This browser is too old for this page: it lacks DecompressionStream. Chrome and Edge have it since 103, Firefox since 113, Safari since 16.4."
      : `This page cannot be shown: ${error.message}. Is the file complete?`;
    throw error;
  }
}

start();
