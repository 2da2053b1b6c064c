"""Emulated devices: hosts at ports, and the flows between them.

A flow between devices becomes one between ports: what its headers leave open is filled with the addresses of its
endpoints, one value for each pair of them.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from nicbench.otg.draft import MOST_VALUES
from nicbench.otg.model import Problems

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
Gateway = tuple[str, Ip]
"""The name of an Ethernet interface, and whose MAC address it asks for."""

MOST_HOSTS: Final = 1024
"""Ethernet interfaces of devices at one port."""
_MOST_ADDRESSES: Final = 64
_MOST_TAGS: Final = 3
_TAG_TYPES: Final = {"x8100": 0x8100, "x88A8": 0x88A8, "x9100": 0x9100}
_NO_PROTOCOLS: Final = frozenset({"name", "ethernets"})
"""Members of a device that are emulated."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address of a host; ``gateway_mac`` is given by the client, or asked for."""

    name: str
    ip: Ip
    prefix: int
    gateway: Ip | None
    gateway_mac: str | None

    def reaches(self, other: Ip) -> bool:
        """Whether another address is in its subnet."""
        return other in ipaddress.ip_network((self.ip, self.prefix), strict=False)


@dataclass(frozen=True, slots=True)
class Tag:
    """A VLAN tag of a host's frames."""

    tag_type: int
    priority: int
    id: int


@dataclass(frozen=True, slots=True)
class Host:
    """An Ethernet interface of a device; ``port`` is the name of its port in the configuration."""

    name: str
    port: str
    mac: str
    tags: tuple[Tag, ...]
    addresses: tuple[Address, ...]

    def program(self, port: int) -> dict[str, Any]:
        """Returns the host as the engine's protocol has it, at the port of this number."""
        return {
            "port": port,
            "mac": self.mac,
            "tags": [{"tag_type": tag.tag_type, "priority": tag.priority, "id": tag.id} for tag in self.tags],
            "addresses": [
                {
                    "address": str(address.ip),
                    "gateway": None if address.gateway_mac or address.gateway is None else str(address.gateway),
                }
                for address in self.addresses
            ],
        }


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a flow names: an interface, or one of its addresses."""

    host: Host
    address: Address | None = None

    def of_version(self, version: int | None) -> Address | None:
        """Returns the named address, or the first of the version that the flow's packets have."""
        if self.address is not None:
            return self.address
        return next((address for address in self.host.addresses if address.ip.version == version), None)


@dataclass(frozen=True)
class Devices:
    """The hosts of a configuration, in the order of their numbers in the engine."""

    hosts: tuple[Host, ...] = ()

    @cached_property
    def endpoints(self) -> Mapping[str, Endpoint]:
        """What flows may name, by its name."""
        addresses = {address.name: Endpoint(host, address) for host in self.hosts for address in host.addresses}
        return {host.name: Endpoint(host) for host in self.hosts} | addresses


def read_devices(config: Mapping[str, Any], ports: set[str], problems: Problems) -> Devices:
    """Reads the devices of a configuration; ``ports`` are its ports' names."""
    hosts = []
    for index, device in enumerate(config.get("devices") or ()):
        path = f"config.devices[{index}]"
        for protocol in sorted(set(device) - _NO_PROTOCOLS):
            if device[protocol]:
                problems.not_implemented(f"{path}.{protocol}", "is not emulated: leave it out")
        for place, message in enumerate(device.get("ethernets") or ()):
            hosts.append(_read_host(message, f"{path}.ethernets[{place}]", ports, problems))
    for port, count in Counter(host.port for host in hosts).items():
        if count > MOST_HOSTS:
            problems.invalid("config.devices", f"have {count} ethernets at port {port!r}, of at most {MOST_HOSTS}")
    _check_addresses(hosts, problems)
    return Devices(tuple(hosts))


