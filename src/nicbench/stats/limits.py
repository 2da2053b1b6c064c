"""What limited a throughput: a link, the machines, or a tester that falls short of what it is asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from nicbench.core.frozen import frozen

# Finds what limited a throughput, so that it is not charged to the card: a link, the server or a client.
#
# Based on docs/studies.md. A limit is named where the figures show it, and called unknown otherwise.


FULL_LINK = 0.90
"""The share of a link's speed at which it counts as full: TCP segments of 1448 bytes fill 94 % with payload."""
_NEARLY_ALL = 0.956
"""The same as a share of the payload that a full link carries, for smaller packets: 90 % of 94.15 %."""
_FRAME_OVERHEAD_BYTES = 14 + 4 + 20
"""Ethernet header and FCS, preamble and gap."""
_LEAST_FRAME_BYTES = 64 + 20
BUSY_CORE = 0.95
"""The share of one CPU's time at which it counts as fully busy."""
BUSY_MACHINE = 0.90
"""The mean share of all CPUs' time at which a machine counts as fully busy."""
MANY_STRANGERS = 0.05
"""The share of all CPUs' time of programs that are not of the test, above which a busy CPU says nothing of the test."""
CPU_OF_STRANGERS = 0.5
"""The time of such programs, in CPUs, from which a busy CPU of a large machine may be one of theirs."""
SLOW_CLIENT = 0.6
"""A client is slow below this share of the median of the other clients with links of the same speed."""
OUTDONE = 0.9
"""A client measured alone is slow below this share of what another one, also alone, moved through the same port."""


class Limit(StrEnum):
    """The part of the setup that limited a throughput."""

    LINK = "link"
    SERVER = "server"
    CLIENT = "client"
    SHARED = "shared machine"
    UNKNOWN = "unknown"


@frozen
class MovedData:
    """What one client moved, in bits per second of payload. None is unknown."""

    client: str
    port: str
    machine: str
    bits_per_s: float | None
    link_bits_per_s: float | None = None
    port_link_bits_per_s: float | None = None
    parts: int = 1
    """The number of its processes that moved the data: rates of clients are compared by process."""
    by_direction: tuple[float, ...] = ()
    """The rate of each direction, in the same order for all clients; empty where ``bits_per_s`` is the only one."""
    full_share: float = FULL_LINK
    """The share of a link's speed at which payload in packets of this size fills it."""

    @property
    def directions(self) -> tuple[float, ...]:
        """The rates of the directions: at least one."""
        return self.by_direction or (self.bits_per_s or 0.0,)


@frozen
class CpuLoad:
    """How busy a machine was, as shares 0..1: the mean of all its CPUs, and the busiest one.

    ``strangers`` is the part of the mean that programs used which are not of the test. ``cpus`` is how many there are.
    """

    mean: float | None
    busiest_core: float | None
    strangers: float | None = None
    cpus: int | None = None


@frozen
class FoundLimit:
    """A limit with a sentence for the report; ``clients`` are those that caused it."""

    limit: Limit
    text: str
    clients: tuple[str, ...] = ()


def full_share(payload_bytes: int, header_bytes: int) -> float:
    """Returns the share of an Ethernet link's speed at which packets with this payload fill it, 0.90 at most.

    ``header_bytes`` are those of IP and above, in each packet.
    """
    on_the_wire = max(payload_bytes + header_bytes + _FRAME_OVERHEAD_BYTES, _LEAST_FRAME_BYTES)
    return min(FULL_LINK, _NEARLY_ALL * payload_bytes / on_the_wire)


def limit_of(
    moved: Sequence[MovedData],
    server_machine: str,
    busy: Mapping[str, CpuLoad],
    beside: Sequence[MovedData] = (),
) -> FoundLimit:
    """Finds the limit of clients that ran together; the first that applies: links, clients, shared machine, server.

    ``beside`` is what other clients moved at the same time, whose limit is not asked for.
    """
    everyone = (*moved, *beside)
    by_port = _rates_by_port(everyone)
    full = [one for one in moved if _is_full(one, by_port)]
    rest = [one for one in moved if one not in full]
    if full and not rest:
        return FoundLimit(Limit.LINK, f"{_describe_links(full, by_port, named=False)}{_explain_excess(full, by_port)}")
    found = (
        _busy_strangers(rest, server_machine, busy)
        or _busy_clients(rest, server_machine, busy)
        or _slow_clients(rest, everyone, server_machine)
        or _busy_server(rest, server_machine, busy)
        or _unknown(rest)
    )
    if not full:
        return found
    text = found.text if found.limit is not Limit.UNKNOWN else f"of the others: {found.text}"
    return replace(found, text=f"{_describe_links(full, by_port, named=True)}; {text}")


