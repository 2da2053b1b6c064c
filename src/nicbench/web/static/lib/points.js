// A chart of very many points: figures of runs over time or against anything, shaped by their verdicts.
// It has intervals, levels and changes, the nearest point's values beside the pointer, and a window that is chosen.

import { Chart, SHAPES } from "./chart.js";
import { h, say, visible } from "./dom.js";

const { uPlot } = window;
const REACH = 40;
/** Dashes of a change, and of a level that is only known to lie below its line. */
export const DASH = { change: [4, 3], below: [2, 4] };
const MOST_INTERVALS = 600;
const DAY_S = 86_400;
const HINT =
  "A point says its numbers where it is pointed at or tapped, and by the arrow keys. Click it, tap it again or press " +
  "Enter to open its run. Drag over a part to zoom.";
const SHAPE = { valid: "circle", imported: "triangle" };

/**
 * The shape of a figure: a cross where no claim rests on it, an arrow where it lies below a bound: down where that is its
 * own, to the left where it is that of its place on the axis x, to the corner where both are.
 */
export function shapeOf({ verdict, below, xBelow }) {
  const shape = SHAPE[verdict] ?? "cross";
  if (shape === "cross" || (!below && !xBelow)) return shape;
  return !xBelow ? "arrow" : below ? "corner" : "left";
}

/**
 * Chart of series {label, colour, points: {x, at, number, lower, upper, verdict, run}, levels, changes}. `open(point)` is
 * called for a point that is clicked, or chosen by Enter; `onwindow(bounds or null)` when a part of the x axis was chosen.
 */
export class PointChart extends Chart {
  constructor(parent, options) {
    super(parent, { ...options, series: [], height: 380 });
    Object.assign(this, { open: options.open, onwindow: options.onwindow });
    Object.assign(this, { hidden: new Set(), rows: [], window: null, focused: null });
    this.tip = h("div", { class: "saying", hidden: true, "aria-hidden": "true" });
    this.figure.append(this.tip);
    this.area.addEventListener("dblclick", () => this.onwindow(null));
    this.area.addEventListener("mouseleave", () => (this.tip.hidden = true));
    this.area.addEventListener("click", (event) => {
      const isRead = event.pointerType === "touch" && this.tapped !== this.near; // a finger cannot only point
      this.tapped = this.near;
      if (this.near !== undefined && !this.dragged && !isRead) this.open(this.rows[this.near]);
      this.dragged = false;
    });
    say(this.readout, HINT);
  }

  /** Shows these series under a title; `x` and `y` say how the axes are written, `window` is the part of x that is shown. */
  show(series, { title, x, y, window }) {
    Object.assign(this, { shownSeries: series, title, x, y, window });
    say(this.figure.querySelector("figcaption b"), title);
    this.area.setAttribute("aria-label", visible(title));
    this.series = series.map((each) => ({ label: each.label, colour: each.colour }));
    const fits = (value, of) => value !== null && (of.kind !== "log" || value > 0);
    const before = this.rows[this.at];
    const every = series
      .flatMap(({ points }, number) =>
        points.x.map((at, index) => ({
          series: number,
          x: at,
          y: points.number[index] ?? points.upper[index],
          below: points.number[index] === null,
          xBelow: points.x_below?.[index] ?? false,
          lower: points.lower[index],
          upper: points.upper[index],
          verdict: points.verdict[index],
          run: points.run[index],
          at: points.at[index],
        })),
      );
    this.rows = every
      .filter((row) => fits(row.x, x) && fits(row.y, y))
      .sort((one, other) => one.x - other.x || one.series - other.series);
    this.unplaced = every.filter((row) => row.x === null).length;
    this.unfit = every.length - this.rows.length - this.unplaced;
    this.data = [
      this.rows.map((row) => row.x),
      ...series.map((_, number) => this.rows.map((row) => (row.series === number ? row.y : null))),
    ];
    this.find(before);
    this.tip.hidden = true;
    this.figure.hidden = false;
    this.area.hidden = this.rows.length === 0;
    this.focused = this.names.contains(document.activeElement) ? document.activeElement.textContent : null;
    this.draw(true);
  }

