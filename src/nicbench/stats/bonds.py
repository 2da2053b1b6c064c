"""Predicts the port of a bond by which a connection leaves, and checks it against the port counters."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from nicbench.core.bond import HASHED_MODES, Bond, BondFlow, BondObservation, Connection, PortBytes

# The prediction follows the Linux driver (drivers/net/bonding/bond_main.c): ``bond_eth_hash``,
# ``bond_vlan_srcmac_hash``, ``bond_ip_hash`` and ``__bond_xmit_hash``. The hash is taken modulo the number of usable
# ports (``bond_update_slave_arr``), counted in the order in which they joined. All of it is 32-bit arithmetic on fields
# as they lie in memory. It changed twice since Linux 4.15:
#
# - 5.15 (9e2ee5c7e7c3): the EtherType goes into the hash as a number instead of the two bytes of the frame;
#
# - 5.18 (49aefd131739; also 5.15.38 and 5.17.6): the lowest bit is discarded for layer3+4 and encap3+4 only. Since 4.15
# (b5f862180d70) it was discarded for every policy that uses addresses.
#
# Distributions backport such changes: ``arithmetics`` gives the version's own first, then the others. A switch's choice
# for the other direction is not computed here.


_IPV4, _IPV6 = 0x0800, 0x86DD
_OLDEST: Final = (4, 15, 0)
_RELEASE: Final = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_WITH_MAC: Final = frozenset({"layer2", "layer2+3", "encap2+3"})
_HALVED: Final = frozenset({"layer3+4", "encap3+4"})


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One variant of the driver's arithmetic, used by kernels from version ``since`` on."""

    since: str
    type_as_number: bool
    halves_all: bool


ARITHMETICS: Final = (
    Arithmetic("4.15", type_as_number=False, halves_all=True),
    Arithmetic("5.15", type_as_number=True, halves_all=True),
    Arithmetic("5.18", type_as_number=True, halves_all=False),
)


class UnpredictableError(Exception):
    """The port cannot be computed; the message completes a sentence after "because"."""


def needs_peer_mac(bond: Bond) -> bool:
    """Returns whether the hash includes the MAC address of the next hop."""
    return bond.mode in HASHED_MODES and bond.policy in _WITH_MAC


def arithmetics(kernel: str | None) -> tuple[Arithmetic, ...]:
    """Returns the variants that a kernel may use: its version's own, then newer and older ones.

    Raises UnpredictableError below 4.15.
    """
    found = _RELEASE.match(kernel or "")
    if found is None:
        raise UnpredictableError("the kernel's version is not known")
    version = int(found[1]), int(found[2]), int(found[3] or 0)
    if version < _OLDEST:
        raise UnpredictableError(f"kernels before 4.15 hash otherwise, and this one is {kernel}")
    since_4_15, since_5_15, since_5_18 = ARITHMETICS
    has_5_18_hash = version >= (5, 18, 0) or (5, 17, 6) <= version < (5, 18, 0) or (5, 15, 38) <= version < (5, 16, 0)
    own = since_5_18 if has_5_18_hash else since_5_15 if version >= (5, 15, 0) else since_4_15
    return (own, *(one for one in reversed(ARITHMETICS) if one is not own))


def port_of(bond: Bond, connection: Connection, arithmetic: Arithmetic) -> str:
    """Predicts the port of a connection. Raises UnpredictableError where the bond's mode or policy prevents that."""
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
    """Computes the 32-bit hash of a frame of this connection. Raises UnpredictableError where that is impossible."""
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
    """Combines the last bytes of both MAC addresses and the EtherType."""
    kind = _IPV6 if ipaddress.ip_address(connection.destination).version == 6 else _IPV4
    order: Literal["little", "big"] = "big" if arithmetic.type_as_number else bond.byte_order
    own = _mac(bond.mac, "the interface's own MAC address")
    peer = _mac(connection.peer_mac, f"the MAC address of the next hop to {connection.destination}")
    return peer[5] ^ own[5] ^ int.from_bytes(kind.to_bytes(2, "big"), order)


def _vlan_and_source(mac: bytes, vlan: int) -> int:
    return vlan ^ int.from_bytes(mac[:3], "big") ^ int.from_bytes(mac[3:], "big")


def _ports(connection: Connection, order: Literal["little", "big"]) -> int:
    """Returns source and destination port as the four bytes of the frame; fragments are hashed without them."""
    if connection.fragmented:
        return 0
    fields = connection.source_port.to_bytes(2, "big") + connection.destination_port.to_bytes(2, "big")
    return int.from_bytes(fields, order)


def _address(text: str, order: Literal["little", "big"]) -> int:
    """Returns the IPv4 address, or the XOR of the four words of an IPv6 address (``ipv6_addr_hash``)."""
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


BOUND: Final = 0.10
"""How far a port's share of the sent bytes may differ from the share predicted for it."""
LEAST_EXPLAINED: Final = 0.80
"""The least share of the frames' bytes that connections must explain; headers take 5 % (1500 B) to 12 % (576 B)."""
LEAST_BYTES: Final = 1_000_000
MOSTLY: Final = 0.95
"""From this share on a port carried all bytes, apart from acknowledgements and the like."""


