// The table of all runs. What is seen of it (filters, order, columns, page, what is selected) is in the address.

import { Kept, arrange, fill, h, say, wordsOf } from "../lib/dom.js";
import { Address, filterFields, filtersOf, showFilters } from "../lib/filters.js";
import { count, several } from "../lib/text.js";

const ROWS = 100;
const AGAIN_MS = 5000;
const READING_MS = 1000;
const COLUMNS = {
  at: "began (UTC)",
  title: "title",
  verdict: "verdict",
  headline: "headline",
  tags: "tags",
  methods: "methods",
  cards: "cards",
  kernels: "kernel",
  drivers: "driver",
  trials: "trials or rounds",
  results: "results",
  run: "run",
};
const DEFAULT = ["at", "title", "verdict", "headline", "tags", "methods"];
const NUMBERS = ["trials", "results"];
const main = document.getElementById("main");
const address = new Address(() => show());
let timer = null;
let last = "";
let asked = 0;
let again = AGAIN_MS;

const columns = () => {
  const named = (address.query.get("columns") ?? "").split(",").filter((name) => COLUMNS[name]);
  return named.length ? named : DEFAULT;
};
const selected = () => address.query.getAll("pick");
const [body, head] = [h("tbody"), h("tr")];
const [kept, keptHeads] = [new Kept(), new Kept()];
const status = h("p", { class: "caption", role: "status" }, "Reading the runs …");
const pager = {
  newer: h("button", { type: "button", onclick: () => turn(-ROWS) }, "Previous"),
  older: h("button", { type: "button", onclick: () => turn(ROWS) }, "Next"),
};
const compare = h("a", { class: "button", hidden: true }, "Compare");
const downloads = { csv: h("a", { download: "runs.csv" }, "CSV"), json: h("a", { download: "runs.json" }, "JSON") };
const onwards = { trends: h("a", {}, "Trends"), explore: h("a", {}, "Explore") };
const filters = filterFields((changes) => set({ ...changes, from: null }));
const choices = Object.entries(COLUMNS).map(([name, label]) =>
  h("label", {}, h("input", { type: "checkbox", value: name, onchange: choose }), ` ${label}`),
);
const orders = h(
  "select",
  { onchange: (event) => set({ sort: event.target.value, from: null }) },
  Object.entries(COLUMNS).flatMap(([name, label]) => [
    h("option", { value: name }, `${label}, ascending`),
    h("option", { value: `-${name}` }, `${label}, descending`),
  ]),
);

