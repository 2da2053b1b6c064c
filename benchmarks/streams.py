"""iperf3 driven by nicbench beside iperf3 alone: the same command lines, in turn; and what nicbench itself costs.

With nicbench: a round as a run makes it, with the monitor at 1 Hz, the counters, the parser and the verdict. Alone:
the two command lines by a shell, the monitor standing still. A veth pair between two namespaces, one TCP stream.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from machine import cpu_s
from nicbench.core.base import WorkloadChoice
from nicbench.core.events import Bus
from nicbench.core.judging import Thresholds
from nicbench.core.machine import MonitorSettings
from nicbench.core.round import JobSpec, RoundRequest
from nicbench.hosts.kinds.local import LocalHost
from nicbench.measure.host_player import HostPlayer
from nicbench.measure.rounds import RoundMaker
from nicbench.measure.samples import SampleLog
from nicbench.methods._round_figures import jobs_of
from nicbench.monitor.running import RunningMonitors
from nicbench.store.monitor_samples import MonitorLog
from nicbench.testbed.labs.base import EndpointTestbed
from nicbench.testbed.labs.clients import ClientsLab, ClientsOptions
from nicbench.tuning.stack import UndoStack
from pairs import held, median_with_interval

WANTED_RATIO = 0.97
WANTED_SHARE = 0.01


class Bench:
    """One lab, one set of monitors; ``maker`` makes rounds as a run does."""

    def __init__(self, testbed: EndpointTestbed, folder: Path, monitors: RunningMonitors, changes: UndoStack) -> None:
        self.testbed = testbed
        self.folder = folder
        self.monitors = monitors
        self.maker = RoundMaker(
            HostPlayer(testbed, folder, changes), monitors, Thresholds(), SampleLog(journaled={}, bus=Bus())
        )
        self._made = 0

    def request(self, seconds: int) -> RoundRequest:
        """One stream of one client."""
        client = self.testbed.clients[0].facts
        jobs = jobs_of((client,), WorkloadChoice(kind="iperf3"), JobSpec(duration_s=float(seconds)))
        return RoundRequest(jobs=jobs, duration_s=seconds + 2.0)

    async def driven(self, seconds: int) -> tuple[float, bool]:
        """Bits per second as nicbench reports them, and whether iperf3's own output says the same."""
        self._made += 1
        one = await self.maker.make(f"bench/{self._made}/0", "bench", {}, self.request(seconds), 0)
        figures = one.outcomes[0].figures
        if figures is None:
            raise RuntimeError(str(one.outcomes[0].failure))
        output = next(name for name in one.outcomes[0].files if name.endswith("client.out"))
        said = json.loads((self.folder / output).read_text())["end"]["sum_received"]["bits_per_second"]
        rate = figures.flows[0].bits_per_s or 0.0
        return rate, rate == said

    async def alone(self, seconds: int) -> float:
        """The same without nicbench: its monitor stands still, and this process waits."""
        server, client = self.testbed.servers[0], self.testbed.clients[0]
        ends = (server.facts.address, client.facts.address)
        script = (
            f"ip netns exec {server.host.namespace} iperf3 -s -1 -J -p 5201 -B {ends[0]} > /dev/null & sleep 0.3; "  # type: ignore[attr-defined]
            f"ip netns exec {client.host.namespace} iperf3 -c {ends[0]} -p 5201 -J -B {ends[1]} -t {seconds}; wait"  # type: ignore[attr-defined]
        )
        with held(*self.monitor_pids()):
            process = await asyncio.create_subprocess_exec("sh", "-c", script, stdout=asyncio.subprocess.PIPE)
            stdout, _ = await process.communicate()
        return float(json.loads(stdout)["end"]["sum_received"]["bits_per_second"])

    def monitor_pids(self) -> list[int]:
        """Those of its machine."""
        return [pid for each in self.monitors._watched if (pid := each.client.pid) is not None]

    async def own_share(self, seconds: int) -> float:
        """CPU time of nicbench's processes over a round, as a share of the machine's."""
        pids = [os.getpid(), *self.monitor_pids()]
        before, began = sum(map(cpu_s, pids)), time.monotonic()
        await self.driven(seconds)
        return (sum(map(cpu_s, pids)) - before) / (time.monotonic() - began) / (os.cpu_count() or 1)


async def measured(pairs: int, seconds: int, long_s: int) -> int:
    """Prints both lines; 1 where one of them misses what is wanted."""
    changes = UndoStack(f"bench-streams-{os.getpid()}", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            testbed = await ClientsLab(ClientsOptions()).up(changes, LocalHost())
            monitors = RunningMonitors(MonitorLog(folder), Bus())
            await monitors.start(MonitorSettings(), testbed.test_hosts, None)
            bench = Bench(testbed, folder, monitors, changes)
            try:
                if not bench.monitor_pids():
                    raise RuntimeError("the monitor does not run: build it with `make install`")
                ratio_met = await compared(bench, pairs, seconds)
                share = await bench.own_share(long_s)
            finally:
                await monitors.close()
        finally:
            for trouble in await changes.undo_all():
                print(f"bench: {trouble}", file=sys.stderr)
    print(
        f"nicbench's own processes over {long_s} s: {100 * share:.3f} % of the machine's CPU time; "
        f"wanted: at most {100 * WANTED_SHARE:g} %: {'met' if share <= WANTED_SHARE else 'missed'}"
    )
    return 0 if ratio_met and share <= WANTED_SHARE else 1


async def compared(bench: Bench, pairs: int, seconds: int) -> bool:
    """Pairs in turn, which comes first is drawn; the resolution is half the width of the interval."""
    draw = random.Random(1)
    ratios: list[float] = []
    rates: tuple[list[float], list[float]] = ([], [])
    same = True
    await bench.alone(1)
    for _ in range(pairs):
        if draw.random() < 0.5:
            driven, equal = await bench.driven(seconds)
            alone = await bench.alone(seconds)
        else:
            alone = await bench.alone(seconds)
            driven, equal = await bench.driven(seconds)
        same = same and equal
        ratios.append(driven / alone)
        rates[0].append(driven / 1e9)
        rates[1].append(alone / 1e9)
    median, lower, upper = median_with_interval(ratios, 1)
    met = lower >= WANTED_RATIO and same
    print(
        f"iperf3 with nicbench beside iperf3 alone, {pairs} pairs of {seconds} s: "
        f"{min(rates[0]):.1f} to {max(rates[0]):.1f} Gb/s, alone {min(rates[1]):.1f} to {max(rates[1]):.1f} Gb/s; "
        f"median ratio {median:.3f} [{lower:.3f}, {upper:.3f}], resolution {(upper - lower) / 2:.3f}; "
        f"what nicbench reports is {'' if same else 'NOT '}what iperf3 says; load average {os.getloadavg()[0]:.1f}; "
        f"wanted: lower bound at least {WANTED_RATIO:g}: {'met' if met else 'not shown'}",
        flush=True,
    )
    return met


def main() -> int:
    """Runs it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--long", type=int, default=60)
    arguments = parser.parse_args()
    return asyncio.run(measured(arguments.pairs, arguments.seconds, arguments.long))


if __name__ == "__main__":
    sys.exit(main())
