"""Second stage of rounds: hosts with addresses, from a lab or from the bench file; and the DUT among them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from nicbench.bench_file.endpoint_wiring import measured_host
from nicbench.bench_file.models import BenchFile
from nicbench.duts.base import EndpointDut
from nicbench.errors import HostError
from nicbench.events import Bus, Note
from nicbench.hosts import compare_clocks
from nicbench.labs._endpoints import endpoint_testbed_of
from nicbench.labs.base import EndpointLab, EndpointTestbed
from nicbench.model.clock import ClockOffset, clock_warnings
from nicbench.stages.hosts import machine_of_lab, make_hosts, of_hosts
from nicbench.stages.ports import make_ports
from nicbench.tuning.changes import Changes


async def make_endpoints(bench: BenchFile, changes: Changes) -> EndpointTestbed:
    """The testbed; NotReadyError where the machines lack something. Before anything is undone its hosts are closed."""
    hosts, made = await make_hosts(bench, changes), {}
    if bench.lab is None:
        making = await make_ports(bench, hosts, changes)
        testbed = await endpoint_testbed_of(hosts, making.ports, bench.links, measured_host(bench))
        made = making.facts
    else:
        lab: EndpointLab = bench.lab.plugin(bench.lab.options)
        testbed = await lab.up(changes, machine_of_lab(bench, hosts))
    statements, facts = of_hosts(hosts)
    testbed = replace(testbed, statements=(*statements, *testbed.statements), facts={**testbed.facts, **facts, **made})

    async def close() -> None:
        await asyncio.gather(*(each.host.close() for each in testbed.test_hosts))

    changes.before_undoing(close)
    return testbed


async def clocks_of(testbed: EndpointTestbed, bus: Bus) -> tuple[ClockOffset, ...]:
    """How the clocks of the hosts differ from this machine's, told where by much; one that tells no time is no reason
    to measure nothing.
    """
    found: list[ClockOffset] = []
    of_machines: dict[str, ClockOffset] = {}
    for each in testbed.test_hosts:
        try:
            (offset,) = await compare_clocks((each.host,))
            found.append(offset)
            machine = each.host.machine.name  # what stands on one machine has one clock, and one warning
            of_machines.setdefault(machine, offset.model_copy(update={"host": machine}))
        except HostError as error:
            bus.publish(Note(level="warning", text=f"the clock of {each.name} is not known: {error.message}"))
    for sentence in clock_warnings(of_machines.values()):
        bus.publish(Note(level="warning", text=sentence))
    return tuple(found)


async def make_server(bench: BenchFile, testbed: EndpointTestbed, changes: Changes) -> EndpointDut:
    """The DUT, set up."""
    dut: EndpointDut = bench.dut.plugin(bench.dut.options)
    await dut.up(testbed, changes)
    return dut
