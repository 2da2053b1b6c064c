"""Describes the point of a round and sums up its jobs, for the terminal and the report alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from nicbench.core.round import Job, JobOutcome, Round

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
    """Sums the rates of all loads that have figures; None where no rate is known."""
    rates = [
        flow.bits_per_s
        for job, outcome in pairs_of(one)
        if job.role == "load" and outcome.figures is not None
        for flow in outcome.figures.flows
        if flow.bits_per_s is not None
    ]
    return sum(rates) if rates else None