def judge_bond(
    endpoint: str,
    bond: Bond,
    flows: Sequence[tuple[tuple[int, ...], Connection]],
    ports: dict[str, PortBytes],
    missing: str | None = None,
) -> BondObservation:
    """Predicts the port of each connection, and checks the prediction against the counters.

    The arithmetic is that of the kernel's version. Where the counters contradict it and support exactly one other, that
    one is used, as distributions backport changes. ``missing`` says why connections could not be read.
    """
    seen = BondObservation(endpoint=endpoint, bond=bond, ports=ports)
    if missing is not None or not flows:
        return seen.replace(why=missing or "no connection was seen in the middle of the round")
    try:
        candidates = arithmetics(bond.kernel)
    except UnpredictableError as error:
        return seen.replace(flows=tuple(_unknown_flow(flow, str(error)) for flow in flows), why=str(error))
    first = _check_prediction(seen, flows, candidates[0])
    if first.confirmed is not False:
        return first
    others: dict[tuple[str | None, ...], tuple[Arithmetic, BondObservation]] = {}
    for arithmetic in candidates[1:]:
        other = _check_prediction(seen, flows, arithmetic)
        if other.confirmed:
            others.setdefault(tuple(flow.port for flow in other.flows), (arithmetic, other))
    if len(others) != 1:
        return first
    ((arithmetic, other),) = others.values()
    taken = f"kernel {bond.kernel} hashes as Linux from {arithmetic.since} does, by its counters, not as its version"
    return other.replace(why=taken)


def received_shares(seen: BondObservation) -> dict[str, float]:
    """Returns each port's share of the bytes received in the round; empty where there were none."""
    return _shares({name: one.received for name, one in seen.ports.items()})


def percent(share: float) -> str:
    """Formats a share in whole percent."""
    return f"{100 * share:.0f} %"


def mostly_receives(seen: BondObservation) -> bool:
    """Returns whether this end received more bytes than it sent."""
    return sum(one.received for one in seen.ports.values()) > sum(one.sent for one in seen.ports.values())


def _check_prediction(
    seen: BondObservation, flows: Sequence[tuple[tuple[int, ...], Connection]], arithmetic: Arithmetic
) -> BondObservation:
    predicted = tuple(_predict_flow(seen.bond, flow, arithmetic) for flow in flows)
    confirmed, why = _agreement(predicted, seen.ports)
    return seen.replace(flows=predicted, confirmed=confirmed, why=why)


def _predict_flow(bond: Bond, flow: tuple[tuple[int, ...], Connection], arithmetic: Arithmetic) -> BondFlow:
    jobs, connection = flow
    try:
        return BondFlow(jobs=jobs, connection=connection, port=port_of(bond, connection, arithmetic))
    except UnpredictableError as error:
        return _unknown_flow(flow, str(error))


def _unknown_flow(flow: tuple[tuple[int, ...], Connection], why: str) -> BondFlow:
    return BondFlow(jobs=flow[0], connection=flow[1], why=why)


def _agreement(flows: Iterable[BondFlow], ports: dict[str, PortBytes]) -> tuple[bool | None, str | None]:
    """Compares the prediction with the bytes sent until the connections were read, in the middle of the round."""
    flows = tuple(flows)
    unknown = next((flow.why for flow in flows if flow.port is None), None)
    if unknown is not None:
        return None, unknown
    counted = {name: one.sent_until_midst for name, one in ports.items()}
    sent = [flow.connection.sent_bytes for flow in flows]
    if any(count is None for count in counted.values()) or not counted:
        return None, "the counters of its ports could not be read"
    if any(count is None for count in sent):
        return None, "the kernel does not count the bytes of each of these connections"
    whole, explained = sum(count or 0 for count in counted.values()), sum(count or 0 for count in sent)
    received = sum(flow.connection.received_bytes or 0 for flow in flows)
    if explained < max(LEAST_BYTES, LEAST_EXPLAINED * whole):
        if explained < received:
            return None, "this end mostly received: which port a frame comes in by is chosen at the other end"
        if explained < LEAST_BYTES:
            return None, "too little was sent to tell"
        return None, f"the connections of the round explain only {percent(explained / whole)} of what its ports sent"
    if not whole:
        return None, "its ports counted nothing"
    by_flows = _shares({name: sum(f.connection.sent_bytes or 0 for f in flows if f.port == name) for name in counted})
    by_counters = _shares({name: count or 0 for name, count in counted.items()})
    beyond = {name: share - by_flows[name] for name, share in by_counters.items()}
    worst = max(beyond, key=lambda name: (round(abs(beyond[name]), 3), beyond[name]))
    if abs(beyond[worst]) > BOUND:
        return (
            False,
            f"{worst} sent {percent(by_counters[worst])} of the bytes, and {percent(by_flows[worst])} were predicted",
        )
    return True, None


def _shares(counts: dict[str, int]) -> dict[str, float]:
    whole = sum(counts.values())
    return {name: count / whole for name, count in counts.items()} if whole else {}
