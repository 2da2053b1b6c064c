"""Emulated routers: devices with BGP, their peers and the routes that they announce, as a configuration has them. Pure.

What the daemon that plays them cannot do is refused with its path (``bird.py`` writes what it reads).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nicbench.otg.devices import Address, Devices, Host, Ip, Routes, Span
from nicbench.otg.model import Problems

MOST_ROUTERS: Final = 64
"""Each is a network namespace and a process."""
MOST_PEERS: Final = 64
"""Of one router."""
MOST_ROUTES: Final = 1_000_000
"""Of one configuration: the daemon keeps each in about a KiB."""
_MOST_AS: Final = 64
"""Numbers in the AS path of a range."""
_WELL_KNOWN: Final = {
    "no_export": (65535, 65281),
    "no_advertised": (65535, 65282),
    "no_export_subconfed": (65535, 65283),
    "llgr_stale": (65535, 6),
    "no_llgr": (65535, 7),
}
_CAPABILITIES: Final = frozenset({"ipv4_unicast", "ipv6_unicast", "route_refresh", "extended_next_hop_encoding"})
_NOT_OF_PEER: Final = (
    *("evpn_ethernet_segments", "v4_srte_policies", "v6_srte_policies"),
    *("segment_routing", "graceful_restart", "replay_updates"),
)
_NOT_OF_RANGE: Final = ("add_path", "ext_communities", "extended_communities", "mpls_labels")


@dataclass(frozen=True, slots=True)
class Range:
    """Routes with the same attributes; ``as_path`` is the whole path that is sent."""

    name: str
    version: int
    spans: tuple[Span, ...]
    next_hop: Ip
    as_path: tuple[int, ...]
    origin: str
    med: int | None
    local_preference: int | None
    communities: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """How many routes it has."""
        return sum(span.count for span in self.spans)


@dataclass(frozen=True, slots=True)
class Peer:
    """One session. ``versions`` are the address families that are offered, ``learned`` those whose routes are kept."""

    name: str
    local: Address
    remote: Ip
    as_number: int
    is_internal: bool
    versions: tuple[int, ...]
    learned: frozenset[int]
    other_next_hop: Ip | None
    """A next hop of the version that the session does not have."""
    has_extended_next_hops: bool
    has_wide_as: bool
    hold_s: int
    keepalive_s: int
    hop_limit: int
    is_passive: bool
    md5_key: str | None
    listen_port: int
    remote_port: int
    ranges: tuple[Range, ...]

    @property
    def version(self) -> int:
        """The version of IP that the session goes over."""
        return self.remote.version


@dataclass(frozen=True, slots=True)
class Router:
    """A device with BGP; ``hosts`` are its Ethernet interfaces."""

    device: str
    router_id: str
    hosts: tuple[Host, ...]
    peers: tuple[Peer, ...]


def read_routers(config: Mapping[str, Any], devices: Devices, problems: Problems) -> tuple[Router, ...]:
    """Reads the devices that have BGP; ``devices`` are all, as hosts."""
    routers = []
    for index, device in enumerate(config.get("devices") or ()):
        message = device.get("bgp")
        if not message:
            continue
        path = f"config.devices[{index}].bgp"
        hosts = tuple(host for host in devices.hosts if host.device == str(device["name"]))
        for host in hosts:
            if len(host.ports) > 1:
                problems.not_implemented(path, f"{host.name!r} is in a link aggregation group: give it a port")
        peers = tuple(_read_peers(message, hosts, path, problems))
        if len(peers) > MOST_PEERS:
            problems.invalid(path, f"has {len(peers)} peers, of at most {MOST_PEERS}")
        for place, peer in enumerate(peers):
            ends = (peer.local.ip, peer.remote)
            if any((other.local.ip, other.remote) == ends for other in peers[:place]):
                problems.invalid(path, f"{peer.name!r}: another peer is between the same addresses")
        routers.append(Router(str(device["name"]), str(message["router_id"]), hosts, peers))
    if len(routers) > MOST_ROUTERS:
        problems.invalid("config.devices", f"have {len(routers)} routers, of at most {MOST_ROUTERS}")
    count = sum(each.count for router in routers for peer in router.peers for each in peer.ranges)
    if count > MOST_ROUTES:
        problems.invalid("config.devices", f"announce {count} routes, of at most {MOST_ROUTES}")
    return tuple(routers)


def routes_of(routers: Sequence[Router]) -> tuple[Routes, ...]:
    """Returns the ranges of routes as what flows may name."""
    return tuple(
        Routes(each.name, host, _address_of(host, peer, each.version), each.spans)
        for router in routers
        for peer in router.peers
        for host in router.hosts
        if peer.local in host.addresses
        for each in peer.ranges
    )


def _address_of(host: Host, peer: Peer, version: int) -> Address:
    """Returns the router's address of this version at the interface of a session, or the session's own."""
    own = (peer.local, *host.addresses)
    return next((address for address in own if address.ip.version == version), peer.local)


def _read_peers(message: Mapping[str, Any], hosts: Sequence[Host], path: str, problems: Problems) -> Iterator[Peer]:
    holders = {address.name: (host, address) for host in hosts for address in host.addresses}
    for version in (4, 6):
        key = f"ipv{version}_interfaces"
        for index, interface in enumerate(message.get(key) or ()):
            here = f"{path}.{key}[{index}]"
            host, address = holders.get(str(interface.get(f"ipv{version}_name")), (None, None))
            if host is None or address is None or address.ip.version != version:
                what = f"no IPv{version} address of this device is called {str(interface.get(f'ipv{version}_name'))!r}"
                problems.invalid(f"{here}.ipv{version}_name", what)
                continue
            for place, peer in enumerate(interface.get("peers") or ()):
                yield _read_peer(peer, host, address, f"{here}.peers[{place}]", problems)


def _read_peer(message: Mapping[str, Any], host: Host, local: Address, path: str, problems: Problems) -> Peer:
    for key in _NOT_OF_PEER:
        if message.get(key):
            problems.not_implemented(f"{path}.{key}", "is not emulated: leave it out")
    capability, advanced = message.get("capability") or {}, message.get("advanced") or {}
    for key, value in capability.items():
        if value and key not in _CAPABILITIES:
            problems.not_implemented(f"{path}.capability.{key}", "is not emulated: leave it out")
    if advanced.get("update_interval"):
        problems.not_implemented(f"{path}.advanced.update_interval", "updates are sent at once: leave it out")
    version = local.ip.version
    own_as, is_internal = int(message["as_number"]), message["as_type"] == "ibgp"
    ranges = tuple(
        _read_range(each, each_version, host, local, None if is_internal else own_as, place, problems)
        for each_version in (4, 6)
        for index, each in enumerate(message.get(f"v{each_version}_routes") or ())
        for place in (f"{path}.v{each_version}_routes[{index}]",)
    )
    wanted = message.get("learned_information_filter") or {}
    learned = frozenset(each for each in (4, 6) if wanted.get(f"unicast_ipv{each}_prefix"))
    used = learned | {each.version for each in ranges} | {version}
    versions = tuple(each for each in (4, 6) if each in used and capability.get(f"ipv{each}_unicast", True))
    has_extended = bool(capability.get("extended_next_hop_encoding"))
    # BIRD wants an address for routes of the other version, also where each of them has a next hop of its own.
    own = [address.ip for address in host.addresses] + [each.next_hop for each in ranges]
    other = next((ip for ip in own if ip.version != version), None)
    for offered in versions:
        if offered != version and other is None and not (offered == 4 and has_extended):
            problems.invalid(f"{path}.v{offered}_routes", f"{host.name!r} has no IPv{offered} address as next hop")
    for each in ranges:
        if each.next_hop.version != each.version and not (has_extended and each.version == 4):
            what = "has a next hop of the other version: set capability.extended_next_hop_encoding, or give another"
            problems.invalid(path, f"{each.name!r} {what}")
        if not is_internal and any(number > _most_as(message) for number in each.as_path):
            problems.invalid(path, f"{each.name!r} has an AS number of more than 16 bits")
    hold_s, key = int(advanced.get("hold_time_interval", 90)), str(advanced.get("md5_key") or "")
    if 0 < hold_s < _SHORTEST_HOLD_S or hold_s > _MOST_16_BITS:
        problems.invalid(f"{path}.advanced.hold_time_interval", "is 0, or 3 to 65535 seconds (RFC 4271 4.2)")
    if not all(character.isprintable() and character not in '"\\' for character in key) or len(key) > _LONGEST_KEY:
        problems.invalid(f"{path}.advanced.md5_key", "is at most 80 printable characters without quotes")
    return Peer(
        name=str(message["name"]),
        local=local,
        remote=ipaddress.ip_address(message["peer_address"]),
        as_number=own_as,
        is_internal=is_internal,
        versions=versions,
        learned=learned,
        other_next_hop=other,
        has_extended_next_hops=has_extended,
        has_wide_as=message.get("as_number_width", "four") == "four",
        hold_s=hold_s,
        keepalive_s=int(advanced.get("keep_alive_interval", 30)),
        hop_limit=max(1, int(advanced.get("time_to_live", 64))),
        is_passive=bool(advanced.get("passive_mode")),
        md5_key=key or None,
        listen_port=int(advanced.get("listen_port", 179)),
        remote_port=int(advanced.get("neighbor_port", 179)),
        ranges=ranges,
    )


_SHORTEST_HOLD_S: Final = 3
_MOST_16_BITS: Final = 65_535
_LONGEST_KEY: Final = 80


def _most_as(message: Mapping[str, Any]) -> int:
    return 2**32 - 1 if message.get("as_number_width", "four") == "four" else _MOST_16_BITS


def _read_range(
    message: Mapping[str, Any],
    version: int,
    host: Host,
    local: Address,
    own_as: int | None,
    path: str,
    problems: Problems,
) -> Range:
    """Reads routes; ``own_as`` is the number that their path begins with, None for an internal session."""
    for key in _NOT_OF_RANGE:
        if message.get(key):
            problems.not_implemented(f"{path}.{key}", "is not announced: leave it out")
    advanced = message.get("advanced") or {}
    has = {key: advanced.get(f"include_{key}", True) for key in ("multi_exit_discriminator", "local_preference")}
    med = advanced.get("multi_exit_discriminator") if has["multi_exit_discriminator"] else None
    preference = advanced.get("local_preference", 100) if has["local_preference"] and own_as is None else None
    return Range(
        name=str(message["name"]),
        version=version,
        spans=tuple(
            _read_span(each, version, f"{path}.addresses[{index}]", problems)
            for index, each in enumerate(message.get("addresses") or ())
        ),
        next_hop=_read_next_hop(message, version, host, local),
        as_path=_read_as_path(message.get("as_path"), own_as, f"{path}.as_path", problems),
        origin=str(advanced.get("origin", "igp")) if advanced.get("include_origin", True) else "igp",
        med=None if med is None else int(med),
        local_preference=None if preference is None else int(preference),
        communities=tuple(_read_community(each) for each in message.get("communities") or ()),
    )


def _read_span(message: Mapping[str, Any], version: int, path: str, problems: Problems) -> Span:
    first, bits = ipaddress.ip_address(message["address"]), 32 if version == 4 else 128
    prefix = int(message.get("prefix", 24 if version == 4 else 64))
    span = Span(first, min(prefix, bits), int(message.get("count", 1)), int(message.get("step", 1)))
    octet = span.first.packed[0]
    is_sent = 0 < octet < _CLASS_D and octet != _LOOP if version == 4 else octet >> 5 == 1 or octet >> 1 == _LOCAL
    if prefix > bits:
        problems.invalid(f"{path}.prefix", f"is at most {bits}")
    elif int(first) + span.gap * (span.count - 1) >= 1 << bits:
        problems.invalid(path, f"{span.count} routes from {first} do not fit into IPv{version}")
    elif prefix > 0 and not is_sent:
        why = f"{first} is not an address of a host, and BIRD does not announce it"
        problems.not_implemented(f"{path}.address", why)
    return span


_LOCAL: Final = 0xFC >> 1
"""RFC 4193 3.1."""
_CLASS_D: Final = 224
_LOOP: Final = 127


def _read_next_hop(message: Mapping[str, Any], version: int, host: Host, local: Address) -> Ip:
    if message.get("next_hop_mode", "local_ip") == "local_ip":
        own = (local, *host.addresses)
        return next((address.ip for address in own if address.ip.version == version), local.ip)
    wanted = message.get("next_hop_address_type", f"ipv{version}")
    given = message.get(f"next_hop_{wanted}_address")
    return local.ip if given is None else ipaddress.ip_address(given)


def _read_as_path(
    message: Mapping[str, Any] | None, own_as: int | None, path: str, problems: Problems
) -> tuple[int, ...]:
    """Returns the path that is sent: without a message that of routes of one's own (RFC 4271 5.1.2)."""
    if message is None:
        return () if own_as is None else (own_as,)
    mode = message.get("as_set_mode", "do_not_include_local_as")
    if mode == "include_as_set":
        problems.warn(f"{path}.as_set_mode", "the local AS is sent in a sequence: sets are deprecated (RFC 9774)")
    elif mode not in ("do_not_include_local_as", "include_as_seq", "prepend_to_first_segment"):
        problems.not_implemented(f"{path}.as_set_mode", f"{mode} is not announced: use include_as_seq")
    numbers: list[int] = []
    for index, segment in enumerate(message.get("segments") or ()):
        if segment.get("type", "as_seq") != "as_seq":
            problems.not_implemented(f"{path}.segments[{index}].type", "is not announced: use as_seq")
        numbers += map(int, segment.get("as_numbers") or ())
    if len(numbers) > _MOST_AS:
        problems.invalid(path, f"has {len(numbers)} numbers, of at most {_MOST_AS}")
    if own_as is not None and (mode != "do_not_include_local_as" or not numbers):
        numbers.insert(0, own_as)
    return tuple(numbers)


def _read_community(message: Mapping[str, Any]) -> tuple[int, int]:
    kind = str(message.get("type", "manual_as_number"))
    return _WELL_KNOWN.get(kind) or (int(message.get("as_number", 0)), int(message.get("as_custom", 0)))
