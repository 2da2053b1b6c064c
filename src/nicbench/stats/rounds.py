"""What a round was about and what it came to, in words and sums: for the terminal and the report alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from nicbench.model.round import Job, JobOutcome, Round

REPEATED: Final = re.compile(r"out_of_seq|duplicate_request|seq_err|retry|rnr|ack_timeout")
"""RDMA's own counters of what came twice, out of sequence or too early, as drivers call them (rxe, mlx5)."""
_SAID_BY_MODE: Final = frozenset({"direction", "write_bytes", "transport", "operation", "streams"})
"""Parameters that a method's own words (``mode``) hold already."""


def what_of(one: Round) -> str:
    """The point that a round was played for, and whether again."""
    again = f" (repeat {one.repeat})" if one.repeat else ""
    return f"{words_of(one.parameters)}{again}"


def words_of(parameters: Mapping[str, Any]) -> str:
    """A point as its method names it: words as they are, numbers with their names; a first repetition goes unsaid."""
    return ", ".join(_words(parameters))


def _words(parameters: Mapping[str, Any]) -> Iterator[str]:
    for name, value in parameters.items():
        if value is None or name == "part" or ("mode" in parameters and name in _SAID_BY_MODE):
            continue
        if isinstance(value, str):
            yield value
        elif name == "repetition":
            if value != 1:
                yield f"repetition {value}"
        else:
            yield f"{name.replace('_', ' ')} {value}"


def pairs_of(one: Round) -> tuple[tuple[Job, JobOutcome], ...]:
    """Each job with what came of it."""
    return tuple(zip(one.request.jobs, one.outcomes, strict=True))


def moved_bits_per_s(one: Round) -> float | None:
    """All loads together, of those that have figures; None where none moved anything that is known."""
    rates = [
        flow.bits_per_s
        for job, outcome in pairs_of(one)
        if job.role == "load" and outcome.figures is not None
        for flow in outcome.figures.flows
        if flow.bits_per_s is not None
    ]
    return sum(rates) if rates else None