def _unknown(moved: Sequence[MovedData]) -> FoundLimit:
    if not moved or any(one.bits_per_s is None for one in moved):
        return FoundLimit(Limit.UNKNOWN, "what was moved is not known, and so what held it down")
    return FoundLimit(Limit.UNKNOWN, "no link and no CPU was full: what held it down is not known")


def limit_alone(
    one: MovedData, others: Sequence[MovedData], server_machine: str, busy: Mapping[str, CpuLoad]
) -> FoundLimit:
    """Finds the limit of a client that had the server to itself, as each of the ``others`` had at another time.

    What another client moved through the same port, port and server can carry: a lower rate is this client's own limit.
    """
    by_port = _rates_by_port([one])
    if _is_full(one, by_port):
        text = f"{_describe_links([one], by_port, named=False)}{_explain_excess([one], by_port)}"
        return FoundLimit(Limit.LINK, text)
    return (
        _busy_strangers([one], server_machine, busy)
        or _busy_clients([one], server_machine, busy)
        or _find_outdone(one, others)
        or _busy_server([one], server_machine, busy)
        or _unknown([one])
    )


def _find_outdone(one: MovedData, others: Sequence[MovedData]) -> FoundLimit | None:
    """Compares a client with the fastest one on the same port, as the published study did (docs/studies.md)."""
    through = [other for other in others if other.port == one.port and other.client != one.client]
    best = max(through, key=lambda other: other.bits_per_s or 0.0, default=None)
    if best is None or one.bits_per_s is None or one.bits_per_s >= OUTDONE * (best.bits_per_s or 0.0):
        return None
    share = 100 * one.bits_per_s / (best.bits_per_s or 1.0)
    return FoundLimit(
        Limit.CLIENT,
        f"{one.client} moved {share:.0f} % of what {best.client} moved through the same port: a slow machine, or its "
        "link; the port can do more",
        (one.client,),
    )


def _is_full(one: MovedData, by_port: Mapping[str, float]) -> bool:
    """Whether the link of the client's port, or the client's own, was full."""
    of_port = _fills(by_port[one.port], one.port_link_bits_per_s, one.full_share)
    return of_port or _fills(one.bits_per_s, one.link_bits_per_s, one.full_share)


def _describe_links(full: Sequence[MovedData], by_port: Mapping[str, float], *, named: bool) -> str:
    ends = dict.fromkeys(
        one.port if _fills(by_port[one.port], one.port_link_bits_per_s, one.full_share) else one.client for one in full
    )
    names = f" of {', '.join(ends)}" if named else ""
    several = len(ends) > 1 if named else len({one.port for one in full}) > 1
    return f"the link{'s' if several else ''}{names} {'were' if several else 'was'} full"


def _explain_excess(full: Sequence[MovedData], by_port: Mapping[str, float]) -> str:
    """Explains that more was counted than a port's link carries, where it was."""
    over = [one for one in full if _overfills(by_port[one.port], one.port_link_bits_per_s)]
    if not over:
        return ""
    shared = Counter(one.port for one in full)
    if any(shared[one.port] > 1 for one in over):
        return (
            "; the clients of one port together counted more than its link carries, because they did not start and "
            "end together: measure longer rounds"
        )
    return (
        "; more was counted than the link carries, as part of the data was still in buffers when the time ended, or "
        "went into them at once when it began: measure for longer"
    )


