// What the CPUs of the machines did meanwhile, by the samples of the run's monitors.

import { Chart } from "../lib/chart.js";
import { h } from "../lib/dom.js";
import { clock, percent, perSecond } from "../lib/text.js";

const OFTEN_MS = 3000;

/** Charts for each machine that has a monitor; a machine that appears later gets its own. */
export class Monitor {
  constructor(place, run) {
    Object.assign(this, { place, run, machines: new Map(), timer: null, isRunning: false });
    this.load();
  }

  follow(isRunning) {
    if (isRunning === this.isRunning) return;
    this.isRunning = isRunning;
    this.load();
  }

  async load() {
    clearTimeout(this.timer);
    try {
      const answer = await fetch(`/api/runs/${this.run}/cpus`);
      if (answer.ok) this.show((await answer.json()).machines);
    } catch {
      // the server is gone: the line at the top of the page says so
    }
    if (this.isRunning) this.timer = setTimeout(() => this.load(), OFTEN_MS);
  }

  show(machines) {
    this.place.hidden = machines.length === 0;
    for (const machine of machines) {
      if (!this.machines.has(machine.host)) this.machines.set(machine.host, this.charts(machine.host));
      const { use, interrupts } = this.machines.get(machine.host);
      use.set([machine.at_s, machine.mean, machine.busiest, machine.softirq, machine.stolen]);
      interrupts.set(machine.interrupts.some((each) => each !== null) ? [machine.at_s, machine.interrupts] : [[], []]);
    }
  }

  charts(host) {
    if (this.machines.size === 0) this.place.append(h("h2", {}, "CPUs and interrupts"));
    const x = { label: "since the beginning", value: clock };
    const line = (label, number) => ({ label, colour: `--series-${number}`, form: "line" });
    return {
      use: new Chart(this.place, {
        title: `${host}: use of the CPUs`,
        x,
        y: { label: "busy", value: percent, range: () => [0, 1] },
        series: [
          line("all CPUs together", 1),
          line("the busiest CPU", 2),
          line("softirq, all", 3),
          line("lost to other guests, all", 4),
        ],
      }),
      interrupts: new Chart(this.place, {
        title: `${host}: interrupts`,
        x,
        y: { label: "interrupts", value: perSecond },
        series: [line("all CPUs together", 1)],
      }),
    };
  }
}
