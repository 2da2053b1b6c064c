// The charts of one point of a run: the search as it converges, loss against load, latency, and rates over time.

import { Chart } from "../lib/chart.js";
import { h } from "../lib/dom.js";
import { Heat } from "../lib/heat.js";
import { bits, clock, count, percent, rate, time, words } from "../lib/text.js";

const isInvalid = (trial) => trial.verdict === "invalid";
/** How a trial is drawn: by its verdict, and by whether frames were lost. */
const KINDS = [
  {
    label: "● no loss",
    colour: "--good",
    form: "circle",
    is: (trial) => trial.verdict === "valid" && trial.loss === 0,
  },
  {
    label: "▲ loss",
    colour: "--series-2",
    form: "triangle",
    is: (trial) => trial.verdict === "valid" && trial.loss > 0,
  },
  {
    label: "■ adjusted for others on the core",
    colour: "--series-4",
    form: "square",
    is: (trial) => trial.verdict === "adjusted",
  },
  { label: "✕ invalid", colour: "--muted", form: "cross", is: isInvalid },
];
const PERCENTILES = ["minimum", "50 %", "99 %", "99.9 %", "maximum"];

/** All charts of a run's page; `draw` is given the trials of the chosen point, and all of them for the time axis. */
export class Charts {
  constructor(place) {
    const load = { label: "load of each port", value: rate, range: () => this.window };
    this.near = h("input", { type: "checkbox", checked: true, onchange: () => this.draw(...this.drawn) });
    this.zoom = h(
      "p",
      { class: "caption wide-row" },
      h("label", {}, this.near, " show what lies near the bounds; trials far from them stand at the edge"),
    );
    place.append(this.zoom);
    const number = { label: "trial", value: (value) => String(value), whole: true };
    this.search = new Chart(place, {
      title: "The search",
      about: "Each trial at its load; the lines are the highest load without loss and the lowest with it.",
      series: [
        ...KINDS,
        { label: "highest without loss", colour: "--good", form: "step" },
        { label: "lowest with loss", colour: "--series-2", form: "step", dash: [6, 4] },
      ],
      x: number,
      y: load,
      describe: (index) => this.words(this.trials[index]),
    });
    this.loss = new Chart(place, {
      title: "Loss against load",
      about: "The lower part of the axis is logarithmic.",
      series: KINDS,
      x: load,
      y: { label: "share lost", value: percent, kind: "loss" },
      describe: (index) => this.words(this.byLoad[index]),
    });
    this.latency = new Chart(place, {
      title: "Latency",
      about: "Percentiles of each trial.",
      x: number,
      y: { label: "one way", value: time, kind: "log" },
      series: PERCENTILES.map((label, index) => ({
        label,
        colour: `--series-${index + 1}`,
        form: "line",
        dots: true,
        dash: index % 4 === 0 ? [4, 4] : undefined,
      })),
    });
    this.rates = new Chart(place, {
      title: "Rates over time",
      about:
        "Frames of all ports together, by when a trial ended; where a trial was counted in intervals, each of them.",
      series: [
        { label: "sent", colour: "--series-7", form: "line", dash: [4, 4] },
        { label: "received", colour: "--series-1", form: "line", dots: true },
      ],
      x: { label: "since the beginning", value: clock },
      y: { label: "rate", value: rate },
    });
    this.rounds = new Chart(place, {
      title: "Rounds",
      about: "What the tools moved in each round.",
      series: [
        { label: "valid", colour: "--series-1", form: "circle" },
        { label: "invalid", colour: "--muted", form: "cross" },
      ],
      x: { label: "round", value: (value) => String(value), whole: true },
      y: { label: "moved", value: bits },
      describe: (index) => this.roundWords(this.roundsShown[index]),
    });
    this.heat = new Heat(place, {
      title: "Latency over time",
      about: "How many frames took how long: a column for each trial or round, a row for each step of latency.",
      words: (item) => (item.k === "round" ? this.roundWords(item) : this.words(item)),
    });
  }

