"""Describes the point of a round and sums up its jobs, for the terminal and the report alike."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from nicbench.core.round import Figures, Flow, Job, JobOutcome, Round

REPEATED: Final = re.compile(r"out_of_seq|duplicate_request|seq_err|retry|rnr|ack_timeout")
"""RDMA counters of repeated, reordered or early packets, as drivers call them (rxe, mlx5)."""
_COVERED_BY_MODE: Final = frozenset({"direction", "write_bytes", "transport", "operation", "streams"})
"""Parameters that ``mode``, the method's own description, already covers."""


def what_of(one: Round) -> str:
    """Describes the point that a round measured, and its repeat number."""
    again = f" (repeat {one.repeat})" if one.repeat else ""
    return f"{words_of(one.parameters)}{again}"


def words_of(parameters: Mapping[str, Any]) -> str:
    """Describes a point: strings as they are, numbers with their names; repetition 1 is omitted."""
    return ", ".join(_list_parameters(parameters))


def _list_parameters(parameters: Mapping[str, Any]) -> Iterator[str]:
    for name, value in parameters.items():
        if value is None or name == "part" or ("mode" in parameters and name in _COVERED_BY_MODE):
            continue
        if isinstance(value, str):
            yield value
        elif name == "repetition":
            if value != 1:
                yield f"repetition {value}"
        else:
            yield f"{name.replace('_', ' ')} {value}"


def pairs_of(one: Round) -> tuple[tuple[Job, JobOutcome], ...]:
    """Returns each job with its outcome."""
    return tuple(zip(one.request.jobs, one.outcomes, strict=True))


def moved_bits_per_s(one: Round) -> float | None:
    """Returns the rate of all loads that have figures together; None where no rate is known."""
    return rate_together(
        [outcome for job, outcome in pairs_of(one) if job.role == "load" and bits_per_s(outcome.figures) is not None]
    )


def bits_per_s(figures: Figures | None) -> float | None:
    """Returns the bit rate of a job, both directions added; None where one of them is unknown."""
    if figures is None or not figures.flows:
        return None
    rates = [flow.bits_per_s for flow in figures.flows]
    return None if any(rate is None for rate in rates) else sum(rate or 0.0 for rate in rates)


def rate_together(outcomes: Sequence[JobOutcome]) -> float | None:
    """Returns what jobs moved, over the time from the first begin to the last end; None where a rate is unknown.

    Rates of jobs that end at different times are of no moment in which all of them ran, and are added only where their
    times are unknown.
    """
    rates = [bits_per_s(outcome.figures) for outcome in outcomes]
    if not rates or any(rate is None for rate in rates):
        return None
    span_s = span_of(outcomes)
    if len(rates) == 1 or not span_s:
        return sum(rate or 0.0 for rate in rates)
    return sum((flow.bits_per_s or 0.0) * (flow.duration_s or 0.0) for flow in _flows(outcomes)) / span_s


def span_of(outcomes: Sequence[JobOutcome]) -> float | None:
    """Returns the seconds from the first begin of the jobs to the last end of their flows; None where unknown."""
    begins = [outcome.began_s for outcome in outcomes]
    durations = [flow.duration_s for flow in _flows(outcomes)]
    if not begins or any(begin is None for begin in begins) or not durations or not all(durations):
        return None
    ends = ((outcome.began_s or 0.0) + (flow.duration_s or 0.0) for outcome in outcomes for flow in _flows((outcome,)))
    return max(ends) - min(begin or 0.0 for begin in begins)


def _flows(outcomes: Iterable[JobOutcome]) -> Iterator[Flow]:
    for outcome in outcomes:
        yield from () if outcome.figures is None else outcome.figures.flows
