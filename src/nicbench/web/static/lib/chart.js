// A chart over uPlot: colours of the page, points by shape, values of the nearest point as text, keys to move along.

import { h, say } from "./dom.js";
import { Zoom } from "./zoom.js";

const { uPlot } = window;
const DARK = window.matchMedia("(prefers-color-scheme: dark)");
/** A colour of the page by the name of its variable. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const RADIUS = 3.5;
// A log axis that begins anywhere: marks at 1, 2 and 5 of each decade.
const STEPS_OF_LOG = {
  splits: (_, __, low, high) => {
    const marks = [];
    for (let decade = Math.floor(Math.log10(low)); decade <= Math.log10(high); decade += 1)
      marks.push(...[1, 2, 5].map((step) => step * 10 ** decade));
    return marks.filter((mark) => mark >= low && mark <= high);
  },
  filter: (_, marks) => marks,
};
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

export const SHAPES = {
  circle: (path, x, y, r) => {
    path.moveTo(x + r, y);
    path.arc(x, y, r, 0, 2 * Math.PI);
  },
  triangle: (path, x, y, r) => {
    path.moveTo(x, y - r * 1.2);
    path.lineTo(x + r * 1.1, y + r * 0.9);
    path.lineTo(x - r * 1.1, y + r * 0.9);
    path.closePath();
  },
  arrow: (path, x, y, r) => {
    path.moveTo(x - r, y);
    path.lineTo(x + r, y);
    path.lineTo(x, y + r * 2.2);
    path.closePath();
  },
  left: (path, x, y, r) => {
    path.moveTo(x, y - r);
    path.lineTo(x, y + r);
    path.lineTo(x - r * 2.2, y);
    path.closePath();
  },
  corner: (path, x, y, r) => {
    path.moveTo(x - r, y - r);
    path.lineTo(x + r, y + r);
    path.lineTo(x - r * 1.6, y + r * 1.6);
    path.closePath();
  },
  square: (path, x, y, r) => path.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8),
  cross: (path, x, y, r) => {
    path.moveTo(x - r, y - r);
    path.lineTo(x + r, y + r);
    path.moveTo(x + r, y - r);
    path.lineTo(x - r, y + r);
  },
};

function points(shape) {
  return (plot, index, first, last) => {
    const path = new Path2D();
    const [xs, ys] = [plot.data[0], plot.data[index]];
    const { scale } = plot.series[index];
    const radius = RADIUS * devicePixelRatio;
    for (let at = first; at <= last; at += 1) {
      if (ys[at] !== null && ys[at] !== undefined)
        SHAPES[shape](path, plot.valToPos(xs[at], "x", true), plot.valToPos(ys[at], scale, true), radius);
    }
    return { stroke: path, fill: shape === "cross" ? null : path, clip: null, flags: 3 };
  };
}

/**
 * One chart, with words `about` it, a text or an element. `series`: {label, colour (a variable of the style), form: "line" | "step" | "none" | a shape, dash, dots}.
 * `x`, `y`: {label, value (number to text), kind: "log" | "loss" | undefined, whole, range (low and high, or null)}.
 * `describe(index, height)` is the text for a point, where `height` is the pointer's place on the axis y, null for keys;
 * without it the values of all series are. `paint(plot)` draws what lies between grid and series; `wide` takes a row.
 */
export class Chart {
  constructor(parent, { title, about, series, x, y, height = 240, describe = null, paint = null, wide = false }) {
    Object.assign(this, { series, x, y, height, describe, paint, data: [[], ...series.map(() => [])], plot: null });
    this.area = h("div", { class: "area", tabindex: "0", role: "img", "aria-label": title });
    this.names = h("div", { class: "names" });
    this.readout = h("p", { class: "readout caption", "aria-live": "polite" });
    this.figure = h(
      "figure",
      { class: wide ? "chart wide-row" : "chart" },
      h("figcaption", {}, h("b", {}, title), about ? [" ", about] : ""),
      this.area,
      this.names,
      this.readout,
    );
    this.zoom = new Zoom(this);
    this.figure.querySelector("figcaption").append(" ", this.zoom.back);
    parent.append(this.figure);
    this.area.addEventListener("keydown", (event) => this.step(event));
    new ResizeObserver(() => this.fit()).observe(this.area);
    DARK.addEventListener("change", () => this.draw(true));
  }

  /** Shows other data: x ascending, then one array for each series, with null where it has no value. */
  set(data) {
    this.data = data;
    this.figure.hidden = data[0].length === 0;
    this.draw(false);
  }

  draw(anew) {
    if (this.figure.hidden || !this.area.isConnected || this.area.clientWidth === 0) return;
    if (anew && this.plot) {
      this.plot.destroy();
      this.plot = null;
    }
    if (!this.plot) {
      this.plot = new uPlot(this.options(), this.data, this.area);
      this.zoom.listen(this.plot);
    } else if (this.zoom.shown) this.plot.setData(this.data, false);
    else this.plot.setData(this.data);
    this.zoom.keep();
  }

  fit() {
    if (!this.plot) this.draw(false);
    else if (this.plot.width !== this.area.clientWidth)
      this.plot.setSize({ width: this.area.clientWidth, height: this.height });
  }

