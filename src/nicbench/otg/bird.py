"""The routing daemon BIRD as emulated routers use it: its configuration, and what it says. Pure.

BIRD rather than FRR or GoBGP: it announces 100,000 routes in the shortest time and withdraws a range by one command,
it sends the attributes that it is given, without a number of its own in the path, and it is one small package.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from nicbench.otg.bgp import Peer, Range, Router

PACKAGE: Final = "bird2"
USER: Final = "bird"
"""Whom the package makes."""
LARGEST_TABLE: Final = 200_000
"""Routes that are kept of what a peer announces; more are counted, and left out."""
_RETRY_S: Final = 1
_ORIGINS: Final = {"igp": "ORIGIN_IGP", "egp": "ORIGIN_EGP", "incomplete": "ORIGIN_INCOMPLETE"}


def protocols_of(router: Router) -> dict[str, str]:
    """Returns BIRD's name for each peer of a router, and for each range that is announced."""
    names: dict[str, str] = {}
    for number, peer in enumerate(router.peers):
        names[peer.name] = f"p{number}"
        for index, each in enumerate(peer.ranges):
            if each.version in peer.versions:
                names[each.name] = f"p{number}r{index}"
    return names


def configuration_of(router: Router) -> Iterator[str]:
    """Yields the lines of BIRD's configuration: each peer has tables of its own, each range is a protocol of them."""
    yield "log stderr all;"
    yield f"router id {router.router_id};"
    yield "debug protocols { states, events, packets };"
    yield "protocol device {}"
    for number, peer in enumerate(router.peers):
        for version in peer.versions:
            yield f"ipv{version} table t{number}v{version};"
        for index, each in enumerate(peer.ranges):
            if each.version in peer.versions:
                yield f"protocol static p{number}r{index} {{ ipv{each.version} {{ table t{number}v{each.version};"
                yield f"import filter {{ {' '.join(_attributes(each))} accept; }}; }};"
                yield from _routes(each)
                yield "}"
        yield from _session(number, peer)


def _attributes(each: Range) -> Iterator[str]:
    yield from (f"bgp_path.prepend({number});" for number in reversed(each.as_path))
    yield from (f"bgp_community.add(({first},{second}));" for first, second in each.communities)
    yield f"bgp_origin = {_ORIGINS[each.origin]};"
    yield f"bgp_next_hop = {each.next_hop};"
    if each.med is not None:
        yield f"bgp_med = {each.med};"
    if each.local_preference is not None:
        yield f"bgp_local_pref = {each.local_preference};"


