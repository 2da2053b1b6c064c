// A part of a chart, larger: dragged with the mouse, by the wheel with Ctrl, or by + and - on the keyboard; 0, a double
// click and Escape show all again. Marks keep their sizes, and axes get numbers of their own.
const PLACE = /translate\((-?[\d.]+),(-?[\d.]+)\)/;
const CLICK = 6; // a drag shorter than this, in units of the drawing, is a click
const DEEPEST = 1000;

const placeOf = (element) => (PLACE.exec(element.getAttribute("transform") ?? "") ?? [0, 0, 0]).slice(1).map(Number);

// An axis whose labels are numbers, linear or logarithmic; null where it has names, or too few numbers.
const axisOf = (group, across) => {
  const at = across ? 0 : 1;
  const labels = [...group.querySelectorAll(".role-axis-label > text")];
  const ticks = [...group.querySelectorAll(".role-axis-tick > line")];
  const places = (ticks.length === labels.length ? ticks : labels).map((one) => placeOf(one)[at]);
  const texts = labels.map((label) => label.textContent.replace(/[,\u2009\u202f]|(?<=\d)\s(?=\d)/g, "").replace("\u2212", "-"));
  const unit = /[^\d.]*$/.exec(texts[0])[0]; // " %" behind every number
  const values = texts.map((text) => (text.endsWith(unit) && text !== unit ? Number(text.slice(0, text.length - unit.length)) : NaN));
  const known = values.map((value, index) => [value, places[index]]).filter(([value]) => !Number.isNaN(value));
  if (labels.length < 2 || known.length < labels.length) return null;
  const fit = (scale) => {
    const [[first, from], [last, to]] = [known[0], known[known.length - 1]];
    const slope = (to - from) / (scale(last) - scale(first));
    const miss = Math.max(...known.map(([value, place]) => Math.abs(from + (scale(value) - scale(first)) * slope - place)));
    return miss < 1.5 ? { scale, slope, zero: from - scale(first) * slope } : null;
  };
  const log = values.every((value) => value > 0) && labels.length > 2 ? fit(Math.log10) : null;
  const found = fit((value) => value) ?? log;
  if (!found) return null;
  const back = found.scale === Math.log10 ? (value) => 10 ** value : (value) => value;
  return {
    group,
    unit,
    isLog: found.scale === Math.log10,
    placeOf: (value) => found.zero + found.scale(value) * found.slope,
    valueAt: (place) => back((place - found.zero) / found.slope),
    tick: ticks[0],
    label: labels[0],
    offset: placeOf(labels[0])[at] - places[0],
  };
};

// Round numbers within a range: decades and their halves where they are many, else steps of 1, 2 or 5.
const roundNumbers = (least, most, count, isLog) => {
  if (isLog && most > 8 * least) {
    const decades = Array.from({ length: 40 }, (_, at) => 10 ** (at - 20));
    const all = decades.flatMap((one) => (most > 1000 * least ? [one] : [one, 2 * one, 5 * one]));
    return all.filter((one) => one >= least && one <= most);
  }
  const raw = (most - least) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((one) => one * power >= raw);
  const first = Math.ceil(least / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(most / step + 1e-9) - first + 1) }, (_, at) => (first + at) * step);
};
const written = (value) => Number(value.toPrecision(6)).toLocaleString("en", { maximumSignificantDigits: 6 }).replace("-", "\u2212");

