// Pages in headless Chromium under axe (light, dark, phone; everything unfolded) and used as a reader does (answers.mjs),
// and their source under html-validate.
// Usage: node check.mjs [--rules FILE] PAGE...   FILE: what html-validate asks for (.htmlvalidate.json). Prints a table; the exit status is 1 where something is serious.
import { existsSync, readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { HtmlValidate } from "html-validate";
import puppeteer from "puppeteer-core";
import { answers } from "./answers.mjs";

const SERIOUS = ["serious", "critical"];
const VIEWS = [
  { name: "light", theme: "light", width: 1100 },
  { name: "dark", theme: "dark", width: 1100 },
  { name: "phone", theme: "light", width: 390 },
];
const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const chromium = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
if (!chromium) {
  console.error("check-pages: there is no Chromium\n  next: apt-get install chromium, or name one: CHROMIUM=/path scripts/check-pages");
  process.exit(3);
}
const given = process.argv.slice(2);
const rules = given[0] === "--rules" ? given.splice(0, 2)[1] : ".htmlvalidate.json";
const validator = new HtmlValidate(JSON.parse(readFileSync(new URL(rules, import.meta.url), "utf8")));
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] });
const details = [];
let serious = 0;

async function accessible(path, view) {
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("requestfailed", (request) => errors.push(`not loaded: ${request.url()}`));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.setViewport({ width: view.width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: view.theme }]);
  await page.goto(`file://${path}`);
  await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
  await new Promise((done) => setTimeout(done, 500)); // the page's script answers to what was unfolded
  const charts = await page.$$eval("svg[role=application]", (found) => found.length);
  const drawn = await page.$$eval("svg:has([data-heads])", (found) => found.length);
  if (charts !== drawn) errors.push(`${drawn - charts} of ${drawn} charts do not answer`);
  const { violations } = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"], preload: false })`);
  await page.close();
  const found = violations.map(({ impact, id, help, nodes }) => ({ impact, id, help, places: nodes.map((node) => node.html) }));
  return [...found, ...errors.map((help) => ({ impact: "critical", id: "script", help, places: [] }))];
}

function count(found, impacts) {
  return found.filter(({ impact }) => impacts.includes(impact)).reduce((sum, { places }) => sum + Math.max(1, places.length), 0);
}

console.log(`${"page".padEnd(36)}${"view".padEnd(8)}${"serious".padStart(8)}${"moderate".padStart(10)}${"minor".padStart(7)}`);
for (const path of given.map((one) => resolve(one))) {
  for (const view of VIEWS) {
    const found = await accessible(path, view);
    const counts = [count(found, SERIOUS), count(found, ["moderate"]), count(found, ["minor"])];
    serious += counts[0];
    console.log(`${basename(path, ".html").padEnd(36)}${view.name.padEnd(8)}${counts.map((one, at) => String(one).padStart([8, 10, 7][at])).join("")}`);
    for (const { impact, id, help, places } of found) details.push(`${basename(path)} (${view.name}): ${impact}, ${id}: ${help}\n    ${places.slice(0, 3).join("\n    ").slice(0, 400)}`);
  }
  const silent = await answers(browser, path);
  serious += silent.length;
  console.log(`${basename(path, ".html").padEnd(36)}${"answers".padEnd(8)}${String(silent.length).padStart(8)}`);
  for (const words of silent) details.push(`${basename(path)}: ${words}`);
  const report = await validator.validateString(readFileSync(path, "utf8"), path);
  const messages = report.results.flatMap((result) => result.messages);
  serious += messages.length;
  console.log(`${basename(path, ".html").padEnd(36)}${"HTML".padEnd(8)}${String(messages.length).padStart(8)}`);
  for (const { line, column, ruleId, message } of messages.slice(0, 10)) details.push(`${basename(path)}:${line}:${column}: ${ruleId}: ${message}`);
}
await browser.close();
for (const one of details) console.log(one);
process.exit(serious ? 1 : 0);
