"""Which job of a round used which port of a bond, in words, so that a halved rate is explained and not guessed. Pure.

A claim is made where the counters of the ports support what hashing predicts; else it is called a prediction, with the
reason. Of an end that received, the counters speak alone: its ports were chosen by the switch, or by the other end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from nicbench.model.bond import HASHED_MODES, BondFlow, BondSeen
from nicbench.model.round import Round
from nicbench.stats.bonds import MOSTLY, mostly_receives, percent, received_by
from nicbench.units import format_bits_per_s

_SMALLEST: Final = 0.05
"""A connection with less than this share of its job's bytes only speaks about the others (iperf3's control)."""


def bond_port(rounds: Sequence[Round], job: int) -> str | None:
    """The port that a job (its number, from 1) used; None where there is no bond, or it cannot be told.

    Of several rounds: that of all, or how often each was used.
    """
    words = [_port_words(one, job) for one in rounds]
    counted = Counter(word for word in words if word is not None)
    if len(counted) == 1 and None not in words:
        return next(iter(counted))
    return ", ".join(f"{word} in {count} of {len(words)} rounds" for word, count in sorted(counted.items())) or None


def bond_end(one: Round, job: int) -> str | None:
    """The endpoint whose bond ``bond_port`` of this job is of: two clients may have ports of the same name."""
    leaves = (seen.endpoint for seen in one.bonds if _ports(leaving(seen, job)))
    meets = (seen.endpoint for seen in one.bonds if _is_of(one, job) and _only_port(seen) is not None)
    return next(leaves, None) or next(meets, None)


def bond_note(
    rounds: Sequence[Round], names: Mapping[int, str], rates: Mapping[int, str], unit: str = ""
) -> str | None:
    """Sentences on every bond that these jobs used, the last one without its full stop; None where there is none.

    ``names`` are what jobs are called ("instance 2", "c0"), by their numbers, and ``rates`` what each reached, of
    ``unit``. What is the same in all rounds is said once.
    """
    said: dict[str, list[str]] = {}
    bonds: set[tuple[str, str]] = set()
    for one in rounds:
        for seen in one.bonds:
            if not seen.flows or any(job in names for flow in seen.flows for job in flow.jobs):
                bonds.add((seen.endpoint, seen.bond.name))
                said.setdefault(_of_bond(seen, names, rates, unit), []).append(one.id)
    several = len(said) > len(bonds)
    texts = [f"{text} ({', '.join(ids)})" if several else text for text, ids in said.items()]
    return ". ".join(texts) or None


def spread_evenly(connections: int, ports: int) -> float:
    """The probability that a perfect hash spreads so many connections as evenly over so many ports as can be.

    Of no more connections than ports, that no two share one.
    """
    each, more = divmod(connections, ports)
    ways = math.comb(ports, more) * math.factorial(connections)
    alike: int = math.factorial(each + 1) ** more * math.factorial(each) ** (ports - more)
    return float(ways / (alike * ports**connections))


def leaving(seen: BondSeen, job: int) -> tuple[BondFlow, ...]:
    """The connections by which a job's bytes left this end of it; none where this end received them."""
    own = [flow for flow in seen.flows if job in flow.jobs]
    counts = [(flow.connection.sent_bytes, flow.connection.received_bytes) for flow in own]
    if any(sent is None or received is None for sent, received in counts):
        return () if mostly_receives(seen) else tuple(own)
    least = _SMALLEST * sum((sent or 0) + (received or 0) for sent, received in counts)
    pairs = zip(own, counts, strict=True)
    return tuple(flow for flow, (sent, received) in pairs if (sent or 0) >= max(received or 0, least, 1))


def _port_words(one: Round, job: int) -> str | None:
    for seen in one.bonds:
        ports = _ports(leaving(seen, job))
        if ports:
            return _listed(ports) if seen.confirmed else f"{_listed(ports)} (predicted)"
    if not _is_of(one, job):
        return None
    for seen in one.bonds:
        port = _only_port(seen)
        if port is not None:
            return port
    return None


def _is_of(one: Round, job: int) -> bool:
    """Whether the job's bytes came to a bond, by the connections seen."""
    return any(job in flow.jobs for seen in one.bonds for flow in seen.flows)


