// A heat map of distributions over time: a column for each sample, a row for each bin of latency, on a log axis.

import { Chart, colour } from "./chart.js";
import { h, say } from "./dom.js";
import { clock, count, percent, time } from "./text.js";

const PER_DECADE = 10; // stats/latency.py
const SHADES = 64;
const FAINTEST = 1e-6; // the share of a sample's frames that has the first colour
const STOPS = 5;
const MOST_ROWS = 200;
const bound = (bin) => 10 ** (bin / PER_DECADE);
const binOf = (value) => Math.floor(PER_DECADE * Math.log10(value) + 1e-9);
const totals = new WeakMap();

/** The number of frames that a sample has in all bins. */
function total(sample) {
  if (!totals.has(sample)) totals.set(sample, sample.bins[1].reduce((sum, frames) => sum + frames, 0));
  return totals.get(sample);
}

/** The upper end of the bin below which a share of these counts lies. */
function quantile([first, counts], share) {
  let left = counts.reduce((sum, frames) => sum + frames, 0) * share;
  const at = counts.findIndex((frames) => (left -= frames) <= 0);
  return bound(first + (at < 0 ? counts.length : at + 1));
}

/** The distribution of all samples together, as a first bin and the counts from there on. */
function summed(samples) {
  const counts = new Map();
  for (const { bins } of samples)
    bins[1].forEach((frames, at) => counts.set(bins[0] + at, (counts.get(bins[0] + at) ?? 0) + frames));
  const bins = [...counts.keys()].sort((one, other) => one - other);
  const [first, last] = [bins[0], bins.at(-1)];
  return [first, Array.from({ length: last - first + 1 }, (_, at) => counts.get(first + at) ?? 0)];
}

