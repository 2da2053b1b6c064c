"""Bench files on the veth lab, small enough for tests, and runs of them in this process."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.commands import run_captured

from nicbench.bench_file import load
from nicbench.core.events import Bus, TrialFinished
from nicbench.core.result import Bounded, Result, Summary
from nicbench.core.trial import Trial
from nicbench.run import run
from nicbench.store.folder import RunFolder

# So that a busy machine does not make these tests repeat trials until their time is up: what they test is not that.
TOLERANT = """
thresholds:
  {longest_gap_ms: 500, total_gap_share: 0.9, unsent_share: 0.2, dut_foreign_cpu_share: 0.99, dut_contended_share: 0.99,
   dut_pause_ms: 500}
"""

POLICER = """
nicbench: 1
title: Policer of a known rate
lab: {{kind: veth}}
dut: {{kind: policer, rate: {rate} pps, burst: 4000}}
tester: {{catch_up: 10 ms}}
thresholds: {{dut_contended_share: 1.0}} # a token bucket's rate does not depend on how much of its core it gets
tests:
  - name: throughput
    method: throughput
    frame_bytes: {sizes}
    search: {{kind: {search}, goals: {{NDR: 0 %}}, precision: 0.5 %, maximum_trials: 24, trials_per_bound: 1}}
    trial: {{duration: {trial_s:g} s, drain: 200 ms, settle: 100 ms}}
"""

# Where a forwarder of known faults stands, by the tester before it: at rings in memory, or at veths by AF_XDP.
FORWARDER_LABS = {
    "dpdk": "lab: {{kind: memif{link}}}\ntester: {{catch_up: {catch_up}}}\n",
    "xdp": "lab: {{kind: veth}}\ntester: {{driver: xdp, catch_up: {catch_up}}}\n",
}


def forwarder_lab(tester: str, *, catch_up: str, link: str = "") -> str:
    """The lab and the tester of a bench file; over memif the ``link`` has a speed, a veth has its own."""
    return FORWARDER_LABS[tester].format(catch_up=catch_up, link=link and f", link: {link}")


SHORT = """
nicbench: 1
title: Short
lab: {{kind: veth}}
dut: {dut}
{more}
tests:
  - name: throughput
    method: throughput
    frame_bytes: [{frame_bytes}]
    search: {{goals: {{NDR: 0 %}}, precision: 20 %, maximum_trials: {trials}, trials_per_bound: 1}}
    trial: {{duration: {duration}, drain: 100 ms, settle: 50 ms}}
"""


def short(dut: str, *, more: str = TOLERANT, trials: int = 4, duration: str = "300 ms", frame_bytes: int = 64) -> str:
    """A throughput test of a few trials."""
    return SHORT.format(dut=dut, more=more, trials=trials, duration=duration, frame_bytes=frame_bytes)


def make_folder(parent: Path, bench: str) -> RunFolder:
    """A run folder with this bench file."""
    return RunFolder.create(parent, bench, "lab")


async def run_async(folder: RunFolder) -> Summary:
    """Runs it, or resumes it, with the journal listening."""
    bus = Bus()
    bus.subscribe(folder.journal.append)
    return await run(load(folder.path / "bench.yaml"), folder, bus)


def run_bench(parent: Path, bench: str) -> tuple[Summary, list[Trial]]:
    """Runs a bench file to its end; the summary and every trial."""
    folder = make_folder(parent, bench)
    summary = asyncio.run(run_async(folder))
    return summary, trials_of(folder)


def trials_of(folder: RunFolder) -> list[Trial]:
    """Every trial of the journal, calibration included."""
    return [event.trial for event in folder.journal.events() if isinstance(event, TrialFinished)]


def rate_of(result: Result, goal: str = "ndr") -> Bounded:
    """The rate of a goal."""
    return bounds(result, f"{goal}_frames_per_s")


def bounds(result: Result, name: str) -> Bounded:
    """A value with bounds, which a test that fails shows."""
    value = result.values[name]
    assert isinstance(value, Bounded)
    print(f"{name}: {value.lower} to {value.upper}, {result.verdict.value}")
    return value


def output_of(*command: str) -> str:
    """What a command prints."""
    return run_captured(command).stdout


OUR_NAMESPACES, OUR_MACS = "nb", "02:6e:62:"


def machine_state() -> dict[str, str]:
    """What a run must leave unchanged: its namespaces and links, records, settings of the whole machine.

    Namespaces and links that others make meanwhile are theirs: nicbench's bear its names and its MAC addresses.
    """
    namespaces = (line.split()[0] for line in output_of("ip", "netns", "list").splitlines())
    links = (line.split() for line in output_of("ip", "-br", "link").splitlines())
    return {
        "namespaces": "\n".join(sorted(name for name in namespaces if name.startswith(OUR_NAMESPACES))),
        "links": "\n".join(sorted(words[0] for words in links if any(word.startswith(OUR_MACS) for word in words))),
        "forwarding": Path("/proc/sys/net/ipv4/ip_forward").read_text(),
        "huge pages": Path("/proc/sys/vm/nr_hugepages").read_text(),
        "backlog": Path("/proc/sys/net/core/netdev_max_backlog").read_text(),
        "records": "\n".join(sorted(entry.name for entry in Path("/run/nicbench").glob("*") if entry.is_dir())),
    }