  /** Goes on from the point that was told last, or from none where it is no longer there. */
  find(before) {
    const place = before ? this.rows.findIndex((row) => row.run === before.run && row.x === before.x && row.y === before.y) : -1;
    this.at = place < 0 ? undefined : place;
    if (this.near !== undefined) this.near = this.at;
    this.tapped = undefined;
    if (place < 0) say(this.readout, HINT);
  }

  /**
   * Names the series as buttons, and puts the focus back on the name that had it before the chart was drawn anew. uPlot
   * is ready in the task that made it, so that no key is pressed while nothing has the focus.
   */
  nameSeries(plot) {
    super.nameSeries(plot);
    if (this.focused === null || document.activeElement !== document.body) return;
    [...this.names.querySelectorAll(".u-label")].find((label) => label.textContent === this.focused)?.focus();
    this.focused = null;
  }

  options() {
    const options = super.options();
    const { x, y } = this;
    options.axes.forEach((axis) => (axis.label = visible(axis.label)));
    options.tzDate = (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC");
    options.cursor = { ...options.cursor, drag: { x: true, y: false, setScale: false }, points: { show: false } };
    options.scales = {
      x: { time: x.kind === "time", distr: x.kind === "log" ? 3 : 1, range: (_, low, high) => this.reach(x, low, high) },
      y: { distr: y.kind === "log" ? 3 : 1, range: (_, low, high) => this.reach(y, ...this.withIntervals(low, high)) },
    };
    const lines = this.marks().reduce((most, mark) => (mark.kind === "change" ? Math.max(most, mark.line + 1) : most), 0);
    options.padding = [8 + 15 * lines, x.kind === "time" ? 56 : 28, null, null]; // half of the last mark of an axis
    this.ticks = [[], []];
    options.axes.forEach((axis, number) => {
      const of = number === 0 ? x : y;
      axis.values = (_, splits, __, space, step) => {
        const apart = of.kind === "log" ? 0 : step; // on a logarithmic axis each has its own digits
        this.ticks[number] = splits.map((at) => [at, at === null ? "" : visible(of.value(at, apart))]);
        return this.ticks[number].map(([, text]) => text);
      };
    });
    options.axes[0].space = x.kind === "time" || x.kind === "words" ? 96 : 70;
    options.series = [{ label: visible(x.label) }, ...this.series.map((each, number) => this.seriesOf(each, number))];
    options.hooks = {
      ready: [(plot) => this.nameSeries(plot)],
      draw: [(plot) => this.drawMarks(plot)],
      setCursor: [(plot) => this.point(plot)],
      setSeries: [(plot, number) => this.toggled(plot, number)],
      setSelect: [(plot) => this.choose(plot)],
    };
    return options;
  }

  seriesOf(each, number) {
    const stroke = () => getComputedStyle(document.documentElement).getPropertyValue(each.colour).trim();
    return {
      label: each.label,
      stroke,
      fill: stroke,
      width: 1.2,
      show: !this.hidden.has(each.label),
      points: { show: false },
      paths: (plot) => this.shapes(plot, number),
    };
  }

  shapes(plot, number) {
    const path = new Path2D();
    const radius = (this.rows.length > 400 ? 2.6 : 3.6) * devicePixelRatio;
    for (const row of this.rows) {
      if (row.series !== number) continue;
      const shape = shapeOf(row);
      if (shape === "cross") continue; // a mark, in the colour of what is not relied on
      SHAPES[shape](path, plot.valToPos(row.x, "x", true), plot.valToPos(row.y, "y", true), radius);
    }
    return { stroke: path, fill: path, clip: null, flags: 3 };
  }

  /** The bounds of an axis around its values, or the chosen window. */
  reach(of, low, high) {
    if (of === this.x && this.window) return this.window;
    if (of === this.x && this.rows.length > 0) [low, high] = [this.rows[0].x, this.rows.at(-1).x]; // uPlot widens a single one
    if (low === null || high === null) return of.kind === "log" ? [1, 10] : [0, 1];
    if (of.kind === "log") return [rounded(low / 1.1, Math.floor), rounded(high * 1.1, Math.ceil)];
    if (of.kind === "words") return [low - 0.6, high + 0.6];
    const around = of.kind === "time" ? DAY_S : Math.abs(high) * 0.05 || 1;
    const room = high > low ? (high - low) * 0.05 : around;
    const first = of === this.y && this.y.zero ? Math.min(0, low) : low - room;
    const least = of === this.y && low >= 0 ? -room * 0.6 : -Infinity; // so that a figure of 0 is seen whole
    return [Math.max(least, first), high + room];
  }

  withIntervals(low, high) {
    const shown = this.visible().filter((row) => !this.window || (row.x >= this.window[0] && row.x <= this.window[1]));
    if (shown.length === 0) return [low, high];
    let [least, most] = [Infinity, -Infinity];
    for (const row of shown) {
      const bounds = shown.length <= MOST_INTERVALS ? [row.lower ?? row.y, row.upper ?? row.y] : [row.y, row.y];
      least = Math.min(least, row.y, this.y.kind === "log" && bounds[0] <= 0 ? row.y : bounds[0]);
      most = Math.max(most, row.y, bounds[1]);
    }
    return [least, most];
  }

  visible() {
    return this.rows.filter((row) => !this.hidden.has(this.series[row.series].label));
  }

  /** The marks in the order in which they are drawn, each of a kind, with a colour and its places on the axes. */
  marks() {
    const shown = this.visible();
    const marks = shown
      .filter((row) => shapeOf(row) === "cross")
      .map((row) => ({ kind: "cross", colour: "--muted", x: row.x, y: row.y }));
    if (shown.length <= MOST_INTERVALS)
      for (const row of shown)
        if (row.lower !== null && row.upper !== null && row.lower < row.upper)
          marks.push({ ...row, kind: "interval", colour: this.series[row.series].colour });
    this.shownSeries.forEach((each) => {
      if (this.hidden.has(each.label)) return;
      for (const line of each.lines ?? []) if (line.length > 1) marks.push({ kind: "line", colour: each.colour, through: line });
      for (const level of each.levels ?? []) marks.push({ kind: "level", colour: each.colour, ...level });
      for (const found of each.changes ?? []) marks.push({ kind: "change", colour: each.colour, ...found });
    });
    return marks;
  }

  drawMarks(plot) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    const style = getComputedStyle(document.documentElement);
    const x = (value) => plot.valToPos(value, "x", true);
    const y = (value) => plot.valToPos(value, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const mark of this.marks()) {
      ctx.strokeStyle = ctx.fillStyle = style.getPropertyValue(mark.colour).trim();
      ctx.globalAlpha = mark.kind === "interval" ? 0.45 : 1;
      ctx.lineWidth = ({ level: 2, cross: 1.6 }[mark.kind] ?? 1) * ratio;
      ctx.setLineDash((DASH[mark.kind === "level" && mark.below ? "below" : mark.kind] ?? []).map((length) => length * ratio));
      ctx.beginPath();
      if (mark.kind === "interval") {
        ctx.moveTo(x(mark.x), y(mark.lower));
        ctx.lineTo(x(mark.x), y(mark.upper));
      } else if (mark.kind === "cross") SHAPES.cross(ctx, x(mark.x), y(mark.y), 3.4 * ratio);
      else if (mark.kind === "line") mark.through.forEach((at) => ctx.lineTo(x(at[0]), y(at[1])));
      else if (mark.kind === "level") {
        ctx.moveTo(x(mark.from), y(mark.median));
        ctx.lineTo(x(mark.to), y(mark.median));
      } else {
        ctx.moveTo(x(mark.at), bbox.top);
        ctx.lineTo(x(mark.at), bbox.top + bbox.height);
      }
      ctx.stroke();
    }
    if (this.near !== undefined && this.rows[this.near]) {
      const row = this.rows[this.near];
      ctx.setLineDash([]);
      ctx.lineWidth = 1.5 * ratio;
      ctx.globalAlpha = 1;
      ctx.strokeStyle = style.getPropertyValue("--ink").trim();
      ctx.beginPath();
      ctx.arc(x(row.x), y(row.y), 7 * ratio, 0, 2 * Math.PI);
      ctx.stroke();
    }
    ctx.restore();
    this.drawNames(plot, x);
  }