class Zoom {
  constructor(svg, changed) {
    this.svg = svg;
    this.changed = changed;
    this.root = svg.querySelector(".mark-group.root > g");
    const axes = this.root ? [...this.root.querySelectorAll(":scope > g > .role-axis")] : [];
    const lines = axes.flatMap((axis) => [...axis.querySelectorAll("line")]);
    this.size = ["x2", "y2"].map((name) => Math.max(0, ...lines.map((line) => Math.abs(line.getAttribute(name) ?? 0))));
    this.axes = [true, false].map((across) => {
      const labelled = axes.filter((axis) => axis.querySelector(".role-axis-tick, .role-axis-label"));
      const own = labelled.find((axis) => {
        const [first, last] = [0, -1].map((at) => placeOf([...axis.querySelectorAll(".role-axis-label > text")].at(at) ?? axis));
        return across ? first[0] !== last[0] : first[1] !== last[1];
      });
      const axis = own ? axisOf(own, across) : null;
      // Vega draws the lines of the grid in an axis of their own: those of x are upright.
      const upright = (line) => Math.abs(line?.getAttribute("y2") ?? 0) > 0;
      const grids = axes.map((one) => one.querySelector(".role-axis-grid")).filter((one) => one?.firstChild);
      const grid = grids.find((one) => upright(one.firstChild) === across); // an axis of names has none
      return axis && grid ? { ...axis, grid } : null;
    });
    this.all = this.size.map((size) => [0, size]);
    this.now = this.all;
    this.is = this.axes.some(Boolean) && this.size.every((size) => size > 50);
    if (this.is) this.listen();
  }

  get isDeep() {
    return this.now !== this.all;
  }

  // Where a place of the drawing is now.
  map([x, y]) {
    return [x, y].map((place, at) => ((place - this.now[at][0]) * this.size[at]) / (this.now[at][1] - this.now[at][0]));
  }

  // Whether the middle of a mark lies in the part that is seen; places are of the whole drawing.
  shows(point) {
    if (!this.isDeep) return true;
    const { left, top } = this.svg.getBoundingClientRect();
    const scale = this.svg.getBoundingClientRect().width / this.svg.viewBox.baseVal.width;
    const [x, y] = this.within({ clientX: left + point.x * scale, clientY: top + point.y * scale });
    return x >= -1 && y >= -1 && x <= this.size[0] + 1 && y <= this.size[1] + 1;
  }

