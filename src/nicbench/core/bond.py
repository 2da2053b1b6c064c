"""Bonds: which connection used which port, and links of a bond that are taken down during a round on purpose."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.quantity import Seconds
from nicbench.core.traffic import Name

HASHED_MODES = frozenset({"802.3ad", "balance-xor"})
"""Bonding modes in which ``xmit_hash_policy`` alone chooses the port."""


class BondPort(Frozen):
    """A port of a bond. ``usable``: its link is up, the bond has it active, and it is in the active aggregator."""

    name: str
    usable: bool
    speed_bits_per_s: float | None = None
    aggregator: int | None = None


class Bond(Frozen):
    """A bond as it was before a round. ``ports`` are in the order in which they joined it, which hashing counts by.

    ``mac`` and ``vlan`` are those of the interface that the test uses, the bond or a VLAN over it. ``policy`` is
    ``xmit_hash_policy``; ``partner_mac`` the system at the other end of the active aggregator (LACP).
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
    """The kernel's release, because the hash differs between versions."""
    byte_order: Literal["little", "big"] = "little"
    steered: bool = False
    """Whether a port has a ``queue_id``, by which filters choose ports before any hashing."""

    @property
    def usable(self) -> tuple[BondPort, ...]:
        """The number by which the hash is taken modulo."""
        return tuple(port for port in self.ports if port.usable)

    def speed_bits_per_s(self, port: str) -> float | None:
        """The speed of one of its ports."""
        return next((one.speed_bits_per_s for one in self.ports if one.name == port), None)


class Connection(Frozen):
    """A connection as the host with the bond has it: ``source`` is that host's own address.

    ``peer_mac`` is the next hop's, where the policy needs it. Bytes are of payload, from before the round until its
    midst; None where the kernel does not count them (UDP). ``fragmented``: its datagrams are longer than a frame.
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
    """A connection, whose it is, and the port that it leaves by as the driver computes it.

    ``jobs`` are numbers of the round's jobs, from 1: more than one where they share a connection, or where mounts of
    one client cannot be told apart. ``port`` is None where it cannot be computed, for the reason in ``why``.
    """

    jobs: tuple[int, ...]
    connection: Connection
    port: str | None = None
    why: str | None = None


class PortBytes(Frozen):
    """What a port's interface counted, bytes of frames without FCS: in the whole round, and until its midst."""

    sent: int
    received: int
    sent_until_midst: int | None = None
    received_until_midst: int | None = None


class BondObservation(Frozen):
    """One bond in one round. ``confirmed`` is whether the counters support the prediction; None: nothing to confirm.

    ``why`` says why they do not, or what else is to be known, in words.
    """

    endpoint: str
    bond: Bond
    flows: tuple[BondFlow, ...] = ()
    ports: dict[str, PortBytes] = Field(default_factory=dict)
    confirmed: bool | None = None
    why: str | None = None


# A link of a bond that is taken down in the midst of a round, on purpose: what was asked for, and what came of it.


class LinkFailure(Frozen):
    """``failure: {port: s0, link: 2, after: 3 s, lasts: 4 s}``: of the bond that a port is, its second link.

    Times are from when the clients begin.
    """

    port: Name
    link: int = Field(ge=1, le=64)
    after: Seconds = Field(default=3.0, ge=0.5, le=86_400.0)
    lasts: Seconds = Field(default=4.0, ge=0.5, le=86_400.0)

    @property
    def ends_s(self) -> float:
        """When the link comes up again."""
        return self.after + self.lasts


class FlowSilence(Frozen):
    """A connection over the failure, as the host of the bond counts its bytes. Seconds; None is unknown.

    ``port_before`` and ``port_down`` are the ports that it left by, before and while the link was down, where they are
    known. ``silent_down_s`` is the longest time without a byte from when the link went down until it came back,
    ``silent_back_s`` that from then on; ``went_on`` is whether anything came after the failure at all.
    """

    jobs: tuple[int, ...]
    connection: Connection
    port_before: str | None = None
    port_down: str | None = None
    silent_down_s: float | None = None
    silent_back_s: float | None = None
    went_on: bool | None = None


class LinkFailureOutcome(Frozen):
    """What took place. Times are seconds since the clients began; None: it did not come to that.

    ``link`` is the port of the bond, ``taken_down`` the interface that was, at the other end of the cable in a lab.
    ``step_s`` is the most that the looks at the bytes were apart after the link went down: no silence is known finer.
    """

    asked: LinkFailure
    link: str
    taken_down: str
    down_at_s: float | None = None
    up_at_s: float | None = None
    step_s: float | None = None
    flows: tuple[FlowSilence, ...] = ()
    trouble: str | None = None
    """Why something of it is missing."""
