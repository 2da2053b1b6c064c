// The filters of runs, the same in every view: fields, and what of them is in the address.

import { h } from "./dom.js";

const STATES = ["valid", "disturbed", "incomplete", "imported", "unfinished", "damaged"];
const LABELS = {
  q: "search",
  state: "verdict",
  tag: "tag",
  method: "method",
  card: "card",
  driver: "driver",
  kernel: "kernel",
  since: "since",
  until: "until",
};
const WAIT_MS = 150;

/** The address of the page as a query that can be changed; `onchange` is called after a change, also back and forward. */
export class Address {
  constructor(onchange) {
    this.query = new URLSearchParams(location.search);
    this.onchange = onchange;
    window.addEventListener("popstate", () => {
      this.query = new URLSearchParams(location.search);
      onchange();
    });
  }

  /** Changes names; null takes a name out, a list gives it several times. */
  set(changes) {
    for (const [name, value] of Object.entries(changes)) {
      this.query.delete(name);
      for (const each of Array.isArray(value) ? value : value === null ? [] : [value]) this.query.append(name, each);
    }
    history.replaceState(null, "", this.query.size ? `?${this.query}` : location.pathname);
    this.onchange();
  }
}

/** The fields by name, each in its label. `set` is called with what changed once nothing was typed for a moment. */
export function filterFields(set) {
  let timer = null;
  const field = (name, label) => {
    const change = (event) => {
      clearTimeout(timer);
      timer = setTimeout(() => set({ [name]: event.target.value || null }), name === "state" ? 0 : WAIT_MS);
    };
    const input =
      name === "state"
        ? h(
            "select",
            { name, onchange: change },
            h("option", { value: "" }, "any"),
            STATES.map((each) => h("option", { value: each }, each)),
          )
        : h("input", {
            name,
            type: name === "q" ? "search" : "text",
            oninput: change,
            placeholder: ["since", "until"].includes(name) ? "2026-01-31" : null,
            autocomplete: "off",
          });
    return h("label", {}, `${label} `, input);
  };
  return Object.fromEntries(Object.entries(LABELS).map(([name, label]) => [name, field(name, label)]));
}

/** Shows in the fields what the address says, but for the one that is being typed in. */
export function showFilters(fields, query) {
  for (const [name, label] of Object.entries(fields))
    if (document.activeElement !== label.lastElementChild) label.lastElementChild.value = query.get(name) ?? "";
}

/** The part of an address that filters runs. */
export function filtersOf(query) {
  return [...query].filter(([name]) => name in LABELS);
}
