"""Which port sends to which: the distribution and orientation of traffic (RFC 2285 sections 3.2 and 3.3). Pure.

A way is an ordered pair of ports, (transmit, receive). The load of a trial is that of the busiest port in one
direction, sending or receiving: no port is ever asked to carry more than its line rate, and 100 % is the line rate of
one port in every pattern. All ways of a pattern carry the same share of the load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from pydantic import Field

from nicbench.core.base import Frozen

Way = tuple[int, int]

MOST_STREAMS_AT_ONCE: Final = 64
"""The maximum number of streams that the engine sends at once, over all ways together."""


class Pattern(StrEnum):
    """The traffic patterns by their names in the bench file, with the RFCs' terms beside them."""

    ONE_TO_ONE = "one-to-one"
    """Non-meshed (RFC 2285 3.3.1): pairs of ports, the first and the second, the third and the fourth."""
    MANY_TO_ONE = "many-to-one"
    """Partially meshed (RFC 2285 3.3.2, RFC 2889 5.2): all others send to the first port. Also called incast."""
    ONE_TO_MANY = "one-to-many"
    """Partially meshed (RFC 2285 3.3.2, RFC 2889 5.2): the first port sends to all others."""
    GROUP_TO_GROUP = "group-to-group"
    """Partially meshed (RFC 2889 5.3, 5.4): each port of the first half sends to every port of the second half."""
    FULL_MESH = "full-mesh"
    """Fully meshed (RFC 2285 3.3.3, RFC 2889 5.1): every port sends to every other."""
    SAME_PORT = "same-port"
    """Loopback: each port receives what it sent."""

    @property
    def fewest_ports(self) -> int:
        """The smallest number of ports that the pattern is defined for."""
        if self is Pattern.GROUP_TO_GROUP:
            return 4
        return 1 if self in (Pattern.ONE_TO_ONE, Pattern.SAME_PORT) else 3

    @property
    def goes_both_ways(self) -> bool:
        """Whether every port sends and receives, whatever `bidirectional` says."""
        return self in (Pattern.FULL_MESH, Pattern.SAME_PORT)

    @property
    def is_pairs(self) -> bool:
        """Whether each port sends to exactly one port (another, or itself) and receives from exactly one."""
        return self in (Pattern.ONE_TO_ONE, Pattern.SAME_PORT)

    @property
    def words(self) -> str:
        """The pattern with the RFC's term: "many-to-one (partially meshed, RFC 2285 section 3.3.2)"."""
        named = {
            Pattern.ONE_TO_ONE: "non-meshed, RFC 2285 section 3.3.1",
            Pattern.MANY_TO_ONE: "partially meshed, RFC 2285 section 3.3.2",
            Pattern.ONE_TO_MANY: "partially meshed, RFC 2285 section 3.3.2",
            Pattern.GROUP_TO_GROUP: "partially meshed, RFC 2889 sections 5.3 and 5.4",
            Pattern.FULL_MESH: "fully meshed, RFC 2285 section 3.3.3",
            Pattern.SAME_PORT: "returned on the port it came from",
        }
        return f"{self.value} ({named[self]})"


class WayLoad(Frozen):
    """The load of one way in a trial."""

    transmit: int
    receive: int
    load_frames_per_s: float = Field(gt=0.0)
    frames: int | None = Field(default=None, ge=1)
    """The exact number of frames; without it the way ends with the trial."""


class Ways(Frozen):
    """The ways of a trial: ``forward``, and their ``reverse``, which carry traffic where the traffic is bidirectional.

    ``bidirectional`` has the meaning of RFC 2285 section 3.2.2. Where it is false, only learning frames take the
    reverse ways.
    """

    forward: tuple[Way, ...]
    reverse: tuple[Way, ...] = ()
    bidirectional: bool = False

    @property
    def every(self) -> tuple[Way, ...]:
        """All ways that carry frames of any kind, learning frames included."""
        return (*self.forward, *self.reverse)

    @property
    def loaded(self) -> tuple[Way, ...]:
        """The ways that carry the load."""
        return self.every if self.bidirectional else self.forward

    @property
    def times_load(self) -> float:
        """The traffic through the DUT as a multiple of the load: 1 for many-to-one, the port count for a full mesh."""
        return times_load(self.loaded)

    @property
    def sending_ports(self) -> int:
        """How many ports' line rates the streams fill together: 2 for both directions, 1 for many ports to one."""
        return max(1, round(self.times_load))

    @property
    def most_line_rates(self) -> float:
        """The highest load that the senders can offer, in line rates of a port: 3 where three ports send to one.

        Above 1 the senders can overload the receiving port (RFC 2285 section 3.5.4).
        """
        sending = Counter(transmit for transmit, _ in self.loaded)
        return _at_the_busiest_port(self.loaded) / max(sending.values(), default=1)

    @property
    def basis(self) -> str:
        """What rates and loads refer to, to follow "rates are": "per port", or a sum of ports."""
        senders = len({transmit for transmit, _ in self.loaded})
        receivers = len({receive for _, receive in self.loaded})
        if senders > receivers:
            return f"the sum of {senders} ports that send to {receivers if receivers > 1 else 'one'}"
        if receivers > senders:
            return f"of the port that sends to {receivers} others"
        return per_port_of(senders)


