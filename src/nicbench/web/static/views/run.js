// The page of a run: what it does, its charts as they grow, where frames were lost, its trials and its log.

import { fill, h, post, say, tell } from "../lib/dom.js";
import { listen } from "../lib/stream.js";
import { clock, count, rate, words } from "../lib/text.js";
import { Charts } from "./run-charts.js";
import { Monitor } from "./run-monitor.js";
import { Log, Results, Trials, lostFrames } from "./run-tables.js";

const main = document.getElementById("main");
const { run } = main.dataset; // as it stands in an address
const STATES = {
  running: ["running", "label"],
  finished: ["finished", "valid"],
  stopped: ["stopped early", "incomplete"],
  killed: ["ended without a word", "incomplete"],
  gone: ["no longer here", "incomplete"],
  silent: ["elsewhere, or just ended", "label"],
};
const EXPLAINED = {
  stopped: "The run was stopped. `nicbench resume` goes on with it.",
  killed:
    "No process on this machine conducts this run any more, and its journal has no end: it was killed, or it is " +
    "silent on another machine. `nicbench resume` goes on with one that was killed.",
  gone: "The folder of this run is gone: a run that ends before it measured anything leaves none.",
  silent: "No process that conducts this run can be seen here. Where it runs on another machine, stop it there.",
};

const view = {
  badge: h("span", { class: "badge label" }, "…"),
  title: h("h1", {}, document.title),
  now: h("p", { class: "answer", "aria-live": "polite" }),
  left: h("p", { class: "description" }),
  bar: h("progress", { max: "1", value: "0", "aria-label": "Share of the run that is done" }),
  waiting: h("p", { class: "plainly", role: "status", hidden: true }),
  report: h("a", { class: "button", href: `/runs/${run}/report.html`, hidden: true }, "The report of this run"),
  stop: h("button", { type: "button", onclick: () => ask("stop") }, "Stop"),
  after: h("button", { type: "button", onclick: () => ask("stop-after-test") }, "Stop after this test"),
  asked: h("span", { class: "caption", role: "status" }),
  points: h("select", {
    onchange: (event) => {
      chosen = event.target.value || null;
      draw();
    },
  }),
  charts: h("section", { class: "charts", "aria-label": "Charts" }),
  lost: h("p", {}),
  last: h("p", {}),
};
const [results, trials, log] = [new Results(), new Trials(), new Log()];
const monitorPlace = h("section", { class: "charts", "aria-label": "Machines", hidden: true });

fill(
  main,
  h("p", { class: "eyebrow" }, decodeURIComponent(run)),
  view.title,
  h("div", { class: "verdict" }, view.badge, view.left),
  view.bar,
  view.now,
  view.waiting,
  h(
    "p",
    { class: "buttons" },
    view.report,
    " ",
    (view.buttons = h("span", {}, view.stop, " ", view.after)),
    " ",
    view.asked,
  ),
  h("p", { class: "buttons" }, h("label", {}, "shown: ", view.points)),
  results.element,
  view.last,
  view.charts,
  (view.losses = h("section", {}, h("h2", {}, "Where frames were lost"), view.lost)),
  monitorPlace,
  (view.trials = h("section", {}, h("h2", {}, "Trials and rounds"), trials.element)),
  h("h2", {}, "Log"),
  log.element,
);

const charts = new Charts(view.charts);
const monitor = new Monitor(monitorPlace, run);
let items = [];
let state = {};
let chosen = null; // null: follow the run
let drawing = false;

const keyOf = (item) => [item.conf, item.test, item.point].filter(Boolean).join(" · ");
const isOver = () => ["finished", "stopped", "killed", "gone"].includes(state.state);
const isSample = (item) => item.k === "trial" || item.k === "round";

listen(run, {
  reset() {
    items = [];
    log.clear();
    drawSoon();
  },
  items(more) {
    items.push(...more);
    log.add(more);
    drawSoon();
  },
  state(now) {
    const isOther = now.state !== state.state;
    state = now;
    monitor.follow(now.state === "running");
    if (isOther) drawSoon();
    else drawHead();
  },
  over() {
    // No link may lead to the server, which is gone; the last parts are drawn first.
    setTimeout(() => {
      view.report.replaceWith("The report is report.html in the run folder.");
      for (const link of document.querySelectorAll('a[href^="/"]')) link.replaceWith(...link.childNodes);
    }, 300);
  },
});

function drawSoon() {
  if (drawing) return;
  drawing = true;
  setTimeout(() => {
    drawing = false;
    draw();
  }, 100);
}

function draw() {
  drawHead();
  const samples = items.filter(isSample);
  const keys = [...new Set(samples.map(keyOf))];
  // A run that goes on is followed; of one that is over the first point is shown, which has the search.
  const shown = keys.includes(chosen)
    ? chosen
    : state.state === "running" || state.state === undefined
      ? keys.at(-1)
      : keys[0];
  drawChoices(keys);
  if (chosen === null) view.points.value = state.state === "running" || !shown ? "" : shown;
  const wanted = samples.filter((item) => keyOf(item) === shown);
  drawLast(wanted.at(-1), shown);
  charts.draw(wanted, samples);
  fill(view.lost, lostFrames(wanted, shown));
  view.losses.hidden = !wanted.some((item) => item.k === "trial") && (isOver() || wanted.length > 0);
  view.trials.hidden = samples.length === 0 && isOver();
  trials.show(samples, keyOf);
  results.show(
    items.filter((item) => item.k === "result"),
    keyOf,
  );
}

