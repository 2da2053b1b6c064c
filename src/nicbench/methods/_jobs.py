"""Jobs of a round: one for each client, each with ports of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nicbench.model.endpoint import EndpointFacts
from nicbench.model.round import Ask, Job
from nicbench.model.workload import WorkloadChoice

FIRST_PORT: Final = 5201
"""iperf3's; the jobs of a round have ports from here on."""
PORTS_A_JOB: Final = 160
"""More than any tool takes: nuttcp one for each of up to 128 connections, and one more."""
ROUND_OVERHEAD_S: Final = 2.0
"""Servers start, clients connect and end: what a round takes beyond its duration, for estimates."""


def jobs_of(clients: Iterable[EndpointFacts], workload: WorkloadChoice, ask: Ask, *, first: int = 0) -> tuple[Job, ...]:
    """Each client with the port of the server that it leads to. ``first`` is the number of jobs that the round has."""
    return tuple(
        Job(
            workload=workload.kind,
            client=client.name,
            server=client.port,
            ask=ask,
            port=FIRST_PORT + PORTS_A_JOB * (first + number),
            options=workload.options,
        )
        for number, client in enumerate(clients)
    )
