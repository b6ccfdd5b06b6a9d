// Opens a page in a browser without a network, and plays one scenario with real input.
//
// browser.mjs MODULES PAGE PICTURE SCENARIO FACTS
//
// FACTS is JSON that the scenario expects on the page.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { scenarios as profileScenarios } from "./profile_scenarios.mjs";

const [modules, file, picture, name, facts] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)("playwright-core");

const scenarios = {
  ...profileScenarios,

  // Mouse and keyboard of a person at a desk.
  async desk({ page, surface, text, key, tab }) {
    assert.match(await text("#facts"), /1503 slices/);
    assert.equal(await page.locator("#notices").isVisible(), false);

    // Search, and the keys for the next and the previous match.
    await key("/");
    await page.keyboard.type("frame");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /^1 of /.test(document.getElementById("matches").textContent));
    assert.match(await text("#content"), /Name\s*frame/);
    const first = await text("#content");
    await page.keyboard.press("Enter");
    assert.match(await text("#matches"), /^2 of /);
    assert.notEqual(await text("#content"), first);
    await page.keyboard.press("Shift+Enter");
    assert.equal(await text("#content"), first);

    // The whole of the selection, its parts and its neighbours.
    await surface.focus();
    await key("f");
    await page.waitForTimeout(300);
    const wide = await text("#range");
    await key("ArrowDown");
    assert.match(await text("#content"), /frame ›/);
    await key("ArrowUp");
    assert.equal(await text("#content"), first);
    await key("ArrowRight");
    assert.notEqual(await text("#content"), first);
    await key("ArrowLeft");
    assert.equal(await text("#content"), first);
    assert.match(await text("#said"), /^frame, /);

    // Zooming and moving by keys and by mouse.
    await key("s");
    assert.notEqual(await text("#range"), wide);
    const zoomed = await text("#range");
    await key("d");
    assert.notEqual(await text("#range"), zoomed);
    const box = await surface.boundingBox();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.move(x, y);
    const before = await text("#range");
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -400);
    await page.keyboard.up("Control");
    await page.waitForFunction((old) => document.getElementById("range").textContent !== old, before);
    const range = await text("#range");
    await page.keyboard.down("Shift");
    await page.mouse.down();
    await page.mouse.move(x - 200, y, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await page.waitForFunction((old) => document.getElementById("range").textContent !== old, range);

    // A click on a slice shows its details: the first row of slices has a frame under this place.
    await page.click("#whole");
    await page.waitForTimeout(300);
    await key("Escape");
    assert.match(await text("#content"), /Click a slice/);
    await page.mouse.click(...(await page.evaluate(() => {
      // The place of the first track with slices, by its label.
      const label = document.querySelector(".label.thread").getBoundingClientRect();
      const area = document.getElementById("surface").getBoundingClientRect();
      return [area.left + area.width * 0.5, label.top + 12];
    })));
    await page.waitForFunction(() => /Duration/.test(document.getElementById("content").textContent));

    // An area by dragging: sums by name.
    await page.mouse.move(box.x + 100, box.y + 5);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width - 100, box.y + box.height - 10, { steps: 5 });
    await page.mouse.up();
    await page.waitForFunction(() => /Durations are those inside the area/.test(document.getElementById("content").textContent));
    assert.match(await text("#content"), /frame/);

    // The other pages of the panel.
    await tab("flame");
    assert.ok((await page.locator(".flame button").count()) > 3);
    await tab("slices");
    const rows = await page.locator("#content tbody tr").count();
    assert.ok(rows >= 4, `${rows} names`);
    await page.locator("#content thead button", { hasText: "Count" }).click();
    assert.equal(await page.locator("#content th[aria-sort=descending]").count(), 1);
    await page.locator("#content tbody button").first().click();
    assert.match(await text("#content"), /Duration/);
    await tab("threads");
    assert.match(await text("#content"), /worker-0/);
    await tab("trace");
    assert.match(await text("#content"), /Packets/);

    // A pinned track is shown twice, and a link leads back to this view.
    await page.locator(".label.thread").first().hover();
    await page.locator(".label.thread .pin").first().click();
    await page.waitForFunction(() => document.querySelectorAll(".label.pinned").length === 1);
    await page.waitForFunction(() => /pin=\d/.test(location.hash) && /tab=trace/.test(location.hash));
    await page.reload();
    await page.waitForSelector("html[data-ready]");
    await page.waitForFunction(() => document.querySelectorAll(".label.pinned").length === 1);
    assert.equal(await page.locator("#tab-trace").getAttribute("aria-selected"), "true");

    // The keys are listed, and the dialog closes.
    await surface.focus();
    await page.keyboard.press("?");
    assert.equal(await page.locator("#help-page").isVisible(), true);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#help-page").isVisible(), false);
  },

  // Fingers on a phone.
  async phone({ page, surface, text }) {
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `the page is ${width} pixels wide`);
    const client = await page.context().newCDPSession(page);
    const touch = (type, points) => client.send("Input.dispatchTouchEvent", { type, touchPoints: points });
    const box = await surface.boundingBox();
    const y = box.y + box.height / 2;
    const at = (part) => ({ x: box.x + box.width * part, y });
    // A tap selects. The whole trace is visible, so there is a slice in the middle of the first thread.
    assert.match(await text("#content"), /Click a slice/);
    const label = await page.locator(".label.thread").first().boundingBox();
    await page.touchscreen.tap(box.x + box.width / 2, label.y + 12);
    await page.waitForFunction(() => /Duration/.test(document.getElementById("content").textContent));
    const whole = await text("#range");
    // Two fingers move apart: the view zooms in.
    await touch("touchStart", [{ ...at(0.45), id: 0 }, { ...at(0.55), id: 1 }]);
    for (let i = 1; i <= 5; i++) {
      await touch("touchMove", [{ ...at(0.45 - i * 0.06), id: 0 }, { ...at(0.55 + i * 0.06), id: 1 }]);
    }
    await touch("touchEnd", []);
    await page.waitForFunction((old) => document.getElementById("range").textContent !== old, whole);
    const zoomed = await text("#range");
    // One finger moves it.
    await touch("touchStart", [{ ...at(0.8), id: 0 }]);
    for (let i = 1; i <= 5; i++) await touch("touchMove", [{ ...at(0.8 - i * 0.1), id: 0 }]);
    await touch("touchEnd", []);
    await page.waitForFunction((old) => document.getElementById("range").textContent !== old, zoomed);
  },

  // Keyboard and screen reader: no pointer at all.
  async keyboard({ page, text }) {
    for (const button of await page.locator("button:visible").all()) {
      const name = (await button.getAttribute("aria-label")) ?? (await button.textContent());
      assert.ok(name.trim(), "a button has no name");
    }
    assert.equal(await page.locator("[role=tree] [role=treeitem]").first().getAttribute("aria-level"), "1");
    const reach = async (selector) => {
      for (let i = 0; i < 40; i++) {
        await page.keyboard.press("Tab");
        if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
      }
      assert.fail(`${selector} cannot be reached by Tab`);
    };
    await reach("[role=treeitem]");
    for (let i = 0; i < 10 && !(await page.evaluate(() => document.activeElement.matches(".thread"))); i++) {
      await page.keyboard.press("ArrowDown");
    }
    assert.match(await text("#said"), /·/);
    await page.keyboard.press("Enter");
    assert.match(await text("#said"), / at .*worker/);
    assert.match(await text("#content"), /Duration/);
    await page.keyboard.press("ArrowRight");
    await reach("[role=tab]");
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true");
    const dark = async () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await dark();
    await page.emulateMedia({ colorScheme: "dark" });
    assert.notEqual(await dark(), light);
  },

  // Paper.
  async print({ page }) {
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("#tabs").isVisible(), false);
    assert.equal(await page.locator("#canvas").isVisible(), true);
    const paper = await page.pdf({ format: "A4" });
    assert.ok(paper.length > 10_000, `${paper.length} bytes of PDF`);
  },

  // A machine without programs that trace: processes, and counters of the machine.
  async machine({ page, text, tab }) {
    const group = page.locator(".label.group", { hasText: "Counters of the machine" });
    assert.equal(await group.getAttribute("aria-expanded"), "false");
    await group.click();
    await page.waitForFunction(() => document.querySelectorAll(".label.counter").length > 3);
    await tab("threads");
    assert.ok((await page.locator("#content tbody tr").count()) > 2);
    assert.match(await text("#content"), /traced/);
  },

  // A trace whose names try to become part of the page.
  async hostile({ page, text, tab }) {
    assert.equal(await page.title(), "<b>t</b> & \"x\" – Esatto report");
    assert.match(await text("#facts"), /2 slices/);
    await tab("slices");
    assert.match(await text("#content"), /<img src=x onerror=alert\(1\)>/);
    assert.match(await text("#content"), /<\/script><script>alert\(2\)<\/script>/);
    assert.equal(await page.locator("#content img, #content script").count(), 0);
  },

  // A trace that lost data says so before all else.
  async losses({ page, text }) {
    assert.equal(await page.locator("#notices").isVisible(), true);
    assert.equal(await page.locator("#notices").evaluate((notices) => notices.open), true);
    assert.match(await text("#notices"), /Losses and errors/);
    assert.match(await text("#notices"), /torn/);
  },
};

