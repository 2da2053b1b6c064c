// Charts that answer to mouse, finger and keyboard. Without this script they are the same drawings, and silent.
// Marks bring their words (report/drawing/svg.py): "series|key|value|from to"; their group has the patterns.
const NEAR = 28; // in units of the drawing
const KEYS = "Left and right arrow: point by point. Up and down: another series. Escape: leave.";
const ZOOM_KEYS = " Plus and minus: larger and smaller about the point. 0: all.";
const made = (className, name, value) => {
  const one = document.createElement("div");
  one.className = className;
  one.setAttribute(name, value);
  return document.body.appendChild(one);
};
const shown = made("saying", "aria-hidden", "true");
const spoken = made("unseen", "role", "status");
const set = (element, attributes) => {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
};
const within = (value, least, most) => Math.max(least, Math.min(value, most));
let ring = null;
const hide = () => {
  shown.hidden = true;
  ring?.remove();
};

// What a page offers beside a chart or a table: buttons that are seen while the mouse or the keyboard is there.
const offer = (around, actions) => {
  const bar = document.createElement("div");
  bar.className = "tools";
  for (const [text, [label, act]] of Object.entries(actions)) {
    const button = document.createElement("button");
    button.textContent = text;
    set(button, { type: "button", "aria-label": `${text}: ${label}`, title: label });
    button.addEventListener("click", act);
    bar.append(button);
  }
  around.append(bar);
  const place = () => {
    const { top, right } = around.getBoundingClientRect();
    bar.style.top = `${Math.max(4, top - bar.offsetHeight + 8)}px`;
    bar.style.left = `${Math.min(right, document.documentElement.clientWidth - 4) - bar.offsetWidth}px`;
    bar.classList.add("near");
  };
  for (const kind of ["pointermove", "focusin"]) around.addEventListener(kind, place);
  for (const kind of ["pointerleave", "focusout"]) around.addEventListener(kind, () => bar.classList.remove("near"));
};