def _routes(each: Range) -> Iterator[str]:
    for span in each.spans:
        bits = span.first.max_prefixlen
        family = socket.AF_INET if bits == 32 else socket.AF_INET6
        begin = int(span.first) >> bits - span.prefix << bits - span.prefix
        for place in range(span.count):  # an address object each would take seconds for a million
            address = socket.inet_ntop(family, (begin + place * span.gap).to_bytes(bits // 8))
            yield f"route {address}/{span.prefix} unreachable;"


def _session(number: int, peer: Peer) -> Iterator[str]:
    yield f"protocol bgp p{number} {{"
    yield f"local {peer.local.ip} port {peer.listen_port} as {peer.as_number};"
    yield f"neighbor {peer.remote} port {peer.remote_port} {'internal' if peer.is_internal else 'external'};"
    if not peer.is_internal:
        yield "rs client;"  # the path and the next hop are sent as they are given
    # Its own packets have this hop limit, and the peer need not be on the link.
    yield f"multihop {peer.hop_limit};"
    yield "strict bind yes; interpret communities off; graceful restart off; long lived graceful restart off;"
    yield f"connect delay time {_RETRY_S}; connect retry time {_RETRY_S};"
    yield f"error wait time {_RETRY_S}, {_RETRY_S}; error forget time {_RETRY_S};"
    yield f"hold time {peer.hold_s}; keepalive time {max(1, peer.keepalive_s)};"
    yield f"enable as4 {'on' if peer.has_wide_as else 'off'}; passive {'on' if peer.is_passive else 'off'};"
    yield "allow local as;"  # what is announced is learned, whatever its path
    if peer.md5_key is not None:
        yield f'password "{peer.md5_key}";'
    for version in peer.versions:
        yield f"ipv{version} {{ table t{number}v{version}; export where source = RTS_STATIC; next hop keep;"
        yield (f"import limit {LARGEST_TABLE} action block; import all;" if version in peer.learned else "import none;")
        if version != peer.version and peer.other_next_hop is not None:
            yield f"next hop address {peer.other_next_hop};"
        if version == 4 and peer.has_extended_next_hops:
            yield "extended next hop on;"
        yield "};"
    yield "}"


@dataclass
class Messages:
    """What a daemon's log told of one session, since it was started. It tells of few updates in a second, so that their
    number is not known.
    """

    established: int = 0
    lost: int = 0
    opens_sent: int = 0
    opens_received: int = 0
    keepalives_sent: int = 0
    keepalives_received: int = 0
    notifications_sent: int = 0
    notifications_received: int = 0
    end_of_rib_received: int = 0
    is_up: bool = False

    def note(self, what: str) -> None:
        """Counts a line of the log, without its beginning."""
        if what == "BGP session established":
            self.established += 1
            self.is_up = True
        elif what == "BGP session closed" and self.is_up:
            self.lost += 1
            self.is_up = False
        elif (found := _MESSAGE.match(what)) is not None:
            name = f"{_KINDS[found[2]]}_{'sent' if found[1] == 'Sending' else 'received'}"
            setattr(self, name, getattr(self, name) + 1)
        elif what == "Got END-OF-RIB":
            self.end_of_rib_received += 1


_MESSAGE: Final = re.compile(r"(Sending|Got) (OPEN|KEEPALIVE|NOTIFICATION)\b")
_KINDS: Final = {
    "OPEN": "opens",
    "KEEPALIVE": "keepalives",
    "NOTIFICATION": "notifications",
}
_LINE: Final = re.compile(r"\S+ \S+ <(\w+)> (\w+): (.*)")


@dataclass
class Log:
    """What the log of a daemon told, by the names of its protocols, and its last words."""

    sessions: dict[str, Messages] = field(default_factory=dict)
    last_words: str = ""

    def note(self, line: str) -> None:
        """Reads a line."""
        found = _LINE.match(line)
        if found is None:
            self.last_words = line[:200]
            return
        severity, protocol, what = found.groups()
        session = self.sessions.setdefault(protocol, Messages())
        if severity == "TRACE":
            session.note(what)
        elif severity == "RMT" and what.startswith("Received:"):
            session.notifications_received += 1


@dataclass(frozen=True, slots=True)
class Session:
    """One session as the daemon tells of it."""

    fsm_state: str
    advertised: int
    withdrawn: int
    received: int
    received_withdraws: int


_PROTOCOL: Final = re.compile(r"(p\d+) +BGP ")
_STATE: Final = re.compile(r" +BGP state: +(\w+)")
_CHANGES: Final = re.compile(r" +(Import|Export) (updates|withdraws): +(\d+) .*?(\d+)$")


def parse_protocols(text: str) -> dict[str, Session]:
    """Reads ``show protocols all``: sessions by their names; a session without state is idle."""
    found: dict[str, dict[str, Any]] = {}
    current: dict[str, Any] | None = None
    for line in text.splitlines():
        if line and not line[0].isspace():
            named = _PROTOCOL.match(line)
            current = found.setdefault(named[1], {"fsm_state": "idle"}) if named is not None else None
        elif current is not None and (state := _STATE.match(line)) is not None:
            current["fsm_state"] = state[1].lower()
        elif current is not None and (change := _CHANGES.match(line)) is not None:
            # What was received counts as it came, what was sent as it was accepted.
            key = {
                ("Import", "updates"): "received",
                ("Import", "withdraws"): "received_withdraws",
                ("Export", "updates"): "advertised",
                ("Export", "withdraws"): "withdrawn",
            }[change[1], change[2]]
            current[key] = current.get(key, 0) + int(change[3 if change[1] == "Import" else 4])
    counts = [each.name for each in fields(Session) if each.name != "fsm_state"]
    return {name: Session(each["fsm_state"], *(each.get(key, 0) for key in counts)) for name, each in found.items()}


_STATES: Final = frozenset({"idle", "connect", "active", "opensent", "openconfirm", "established"})
"""Of RFC 4271 8.2.2; BIRD has more."""


def metric_of(name: str, session: Session | None, told: Messages) -> dict[str, Any]:
    """Returns OTG's metric of a peer, without a ``session`` where the daemon does not run."""
    metric: dict[str, Any] = {
        "name": name,
        "session_state": "up" if session is not None and session.fsm_state == "established" else "down",
        "fsm_state": session.fsm_state if session is not None and session.fsm_state in _STATES else "idle",
        "session_flap_count": told.lost,
    }
    if session is not None:
        metric |= {
            "routes_advertised": session.advertised,
            "routes_received": session.received,
            "route_withdraws_sent": session.withdrawn,
            "route_withdraws_received": session.received_withdraws,
        }
    counted = ("opens", "keepalives", "notifications")
    ways = [f"{kind}_{way}" for kind in counted for way in ("sent", "received")]
    return metric | {key: getattr(told, key) for key in (*ways, "end_of_rib_received")}


_ROUTE: Final = re.compile(r"(\S+/\d+) +\w+ \[p\d+ ")
_ATTRIBUTE: Final = re.compile(r"\tBGP\.(\w+): (.*)")
_COMMUNITY: Final = re.compile(r"\((\d+),(\d+)\)")
_WELL_KNOWN: Final = {
    (65535, 65281): "no_export",
    (65535, 65282): "no_advertised",
    (65535, 65283): "no_export_subconfed",
    (65535, 6): "llgr_stale",
    (65535, 7): "no_llgr",
}


def parse_routes(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yields OTG's prefixes of what ``show route all`` says of one table."""
    prefix: dict[str, Any] | None = None
    for line in lines:
        if (found := _ROUTE.match(line)) is not None:
            if prefix is not None:
                yield prefix
            network = ipaddress.ip_network(found[1])
            address = f"ipv{network.version}_address"
            prefix = {address: str(network.network_address), "prefix_length": network.prefixlen}
        elif prefix is not None and (attribute := _ATTRIBUTE.match(line)) is not None:
            prefix |= _attribute(attribute[1], attribute[2])
    if prefix is not None:
        yield prefix


def _attribute(name: str, text: str) -> dict[str, Any]:
    """One attribute of a prefix, as OTG has it; none for one that it has not."""
    if name == "origin":
        return {"origin": text.strip().lower()}
    if name == "as_path":
        return {"as_path": {"segments": list(_segments(text))}}
    if name == "next_hop":
        hop = ipaddress.ip_address(text.split()[0])
        return {f"ipv{hop.version}_next_hop": str(hop)}
    if name == "community":
        return {"communities": [_community(int(first), int(second)) for first, second in _COMMUNITY.findall(text)]}
    renamed = {"local_pref": "local_preference", "med": "multi_exit_discriminator"}.get(name)
    return {renamed: int(text)} if renamed else {}


def _community(first: int, second: int) -> dict[str, Any]:
    kind = _WELL_KNOWN.get((first, second))
    return {"type": kind} if kind else {"type": "manual_as_number", "as_number": first, "as_custom": second}


def _segments(text: str) -> Iterator[dict[str, Any]]:
    """Sets are in braces, confederations in round brackets and square ones (RFC 5065)."""
    for opening, inner in re.findall(r"([{(\[]?)([\d ]+)", text):
        numbers: Sequence[int] = [int(number) for number in inner.split()]
        kind = {"": "as_seq", "{": "as_set", "(": "as_confed_seq", "[": "as_confed_set"}[opening]
        if numbers:
            yield {"type": kind, "as_numbers": numbers}