fill(
  main,
  h("h1", {}, "Runs"),
  h(
    "form",
    { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    filters.q,
    filters.state,
    h(
      "details",
      {},
      h("summary", {}, "More filters, order and columns"),
      h(
        "div",
        { class: "filters" },
        Object.entries(filters)
          .filter(([name]) => !["q", "state"].includes(name))
          .map(([, element]) => element),
        h("label", {}, "order ", orders),
      ),
      h("fieldset", { class: "choices" }, h("legend", {}, "Columns"), choices),
    ),
  ),
  h(
    "p",
    { class: "buttons" },
    compare,
    " ",
    h("span", { class: "caption" }, "download what is seen: "),
    downloads.csv,
    " ",
    downloads.json,
    h("span", { class: "caption" }, " \u00b7 of these runs: "),
    Object.values(onwards).flatMap((link) => [link, " "]),
  ),
  status,
  h(
    "div",
    { class: "scroll runs", tabindex: "0", role: "region", "aria-label": "Runs" },
    h("table", {}, h("thead", {}, head), body),
  ),
  h("p", { class: "buttons" }, pager.newer, " ", pager.older),
);

const code = (text) => h("code", {}, text);
const first = h(
  "div",
  { hidden: true },
  h("p", {}, "A run appears here as soon as it begins. These commands make the first one; --runs names this folder where it is not ./runs:"),
  h(
    "ul",
    {},
    h("li", {}, code("nicbench demo --simulated"), " measures a simulated device: in seconds, and without root"),
    h("li", {}, code("nicbench demo"), " measures how fast the kernel of this machine forwards packets"),
    h("li", {}, code("nicbench init"), " writes a bench file for the ports of this machine, and ", code("nicbench run"), " measures what it says"),
  ),
);
status.after(first);
/** What is of use only where there are runs. */
const controls = main.querySelectorAll("form, .buttons, .scroll");

const set = (changes) => address.set(changes);
const turn = (by) => set({ from: String(Math.max(0, Number(address.query.get("from") ?? 0) + by)) });

function choose() {
  const chosen = choices
    .map((label) => label.firstElementChild)
    .filter((box) => box.checked)
    .map((box) => box.value);
  set({ columns: chosen.length ? chosen.join(",") : null });
}

function sortBy(name) {
  const before = address.query.get("sort") ?? "-at";
  set({ sort: before === name ? `-${name}` : name, from: null });
}

function pick(run, isPicked) {
  const others = selected().filter((each) => each !== run);
  set({ pick: isPicked ? [...others, run].slice(-2) : others });
}

/** Asks for the rows that are wanted, and puts them into the table where they are not there yet. */
async function show() {
  clearTimeout(timer);
  const number = (asked += 1);
  drawControls();
  try {
    const answer = await fetch(`/api/runs?${query()}`);
    if (number !== asked) return;
    if (!answer.ok) {
      say(status, await wordsOf(answer));
      return;
    }
    const text = await answer.text();
    say(document.getElementById("link"), "");
    const drawn = `${text}${selected()}${columns()}`;
    if (drawn !== last) {
      last = drawn;
      drawRows(JSON.parse(text));
    }
  } catch {
    say(document.getElementById("link"), "no connection to the server; trying again");
  }
  timer = setTimeout(() => (document.hidden ? (timer = null) : show()), again);
  again = AGAIN_MS;
}

function query() {
  const asks = new URLSearchParams(address.query);
  asks.delete("pick");
  return asks;
}

function drawControls() {
  showFilters(filters, address.query);
  for (const label of choices) label.firstElementChild.checked = columns().includes(label.firstElementChild.value);
  orders.value = address.query.get("sort") ?? "-at";
  const asks = query();
  asks.set("columns", columns().join(","));
  downloads.csv.href = `/api/runs.csv?${asks}`;
  downloads.json.href = `/api/runs.json?${asks}`;
  for (const [view, link] of Object.entries(onwards)) link.href = `/${view}?${new URLSearchParams(filtersOf(address.query))}`;
  const runs = selected();
  compare.hidden = runs.length === 0;
  compare.textContent = runs.length === 2 ? "Compare the two selected" : "Select another run to compare";
  if (runs.length === 2) compare.href = `/compare?${new URLSearchParams(runs.map((run) => ["run", run]))}`;
  else compare.removeAttribute("href");
}

function drawRows({ every, found, from, rows, reading }) {
  arrange(head, [keptHeads.get("select", "", () => h("th", { scope: "col" }, h("span", { class: "unseen" }, "select"))), ...columns().map(headOf)]);
  arrange(
    body,
    rows.map((row) => kept.get(row.run, [row, columns()], () => rowOf(row))),
  );
  kept.only(rows.map((row) => row.run));
  for (const box of body.querySelectorAll("td:first-child input")) box.checked = selected().includes(box.value);
  const all = every === found ? several(every, "run", "runs") : `${count(found)} of ${several(every, "run", "runs")}`;
  if (reading) again = READING_MS;
  say(
    status,
    reading
      ? `${all}, as they were known last; they are being read`
      : every === 0
        ? "There are no runs in this folder yet."
        : rows.length && rows.length < found
          ? `${all}; ${count(from + 1)} to ${count(from + rows.length)} are shown`
          : found === every
            ? all
            : `${all} match`,
  );
  for (const each of [...controls, pager.newer.parentElement]) each.hidden = every === 0 && !reading;
  first.hidden = every !== 0 || reading;
  pager.newer.disabled = from === 0;
  pager.older.disabled = from + rows.length >= found;
}

/** The head of a column, which is a button for its order. */
function headOf(name) {
  const made = keptHeads.get(name, "", () =>
    h(
      "th",
      { scope: "col", class: NUMBERS.includes(name) ? null : "words" },
      h("button", { type: "button", class: "plain", onclick: () => sortBy(name) }, COLUMNS[name], h("span", { "aria-hidden": "true" })),
    ),
  );
  const sort = address.query.get("sort") ?? "-at";
  const order = sort === name ? "ascending" : sort === `-${name}` ? "descending" : null;
  if (order) made.setAttribute("aria-sort", order);
  else made.removeAttribute("aria-sort");
  say(made.querySelector("span"), order ? (order === "ascending" ? " ▲" : " ▼") : "");
  return made;
}

function rowOf(row) {
  const box = h("input", {
    type: "checkbox",
    value: row.run,
    "aria-label": `select ${row.title ?? row.run} of ${row.at}`,
    onchange: (event) => pick(row.run, event.target.checked),
  });
  return h("tr", {}, h("td", {}, box), columns().map((name) => cell(row, name)));
}

function cell(row, name) {
  if (name === "title" || name === "run")
    return h(
      "td",
      { class: `words ${name}` },
      h("a", { href: `/runs/${encodeURIComponent(row.run)}` }, (name === "run" ? null : row.title) ?? row.run),
    );
  if (name === "verdict")
    return h("td", { class: "words short" }, h("span", { class: `badge ${look(row.verdict)}` }, row.verdict));
  if (name === "at") return h("td", { class: "words short" }, row.at ? row.at.slice(0, 16).replace("T", " ") : "–");
  if (name === "tags")
    return h(
      "td",
      { class: "words short" },
      row.tags.flatMap((tag) => [
        h("button", { type: "button", class: "tag", onclick: () => set({ tag, from: null }) }, tag),
        " ",
      ]),
    );
  if (NUMBERS.includes(name)) return h("td", { "data-label": COLUMNS[name] }, count(row[name]));
  const value = row[name];
  return h("td", { class: "words" }, (Array.isArray(value) ? value.join(", ") : value) || "–");
}

const look = (verdict) =>
  ({ valid: "valid", disturbed: "disturbed", imported: "imported" })[verdict] ??
  (verdict === "unfinished" ? "label" : "incomplete");

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && timer === null) show();
});
show();
