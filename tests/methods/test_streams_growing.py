"""Streams over two ports, three, and at last all: which ports, and how fairly they share."""

from __future__ import annotations

import pytest

from nicbench.core.round import Job, JobOutcome
from nicbench.methods.stream import Stream

from .round_contexts import Laboratory, streamed

RATES = {"s0": 4e6, "s1": 2e6, "s2": 0.0, "s3": 2e6}


async def test_more_and_more_ports_send_at_once_and_their_fairness_is_told() -> None:
    def outcome(number: int, job: Job) -> JobOutcome:
        return streamed(RATES[job.server])

    laboratory = Laboratory(outcome, ports=4)
    method = Stream("shares", Stream.Options(at_once=("port", "growing", "all")))
    results = await method.run(laboratory.context)
    combined = [each for each in results if each.parameters["part"] == "combined"]
    together = {str(each.parameters["at_once"]): each.values for each in combined}
    assert list(together) == ["2 ports", "3 ports", "all ports"]
    assert [sorted(job.server for job in request.jobs) for request in laboratory.requests][4:] == [
        ["s0", "s1"],
        ["s0", "s1", "s2"],
        ["s0", "s1", "s2", "s3"],
    ]
    indexes = [values["jain_index"] for values in together.values()]
    assert indexes == pytest.approx([36 / (2 * 20), 36 / (3 * 20), 64 / (4 * 24)])