const save = (blob, name, ending) => {
  const link = document.createElement("a");
  const words = `${document.title} ${name}`.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  set(link, { href: URL.createObjectURL(blob), download: `${words.slice(0, 80)}.${ending}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
};

// The drawing by itself, in the colours that it has in the page.
const fileOf = (svg) => {
  const copy = svg.cloneNode(true);
  const { width, height } = svg.viewBox.baseVal;
  const colours = getComputedStyle(document.documentElement);
  for (const one of copy.querySelectorAll(".ring, .off")) one.remove();
  for (const one of [copy, ...copy.querySelectorAll("*")]) {
    for (const { name, value } of [...one.attributes]) {
      if (/^(data-|aria-|tabindex|class|style)/.test(name) || (name === "role" && one !== copy)) one.removeAttribute(name);
      else if (value.includes("var(")) one.setAttribute(name, value.replace(/var\((--[\w-]+)[^)]*\)/g, (_, key) => colours.getPropertyValue(key)));
    }
  }
  set(copy, { role: "img", "aria-label": svg.getAttribute("aria-label"), width, height });
  const paper = document.createElementNS(svg.namespaceURI, "rect");
  set(paper, { width: "100%", height: "100%", fill: colours.getPropertyValue("--paper") });
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
};
const picture = (svg) => {
  const { width, height } = svg.viewBox.baseVal;
  const image = new Image();
  const canvas = document.createElement("canvas");
  set(canvas, { width: 2 * width, height: 2 * height });
  image.onload = () => {
    canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
    canvas.toBlob((blob) => save(blob, svg.getAttribute("aria-label"), "png"));
  };
  image.src = `data:image/svg+xml,${encodeURIComponent(fileOf(svg))}`;
};

const STILL = { is: false, isDeep: false, map: (place) => place, shows: () => true };

class Chart {
  constructor(svg) {
    this.svg = svg;
    this.series = (svg.dataset.series ?? "").split("|");
    this.off = new Set();
    this.zoom = typeof Zoom === "undefined" ? STILL : new Zoom(svg, () => this.moved()); // zoom.js, where charts are dense
    const keys = this.zoom.is ? KEYS + ZOOM_KEYS : KEYS;
    set(svg, { role: "application", "aria-roledescription": "chart", "aria-description": keys, tabindex: 0 });
    for (const part of svg.querySelectorAll(".role-axis, .role-mark")) part.setAttribute("aria-hidden", "true");
    for (const label of svg.querySelectorAll(".role-legend-label")) this.button(label);
    for (const kind of ["pointermove", "pointerdown"]) svg.addEventListener(kind, (event) => this.pointed(event));
    svg.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hide());
    svg.addEventListener("keydown", (event) => this.pressed(event));
    svg.addEventListener("blur", hide);
    offer(svg.parentNode, {
      SVG: ["save this chart as SVG", () => save(new Blob([fileOf(svg)], { type: "image/svg+xml" }), svg.getAttribute("aria-label"), "svg")],
      PNG: ["save this chart as PNG", () => picture(svg)],
    });
  }

  // Where the drawing is now, and how many pixels its units have.
  get place() {
    const { left, top, width } = this.svg.getBoundingClientRect();
    return { left, top, scale: width / this.svg.viewBox.baseVal.width };
  }

  // Found when they are first asked for, for a folded or unseen drawing has no places.
  get points() {
    if (this.found) return this.found;
    const { left, top, scale } = this.place;
    const { width, height } = this.svg.viewBox.baseVal;
    this.found = [];
    for (const group of this.svg.querySelectorAll("[data-heads]")) {
      const heads = group.dataset.heads.split("|");
      const add = ([series, ...parts], box) => {
        const [x1, y1, x2, y2] = [box.left - left, box.top - top, box.right - left, box.bottom - top].map((one) => one / scale);
        const lines = parts.map((part, at) => part && heads[at + 1].replace("#", () => part)).filter(Boolean);
        const point = { series: series === "" ? -1 : +series, lines, x1, y1, x2, y2, x: (x1 + x2) / 2, y: (y1 + y2) / 2 };
        point.across = "across" in group.dataset;
        if (x1 >= 0 && y1 >= 0 && x2 <= width && y2 <= height && this.zoom.shows(point)) this.found.push(point);
      };
      for (const mark of group.querySelectorAll("[data-says]")) add(mark.dataset.says.split("|"), mark.getBoundingClientRect());
      for (const line of group.dataset.points?.split("\n") ?? []) {
        const [at, ...said] = line.split("|");
        const { x, y } = new DOMPoint(...this.zoom.map(at.split(",").map(Number))).matrixTransform(group.getScreenCTM());
        add(said, { left: x, top: y, right: x, bottom: y });
      }
    }
    return this.found.sort((one, other) => one.series - other.series || one.x - other.x || one.y - other.y);
  }

  // After a zoom other points are seen, at other places.
  moved() {
    const [at, here] = [this.at, this.zoom.isDeep];
    hide();
    this.found = null;
    this.at = at && this.points.find((point) => point.series === at.series && point.lines.join() === at.lines.join());
    this.svg.classList.toggle("deep", here);
  }

  get open() {
    return this.points.filter((point) => !this.off.has(point.series));
  }

  pointed(event) {
    const { left, top, scale } = this.place;
    const x = (event.clientX - left) / scale;
    const y = (event.clientY - top) / scale;
    const far = (point) => {
      const aside = x - within(x, point.x1, point.x2);
      const above = point.across ? 0 : y - within(y, point.y1, point.y2);
      // Of marks that lie upon one another the one whose middle is nearest.
      return Math.hypot(aside, above) + Math.hypot(x - point.x, y - point.y) / 1000;
    };
    const nearest = this.open.reduce((one, other) => (one && far(one) <= far(other) ? one : other), null);
    if (nearest && far(nearest) < NEAR) this.show(nearest);
    else hide();
  }

  show(point) {
    hide();
    this.at = point;
    const here = this.open.filter((one) => Math.hypot(one.x - point.x, one.y - point.y) < 1).length;
    const said = [this.series[point.series], ...point.lines, here > 1 ? `and ${here - 1} more at this place` : ""].filter(Boolean);
    shown.textContent = said.join("\n");
    shown.hidden = false;
    ring = this.svg.appendChild(document.createElementNS(this.svg.namespaceURI, "rect"));
    const { x1, y1, x2, y2 } = point;
    set(ring, { class: "ring", x: x1 - 4, y: y1 - 4, width: x2 - x1 + 8, height: y2 - y1 + 8, rx: 4 });
    const { left, top, scale } = this.place;
    const { width, height } = shown.getBoundingClientRect();
    const above = top + y1 * scale - height - 12;
    const below = top + y1 * scale + 16;
    shown.style.left = `${within(left + point.x * scale + 12, 4, document.documentElement.clientWidth - width - 4)}px`;
    shown.style.top = `${within(above < 4 ? below : above, 4, window.innerHeight - height - 4)}px`;
    return said.join(", ");
  }

  pressed(event) {
    if (event.target !== this.svg) return;
    if (event.key === "Escape" && this.zoom.isDeep) return this.zoom.reset();
    if (event.key === "Escape") this.svg.blur();
    if (this.zoom.is && /^[-+=0]$/.test(event.key)) return this.enlarge(event);
    const next = this.next(event.key, this.open);
    if (!next) return;
    event.preventDefault();
    spoken.textContent = this.show(next);
  }

  enlarge(event) {
    event.preventDefault();
    if (event.key === "0") return this.zoom.reset();
    const { left, top, scale } = this.place;
    const [x, y] = this.at ? [this.at.x, this.at.y] : [0.5, 0.5].map((half, axis) => half * this.zoom.size[axis]);
    this.zoom.by(event.key === "-" ? 2 / 3 : 1.5, this.at ? this.zoom.within({ clientX: left + x * scale, clientY: top + y * scale }) : [x, y]);
    if (this.at) spoken.textContent = this.show(this.at);
  }

  next(key, open) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1, Home: -open.length, End: open.length }[key];
    const at = open.indexOf(this.at);
    if (!step || at < 0) return step && open[0];
    if (!/Up|Down/.test(key)) return open[within(at + step, 0, open.length - 1)];
    const series = [...new Set(open.map((point) => point.series))];
    const other = series[series.indexOf(this.at.series) + step];
    const far = (point) => Math.abs(point.x - this.at.x);
    return open.filter((point) => point.series === other).sort((one, two) => far(one) - far(two))[0] ?? this.at;
  }

  button(label) {
    const series = this.series.indexOf(label.textContent);
    if (series < 0) return;
    const entry = label.parentNode;
    set(entry, { role: "button", tabindex: 0, "aria-pressed": true, "aria-label": `show ${label.textContent}` });
    entry.addEventListener("click", () => this.toggle(entry, series));
    entry.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.toggle(entry, series);
    });
  }

  toggle(entry, series) {
    if (!this.points) return; // which are found before any is hidden
    const off = !this.off.delete(series);
    if (off) this.off.add(series);
    entry.setAttribute("aria-pressed", !off);
    const marks = this.svg.querySelectorAll(`[data-of="${series}"], [data-says^="${series}|"]`);
    for (const mark of marks) mark.classList.toggle("off", off);
    hide();
  }
}

for (const svg of document.querySelectorAll("svg:has([data-heads])")) new Chart(svg);
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
document.addEventListener("scroll", hide, { passive: true, capture: true });

// A link into a folded part opens it.
const reveal = () => {
  const aim = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!aim) return;
  for (let one = aim.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
  aim.scrollIntoView();
};
reveal();
window.addEventListener("hashchange", reveal);

// What is wider than the page is moved sideways, by the keyboard too.
const reach = () => {
  for (const one of document.querySelectorAll(".scroll, pre")) {
    if (one.scrollWidth <= one.clientWidth) one.removeAttribute("tabindex");
    else set(one, { tabindex: 0, role: "group", "aria-label": one.querySelector("caption")?.textContent ?? "wide table" });
  }
};
hide();
reach();
window.addEventListener("resize", () => [hide, reach].forEach((one) => one()));
document.addEventListener("toggle", reach, true);