const phone = /phone/i.test(name);
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const launch = () => chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
// Now and then a browser crashes before it shows anything.
const browser = await launch().catch(launch).catch(launch);
const context = await browser.newContext({
  viewport: phone ? { width: 390, height: 844 } : { width: 1280, height: 800 },
  hasTouch: phone,
  isMobile: phone,
  offline: true,
});
const page = await context.newPage();
const complaints = [];
page.on("console", (message) => complaints.push(`console: ${message.text()}`));
page.on("pageerror", (error) => complaints.push(`error: ${error.stack}`));
page.on("dialog", (dialog) => complaints.push(`dialog: ${dialog.message()}`));
page.on("request", (request) => {
  if (!/^(file|blob|data):/.test(request.url())) complaints.push(`request: ${request.url()}`);
});
page.setDefaultTimeout(30_000);
await page.goto(pathToFileURL(file).href);
await page.waitForSelector("html[data-ready]", { timeout: 60_000 });
const frame = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
await scenarios[name]({
  page,
  facts: JSON.parse(facts),
  surface: page.locator("#surface"),
  text: async (selector) => {
    await frame();
    return (await page.locator(selector).innerText()).trim();
  },
  key: async (key) => {
    await page.keyboard.press(key);
    await frame();
  },
  tab: async (tab) => {
    await page.click(`#tab-${tab}`);
    await frame();
  },
});
await page.screenshot({ path: picture });
await browser.close();
assert.deepEqual(complaints, []);
console.log("fine");
