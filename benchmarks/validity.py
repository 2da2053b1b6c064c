"""Whether the build and the options that were timed count right: over a loop with the analyser, every frame once."""

from __future__ import annotations

from typing import Any

from engine_process import engine, port, stream
from machine import Cpus

NOTHING = ("lost", "duplicated", "reordered", "corrupted", "late")


def check(cpus: Cpus, huge_pages: bool, seconds: float = 0.5) -> str | None:
    """``None``, or what is wrong: then no figure counts."""
    apart = [{"cpu": cpus.worker, "transmit": [0]}, {"cpu": cpus.other, "receive": [0]}]
    for workers in ([], apart):
        common: dict[str, Any] = {"worker_cpu": cpus.worker, "huge_pages": huge_pages, "memory_mib": 192}
        with engine([port("loop", "ring")], workers=workers, **common) as loop:
            for flows in (1, 8192):
                problem = problem_of(
                    loop.trial([stream(flows)], seconds, drain_s=0.05), loop.request("settle", duration_s=0.05)
                )
                if problem:
                    return f"{flows} flows, {len(workers) or 1} workers: {problem}"
    return None


def problem_of(reading: dict[str, Any], late: dict[str, Any]) -> str | None:
    """What is wrong, if anything.

    A stamp later than its arrival, or one that falls within a flow, would give a latency below zero, which is counted
    as zero: the shortest must be above that.
    """
    (counts,) = reading["streams"]
    if counts["received"] != counts["sent"] or counts["sent"] == 0 or any(late["late"]):
        return f"{counts['sent']} sent and {counts['received']} received"
    wrong = {name: counts[name] for name in NOTHING if counts[name]}
    if wrong:
        return str(wrong)
    if counts["latency"]["minimum_ns"] <= 0:
        return "a latency of zero or less"
    return None