function drawHead() {
  const began = items.findLast((item) => item.k === "run");
  const end = items.findLast((item) => item.k === "end");
  if (began) {
    say(view.title, began.title);
    document.title = `${began.title} – nicbench`;
  }
  const [text, look] = STATES[state.state] ?? ["…", "label"];
  const verdict = state.verdict ?? (state.state === "running" ? null : end?.verdict);
  say(view.badge, state.state === "finished" && verdict ? verdict : text);
  view.badge.className = `badge ${state.state === "finished" && verdict ? verdict : look}`;
  const isRunning = state.state === "running";
  view.bar.hidden = state.share === undefined;
  view.bar.value = state.share ?? 0;
  tell(
    view.left,
    isRunning
      ? (state.left ?? "")
      : (EXPLAINED[state.state] ?? (began ? `began ${began.at.slice(0, 16).replace("T", " ")} UTC` : "")),
  );
  say(view.now, nowWords());
  const last = items.findLast((item) => item.k !== "said");
  view.waiting.hidden = !(isRunning && last?.k === "waiting");
  say(view.waiting, view.waiting.hidden ? "" : last.text);
  drawButtons(isRunning);
  view.report.hidden = !state.report;
}

function nowWords() {
  const now = state.now;
  if (!now) return "";
  if (now.event === "stage_started") return now.text;
  if (now.event === "test_started") return `test ${now.test} begins`;
  const what = [now.test, now.point, words(now.purpose ?? "")].filter(Boolean).join(", ");
  const how =
    now.event === "round_begun"
      ? `${now.jobs} job${now.jobs === 1 ? "" : "s"}`
      : now.load === undefined
        ? "as fast as possible"
        : rate(now.load);
  return `${what}: ${how} for ${clock(now.duration_s)}${now.repeat ? `, repeat ${now.repeat}` : ""}`;
}

function drawButtons(isRunning) {
  view.stop.disabled = !isRunning || !state.can_stop;
  const inTest = state.now !== undefined && state.now.event !== "stage_started";
  view.after.disabled = view.stop.disabled || !inTest || state.asked === true;
  view.buttons.hidden = isOver();
  if (!isRunning) say(view.asked, "");
  if (state.asked) say(view.asked, "It ends after the present test.");
  else if (isRunning && !state.can_stop)
    say(view.asked, "The run belongs to another user of this machine, who alone can stop it.");
  else if (state.state === "silent")
    say(view.asked, "It cannot be stopped from here: no process of this machine conducts it.");
}

async function ask(what) {
  if (
    what === "stop" &&
    !window.confirm("Stop this run now? What was measured is kept, and nicbench resume goes on with it.")
  )
    return;
  try {
    await post(`/api/runs/${run}/${what}`);
    say(view.asked, what === "stop" ? "Stopping: it undoes its changes." : "It ends after the present test.");
  } catch (error) {
    say(view.asked, error.message);
  }
}

/** The points to choose from; the list is left alone while it is the same, so that the keyboard keeps its place. */
function drawChoices(keys) {
  view.points.parentElement.hidden = keys.length < 2;
  const known = keys.join("\n");
  if (view.points.dataset.known === known) return;
  view.points.dataset.known = known;
  fill(
    view.points,
    h("option", { value: "" }, "what is measured now"),
    keys.map((key) => h("option", { value: key }, key)),
  );
  view.points.value = chosen ?? "";
}

function drawLast(last, shown) {
  if (!last) {
    const others = "Others measured this, and its results were imported: they are in its report.";
    say(view.last, !isOver() ? "Nothing is measured yet." : state.verdict === "imported" ? others : "This run measured nothing.");
    return;
  }
  const what =
    last.k === "round"
      ? (last.said ?? "no rate")
      : `${last.load === undefined ? "as fast as possible" : rate(last.load)}, lost ${count(last.lost)} of ${count(last.sent)}`;
  say(
    view.last,
    `${shown}.${boundsOf(last)} Last: ${last.id} ${what}, ${last.verdict}${last.why ? `: ${last.why[0]}` : ""}`,
  );
}

/** The bounds of each goal of the search that this trial is of, as the run itself says them. */
function boundsOf(last) {
  const isOfIt = (item) => item.k === "bounds" && item.test === last.test && item.point === last.point;
  const bounds = items.findLast(isOfIt);
  if (!bounds?.goals.length) return "";
  const goals = bounds.goals.map(([goal, low, high]) => {
    if (low === null) return `${goal} ${high === null ? "unknown" : `below ${rate(high)}`}`;
    return `${goal} ${high === null ? `at least ${rate(low)}` : `${rate(low)} to ${rate(high)}`}`;
  });
  return ` Bounds after trial ${bounds.trials} of at most ${bounds.most}: ${goals.join(", ")}.`;
}
