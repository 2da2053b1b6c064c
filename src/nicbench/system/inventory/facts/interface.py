"""Facts of each interface of the test: its link, its driver, and what stands at the other end of its cable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, TypedDict

from nicbench.core.described import Facts, NotEverywhere, Subject, Write
from nicbench.core.errors import UnknownFactError
from nicbench.hosts.asking import output_of
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.system.adapters.ethtool import (
    parse_driver,
    parse_energy,
    parse_fec,
    parse_link_settings,
    parse_module,
    parse_pause,
    parse_time_stamping,
)
from nicbench.system.adapters.links import (
    aggregates,
    parse_classes,
    parse_dscp,
    parse_links,
    parse_neighbours,
    parse_order,
    parse_pfc,
    parse_trust,
    virtual_functions,
    xdp_program,
)
from nicbench.system.inventory.base import EthtoolFact, Fact, InterfaceFact, ask_interfaces, join_texts, part_of


class _Program(TypedDict):
    """An XDP program."""

    mode: str | None
    name: str | None
    tag: str | None


class _Interface(TypedDict):
    """One interface."""

    kind: str
    mac: str | None
    mtu_bytes: int | None
    state: str | None
    promiscuous: bool
    queueing: str | None
    transmit_queue_frames: int | None
    transmit_queues: int | None
    receive_queues: int | None
    largest_gro_bytes: int | None
    largest_gso_bytes: int | None
    xdp_program: Annotated[_Program | None, NotEverywhere]


def _tell_adapter(facts: Facts, write: Write, name: str, link: Any) -> str | None:
    link = link if isinstance(link, Mapping) else {}
    driver = part_of(part_of(facts, "drivers"), name) or part_of(link, "driver")
    card = part_of(part_of(facts, "pci_adapters"), str(driver.get("bus") or name))
    slot = part_of(card, "link")
    speed = part_of(part_of(facts, "link_settings"), name).get("speed_bits_per_s")
    return join_texts(
        join_texts(name, join_texts(card.get("vendor"), card.get("model"), by=" "), by=": "),
        f"driver {join_texts(driver.get('name'), driver.get('version'), by=' ')}"
        if driver.get("name")
        else link.get("kind"),
        f"firmware {driver['firmware']}" if driver.get("firmware") else None,
        write("_bits_per_s", speed) if speed else None,
        f"PCI Express {slot.get('speed_gt_per_s'):g} GT/s x{slot['lanes']}" if slot.get("lanes") else None,
        f"MTU {link['mtu_bytes']}" if link.get("mtu_bytes") else None,
    )


def _tell_adapters(facts: Facts, write: Write) -> str | None:
    """Each interface of the test, from whatever facts know it by its name, and its card by its bus."""
    return join_texts(
        *(_tell_adapter(facts, write, name, link) for name, link in part_of(facts, "interfaces").items()), by="; "
    )


class Interfaces(InterfaceFact):
    """The test interfaces, inside their namespace: kind, MAC address, MTU, state, queues, XDP program.

    From ``ip -j -d link``.
    """

    kind = "interfaces"
    shape = dict[str, _Interface]
    subjects = (Subject("Network adapters", 230, _tell_adapters),)

    async def ask(self, host: Host, device: str) -> Any:
        return parse_link(await output_of(host, "ip", "-j", "-d", "link", "show", "dev", device))


def parse_link(text: str) -> dict[str, Any]:
    """What of ``ip -j -d link show`` bears on a measurement."""
    link = parse_links(text)[0]
    return {
        "kind": link.get("linkinfo", {}).get("info_kind") or "hardware",
        "mac": link.get("address"),
        "mtu_bytes": link.get("mtu"),
        "state": link.get("operstate"),
        "promiscuous": bool(link.get("promiscuity")),
        "queueing": link.get("qdisc"),
        "transmit_queue_frames": link.get("txqlen"),
        "transmit_queues": link.get("num_tx_queues"),
        "receive_queues": link.get("num_rx_queues"),
        "largest_gro_bytes": link.get("gro_max_size"),
        "largest_gso_bytes": link.get("gso_max_size"),
        "xdp_program": xdp_program(link),
    }


class Aggregates(Fact):
    """Bonds, bridges and VLANs of a host, whether the test names them or only stands on their members.

    Of a bond also the order in which its ports joined it, which its hashing counts by.

    From ``ip -j -d link`` and sysfs, of every interface in the namespace.
    """

    kind = "aggregates"
    shape = dict[str, dict[str, Any]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        found = aggregates(parse_links(await output_of(host, "ip", "-j", "-d", "link", "show")))
        if any(one["kind"] == "bond" for one in found.values()):
            for name, ports in (await _orders(host)).items():
                found.get(name, {}).update(order=list(ports))
        return found


async def _orders(host: Host) -> dict[str, tuple[str, ...]]:
    try:
        return parse_order(await output_of(host, "sh", "-c", 'grep -sH "" /sys/class/net/*/bonding/slaves'))
    except UnknownFactError:
        return {}


class _Driver(TypedDict):
    """The answer for one interface."""

    name: str | None
    version: str | None
    firmware: Annotated[str | None, NotEverywhere]
    option_rom: str | None
    bus: Annotated[str | None, NotEverywhere]


class Drivers(EthtoolFact):
    """Driver, firmware and place on the bus of each test interface.

    From ``ethtool -i``.
    """

    kind = "drivers"
    shape = dict[str, _Driver]
    options = ("-i",)
    parse = staticmethod(parse_driver)


class _Link(TypedDict):
    """Of one interface, what its driver says."""

    link: bool | None
    why_no_link: str | None
    speed_bits_per_s: int | None
    lanes: int | None
    duplex: str | None
    autonegotiation: bool | None
    autonegotiation_possible: bool | None
    port: str | None
    transceiver: str | None
    supported_modes: list[str]
    advertised_modes: list[str]
    partner_modes: list[str]
    supported_fec: list[str]
    advertised_fec: list[str]


class LinkSettings(EthtoolFact):
    """The link of each test interface: speed, duplex, autonegotiation, modes.

    From ``ethtool DEVICE``.
    """

    kind = "link_settings"
    shape = dict[str, _Link]
    options = ()

    def parse(self, text: str) -> Any:
        """What the driver does not say is left out: a virtual one has little more than a speed."""
        return {name: value for name, value in parse_link_settings(text).items() if value not in (None, [])}


class _Module(TypedDict):
    """Of one cage."""

    identifier: str
    connector: str | None
    types: list[str]
    vendor: str | None
    part: str | None
    revision: str | None
    serial: str | None
    date: str | None
    cable_m: float | None
    wavelength_nm: float | None
    temperature_c: float | None
    voltage_v: float | None
    transmit_power_dbm: float | None
    receive_power_dbm: float | None


class Modules(EthtoolFact):
    """The transceiver or cable in the cage of each test interface.

    From ``ethtool -m``.
    """

    kind = "modules"
    shape = dict[str, _Module]
    options = ("-m",)
    parse = staticmethod(parse_module)


class _Fec(TypedDict):
    """The answer for one interface."""

    configured: list[str]
    active: list[str]


class ForwardErrorCorrection(EthtoolFact):
    """Forward error correction of each test interface: configured and active.

    From ``ethtool --show-fec``.
    """

    kind = "forward_error_correction"
    shape = dict[str, _Fec]
    options = ("--show-fec",)
    as_json = True
    parse = staticmethod(parse_fec)


class _Pause(TypedDict):
    """The answer for one interface."""

    autonegotiate: bool | None
    rx: bool | None
    tx: bool | None
    rx_negotiated: bool | None
    tx_negotiated: bool | None


class FlowControl(EthtoolFact):
    """Flow control (pause frames) of each test interface.

    From ``ethtool -a``.
    """

    kind = "flow_control"
    shape = dict[str, _Pause]
    options = ("-a",)
    as_json = True
    parse = staticmethod(parse_pause)


_PARTS: Mapping[str, tuple[str, Callable[[str], Any]]] = MappingProxyType(
    {
        "priority_flow_control": ("pfc", parse_pfc),
        "traffic_classes": ("ets", parse_classes),
        "priority_by_dscp": ("app", parse_dscp),
        "trust": ("apptrust", parse_trust),
    }
)


class DataCentreBridging(InterfaceFact):
    """Priority flow control, traffic classes and what each test interface trusts (DSCP or the VLAN's priority).

    From ``dcb -j``; null for a part that the driver or an older dcb does not have.
    """

    kind = "data_centre_bridging"
    shape = dict[str, dict[str, Any]]

    async def ask(self, host: Host, device: str) -> Any:
        found = {}
        reason = ""
        for name, (word, parse) in _PARTS.items():
            try:
                found[name] = parse(await output_of(host, "dcb", "-j", word, "show", "dev", device))
            except UnknownFactError as error:
                found[name], reason = None, reason or str(error)
                if name == "priority_flow_control":
                    break  # a driver without it has nothing of the rest
        if not any(value is not None for value in found.values()):
            raise UnknownFactError(reason)
        return found


class _Energy(TypedDict):
    """The answer for one interface."""

    supported: bool
    enabled: bool
    active: bool
    transmit_idle: bool | None
    transmit_idle_timer_ns: int | None


class EnergyEfficientEthernet(EthtoolFact):
    """Energy-Efficient Ethernet of each test interface: it delays the first frame after an idle time.

    From ``ethtool --show-eee``.
    """

    kind = "energy_efficient_ethernet"
    shape = dict[str, _Energy]
    options = ("--show-eee",)
    parse = staticmethod(parse_energy)


class TimeStamping(EthtoolFact):
    """Which time stamps each test interface can give.

    From ``ethtool -T``.
    """

    kind = "time_stamping"
    shape = dict[str, dict[str, Any]]
    options = ("-T",)
    parse = staticmethod(parse_time_stamping)


class _Function(TypedDict):
    """One virtual function."""

    number: int | None
    mac: str | None
    spoof_check: bool | None
    trusted: bool | None
    link_state: str | None
    rate: dict[str, int] | None
    vlans: list[int | None]


class VirtualFunctions(InterfaceFact):
    """Virtual functions (SR-IOV) of the test interfaces that are physical ones, and how they are set.

    From ``ip -j link show``; how many there could be is in ``pci_adapters``.
    """

    kind = "virtual_functions"
    shape = dict[str, list[_Function]]

    async def ask(self, host: Host, device: str) -> Any:
        functions = virtual_functions(
            parse_links(await output_of(host, "ip", "-j", "-d", "link", "show", "dev", device))[0]
        )
        if not functions:
            raise UnknownFactError("no virtual functions")
        return functions


class _Neighbour(TypedDict):
    """What stands at the other end of a cable."""

    name: str | None
    description: str | None
    chassis: str | None
    port: str | None
    port_description: str | None
    maximum_frame_bytes: int | None
    speed: str | None
    vlan: str | None
    protocol: str | None


class LldpNeighbours(Fact):
    """What the other end of each test interface's cable says of itself, where an LLDP daemon runs.

    From ``lldpcli``. The daemon stands in the host's own namespace and sees what is there.
    """

    kind = "lldp_neighbours"
    shape = dict[str, list[_Neighbour]]

    async def read(self, host: Host, devices: tuple[str, ...]) -> dict[str, Any]:
        if not devices:
            raise UnknownFactError("this host has no kernel interface in the test")
        found = parse_neighbours(await output_of(outermost(host), "lldpcli", "-f", "json", "show", "neighbors"))

        async def ask(device: str) -> Any:
            if outermost(host) is not host or device not in found:
                raise UnknownFactError("no neighbour announced itself")
            return found[device]

        return await ask_interfaces(devices, ask)
