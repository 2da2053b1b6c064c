// Explore: any value against anything that runs or results differ in.

import { HistoryPage, seriesOf, TIME } from "../lib/history.js";
import { count, formOf } from "../lib/text.js";

const LONGEST = 18;

const page = new HistoryPage(document.getElementById("main"), {
  title: "Explore",
  about: "Any value against a parameter, a setting, another value or the time. The address holds all that you choose.",
  api: "/api/explore",
  choices: (found) => [
    page.select("x", "against", xKeys(found), found.x, { view: null }),
    found.x_kind === "number" ? page.box("xlog", "logarithmic x") : null,
    page.box("ylog", "logarithmic y"),
  ],
  chart: (found) => ({ x: axis(found), series: seriesOf(found, "x").map(withLine(found)) }),
});

/** What there is to choose for x, each once. */
function xKeys(found) {
  const keys = new Map(found.x_keys.map(({ key, label }) => [key, key.startsWith("value:") ? `value: ${label}` : label]));
  if (!keys.has(found.x)) keys.set(found.x, found.x_label);
  return [...keys];
}

function axis(found) {
  if (found.x_kind === "time") return TIME;
  const label = found.x_label;
  if (found.x_kind === "words") {
    const short = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);
    return { label, kind: "words", whole: true, value: (at) => (Number.isInteger(at) ? short(found.x_words[at] ?? "") : "") };
  }
  const isValue = found.x.startsWith("value:");
  const value = isValue ? formOf(found.x.slice(6), "") : (number) => count(Number(number.toPrecision(6)));
  return { label, value, kind: page.query.has("xlog") ? "log" : undefined };
}

const RELIABLE = ["valid", "imported"];

/**
 * Adds lines through the medians at each x of a parameter, or where several figures stand at one x. They end at a place
 * whose median is only known to lie below a bound.
 */
function withLine(found) {
  return (each) => {
    const at = new Map();
    const { x, x_below, number, upper, verdict } = each.points;
    x.forEach((place, index) => {
      if (x_below[index]) return; // it lies somewhere to the left
      const figure = { height: number[index] ?? upper[index], below: number[index] === null };
      if (RELIABLE.includes(verdict[index])) at.set(place, [...(at.get(place) ?? []), figure]);
    });
    const isCurve = found.x_kind === "number" && found.x.startsWith("parameter:");
    if (found.x_kind === "time" || (!isCurve && at.size * 2 > x.length)) return each;
    const lines = [[]];
    for (const [place, figures] of [...at].sort(([one], [other]) => one - other)) {
      const height = median(figures);
      if (height === null) lines.push([]);
      else lines.at(-1).push([place, height]);
    }
    return { ...each, lines };
  };
}

/** The median; null where figures that lie below their bounds leave it open. */
function median(figures) {
  const sorted = [...figures].sort((one, other) => one.height - other.height);
  const [lower, upper] = [Math.ceil(sorted.length / 2) - 1, Math.floor(sorted.length / 2)];
  if (sorted.slice(lower).some((figure) => figure.below)) return null;
  return (sorted[lower].height + sorted[upper].height) / 2;
}
