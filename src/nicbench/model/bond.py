"""A bond: several ports that bear one address; which connection used which of them, and whether the counters agree."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nicbench.model.base import Frozen

HASHED_MODES = frozenset({"802.3ad", "balance-xor"})
"""Those that leave the choice of a port to ``xmit_hash_policy`` alone."""


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
    """Its release; the arithmetic of hashing is that of a version."""
    byte_order: Literal["little", "big"] = "little"
    steered: bool = False
    """Whether a port has a ``queue_id``, by which filters choose ports before any hashing."""

    @property
    def usable(self) -> tuple[BondPort, ...]:
        """What a hash is taken modulo of."""
        return tuple(port for port in self.ports if port.usable)

    def speed_bits_per_s(self, port: str) -> float | None:
        """Of one of its ports."""
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


class BondSeen(Frozen):
    """One bond in one round. ``confirmed`` is whether the counters support the prediction; None: nothing to confirm.

    ``why`` says why they do not, or what else is to be known, in words.
    """

    endpoint: str
    bond: Bond
    flows: tuple[BondFlow, ...] = ()
    ports: dict[str, PortBytes] = Field(default_factory=dict)
    confirmed: bool | None = None
    why: str | None = None