def _read_host(message: Mapping[str, Any], path: str, ports: set[str], problems: Problems) -> Host:
    connection = message.get("connection") or {}
    choice = connection.get("choice", "port_name" if "port_name" in connection else None)
    port = str(connection.get("port_name", ""))
    if choice not in (None, "port_name"):
        problems.not_implemented(f"{path}.connection.{choice}", "is not emulated: name a port")
    elif port not in ports:
        problems.invalid(f"{path}.connection.port_name", f"no port of the configuration is called {port[:80]!r}")
    for key in ("dhcpv4_interfaces", "dhcpv6_interfaces"):
        if message.get(key):
            problems.not_implemented(f"{path}.{key}", "is not emulated: give addresses")
    mac = str(message.get("mac") or "")
    octets = mac.split(":")
    if not mac:
        problems.invalid(f"{path}.mac", "is missing")
    elif int(octets[0], 16) & 1 or not any(int(octet, 16) for octet in octets):
        problems.invalid(f"{path}.mac", f"{mac} is no address of a station")
    addresses = [
        _read_address(each, version, f"{path}.ipv{version}_addresses[{index}]", problems)
        for version in (4, 6)
        for index, each in enumerate(message.get(f"ipv{version}_addresses") or ())
    ]
    vlans = message.get("vlans") or ()
    if len(addresses) > _MOST_ADDRESSES or len(vlans) > _MOST_TAGS:
        problems.invalid(path, f"has at most {_MOST_ADDRESSES} addresses and {_MOST_TAGS} vlans")
    tags = tuple(_read_tag(vlan, f"{path}.vlans[{index}]", problems) for index, vlan in enumerate(vlans))
    return Host(str(message["name"]), port, _full_mac(mac), tags, tuple(addresses))


def _full_mac(mac: str) -> str:
    """A MAC address with two digits each."""
    return ":".join(f"{int(octet, 16):02x}" for octet in mac.split(":")) if mac else mac


def _read_address(message: Mapping[str, Any], version: int, path: str, problems: Problems) -> Address:
    ip, gateway = ipaddress.ip_address(message["address"]), ipaddress.ip_address(message["gateway"])
    if ip.is_multicast or ip.is_unspecified:
        problems.invalid(f"{path}.address", f"{ip} is no address of a host")
    given = message.get("gateway_mac") or {}
    is_given = given.get("choice", "value" if "value" in given else "auto") == "value"
    return Address(
        name=str(message["name"]),
        ip=ip,
        prefix=int(message.get("prefix", 24 if version == 4 else 64)),
        gateway=None if gateway.is_unspecified or gateway == ip else gateway,
        gateway_mac=_full_mac(str(given.get("value", "00:00:00:00:00:00"))) if is_given else None,
    )


def _read_tag(message: Mapping[str, Any], path: str, problems: Problems) -> Tag:
    kind = str(message.get("tpid", "x8100"))
    if kind not in _TAG_TYPES:
        problems.not_implemented(f"{path}.tpid", f"is one of {', '.join(_TAG_TYPES)}")
    return Tag(_TAG_TYPES.get(kind, 0), int(message.get("priority", 0)), int(message.get("id", 1)))


def _check_addresses(hosts: Sequence[Host], problems: Problems) -> None:
    """Hosts that are heard together have different addresses: both would answer."""
    holders: dict[object, str] = {}
    for host in hosts:
        vlans = tuple(tag.id for tag in host.tags if tag.id)
        for address in host.addresses:
            key = (host.port, vlans, address.ip)
            if key in holders:
                what = (
                    f"{address.name!r} has the address {address.ip} of {holders[key]!r}, in the same VLAN of its port"
                )
                problems.invalid("config.devices", what)
            holders.setdefault(key, address.name)


@dataclass(frozen=True, slots=True)
class Pair:
    """One sender and one receiver of a flow."""

    sender: Endpoint
    receiver: Endpoint


def as_port_flow(
    flow: Mapping[str, Any], devices: Devices, macs: Mapping[Gateway, str], path: str, problems: Problems
) -> tuple[Mapping[str, Any], frozenset[Gateway]]:
    """Returns a flow between devices as one between ports, with the gateways whose MAC addresses it needs.

    ``macs`` are those that are known; of others frames have 00:00:00:00:00:00, and are not to be sent.
    """
    endpoints = flow.get("tx_rx") or {}
    if endpoints.get("choice", "port") != "device":
        return flow, frozenset()
    problems.begin_flow()
    pairs = _pairs(endpoints.get("device") or {}, devices, f"{path}.tx_rx.device", problems)
    if not pairs:
        return {**flow, "tx_rx": {"choice": "port", "port": {}}}, frozenset()
    packet = [dict(header) for header in flow.get("packet") or [{"choice": "ethernet"}]]
    kinds = [str(header.get("choice", "ethernet")) for header in packet]
    network = next((place for place, kind in enumerate(kinds) if kind in ("ipv4", "ipv6")), None)
    version = None if network is None else int(kinds[network][-1])
    hops = [_next_hop(pair, version, macs) for pair in pairs]
    for pair, (mac, _) in zip(pairs, hops, strict=True):
        if mac is None:
            name = pair.sender.host.name
            problems.invalid(f"{path}.tx_rx.device", f"{name!r} has no gateway to {pair.receiver.host.name!r}")
    if kinds[0] == "ethernet":
        _fill(packet[0], "ethernet", "dst", [mac or "" for mac, _ in hops])
        _fill(packet[0], "ethernet", "src", [pair.sender.host.mac for pair in pairs])
        for place, kind in enumerate(kinds[1 : 1 + _MOST_TAGS]):
            if kind != "vlan":
                break
            tags = [pair.sender.host.tags for pair in pairs]
            if all(len(each) > place for each in tags):
                _fill(packet[1 + place], "vlan", "id", [each[place].id for each in tags])
    if network is not None:
        for name, ends in (("src", [p.sender for p in pairs]), ("dst", [p.receiver for p in pairs])):
            found = [end.of_version(version) for end in ends]
            ips = [str(each.ip) for each in found if each is not None and each.ip.version == version]
            if len(ips) == len(pairs):
                _fill(packet[network], kinds[network], name, ips)
    receive = list(dict.fromkeys(pair.receiver.host.port for pair in pairs))
    port = {"tx_name": pairs[0].sender.host.port, "rx_names": receive}
    needs = frozenset(need for _, need in hops if need is not None)
    return {**flow, "packet": packet, "tx_rx": {"choice": "port", "port": port}}, needs


