"""Emulated devices: hosts at ports or link aggregation groups, and the flows between them.

A flow between devices becomes one between ports for each port that sends: what its headers leave open is filled with
the addresses of its endpoints, one value for each pair of them.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle, islice
from typing import Any, Final

from nicbench.otg.flows import RATE_DEFAULTS, receivers
from nicbench.otg.model import Problems

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
Gateway = tuple[str, Ip]
"""The name of an Ethernet interface, and whose MAC address it asks for."""
Source = tuple[str, Ip]
"""The name of an Ethernet interface, and an address of its own."""

MOST_HOSTS: Final = 1024
"""Ethernet interfaces of devices at one port."""
_MOST_ADDRESSES: Final = 64
_MOST_TAGS: Final = 3
_TAG_TYPES: Final = {"x8100": 0x8100, "x88A8": 0x88A8, "x9100": 0x9100}
_EMULATED: Final = frozenset({"name", "ethernets", "bgp"})
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
        differing = int(self.ip) ^ int(other)
        return other.version == self.ip.version and not differing >> self.ip.max_prefixlen - self.prefix


@dataclass(frozen=True, slots=True)
class Tag:
    """A VLAN tag of a host's frames."""

    tag_type: int
    priority: int
    id: int


@dataclass(frozen=True, slots=True)
class Host:
    """An Ethernet interface of a device; ``ports`` has the name of its port, or of each port of its group."""

    name: str
    device: str
    ports: tuple[str, ...]
    mac: str
    tags: tuple[Tag, ...]
    addresses: tuple[Address, ...]

    def program(self, ports: Sequence[int], tap: str | None = None) -> dict[str, Any]:
        """Returns the host as the engine's protocol has it, at the ports of these numbers; ``tap`` is the interface
        by which a kernel answers in its place.
        """
        return {
            **({"tap": tap} if tap else {}),
            "port": ports[0],
            "further_ports": list(ports[1:]),
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
class Span:
    """Networks of one prefix length; ``step`` is the distance between two of them, in networks."""

    first: Ip
    prefix: int
    count: int
    step: int

    @property
    def gap(self) -> int:
        """By how much the address of each is greater than that of the one before."""
        return self.step << self.first.max_prefixlen - self.prefix

    def addresses(self) -> Iterator[str]:
        """The addresses that a flow to them counts through, as the client wrote the first."""
        kind = type(self.first)
        return (str(kind(int(self.first) + place * self.gap)) for place in range(self.count))


@dataclass(frozen=True, slots=True)
class Routes:
    """Routes that a flow may name: they lead to ``address`` of ``host``."""

    name: str
    host: Host
    address: Address
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a flow names: an interface, one of its addresses, or routes that lead there."""

    host: Host
    address: Address | None = None
    spans: tuple[Span, ...] = ()

    def of_version(self, version: int | None) -> Address | None:
        """Returns the named address, or the first of the version that the flow's packets have."""
        if self.address is not None:
            return self.address
        return next((address for address in self.host.addresses if address.ip.version == version), None)

    @property
    def count(self) -> int:
        """How many addresses it stands for."""
        return sum(span.count for span in self.spans) or 1

    def ips(self, version: int | None) -> Iterator[str]:
        """The addresses of its packets, of this version; none where it has none."""
        if self.spans:
            return (ip for span in self.spans if span.first.version == version for ip in span.addresses())
        own = self.of_version(version)
        return iter(() if own is None or own.ip.version != version else (str(own.ip),))


@dataclass(frozen=True)
class Devices:
    """The hosts of a configuration, in the order of their numbers in the engine."""

    hosts: tuple[Host, ...] = ()
    routes: tuple[Routes, ...] = ()

    @cached_property
    def endpoints(self) -> Mapping[str, tuple[Endpoint, ...]]:
        """What flows may name, by its name: a device stands for all its interfaces."""
        named: dict[str, tuple[Endpoint, ...]] = {}
        for host in self.hosts:
            named[host.device] = (*named.get(host.device, ()), Endpoint(host))
            named[host.name] = (Endpoint(host),)
            named |= {address.name: (Endpoint(host, address),) for address in host.addresses}
        return named | {each.name: (Endpoint(each.host, each.address, each.spans),) for each in self.routes}


def read_lags(config: Mapping[str, Any], ports: set[str], problems: Problems) -> dict[str, tuple[str, ...]]:
    """Reads the link aggregation groups of a configuration: the ports of each, by its name."""
    lags: dict[str, tuple[str, ...]] = {}
    holders: dict[str, str] = {}
    for index, lag in enumerate(config.get("lags") or ()):
        path, name = f"config.lags[{index}]", str(lag.get("name"))
        protocol = lag.get("protocol") or {}
        if protocol.get("choice", "lacp") != "static":
            problems.not_implemented(f"{path}.protocol.lacp", "is not emulated: make the group static at both ends")
        members = [str(member.get("port_name")) for member in lag.get("ports") or ()]
        for place, member in enumerate(members):
            here = f"{path}.ports[{place}]"
            if (lag["ports"][place].get("macsec") or {}).get("secure_channel"):
                problems.not_implemented(f"{here}.macsec", "is not emulated: leave it out")
            if member not in ports:
                problems.invalid(f"{here}.port_name", f"no port of the configuration is called {member[:80]!r}")
            elif member in holders:
                problems.invalid(f"{here}.port_name", f"port {member!r} is in {holders[member]!r} already")
            holders.setdefault(member, name)
        if not members:
            problems.invalid(f"{path}.ports", "is empty: name the ports of the group")
        lags[name] = tuple(members)
    return lags


def read_devices(
    config: Mapping[str, Any], ports: set[str], lags: Mapping[str, tuple[str, ...]], problems: Problems
) -> Devices:
    """Reads the devices of a configuration; ``ports`` are its ports' names, ``lags`` its groups of them."""
    hosts = []
    places = {port: (port,) for port in ports} | dict(lags)
    for index, device in enumerate(config.get("devices") or ()):
        path = f"config.devices[{index}]"
        for protocol in sorted(set(device) - _EMULATED):
            if device[protocol]:
                problems.not_implemented(f"{path}.{protocol}", "is not emulated: leave it out")
        for place, message in enumerate(device.get("ethernets") or ()):
            hosts.append(_read_host(message, str(device["name"]), f"{path}.ethernets[{place}]", places, problems))
    for port, count in Counter(port for host in hosts for port in host.ports).items():
        if count > MOST_HOSTS:
            problems.invalid("config.devices", f"have {count} ethernets at port {port!r}, of at most {MOST_HOSTS}")
    _check_addresses(hosts, problems)
    return Devices(tuple(hosts))


def _read_host(
    message: Mapping[str, Any], device: str, path: str, places: Mapping[str, tuple[str, ...]], problems: Problems
) -> Host:
    connection = message.get("connection") or {}
    choice = connection.get("choice", "lag_name" if "lag_name" in connection else "port_name")
    place = str(connection.get(choice, ""))
    if choice not in ("port_name", "lag_name"):
        problems.not_implemented(f"{path}.connection.{choice}", "is not emulated: name a port")
    elif place not in places:
        what = choice.removesuffix("_name")
        problems.invalid(f"{path}.connection.{choice}", f"no {what} of the configuration is called {place[:80]!r}")
    for key in ("dhcpv4_interfaces", "dhcpv6_interfaces"):
        if message.get(key):
            problems.not_implemented(f"{path}.{key}", "is not emulated: give addresses")
    mac = str(message.get("mac") or "")
    octets = mac.split(":")
    if not mac:
        problems.invalid(f"{path}.mac", "is missing")
    elif int(octets[0], 16) & 1 or not any(int(octet, 16) for octet in octets):
        problems.invalid(f"{path}.mac", f"{mac} is not an address of a host")
    addresses = [
        _read_address(each, version, f"{path}.ipv{version}_addresses[{index}]", problems)
        for version in (4, 6)
        for index, each in enumerate(message.get(f"ipv{version}_addresses") or ())
    ]
    vlans = message.get("vlans") or ()
    if len(addresses) > _MOST_ADDRESSES or len(vlans) > _MOST_TAGS:
        problems.invalid(path, f"has at most {_MOST_ADDRESSES} addresses and {_MOST_TAGS} vlans")
    tags = tuple(_read_tag(vlan, f"{path}.vlans[{index}]", problems) for index, vlan in enumerate(vlans))
    return Host(str(message["name"]), device, places.get(place, (place,)), _full_mac(mac), tags, tuple(addresses))


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
            key = (host.ports, vlans, address.ip)
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

    @property
    def count(self) -> int:
        """How many pairs of addresses it stands for."""
        return max(self.sender.count, self.receiver.count)


_Values = Sequence[Any] | Mapping[str, Any]
"""Those of a field in turn, or an increment."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one port sends of a flow, as a flow between ports: from which addresses of devices, and by which gateways,
    whose MAC addresses it needs.
    """

    flow: Mapping[str, Any]
    needs: frozenset[Gateway] = frozenset()
    sources: frozenset[Source] = frozenset()


def as_port_flows(
    flow: Mapping[str, Any],
    devices: Devices,
    lags: Mapping[str, tuple[str, ...]],
    macs: Mapping[Gateway, str],
    path: str,
    problems: Problems,
) -> list[Part]:
    """Returns a flow as one between ports for each port that sends; ``lags`` are groups of ports by their names.

    ``macs`` are those that are known; of others frames have 00:00:00:00:00:00, and are not to be sent.
    """
    endpoints = flow.get("tx_rx") or {}
    if endpoints.get("choice", "port") != "device":
        port = endpoints.get("port") or {}
        name = str(port.get("tx_name"))
        senders = lags.get(name, (name,))
        receive = dict.fromkeys(each for name in receivers(flow) for each in lags.get(name, (name,)))
        port = {"tx_name": senders[0], "rx_names": list(receive)}
        flow = {**flow, "tx_rx": {"choice": "port", "port": port}}
        return [Part(_share(flow, senders, place, path, problems)) for place in range(len(senders))]
    problems.begin_flow()
    pairs = _pairs(endpoints.get("device") or {}, devices, f"{path}.tx_rx.device", problems)
    groups: dict[tuple[str, ...], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.sender.host.ports, []).append(pair)
    parts = []
    for ports, group in groups.items():
        part = _between_ports(flow, group, macs, path, problems)
        parts += [replace(part, flow=_share(part.flow, ports, place, path, problems)) for place in range(len(ports))]
    return parts


def _share(
    flow: Mapping[str, Any], ports: tuple[str, ...], place: int, path: str, problems: Problems
) -> Mapping[str, Any]:
    """Returns what the port at this place of a group sends of a flow: frames are shared evenly."""
    if len(ports) == 1:
        return flow
    rate, duration = dict(flow.get("rate") or {}), dict(flow.get("duration") or {})
    kind = rate.get("choice") or next((key for key in RATE_DEFAULTS if key in rate), "pps")
    if kind in RATE_DEFAULTS:  # a percentage is of each link
        rate = {"choice": kind, kind: float(rate.get(kind, RATE_DEFAULTS[kind])) / len(ports)}
    if duration.get("choice") == "burst":
        problems.not_implemented(f"{path}.duration.burst", "bursts are not shared by the ports of a group")
    if "fixed_packets" in duration:
        fixed = duration["fixed_packets"]
        packets = (int(fixed.get("packets", 1)) + place) // len(ports)
        duration["fixed_packets"] = {**fixed, "packets": packets}
    endpoints = {"choice": "port", "port": {**flow["tx_rx"]["port"], "tx_name": ports[place]}}
    return {**flow, "tx_rx": endpoints, "rate": rate, "duration": duration}


def _between_ports(
    flow: Mapping[str, Any], pairs: Sequence[Pair], macs: Mapping[Gateway, str], path: str, problems: Problems
) -> Part:
    """Returns the flow of pairs with the same sending ports, of which it names the first."""
    packet = [dict(header) for header in flow.get("packet") or [{"choice": "ethernet"}]]
    kinds = [str(header.get("choice", "ethernet")) for header in packet]
    network = next((place for place, kind in enumerate(kinds) if kind in ("ipv4", "ipv6")), None)
    version = None if network is None else int(kinds[network][-1])
    hops = [_next_hop(pair, version, macs) for pair in pairs]
    for pair, (mac, _) in zip(pairs, hops, strict=True):
        if mac is None:
            name = pair.sender.host.name
            problems.invalid(f"{path}.tx_rx.device", f"{name!r} has no gateway to {pair.receiver.host.name!r}")
    ips = _addresses_of(pairs, version, f"{path}.tx_rx.device", problems)
    # Fields vary together: where a pair stands for many addresses, the others have its values as often.
    times = [1 if ips.is_short else pair.count for pair in pairs]
    pairs = [pair for pair, count in zip(pairs, times, strict=True) for _ in range(count)]
    hops = [hop for hop, count in zip(hops, times, strict=True) for _ in range(count)]
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
        for name, values in (("src", ips.sources), ("dst", ips.destinations)):
            if values:
                _fill(packet[network], kinds[network], name, values)
    receive = list(dict.fromkeys(port for pair in pairs for port in pair.receiver.host.ports))
    port = {"tx_name": pairs[0].sender.host.ports[0], "rx_names": receive}
    needs = frozenset(need for _, need in hops if need is not None)
    owns = ((pair.sender.host.name, pair.sender.of_version(version)) for pair in pairs)
    sources = frozenset((name, own.ip) for name, own in owns if own is not None)
    return Part({**flow, "packet": packet, "tx_rx": {"choice": "port", "port": port}}, needs, sources)


@dataclass(frozen=True, slots=True)
class _Addresses:
    """Of the packets of a flow, in step with each other; None where a pair has none of their version.

    ``is_short``: of a single pair of which each field counts through its addresses by itself.
    """

    sources: _Values | None
    destinations: _Values | None
    is_short: bool = False


def _addresses_of(pairs: Sequence[Pair], version: int | None, path: str, problems: Problems) -> _Addresses:
    if len(pairs) == 1 and all(len(end.spans) <= 1 for end in (pairs[0].sender, pairs[0].receiver)):
        sender, receiver = pairs[0].sender, pairs[0].receiver
        return _Addresses(_counted(sender, version), _counted(receiver, version), is_short=True)
    count = sum(pair.count for pair in pairs)
    if count > len(pairs) and not problems.has_room(path, 2 * count):
        return _Addresses(None, None)
    ends: list[list[str]] = [[], []]
    for pair in pairs:
        for values, end in zip(ends, (pair.sender, pair.receiver), strict=True):
            values += islice(cycle(list(end.ips(version))), pair.count)
    sources, destinations = (values if len(values) == count else None for values in ends)
    return _Addresses(sources, destinations)


def _counted(end: Endpoint, version: int | None) -> _Values | None:
    """The addresses of an end, as a pattern that counts where there are many."""
    if not end.spans or end.spans[0].count == 1:
        return list(end.ips(version)) or None
    span = end.spans[0]
    if span.first.version != version:
        return None
    return {"start": str(span.first), "step": str(type(span.first)(span.gap)), "count": span.count}


def _pairs(device: Mapping[str, Any], devices: Devices, path: str, problems: Problems) -> list[Pair]:
    """The pairs of a flow: each sender with each receiver, or one with one; also the other way if asked for."""
    named = {key: _named(device.get(key) or (), devices, f"{path}.{key}", problems) for key in _ENDS}
    senders, receivers = named.values()
    if not senders or not receivers:
        return []
    if device.get("mode", "mesh") == "one_to_one":
        if len(senders) != len(receivers):
            problems.invalid(path, f"one_to_one has as many tx_names as rx_names: {len(senders)}, {len(receivers)}")
        both = list(zip(senders, receivers, strict=False))
    else:
        if not problems.has_room(path, len(senders) * len(receivers)):
            return []
        both = [(sender, receiver) for sender in senders for receiver in receivers]
    if any(sender == receiver for sender, receiver in both):
        problems.invalid(path, "has a pair whose sender is its receiver")
    if device.get("bidirectional"):
        both += [(receiver, sender) for sender, receiver in both]
    return [Pair(*ends) for ends in both]


_ENDS: Final = ("tx_names", "rx_names")


def _named(names: Sequence[Any], devices: Devices, path: str, problems: Problems) -> list[Endpoint]:
    """The endpoints of these names; none where one is unknown."""
    if not names:
        problems.invalid(path, "is empty: name devices, ethernets, addresses or routes of devices")
    found: list[Endpoint] = []
    unknown = False
    for index, name in enumerate(names):
        ends = devices.endpoints.get(str(name), ())
        if not ends:
            problems.invalid(
                f"{path}[{index}]", f"no ethernet, address or route of a device is called {str(name)[:80]!r}"
            )
            unknown = True
        found += ends
    return [] if unknown else found


def _next_hop(pair: Pair, version: int | None, macs: Mapping[Gateway, str]) -> tuple[str | None, Gateway | None]:
    """The MAC address to which the frames of a pair go, and the gateway whose it is, if it is asked for."""
    own, other = pair.sender.of_version(version), pair.receiver.of_version(version)
    is_routed = bool(pair.sender.spans or pair.receiver.spans) and own is not None and own.gateway is not None
    if not is_routed and (own is None or other is None or own.ip.version != other.ip.version or own.reaches(other.ip)):
        return pair.receiver.host.mac, None
    if own is None:
        return None, None
    if own.gateway is None:
        return None, None
    if own.gateway_mac is not None:
        return own.gateway_mac, None
    need = (pair.sender.host.name, own.gateway)
    return macs.get(need, _NOT_KNOWN), need


_NOT_KNOWN: Final = "00:00:00:00:00:00"


def _fill(header: dict[str, Any], kind: str, name: str, values: _Values) -> None:
    """Gives a field that the client left open one value for each pair."""
    body = dict(header.get(kind) or {})
    given = body.get(name) or {}
    if any(key in given for key in _GIVEN) or isinstance(given.get("auto"), Mapping):
        return
    if isinstance(values, Mapping):
        body[name] = {"choice": "increment", "increment": dict(values)}
    elif len(set(values)) == 1:
        body[name] = {"choice": "value", "value": values[0]}
    else:
        body[name] = {"choice": "values", "values": list(values)}
    header[kind] = body


_GIVEN: Final = ("value", "values", "increment", "decrement", "random")
