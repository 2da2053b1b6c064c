"""Recorded outputs of tools, ``tests/golden/workloads/TOOL-VERSION-CASE.txt``; README.md there says whence."""

from __future__ import annotations

from pathlib import Path

from nicbench.core.round import Job, JobSpec
from nicbench.workloads.base import Output

GOLDEN = Path(__file__).resolve().parents[1] / "golden/workloads"


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text()


def both_sides(name: str) -> tuple[Output, Output]:
    """What client and server wrote."""
    return Output(golden(f"{name}.client")), Output(golden(f"{name}.server"))


def job(workload: str, ask: JobSpec, **others: object) -> Job:
    server = None if ask.operation in ("memory", "frames") else "server"
    return Job(workload=workload, client="client", server=server, ask=ask, port=5201, **others)  # type: ignore[arg-type]
