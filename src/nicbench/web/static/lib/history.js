// What the views of many runs have in common: the choice of a value, what divides it, a chart, files, and the address.

import { Kept, arrange, fill, h, say, visible, wordsOf } from "./dom.js";
import { Address, filterFields, showFilters } from "./filters.js";
import { keepPng, keepSvg } from "./picture.js";
import { PointChart, shapeOf } from "./points.js";
import { count, date, formOf, several } from "./text.js";

const READING_MS = 1000;
const AGAIN_MS = 20_000;
const COLOURS = 6;
const ANY = "*";
/** What the shapes of figures mean; a chart names those that it has. */
const MARKS = {
  circle: "● valid",
  triangle: "▲ imported",
  arrow: "▼ below its mark: no load that was tried passed",
  left: "◀ left of its mark: no load that was tried passed",
  corner: "◣ below and left of its mark: no load that was tried passed",
  cross: "✕ disturbed or incomplete: shown, not relied on",
};
/** What the usual goals of a search mean; a run may allow them other losses, which its report has. */
const GOALS = {
  ndr_: "NDR: the highest rate without loss",
  pdr_: "PDR: the highest rate with the little loss that is allowed",
};
const NOT_OF_SERVER = ["view", "off", "zero", "xlog", "ylog"];

/**
 * A page over `api`. `choices(answer)` are further fields of the view, `chart(answer)` gives {x, series}, and `drawn()`
 * is called when an answer is shown.
 */