def _pairs(device: Mapping[str, Any], devices: Devices, path: str, problems: Problems) -> list[Pair]:
    """The pairs of a flow: each sender with each receiver, or one with one."""
    if device.get("bidirectional"):
        problems.not_implemented(f"{path}.bidirectional", "a flow has one direction: make two")
    ends = {key: list(_named(device.get(key) or (), devices, f"{path}.{key}", problems)) for key in _ENDS}
    senders, receivers = ends.values()
    if any(None in each or not each for each in (senders, receivers)):
        return []
    ports = {end.host.port for end in senders if end is not None}
    if len(ports) > 1:
        problems.not_implemented(f"{path}.tx_names", f"are at {len(ports)} ports: make a flow of each")
    if device.get("mode", "mesh") == "one_to_one":
        if len(senders) != len(receivers):
            problems.invalid(path, f"one_to_one has as many tx_names as rx_names: {len(senders)}, {len(receivers)}")
        both = list(zip(senders, receivers, strict=False))
    else:
        count = len(senders) * len(receivers)
        if count > MOST_VALUES:
            problems.invalid(path, f"has {count} pairs, of at most {MOST_VALUES}")
        if count > MOST_VALUES or not problems.has_room(path, count):
            return []
        both = [(sender, receiver) for sender in senders for receiver in receivers]
    if any(sender == receiver for sender, receiver in both):
        problems.invalid(path, "has a pair whose sender is its receiver")
    return [Pair(sender, receiver) for sender, receiver in both if sender is not None and receiver is not None]


_ENDS: Final = ("tx_names", "rx_names")


def _named(names: Sequence[Any], devices: Devices, path: str, problems: Problems) -> Iterator[Endpoint | None]:
    if not names:
        problems.invalid(path, "is empty: name ethernets, or addresses, of devices")
    for index, name in enumerate(names):
        found = devices.endpoints.get(str(name))
        if found is None:
            problems.invalid(f"{path}[{index}]", f"no ethernet or address of a device is called {str(name)[:80]!r}")
        yield found


def _next_hop(pair: Pair, version: int | None, macs: Mapping[Gateway, str]) -> tuple[str | None, Gateway | None]:
    """The MAC address to which the frames of a pair go, and the gateway whose it is, if it is asked for."""
    own, other = pair.sender.of_version(version), pair.receiver.of_version(version)
    if own is None or other is None or own.ip.version != other.ip.version or own.reaches(other.ip):
        return pair.receiver.host.mac, None
    if own.gateway is None:
        return None, None
    if own.gateway_mac is not None:
        return own.gateway_mac, None
    need = (pair.sender.host.name, own.gateway)
    return macs.get(need, _NOT_KNOWN), need


_NOT_KNOWN: Final = "00:00:00:00:00:00"


def _fill(header: dict[str, Any], kind: str, name: str, values: Sequence[Any]) -> None:
    """Gives a field that the client left open one value for each pair."""
    body = dict(header.get(kind) or {})
    given = body.get(name) or {}
    if any(key in given for key in _GIVEN) or isinstance(given.get("auto"), Mapping):
        return
    alike = len(set(values)) == 1
    body[name] = {"choice": "value", "value": values[0]} if alike else {"choice": "values", "values": list(values)}
    header[kind] = body


_GIVEN: Final = ("value", "values", "increment", "decrement", "random")