def per_port_of(senders: int) -> str:
    """Returns the basis of rates that each of ``ports`` sending ports had, in words."""
    return "per port" if senders == 1 else f"per port of {senders} that send at once"


def ways_of(pattern: Pattern, ports: int, *, bidirectional: bool = False) -> Ways:
    """Returns the ways of a pattern between the given number of ports, numbered from 0.

    With a single port, frames come back on that port. Raises ValueError where the pattern does not allow this number of
    ports.
    """
    if ports < pattern.fewest_ports:
        raise ValueError(f"{pattern.value} needs {pattern.fewest_ports} ports or more, not {ports}")
    others = range(1, ports)
    if pattern is Pattern.SAME_PORT or ports == 1:
        same = tuple((port, port) for port in range(ports))
        return Ways(forward=same, bidirectional=bidirectional or pattern.goes_both_ways)
    if pattern is Pattern.FULL_MESH:
        every = tuple((here, there) for here in range(ports) for there in range(ports) if here != there)
        return Ways(forward=every, bidirectional=True)
    if ports % 2 and pattern in (Pattern.ONE_TO_ONE, Pattern.GROUP_TO_GROUP):
        needs = "pairs of ports" if pattern is Pattern.ONE_TO_ONE else "two halves of the ports"
        raise ValueError(f"{pattern.value} needs {needs}, and {ports} is odd")
    if pattern is Pattern.GROUP_TO_GROUP:
        forward = tuple((here, there) for here in range(ports // 2) for there in range(ports // 2, ports))
    elif pattern is Pattern.ONE_TO_ONE:
        forward = tuple((port, port + 1) for port in range(0, ports, 2))
    elif pattern is Pattern.MANY_TO_ONE:
        forward = tuple((port, 0) for port in others)
    else:
        forward = tuple((0, port) for port in others)
    reverse = tuple((receive, transmit) for transmit, receive in forward)
    return Ways(forward=forward, reverse=reverse, bidirectional=bidirectional)


def share_of_load(ways: Sequence[Way]) -> float:
    """Returns the share of the load that each way carries; at the busiest port, one direction adds up to 1."""
    return 1.0 / _at_the_busiest_port(ways)


def times_load(ways: Sequence[Way]) -> float:
    """Returns what all ways carry together, as a multiple of the load."""
    return len(ways) / _at_the_busiest_port(ways)


def frames_of_ways(ways: Sequence[Way], frames: int) -> tuple[int, ...]:
    """Divides the frames of a load among the ways: integers that add up to ``frames`` at a busiest port."""
    busiest = _at_the_busiest_port(ways)
    sending = Counter(transmit for transmit, _ in ways)
    before: Counter[tuple[str, int]] = Counter()
    parts = []
    for transmit, receive in ways:
        port = ("transmit", transmit) if sending[transmit] == busiest else ("receive", receive)
        rank, before[port] = before[port], before[port] + 1
        parts.append(frames * (rank + 1) // busiest - frames * rank // busiest)
    return tuple(parts)


def _at_the_busiest_port(ways: Sequence[Way]) -> int:
    """Returns the largest number of ways that begin, or that end, at one port."""
    sending = Counter(transmit for transmit, _ in ways)
    receiving = Counter(receive for _, receive in ways)
    return max([*sending.values(), *receiving.values()], default=1)


def forward_of(ways: Sequence[Way]) -> tuple[Way, ...]:
    """Returns one direction of the traffic: the ways without those whose reverse precedes them."""
    seen = set()
    kept = []
    for transmit, receive in ways:
        if (receive, transmit) not in seen:
            kept.append((transmit, receive))
            seen.add((transmit, receive))
    return tuple(kept)


def way_of_stream(name: str) -> Way | None:
    """Returns the ports of a stream whose name begins with them ("0->1 voice"); None for any other name."""
    transmit, arrow, receive = name.partition(" ")[0].partition("->")
    return (int(transmit), int(receive)) if arrow and transmit.isdigit() and receive.isdigit() else None
