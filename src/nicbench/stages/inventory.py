"""The inventory without a run: of this machine, or of the hosts that a bench file names. Changes nothing."""

from __future__ import annotations

from typing import Any, Final

from nicbench.bench_file.models import BenchFile
from nicbench.core.errors import UnknownFactError
from nicbench.core.redaction import Redactor
from nicbench.hosts import build_hosts, host_from_spec
from nicbench.hosts.asking import values_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.system.inventory.collect import Known, collect_host, host_name

THIS_MACHINE: Final = "this machine"
_INTERFACES: Final = "/sys/class/net"


async def inventory_of(bench: BenchFile | None, *, redact: bool) -> dict[str, Any]:
    """Facts by host; of a bench file with a lab, which is made on this machine, this one's."""
    redactor = Redactor() if redact else None
    known: Known = {}
    found: dict[str, Any] = {}
    for host, devices in await _hosts(bench):
        controller = None if bench is None else bench.controller_of(bench.role_of(host.name), host.name)
        found[host.name] = await collect_host(host, devices, known, controller)
        if redactor is not None:
            redactor.learn_host_name(await host_name(host))
            redactor.learn(found[host.name])
    return found if redactor is None else {name: redactor(facts) for name, facts in found.items()}


async def _hosts(bench: BenchFile | None) -> list[tuple[Host, tuple[str, ...]]]:
    """Each host and the interfaces to tell of: those of the test, or those of its cards."""
    if bench is None or not bench.hosts:
        local = LocalHost(THIS_MACHINE)
        return [(local, await _interfaces(local))]
    every = []
    for name, host in build_hosts(bench.hosts).items():
        if host.machine.made_here:
            continue  # it is not there yet, and has no facts of its own: a run's inventory has them
        devices = tuple(port.device for port in bench.ports.values() if port.host == name and port.device is not None)
        every.append((await _outside_host(host), devices))
    return every


async def _outside_host(host: Host) -> Host:
    """Of a namespace that a run makes, where its interfaces are until then."""
    network = host.network
    if not isinstance(network, NetnsHost) or await network.exists():
        return host
    return host_from_spec(network.inner.spec(), host.name)


async def _interfaces(host: Host) -> tuple[str, ...]:
    """Those with a device behind them, and those in use; what the kernel made and nobody uses says nothing."""
    try:
        states = await values_of(host, [f"{_INTERFACES}/*/operstate", f"{_INTERFACES}/*/device/uevent"])
    except UnknownFactError:
        return ()
    found: dict[str, bool] = {}
    for path, value in states.items():
        name = path.removeprefix(f"{_INTERFACES}/").partition("/")[0]
        found[name] = found.get(name, False) or path.endswith("/uevent") or value == "up"
    return tuple(name for name, told in found.items() if told and name != "lo")
