"""Frames that one port sends and several receive: to multicast groups, which ports join and leave, or to all stations.

Groups have consecutive addresses, so that a DUT that still holds those of the trial before holds the same ones.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from pydantic import Field

from nicbench.core.base import Frozen
from nicbench.core.quantity import FramesPerSecond

JOIN, LEAVE, WATCHED = "join", "leave", "watched"
"""How names of streams end that are not load: membership reports, and copies at ports that should get none."""
UNICAST: Final = "unicast"
"""How names of streams to single stations end, which are part of the load."""
BURDEN: Final = "burden"
"""How names of streams between burdening ports end, which are not load."""
TO_ALL: Final = "to all"
"""How names of streams of broadcasts end, which are counted apart from the load."""
BROADCASTS: Final = "broadcasts"
"""The name of the value that says what became of them."""
MOST_GROUPS: Final = 2**16
RECORDS_OF_A_REPORT: Final = {4: 180, 6: 70}
"""So many groups are joined by one report, so that it fits any frame that a port takes (RFC 3376 section 4.2.16)."""

# RFC 2365 section 6.2: the IPv4 organisation's local scope; RFC 4291 section 2.7: transient, of the organisation.
_FIRST: Final[dict[int, IPv4Address | IPv6Address]] = {4: IPv4Address("239.192.0.1"), 6: IPv6Address("ff18::1:1")}


class Burden(Frozen):
    """Frames to single stations between ports that take no other part; each sends to all the others.

    RFC 3918 section 8: "burdening ports", fully meshed (RFC 2285 section 3.3.3).
    """

    rate: FramesPerSecond = Field(gt=0.0)
    """The rate at which each of them sends, and receives."""
    ports: int = Field(default=2, ge=2)
    """How many ports: the last ones, which join no group."""


class Groups(Frozen):
    """Frames from the first port of a trial to multicast groups (RFC 3918), or to all stations (RFC 2889 5.10).

    Ports that should receive them count them; those that should not are watched, which is no part of the counts.
    Times are from the beginning of the transmission.
    """

    groups: int = Field(ge=0, le=MOST_GROUPS)
    """0: to all stations."""
    members: int = Field(ge=1)
    """So many of the other ports join the groups, the first ones."""
    older: bool = False
    """IGMPv2 or MLDv1 in place of IGMPv3 or MLDv2."""
    send_s: float = 0.0
    """When the first frame is due."""
    join_s: float = 0.0
    leave_s: float | None = None
    """When the ports leave; without it behind the last frame."""
    unicast: float = Field(default=0.0, ge=0.0, lt=1.0, exclude_if=lambda share: not share)
    """The share of the load that goes to single stations, one at the port of each member in turn."""
    burden: Burden | None = Field(default=None, exclude_if=lambda burden: burden is None)
    """Frames of the last ports to each other, from the beginning to the end."""

    def reports(self, ip: int) -> int:
        """Returns how many frames join all groups at one port; as many leave them."""
        each = 1 if self.older else RECORDS_OF_A_REPORT[ip]
        return -(-self.groups // each)


def group_address(ip: int, number: int = 0) -> IPv4Address | IPv6Address:
    """Returns the address of a group by its number, from 0."""
    return _FIRST[ip] + number


def group_mac(group: str) -> str:
    """Returns the MAC address of a group (RFC 1112 section 6.4, RFC 2464 section 7)."""
    address = ip_address(group)
    low = address.packed[-4:] if address.version == 6 else bytes((address.packed[1] & 0x7F, *address.packed[2:]))
    first = b"\x33\x33" if address.version == 6 else b"\x01\x00\x5e"
    return ":".join(f"{byte:02x}" for byte in first + low)
