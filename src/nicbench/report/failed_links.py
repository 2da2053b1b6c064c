"""Links that failed because a test asked for it: what each connection did, and what the clients moved meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from nicbench.core.bond import FlowSilence, LinkFailed
from nicbench.core.round import Job, JobOutcome, Round
from nicbench.report.numbers import UNKNOWN
from nicbench.stats.link_failures import failure_summary, when_words, who_words
from nicbench.stats.rounds import what_of


@dataclass(frozen=True, slots=True)
class FlowRow:
    """A connection, or several of one client that did the same; ports are those of the bond's own host."""

    who: str
    connections: int
    port_before: str
    port_down: str
    silent_down: str
    silent_back: str
    went_on: bool | None


@dataclass(frozen=True, slots=True)
class Moved:
    """What a client moved in one interval of its tool's; seconds since the clients began."""

    who: str
    begin_s: float
    end_s: float
    bits_per_s: float


@dataclass(frozen=True, slots=True)
class FailedLink:
    """One round in which a link went down. ``step_s`` is the most that the looks at the connections were apart."""

    id: str
    what: str
    when: str
    down_at_s: float
    up_at_s: float | None
    step_s: float | None
    rows: tuple[FlowRow, ...]
    moved: tuple[Moved, ...]
    sentence: str
    """For the findings."""


def failed_links(rounds: Iterable[Round], used: Collection[str]) -> tuple[FailedLink, ...]:
    """Of the rounds that results rest on (``used``, their ids), in order; a link that did not go down has no row."""
    return tuple(
        _failed(one, one.failure, one.failure.down_at_s)
        for one in rounds
        if one.id in used and one.failure is not None and one.failure.down_at_s is not None
    )


def _failed(one: Round, failed: LinkFailed, down_at_s: float) -> FailedLink:
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
        moved=tuple(moved for job, outcome in zip(jobs, one.outcomes, strict=False) for moved in _moved(job, outcome)),
        sentence=f"In {one.id} ({what_of(one)}) {failure_summary(failed)}.",
    )


def _row(flow: FlowSilence, jobs: tuple[Job, ...], failed: LinkFailed) -> FlowRow:
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


def _silence(seconds: float | None, failed: LinkFailed) -> str:
    """Seconds, no finer than it was looked at."""
    if seconds is None:
        return UNKNOWN
    if failed.step_s is not None and seconds <= failed.step_s:
        return f"≤ {failed.step_s:.2g}"
    return f"{seconds:.2g}"


def _moved(job: Job, outcome: JobOutcome) -> Iterable[Moved]:
    began_s = outcome.began_s or 0.0
    begin_s = 0.0
    for end_s, bits_per_s in outcome.figures.intervals if outcome.figures else ():
        yield Moved(job.label or job.client, began_s + begin_s, began_s + end_s, bits_per_s)
        begin_s = end_s
