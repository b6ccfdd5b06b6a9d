// Opens what `esatto view` and `esatto ui-bridge` serve in a browser, and plays one scenario. Runs
// on a machine that has no network but loopback.
//
// browser.mjs MODULES ESATTO PICTURE UI CERTIFICATE SCENARIO ARGUMENT…
//
// UI is a folder with Perfetto's UI, for scenarios in which a public site serves it: this script
// plays that site, with CERTIFICATE.key and CERTIFICATE.crt.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import https from "node:https";
import { createRequire } from "node:module";

const [modules, esatto, picture, ui, certificate, name, ...args] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)("playwright-core");

// v52 has a directive in its own policy that browsers no longer know.
const KNOWN_COMPLAINT = "Unrecognized Content-Security-Policy directive 'navigate-to'.";

// Starts our command. `line` waits for a line that matches, on either output.
function start(...commandLine) {
  const child = spawn(esatto, commandLine, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const listeners = new Set();
  for (const output of [child.stdout, child.stderr]) {
    output.on("data", (bytes) => {
      said += bytes;
      for (const listener of listeners) listener();
    });
  }
  const ended = new Promise((done) => child.on("close", (code) => done(code)));
  return {
    ended,
    said: () => said,
    stop: () => child.kill("SIGINT"),
    line: (pattern) =>
      new Promise((done, fail) => {
        const look = () => {
          const found = pattern.exec(said);
          if (found) done(found);
        };
        listeners.add(look);
        ended.then((code) => fail(new Error(`esatto ended with ${code}: ${said}`)));
        look();
      }),
  };
}

// Waits until the UI has loaded a trace, and returns the number of its slices.
async function loaded(page) {
  await page.waitForFunction(() => window.app?.trace && !window.app.isLoadingTrace);
  return page.evaluate(async () => {
    const result = await window.app.trace.engine.query("select count(*) as n from slice");
    return Number(result.iter({}).get("n"));
  });
}

// Finds a slice by the search of the UI, and waits for its details.
async function search(page, slice) {
  await page.locator(".pf-omnibox input, .omnibox input").first().click();
  await page.keyboard.type(slice);
  await page.keyboard.press("Enter");
  // The number of matches shows that the search has ended. Then Enter goes to the next one.
  await page.getByText(/^\d+ \/ [1-9]\d*$/).waitFor();
  await page.keyboard.press("Enter");
  await page.waitForFunction((wanted) => {
    const text = document.body.innerText;
    return /\bDuration\b/.test(text) && new RegExp(`Name\\s+${wanted}\\b`).test(text);
  }, slice);
}

const scenarios = {
  // The real UI shows the trace. It asks nobody but us.
  async ui({ page, complaints, requests, visits }) {
    const [trace, copy, slices] = args;
    const view = start("view", "--no-open", "--ui", copy, trace);
    const [, url] = await view.line(/^(http:\S+)\n/m);
    assert.match(url, /^http:\/\/127\.\d+\.\d+\.\d+:\d+\/[0-9a-f]{32}\/$/);
    await page.goto(url);
    assert.equal(await loaded(page), Number(slices));
    await search(page, "frame");
    assert.equal(await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length), 0);
    assert.equal(await page.evaluate(() => window.isSecureContext), true);
    await page.screenshot({ path: picture });
    // The page that is loaded again opens the trace again.
    await page.reload();
    assert.equal(await loaded(page), Number(slices));
    const elsewhere = requests.filter((request) => !request.startsWith(url));
    assert.deepEqual(elsewhere, []);
    assert.ok(requests.some((request) => request.endsWith(".wasm")), "the trace processor comes from us");
    assert.deepEqual(complaints.filter((complaint) => complaint !== KNOWN_COMPLAINT), []);
    // The policy stops what the page tries nevertheless, and this test would notice.
    const complaint = page.waitForEvent("console", (message) => /evil\.example.*Content Security Policy/.test(message.text()));
    await page.evaluate(() => {
      new Image().src = "https://evil.example/picture.png";
    });
    await complaint;
    assert.deepEqual(requests.filter((request) => !request.startsWith(url)), ["https://evil.example/picture.png"]);
    assert.deepEqual(visits, []);
    // It ends because the page is gone.
    await page.close();
    assert.equal(await view.ended, 0, view.said());
  },

  // Other pages in the same browser get nothing, not even in a frame.
  async strangers({ page, context }) {
    const [trace, copy] = args;
    const view = start("view", "--no-open", "--ui", copy, trace);
    const [, url] = await view.line(/^(http:\S+)\n/m);
    await page.goto(url);
    await loaded(page);
    const evil = await context.newPage();
    await evil.goto("https://evil.example/");
    const outcome = await evil.evaluate(async ({ url, trace }) => {
      const attempt = (options) => fetch(`${url}trace/${trace}`, options).then((answer) => `${answer.type} ${answer.status}`, () => "refused");
      const frame = document.createElement("iframe");
      const framed = new Promise((done) => (frame.onload = () => done()));
      frame.src = url;
      document.body.append(frame);
      await framed;
      return [await attempt({}), await attempt({ mode: "no-cors" })];
    }, { url, trace: trace.split("/").pop() });
    assert.deepEqual(outcome, ["refused", "refused"]);
    const framed = await evil.frames()[1].evaluate(() => document.body?.innerText ?? "").catch(() => "");
    assert.doesNotMatch(framed, /Perfetto/);
    view.stop();
    assert.equal(await view.ended, 0, view.said());
  },

  // Without a copy of the UI.
  async report({ page, complaints, requests }) {
    const [trace] = args;
    const view = start("view", "--no-open", "--report", trace);
    const [, url] = await view.line(/^(http:\S+)\n/m);
    await page.goto(url);
    await page.waitForSelector("html[data-ready]");
    assert.match(await page.locator("#facts").innerText(), /1503 slices/);
    await page.screenshot({ path: picture });
    assert.deepEqual(requests, [url]);
    assert.deepEqual(complaints, []);
    view.stop();
    assert.equal(await view.ended, 0, view.said());
  },

  // Perfetto's public site fetches the trace, and the command ends.
  async online({ page }) {
    const [trace, slices] = args;
    const view = start("view", "--no-open", "--online", trace);
    const [, url] = await view.line(/^(https:\S+)\n/m);
    assert.ok(url.startsWith("https://ui.perfetto.dev/#!/?url=http%3A%2F%2F127.0.0.1%3A9001%2F"), url);
    await page.goto(url);
    assert.equal(await loaded(page), Number(slices));
    assert.equal(await view.ended, 0, view.said());
    await page.screenshot({ path: picture });
  },

  // A person records with the recording page.
  async record({ page, context }) {
    const [producer, slices] = args;
    const bridge = start("ui-bridge");
    await bridge.line(/ws:\/\/127\.0\.0\.1:8037\/traced/);
    await page.goto("https://ui.perfetto.dev/#!/record");
    await page.getByText("Linux", { exact: true }).click();
    await page.getByText("WebSocket", { exact: true }).click();
    // The checks of the page: connection, version, state.
    await page.getByText(/^Esatto v/).waitFor();
    await page.getByText("Perfetto SDK", { exact: true }).click();
    await page.locator(".pf-probe label", { hasText: "Track events" }).click();
    await page.getByPlaceholder(/cat1/).fill("*");
    await page.keyboard.press("Tab");
    await page.getByText("Target device", { exact: true }).click();
    // The application waits until it is recorded.
    const application = spawn(producer, ["1", "20", "100", "60"], { stdio: "inherit" });
    const status = new Promise((done) => application.on("close", done));
    await page.getByText("Start tracing").click();
    assert.equal(await status, 0, "the application was recorded");
    // On a slow machine, the session has ended by itself: after 10 s, as the page asks for.
    await page.locator("button", { hasText: /Stop$/ }).click({ timeout: 5000 }).catch(() => {});
    assert.equal(await loaded(page), Number(slices));
    await page.screenshot({ path: picture });
    // A page of another origin speaks to nobody.
    const evil = await context.newPage();
    await evil.goto("https://evil.example/");
    const outcome = await evil.evaluate(() => new Promise((done) => {
      const socket = new WebSocket("ws://127.0.0.1:8037/traced");
      socket.onopen = () => done("open");
      socket.onclose = (event) => done(`closed ${event.code}`);
    }));
    assert.equal(outcome, "closed 1006");
    bridge.stop();
    assert.equal(await bridge.ended, 0, bridge.said());
  },
};

