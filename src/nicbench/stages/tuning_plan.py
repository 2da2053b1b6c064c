"""What a run would tune, as far as it can be told without changing anything: a lab's own ports are not there yet."""

from __future__ import annotations

from collections.abc import Mapping

from nicbench.bench_file.endpoint_wiring import measured_host
from nicbench.bench_file.models import BenchFile
from nicbench.hosts import hosts_of
from nicbench.hosts.base import Host
from nicbench.hosts.local import LocalHost
from nicbench.hosts.netns import NetnsHost
from nicbench.labs._endpoints import endpoint_testbed_of
from nicbench.labs._wired import testbed_of, testbed_of_own_ports
from nicbench.labs.base import EndpointLab, Lab
from nicbench.model.tuning import PlannedSetting
from nicbench.stages.hosts import machine_of_lab, starts_hosts
from nicbench.stages.ports import makes_ports
from nicbench.stages.tune import parts_of
from nicbench.tuning.tune import look
from nicbench.tuning.wishes import Part, Placed, placed

_LATER = "of the lab's own ports: it is told once the lab is made"
_NOT_THERE = "of what the run makes: it is told once that is there"


async def planned_settings(bench: BenchFile) -> tuple[PlannedSetting, ...]:
    """Every setting of every configuration, in the order in which they would be applied."""
    return tuple([setting for each in bench.configurations for setting in await _of_configuration(each)])


async def _of_configuration(bench: BenchFile) -> list[PlannedSetting]:
    parts = await _parts(bench)
    return [await _planned(bench, one) for one in placed(bench.tuning, parts)]


async def _planned(bench: BenchFile, one: Placed) -> PlannedSetting:
    place = {
        "configuration": bench.configuration,
        "host": one.place.host.name,
        "device": one.place.device,
        "item": one.item.kind,
        "source": one.wish.source,
    }
    if isinstance(one.place.host, NetnsHost) and bench.lab is not None:
        asked = one.wish.options.model_dump(mode="json", exclude_none=True, exclude={"devices"})
        return PlannedSetting(**place, outcome=None, reason=_LATER, asked=asked)
    if await _is_made_later(one.place.host):
        asked = one.wish.options.model_dump(mode="json", exclude_none=True, exclude={"devices"})
        return PlannedSetting(**place, outcome=None, reason=_NOT_THERE, asked=asked)
    row = await look(one, bench.configuration)
    now = None if row.before is None else {key: row.before.get(key) for key in row.asked or row.before}
    return PlannedSetting(**place, outcome=row.outcome, reason=row.reason, now=now, asked=row.asked)


async def _is_made_later(host: Host) -> bool:
    """A virtual machine, or a namespace that is not there yet."""
    if host.machine.made_here:
        return True
    network = host.network
    return isinstance(network, NetnsHost) and not await network.exists()


def _parts_to_be_made(bench: BenchFile, hosts: Mapping[str, Host]) -> tuple[Part, ...]:
    """By the bench file alone, for what its ports stand on is not there."""
    found = []
    for name, host in hosts.items():
        devices = tuple(device for port in bench.ports.values() if port.host == name for device in port.devices)
        if devices:
            role = bench.role_of(name)
            clients = bench.measures == "rounds" and role != "dut"
            found.append(Part("clients" if clients else role, host, devices, bench.controller_of(role, name)))
    return tuple(found)


async def _parts(bench: BenchFile) -> tuple[Part, ...]:
    local = LocalHost("local")
    if own := bench.tester_kind().own_ports():
        return parts_of(bench, testbed_of_own_ports(own, local, bench.tester.kind).test_hosts)
    hosts = hosts_of(bench.hosts)
    if bench.lab is None and (makes_ports(bench) or starts_hosts(bench)):
        return _parts_to_be_made(bench, hosts)
    if bench.lab is None and bench.measures == "rounds":
        testbed = await endpoint_testbed_of(hosts, bench.ports, bench.links, measured_host(bench))
        return parts_of(bench, testbed.test_hosts)
    if bench.lab is None:
        wired = await testbed_of(hosts, bench.ports, bench.links, bench.tester_kind())
        return parts_of(bench, wired.test_hosts)
    machine = machine_of_lab(bench, hosts)
    in_namespaces = bench.lab.plugin.port_kind in (Lab.port_kind, EndpointLab.port_kind)
    return tuple(
        Part(
            role,
            NetnsHost(machine, f"nicbench-{role}", role) if in_namespaces else machine,
            (),
            bench.controller_of(role, role),
        )
        for role in (("tester", "dut") if bench.measures == "frames" else ("dut", "clients"))
    )
