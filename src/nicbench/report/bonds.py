"""Links that a test took down: the rounds in which one failed, and what their clients transferred meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from nicbench.core.round import Round
from nicbench.stats.links import failure_summary
from nicbench.stats.rounds import what_of


class MovedInterval(NamedTuple):
    """What a client transferred in one interval that its tool reports; times are seconds since the clients began."""

    who: str
    begin_s: float
    end_s: float
    bits_per_s: float


def list_failed_links(rounds: Iterable[Round], used: Collection[str]) -> tuple[Round, ...]:
    """Returns each round in which a link went down, in order. Only rounds that results rest on count (``used``, their
    ids).
    """
    return tuple(one for one in rounds if one.id in used and one.failure and one.failure.down_at_s is not None)


def failed_link_sentence(one: Round) -> str:
    """Returns the sentence about a link that failed among the findings."""
    return f"In {one.id} ({what_of(one)}) {failure_summary(one.failure)}." if one.failure else ""


def moved_intervals(one: Round) -> Iterator[MovedInterval]:
    """Yields what each client transferred over time, one client after the other."""
    for job, outcome in zip(one.request.jobs, one.outcomes, strict=False):
        began_s = outcome.began_s or 0.0
        intervals = outcome.figures.intervals if outcome.figures else ()
        # Before the first one seconds may have been omitted.
        begin_s = max(0.0, 2 * intervals[0][0] - intervals[1][0]) if len(intervals) > 1 else 0.0
        for end_s, bits_per_s in intervals:
            yield MovedInterval(job.label or job.client, began_s + begin_s, began_s + end_s, bits_per_s)
            begin_s = end_s