/** One heat map. `words(sample)` says of a sample what it is of. */
export class Heat {
  constructor(place, { title, about, words }) {
    Object.assign(this, { what: "frames", words, samples: [], bin: null, range: [1, 10] });
    this.chart = new Chart(place, {
      title,
      about,
      series: ["lowest", "highest"].map((label) => ({ label, colour: "--muted", form: "none" })),
      x: { label: "since the beginning", value: (at) => this.clock(at), whole: true },
      y: { label: "latency", value: time, kind: "log", range: () => this.range },
      describe: (index, height) => this.describe(index, height),
      paint: (plot) => this.paint(plot),
      wide: true,
    });
    const { area, names, figure } = this.chart;
    names.hidden = true;
    this.summary = h("p", { class: "caption", id: "heat-summary" });
    this.table = h("tbody");
    this.numbers = h(
      "details",
      { class: "numbers", ontoggle: () => this.list() },
      h("summary", {}, "The distributions as a table"),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Latency distributions" },
        h("table", {}, h("thead", {}, h("tr", {}, this.heads())), this.table),
      ),
    );
    figure.append(
      h(
        "p",
        { class: "caption heat-legend" },
        h("span", {}, "share of a column: one in a million or less "),
        h("span", { class: "heat-scale", "aria-hidden": "true" }),
        h("span", {}, " all. "),
        h("span", { class: "heat-invalid", "aria-hidden": "true" }),
        h("span", {}, " beneath a column: the trial or round is invalid."),
      ),
      this.summary,
      this.numbers,
    );
    area.setAttribute("aria-describedby", "heat-summary");
    area.addEventListener("keydown", (event) => this.climb(event));
  }

  /** Shows the samples that have a distribution, in their order. */
  set(samples) {
    this.samples = samples.filter((sample) => sample.bins);
    if (!this.samples.length) {
      this.chart.set([[], [], []]);
      return;
    }
    this.what = this.samples.every((sample) => sample.k === "round") ? "requests" : "frames";
    this.sum = summed(this.samples);
    const [first, counts] = this.sum;
    this.range = [bound(first - 0.5), bound(first + counts.length + 0.5)];
    this.chart.set([
      this.samples.map((_, index) => index + 1),
      this.samples.map(({ bins }) => bound(bins[0])),
      this.samples.map(({ bins }) => bound(bins[0] + bins[1].length)),
    ]);
    this.summarize();
    this.list();
  }

  clock(at) {
    const sample = this.samples[Math.round(at) - 1];
    return sample?.at === undefined ? "" : this.after(sample);
  }

  /** When a sample ended: in tenths of seconds where several did in one. */
  after({ at }) {
    const seconds = this.samples.map((sample) => Math.round(sample.at));
    const isClose = seconds.at(-1) < 60 && new Set(seconds).size < seconds.length;
    return isClose ? `${at.toFixed(1)} s` : clock(at);
  }

  describe(index, height) {
    const sample = this.samples[index];
    this.bin = height === null ? this.bin : binOf(height);
    const when = sample.at === undefined ? "" : ` · after ${this.after(sample)}`;
    return `${this.binWords(sample)} · ${this.words(sample)}${when}`;
  }

  binWords(sample) {
    const [first, counts] = sample.bins;
    if (this.bin === null) return `${time(bound(first))} to ${time(bound(first + counts.length))}`;
    const frames = counts[this.bin - first] ?? 0;
    const share = frames ? ` (${percent(frames / total(sample))})` : "";
    return `${time(bound(this.bin))} to ${time(bound(this.bin + 1))}: ${count(frames)} ${this.what}${share}`;
  }

  /** Up and down move from bin to bin within the column that is told. */
  climb(event) {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (by === undefined || !this.samples.length) return;
    event.preventDefault();
    const index = Math.min(this.chart.at ?? this.samples.length - 1, this.samples.length - 1);
    const [first, counts] = this.samples[index].bins;
    const from = this.bin ?? (by > 0 ? first - 1 : first + counts.length);
    this.bin = Math.min(first + counts.length - 1, Math.max(first, from + by));
    this.chart.zoom.reach(index + 1);
    const { plot } = this.chart;
    plot.setCursor({ left: plot.valToPos(index + 1, "x"), top: plot.valToPos(bound(this.bin + 0.5), "y") });
  }

  summarize() {
    const { samples } = this;
    const slowest = samples.reduce((one, other) => (top(other) > top(one) ? other : one));
    const [half, most] = [0.5, 0.999].map((share) => time(quantile(this.sum, share)));
    say(
      this.summary,
      `Of all ${this.what} of these ${count(samples.length)} columns, half took less than ${half} and 99.9 % less ` +
        `than ${most}; the slowest were in ${slowest.id}, less than ${time(top(slowest))}.`,
    );
  }

  heads() {
    const heads = ["id", "ended after", "least", "50 %", "99 %", "99.9 %", "most", "count", "verdict"];
    return heads.map((text, at) => h("th", { scope: "col", class: at === 8 ? "words" : null }, text));
  }

  /** The table is made where it is open; bounds are those of bins, as in the picture. */
  list() {
    if (!this.numbers.open) return;
    const rows = this.samples
      .slice(-MOST_ROWS)
      .reverse()
      .map((sample) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, sample.id),
          h("td", {}, sample.at === undefined ? "–" : this.after(sample)),
          h("td", {}, `≥ ${time(bound(sample.bins[0]))}`),
          [0.5, 0.99, 0.999].map((share) => h("td", {}, `< ${time(quantile(sample.bins, share))}`)),
          h("td", {}, `< ${time(top(sample))}`),
          h("td", {}, count(total(sample))),
          h("td", { class: "words" }, sample.verdict),
        ),
      );
    this.table.replaceChildren(...rows);
  }

  /** Draws the columns in view; where several share a pixel, their frames are added up. */
  paint(plot) {
    const { ctx, bbox } = plot;
    const { min, max } = plot.scales.x;
    const [from, to] = [Math.max(1, Math.ceil(min - 0.5)), Math.min(this.samples.length, Math.floor(max + 0.5))];
    const edge = (at) => Math.round(plot.valToPos(at - 0.5, "x", true));
    const shades = ramp();
    const muted = colour("--muted");
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (let at = from; at <= to; ) {
      const left = edge(at);
      let next = at + 1;
      while (next <= to && edge(next) <= left) next += 1;
      const [right, column] = [Math.max(left + 1, edge(next)), this.samples.slice(at - 1, next - 1)];
      paintColumn(plot, column, left, right - left > 4 ? right - left - 1 : right - left, shades);
      if (column.some((sample) => sample.verdict === "invalid")) {
        ctx.fillStyle = muted;
        ctx.fillRect(left, bbox.top + bbox.height - 4 * devicePixelRatio, right - left, 4 * devicePixelRatio);
      }
      at = next;
    }
    ctx.restore();
  }
}

const top = ({ bins: [first, counts] }) => bound(first + counts.length);

function paintColumn({ ctx, valToPos }, column, left, width, shades) {
  const frames = column.reduce((sum, sample) => sum + total(sample), 0);
  const [first, counts] = summed(column);
  for (const [at, found] of counts.entries()) {
    if (!found) continue;
    const bin = first + at;
    const depth = 1 - Math.log10(found / frames) / Math.log10(FAINTEST);
    ctx.fillStyle = shades[Math.round(Math.min(1, Math.max(0, depth)) * (SHADES - 1))];
    const [low, high] = [valToPos(bound(bin), "y", true), valToPos(bound(bin + 1), "y", true)];
    ctx.fillRect(left, Math.round(high), width, Math.max(1, Math.round(low) - Math.round(high)));
  }
}

/** The colours from few to all, between the stops that the style has for light and dark. */
function ramp() {
  const stops = Array.from({ length: STOPS }, (_, at) => {
    const hex = colour(`--heat-${at + 1}`);
    return [1, 3, 5].map((from) => Number.parseInt(hex.slice(from, from + 2), 16));
  });
  return Array.from({ length: SHADES }, (_, shade) => {
    const place = (shade / (SHADES - 1)) * (STOPS - 1);
    const below = Math.min(STOPS - 2, Math.floor(place));
    const mixed = stops[below].map((part, at) => part + (stops[below + 1][at] - part) * (place - below));
    return `rgb(${mixed.map(Math.round).join(" ")})`;
  });
}
