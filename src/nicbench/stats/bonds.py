"""Do the counters of a bond's ports support what its hashing predicts? Pure: the flows of a round, and its counters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from nicbench.model.bond import Bond, BondFlow, BondSeen, Connection, PortBytes
from nicbench.stats.bond_hash import Arithmetic, UnpredictableError, arithmetics, port_of

BOUND: Final = 0.10
"""Of what all ports sent: so far may a port's share lie from the share of the connections that are to leave by it."""
LEAST_EXPLAINED: Final = 0.80
"""Payload of the connections seen, of all bytes of frames: headers of frames of 1500 bytes take 5 %, of 576 12 %."""
LEAST_BYTES: Final = 1_000_000
MOSTLY: Final = 0.95
"""A port with this share of the bytes had all of them, but for acknowledgements and the like."""


def judged(
    endpoint: str,
    bond: Bond,
    flows: Sequence[tuple[tuple[int, ...], Connection]],
    ports: dict[str, PortBytes],
    missing: str | None = None,
) -> BondSeen:
    """Each connection with its port, and whether the counters agree.

    The arithmetic is that of the kernel's version; where the counters contradict it and support exactly one other, that
    one, which distributions took over. ``missing`` says why connections could not be read.
    """
    seen = BondSeen(endpoint=endpoint, bond=bond, ports=ports)
    if missing is not None or not flows:
        return seen.model_copy(update={"why": missing or "no connection of the round was seen in its midst"})
    try:
        candidates = arithmetics(bond.kernel)
    except UnpredictableError as error:
        return seen.model_copy(update={"flows": tuple(_unknown(flow, str(error)) for flow in flows), "why": str(error)})
    first = _judged_by(seen, flows, candidates[0])
    if first.confirmed is not False:
        return first
    others: dict[tuple[str | None, ...], tuple[Arithmetic, BondSeen]] = {}
    for arithmetic in candidates[1:]:
        other = _judged_by(seen, flows, arithmetic)
        if other.confirmed:
            others.setdefault(tuple(flow.port for flow in other.flows), (arithmetic, other))
    if len(others) != 1:
        return first
    ((arithmetic, other),) = others.values()
    taken = f"kernel {bond.kernel} hashes as Linux from {arithmetic.since} does, by its counters, not as its version"
    return other.model_copy(update={"why": taken})


def received_by(seen: BondSeen) -> dict[str, float]:
    """The share of each port in what was received in the whole round; nothing where nothing was."""
    return _shares({name: one.received for name, one in seen.ports.items()})


def percent(share: float) -> str:
    """In words, whole ones."""
    return f"{100 * share:.0f} %"


def mostly_receives(seen: BondSeen) -> bool:
    """Whether this end of the connections was the one that bytes came to."""
    return sum(one.received for one in seen.ports.values()) > sum(one.sent for one in seen.ports.values())


def _judged_by(seen: BondSeen, flows: Sequence[tuple[tuple[int, ...], Connection]], arithmetic: Arithmetic) -> BondSeen:
    predicted = tuple(_flow(seen.bond, flow, arithmetic) for flow in flows)
    confirmed, why = _agreement(predicted, seen.ports)
    return seen.model_copy(update={"flows": predicted, "confirmed": confirmed, "why": why})


def _flow(bond: Bond, flow: tuple[tuple[int, ...], Connection], arithmetic: Arithmetic) -> BondFlow:
    jobs, connection = flow
    try:
        return BondFlow(jobs=jobs, connection=connection, port=port_of(bond, connection, arithmetic))
    except UnpredictableError as error:
        return _unknown(flow, str(error))


def _unknown(flow: tuple[tuple[int, ...], Connection], why: str) -> BondFlow:
    return BondFlow(jobs=flow[0], connection=flow[1], why=why)


def _agreement(flows: Iterable[BondFlow], ports: dict[str, PortBytes]) -> tuple[bool | None, str | None]:
    """Of what was sent until the midst of the round, when the connections were read."""
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
