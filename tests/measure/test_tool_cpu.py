"""A tool that looks at whole machines beside the monitor that does: agreement, or by how much they differ."""

from __future__ import annotations

import pytest

from nicbench.core.round import Figures, Flow, Job, JobOutcome, JobSpec, MachineCpu, RoundRequest
from nicbench.measure.witnesses import add_cpu_notes

JOB = Job(workload="netperf", client="c0", server="s0", ask=JobSpec(), port=5201)
REQUEST = RoundRequest(jobs=(JOB,), duration_s=1.0)
MACHINES = {"c0": "client", "s0": "server"}


def notes(cpu: tuple[MachineCpu, ...], **figures: float) -> tuple[str, ...]:
    flow = Flow(direction="forward", received_bytes=1024 * 1_000_000)
    outcome = JobOutcome(figures=Figures(flows=(flow,), **figures))  # type: ignore[arg-type]
    (told,) = add_cpu_notes(REQUEST, (outcome,), cpu, MACHINES)
    assert told.figures is not None
    return told.figures.notes


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        (0.42, "netperf says that the server's machine was 41.0 % busy, the monitor 42.0 %: they agree within 5 %"),
        (
            0.5,
            (
                "netperf says that the server's machine was 41.0 % busy, the monitor 50.0 %: 18 % apart, over times of "
                "their own"
            ),
        ),
    ],
)
def test_whether_tool_and_monitor_agree_is_said(ours: float, words: str) -> None:
    assert notes((MachineCpu(machine="server", mean=ours),), server_machine_cpu_share=0.41) == (words,)


def test_a_machine_without_a_monitor_is_no_agreement() -> None:
    (note,) = notes((), server_machine_cpu_share=0.41)
    assert note.endswith("41.0 % busy; no monitor watched it")


def test_the_service_demand_of_the_test_alone_stands_beside_that_of_all_programs() -> None:
    cpu = (MachineCpu(machine="client", cpus=2, counted_s=10.0, own=0.1, kernel=0.05),)
    (note,) = notes(cpu, client_service_demand_ns_per_byte=12_000 / 1024)
    assert note == (
        "netperf's service demand on the client's machine is 12 µs/KB of all programs' CPU time, 3 µs/KB of the test's "
        "own"
    )


def test_a_tool_that_does_not_look_and_one_that_failed_say_nothing() -> None:
    assert notes((MachineCpu(machine="server", mean=0.4),)) == ()
    failed = JobOutcome(failure="killed")
    assert add_cpu_notes(REQUEST, (failed,), (), MACHINES) == (failed,)
