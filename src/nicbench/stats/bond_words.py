"""Describes which job of a round used which port of a bond, so that a halved rate is explained by figures.

Where the port counters support what hashing predicts, the port is stated as a fact; otherwise as a prediction with the
reason. At an end that mostly received, only the counters are used: the switch or the other end chose the ports there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nicbench.core.bond import HASHED_MODES, BondFlow, BondObservation
from nicbench.core.round import Round
from nicbench.core.units import and_list, format_bits_per_s
from nicbench.stats.bonds import MOSTLY, mostly_receives, percent, received_shares

RatesOf = Callable[[Sequence[Round]], Mapping[int, str]]
"""Gives the rate of each job, by its number from 1, in some rounds."""
_SMALLEST: Final = 0.05
"""A connection with less than this share of its job's bytes is taken for a control connection (as iperf3's)."""


def bond_port(rounds: Sequence[Round], job: int) -> str | None:
    """Names the port that a job (its number, from 1) used; None where there is no bond, or it is not known.

    If several rounds differ, each port is listed with the number of rounds that used it.
    """
    words = [_port_words(one, job) for one in rounds]
    counted = Counter(word for word in words if word is not None)
    if len(counted) == 1 and None not in words:
        return next(iter(counted))
    return ", ".join(f"{word} in {count} of {len(words)} rounds" for word, count in sorted(counted.items())) or None


def bond_end(one: Round, job: int) -> str | None:
    """Names the endpoint that owns the bond of ``bond_port``: two clients may have ports of the same name."""
    leaves = (seen.endpoint for seen in one.bonds if _ports(sent_flows(seen, job)))
    meets = (seen.endpoint for seen in one.bonds if _is_of(one, job) and _only_port(seen) is not None)
    return next(leaves, None) or next(meets, None)


def bond_note(rounds: Sequence[Round], names: Mapping[int, str], rates_of: RatesOf, unit: str = "") -> str | None:
    """Describes every bond that these jobs used, without the last full stop; None where there is none.

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
        ports = _ports(sent_flows(seen, job))
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
        ports = _ports(sent_flows(seen, job))
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
        job not in jobs and set(ports) & set(_ports(sent_flows(seen, job))) for flow in seen.flows for job in flow.jobs
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


def _ports(flows: Sequence[BondFlow]) -> tuple[str, ...]:
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
