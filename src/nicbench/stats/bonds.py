"""Bonds: predicts the port by which a connection leaves, checks it against counters, and says who shared a port."""

from __future__ import annotations

import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from nicbench.core.bond import HASHED_MODES, Bond, BondFlow, BondObservation, Connection, PortBytes
from nicbench.core.frozen import frozen
from nicbench.core.lists import without_none
from nicbench.core.round import Round
from nicbench.core.units import and_list, format_bits_per_s

# Predicts the port of a bond by which a connection leaves, and checks it against the port counters.


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


@frozen
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
    """Returns each port's share of the bytes received in the round; empty where no byte was received."""
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


# Describes which job of a round used which port of a bond, so that a halved rate is explained by figures.
#
# Where the port counters support what hashing predicts, the port is stated as a fact; otherwise as a prediction with
# the reason. At an end that mostly received, only the counters are used: the switch or the other end chose the ports
# there.


RatesOf = Callable[[Sequence[Round]], Mapping[int, str]]
"""Gives the rate of each job, by its number from 1, in some rounds."""
_SMALLEST: Final = 0.05
"""A connection with less than this share of its job's bytes is taken for a control connection (as iperf3's)."""


def bond_port(rounds: Sequence[Round], job: int) -> str | None:
    """Names the port that a job (its number, from 1) used; None without a bond, and where the port is not known.

    If several rounds differ, each port is listed with the number of rounds that used it.
    """
    words = [_port_words(one, job) for one in rounds]
    counted = Counter(without_none(words))
    if len(counted) == 1 and None not in words:
        return next(iter(counted))
    return ", ".join(f"{word} in {count} of {len(words)} rounds" for word, count in sorted(counted.items())) or None


def bond_end(one: Round, job: int) -> str | None:
    """Names the endpoint that owns the bond of ``bond_port``: two clients may have ports of the same name."""
    leaves = (seen.endpoint for seen in one.bonds if _ports_taken(sent_flows(seen, job)))
    meets = (seen.endpoint for seen in one.bonds if _is_of(one, job) and _only_port(seen) is not None)
    return next(leaves, None) or next(meets, None)


def bond_note(rounds: Sequence[Round], names: Mapping[int, str], rates_of: RatesOf, unit: str = "") -> str | None:
    """Describes every bond that these jobs used, without the last full stop; None without a bond.

    ``names`` maps job numbers to what jobs are called ("instance 2", "c0"); ``rates_of`` gives the rate that each
    reached in some of the rounds, in ``unit``. Rounds in which jobs shared ports alike are described once.
    """
    alike: dict[tuple[str, str, str], list[tuple[Round, BondObservation]]] = {}
    for one in rounds:
        for seen in one.bonds:
            if not seen.flows or any(job in names for flow in seen.flows for job in flow.jobs):
                sharing = _describe_bond(seen, names, {}, unit)
                alike.setdefault((seen.endpoint, seen.bond.name, sharing), []).append((one, seen))
    several = len(alike) > len({bond[:2] for bond in alike})
    texts = []
    for found in alike.values():
        those = [one for one, _ in found]
        text = _describe_bond(found[0][1], names, rates_of(those), unit)
        texts.append(f"{text} ({', '.join(one.id for one in those)})" if several else text)
    return ". ".join(texts) or None


def spread_evenly(connections: int, ports: int) -> float:
    """Returns the probability that an ideal hash spreads this many connections over the ports as evenly as possible.

    With at most as many connections as ports, that means that no two share a port.
    """
    each, more = divmod(connections, ports)
    ways = math.comb(ports, more) * math.factorial(connections)
    alike: int = math.factorial(each + 1) ** more * math.factorial(each) ** (ports - more)
    return float(ways / (alike * ports**connections))


def sent_flows(seen: BondObservation, job: int) -> tuple[BondFlow, ...]:
    """Returns the connections by which a job's bytes left this end; empty where this end received them."""
    own = [flow for flow in seen.flows if job in flow.jobs]
    counts = [(flow.connection.sent_bytes, flow.connection.received_bytes) for flow in own]
    if any(sent is None or received is None for sent, received in counts):
        return () if mostly_receives(seen) else tuple(own)
    least = _SMALLEST * sum((sent or 0) + (received or 0) for sent, received in counts)
    pairs = zip(own, counts, strict=True)
    return tuple(flow for flow, (sent, received) in pairs if (sent or 0) >= max(received or 0, least, 1))


def _port_words(one: Round, job: int) -> str | None:
    for seen in one.bonds:
        ports = _ports_taken(sent_flows(seen, job))
        if ports:
            return and_list(ports) if seen.confirmed else f"{and_list(ports)} (predicted)"
    if not _is_of(one, job):
        return None
    for seen in one.bonds:
        port = _only_port(seen)
        if port is not None:
            return port
    return None