  /** What the changes are, above the chart. */
  drawNames(plot, x) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.textAlign = "center";
    ctx.textBaseline = "alphabetic";
    ctx.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
    for (const mark of this.marks().filter((each) => each.kind === "change")) {
      if (x(mark.at) < bbox.left || x(mark.at) > bbox.left + bbox.width) continue;
      ctx.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(mark.colour).trim();
      ctx.fillText(mark.text, x(mark.at), bbox.top - (5 + 15 * mark.line) * devicePixelRatio);
    }
    ctx.restore();
  }

  /** Tells the point that is nearest to the pointer, beside it and below the chart. */
  point(plot) {
    const { left, top } = plot.cursor;
    if (left === undefined || left < 0 || this.byKey) return;
    let [best, least] = [undefined, REACH * REACH];
    this.rows.forEach((row, index) => {
      if (this.hidden.has(this.series[row.series].label)) return;
      const [dx, dy] = [plot.valToPos(row.x, "x") - left, plot.valToPos(row.y, "y") - top];
      const distance = dx * dx + dy * dy;
      if (distance < least) [best, least] = [index, distance];
    });
    this.mark(plot, best);
  }

  mark(plot, index) {
    if (index !== this.near) {
      this.near = index;
      plot.redraw(false, false);
    }
    this.tip.hidden = index === undefined;
    if (index === undefined) return;
    this.at = index;
    const row = this.rows[index];
    const text = this.describe(row);
    say(this.readout, text.replaceAll("\n", " · "));
    this.tip.textContent = text.split("\n").map(visible).join("\n");
    const place = plot.over.getBoundingClientRect();
    const [left, top] = [place.left + plot.valToPos(row.x, "x"), place.top + plot.valToPos(row.y, "y")];
    this.tip.style.left = `${Math.max(4, Math.min(left + 12, window.innerWidth - this.tip.offsetWidth - 8))}px`;
    this.tip.style.top = `${Math.max(4, top - this.tip.offsetHeight - 12)}px`;
  }

  /** Arrow keys go from point to point in time, Enter opens its run, Escape shows all again. */
  step(event) {
    if (event.key === "Escape") {
      this.tip.hidden = true;
      this.onwindow(null);
      return;
    }
    if (event.key === "Enter" && this.near !== undefined) this.open(this.rows[this.near]);
    const order = this.rows.map((_, index) => index).filter((index) => this.isShown(this.rows[index]));
    const place = order.indexOf(this.at);
    const to = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: order.length - 1 }[event.key];
    if (to === undefined || order.length === 0 || !this.plot) return;
    event.preventDefault();
    this.mark(this.plot, order[Math.min(order.length - 1, Math.max(0, to))]);
  }

  isShown(row) {
    const inside = !this.window || (row.x >= this.window[0] && row.x <= this.window[1]);
    return inside && !this.hidden.has(this.series[row.series].label);
  }

  toggled(plot, number) {
    this.nameSeries(plot);
    if (number === null || number === undefined || !this.series[number - 1]) return;
    const { label } = this.series[number - 1];
    if (plot.series[number].show === !this.hidden.has(label)) return; // it was only pointed at
    if (plot.series[number].show) this.hidden.delete(label);
    else this.hidden.add(label);
    this.onhide?.([...this.hidden]);
  }

  choose(plot) {
    const { left, width } = plot.select;
    if (width < 6) return;
    this.dragged = true;
    const bounds = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.onwindow(bounds);
  }
}

/** A bound of a logarithmic axis: one digit and zeros, so that its lines stand at round numbers. */
function rounded(value, to) {
  const size = 10 ** Math.floor(Math.log10(value));
  return to(value / size) * size;
}