  within(event) {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.root.getScreenCTM().inverse());
    return [x, y];
  }

  listen() {
    let from = null;
    const box = document.createElementNS(this.svg.namespaceURI, "rect");
    box.setAttribute("class", "dragged");
    const ends = (event) => [from, this.within(event)].map((one) => one.map((place, at) => within(place, 0, this.size[at])));
    const drag = (event) => {
      if (!from) return;
      const [one, two] = ends(event);
      const least = one.map((place, at) => Math.min(place, two[at]));
      set(box, { x: least[0], y: least[1], width: Math.abs(one[0] - two[0]), height: Math.abs(one[1] - two[1]) });
    };
    this.svg.addEventListener("pointerdown", (event) => {
      const [x, y] = this.within(event);
      if (event.pointerType !== "mouse" || event.button || x < 0 || y < 0 || x > this.size[0] || y > this.size[1]) return;
      from = [x, y];
      this.root.append(box);
      drag(event);
    });
    window.addEventListener("pointermove", drag);
    window.addEventListener("pointerup", (event) => {
      if (!from) return;
      const [one, two] = ends(event);
      from = null;
      box.remove();
      const wide = one.map((place, at) => Math.abs(place - two[at]));
      if (Math.max(...wide) < CLICK) return;
      // A drag that is long and thin is of one axis.
      this.to(wide.map((length, at) => (length < CLICK * 2 ? this.now[at] : [one[at], two[at]].sort((a, b) => a - b).map((place) => this.unmap(place, at)))));
    });
    this.svg.addEventListener("dblclick", () => this.reset());
    this.svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.by(event.deltaY < 0 ? 1.25 : 0.8, this.within(event));
    }, { passive: false });
  }

  unmap(place, at) {
    return this.now[at][0] + (place * (this.now[at][1] - this.now[at][0])) / this.size[at];
  }

  // Larger or smaller about a place of the drawing as it is seen.
  by(factor, about) {
    this.to(this.now.map(([from, to], at) => {
      const middle = this.unmap(within(about[at], 0, this.size[at]), at);
      return [middle - (middle - from) / factor, middle + (to - middle) / factor];
    }));
  }

  reset() {
    this.to(this.all);
  }

  to(ranges) {
    const next = ranges.map(([from, to], at) => {
      const length = within(to - from, this.size[at] / DEEPEST, this.size[at]);
      const start = within((from + to - length) / 2, 0, this.size[at] - length);
      return this.axes[at] ? [start, start + length] : this.all[at];
    });
    this.now = next.every(([from, to], at) => to - from > this.size[at] * 0.999) ? this.all : next;
    this.clip();
    for (const mark of this.root.querySelectorAll(".role-mark > :not(g)")) this.move(mark);
    for (const [at, axis] of this.axes.entries()) if (axis) this.number(axis, at);
    this.changed();
  }

  clip() {
    if (!this.frame) {
      const clip = document.createElementNS(this.svg.namespaceURI, "clipPath");
      clip.id = `zoom-${[...document.querySelectorAll("svg")].indexOf(this.svg)}`;
      set(clip.appendChild(document.createElementNS(this.svg.namespaceURI, "rect")), { width: this.size[0], height: this.size[1] });
      this.svg.prepend(clip);
      this.frame = clip.id;
    }
    for (const group of this.root.querySelectorAll(":scope > g > :is(.role-mark, .role-scope)")) {
      group.dataset.clip ??= group.getAttribute("clip-path") ?? "";
      if (this.isDeep) group.setAttribute("clip-path", `url("#${this.frame}")`);
      else if (group.dataset.clip) group.setAttribute("clip-path", group.dataset.clip);
      else group.removeAttribute("clip-path");
    }
  }

  move(mark) {
    mark.original ??= Object.fromEntries(["transform", "x2", "y2"].map((name) => [name, mark.getAttribute(name)]));
    const { transform, x2, y2 } = mark.original;
    const [kx, ky] = this.now.map(([from, to], at) => this.size[at] / (to - from));
    if (!this.isDeep) {
      for (const [name, value] of Object.entries(mark.original)) value === null ? mark.removeAttribute(name) : mark.setAttribute(name, value);
    } else if (transform && PLACE.test(transform)) {
      const [, x, y] = PLACE.exec(transform).map(Number);
      mark.setAttribute("transform", transform.replace(PLACE, `translate(${this.map([x, y]).join()})`));
      if (x2 !== null) mark.setAttribute("x2", x2 * kx);
      if (y2 !== null) mark.setAttribute("y2", y2 * ky);
    } else {
      const [x, y] = this.map([0, 0]);
      mark.setAttribute("transform", `matrix(${kx},0,0,${ky},${x},${y})`);
    }
  }

  number(axis, at) {
    for (const own of [axis.group, axis.grid].flatMap((part) => [...part.querySelectorAll(".fresh")])) own.remove();
    const { tick, label } = axis;
    const line = axis.grid.querySelector("line");
    const olds = [tick, label, line].filter(Boolean).flatMap((one) => [...one.parentNode.children]);
    for (const old of olds) old.classList.toggle("off", this.isDeep);
    if (!this.isDeep) return;
    const ends = this.now[at].map((place) => axis.valueAt(place)).sort((one, two) => one - two);
    for (const value of roundNumbers(...ends, Math.max(2, this.size[at] / (at ? 45 : 110)), axis.isLog)) {
      const place = this.map([0, 0].with(at, axis.placeOf(value)))[at];
      for (const [sample, offset] of [[tick, 0], [line, 0], [label, axis.offset]]) {
        if (!sample) continue;
        const copy = sample.cloneNode(true);
        copy.classList.remove("off");
        copy.classList.add("fresh");
        const moved = placeOf(sample).with(at, place + offset);
        copy.setAttribute("transform", sample.getAttribute("transform").replace(PLACE, `translate(${moved.join()})`));
        if (sample === label) copy.textContent = written(value) + axis.unit;
        sample.parentNode.append(copy);
      }
    }
  }
}
