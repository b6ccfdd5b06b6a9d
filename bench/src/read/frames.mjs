// Measures the page of a report in a browser: frames.mjs MODULES BROWSER PAGE WORD
//
// Prints JSON: seconds from the request to the ready page, milliseconds of frames while the page
// pans, and milliseconds of a search.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, executablePath, file, word] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)("playwright-core");
const launch = () => chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
// Now and then a browser crashes before it shows anything.
const browser = await launch().catch(launch).catch(launch);
const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, offline: true })).newPage();
page.setDefaultTimeout(60_000);
await page.goto(pathToFileURL(file).href);
await page.waitForSelector("html[data-ready]");
const ready = await page.evaluate(
  () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() / 1000)))),
);

// Zooms in to where details are, then pans while a key is held.
await page.locator("#surface").focus();
for (let step = 0; step < 8; step++) await page.keyboard.press("w");
await page.waitForTimeout(500);
await page.evaluate(() => {
  window.frames_ms = [];
  let before = 0;
  const note = (now) => {
    if (before > 0) window.frames_ms.push(now - before);
    before = now;
    if (window.frames_ms !== null) requestAnimationFrame(note);
  };
  requestAnimationFrame(note);
});
await page.keyboard.down("d");
await page.waitForTimeout(2500);
await page.keyboard.up("d");
await page.keyboard.down("a");
await page.waitForTimeout(2500);
await page.keyboard.up("a");
const frames = await page.evaluate(() => window.frames_ms.toSorted((a, b) => a - b));

await page.locator("#surface").focus();
await page.keyboard.press("/");
await page.keyboard.type(word);
const search = await page.evaluate(async () => {
  const matches = document.getElementById("matches");
  const begin = performance.now();
  const event = new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(event);
  while (!/ of /.test(matches.textContent)) await new Promise((done) => setTimeout(done, 0));
  return performance.now() - begin;
});
await browser.close();
const at = (part) => frames[Math.min(frames.length - 1, Math.floor(frames.length * part))];
console.log(JSON.stringify({ ready, median: at(0.5), slowest: at(0.99), search }));
