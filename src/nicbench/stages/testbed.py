"""The testbed of frames or of workloads, from a lab or from the bench file's hosts, ports and links; the DUT on it, and
the proofs that `nicbench prove` made of its ports.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.wiring import measured_host
from nicbench.core.clocks import ClockOffset, clock_warnings
from nicbench.core.errors import HostError, NotReadyError, UsageError
from nicbench.core.events import Bus, Note, StageStarted
from nicbench.core.pattern import Pattern, Ways, ways_of
from nicbench.core.proof import Outcome, Proof
from nicbench.hosts import compare_clocks
from nicbench.hosts.base import Host
from nicbench.stages.hosts import disclose_hosts, machine_of_lab, make_hosts, make_ports
from nicbench.store.proofs import FOLDER, find_proof
from nicbench.system.identity import identify_port
from nicbench.testbed.addressing import choose_ways
from nicbench.testbed.duts.base import Addressing, EndpointDut, FrameDut
from nicbench.testbed.labs.base import EndpointLab, EndpointTestbed, FrameLab, Testbed
from nicbench.testbed.real_hosts import TESTER, make_endpoint_testbed, make_testbed_of_own_ports, make_wired_testbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.preparation import leave_tags, raise_huge_pages


def touches_machine(bench: BenchFile) -> bool:
    """Whether the run changes a machine, and so needs its lock and root."""
    return any(_touches(each) for each in bench.configurations)


def _touches(bench: BenchFile) -> bool:
    if bench.tuning:
        return True
    if bench.lab is None and bench.measures == "rounds":
        return True
    if bench.lab is None:
        return not bench.tester_kind().own_ports()
    return bool(bench.lab.plugin.touches_machine)


async def make_testbed(
    bench: BenchFile, changes: Changes, hosts: Mapping[str, Host] | None = None
) -> tuple[FrameLab | None, Testbed]:
    """Makes the lab (None for real machines) and its testbed, on these hosts or on those that it makes."""
    hosts = await make_hosts(bench, changes) if hosts is None else hosts
    machine = machine_of_lab(bench, hosts)
    tester = bench.tester_kind()
    if tester.huge_pages_bytes:
        of_tester = hosts[TESTER].machine if TESTER in hosts and bench.lab is None else machine
        await raise_huge_pages(changes, of_tester, tester.huge_pages_bytes)
        if tester.peer is not None:
            await raise_huge_pages(changes, hosts[tester.peer].machine, tester.huge_pages_bytes)
    if own := tester.own_ports():
        return None, make_testbed_of_own_ports(own, machine, bench.tester.kind)
    if bench.lab is None:
        made = await make_ports(bench, hosts, changes)
        testbed = await make_wired_testbed(hosts, made.ports, bench.links, tester)
        returned = replace(testbed, same_port=bench.traffic.pattern is Pattern.SAME_PORT)
        return None, _add_host_facts(returned, hosts, made.facts)
    lab: FrameLab = bench.lab.plugin(bench.lab.options)
    lab.queues = bench.dut.plugin(bench.dut.options).queues()
    testbed = await lab.up(changes, machine)
    if tester.driver == "xdp":
        testbed = await lab.accept_redirected(testbed)
    return lab, _add_host_facts(replace(testbed, promised_bytes=tester.huge_pages_bytes), hosts)


def _add_host_facts(testbed: Testbed, hosts: Mapping[str, Host], made: Mapping[str, Any] | None = None) -> Testbed:
    """The testbed with what the report says of the hosts themselves, and of what was made for their ports."""
    statements, facts = disclose_hosts(hosts)
    every = {**testbed.facts, **facts, **(made or {})}
    return replace(testbed, statements=(*statements, *testbed.statements), facts=every)


async def make_dut(bench: BenchFile, testbed: Testbed, changes: Changes) -> FrameDut:
    """Makes the DUT that frames pass, and sets it up."""
    dut: FrameDut = bench.dut.plugin(bench.dut.options)
    await dut.up(testbed, changes)
    return dut


def lay_out_ways(
    bench: BenchFile, testbed: Testbed, dut: FrameDut, bus: Bus | None = None
) -> tuple[Ways, tuple[Addressing, ...]]:
    """The ways of the traffic between the tester's ports, and what frames must be addressed with on each of them.

    If more than one way carries traffic, a note on the bus says what rates refer to.
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


