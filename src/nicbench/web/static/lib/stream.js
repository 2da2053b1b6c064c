// The events of a run, and whether the server is there. Whoever connects again, browser or page, says what it has: what
// is seen stays while no server is there.

import { say } from "./dom.js";

/** Listens to a run, by its name as it stands in an address. `on`: {items, state, reset, over}, called with what came. */
export function listen(run, on) {
  const link = document.getElementById("link");
  let source;
  let retry = 0;
  let last = "";
  const connect = () => {
    source = new EventSource(`/api/runs/${run}/events?after=${last}`);
    source.addEventListener("open", () => {
      say(link, "");
      retry = 0;
    });
    source.addEventListener("reset", () => on.reset());
    source.addEventListener("items", (event) => {
      last = event.lastEventId;
      on.items(JSON.parse(event.data));
    });
    source.addEventListener("state", (event) => on.state(JSON.parse(event.data)));
    source.addEventListener("bye", (event) => {
      if (!JSON.parse(event.data).for_good) return;
      source.close();
      say(link, "The run has ended, and the server of this page with it: `nicbench web` shows the run again.");
      on.over();
    });
    source.addEventListener("error", () => {
      say(link, "no connection to the server; trying again");
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries by itself
      retry = Math.min(retry + 1, 4);
      setTimeout(connect, 500 * retry);
    });
  };
  connect();
}
