"""What held a throughput down: a link, the server, or a client, never charged to the card (docs/studies.md).

Pure: figures of a round in, a sentence out. A limit is named where the figures show it, and called unknown where not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

FULL_LINK = 0.90
"""Of the link's speed: a stream of TCP segments of 1448 bytes fills 94 % of it with payload."""
BUSY_CORE = 0.95
"""Of one CPU's time: what runs on it could not have done much more."""
BUSY_MACHINE = 0.90
SLOW_CLIENT = 0.6
"""Of the median of the clients beside it that have links of the same speed."""
OUTDONE = 0.9
"""Of what another client moved through the same port, when each had the server for itself."""


class Limit(StrEnum):
    """Where the limit lies."""

    LINK = "link"
    SERVER = "server"
    CLIENT = "client"
    SHARED = "shared machine"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Moved:
    """What one client moved; bits per second of payload, CPU shares 0..1, None is unknown."""

    client: str
    port: str
    machine: str
    bits_per_s: float | None
    link_bits_per_s: float | None = None
    port_link_bits_per_s: float | None = None
    parts: int = 1
    """How many of its processes moved it: a client with more of them is no faster for that."""
    by_direction: tuple[float, ...] = ()
    """Each direction by itself, in the same order for all: a link carries each of them. None: ``bits_per_s`` is one."""

    @property
    def directions(self) -> tuple[float, ...]:
        """At least one."""
        return self.by_direction or (self.bits_per_s or 0.0,)


@dataclass(frozen=True, slots=True)
class Busy:
    """How busy a machine was: all of it, and its busiest CPU."""

    mean: float | None
    busiest_core: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """The limit and a sentence for the report; ``clients`` are those that it lies in."""

    limit: Limit
    text: str
    clients: tuple[str, ...] = ()


def limit_of(moved: Sequence[Moved], server_machine: str, busy: Mapping[str, Busy]) -> Found:
    """Of everything that ran together; the first that applies: links, clients, the shared machine, the server."""
    return (
        _full_links(moved)
        or _busy_clients(moved, server_machine, busy)
        or _slow_clients(moved, server_machine)
        or _busy_server(moved, server_machine, busy)
        or Found(Limit.UNKNOWN, "no link and no CPU was full: what held it down is not known")
    )


def limit_alone(one: Moved, others: Sequence[Moved], server_machine: str, busy: Mapping[str, Busy]) -> Found:
    """Of a client that had the server for itself, as each of the ``others`` had at another time.

    What one of those moved through the same port, port and server can move: what this one lacks is then its own.
    """
    return (
        _full_links([one])
        or _busy_clients([one], server_machine, busy)
        or _outdone(one, others)
        or _busy_server([one], server_machine, busy)
        or Found(Limit.UNKNOWN, "no link and no CPU was full: what held it down is not known")
    )


def _outdone(one: Moved, others: Sequence[Moved]) -> Found | None:
    """The published test was repeated with a faster client, and moved a third more (docs/studies.md)."""
    through = [other for other in others if other.port == one.port and other.client != one.client]
    best = max(through, key=lambda other: other.bits_per_s or 0.0, default=None)
    if best is None or one.bits_per_s is None or one.bits_per_s >= OUTDONE * (best.bits_per_s or 0.0):
        return None
    share = 100 * one.bits_per_s / (best.bits_per_s or 1.0)
    return Found(
        Limit.CLIENT,
        f"{one.client} moved {share:.0f} % of what {best.client} moved through the same port: a slow machine, or its "
        "link; the port can do more",
        (one.client,),
    )


def _full_links(moved: Sequence[Moved]) -> Found | None:
    """Every port's link, or every client's own, is full."""
    by_port = _by_port(moved)
    full = [
        _fills(by_port[one.port], one.port_link_bits_per_s) or _fills(one.bits_per_s, one.link_bits_per_s)
        for one in moved
    ]
    if not full or not all(full):
        return None
    text = f"the link{'s were' if len(by_port) > 1 else ' was'} full"
    if any(_overfills(by_port[one.port], one.port_link_bits_per_s) for one in moved):
        text += (
            "; clients of one port together counted more than its link carries, for they did not begin and end "
            "together: a longer round tells it better"
        )
    return Found(Limit.LINK, text)