async def make_endpoints(bench: BenchFile, changes: Changes) -> EndpointTestbed:
    """The testbed; NotReadyError where the machines lack something. Before anything is undone its hosts are closed."""
    hosts, made = await make_hosts(bench, changes), {}
    in_hook = any(
        ask.connections is not None and ask.connections.driver == "xdp"
        for test in bench.tests
        for _, ask in test.build().job_specs()
    )
    if bench.lab is None:
        making = await make_ports(bench, hosts, changes)
        testbed = await make_endpoint_testbed(hosts, making.ports, bench.links, measured_host(bench))
        made = making.facts
        if in_hook:
            for each in testbed.endpoints.values():
                if each.facts.vlan is not None:
                    await leave_tags(changes, each.host.network, each.facts.vlan.device)
    else:
        lab: EndpointLab = bench.lab.plugin(bench.lab.options)
        lab.takes_redirected = in_hook
        testbed = await lab.up(changes, machine_of_lab(bench, hosts))
    statements, facts = disclose_hosts(hosts)
    testbed = replace(testbed, statements=(*statements, *testbed.statements), facts={**testbed.facts, **facts, **made})

    async def close() -> None:
        await asyncio.gather(*(each.host.close() for each in testbed.test_hosts))

    changes.before_undoing(close)
    return testbed


async def clocks_of(testbed: EndpointTestbed, bus: Bus) -> tuple[ClockOffset, ...]:
    """Returns how the clocks of the hosts differ from this machine's, and reports large differences; the run goes on
    without a clock that does not tell its time.
    """
    found = []
    of_machines: dict[str, ClockOffset] = {}
    for each in testbed.test_hosts:
        try:
            (offset,) = await compare_clocks((each.host,))
            found.append(offset)
            machine = each.host.machine.name  # what stands on one machine has one clock, and one warning
            of_machines.setdefault(machine, offset.replace(host=machine))
        except HostError as error:
            bus.publish(Note(level="warning", text=f"the clock of {each.name} is not known: {error.message}"))
    for sentence in clock_warnings(of_machines.values()):
        bus.publish(Note(level="warning", text=sentence))
    return tuple(found)


async def make_server(bench: BenchFile, testbed: EndpointTestbed, changes: Changes) -> EndpointDut:
    """Makes the DUT that clients talk to, and sets it up."""
    dut: EndpointDut = bench.dut.plugin(bench.dut.options)
    await dut.up(testbed, changes)
    return dut


PROOFS: Final = "proofs.json"
"""The file in the run folder."""
_DRIVERS: Final = {"xdp": "xdp", "af_xdp": "net_af_xdp", "af_packet": "net_af_packet"}
"""The tester's drivers for kernel interfaces, by the protocol's kinds of ports."""


class Grounds(NamedTuple):
    """The proofs of a run's ports, and sentences for the report on ports without one."""

    proofs: tuple[Proof, ...]
    unproven: tuple[str, ...]


async def hold_against_proofs(testbed: Testbed, folder: Path = FOLDER) -> Grounds:
    """Finds the proofs of the tester's ports.

    NotReadyError where a port was proven not to carry the driver that the run uses.
    """
    unproven: list[str] = []
    aged: list[str] = []
    held: list[Proof] = []
    for port in testbed.tester_ports:
        driver = _DRIVERS.get(str(port.engine.get("kind")))
        if port.device is None or driver is None:
            continue
        host = testbed.host_of(port)
        try:
            now = await identify_port(host, port.device)
        except HostError:  # a port that does not say what it is has no proof
            unproven.append(port.device)
            continue
        proof = find_proof(now.fingerprint, folder)
        if proof is None:
            unproven.append(port.device)
            continue
        held += [] if proof in held else [proof]
        kernel = (await host.read_file("/proc/sys/kernel/osrelease") or "").strip()
        changed = proof.aged(now, kernel)
        finding = proof.of(f"drivers.{driver}")
        if changed:
            aged.append(f"{port.device} ({', '.join(changed)})")
        elif finding is None or finding.outcome in (Outcome.UNTRIED, Outcome.ABSENT):
            unproven.append(port.device)  # what was not there then, a cable for one, may be there now
        elif finding.outcome is Outcome.FAILED:
            raise NotReadyError(
                f"its proof says of `driver: {driver}`: {finding.seen}",
                place=f"{host.name}, {port.device}",
                next_step="choose another `driver`, or prove the port again: nicbench prove",
            )
    said = []
    if unproven:
        said.append(f"What {', '.join(unproven)} can be relied on for was not proven (`nicbench prove`).")
    if aged:
        said.append(f"The proof of {', '.join(aged)} is of another driver, firmware or kernel.")
    return Grounds(tuple(held), tuple(said))
