// The part of a chart's axis x that is shown: by mouse, by two fingers, by keys; kept while the run adds points.

import { h } from "./dom.js";

const STEP = 2;
const NEAR = 24; // pixels: fingers that are nearer to each other than this say nothing exact
const TAP = 6; // pixels

/** Follows one chart, whose `plot` is uPlot's. `shown` is the part in view, low and high; null: all. */
export class Zoom {
  constructor(chart) {
    Object.assign(this, { chart, shown: null, fingers: new Map() });
    this.back = h("button", { type: "button", class: "tag", hidden: true, onclick: () => this.all() }, "Show all");
  }

  /** Takes in what is shown now: a mouse may have dragged over a part, or double-clicked for all. */
  note({ scales: { x } }) {
    const [low, high] = this.chart.whole();
    const room = (high - low) * 1e-6;
    const isAll = !Number.isFinite(room) || (x.min <= low + room && x.max >= high - room);
    if (!this.keeping) this.shown = isAll ? null : [x.min, x.max];
    this.back.hidden = this.shown === null;
  }

  all() {
    this.shown = null;
    if (document.activeElement === this.back) this.chart.area.focus({ preventScroll: true });
    this.back.hidden = true;
    this.chart.plot?.setData(this.chart.data);
  }

  /** Shows the same part after the data changed; all again where they no longer reach into it. */
  keep() {
    if (!this.shown) return;
    const [low, high] = this.chart.whole();
    if (this.shown[1] <= low || this.shown[0] >= high || !Number.isFinite(low)) this.all();
    else this.show(...this.shown);
  }

  show(low, high) {
    const [least, most] = this.chart.whole();
    if (high - low >= most - least) {
      this.all();
      return;
    }
    const shift = Math.max(0, least - low) - Math.max(0, high - most);
    this.shown = [low + shift, high + shift];
    this.keeping = true;
    this.chart.plot.setScale("x", { min: this.shown[0], max: this.shown[1] });
    this.keeping = false;
    this.back.hidden = false;
  }

  /** Moves the part so that a value is in it. */
  reach(value) {
    if (!this.shown || (value >= this.shown[0] && value <= this.shown[1])) return;
    const half = (this.shown[1] - this.shown[0]) / 2;
    this.show(value - half, value + half);
  }

  /** Whether a key was one of a zoom: + and - around the point that is told, Escape for all. */
  key(event) {
    const { plot, data, at } = this.chart;
    if (!plot || !["+", "=", "-", "Escape"].includes(event.key)) return false;
    if (event.key === "Escape") this.all();
    else {
      const { min, max } = plot.scales.x;
      const middle = data[0][at] ?? (min + max) / 2;
      const half = ((max - min) / 2) * (event.key === "-" ? STEP : 1 / STEP);
      this.show(middle - half, middle + half);
    }
    event.preventDefault();
    return true;
  }

  /** Fingers: two zoom, one moves the part that is shown or, where all is, reads values. */
  listen(plot) {
    const { over } = plot;
    const place = (event) => event.clientX - over.getBoundingClientRect().left;
    const touches = (what) => (event) => {
      if (event.pointerType === "touch") what(event);
    };
    const down = (event) => {
      this.fingers.set(event.pointerId, { at: place(event), began: place(event) });
      this.grip(plot);
    };
    const move = (event) => {
      const finger = this.fingers.get(event.pointerId);
      if (!finger) return;
      finger.at = place(event);
      if (this.fingers.size === 1 && this.shown === null) this.read(plot, event);
      else this.drag(over.clientWidth);
    };
    const up = (event) => {
      const finger = this.fingers.get(event.pointerId);
      this.fingers.delete(event.pointerId);
      if (finger && event.type === "pointerup" && Math.abs(finger.at - finger.began) < TAP) this.read(plot, event);
      this.grip(plot);
    };
    over.addEventListener("pointerdown", touches(down));
    over.addEventListener("pointermove", touches(move));
    for (const name of ["pointerup", "pointercancel"]) over.addEventListener(name, touches(up));
  }

  /** Remembers which values are beneath the fingers. */
  grip(plot) {
    for (const finger of this.fingers.values()) finger.value = plot.posToVal(finger.at, "x");
  }

  read(plot, event) {
    const { left, top } = plot.over.getBoundingClientRect();
    plot.setCursor({ left: event.clientX - left, top: event.clientY - top });
  }

  /** Moves the axis so that the values beneath the fingers stay there. */
  drag(width) {
    const [one, other] = [...this.fingers.values()].sort((a, b) => a.at - b.at);
    const { min, max } = this.chart.plot.scales.x;
    let whole = max - min;
    if (other) {
      if (other.at - one.at < NEAR || other.value <= one.value) return;
      whole = ((other.value - one.value) * width) / (other.at - one.at);
    }
    const low = one.value - (one.at / width) * whole;
    if (other || this.shown) this.show(low, low + whole);
  }
}