// Plays https://ui.perfetto.dev and https://evil.example.
async function publicSites(visits) {
  const types = { html: "text/html", js: "text/javascript", css: "text/css", json: "application/json", wasm: "application/wasm" };
  const options = { key: fs.readFileSync(`${certificate}.key`), cert: fs.readFileSync(`${certificate}.crt`) };
  const server = https.createServer(options, (request, response) => {
    const path = new URL(request.url, "https://ui.perfetto.dev").pathname;
    visits.push(`${request.headers.host}${path}`);
    if (request.headers.host !== "ui.perfetto.dev") {
      response.writeHead(200, { "content-type": "text/html" });
      response.end("<!doctype html><body>evil");
      return;
    }
    const file = `${ui}${path === "/" ? "/index.html" : path}`;
    fs.readFile(file, (error, bytes) => {
      response.writeHead(error ? 404 : 200, { "content-type": types[file.split(".").pop()] ?? "application/octet-stream" });
      response.end(bytes);
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return server;
}

const visits = [];
const site = await publicSites(visits);
const port = site.address().port;
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const launch = () => chromium.launch({
  executablePath,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--ignore-certificate-errors",
    // Newer browsers ask the user before a public page reaches loopback.
    "--disable-features=LocalNetworkAccessChecks",
    `--host-resolver-rules=MAP ui.perfetto.dev 127.0.0.1:${port},MAP evil.example 127.0.0.1:${port}`,
  ],
});
// Now and then a browser crashes before it shows anything.
const browser = await launch().catch(launch).catch(launch);
const context = await browser.newContext({ viewport: { width: 1600, height: 1000 } });
const page = await context.newPage();
const complaints = [];
const requests = [];
page.on("console", (message) => {
  if (message.type() === "error") complaints.push(message.text());
});
page.on("pageerror", (error) => complaints.push(`error: ${error.stack}`));
page.on("dialog", (dialog) => complaints.push(`dialog: ${dialog.message()}`));
page.on("websocket", (socket) => requests.push(socket.url()));
// Those of workers and service workers too.
context.on("request", (request) => {
  if (!/^(blob|data):/.test(request.url())) requests.push(request.url());
});
context.setDefaultTimeout(60_000);
try {
  await scenarios[name]({ page, context, complaints, requests, visits });
} catch (error) {
  await page.screenshot({ path: picture }).catch(() => {});
  console.error(complaints.join("\n"));
  throw error;
}
await browser.close();
site.close();
console.log("fine");
process.exit(0);
