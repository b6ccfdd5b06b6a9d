// Scenarios of `browser.mjs` with call stacks and events of the kernel.

import assert from "node:assert/strict";

/** Returns the place of a track by the text of its label: the middle of its row. */
async function rowOf(page, name) {
  const label = page.locator(".label", { hasText: name }).first();
  const { y, height } = await label.boundingBox();
  const { x, width } = await page.locator("#surface").boundingBox();
  return { x, width, top: y + 1, bottom: y + height - 2, middle: y + height / 2 };
}

/** Clicks a mark on the row of a label near the middle of the time; `wanted` is in its details. */
async function clickMark(page, label, wanted, click) {
  const { y, height } = await label.boundingBox();
  const { x, width } = await page.locator("#surface").boundingBox();
  // Marks have some distance.
  for (let step = 0; step < 20; step++) {
    await click(x + width / 2 + step * 3, y + height / 2);
    const text = await page.locator("#content").innerText();
    if (wanted.test(text)) return;
  }
  assert.fail(`no click on the row of ${await label.innerText()} shows ${wanted}`);
}

/** Drags an area over rows, from one part of the visible stretch to another. */
async function drag(page, first, last, from, to) {
  const [top, bottom] = [await rowOf(page, first), await rowOf(page, last)];
  await page.mouse.move(top.x + top.width * from, top.top);
  await page.mouse.down();
  await page.mouse.move(top.x + top.width * to, bottom.bottom, { steps: 5 });
  await page.mouse.up();
}

const numberIn = (text) => Number(text.replace(/\D/g, ""));
const boxes = (page, prefix) => page.locator(`.flame button[aria-label^="${prefix}: "]`);