  options() {
    const [ink, grid] = [colour("--muted"), colour("--grid")];
    const font = "12px system-ui, sans-serif";
    const axis = (of, extra) => ({
      stroke: ink,
      font,
      labelFont: font,
      labelSize: 18,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1 },
      label: of.label,
      values: (_, ticks, __, ___, step) =>
        ticks.map((tick) => (tick === null || tick < 0 ? "" : of.value(tick, of.kind ? 0 : step))),
      ...extra,
    });
    return {
      width: this.area.clientWidth,
      height: this.height,
      legend: { show: true, live: false, mount: (_, legend) => this.names.replaceChildren(legend) },
      padding: [null, 36, null, null],
      cursor: { drag: { x: true, y: false }, focus: { prox: 24 }, points: { size: 9, show: this.paint === null } },
      scales: {
        x: { time: false, range: (_, low, high) => this.whole(low, high) },
        y: scaleOf(this.y),
      },
      axes: [
        axis(this.x, { space: 70, ...(this.x.whole ? { incrs: WHOLE } : {}) }),
        axis(this.y, { size: 84, space: 32, ...(this.y.kind === "log" && this.y.range ? STEPS_OF_LOG : {}) }),
      ],
      series: [{ label: this.x.label }, ...this.series.map(seriesOf)],
      hooks: {
        ready: [(plot) => this.nameSeries(plot)],
        drawAxes: this.paint ? [(plot) => this.paint(plot)] : [],
        setCursor: [(plot) => this.tell(plot.cursor.idx, plot)],
        setScale: [(plot, scale) => scale === "x" && this.zoom.note(plot)],
        setSeries: [(plot) => this.nameSeries(plot)],
      },
    };
  }

  /** The names of series are buttons that show and hide them, also for the keyboard. */
  nameSeries(plot) {
    this.names.querySelectorAll(".u-label").forEach((label, index) => {
      label.setAttribute("role", "button");
      label.setAttribute("aria-pressed", String(plot.series[index + 1].show));
      label.tabIndex = 0;
      label.onkeydown = (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        label.click();
      };
    });
  }

  /** The ends of the axis x where all is shown. */
  whole(low = this.data[0][0], high = this.data[0].at(-1)) {
    return this.x.range?.() ?? padded(low, high, this.x.whole);
  }

  /** Says what is at a point; `plot`, where the pointer is there. */
  tell(index, plot = null) {
    if (index === null || index === undefined || index >= this.data[0].length) return;
    this.at = index;
    const height = plot && plot.cursor.top >= 0 ? plot.posToVal(plot.cursor.top, "y") : null;
    say(this.readout, this.describe ? this.describe(index, height) : this.values(index));
  }

  values(index) {
    const shown = this.series
      .map((each, number) => [each.label, this.data[number + 1][index]])
      .filter(([, value]) => value !== null && value !== undefined);
    return [
      `${this.x.label} ${this.x.value(this.data[0][index])}`,
      ...shown.map(([label, value]) => `${label} ${this.y.value(value)}`),
    ].join(" · ");
  }

  /** Left and right move from point to point, Home and End to the ends; + and - zoom, Escape shows all again. */
  step(event) {
    if (this.zoom.key(event)) return;
    const last = this.data[0].length - 1;
    const to = { ArrowLeft: (this.at ?? last + 1) - 1, ArrowRight: (this.at ?? -1) + 1, Home: 0, End: last }[event.key];
    if (to === undefined || !this.plot || last < 0) return;
    event.preventDefault();
    const at = Math.min(last, Math.max(0, to));
    this.zoom.reach(this.data[0][at]);
    const value = this.data
      .slice(1)
      .map((each) => each[at])
      .find((each) => each !== null && each !== undefined);
    this.plot.setCursor({
      left: this.plot.valToPos(this.data[0][at], "x"),
      top: value === undefined ? 10 : this.plot.valToPos(value, "y"),
    });
    this.tell(at);
  }
}

/** Room at both sides, so that no point is cut. */
function padded(low, high, whole) {
  const room = high > low ? (high - low) * 0.03 : whole ? 1 : Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
}

function scaleOf(y) {
  if (y.kind === "log") return y.range ? { distr: 3, range: () => y.range() } : { distr: 3 };
  if (y.kind === "loss")
    return { distr: 4, asinh: 1e-6, range: (_, low, high) => [-5e-7, Math.max((high ?? 0) * 1.3, 1e-5)] };
  return { range: (_, low, high) => y.range?.() ?? [0, high > 0 ? high * 1.08 : 1] };
}

function seriesOf(each) {
  const stroke = () => colour(each.colour);
  const common = { label: each.label, stroke, width: 1.8, dash: each.dash, points: { show: false } };
  if (each.form === "none") return { ...common, paths: () => null };
  if (each.form === "line")
    return { ...common, spanGaps: each.gaps !== true, points: { show: each.dots === true, size: 5, fill: stroke } };
  if (each.form === "step") return { ...common, paths: uPlot.paths.stepped({ align: 1 }), spanGaps: true };
  return { ...common, fill: stroke, width: each.form === "cross" ? 1.6 : 0.5, paths: points(each.form) };
}
