// What the views of many runs have in common: the choice of a value, what divides it, a chart, files, and the address.

import { fill, h, say, visible, wordsOf } from "./dom.js";
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
  square: "■ adjusted",
  triangle: "▲ imported",
  arrow: "▼ below its mark: no load that was tried passed",
  left: "◀ left of its mark: no load that was tried passed",
  corner: "◣ below and left of its mark: no load that was tried passed",
  cross: "✕ disturbed or incomplete: shown, not relied on",
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
    this.files = h("p", { class: "buttons" });
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
    let again = AGAIN_MS;
    try {
      const answer = await fetch(`${this.api}?${this.serverQuery()}`);
      if (number !== this.asked) return;
      say(document.getElementById("link"), "");
      const text = answer.ok ? await answer.text() : await wordsOf(answer);
      if (number !== this.asked) return;
      if (answer.ok) again = this.take(text);
      else say(this.status, text);
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
    fill(this.choice, this.fields(found));
    this.drawDivisions(found);
    if (held) document.querySelector(`[data-name="${CSS.escape(held)}"]`)?.focus();
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
    say(this.marks, Object.keys(MARKS).filter((shape) => shapes.has(shape)).map((shape) => MARKS[shape]).join(" · "));
    const unplaced = found.series.reduce((sum, each) => sum + (each.unplaced ?? 0), this.chart.unplaced);
    const drawn = this.chart.rows.length;
    const thinned = figures - unplaced - unfit - drawn;
    const runs = found.series.length
      ? `${several(figures, "figure", "figures")} in ${count(found.series.length)} series`
      : "No figures match";
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
    this.drawFiles(found);
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
      this.box("zero", "from 0"),
    ];
  }

  /** A list of [value, text] whose choice is `name` in the address; `also` are other changes then. */
  select(name, label, options, chosen, also = {}) {
    const list = h(
      "select",
      { "data-name": name, onchange: (event) => this.address.set({ ...also, [name]: event.target.value, off: null }) },
      options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
    );
    return h("label", {}, `${label} `, list);
  }

  box(name, label) {
    const change = (event) => this.address.set({ [name]: event.target.checked ? "1" : null });
    return h(
      "label",
      {},
      h("input", { type: "checkbox", "data-name": name, checked: this.query.has(name), onchange: change }),
      ` ${label}`,
    );
  }

  drawDivisions(found) {
    const chosen = found.by;
    const set = (keys) => this.address.set({ by: keys.length ? keys : "", off: null });
    const toggle = (key) => () =>
      set(chosen.includes(key) ? chosen.filter((each) => each !== key) : [...chosen, key]);
    const isPlain = ({ key }) => !key.includes(":");
    const shown = found.keys.filter((each) => isPlain(each) || chosen.includes(each.key));
    const others = found.keys.filter((each) => !isPlain(each) && !chosen.includes(each.key));
    const add = h(
      "select",
      { "aria-label": "divide by another setting", onchange: (event) => set([...chosen, event.target.value]) },
      h("option", { value: "" }, "another setting …"),
      others.map(({ key, label }) => h("option", { value: key }, label)),
    );
    fill(
      this.divide,
      h("legend", {}, "Split by"),
      shown.map(({ key, label }) =>
        h("label", {}, h("input", { type: "checkbox", "data-name": `by:${key}`, checked: chosen.includes(key), onchange: toggle(key) }), ` ${label}`),
      ),
      others.length ? add : null,
    );
  }

  drawFiles(found) {
    const name = `${found.test}-${found.value}`.replaceAll(/[^A-Za-z0-9._-]+/g, "-");
    const query = this.serverQuery();
    const none = this.chart.rows.length === 0;
    fill(
      this.files,
      this.query.has("view")
        ? [h("button", { type: "button", onclick: () => this.address.set({ view: null }) }, "Show all"), " "]
        : null,
      h("span", { class: "caption" }, "download: "),
      h("button", { type: "button", disabled: none, onclick: () => keepPng(this.chart, `${name}.png`) }, "PNG"),
      " ",
      h("button", { type: "button", disabled: none, onclick: () => keepSvg(this.chart, `${name}.svg`) }, "SVG"),
      " ",
      h("a", { href: `${this.api}.csv?${query}`, download: `${name}.csv` }, "CSV"),
      " ",
      h("a", { href: `${this.api}.json?${query}`, download: `${name}.json` }, "JSON"),
    );
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

/** What a chart shows, with the parameters that were chosen. */
function titleOf(found) {
  const given = Object.entries(found.given).filter(([, value]) => value !== ANY);
  return [`${found.test}: ${found.label}`, ...given.map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`)].join(", ");
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
