// Trends: a value over the years, and the changes of its level that may be claimed, with what differed then.

import { fill, h, say, wordsOf } from "../lib/dom.js";
import { HistoryPage, seriesOf, TIME } from "../lib/history.js";
import { change, count, date, several } from "../lib/text.js";

const OUTCOMES = { worse: "incomplete", better: "valid", different: "label", "not comparable": "disturbed" };
const run = (name) => h("a", { href: `/runs/${encodeURIComponent(name)}` }, name);
const HEADS = ["series", "first run after", "change", "outcome", "what differs from the run before"];
const FEWEST = 4; // compare/regressions.py
let asked = 0;

const page = new HistoryPage(document.getElementById("main"), {
  title: "Trends",
  about:
    "A value over time, run by run. A change (dashed) is claimed by the rule of nicbench check: four runs and more on " +
    "each side, and a difference that their numbers and intervals show. Level lines are the medians between changes.",
  api: "/api/trends",
  choices: () => [tolerance()],
  chart: (found) => ({ x: TIME, series: seriesOf(found, "at") }),
  drawn: (found) => showChanges(found),
});

const field = h("input", {
  type: "text",
  inputmode: "decimal",
  "data-name": "tolerance",
  onchange: (event) => page.address.set({ tolerance: event.target.value || null }),
});
const ignored = h("label", {}, "ignore changes up to (%) ", field);

/** The field of the tolerance, which is left alone while somebody types in it. */
function tolerance() {
  if (document.activeElement !== field) field.value = page.query.get("tolerance") ?? "1";
  return ignored;
}

/** Asks for the changes, which take longer than the points, and draws them when they are there. */
async function showChanges(found) {
  const number = (asked += 1);
  if (found.series.length === 0) {
    fill(page.below);
    return;
  }
  if (!page.below.hasChildNodes()) fill(page.below, h("p", { class: "caption" }, "Looking for changes …"));
  const answer = await fetch(`/api/trends/changes?${page.serverQuery()}`);
  if (number !== asked) return;
  if (!answer.ok) {
    say(page.status, await wordsOf(answer));
    return;
  }
  const { series } = await answer.json();
  if (number !== asked) return;
  // A run may have come between the two answers: series belong together by their names.
  const answers = new Map(series.map((each) => [each.name, each]));
  const drawn = seriesOf(found, "at").map((each, index) => {
    const trend = answers.get(found.series[index].name);
    const changes = trend?.changes.map((one) => ({ at: one.at, text: sizeOf(one), line: index }));
    return { ...each, levels: trend?.levels, changes };
  });
  const { title, x, y, window } = page.chart;
  page.chart.show(drawn, { title, x, y, window });
  drawChanges(found, series);
}

function drawChanges(found, series) {
  const rows = series.flatMap((each) => each.changes.map((one) => ({ ...one, name: each.name || found.test })));
  rows.sort((one, other) => other.at - one.at);
  const recent = series.filter((each) => each.recent > 0);
  const earlier = series.reduce((sum, each) => sum + each.earlier, 0);
  fill(
    page.below,
    h("h2", {}, "Changes"),
    rows.length === 0 ? h("p", {}, none(found)) : table(rows),
    earlier ? h("p", { class: "caption" }, `${several(earlier, "earlier change is", "earlier changes are")} not listed.`) : null,
    recent.map((each) =>
      h(
        "p",
        {},
        `${each.name || found.test}: the newest ${figures(each.recent)} apart from those before. ` +
          `${each.needed} more like ${each.recent === 1 ? "it" : "them"} are needed before a change can be claimed.`,
      ),
    ),
    h("h2", {}, "Badge"),
    badge(found),
  );
}

/** Why there is no change. */
const none = (found) =>
  found.series.every((each) => each.count < 2 * FEWEST)
    ? `No change can be claimed yet: that takes ${FEWEST} runs before it and ${FEWEST} after it.`
    : "No change of level can be claimed from these runs.";

const figures = (number) => (number === 1 ? "figure lies" : `${number} figures lie`);

function table(rows) {
  return h(
    "div",
    { class: "scroll changes", tabindex: "0", role: "region", "aria-label": "Changes" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, HEADS.map((text) => h("th", { scope: "col", class: "words" }, text)))),
      h("tbody", {}, rows.map(row)),
    ),
  );
}

function row(one) {
  const between = one.between ? `; ${one.between} in between belong to neither side` : "";
  const values = `${sideOf(one.before, one.before_below)} → ${sideOf(one.after, one.after_below)}`;
  const about = (at, what = "words") => ({ class: what, "data-label": HEADS[at] });
  return h(
    "tr",
    {},
    h("td", about(0), one.name),
    h("td", about(1), run(one.run), h("br"), h("span", { class: "caption" }, `${date(one.at)}, after `, run(one.run_before), between)),
    h("td", about(2), h("b", {}, sizeOf(one)), h("br"), h("span", { class: "caption" }, values, h("br"), one.why)),
    h("td", about(3, "words short"), h("span", { class: `badge ${OUTCOMES[one.outcome] ?? "label"}` }, one.outcome), h("br"), beside(one)),
    h("td", about(4), differences(one)),
  );
}

/** The size of a change; where a side is only known to lie below a bound it has none, and is called by its outcome. */
const sizeOf = (one) => (one.change_percent === null && one.before !== 0 ? one.outcome : change(one.change_percent));
const sideOf = (median, below) => (below === null ? page.form(median) : `below ${page.form(below)}`);

function beside(one) {
  const query = new URLSearchParams([one.run_before, one.run].map((name) => ["run", name]));
  return h("a", { href: `/compare?${query}` }, "compare");
}

function differences(one) {
  if (one.trouble) return one.trouble;
  const objections = one.objections.map((text) => h("li", {}, text));
  const settings = one.differences.map((each) =>
    h("li", {}, h("code", {}, each.path), `: ${each.before} → ${each.after} `, h("span", { class: "caption" }, `(${each.why})`)),
  );
  if (objections.length + settings.length === 0) return "nothing that the runs disclose";
  const more = one.more ? h("li", {}, `and ${count(one.more)} more: nicbench diff ${one.run_before} ${one.run}`) : null;
  return h("ul", {}, objections, settings, more);
}

/** The newest figure as a picture for a README, by its address. */
function badge(found) {
  const query = page.serverQuery();
  for (const name of ["test", "value", "by", "tolerance"]) query.delete(name);
  for (const [name, value] of Object.entries(found.given)) query.set(`p.${name}`, value);
  const path = `/badges/${encodeURIComponent(found.test)}/${encodeURIComponent(found.value)}.svg?${query}`;
  return h(
    "p",
    {},
    h("a", { href: path }, h("img", { src: path, alt: `newest ${found.label} of ${found.test}` })),
    h("span", { class: "caption" }, " the newest figure. "),
    h("code", {}, "nicbench export RUN --to badge"),
    h("span", { class: "caption" }, " writes the badge of one run to a file."),
  );
}
