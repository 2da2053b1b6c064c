"""Bonds: which connection uses which port, and bond links that are taken down on purpose during a round."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.quantity import Seconds
from nicbench.core.traffic import Name

HASHED_MODES = frozenset({"802.3ad", "balance-xor"})
"""The bonding modes in which ``xmit_hash_policy`` alone chooses the port."""


class BondPort(Frozen):
    """A port of a bond. ``usable``: its link is up, and it is active in the bond and in the active aggregator."""

    name: str
    usable: bool
    speed_bits_per_s: float | None = None
    aggregator: int | None = None


class Bond(Frozen):
    """The state of a bond before a round. ``ports`` are in the order in which they joined it, which the hash relies on.

    ``mac`` and ``vlan`` are those of the interface that the test uses: the bond or a VLAN on top of it. ``policy`` is
    ``xmit_hash_policy``; ``partner_mac`` is the system at the other end of the active aggregator (LACP).
    """

    name: str
    mode: str
    policy: str | None = None
    ports: tuple[BondPort, ...]
    active_port: str | None = None
    aggregator: int | None = None
    partner_mac: str | None = None
    mac: str | None = None
    vlan: int | None = None
    mtu_bytes: int | None = None
    kernel: str | None = None
    """The kernel's release, because the hash function differs between versions."""
    byte_order: Literal["little", "big"] = "little"
    steered: bool = False
    """Whether a port has a ``queue_id``, with which filters choose a port before any hashing."""

    @property
    def usable(self) -> tuple[BondPort, ...]:
        """The usable ports; the hash is taken modulo their number."""
        return tuple(port for port in self.ports if port.usable)

    def speed_bits_per_s(self, port: str) -> float | None:
        """Returns the speed of the named port; None where it is unknown."""
        return next((one.speed_bits_per_s for one in self.ports if one.name == port), None)


class Connection(Frozen):
    """A connection as seen by the host with the bond: ``source`` is that host's own address.

    ``peer_mac`` is the MAC address of the next hop, where the policy needs it. Bytes are payload bytes, counted from
    before the round until its middle; None where the kernel does not count them (UDP). ``fragmented``: its datagrams
    are longer than a frame.
    """

    transport: Literal["tcp", "udp"] = "tcp"
    source: str
    source_port: int
    destination: str
    destination_port: int
    peer_mac: str | None = None
    fragmented: bool = False
    sent_bytes: int | None = None
    received_bytes: int | None = None


class BondFlow(Frozen):
    """A connection, the jobs it belongs to, and the port it leaves by according to the driver's computation.

    ``jobs`` are numbers of the round's jobs, from 1: more than one where jobs share a connection, or where the mounts
    of one client cannot be distinguished. ``port`` is ``None`` where it cannot be computed, for the reason in ``why``.
    """

    jobs: tuple[int, ...]
    connection: Connection
    port: str | None = None
    why: str | None = None


class PortBytes(Frozen):
    """Bytes counted by a port's interface (frames without FCS): in the whole round, and until its middle."""

    sent: int
    received: int
    sent_until_midst: int | None = None
    received_until_midst: int | None = None


class BondObservation(Frozen):
    """One bond in one round. ``confirmed``: whether the counters support the prediction; None without a prediction.

    ``why`` explains in words why the counters do not support it, or what else a reader should know.
    """

    endpoint: str
    bond: Bond
    flows: tuple[BondFlow, ...] = ()
    ports: dict[str, PortBytes] = Field(default_factory=dict)
    confirmed: bool | None = None
    why: str | None = None


# A link of a bond that is taken down on purpose during a round: the request and the outcome.


class LinkFailure(Frozen):
    """A bond link to fail: ``failure: {port: s0, link: 2, after: 3 s, lasts: 4 s}`` fails link 2 of s0's bond.

    Times count from the start of the clients.
    """

    port: Name
    """The port whose bond loses a link."""
    link: int = Field(ge=1, le=64)
    """Which link of the bond, counted from 1."""
    after: Seconds = Field(default=3.0, ge=0.5, le=86_400.0)
    """Time from the start of the clients until the link goes down."""
    lasts: Seconds = Field(default=4.0, ge=0.5, le=86_400.0)
    """How long the link stays down."""

    @property
    def ends_s(self) -> float:
        """The time in seconds at which the link comes up again, from the start of the clients."""
        return self.after + self.lasts


class FlowSilence(Frozen):
    """How a connection behaved around a link failure, by the byte counts of the bond's host. Seconds; None is unknown.

    ``port_before`` and ``port_down`` are the ports that the connection left by before the failure and while the link
    was down, where they are known. ``silent_down_s`` is the longest time without a byte while the link was down,
    ``silent_back_s`` the longest after it came back; ``went_on`` is whether any byte arrived after the failure at all.
    """

    jobs: tuple[int, ...]
    connection: Connection
    port_before: str | None = None
    port_down: str | None = None
    silent_down_s: float | None = None
    silent_back_s: float | None = None
    went_on: bool | None = None


class LinkFailureOutcome(Frozen):
    """What happened in a link failure. Times are seconds since the clients started; None: the event did not happen.

    ``link`` is the port of the bond, ``taken_down`` the interface that was taken down (in a lab, the one at the other
    end of the cable). ``step_s`` is the longest time between two samples of the byte counters after the link went down,
    which is the resolution of every silence.
    """

    asked: LinkFailure
    link: str
    taken_down: str
    down_at_s: float | None = None
    up_at_s: float | None = None
    step_s: float | None = None
    flows: tuple[FlowSilence, ...] = ()
    trouble: str | None = None
    """Why part of the outcome is missing."""
