"""The bonds of a round, for the appendix: its ports with what they counted, and the connections with their ports."""

from __future__ import annotations

from dataclasses import dataclass

from nicbench.core.bond import HASHED_MODES, Bond, BondFlow, BondSeen
from nicbench.core.units import format_bits_per_s
from nicbench.report.numbers import UNKNOWN, whole


@dataclass(frozen=True, slots=True)
class BondPortRow:
    """A port in a round: bytes of frames in all of it; and until its midst, payload as predicted, frames as counted."""

    name: str
    state: str
    sent: str
    received: str
    predicted: str
    counted: str


@dataclass(frozen=True, slots=True)
class BondRow:
    """One bond in one round."""

    title: str
    ports: tuple[BondPortRow, ...]
    verdict: str
    connections: tuple[str, ...]


def bond_row(seen: BondSeen) -> BondRow:
    """Of one bond."""
    return BondRow(
        title=_title(seen),
        ports=tuple(_port(seen, port.name) for port in seen.bond.ports),
        verdict=_verdict(seen),
        connections=tuple(map(_connection, seen.flows)),
    )


def _title(seen: BondSeen) -> str:
    bond = seen.bond
    said = [f"{bond.name} of {seen.endpoint}", bond.mode]
    if bond.policy and bond.mode in HASHED_MODES:
        said.append(bond.policy)
    if bond.aggregator is not None:
        partner = f", partner {bond.partner_mac}" if bond.partner_mac else ""
        said.append(f"active aggregator {bond.aggregator}{partner}")
    if bond.active_port is not None:
        said.append(f"active port {bond.active_port}")
    return ", ".join(said)


def _port(seen: BondSeen, name: str) -> BondPortRow:
    counted = seen.ports.get(name)
    until = None if counted is None else counted.sent_until_midst
    return BondPortRow(
        name=name,
        state=_state(seen.bond, name),
        sent=UNKNOWN if counted is None else whole(counted.sent),
        received=UNKNOWN if counted is None else whole(counted.received),
        predicted=_predicted(seen, name),
        counted=UNKNOWN if until is None else whole(until),
    )


def _state(bond: Bond, name: str) -> str:
    port = next(one for one in bond.ports if one.name == name)
    said = ["usable" if port.usable else "not used"]
    if port.speed_bits_per_s is not None:
        said.append(format_bits_per_s(port.speed_bits_per_s))
    if port.aggregator is not None and port.aggregator != bond.aggregator:
        said.append(f"in aggregator {port.aggregator}")
    return ", ".join(said)


def _predicted(seen: BondSeen, name: str) -> str:
    """Unknown where the port of a connection is, or its bytes."""
    counts = [flow.connection.sent_bytes for flow in seen.flows if flow.port == name]
    if not seen.flows or any(flow.port is None for flow in seen.flows) or any(count is None for count in counts):
        return UNKNOWN
    return whole(sum(count or 0 for count in counts))


def _verdict(seen: BondSeen) -> str:
    if seen.confirmed:
        more = f": {seen.why}" if seen.why else ""
        return f"The counters of its ports support the prediction{more}."
    if seen.confirmed is None and not any(flow.port for flow in seen.flows):
        return f"No port could be predicted: {seen.why}."
    return f"Predicted, not confirmed by the counters, because {seen.why}."


def _connection(flow: BondFlow) -> str:
    one = flow.connection
    jobs = ", ".join(str(job) for job in flow.jobs)
    ends = f"{_end(one.source, one.source_port)} to {_end(one.destination, one.destination_port)}"
    moved = (
        ""
        if one.sent_bytes is None
        else f", {whole(one.sent_bytes)} bytes sent, {whole(one.received_bytes or 0)} received"
    )
    return f"job {jobs}, {one.transport.upper()} {ends}{moved}: {flow.port or flow.why}"


def _end(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
