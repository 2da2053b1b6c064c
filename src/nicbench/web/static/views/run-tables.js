// Tables of a run's page: where frames were lost, the trials a page at a time, and the log.

import { fill, h } from "../lib/dom.js";
import { bits, count, percent, rate, time, words } from "../lib/text.js";

const ROWS = 20;
const HEADS = ["id", "what", "load", "lost", "latency 50 % / 99 %", "verdict"];
const MOST_LINES = 500;

/** Where the frames of these trials were lost, by place and counter, the most first. */
export function lostFrames(samples, name) {
  const trials = samples.filter((item) => item.k === "trial");
  if (!trials.length) return "No trial has ended yet.";
  const places = new Map();
  let [lost, sent, unexplained] = [0, 0, 0];
  for (const trial of trials) {
    lost += trial.lost;
    sent += trial.sent;
    unexplained += trial.unexplained ?? 0;
    for (const [place, counter, frames] of trial.ledger ?? [])
      places.set(`${place} ${counter}`, (places.get(`${place} ${counter}`) ?? 0) + frames);
  }
  const told = [...places]
    .sort((one, other) => other[1] - one[1])
    .map(([place, frames]) => `${count(frames)} at ${place}`);
  if (unexplained) told.push(`${count(unexplained)} at a place that no counter shows`);
  const where = lost === 0 ? "none" : told.length ? told.join(", ") : "no counter says where";
  return `${name}: lost ${count(lost)} of ${count(sent)} frames in ${trials.length} trials: ${where}.`;
}

/** What was found, a row for each result. */
export class Results {
  constructor() {
    const heads = ["result", "found", "verdict"].map((text) => h("th", { scope: "col", class: "words" }, text));
    this.body = h("tbody");
    this.element = h(
      "section",
      { hidden: true },
      h("h2", {}, "Results"),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Results" },
        h("table", {}, h("thead", {}, h("tr", {}, heads)), this.body),
      ),
    );
  }

  show(results, nameOf) {
    this.element.hidden = results.length === 0;
    const cells = (item) => [nameOf(item), item.found ?? "–", item.verdict];
    fill(
      this.body,
      results.map((item) => h("tr", {}, ...cells(item).map((text) => h("td", { class: "words" }, text)))),
    );
  }
}

/** The trials and rounds, the last first. */
export class Trials {
  constructor() {
    this.first = 0;
    this.body = h("tbody");
    const head = HEADS.map((text, index) =>
      h("th", { scope: "col", class: [1, 5].includes(index) ? "words" : null }, text),
    );
    this.where = h("span", { class: "caption", role: "status" });
    this.newer = h("button", { type: "button", onclick: () => this.move(-ROWS) }, "Newer");
    this.older = h("button", { type: "button", onclick: () => this.move(ROWS) }, "Older");
    this.element = h(
      "div",
      {},
      h(
        "div",
        { class: "scroll trials", tabindex: "0", role: "region", "aria-label": "Trials and rounds" },
        h("table", {}, h("thead", {}, h("tr", {}, head)), this.body),
      ),
      h("p", { class: "buttons" }, this.newer, " ", this.older, " ", this.where),
    );
  }

  show(samples, nameOf) {
    Object.assign(this, { samples, nameOf });
    this.first = Math.max(0, Math.min(this.first, samples.length - ROWS));
    const end = samples.length - this.first;
    const rows = samples.slice(Math.max(0, end - ROWS), end).reverse();
    fill(
      this.body,
      rows.map((item) => this.row(item)),
    );
    this.where.textContent = samples.length
      ? `${this.first + 1} to ${this.first + rows.length} of ${count(samples.length)}, the last first`
      : "none yet";
    this.newer.disabled = this.first === 0;
    this.older.disabled = this.first + rows.length >= samples.length;
  }

  move(by) {
    this.first += by;
    this.show(this.samples, this.nameOf);
  }

  row(item) {
    const verdict = `${item.verdict}${item.why ? `: ${item.why.join("; ")}` : ""}`;
    const what = [this.nameOf(item), words(item.purpose)].filter(Boolean).join(" · ");
    const load =
      item.k === "round"
        ? item.bits_per_s
          ? bits(item.bits_per_s)
          : "–"
        : item.load === undefined
          ? "any"
          : rate(item.load);
    const lost = item.k === "round" ? "–" : `${count(item.lost)} (${percent(item.loss)})`;
    const latency = item.latency ? `${time(item.latency[1])} / ${time(item.latency[2])}` : "–";
    return h(
      "tr",
      { class: item.verdict === "invalid" ? "invalid" : null },
      h("th", { scope: "row" }, item.id),
      h("td", { class: "words" }, what),
      ...[load, lost, latency].map((text, index) => h("td", { "data-label": HEADS[index + 2] }, text)),
      h("td", { class: "words" }, verdict),
    );
  }
}

/** What the run said, each thing once, the last first; a thing that is said again is counted. */
export class Log {
  constructor() {
    this.element = h("ol", { class: "log", reversed: true, tabindex: "0", "aria-label": "Log" });
    this.said = new Map();
  }

  clear() {
    this.said.clear();
    fill(this.element);
  }

  add(items) {
    for (const item of items) {
      const line = lineOf(item);
      if (line === null) continue;
      const before = this.said.get(line.text);
      if (before) {
        before.times += 1;
        before.count.textContent = ` (${before.times} times)`;
        continue;
      }
      const times = h("span", { class: "caption" });
      this.said.set(line.text, { times: 1, count: times });
      this.element.prepend(
        h("li", { class: line.level }, line.level === "info" ? null : h("b", {}, `${line.level}: `), line.text, times),
      );
      if (this.element.childElementCount > MOST_LINES) this.element.lastElementChild.remove();
    }
  }
}

function lineOf(item) {
  const info = (text) => ({ level: "info", text });
  switch (item.k) {
    case "note":
      return { level: item.level, text: item.text };
    case "stage":
    case "turn":
    case "waiting":
    case "said":
      return info(item.text);
    case "run":
      return info(
        item.resumed ? "the run goes on" : `the run begins, with nicbench ${item.version} and seed ${item.seed}`,
      );
    case "test":
      return info(`test ${item.test} (${item.method}) begins: ${item.points} points`);
    case "result":
      return info(`${[item.conf, item.test, item.point].filter(Boolean).join(" · ")}: ${item.verdict}`);
    case "end":
      return info(item.complete ? `the run is complete: ${item.verdict}` : "the run ended early");
    case "trial":
    case "round":
      return item.why
        ? { level: "warning", text: `${item.verdict}: ${item.why[0].replaceAll(/\d[\d.,]*/g, "…")}` }
        : null;
    default:
      return null;
  }
}