def _is_of(one: Round, job: int) -> bool:
    """Returns whether a connection of this job was seen on any bond."""
    return any(job in flow.jobs for seen in one.bonds for flow in seen.flows)


def _only_port(seen: BondObservation) -> str | None:
    """Returns the port that received nearly everything, if there is one."""
    shares = received_shares(seen) if mostly_receives(seen) else {}
    return next((port for port, share in shares.items() if share >= MOSTLY), None)


def _describe_bond(seen: BondObservation, names: Mapping[int, str], rates: Mapping[int, str], unit: str) -> str:
    bond = seen.bond
    policy = f", {bond.policy}" if bond.policy and bond.mode in HASHED_MODES else ""
    head = f"{bond.name} of {seen.endpoint} ({bond.mode}{policy})"
    by_ports: dict[tuple[str, ...], list[int]] = {}
    for job in names:
        ports = _ports_taken(sent_flows(seen, job))
        if ports:
            by_ports.setdefault(ports, []).append(job)
    if not by_ports and mostly_receives(seen):
        shares = ", ".join(f"{percent(share)} by {port}" for port, share in received_shares(seen).items())
        return f"{head} received {shares}; by which port a frame comes in is chosen at the other end"
    if not by_ports:
        return f"{head}: which connection used which port is not known, because {seen.why or 'none was seen'}"
    described = "; ".join(
        _describe_sharing(seen, ports, jobs, names, rates, unit) for ports, jobs in sorted(by_ports.items())
    )
    if not seen.confirmed:
        return f"{head}: predicted, not confirmed by the counters, because {seen.why}: {described}"
    more = [text for text in (_chance(seen, list(names)), seen.why) if text]
    return ". ".join((f"{head}: {described}", *more))


def _describe_sharing(
    seen: BondObservation,
    ports: tuple[str, ...],
    jobs: Sequence[int],
    names: Mapping[int, str],
    rates: Mapping[int, str],
    unit: str,
) -> str:
    """Describes which jobs shared which ports, such as "instances 2 and 5 shared eth3 (25 Gb/s): 9.1 and 9.0
    frames/s".
    """
    who = _join_names([names[job] for job in jobs])
    verb = "shared" if len(jobs) > 1 else "had"
    others = any(
        job not in jobs and set(ports) & set(_ports_taken(sent_flows(seen, job)))
        for flow in seen.flows
        for job in flow.jobs
    )
    remark = " to itself" if len(jobs) == 1 and not others else ""
    if len(ports) > 1 and any(set(flow.jobs) > {job} for job in jobs for flow in sent_flows(seen, job)):
        remark = ", by mounts that cannot be told apart"
    where = and_list([f"{port}{_speed(seen, port)}" for port in ports])
    figures = [rates[job] for job in jobs if job in rates]
    return f"{who} {verb} {where}{remark}" + (f": {and_list(figures)} {unit}".rstrip() if figures else "")


def _chance(seen: BondObservation, jobs: Sequence[int]) -> str | None:
    """States how likely a hash is to spread this many connections evenly; None where nothing is hashed."""
    connections = {flow.connection for job in jobs for flow in sent_flows(seen, job)}
    count, ports = len(connections), len(seen.bond.usable)
    if seen.bond.mode not in HASHED_MODES or count < 2 or ports < 2:
        return None
    share = percent(spread_evenly(count, ports))
    if count <= ports:
        return f"Of {count} connections hashed to {ports} ports, no two share one in {share} of all cases"
    return f"{count} connections hashed to {ports} ports are spread evenly in {share} of all cases"


def _ports_taken(flows: Sequence[BondFlow]) -> tuple[str, ...]:
    """Returns the ports of all these connections; empty where one of them is not known."""
    if any(flow.port is None for flow in flows):
        return ()
    return tuple(sorted({flow.port for flow in flows if flow.port is not None}))


def _speed(seen: BondObservation, port: str) -> str:
    speed = seen.bond.speed_bits_per_s(port)
    return "" if speed is None else f" ({format_bits_per_s(speed)})"


def _join_names(names: Sequence[str]) -> str:
    """Joins names, writing a common first word once: "instances 2, 5 and 7"."""
    pairs = [name.rpartition(" ") for name in names]
    firsts = {first for first, _, _ in pairs}
    if len(names) > 1 and len(firsts) == 1 and "" not in firsts:
        return f"{firsts.pop()}s {and_list([last for _, _, last in pairs])}"
    return and_list(names)
