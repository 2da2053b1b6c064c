// A chart as a picture to keep: PNG of what is drawn, SVG of the same points, marks and axes.

import { visible } from "./dom.js";
import { DASH, shapeOf } from "./points.js";

const MARGIN = 14;
const LINE = 18;
const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const escaped = (text) =>
  visible(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

/** Gives the browser a file to keep. */
function keep(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Keeps a chart as PNG, under its title and the names of its series. */
export function keepPng(chart, name) {
  const { canvas } = chart.plot.ctx;
  const ratio = devicePixelRatio;
  const names = chart.series.filter((each) => !chart.hidden.has(each.label));
  const head = (MARGIN + LINE * (1.4 + names.length)) * ratio;
  const made = document.createElement("canvas");
  [made.width, made.height] = [canvas.width, canvas.height + head];
  const pen = made.getContext("2d");
  pen.fillStyle = colourOf("--paper");
  pen.fillRect(0, 0, made.width, made.height);
  pen.fillStyle = colourOf("--ink");
  pen.font = `600 ${15 * ratio}px system-ui, sans-serif`;
  pen.fillText(visible(chart.title), MARGIN * ratio, (MARGIN + 8) * ratio);
  pen.font = `${12 * ratio}px system-ui, sans-serif`;
  names.forEach((each, index) => {
    pen.fillStyle = colourOf(each.colour);
    pen.fillText(`● ${visible(each.label)}`, MARGIN * ratio, (MARGIN + 8 + LINE * (index + 1.2)) * ratio);
  });
  pen.drawImage(canvas, 0, head);
  made.toBlob((blob) => keep(blob, name));
}

/** Keeps a chart as SVG. */
export function keepSvg(chart, name) {
  keep(new Blob([svgOf(chart)], { type: "image/svg+xml" }), name);
}

/** The chart as SVG text. */
export function svgOf(chart) {
  const { plot, title } = chart;
  const names = chart.series.filter((each) => !chart.hidden.has(each.label));
  const head = MARGIN + LINE * (1.4 + names.length);
  const [left, top] = [plot.over.offsetLeft, plot.over.offsetTop + head];
  const [width, height] = [plot.over.clientWidth, plot.over.clientHeight];
  const x = (value) => (left + plot.valToPos(value, "x")).toFixed(1);
  const y = (value) => (top + plot.valToPos(value, "y")).toFixed(1);
  const [ink, muted, grid] = ["--ink", "--muted", "--grid"].map(colourOf);
  const text = (at, words, extra = "") => `<text x="${at[0]}" y="${at[1]}" ${extra}>${escaped(words)}</text>`;
  const line = (from, to, stroke, extra = "") =>
    `<path d="M${from[0]} ${from[1]}L${to[0]} ${to[1]}" stroke="${stroke}" fill="none" ${extra}/>`;
  const parts = [
    text([MARGIN, MARGIN + 8], title, `font-size="15" font-weight="600" fill="${ink}"`),
    ...names.map((each, index) =>
      text([MARGIN, MARGIN + 8 + LINE * (index + 1.2)], `● ${each.label}`, `fill="${colourOf(each.colour)}"`),
    ),
  ];
  for (const [at, words] of chart.ticks[0]) {
    if (at === null) continue;
    parts.push(line([x(at), top], [x(at), top + height], grid));
    parts.push(text([x(at), top + height + 18], words, `text-anchor="middle" fill="${muted}"`));
  }
  for (const [at, words] of chart.ticks[1]) {
    if (at === null) continue;
    parts.push(line([left, y(at)], [left + width, y(at)], grid));
    parts.push(text([left - 8, Number(y(at)) + 4], words, `text-anchor="end" fill="${muted}"`));
  }
  parts.push(text([left + width / 2, top + height + 38], chart.x.label, `text-anchor="middle" fill="${muted}"`));
  const inside = [];
  for (const mark of chart.marks()) {
    const stroke = colourOf(mark.colour);
    if (mark.kind === "interval")
      inside.push(line([x(mark.x), y(mark.lower)], [x(mark.x), y(mark.upper)], stroke, 'stroke-opacity="0.45"'));
    else if (mark.kind === "cross") inside.push(shape("cross", Number(x(mark.x)), Number(y(mark.y)), stroke));
    else if (mark.kind === "line")
      inside.push(`<path d="M${mark.through.map((at) => `${x(at[0])} ${y(at[1])}`).join("L")}" stroke="${stroke}" fill="none"/>`);
    else if (mark.kind === "level")
      inside.push(line([x(mark.from), y(mark.median)], [x(mark.to), y(mark.median)], stroke, `stroke-width="2" ${mark.below ? dash(DASH.below) : ""}`));
    else {
      inside.push(line([x(mark.at), top], [x(mark.at), top + height], stroke, dash(DASH.change)));
      if (mark.at >= plot.scales.x.min && mark.at <= plot.scales.x.max)
        parts.push(text([x(mark.at), top - 5 - 15 * mark.line], mark.text, `text-anchor="middle" fill="${stroke}"`));
    }
  }
  for (const row of chart.visible()) {
    const kind = shapeOf(row);
    const colour = colourOf(chart.series[row.series].colour);
    if (kind !== "cross") inside.push(shape(kind, Number(x(row.x)), Number(y(row.y)), colour, row.isUnscaled));
  }
  const size = `width="${plot.width}" height="${plot.height + head}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" font-family="system-ui,sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title><rect width="100%" height="100%" fill="${colourOf("--paper")}"/>`,
    `<clipPath id="plot"><rect x="${left}" y="${top}" width="${width}" height="${height}"/></clipPath>`,
    ...parts,
    `<g clip-path="url(#plot)">${inside.join("\n")}</g></svg>\n`,
  ].join("\n");
}

const dash = (lengths) => `stroke-dasharray="${lengths.join(" ")}"`;

function shape(kind, x, y, colour, isHollow = false) {
  const look = isHollow || kind === "cross" ? `fill="none" stroke="${colour}" stroke-width="1.4"` : `fill="${colour}"`;
  const r = 3.4;
  if (kind === "circle") return `<circle cx="${x}" cy="${y}" r="${r}" ${look}/>`;
  const paths = {
    arrow: `M${x - r} ${y}h${2 * r}L${x} ${y + r * 2.2}z`,
    left: `M${x} ${y - r}v${2 * r}L${x - r * 2.2} ${y}z`,
    corner: `M${x - r} ${y - r}L${x + r} ${y + r}L${x - r * 1.6} ${y + r * 1.6}z`,
    square: `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    triangle: `M${x} ${y - r * 1.2}l${r * 1.1} ${r * 2.1}h${-2.2 * r}z`,
    cross: `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`,
  };
  return `<path d="${paths[kind]}" ${look}/>`;
}