  draw(wanted, samples) {
    this.drawn = [wanted, samples];
    this.trials = wanted.filter((item) => item.k === "trial");
    this.byLoad = this.trials.filter((trial) => trial.load !== undefined).sort((one, other) => one.load - other.load);
    this.roundsShown = wanted.filter((item) => item.k === "round" && item.bits_per_s);
    const numbers = this.trials.map((_, index) => index + 1);
    const loads = this.trials.map((trial) => trial.load ?? trial.sent_per_s ?? null);
    const searches = this.trials.some((trial) => trial.purpose === "search");
    const found = bounds(this.trials);
    const window = searches ? around(found, loads) : null;
    this.zoom.hidden = window === null;
    this.window = this.near.checked ? window : null;
    const edge = this.window === null ? 0 : (this.window[1] - this.window[0]) * 0.02;
    const inside = this.window?.map((bound, index) => bound + (index === 0 ? edge : -edge));
    const held = (values) =>
      this.window === null
        ? values
        : values.map((value) => (value === null ? null : Math.min(inside[1], Math.max(inside[0], value))));
    this.search.set(searches ? [numbers, ...byKind(this.trials, held(loads)), ...found.map(held)] : [[]]);
    this.loss.set([
      this.byLoad.map((trial) => trial.load),
      ...byKind(
        this.byLoad,
        this.byLoad.map((trial) => trial.loss),
      ),
    ]);
    const timed = this.trials.some((trial) => trial.latency);
    this.latency.set(
      timed
        ? [numbers, ...PERCENTILES.map((_, index) => this.trials.map((trial) => positive(trial.latency?.[index])))]
        : [[], ...PERCENTILES.map(() => [])],
    );
    this.heat.set(wanted);
    this.rates.set(overTime(samples.filter((item) => item.k === "trial" && item.at !== undefined)));
    const valid = (wanted) => this.roundsShown.map((round) => (isInvalid(round) === wanted ? null : round.bits_per_s));
    this.rounds.set([this.roundsShown.map((_, index) => index + 1), valid(true), valid(false)]);
  }

  words(trial) {
    const load = trial.load === undefined ? "as fast as possible" : rate(trial.load);
    const found = trial.why ? `: ${trial.why.join("; ")}` : "";
    const lost = `lost ${count(trial.lost)} of ${count(trial.sent)} (${percent(trial.loss)})`;
    return `${trial.id} ${words(trial.purpose)} · ${load} · ${lost} · ${trial.verdict}${found}`;
  }

  roundWords(round) {
    const verdict = `${round.verdict}${round.why ? `: ${round.why.join("; ")}` : ""}`;
    return [round.id, round.point, round.said, verdict].filter(Boolean).join(" · ");
  }
}

const positive = (value) => (value > 0 ? value : null);

function byKind(trials, values) {
  return KINDS.map((kind) => trials.map((trial, index) => (kind.is(trial) ? values[index] : null)));
}

/** The bounds after each trial: the highest load that passed without loss, and the lowest at which frames were lost. */
function bounds(trials) {
  const [below, above] = [[], []];
  let [highest, lowest] = [null, null];
  for (const trial of trials) {
    if (!isInvalid(trial) && trial.load !== undefined) {
      if (trial.loss > 0) lowest = Math.min(lowest ?? Infinity, trial.load);
      else highest = Math.max(highest ?? 0, trial.load);
    }
    below.push(highest);
    above.push(lowest);
  }
  return [below, above];
}

/** The loads around the last bounds, as low and high; null where all trials lie near them anyway. */
function around([below, above], loads) {
  const [low, high] = [below.at(-1), above.at(-1)];
  if (low === null || high === null || low === undefined) return null;
  const room = Math.max(high - low, high * 0.005) * 6;
  const window = [Math.max(0, Math.min(low, high) - room), Math.max(low, high) + room];
  return loads.some((load) => load !== null && (load < window[0] || load > window[1])) ? window : null;
}

/** Sent and received rates by time; a trial that was counted in intervals has a point for each. */
function overTime(trials) {
  const rows = [];
  let before = -Infinity;
  for (const trial of trials) {
    const [interval, received] = trial.series ?? [0, []];
    const began = trial.at - interval * received.length;
    const fits = received.length > 0 && began >= before; // the time of a simulated trial is computed, not spent
    before = trial.at;
    if (fits) {
      received.forEach((frames, index) =>
        rows.push([began + interval * (index + 1), trial.sent_per_s ?? null, frames / interval]),
      );
    } else rows.push([trial.at, trial.sent_per_s ?? null, trial.received_per_s ?? null]);
  }
  rows.sort((one, other) => one[0] - other[0]);
  return [0, 1, 2].map((column) => rows.map((row) => row[column]));
}
