"""What a tool says of the CPU time of whole machines, held against what the monitor says of them (netperf -c -C)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nicbench.core.round import Figures, Job, JobOutcome, MachineCpu, RoundRequest
from nicbench.core.units import format_digits

_AGREES: Final = 0.05
_BYTES_A_KB: Final = 1024
"""As netperf counts for its service demand."""


def add_cpu_notes(
    request: RoundRequest,
    outcomes: Sequence[JobOutcome],
    cpu: Sequence[MachineCpu],
    machines: Mapping[str, str],
) -> tuple[JobOutcome, ...]:
    """Adds to figures whether tool and monitor agree. ``machines`` has the machine of each endpoint."""
    by_machine = {each.machine: each for each in cpu}
    told = []
    for job, outcome in zip(request.jobs, outcomes, strict=True):
        figures = outcome.figures
        notes = () if figures is None else tuple(_notes(job, figures, by_machine, machines))
        if figures is not None and notes:
            figures = figures.replace(notes=(*figures.notes, *notes))
            outcome = outcome.replace(figures=figures)
        told.append(outcome)
    return tuple(told)


def _notes(job: Job, figures: Figures, cpu: Mapping[str, MachineCpu], machines: Mapping[str, str]) -> Iterator[str]:
    sides = (
        (job.client, "client", figures.client_machine_cpu_share, figures.client_service_demand_ns_per_byte),
        (job.server, "server", figures.server_machine_cpu_share, figures.server_service_demand_ns_per_byte),
    )
    for endpoint, side, said, demand in sides:
        ours = cpu.get(machines.get(endpoint or "", ""))
        if said is not None:
            yield _busy_words(job.workload, side, said, None if ours is None else ours.mean)
        if demand is not None:
            yield _demand_words(job.workload, side, demand, figures, ours)


def _busy_words(tool: str, side: str, said: float, ours: float | None) -> str:
    told = f"{tool} says that the {side}'s machine was {100 * said:.1f} % busy"
    if ours is None:
        return f"{told}; no monitor watched it"
    apart = abs(said - ours) / ours if ours else float(said > 0)
    words = "they agree within 5 %" if apart <= _AGREES else f"{100 * apart:.0f} % apart, over times of their own"
    return f"{told}, the monitor {100 * ours:.1f} %: {words}"


def _demand_words(tool: str, side: str, demand: float, figures: Figures, ours: MachineCpu | None) -> str:
    """The tool divides the time of all programs by what it moved; beside it the time of the test alone."""
    told = f"{tool}'s service demand on the {side}'s machine is {_per_kb(demand)} of all programs' CPU time"
    moved = sum(flow.received_bytes or flow.sent_bytes or 0 for flow in figures.flows)
    if ours is None or ours.of_test is None or not moved or not ours.cpus or not ours.counted_s:
        return told
    return f"{told}, {_per_kb(ours.of_test * ours.cpus * ours.counted_s * 1e9 / moved)} of the test's own"


def _per_kb(ns_per_byte: float) -> str:
    return f"{format_digits(ns_per_byte * _BYTES_A_KB / 1e3, 4)} µs/KB"