def _rates_by_port(moved: Sequence[MovedData]) -> dict[str, float]:
    """Sums up the rate on each port's link in its busier direction."""
    sums: dict[str, list[float]] = {}
    for one in moved:
        known = sums.setdefault(one.port, [])
        for number, rate in enumerate(one.directions):
            known.extend([0.0] * (number + 1 - len(known)))
            known[number] += rate
    return {port: max(each) for port, each in sums.items()}


def _overfills(bits_per_s: float, link_bits_per_s: float | None) -> bool:
    return bool(link_bits_per_s) and bits_per_s > (link_bits_per_s or 0.0)


def _fills(bits_per_s: float | None, link_bits_per_s: float | None, share: float) -> bool:
    return bits_per_s is not None and bool(link_bits_per_s) and bits_per_s >= share * (link_bits_per_s or 0.0)


def _busy_strangers(moved: Sequence[MovedData], server_machine: str, busy: Mapping[str, CpuLoad]) -> FoundLimit | None:
    """Finds a machine with a fully busy CPU of which strangers had a part: neither server nor client is to blame."""
    for machine in dict.fromkeys((server_machine, *(one.machine for one in moved))):
        load = busy.get(machine)
        if load is None or (load.busiest_core or 0.0) < BUSY_CORE:
            continue
        strangers, cpus = load.strangers or 0.0, load.cpus or 0
        if strangers > MANY_STRANGERS:
            part = f"{100 * strangers:.0f} % of the CPU time"
        elif strangers * cpus >= CPU_OF_STRANGERS:
            part = f"{strangers * cpus:.1f} of its {cpus} CPUs"
        else:
            continue
        return FoundLimit(
            Limit.UNKNOWN,
            f"a CPU of {machine} was busy all the time, and programs outside the test took {part}: what held it down "
            "is not known",
        )
    return None


def _busy_clients(moved: Sequence[MovedData], server_machine: str, busy: Mapping[str, CpuLoad]) -> FoundLimit | None:
    """Finds clients with a fully busy CPU while no CPU of the server was fully busy."""
    server = busy.get(server_machine)
    if server is not None and (server.busiest_core or 0.0) >= BUSY_CORE:
        return None
    busy_clients = {
        one.client: share
        for one in moved
        if one.machine != server_machine
        and (share := (busy[one.machine].busiest_core if one.machine in busy else None)) is not None
        and share >= BUSY_CORE
    }
    if not busy_clients:
        return None
    clients = ", ".join(f"{client} ({100 * share:.0f} %)" for client, share in busy_clients.items())
    return FoundLimit(
        Limit.CLIENT,
        f"a CPU of the client was busy all the time: {clients}; {_describe_server(server)}. "
        "Repeat it with a faster client",
        tuple(busy_clients),
    )


def _describe_server(server: CpuLoad | None) -> str:
    known = server is not None and server.busiest_core is not None
    return "the server had time left" if known else "how busy the server was is not known"


