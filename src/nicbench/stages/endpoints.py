"""Second stage of rounds: hosts with addresses, from a lab or from the bench file; and the DUT among them."""

from __future__ import annotations

from nicbench.bench_file.endpoint_wiring import measured_host
from nicbench.bench_file.models import BenchFile
from nicbench.duts.base import EndpointDut
from nicbench.hosts.local import LocalHost
from nicbench.labs._endpoints import endpoint_testbed_of
from nicbench.labs.base import EndpointLab, EndpointTestbed
from nicbench.tuning.changes import Changes


async def make_endpoints(bench: BenchFile, changes: Changes) -> EndpointTestbed:
    """The testbed; NotReadyError where the machines lack something."""
    if bench.lab is None:
        return await endpoint_testbed_of(bench.hosts, bench.ports, bench.links, measured_host(bench))
    lab: EndpointLab = bench.lab.plugin(bench.lab.options)
    return await lab.up(changes, LocalHost("local"))


async def make_server(bench: BenchFile, testbed: EndpointTestbed, changes: Changes) -> EndpointDut:
    """The DUT, set up."""
    dut: EndpointDut = bench.dut.plugin(bench.dut.options)
    await dut.up(testbed, changes)
    return dut
