"""Second stage: the testbed, from a lab or from the hosts, ports and links of the bench file; and the DUT on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nicbench.bench_file.models import BenchFile
from nicbench.duts._ways import choose_ways
from nicbench.duts.base import Addressing, FrameDut
from nicbench.errors import UsageError
from nicbench.events import Bus, StageStarted
from nicbench.hosts.base import Host
from nicbench.labs._wired import TESTER, testbed_of, testbed_of_own_ports
from nicbench.labs.base import FrameLab, Testbed
from nicbench.model.pattern import Pattern, Ways, ways_of
from nicbench.stages.hosts import machine_of_lab, make_hosts, of_hosts
from nicbench.stages.ports import make_ports
from nicbench.tuning.changes import Changes
from nicbench.tuning.huge_pages import raise_huge_pages


def touches_machine(bench: BenchFile) -> bool:
    """Whether the run changes a machine, and so needs its lock and root."""
    return any(_touched(each) for each in bench.configurations)


def _touched(bench: BenchFile) -> bool:
    if bench.tuning:
        return True
    if bench.lab is None and bench.measures == "rounds":
        return True
    if bench.lab is None:
        return not bench.tester_kind().own_ports()
    return bool(bench.lab.plugin.touches_machine)


async def make_testbed(bench: BenchFile, changes: Changes) -> tuple[FrameLab | None, Testbed]:
    """The lab (None for real machines) and its testbed."""
    hosts = await make_hosts(bench, changes)
    machine = machine_of_lab(bench, hosts)
    tester = bench.tester_kind()
    if tester.huge_pages_bytes:
        of_tester = hosts[TESTER].machine if TESTER in hosts and bench.lab is None else machine
        await raise_huge_pages(changes, of_tester, tester.huge_pages_bytes)
    if own := tester.own_ports():
        return None, testbed_of_own_ports(own, machine, bench.tester.kind)
    if bench.lab is None:
        made = await make_ports(bench, hosts, changes)
        testbed = await testbed_of(hosts, made.ports, bench.links, tester)
        returned = replace(testbed, same_port=bench.traffic.pattern is Pattern.SAME_PORT)
        return None, _told(returned, hosts, made.facts)
    lab: FrameLab = bench.lab.plugin(bench.lab.options)
    testbed = await lab.up(changes, machine)
    return lab, _told(replace(testbed, promised_bytes=tester.huge_pages_bytes), hosts)


def _told(testbed: Testbed, hosts: Mapping[str, Host], made: Mapping[str, Any] | None = None) -> Testbed:
    """With what the report says of the hosts themselves, and of what was made for their ports."""
    statements, facts = of_hosts(hosts)
    every = {**testbed.facts, **facts, **(made or {})}
    return replace(testbed, statements=(*statements, *testbed.statements), facts=every)


async def make_dut(bench: BenchFile, testbed: Testbed, changes: Changes) -> FrameDut:
    """The DUT, set up."""
    dut: FrameDut = bench.dut.plugin(bench.dut.options)
    await dut.up(testbed, changes)
    return dut


def laid_out(
    bench: BenchFile, testbed: Testbed, dut: FrameDut, bus: Bus | None = None
) -> tuple[Ways, tuple[Addressing, ...]]:
    """The ways of the traffic between the tester's ports, and what frames must be addressed with on each of them.

    The bus is told what rates are of, where more than one way carries traffic.
    """
    traffic = bench.traffic
    try:
        ways = ways_of(traffic.pattern, len(testbed.tester_ports), bidirectional=traffic.bidirectional)
    except ValueError as error:
        step = "give it more ports, or choose another pattern"
        raise UsageError(str(error), place="traffic, pattern", next_step=step) from error
    if bus is not None and len(ways.loaded) > 1:
        bus.publish(StageStarted(stage="traffic", text=f"{traffic.pattern.words}: loads and rates are {ways.basis}"))
    known = (*dut.addressing(testbed, traffic.ip), *dut.returning(testbed, traffic.ip))
    return ways, choose_ways(known, ways.every, bench.dut.kind)