export const scenarios = {
  async stacks({ page, surface, text, key, tab, facts }) {
    // All samples, by thread. The root has all of them, and so does the outermost function of each thread.
    await tab("stacks");
    assert.match(await text(".choosers"), new RegExp(`^${facts.samples[0]} samples in the whole trace`));
    assert.match(await boxes(page, "all").getAttribute("aria-label"), new RegExp(`^all: ${facts.samples[0]} `));
    assert.match(await boxes(page, "helper 51").getAttribute("aria-label"), new RegExp(`^helper 51: ${facts.samples[1]} `));
    assert.equal(await boxes(page, "main").count(), 3);
    await page.locator(".choosers select").selectOption("process");
    assert.equal(await boxes(page, "main").count(), 2);
    await page.locator(".choosers select").selectOption("none");
    assert.equal(await boxes(page, "main").count(), 1);
    assert.match(await boxes(page, "draw_text").getAttribute("aria-label"), /libapp\.so$/);
    // A function that is inlined, with its source.
    assert.match(await boxes(page, "memcpy").getAttribute("aria-label"), /, 0 by itself, in mem\.c$/);
    assert.match(await boxes(page, "copy_bytes").getAttribute("aria-label"), /in copy\.c$/);
    // One function alone, and back.
    await boxes(page, "render").click();
    assert.match(await text("#content"), /Click the top row to go back/);
    assert.equal(await boxes(page, "parse").count(), 0);
    await boxes(page, "render").click();
    assert.ok(await boxes(page, "parse").count());

    // An area over the rows of one thread has only its samples.
    await drag(page, "helper", "helper", 0.02, 0.98);
    assert.doesNotMatch(await text(".choosers"), /whole trace/);
    await drag(page, "sampled only", "sampled only", 0.02, 0.98);
    await page.waitForFunction(() => /^100 samples in the area/.test(document.querySelector(".choosers").innerText));
    await tab("selection");
    await page.locator("button.stacks").click();
    assert.equal(await page.locator("#tab-stacks").getAttribute("aria-selected"), "true");
    await drag(page, "sampled only", "sampled only", 0.3, 0.5);
    const part = numberIn((await text(".choosers")).split("samples")[0]);
    assert.ok(part > 0 && part < facts.samples[1], `${part} samples in a part of the time`);

    // Without the area, the page shows the whole trace again.
    await surface.focus();
    await key("Escape");
    assert.match(await text(".choosers"), /samples in the whole trace/);

    // A click on a mark shows the stack, the innermost function first.
    await clickMark(page, page.locator(".label.samples").nth(1), /Call stack/, (x, y) => page.mouse.click(x, y));
    const frames = await page.locator("ol.stack li").allInnerTexts();
    assert.match(frames[frames.length - 1], /^main libapp\.so$/);
    assert.match(await text("#content"), /helper/);
    // The keys for the neighbours go from sample to sample.
    await surface.focus();
    const first = await text("#content");
    await key("ArrowRight");
    assert.notEqual(await text("#content"), first);
    await key("ArrowLeft");
    assert.equal(await text("#content"), first);

    // A function that calls others is found in the stacks of samples.
    await key("/");
    await page.keyboard.type("read_header");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => / of /.test(document.getElementById("matches").textContent));
    const found = numberIn((await text("#matches")).split("of")[1]);
    assert.ok(found > 0 && found < facts.samples[0], `${found} samples`);
    assert.ok((await page.locator("ol.stack li").allInnerTexts()).some((frame) => frame.startsWith("read_header")));

    // The heap: the last dump at first, and each measure.
    await tab("heap");
    const root = async () => numberIn((await boxes(page, "all").getAttribute("aria-label")).split("(")[0]);
    const [choice, dump, measure] = [0, 1, 2].map((i) => page.locator(".choosers select").nth(i));
    assert.match(await choice.innerText(), /app 50 libc\.malloc/);
    const kilobytes = (bytes) => bytes / 1000;
    assert.equal(await root(), kilobytes(facts.heap[2][0]));
    await measure.selectOption("allocated");
    assert.equal(await root(), kilobytes(facts.heap[2][1]));
    await dump.selectOption("0");
    assert.equal(await root(), kilobytes(facts.heap[0][1]));
    await measure.selectOption("allocations");
    assert.equal(await root(), 30);
    await measure.selectOption("count");
    assert.equal(await root(), 18);
    // A mark on the timeline opens its dump.
    await key("Escape");
    await page.locator("#search").fill("heap dump 2");
    await page.locator("#search").press("Enter");
    await page.waitForFunction(() => /Heap dump/.test(document.getElementById("content").textContent));
    assert.equal(await page.locator(".choosers select").count(), 1);
    await page.locator(".choosers select").selectOption("size");
    assert.equal(await root(), kilobytes(facts.heap[1][0]));

    // States of a track.
    await page.locator("#search").fill("busy");
    await page.locator("#search").press("Enter");
    await page.waitForFunction(() => /State/.test(document.querySelector("#content h3").textContent));
    assert.match(await text("#content"), /80 ms/);
    assert.equal(await page.locator(".label.states .name").innerText(), "mode");
    await page.locator("#search").press("Escape");
    await key("Escape");
  },

  async events({ page, surface, text, key, tab, facts }) {
    await tab("events");
    const counts = Object.fromEntries(await page.locator("#content tbody tr").evaluateAll((rows) =>
      rows.map((row) => [row.cells[0].innerText, Number(row.cells[1].innerText)])));
    assert.deepEqual(counts, { mm_page_alloc: facts.events / 2, signal_generate: facts.events / 2 });
    // Beside slices, the group begins closed; a link in the table opens it.
    assert.equal(await page.locator(".label.events").count(), 0);
    await page.locator("#content tbody button", { hasText: "mm_page_alloc" }).click();
    await page.waitForFunction(() => /Kernel event/.test(document.getElementById("content").textContent));
    await page.waitForFunction(() => document.querySelectorAll(".label.events").length === 2);
    // Name, thread and arguments, also those that no number of the browser can hold.
    assert.match(await text("#content"), /sampled only/);
    assert.match(await text("#content"), /pfn\s+18446744073709551000/);
    assert.match(await text("#content"), /order\s+1/);
    assert.match(await text("#said"), /mm_page_alloc, kernel event/);
    const first = await text("#content");
    await surface.focus();
    await key("ArrowRight");
    assert.notEqual(await text("#content"), first);
    await key("Escape");
    // Search finds events by name.
    await page.locator("#search").fill("MM_PAGE");
    await page.waitForFunction((number) => new RegExp(`^${number} found`).test(document.getElementById("matches").textContent),
      facts.events / 2);
    await page.locator("#search").press("Enter");
    await page.waitForFunction(() => /order\s*1/.test(document.getElementById("content").innerText));
    await page.locator("#search").press("Escape");
    // A click on a mark, and an area over both rows.
    await page.locator(".label.group", { hasText: "Kernel events" }).scrollIntoViewIfNeeded();
    // Without movement, the whole trace is there at once.
    await page.emulateMedia({ reducedMotion: "reduce" });
    await page.click("#whole");
    const row = await page.locator(".label.events").first().boundingBox();
    const box = await surface.boundingBox();
    await clickMark(page, page.locator(".label.events").first(), /Kernel event/, (x, y) => page.mouse.click(x, y));
    const last = await page.locator(".label.events").last().boundingBox();
    await page.mouse.move(box.x + 2, row.y + 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 2, last.y + last.height - 3, { steps: 5 });
    await page.mouse.up();
    await page.waitForFunction(() => /Events of the kernel/.test(document.getElementById("content").textContent));
    // The first and the last one may be outside.
    const inside = Number(/signal_generate\s+(\d+)/.exec(await text("#content"))[1]);
    assert.ok(inside > facts.events / 2 - 10 && inside <= facts.events / 2, `${inside} events`);
  },

  async stacksByKeyboard({ page, text }) {
    const reach = async (selector) => {
      for (let i = 0; i < 60; i++) {
        await page.keyboard.press("Tab");
        if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
      }
      assert.fail(`${selector} cannot be reached by Tab`);
    };
    await reach("[role=treeitem]");
    for (let i = 0; i < 30 && !(await page.evaluate(() => document.activeElement.matches(".samples"))); i++) {
      await page.keyboard.press("ArrowDown");
    }
    await page.keyboard.press("Enter");
    assert.match(await text("#said"), /sample of a call stack/);
    assert.ok((await page.locator("ol.stack li").count()) > 0);
    await reach("[role=tab]");
    while ((await page.locator("#tab-stacks").getAttribute("aria-selected")) !== "true") {
      await page.keyboard.press("ArrowRight");
    }
    await reach(".choosers select");
    await page.keyboard.press("ArrowDown");
    assert.equal(await page.locator(".choosers select").inputValue(), "process");
    assert.equal(await page.evaluate(() => document.activeElement.matches(".choosers select")), true);
    await reach(".flame button");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.match(await text("#content"), /Click the top row to go back/);
    assert.equal(await page.evaluate(() => document.activeElement.matches(".flame button")), true);
    for (const button of await page.locator("button:visible, select:visible").all()) {
      const name = (await button.getAttribute("aria-label")) ?? (await button.evaluate((one) =>
        one.labels?.[0]?.textContent || one.textContent));
      assert.ok(name.trim(), "a control has no name");
    }
  },

  async stacksOnPhone({ page, text }) {
    await page.locator("#tab-stacks").tap();
    assert.match(await text(".choosers"), /samples in the whole trace/);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `the page is ${width} pixels wide`);
    await page.locator("#tab-heap").tap();
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
    // A tap on the mark of a sample.
    await clickMark(page, page.locator(".label.samples").first(), /Call stack/, (x, y) => page.touchscreen.tap(x, y));
  },

  // Events of a real machine, and nothing else but its processors.
  async machineEvents({ page, text, tab, facts }) {
    await tab("events");
    const counts = Object.fromEntries(await page.locator("#content tbody tr").evaluateAll((rows) =>
      rows.map((row) => [row.cells[0].innerText, Number(row.cells[1].innerText.replace(/\D/g, ""))])));
    assert.deepEqual(counts, facts.events);
    await page.locator("#content tbody button", { hasText: "signal_generate" }).click();
    await page.waitForFunction(() => /Kernel event/.test(document.getElementById("content").textContent));
    assert.match(await text("#content"), /comm\s+\S/);
    assert.match(await text("#content"), /sig\s+\d/);
  },

  // Samples of the kernel and those that a program took itself.
  async samplesOfAllKinds({ page, text, tab, facts }) {
    await tab("stacks");
    assert.match(await text(".choosers"), new RegExp(`^${facts.samples} samples in the whole trace`));
    await page.locator(".choosers select").first().selectOption("none");
    // One source alone has fewer.
    const sources = page.locator(".choosers select").nth(1);
    assert.ok((await sources.locator("option").count()) > 3);
    await sources.selectOption({ label: "the programs" });
    assert.match(await text(".choosers"), new RegExp(`^${facts.outermost.own} samples`));
    await sources.selectOption({ label: "all sources" });
    for (const [name, number] of Object.entries(facts.outermost)) {
      const labels = await boxes(page, name).evaluateAll((list) => list.map((box) => box.getAttribute("aria-label")));
      assert.ok(labels.some((label) => label.startsWith(`${name}: ${number} `)), `${number} samples of ${name}: ${labels}`);
    }
  },

  async noStacks({ page }) {
    assert.deepEqual(await page.locator("#tabs button").allInnerTexts(),
      ["Selection", "Flame graph", "Top slices", "Threads", "Log", "Trace"]);
  },
};
