"""Collectives: who sends what to whom, and the time of the slowest."""

from __future__ import annotations

import asyncio
import random

import pytest

from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.round import Figures, Flow, Job, JobOutcome
from nicbench.methods.collective import Collective

from .round_contexts import Laboratory

RATES = {"c00": 80e6, "c10": 40e6, "c20": 20e6, "c30": 80e6}


def moved(_: int, job: Job) -> JobOutcome:
    """Each host at a rate of its own; the host of the second port begins 0.5 s later."""
    rate, sent = RATES[job.client], job.ask.total_bytes or 0
    flow = Flow(
        direction="forward", sent_bytes=sent, received_bytes=sent, received_bits_per_s=rate, duration_s=8 * sent / rate
    )
    began_s = 0.5 if job.client == "c10" else 0.0
    return JobOutcome(figures=Figures(flows=(flow,)), began_s=began_s, took_s=8 * sent / rate)


def run(laboratory: Laboratory, **options: object) -> tuple[Result, ...]:
    method = Collective("job", Collective.Options.model_validate({"repetitions": 1, **options}))
    assert method.objection(laboratory.context) is None
    return asyncio.run(method.run(laboratory.context))


def test_an_all_reduce_is_a_ring_and_takes_as_long_as_its_slowest_stream() -> None:
    """Each of four sends 2 x 3/4 of 10 MB: at 20 Mb/s that takes 6 s."""
    laboratory = Laboratory(moved, ports=4)
    (result,) = run(laboratory, collectives=("all-reduce",), size_bytes=(10_000_000,))
    jobs = laboratory.requests[0].jobs
    assert [(job.client, job.server) for job in jobs] == [
        ("c00", "c10"), ("c10", "c20"), ("c20", "c30"), ("c30", "c00"),
    ]  # fmt: skip
    assert {job.ask.total_bytes for job in jobs} == {15_000_000}
    assert len({job.port for job in jobs}) == 4
    time = result.values["job_completion_ms"]
    assert isinstance(time, Bounded)
    assert time.value == pytest.approx(6000.0)
    assert result.values["slowest_ms"] == pytest.approx(6000.0)
    assert result.values["fastest_ms"] == pytest.approx(1500.0)
    assert result.values["spread_percent"] == pytest.approx(75.0)
    assert result.values["jain_index"] == pytest.approx(220**2 / (4 * (80**2 + 40**2 + 20**2 + 80**2)))
    assert result.values["host_bits_per_s"] == pytest.approx(20e6)
    assert result.verdict is ResultVerdict.VALID


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("collective", ["all-reduce", "all-to-all"])
def test_the_drawn_time_of_a_job_is_found(collective: str, seed: int) -> None:
    draw = random.Random(f"{collective} {seed}")
    hosts, size = draw.randint(2, 6), draw.randint(10**5, 10**8)
    begins: list[float] = []
    ends: list[float] = []

    def send(_: int, job: Job) -> JobOutcome:
        sent, took_s = job.ask.total_bytes or 0, 10 ** draw.uniform(-3, 2)
        begins.append(draw.uniform(0.0, 0.1))
        ends.append(begins[-1] + took_s)
        flow = Flow(
            direction="forward",
            sent_bytes=sent,
            received_bytes=sent,
            received_bits_per_s=8 * sent / took_s,
            duration_s=took_s,
        )
        return JobOutcome(figures=Figures(flows=(flow,)), began_s=begins[-1], took_s=took_s)

    (result,) = run(Laboratory(send, ports=hosts), collectives=(collective,), size_bytes=(size,))
    time = result.values["job_completion_ms"]
    assert isinstance(time, Bounded)
    assert time.value == pytest.approx(1e3 * (max(ends) - min(begins)))
    assert len(ends) == (hosts if collective == "all-reduce" else hosts * (hosts - 1))


def test_an_all_to_all_has_a_stream_of_each_pair() -> None:
    laboratory = Laboratory(moved, ports=3)
    (result,) = run(laboratory, collectives=("all-to-all",), size_bytes=(30_000_000,))
    jobs = laboratory.requests[0].jobs
    assert len({(job.client, job.server) for job in jobs}) == 6
    assert {job.ask.total_bytes for job in jobs} == {10_000_000}
    assert result.parameters["hosts"] == 3


def test_over_rdma_each_stream_is_a_write_of_perftest() -> None:
    laboratory = Laboratory(moved, ports=2)
    (result,) = run(laboratory, collectives=("all-reduce",), size_bytes=(10_000_000,), transport="rdma")
    assert {(job.workload, job.ask.transport, job.ask.verb) for job in laboratory.requests[0].jobs} == {
        ("perftest", "rdma", "write")
    }
    assert result.parameters["transport"] == "RDMA"


def test_the_first_begin_counts_where_streams_begin_at_different_times() -> None:
    """40 Mb/s for 10 MB are 2 s, and 0.5 s later."""
    laboratory = Laboratory(moved, ports=2)
    (result,) = run(laboratory, collectives=("all-reduce",), size_bytes=(10_000_000,))
    time = result.values["job_completion_ms"]
    assert isinstance(time, Bounded)
    assert (time.value, result.values["slowest_ms"]) == (pytest.approx(2500.0), pytest.approx(2000.0))


def test_a_stream_that_fails_leaves_no_time() -> None:
    laboratory = Laboratory(lambda number, job: JobOutcome(failure="refused", repeatable=False), ports=2)
    (result, *_) = run(laboratory, collectives=("all-reduce",))
    time = result.values["job_completion_ms"]
    assert isinstance(time, Bounded)
    assert (time.value, result.verdict) == (None, ResultVerdict.INCOMPLETE)


def test_one_host_is_no_collective() -> None:
    objection = Collective("job", Collective.Options()).objection(Laboratory(moved).context)
    assert objection is not None
    assert "two hosts" in objection.message


def test_bytes_that_had_not_arrived_when_the_tool_ended_leave_no_time() -> None:
    def early(number: int, job: Job) -> JobOutcome:
        outcome = moved(number, job)
        assert outcome.figures is not None
        (flow,) = outcome.figures.flows
        late = flow.replace(received_bytes=(flow.received_bytes or 0) - 1000)
        return outcome.replace(figures=outcome.figures.replace(flows=(late,)))

    (result,) = run(Laboratory(early, ports=2), collectives=("all-reduce",))
    assert str(result.values["limit"]).startswith("2 kB had not arrived when the tool ended")
    assert result.verdict is ResultVerdict.INCOMPLETE