def _only_port(seen: BondSeen) -> str | None:
    """The one by which everything came, whoever chose it."""
    shares = received_by(seen) if mostly_receives(seen) else {}
    return next((port for port, share in shares.items() if share >= MOSTLY), None)


def _of_bond(seen: BondSeen, names: Mapping[int, str], rates: Mapping[int, str], unit: str) -> str:
    bond = seen.bond
    policy = f", {bond.policy}" if bond.policy and bond.mode in HASHED_MODES else ""
    head = f"{bond.name} of {seen.endpoint} ({bond.mode}{policy})"
    by_ports: dict[tuple[str, ...], list[int]] = {}
    for job in names:
        ports = _ports(leaving(seen, job))
        if ports:
            by_ports.setdefault(ports, []).append(job)
    if not by_ports and mostly_receives(seen):
        shares = ", ".join(f"{percent(share)} by {port}" for port, share in received_by(seen).items())
        return f"{head} received {shares}; by which port a frame comes in is chosen at the other end"
    if not by_ports:
        return f"{head}: which connection used which port is not known, because {seen.why or 'none was seen'}"
    said = "; ".join(_shared(seen, ports, jobs, names, rates, unit) for ports, jobs in sorted(by_ports.items()))
    if not seen.confirmed:
        return f"{head}: predicted, not confirmed by the counters, because {seen.why}: {said}"
    more = [text for text in (_chance(seen, list(names)), seen.why) if text]
    return ". ".join((f"{head}: {said}", *more))


def _shared(
    seen: BondSeen,
    ports: tuple[str, ...],
    jobs: Sequence[int],
    names: Mapping[int, str],
    rates: Mapping[int, str],
    unit: str,
) -> str:
    """Such as: instances 2, 5 and 7 shared eth3 (25 Gb/s): 9.1, 9.0 and 9.2 frames/s."""
    who = _together([names[job] for job in jobs])
    verb = "shared" if len(jobs) > 1 else "had"
    others = any(
        job not in jobs and set(ports) & set(_ports(leaving(seen, job))) for flow in seen.flows for job in flow.jobs
    )
    remark = " to itself" if len(jobs) == 1 and not others else ""
    if len(ports) > 1 and any(set(flow.jobs) > {job} for job in jobs for flow in leaving(seen, job)):
        remark = ", by mounts that cannot be told apart"
    where = _listed([f"{port}{_speed(seen, port)}" for port in ports])
    figures = [rates[job] for job in jobs if job in rates]
    return f"{who} {verb} {where}{remark}" + (f": {_listed(figures)} {unit}".rstrip() if figures else "")


def _chance(seen: BondSeen, jobs: Sequence[int]) -> str | None:
    """What a hash leads one to expect of so many connections."""
    connections = {flow.connection for job in jobs for flow in leaving(seen, job)}
    count, ports = len(connections), len(seen.bond.usable)
    if seen.bond.mode not in HASHED_MODES or count < 2 or ports < 2:
        return None
    share = percent(spread_evenly(count, ports))
    if count <= ports:
        return f"Of {count} connections hashed to {ports} ports, no two share one in {share} of all cases"
    return f"{count} connections hashed to {ports} ports are spread evenly in {share} of all cases"


def _ports(flows: Sequence[BondFlow]) -> tuple[str, ...]:
    """Of all of these; none where one is not known."""
    if any(flow.port is None for flow in flows):
        return ()
    return tuple(sorted({flow.port for flow in flows if flow.port is not None}))


def _speed(seen: BondSeen, port: str) -> str:
    speed = seen.bond.speed_bits_per_s(port)
    return "" if speed is None else f" ({format_bits_per_s(speed)})"


def _together(names: Sequence[str]) -> str:
    """Names that differ in a number are said once: "instances 2, 5 and 7"."""
    pairs = [name.rpartition(" ") for name in names]
    firsts = {first for first, _, _ in pairs}
    if len(names) > 1 and len(firsts) == 1 and "" not in firsts:
        return f"{firsts.pop()}s {_listed([last for _, _, last in pairs])}"
    return _listed(names)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