def _by_port(moved: Sequence[Moved]) -> dict[str, float]:
    """What went over each port's link in the direction that carried more."""
    sums: dict[str, list[float]] = {}
    for one in moved:
        known = sums.setdefault(one.port, [])
        for number, rate in enumerate(one.directions):
            known.extend([0.0] * (number + 1 - len(known)))
            known[number] += rate
    return {port: max(each) for port, each in sums.items()}


def _overfills(bits_per_s: float, link_bits_per_s: float | None) -> bool:
    return bool(link_bits_per_s) and bits_per_s > (link_bits_per_s or 0.0)


def _fills(bits_per_s: float | None, link_bits_per_s: float | None) -> bool:
    return bits_per_s is not None and bool(link_bits_per_s) and bits_per_s >= FULL_LINK * (link_bits_per_s or 0.0)


def _busy_clients(moved: Sequence[Moved], server_machine: str, busy: Mapping[str, Busy]) -> Found | None:
    """A CPU of a client's machine was busy all the time, and none of the server's was."""
    server = busy.get(server_machine)
    if server is not None and (server.busiest_core or 0.0) >= BUSY_CORE:
        return None
    tired = {
        one.client: share
        for one in moved
        if one.machine != server_machine
        and (share := (busy[one.machine].busiest_core if one.machine in busy else None)) is not None
        and share >= BUSY_CORE
    }
    if not tired:
        return None
    said = ", ".join(f"{client} ({100 * share:.0f} %)" for client, share in tired.items())
    return Found(
        Limit.CLIENT,
        f"a CPU of the client was busy all the time: {said}; {_of_server(server)}. Repeat it with a faster client",
        tuple(tired),
    )


def _of_server(server: Busy | None) -> str:
    known = server is not None and server.busiest_core is not None
    return "the server had time left" if known else "how busy the server was is not known"


def _slow_clients(moved: Sequence[Moved], server_machine: str) -> Found | None:
    """One machine is much slower than those that share a port with as many, on links of the same speed.

    A client whose port is full has its share of it, and is not slow.
    """
    by_port, clients = _by_port(moved), Counter(one.port for one in moved)
    known = [
        one
        for one in moved
        if one.bits_per_s is not None
        and one.machine != server_machine
        and not _fills(by_port[one.port], one.port_link_bits_per_s)
    ]
    slow: list[Moved] = []
    for one in known:
        alike = [
            other
            for other in known
            if other.client != one.client
            and other.link_bits_per_s == one.link_bits_per_s
            and clients[other.port] == clients[one.port]
        ]
        rates = sorted(_of_one(other) for other in alike if other.machine != one.machine)
        if len(rates) >= 2 and _of_one(one) < SLOW_CLIENT * rates[len(rates) // 2]:
            slow.append(one)
    if not slow:
        return None
    names = tuple(one.client for one in slow)
    same = "links of the same speed" if all(one.link_bits_per_s for one in slow) else "links of unknown speed"
    return Found(
        Limit.CLIENT,
        f"{', '.join(names)} moved less than {100 * SLOW_CLIENT:.0f} % of what the clients beside it did, over {same}: "
        "a slow machine, or its link",
        names,
    )


def _of_one(moved: Moved) -> float:
    """What one of its processes moved."""
    return (moved.bits_per_s or 0.0) / moved.parts


def _busy_server(moved: Sequence[Moved], server_machine: str, busy: Mapping[str, Busy]) -> Found | None:
    server = busy.get(server_machine)
    if server is None:
        return None
    shared = any(one.machine == server_machine for one in moved)
    if shared and (server.mean or 0.0) >= BUSY_MACHINE:
        return Found(Limit.SHARED, f"the CPUs that server and clients share were {100 * (server.mean or 0):.0f} % busy")
    if not shared and (server.busiest_core or 0.0) >= BUSY_CORE:
        return Found(Limit.SERVER, f"a CPU of the server was {100 * (server.busiest_core or 0):.0f} % busy")
    return None
