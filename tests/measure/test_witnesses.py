"""The byte counters of ports against tools that lie alike at both ends, and against honest ones that must not trip."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.judging import Reason, Thresholds
from nicbench.core.round import Figures, Flow, Job, JobOutcome, JobSpec, MachineCpu, RoundRequest
from nicbench.measure.round_verdict import judge_round
from nicbench.measure.witnesses import Interface, add_cpu_notes, find_contradicted_ports, find_lost_ports

LINK = 100e6
PORTS = {name: Interface(name, f"{name}-device", LINK) for name in ("s0", "c0", "c1")}
TRUTH_BITS_PER_S = 47e6
"""Payload of each of two clients that fill the port together."""


def outcome(bits_per_s: float, duration_s: float = 10.0, **more: Any) -> JobOutcome:
    count = round(bits_per_s * duration_s / 8)
    flow = Flow(
        direction="forward",
        sent_bytes=count,
        received_bytes=count,
        sent_bits_per_s=bits_per_s,
        received_bits_per_s=bits_per_s,
        duration_s=duration_s,
        **more,
    )
    return JobOutcome(figures=Figures(flows=(flow,)), began_s=0.0, took_s=duration_s + 0.1)


def request(**ask: Any) -> RoundRequest:
    jobs = tuple(
        Job(workload="iperf3", client=f"c{n}", server="s0", ask=JobSpec(**ask), port=5201 + 16 * n) for n in (0, 1)
    )
    return RoundRequest(jobs=jobs, duration_s=10.0)


def counters(sent_bytes: float, factor: float = 1.045, clients: tuple[str, ...] = ("c0", "c1")) -> dict[str, Any]:
    """The counters of every interface after each client sent its payload; the other direction has acknowledgements."""
    wire, acknowledged = round(sent_bytes * factor), round(sent_bytes * 0.02)
    found = {name: {"tx_bytes": 1000 + wire, "rx_bytes": 1000 + acknowledged} for name in clients}
    number = len(clients)
    return {**found, "s0": {"rx_bytes": 1000 + number * wire, "tx_bytes": 1000 + number * acknowledged}}


BEFORE = {name: {"tx_bytes": 1000, "rx_bytes": 1000} for name in PORTS}
TRUTH = counters(TRUTH_BITS_PER_S * 10 / 8)


def judge(told: JobOutcome, after: dict[str, Any] = TRUTH, asked: RoundRequest | None = None) -> list[str]:
    asked = asked or request()
    found = find_contradicted_ports(asked, (told, told), PORTS, BEFORE, after)
    verdict = judge_round(asked, (told, told), (), Thresholds(), of_ports=found)
    assert verdict.valid is not bool(found)
    assert set(verdict.reasons) <= {Reason.CONTRADICTED}
    return [finding.text for finding in found]


def test_the_truth_is_valid() -> None:
    assert judge(outcome(TRUTH_BITS_PER_S)) == []


def test_two_clients_that_claim_more_than_their_port_carries_are_contradicted_by_link_and_counter() -> None:
    """Each alone is below the speed of the link."""
    said = judge(outcome(87.15e6))
    assert (
        "s0-device (s0) receiving: the tools say 217.9 MB together, and its link of 100 Mb/s carries 127.5 MB in 10.1 s"
    ) in said
    assert "s0-device (s0) receiving: the tools say 217.9 MB together, and only 122.8 MB passed through it" in said
    assert any(text.startswith("c0-device (c0) sending") for text in said)


@pytest.mark.parametrize("share", [1.1, 0.5])
def test_a_tenth_too_much_and_half_of_the_truth_are_contradicted(share: float) -> None:
    assert judge(outcome(share * TRUTH_BITS_PER_S))


def test_many_told_retransmissions_do_not_hide_half_of_the_truth() -> None:
    told = outcome(0.5 * TRUTH_BITS_PER_S, retransmissions=2000)
    assert judge(told.replace(figures=told.figures.replace(mss_bytes=1448)))


@pytest.mark.parametrize(("more", "ask", "is_found"), [
    ({"retransmissions": 3}, {}, True),
    ({"lost_datagrams": 0}, {"transport": "udp", "write_bytes": 1448}, True),
    ({}, {}, False),
])  # fmt: skip
def test_seven_tenths_are_contradicted_where_the_tool_tells_what_it_sent_again(
    more: dict[str, Any], ask: dict[str, Any], is_found: bool
) -> None:
    assert bool(judge(outcome(0.7 * TRUTH_BITS_PER_S, **more), asked=request(**ask))) is is_found


def test_seconds_that_a_tool_leaves_out_may_have_carried_more() -> None:
    asked = request()
    jobs = tuple(job.replace(options={"omit_s": 1.0}) for job in asked.jobs)
    told = outcome(0.7 * TRUTH_BITS_PER_S, retransmissions=0)
    assert judge(told, asked=asked.replace(jobs=jobs)) == []


def test_half_of_the_truth_says_what_passed() -> None:
    assert (
        "s0-device (s0) receiving: the tools say 58.75 MB, and 122.8 MB passed through it: more than headers and "
        "retransmissions explain; a tool says too little, or somebody else uses the port"
    ) in judge(outcome(0.5 * TRUTH_BITS_PER_S))


@pytest.mark.parametrize(
    ("told", "after", "ask"),
    [
        (outcome(1e6, 0.1), counters(1e6 * 0.1 / 8 + 300_000), {}),  # a small transfer beside other programs
        (outcome(20e6), counters(20e6 * 10 / 8, 1.4), {}),  # a third again, by a tool that does not tell it
        (outcome(20e6, retransmissions=5000), counters(20e6 * 10 / 8, 1.9), {}),
        (outcome(20e6), counters(20e6 * 10 / 8, 1.7), {"transport": "udp", "write_bytes": 64}),
        (outcome(40e6), counters(40e6 * 10 / 8, 0.995), {}),  # a tool that rounds
    ],
)
def test_what_is_no_lie_does_not_trip(told: JobOutcome, after: dict[str, Any], ask: dict[str, Any]) -> None:
    assert judge(told, after, request(**ask)) == []


def test_an_interface_that_was_read_before_and_cannot_be_read_any_more_is_named() -> None:
    gone = {name: counters for name, counters in TRUTH.items() if name != "c1"}
    found = find_lost_ports(request(), PORTS, {*PORTS}, gone)
    assert [(one.reason, one.text) for one in found] == [
        (Reason.PEER_FAILED, "c1-device (c1) can no longer be read: the interface is gone, or its host does not answer")
    ]
    assert find_lost_ports(request(), PORTS, {"s0", "c0"}, gone) == ()  # it never could be


def test_no_more_is_said_than_is_known() -> None:
    lie = outcome(0.5 * TRUTH_BITS_PER_S)
    assert judge(lie, {}) == []
    assert judge(lie, {name: {"tx_bytes": 0, "rx_bytes": 0} for name in PORTS}) == []
    assert judge(lie, TRUTH, request(transport="rdma")) == []
    failed = JobOutcome(failure="killed by signal 9")
    of_server = {"s0": TRUTH["s0"]}
    assert find_contradicted_ports(request(), (lie, failed), PORTS, BEFORE, of_server) == ()


# A tool and the monitor that both look at whole machines: agreement, or by how much they differ.


JOB = Job(workload="netperf", client="c0", server="s0", ask=JobSpec(), port=5201)
REQUEST = RoundRequest(jobs=(JOB,), duration_s=1.0)
MACHINES = {"c0": "client", "s0": "server"}


def notes(cpu: tuple[MachineCpu, ...], **figures: float) -> tuple[str, ...]:
    flow = Flow(direction="forward", received_bytes=1024 * 1_000_000)
    outcome = JobOutcome(figures=Figures(flows=(flow,), **figures))  # type: ignore[arg-type]
    (told,) = add_cpu_notes(REQUEST, (outcome,), cpu, MACHINES)
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
