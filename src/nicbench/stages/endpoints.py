"""Second stage of rounds: hosts with addresses, from a lab or from the bench file; and the DUT among them."""

from __future__ import annotations

import asyncio

from nicbench.bench_file.endpoint_wiring import measured_host
from nicbench.bench_file.models import BenchFile
from nicbench.duts.base import EndpointDut
from nicbench.hosts.local import LocalHost
from nicbench.labs._endpoints import endpoint_testbed_of
from nicbench.labs.base import EndpointLab, EndpointTestbed
from nicbench.tuning.changes import Changes


async def make_endpoints(bench: BenchFile, changes: Changes) -> EndpointTestbed:
    """The testbed; NotReadyError where the machines lack something. Before anything is undone its hosts are closed."""
    if bench.lab is None:
        testbed = await endpoint_testbed_of(bench.hosts, bench.ports, bench.links, measured_host(bench))
    else:
        lab: EndpointLab = bench.lab.plugin(bench.lab.options)
        testbed = await lab.up(changes, LocalHost("local"))

    async def close() -> None:
        await asyncio.gather(*(each.host.close() for each in testbed.test_hosts))

    changes.before_undoing(close)
    return testbed


async def make_server(bench: BenchFile, testbed: EndpointTestbed, changes: Changes) -> EndpointDut:
    """The DUT, set up."""
    dut: EndpointDut = bench.dut.plugin(bench.dut.options)
    await dut.up(testbed, changes)
    return dut
