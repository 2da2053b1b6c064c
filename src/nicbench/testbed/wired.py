"""Makes a testbed of real ports from `hosts`, `ports` and `links` of a bench file; nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from nicbench.core.errors import HostError, UsageError
from nicbench.hosts.base import Host
from nicbench.testbed.cores import CoreMap, make_core_map, order_by_core, physical_cores, usable_cpus
from nicbench.testbed.interfaces.dpdk_devices import check_address, check_vdev
from nicbench.testbed.interfaces.host_interfaces import check_interface, interfaces_of
from nicbench.testbed.labs.base import DutPort, Testbed, TesterPort

# The name, in the bench file, of the host that the engine runs on.
TESTER = "tester"
# The speed of a link where none is known (a virtual device of DPDK); the report says so.
ASSUMED_BITS_PER_S = 10e9


class PortChoice(Protocol):
    """A port in the bench file: a kernel interface, a PCI address, or a virtual device of DPDK."""

    @property
    def host(self) -> str: ...
    @property
    def device(self) -> str | None: ...
    @property
    def address(self) -> str | None: ...
    @property
    def vdev(self) -> str | None: ...
    @property
    def mac(self) -> str | None: ...
    @property
    def driver(self) -> str | None: ...
    @property
    def devargs(self) -> str: ...
    @property
    def queue(self) -> int: ...
    @property
    def lossless(self) -> bool: ...


class TesterChoice(Protocol):
    """The tester's options that matter here: the driver for interfaces that name none, and its second machine."""

    @property
    def driver(self) -> str: ...
    @property
    def peer(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class _PortState:
    """What is known of a port. With ``nominal`` its speed, if any, is the driver's figure and not that of a wire."""

    mac: str | None = None
    bits_per_s: float | None = None
    nominal: bool = False
    veth: bool = False


async def make_wired_testbed(
    hosts: Mapping[str, Host],
    ports: Mapping[str, PortChoice],
    links: Sequence[tuple[str, str]],
    tester: TesterChoice,
) -> Testbed:
    """The testbed, with the ports of the host ``tester``, and of its peer, as the tester's.

    NotReadyError where one cannot be used.
    """
    own = {TESTER, tester.peer}
    joined = [(one, other) if ports[one].host in own else (other, one) for one, other in links]
    loose = [name for name, port in ports.items() if port.host in own and name not in dict(joined)]
    tester_names = [near for near, _ in joined] + loose
    dut_names = [far for _, far in joined]
    peer = None if tester.peer is None else hosts[tester.peer]
    tester_host = _one_host(hosts, ports, [name for name in tester_names if ports[name].host == TESTER], "tester")
    if tester_host is None:
        raise UsageError("the tester has no port", place="ports", next_step="name its ports under `ports`")
    dut_host = _one_host(hosts, ports, dut_names, "DUT")
    near = [await _check_port(hosts[ports[name].host], name, ports[name], for_tester=True) for name in tester_names]
    far = [await _check_port(dut_host, name, ports[name], for_tester=False) for name in dut_names if dut_host]
    speeds = [seen.bits_per_s for seen in (*near, *far) if seen.bits_per_s]
    cores = await make_core_map(tester_host.machine)
    if not _on_one_machine(tester_host, dut_host):
        cores = replace(cores, physical_cores=())
    peer_cpu = None if peer is None else await _cpu_of_peer(peer, tester_host, dut_host)
    return Testbed(
        tester=tester_host,
        dut=dut_host,
        tester_ports=tuple(
            replace(_tester_port(name, ports[name], seen, tester.driver), on_peer=ports[name].host == tester.peer)
            for name, seen in zip(tester_names, near, strict=True)
        ),
        dut_ports=tuple(
            DutPort(name=name, device=ports[name].device, address=ports[name].address, mac=seen.mac)
            for name, seen in zip(dut_names, far, strict=True)
        ),
        cores=cores,
        link_bits_per_s=min(speeds, default=ASSUMED_BITS_PER_S),
        link_is_nominal=not speeds or any(seen.nominal for seen in (*near, *far)),
        statements=_statements((*near, *far), known_speed=bool(speeds)),
        facts={"links": [f"{near_name} <-> {far_name}" for near_name, far_name in joined]},
        peer=peer,
        peer_cpu=peer_cpu,
    )


async def _cpu_of_peer(peer: Host, tester: Host, dut: Host | None) -> int:
    """The CPU of the worker on the second machine: the first; where that is the tester's machine, another if any."""
    cpus = order_by_core(await usable_cpus(peer.machine), await physical_cores(peer.machine))
    if not _on_one_machine(tester, peer):
        return cpus[0]
    # The tester's worker has the first, the DUT the second.
    taken = 2 if _on_one_machine(tester, dut) else 1
    return cpus[min(taken, len(cpus) - 1)]


def _on_one_machine(one: Host, other: Host | None) -> bool:
    return other is not None and one.machine.spec() == other.machine.spec()


def make_testbed_of_own_ports(ports: tuple[TesterPort, ...], host: Host, tester: str) -> Testbed:
    """The testbed of a tester with its own ports; only the tester itself knows the speed of its links, once it runs.

    ``host`` is the machine that nicbench runs on, ``tester`` the kind of the tester.
    """
    return Testbed(
        tester=host,
        dut=None,
        tester_ports=ports,
        dut_ports=(),
        cores=CoreMap(worker=None, dut=(), housekeeping=(), shared=False),
        link_bits_per_s=ASSUMED_BITS_PER_S,
        link_is_nominal=True,
        facts={"ports": f"of the tester {tester}: {', '.join(port.name for port in ports)}"},
    )


def _one_host(
    hosts: Mapping[str, Host], ports: Mapping[str, PortChoice], names: Sequence[str], role: str
) -> Host | None:
    """The one host of all these ports, None without ports; UsageError where there are several."""
    used = sorted({ports[name].host for name in names if name in ports})
    if len(used) > 1:
        raise UsageError(
            f"the ports of the {role} are on several hosts: {', '.join(used)}",
            place="ports",
            next_step=f"put the {role}'s ports on one host",
        )
    if not used:
        return None
    if used[0] not in hosts:
        raise UsageError(f"there is no host {used[0]}", place="ports", next_step="name it under `hosts`")
    return hosts[used[0]]


async def _check_port(host: Host, name: str, port: PortChoice, *, for_tester: bool) -> _PortState:
    """Checks a port's kernel interface and reads its MAC address and speed.

    Those of a PCI or virtual device only the engine knows; the kernel interfaces behind it are checked all the same.
    """
    place = f"{host.name}, port {name}"
    if port.vdev is not None:
        await check_vdev(host, port.vdev, place)
    if port.address is not None:
        await check_address(host, port.address, place)
    if port.device is None:
        return _PortState(mac=port.mac)
    interfaces = await interfaces_of(host)
    link = check_interface(interfaces, port.device, place, for_tester=for_tester)
    kind = link.get("linkinfo", {}).get("info_kind")  # None for hardware
    speed = await _bits_per_s(host, port.device)
    return _PortState(mac=link.get("address"), bits_per_s=speed, nominal=kind is not None, veth=kind == "veth")


async def _bits_per_s(host: Host, device: str) -> float | None:
    """The speed that the driver reports in bit/s; None where it reports none (a tunnel, a link without carrier)."""
    try:
        text = await host.read_file(f"/sys/class/net/{device}/speed")
    except HostError:
        return None  # the driver has no such notion
    return int(text) * 1e6 if text and int(text) > 0 else None


def _tester_port(name: str, port: PortChoice, seen: _PortState, default_driver: str) -> TesterPort:
    engine: dict[str, Any] = {"name": name}
    if port.lossless:
        engine["lossless"] = True
    if port.device is not None:
        if (port.driver or default_driver) == "net_af_packet":
            engine |= {"kind": "af_packet", "device": port.device}
        elif (port.driver or default_driver) == "xdp":
            engine |= {"kind": "xdp", "device": port.device}
        elif (port.driver or default_driver) == "net_pcap":
            engine |= {"kind": "pcap", "device": port.device}
        else:
            engine |= {"kind": "af_xdp", "device": port.device, "queue": port.queue, "xdp_program": None}
    elif port.address is not None:
        engine |= {"kind": "pci", "address": port.address, "devargs": port.devargs}
    elif port.vdev is not None:
        engine |= {"kind": "vdev", "vdev": port.vdev}
    else:
        raise UsageError(
            f"port {name} names no device", place=f"ports, {name}", next_step="give it `device`, `address` or `vdev`"
        )
    return TesterPort(name=name, engine=engine, device=port.device, mac=seen.mac)


def _statements(seen: Sequence[_PortState], *, known_speed: bool) -> tuple[str, ...]:
    sentences = []
    if any(port.veth for port in seen):
        sentences.append(
            "Some of these links are veth pairs: they measure this machine, its CPU and kernel, not a network card."
        )
    if not known_speed:
        sentences.append(f"The speed of the links is not known; {ASSUMED_BITS_PER_S / 1e9:g} Gb/s is assumed.")
    return tuple(sentences)
