"""What jobs that run at once say of a link together, held against what it carries. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nicbench.core.endpoint import EndpointFacts
from nicbench.core.round import Flow, Job, JobOutcome
from nicbench.core.units import format_digits
from nicbench.stats.rounds import rate_together, span_of

_MARGIN: Final = 0.01
_START_S: Final = 0.01
"""A client begins to send so long after another at most, where both begin at once."""
_SEND_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""What a sender's socket may hold at its end (tcp_wmem), for tools that count only what was sent."""


def find_beyond_links(facts: Mapping[str, EndpointFacts], pairs: Sequence[tuple[Job, JobOutcome]]) -> Iterator[str]:
    """Yields a sentence for each direction of a link that carries less than several jobs say together.

    ``facts`` are of all endpoints, by their names.
    """
    at_link: dict[tuple[str, bool], list[tuple[Job, JobOutcome]]] = defaultdict(list)
    for job, outcome in pairs:
        for flow in () if outcome.figures is None else outcome.figures.flows:
            for name, is_inward in _links(job, flow, facts):
                at_link[name, is_inward].append((job, _only(outcome, flow)))
    for (name, is_inward), jobs in at_link.items():
        link_bits_per_s = facts[name].link_bits_per_s
        rate = rate_together([outcome for _, outcome in jobs])
        if len(jobs) < 2 or link_bits_per_s is None or rate is None:
            continue
        most = link_bits_per_s * (1 + _MARGIN) + _beyond_rate(jobs, link_bits_per_s, facts[name])
        if rate > most:
            yield (
                f"{name}: {len(jobs)} jobs say {_megabits(rate)} together {'to' if is_inward else 'from'} the measured "
                f"host, and the link carries {_megabits(link_bits_per_s)}"
            )


def _links(job: Job, flow: Flow, facts: Mapping[str, EndpointFacts]) -> Iterator[tuple[str, bool]]:
    """Yields each link that the flow crosses, by its endpoint, and whether it goes towards the measured host there."""
    client, server = facts.get(job.client), facts.get(job.server or "")
    if client is None or server is None or client.host == server.host:
        return
    if job.ask.transport == "udp" and flow.received_bits_per_s is None:
        return  # a sender's host drops what its link does not take
    is_forward = flow.direction == "forward"
    for end, is_inward in ((client, is_forward), (server, is_forward if server.port is None else not is_forward)):
        if end.port is not None:
            yield from ((name, is_inward) for name in (end.name, end.port) if name in facts)
    if server.port is None and server.name != client.port:
        yield server.name, is_forward


def _only(outcome: JobOutcome, flow: Flow) -> JobOutcome:
    figures = outcome.figures
    return outcome.replace(figures=figures and figures.replace(flows=(flow,)))


def _beyond_rate(jobs: Sequence[tuple[Job, JobOutcome]], link_bits_per_s: float, end: EndpointFacts) -> float:
    """Returns by how much more than its rate a link may seem to carry: tokens that wait, what is sent and not arrived,
    and clients that begin a moment apart.
    """
    span_s = span_of([outcome for _, outcome in jobs]) or min(job.ask.duration_s or 1.0 for job, _ in jobs)
    held = sum(
        job.ask.streams * max(job.ask.window_bytes or 0, _SEND_BUFFER_BYTES)
        for job, outcome in jobs
        for flow in (outcome.figures.flows if outcome.figures else ())
        if flow.received_bits_per_s is None
    )
    return (8 * (held + (end.bucket_bytes or 0)) + link_bits_per_s * _START_S) / span_s


def _megabits(rate: float) -> str:
    return f"{format_digits(rate / 1e6, 4)} Mb/s"
