"""Which port of a bond a connection leaves by, as the Linux driver computes it (drivers/net/bonding/bond_main.c).

``bond_eth_hash``, ``bond_vlan_srcmac_hash``, ``bond_ip_hash`` and ``__bond_xmit_hash``; the hash is taken modulo the
number of usable ports (``bond_update_slave_arr``), which are counted in the order in which they joined. All of it is
arithmetic of 32 bits on fields as they lie in memory. The driver's arithmetic changed twice since Linux 4.15:

- 5.15 (9e2ee5c7e7c3): the EtherType goes into the hash as a number, no more as the two bytes of the frame;
- 5.18 (49aefd131739; also 5.15.38 and 5.17.6): the lowest bit is discarded for layer3+4 and encap3+4 only. Since 4.15
  (b5f862180d70) it was for every policy that looks at addresses.

Distributions take such changes into older kernels: ``arithmetics`` gives the version's own first, then the others.
A switch's choice for the other direction is its own, and not computed here.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final, Literal

from nicbench.model.bond import HASHED_MODES, Bond, Connection

_IPV4, _IPV6 = 0x0800, 0x86DD
_OLDEST: Final = (4, 15, 0)
_RELEASE: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_WITH_MAC: Final = frozenset({"layer2", "layer2+3", "encap2+3"})
_HALVED: Final = frozenset({"layer3+4", "encap3+4"})


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The driver's, of the kernels ``since``: see the module."""

    since: str
    type_as_number: bool
    halves_all: bool


ARITHMETICS: Final = (
    Arithmetic("4.15", type_as_number=False, halves_all=True),
    Arithmetic("5.15", type_as_number=True, halves_all=True),
    Arithmetic("5.18", type_as_number=True, halves_all=False),
)


class UnpredictableError(Exception):
    """The port cannot be computed; the message says why, and goes on after "because"."""


def needs_peer_mac(bond: Bond) -> bool:
    """Whether the address of the next hop takes part."""
    return bond.mode in HASHED_MODES and bond.policy in _WITH_MAC


def arithmetics(kernel: str | None) -> tuple[Arithmetic, ...]:
    """Those that a kernel may have: its version's own, then newer and older ones. UnpredictableError below 4.15."""
    found = _RELEASE.match(kernel or "")
    if found is None:
        raise UnpredictableError("the kernel's version is not known")
    version = int(found[1]), int(found[2]), int(found[3] or 0)
    if version < _OLDEST:
        raise UnpredictableError(f"kernels before 4.15 hash otherwise, and this one is {kernel}")
    old, numbers, halved = ARITHMETICS
    mended = version >= (5, 18, 0) or (5, 17, 6) <= version < (5, 18, 0) or (5, 15, 38) <= version < (5, 16, 0)
    own = halved if mended else numbers if version >= (5, 15, 0) else old
    return (own, *(one for one in reversed(ARITHMETICS) if one is not own))


def port_of(bond: Bond, connection: Connection, arithmetic: Arithmetic) -> str:
    """The name of the port. UnpredictableError where the bond's mode or policy does not let it be computed."""
    if bond.steered:
        raise UnpredictableError("a port of it has a queue_id, by which filters choose ports")
    if bond.mode == "active-backup":
        if bond.active_port is None:
            raise UnpredictableError("no port of it is active")
        return bond.active_port
    if bond.mode not in HASHED_MODES:
        raise UnpredictableError(f"the mode {bond.mode} binds no connection to a port")
    usable = bond.usable
    if not usable:
        raise UnpredictableError("no port of it is usable")
    if len(usable) == 1:
        return usable[0].name
    return usable[hash_of(bond, connection, arithmetic) % len(usable)].name


def hash_of(bond: Bond, connection: Connection, arithmetic: Arithmetic) -> int:
    """The hash of a frame of this connection, 32 bits. UnpredictableError where it is not known."""
    policy = bond.policy
    if policy == "vlan+srcmac":
        return _vlan_and_source(_mac(bond.mac, "the interface's own MAC address"), bond.vlan or 0)
    if policy == "encap3+4":
        # skb_set_hash_from_sk: a local connection's frames bear its sk_txhash, which bond_xmit_hash then takes.
        raise UnpredictableError("with encap3+4 the kernel hashes by a random number of each connection")
    if policy == "layer2":
        return _ethernet(bond, connection, arithmetic)
    if policy in _WITH_MAC:
        value = _ethernet(bond, connection, arithmetic)
    elif policy == "layer3+4":
        value = _ports(connection, bond.byte_order)
    else:
        raise UnpredictableError(f"the policy {policy} is not known here")
    value ^= _address(connection.destination, bond.byte_order) ^ _address(connection.source, bond.byte_order)
    value ^= value >> 16
    value ^= value >> 8
    return value >> 1 if arithmetic.halves_all or policy in _HALVED else value


def _ethernet(bond: Bond, connection: Connection, arithmetic: Arithmetic) -> int:
    """The last bytes of both MAC addresses, and the EtherType."""
    kind = _IPV6 if ipaddress.ip_address(connection.destination).version == 6 else _IPV4
    order: Literal["little", "big"] = "big" if arithmetic.type_as_number else bond.byte_order
    own = _mac(bond.mac, "the interface's own MAC address")
    peer = _mac(connection.peer_mac, f"the MAC address of the next hop to {connection.destination}")
    return peer[5] ^ own[5] ^ int.from_bytes(kind.to_bytes(2, "big"), order)


def _vlan_and_source(mac: bytes, vlan: int) -> int:
    return vlan ^ int.from_bytes(mac[:3], "big") ^ int.from_bytes(mac[3:], "big")


def _ports(connection: Connection, order: Literal["little", "big"]) -> int:
    """Source and destination port as the four bytes of the frame; a fragment is hashed without them."""
    if connection.fragmented:
        return 0
    fields = connection.source_port.to_bytes(2, "big") + connection.destination_port.to_bytes(2, "big")
    return int.from_bytes(fields, order)


def _address(text: str, order: Literal["little", "big"]) -> int:
    """Of IPv6 its four words, each XOR the next (``ipv6_addr_hash``)."""
    raw = ipaddress.ip_address(text).packed
    value = 0
    for at in range(0, len(raw), 4):
        value ^= int.from_bytes(raw[at : at + 4], order)
    return value


def _mac(text: str | None, what: str) -> bytes:
    try:
        raw = bytes.fromhex((text or "").replace(":", ""))
    except ValueError:
        raw = b""
    if len(raw) != 6:
        raise UnpredictableError(f"{what} is not known")
    return raw
