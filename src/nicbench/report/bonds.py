"""Bonds in the report: their ports with what they counted, the ports of connections, and links that failed.

A link fails because a test takes it down; then the report shows what each connection did, and what the clients
transferred meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from nicbench.core.bond import HASHED_MODES, Bond, BondFlow, BondObservation, FlowSilence, LinkFailureOutcome
from nicbench.core.round import Job, JobOutcome, Round
from nicbench.core.units import format_bits_per_s, format_digits
from nicbench.report.numbers import UNKNOWN, whole
from nicbench.stats.links import failure_summary, when_words, who_words
from nicbench.stats.rounds import what_of


@dataclass(frozen=True, slots=True)
class BondPortRow:
    """A port in a round. ``sent`` and ``received`` are bytes of frames over the whole round; ``predicted`` (payload)
    and ``counted`` (frames) are bytes sent until the middle of the round.
    """

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


def bond_row(seen: BondObservation) -> BondRow:
    """Returns the row of one bond in one round."""
    return BondRow(
        title=_title(seen),
        ports=tuple(_port(seen, port.name) for port in seen.bond.ports),
        verdict=_verdict(seen),
        connections=tuple(map(_connection, seen.flows)),
    )


def _title(seen: BondObservation) -> str:
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


def _port(seen: BondObservation, name: str) -> BondPortRow:
    counted = seen.ports.get(name)
    until = None if counted is None else counted.sent_until_midst
    return BondPortRow(
        name=name,
        state=_state(seen.bond, name),
        sent=UNKNOWN if counted is None else whole(counted.sent),
        received=UNKNOWN if counted is None else whole(counted.received),
        predicted=_predicted_text(seen, name),
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


def _predicted_text(seen: BondObservation, name: str) -> str:
    """Returns the payload bytes that were predicted for a port; unknown where a connection's port or
    bytes are unknown.
    """
    counts = [flow.connection.sent_bytes for flow in seen.flows if flow.port == name]
    if not seen.flows or any(flow.port is None for flow in seen.flows) or any(count is None for count in counts):
        return UNKNOWN
    return whole(sum(count or 0 for count in counts))


def _verdict(seen: BondObservation) -> str:
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


@dataclass(frozen=True, slots=True)
class FlowRow:
    """A connection, or several of one client that behaved alike; the ports are those of the host that has the bond."""

    who: str
    connections: int
    port_before: str
    port_down: str
    silent_down: str
    silent_back: str
    went_on: bool | None


@dataclass(frozen=True, slots=True)
class MovedInterval:
    """What a client transferred in one interval that its tool reports; times are seconds since the clients began."""

    who: str
    begin_s: float
    end_s: float
    bits_per_s: float


@dataclass(frozen=True, slots=True)
class FailedLink:
    """One round in which a link went down. ``step_s`` is the longest time between two observations of the connections,
    in seconds.
    """

    id: str
    what: str
    when: str
    down_at_s: float
    up_at_s: float | None
    step_s: float | None
    rows: tuple[FlowRow, ...]
    moved: tuple[MovedInterval, ...]
    sentence: str
    """The sentence about it among the findings."""


def list_failed_links(rounds: Iterable[Round], used: Collection[str]) -> tuple[FailedLink, ...]:
    """Returns a row for each round in which a link went down, in order. Only rounds that results rest on count
    (``used``, their ids).
    """
    return tuple(
        _failed_link(one, one.failure, one.failure.down_at_s)
        for one in rounds
        if one.id in used and one.failure is not None and one.failure.down_at_s is not None
    )


def _failed_link(one: Round, failed: LinkFailureOutcome, down_at_s: float) -> FailedLink:
    jobs = one.request.jobs
    rows: dict[FlowRow, int] = {}
    for flow in failed.flows:
        row = _row(flow, jobs, failed)
        rows[row] = rows.get(row, 0) + 1
    return FailedLink(
        id=one.id,
        what=what_of(one),
        when=when_words(failed),
        down_at_s=down_at_s,
        up_at_s=failed.up_at_s,
        step_s=failed.step_s,
        rows=tuple(
            FlowRow(row.who, count, row.port_before, row.port_down, row.silent_down, row.silent_back, row.went_on)
            for row, count in sorted(rows.items(), key=lambda item: (item[0].who, item[0].port_before))
        ),
        moved=tuple(
            moved for job, outcome in zip(jobs, one.outcomes, strict=False) for moved in _moved_intervals(job, outcome)
        ),
        sentence=f"In {one.id} ({what_of(one)}) {failure_summary(failed)}.",
    )


def _row(flow: FlowSilence, jobs: tuple[Job, ...], failed: LinkFailureOutcome) -> FlowRow:
    ends = flow.went_on is False
    return FlowRow(
        who=who_words(flow, jobs),
        connections=1,
        port_before=flow.port_before or UNKNOWN,
        port_down=flow.port_down or UNKNOWN,
        silent_down=UNKNOWN if ends else _silence(flow.silent_down_s, failed),
        silent_back=UNKNOWN if ends else _silence(flow.silent_back_s, failed),
        went_on=flow.went_on,
    )


def _silence(seconds: float | None, failed: LinkFailureOutcome) -> str:
    """Returns a silence in seconds, no finer than the connections were observed."""
    if seconds is None:
        return UNKNOWN
    if failed.step_s is not None and seconds <= failed.step_s:
        return f"≤ {format_digits(failed.step_s, 2)}"
    return format_digits(seconds, 2)


def _moved_intervals(job: Job, outcome: JobOutcome) -> Iterable[MovedInterval]:
    began_s = outcome.began_s or 0.0
    intervals = outcome.figures.intervals if outcome.figures else ()
    # Before the first one seconds may have been omitted.
    begin_s = max(0.0, 2 * intervals[0][0] - intervals[1][0]) if len(intervals) > 1 else 0.0
    for end_s, bits_per_s in intervals:
        yield MovedInterval(job.label or job.client, began_s + begin_s, began_s + end_s, bits_per_s)
        begin_s = end_s