export class HistoryPage {
  constructor(main, { title, about, api, choices = () => [], chart, drawn = () => {} }) {
    Object.assign(this, { api, choices, chartOf: chart, drawn, asked: 0, timer: null, last: "" });
    this.address = new Address(() => this.show());
    this.filters = filterFields((changes) => this.address.set(changes));
    this.status = h("p", { class: "caption", role: "status" }, "Reading the runs …");
    this.choice = h("div", { class: "filters chosen" });
    this.divide = h("fieldset", { class: "choices" });
    this.kept = new Kept();
    const keep = (make, form) => () => make(this.chart, `${this.name}.${form}`);
    this.pictures = [["PNG", keepPng], ["SVG", keepSvg]].map(([text, make]) =>
      h("button", { type: "button", disabled: true, onclick: keep(make, text.toLowerCase()) }, text),
    );
    this.numbers = ["csv", "json"].map((form) => h("a", {}, form.toUpperCase()));
    this.whole = h("button", { type: "button", hidden: true, onclick: () => this.address.set({ view: null }) }, "Show all");
    this.files = h("p", { class: "buttons", hidden: true }, this.whole, " ", h("span", { class: "caption" }, "download: "));
    this.files.append(...[...this.pictures, ...this.numbers].flatMap((each) => [each, " "]));
    this.place = h("div", {});
    this.marks = h("span", {});
    this.below = h("div", {});
    const wide = window.matchMedia("(min-width: 46.01rem)").matches;
    fill(
      main,
      h("h1", {}, title),
      h("p", { class: "caption" }, about),
      this.choice,
      h(
        "details",
        { open: wide },
        h("summary", {}, "Filters and series"),
        this.divide,
        h(
          "form",
          { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
          Object.values(this.filters),
        ),
      ),
      this.status,
      this.place,
      this.files,
      this.below,
    );
    this.chart = new PointChart(this.place, {
      title,
      about: this.marks,
      x: { label: "", value: String },
      y: { label: "", value: String },
      describe: (row) => this.describe(row),
      open: (row) => window.location.assign(`/runs/${encodeURIComponent(row.run)}`),
      onwindow: (bounds) => this.address.set({ view: bounds === null ? null : bounds.map((at) => +at.toPrecision(8)).join(",") }),
    });
    this.chart.figure.hidden = true;
    this.chart.onhide = (labels) => this.address.set({ off: labels });
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.timer === null) this.show();
    });
    this.show();
  }

  get query() {
    return this.address.query;
  }

  /** What the server is asked: the address without what only the page needs. */
  serverQuery() {
    const asks = new URLSearchParams(this.query);
    for (const name of NOT_OF_SERVER) asks.delete(name);
    return asks;
  }

  /** Asks for what the address says, and shows it where it differs from what is shown. */
  async show() {
    clearTimeout(this.timer);
    const number = (this.asked += 1);
    showFilters(this.filters, this.query);
    this.drawFiles();
    let again = AGAIN_MS;
    try {
      const answer = await fetch(`${this.api}?${this.serverQuery()}`);
      if (number !== this.asked) return;
      say(document.getElementById("link"), "");
      const text = answer.ok ? await answer.text() : await wordsOf(answer);
      if (number !== this.asked) return;
      if (answer.ok) again = this.take(text);
      else say(this.status, text[0].toUpperCase() + text.slice(1));
    } catch {
      say(document.getElementById("link"), "no connection to the server; trying again");
    }
    this.timer = setTimeout(() => (document.hidden ? (this.timer = null) : this.show()), again);
  }

  /** Shows an answer where it differs from what is shown; returns after how long to ask again. */
  take(text) {
    const found = JSON.parse(text);
    const shown = `${text}?${this.query}`;
    if (shown !== this.last) {
      this.last = shown;
      if (found.ready) this.draw(found);
      else say(this.status, `The runs are being read${progress(found.reading)}.`);
    }
    return found.ready && !found.reading ? AGAIN_MS : READING_MS;
  }

  draw(found) {
    this.found = found;
    this.form = formOf(found.value, found.unit);
    const held = document.activeElement?.dataset?.name;
    arrange(this.choice, this.fields(found).filter(Boolean));
    this.drawDivisions(found);
    if (held && document.activeElement === document.body) document.querySelector(`[data-name="${CSS.escape(held)}"]`)?.focus();
    const { x, series } = this.chartOf(found);
    this.chart.hidden = new Set(this.query.getAll("off"));
    const view = (this.query.get("view") ?? "").split(",").map(Number);
    const y = {
      label: found.label,
      value: this.form,
      zero: this.query.has("zero"),
      kind: this.query.has("ylog") ? "log" : undefined,
    };
    const window = view.length === 2 && view.every(Number.isFinite) && view[0] < view[1] ? view : null;
    this.x = x;
    this.chart.show(series, { title: titleOf(found), x, y, window });
    const figures = found.series.reduce((sum, each) => sum + each.count, 0);
    const { unfit } = this.chart;
    const shapes = new Set(this.chart.rows.map(shapeOf));
    const marks = Object.keys(MARKS).filter((shape) => shapes.has(shape)).map((shape) => MARKS[shape]);
    const lines = series.some((each) => each.lines) ? ["— through the medians"] : [];
    const goal = Object.keys(GOALS).find((name) => found.value.startsWith(name));
    say(this.marks, [...marks, ...lines, ...(goal ? [GOALS[goal]] : [])].join(" · "));
    const unplaced = found.series.reduce((sum, each) => sum + (each.unplaced ?? 0), this.chart.unplaced);
    const drawn = this.chart.rows.length;
    const thinned = figures - unplaced - unfit - drawn;
    const runs = found.series.length
      ? `${several(figures, "figure", "figures")} in ${count(found.series.length)} series`
      : "No figure matches the filters";
    say(
      this.status,
      [
        runs,
        found.left_out ? `; ${several(found.left_out, "shorter series is", "shorter series are")} not shown: choose fewer runs, or divide less` : "",
        unplaced ? `; ${several(unplaced, "is", "are")} not drawn, as ${unplaced === 1 ? "its" : "their"} ${visible(x.label)} is not known` : "",
        unfit ? `; ${several(unfit, "is", "are")} not drawn, as a logarithmic axis has no place for 0 and less` : "",
        thinned > 0 ? `; ${count(drawn)} of the others are drawn: the lowest and the highest of successive ones` : "",
        found.reading ? `; runs are being read${progress(found.reading)}` : "",
        ".",
      ].join(""),
    );
    this.drawFiles();
    this.drawn(found);
  }

  /** The choices of test, value and parameters, with those of the view. */
  fields(found) {
    const parameters = Object.entries(found.parameters).map(([name, values]) =>
      this.select(
        `p.${name}`,
        name.replaceAll("_", " "),
        [[ANY, "all"], ...values.map((value) => [value, value])],
        found.given[name] ?? ANY,
      ),
    );
    const values = found.values.map(({ name, label }) => [name, label]);
    const forget = Object.fromEntries(Object.keys(found.parameters).map((name) => [`p.${name}`, null]));
    return [
      this.select("test", "test", found.tests.map((name) => [name, name]), found.test, { ...forget, value: null, view: null }),
      this.select("value", "value", values, found.value, { ...forget, view: null }),
      ...parameters,
      ...this.choices(found),
      this.box("zero", "y from 0"),
    ];
  }

  /** A list of [value, text] whose choice is `name` in the address; `also` are other changes then. */
  select(name, label, options, chosen, also = {}) {
    const made = this.kept.get(name, [label, options, also], () => {
      const change = (event) => this.address.set({ ...also, [name]: event.target.value, off: null });
      const list = h("select", { "data-name": name, onchange: change }, options.map(([value, text]) => h("option", { value }, text)));
      return h("label", {}, `${label} `, list);
    });
    made.lastElementChild.value = chosen;
    return made;
  }

  box(name, label) {
    return this.check(name, label, this.query.has(name), (isChecked) => this.address.set({ [name]: isChecked ? "1" : null }));
  }

  /** A box to tick; `set(isChecked)` is called when it is. */
  check(name, label, isChecked, set) {
    const made = this.kept.get(name, label, () => {
      const box = h("input", { type: "checkbox", "data-name": name, onchange: (event) => set(event.target.checked) });
      return h("label", {}, box, ` ${label}`);
    });
    made.firstElementChild.checked = isChecked;
    return made;
  }

  /** What divides the figures: as the address has it, where the answer may be of an earlier one. */
  divisions() {
    return this.query.has("by") ? this.query.getAll("by").filter(Boolean) : this.found.by;
  }

  drawDivisions(found) {
    const chosen = found.by;
    const set = (keys) => this.address.set({ by: keys.length ? keys : "", off: null });
    const toggle = (key) => (isChecked) =>
      set([...this.divisions().filter((each) => each !== key), ...(isChecked ? [key] : [])]);
    const isPlain = ({ key }) => !key.includes(":");
    const shown = found.keys.filter((each) => isPlain(each) || chosen.includes(each.key));
    const others = found.keys.filter((each) => !isPlain(each) && !chosen.includes(each.key));
    const add = this.kept.get("by", others, () =>
      h(
        "select",
        { "aria-label": "divide by another setting", onchange: (event) => set([...this.divisions(), event.target.value]) },
        h("option", { value: "" }, "another setting …"),
        others.map(({ key, label }) => h("option", { value: key }, label)),
      ),
    );
    const legend = this.kept.get("by legend", "", () => h("legend", {}, "Split by"));
    const boxes = shown.map(({ key, label }) => this.check(`by:${key}`, label, chosen.includes(key), toggle(key)));
    arrange(this.divide, [legend, ...boxes, ...(others.length ? [add] : [])]);
  }

  /** What can be downloaded: the chart as it is, and the numbers that the address asks for. */
  drawFiles() {
    this.files.hidden = !this.found;
    if (!this.found) return;
    this.name = `${this.found.test}-${this.found.value}`.replaceAll(/[^A-Za-z0-9._-]+/g, "-");
    this.whole.hidden = !this.query.has("view");
    for (const button of this.pictures) button.disabled = this.chart.rows.length === 0;
    for (const link of this.numbers) {
      const form = link.textContent.toLowerCase();
      link.href = `${this.api}.${form}?${this.serverQuery()}`;
      link.download = `${this.name}.${form}`;
    }
  }

  describe(row) {
    const label = this.chart.series[row.series].label;
    const interval =
      row.lower !== null && row.upper !== null && row.lower < row.upper
        ? ` (${this.form(row.lower)} to ${this.form(row.upper)})`
        : row.lower !== null && row.upper === null
          ? " or more"
          : "";
    const at = row.at === null || this.x.kind === "time" ? "" : `\n${date(row.at)}`;
    return `${this.found.label} ${row.below ? "below " : ""}${this.form(row.y)}${interval}\n${this.x.label} ${row.xBelow ? "below " : ""}${this.x.value(row.x)}\n${label}${at}\n${row.verdict}, run ${row.run}`;
  }
}

/** What a chart shows, against what, with the parameters that were chosen. */
function titleOf(found) {
  const given = Object.entries(found.given).filter(([, value]) => value !== ANY);
  const against = found.x_label ? ` against ${found.x_label}` : "";
  return [`${found.test}: ${found.label}${against}`, ...given.map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`)].join(", ");
}

const progress = (reading) => (reading ? ` (${count(reading.done)} of ${count(reading.of)})` : "");

/** The series of an answer as a chart wants them; `xs` names the column of x. */
export function seriesOf(found, xs) {
  return found.series.map((each, number) => ({
    label: visible(each.name || found.test),
    colour: `--series-${(number % COLOURS) + 1}`,
    points: { ...each, x: each[xs] },
  }));
}

/** The axis of time. */
export const TIME = { label: "begun (UTC)", value: date, kind: "time" };