def _slow_clients(moved: Sequence[MovedData], everyone: Sequence[MovedData], server_machine: str) -> FoundLimit | None:
    """Finds clients much slower than others with as many clients on their port and links of the same speed.

    A client whose port is full has its share of the port, and is not slow.
    """
    by_port, clients = _rates_by_port(everyone), Counter(one.port for one in everyone)
    known = [
        one
        for one in everyone
        if one.bits_per_s is not None
        and one.machine != server_machine
        and not _fills(by_port[one.port], one.port_link_bits_per_s, one.full_share)
    ]
    slow = []
    for one in (each for each in known if each in moved):
        alike = [
            other
            for other in known
            if other.client != one.client
            and other.link_bits_per_s == one.link_bits_per_s
            and clients[other.port] == clients[one.port]
        ]
        rates = sorted(_rate_per_process(other) for other in alike if other.machine != one.machine)
        if len(rates) >= 2 and _rate_per_process(one) < SLOW_CLIENT * rates[len(rates) // 2]:
            slow.append(one)
    if not slow:
        return None
    names = tuple(one.client for one in slow)
    same = "links of the same speed" if all(one.link_bits_per_s for one in slow) else "links of unknown speed"
    return FoundLimit(
        Limit.CLIENT,
        f"{', '.join(names)} moved less than {100 * SLOW_CLIENT:.0f} % of what the clients beside it did, over {same}: "
        "a slow machine, or its link",
        names,
    )


def _rate_per_process(moved: MovedData) -> float:
    """Returns what one of the client's processes moved, in bits per second."""
    return (moved.bits_per_s or 0.0) / moved.parts


def _busy_server(moved: Sequence[MovedData], server_machine: str, busy: Mapping[str, CpuLoad]) -> FoundLimit | None:
    server = busy.get(server_machine)
    if server is None:
        return None
    shared = any(one.machine == server_machine for one in moved)
    if shared and (server.mean or 0.0) >= BUSY_MACHINE:
        return FoundLimit(
            Limit.SHARED, f"the CPUs that server and clients share were {100 * (server.mean or 0):.0f} % busy"
        )
    if not shared and (server.busiest_core or 0.0) >= BUSY_CORE:
        return FoundLimit(Limit.SERVER, f"a CPU of the server was {100 * (server.busiest_core or 0):.0f} % busy")
    return None


# Tells a tester that sends a constant share of what it is asked for from one that has a ceiling.
#
# A ceiling is a rate: the tester sends the same, whatever more it is asked for. A tester that falls short by a
# constant share sends less at every load, and each of its trials is one at the load that it really sent. One load
# alone does not tell them apart: two do.


LEAST_SHORTFALL = 0.001
"""A smaller share of unsent frames does not count: a tester's pauses cost as much."""
AGREEMENT = 0.1
"""Two shortfalls agree in their share where these differ by less than this part of the shortfall."""
LEAST_DISTANCE = 0.25
"""They agree better in the share than in the rate where the shares differ by less than this part of the loads."""


class Offer(NamedTuple):
    """What a tester was asked to send in one trial, and what it offered to the DUT, in frames per second.

    ``frames`` is how many were asked for: a count of few frames is a coarse one.
    """

    asked: float
    sent: float
    frames: float

    @property
    def share(self) -> float:
        """The share of what was asked for that was sent."""
        return self.sent / self.asked

    @property
    def falls_short(self) -> bool:
        """Whether less was sent than a rounding or a pause explains."""
        return self.share < 1.0 - LEAST_SHORTFALL + 1.0 / max(1.0, self.frames)


def find_constant_share(offers: Sequence[Offer]) -> float | None:
    """Returns the share that the last trial has in common with an earlier one at another load, and so with all below.

    None where the last one did not fall short, where none agrees with it, or where another trial sent a larger share.
    """
    if not offers or not offers[-1].falls_short or offers[-1].sent <= 0.0:
        return None
    last = offers[-1]
    partners = [earlier for earlier in offers[:-1] if _share_agrees(earlier, last) and _tells_apart(earlier, last)]
    if not partners:
        return None
    highest = max(last.asked, *(partner.asked for partner in partners))
    # Above them it may send less, as a tester with a ceiling does; a larger share it cannot have sent anywhere.
    below_a_ceiling = [offer for offer in offers if offer.asked > highest and offer.share < last.share]
    if not all(_share_agrees(offer, last) for offer in offers if offer not in below_a_ceiling):
        return None
    agreeing = [last, *partners]
    return sum(offer.share * offer.frames for offer in agreeing) / sum(offer.frames for offer in agreeing)


def _share_agrees(one: Offer, other: Offer) -> bool:
    grain = 1.0 / max(1.0, one.frames) + 1.0 / max(1.0, other.frames)
    return abs(one.share - other.share) <= AGREEMENT * (1.0 - other.share) + grain


def _tells_apart(one: Offer, other: Offer) -> bool:
    """Returns whether the loads are so far apart that a ceiling would have given other shares."""
    if one.sent <= 0.0 or other.sent <= 0.0:
        return False
    apart = abs(math.log(one.asked / other.asked))
    return apart > 0.0 and abs(math.log(one.share / other.share)) < LEAST_DISTANCE * apart


def describe_share(share: float) -> str:
    """Says in one sentence what the loads of a result are where the tester fell short by a constant share."""
    percent = next((text for digits in range(4, 12) if (text := f"{100.0 * share:.{digits}g}") != "100"), "nearly 100")
    return f"the tester sent {percent} % of what it was asked for at every load; loads are those that were sent"
