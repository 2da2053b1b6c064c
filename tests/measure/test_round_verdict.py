"""The verdict of a round: tools that failed, clients that began apart, CPUs that were taken away; never how much."""

from __future__ import annotations

import pytest

from nicbench.core.bond import LinkFailure, LinkFailureOutcome
from nicbench.core.judging import OF_ROUNDS, Reason, Thresholds
from nicbench.core.round import (
    Figures,
    Flow,
    Job,
    JobOutcome,
    JobSpec,
    MachineCpu,
    Placement,
    ProcessShare,
    RoundRequest,
)
from nicbench.measure.round_verdict import judge_round

REQUEST = RoundRequest(
    jobs=tuple(Job(workload="iperf3", client=f"c{n}", server="s0", ask=JobSpec(), port=5201 + 16 * n) for n in (0, 1)),
    duration_s=10.0,
)


def done(began_s: float, bits_per_s: float = 1e6) -> JobOutcome:
    flow = Flow(direction="forward", received_bits_per_s=bits_per_s)
    return JobOutcome(figures=Figures(flows=(flow,)), began_s=began_s)


@pytest.mark.parametrize("bits_per_s", [0.0, 1.0, 1e12])
def test_how_much_was_moved_is_no_reason(bits_per_s: float) -> None:
    assert judge_round(REQUEST, (done(0.0, bits_per_s), done(0.5)), (), Thresholds()).valid


def test_a_tool_that_failed_is_named_with_its_ends() -> None:
    verdict = judge_round(REQUEST, (done(0.0), JobOutcome(failure="no route to host")), (), Thresholds())
    assert verdict.reasons == (Reason.PEER_FAILED,)
    assert verdict.findings[0].text == "iperf3, c1 to s0: no route to host"


def test_clients_that_began_apart_are_no_measurement_of_both_together() -> None:
    verdict = judge_round(REQUEST, (done(0.0), done(1.5)), (), Thresholds())
    assert verdict.reasons == (Reason.DISTURBED,)
    assert "1.50 s late of 10 s" in verdict.findings[0].text


def test_stolen_cpus_disturb() -> None:
    cpu = (MachineCpu(machine="server", steal=0.2), MachineCpu(machine="client"))
    (finding,) = judge_round(REQUEST, (done(0.0), done(0.0)), cpu, Thresholds()).findings
    assert "20.0 % of the CPU time of server" in finding.text


def shared(
    strangers: float, idle: float, pressure: float | None = None, *greatest: tuple[str, float], cpus: int = 8
) -> MachineCpu:
    named = tuple(ProcessShare(user="stranger", name=name, share=share) for name, share in greatest)
    own = ProcessShare(user="own", name="iperf3", share=0.01)
    return MachineCpu(
        machine="local", cpus=cpus, strangers=strangers, idle=idle, pressure=pressure, processes=(own, *named)
    )


def test_a_stranger_that_took_half_of_a_small_machine_disturbs_and_is_named() -> None:
    cpu = (shared(0.48, 0.4, None, ("stress-ng", 0.48)), MachineCpu(machine="client"))
    (finding,) = judge_round(REQUEST, (done(0.0), done(0.0)), cpu, Thresholds()).findings
    assert finding.text == "stress-ng took 48.0 % of the CPU time of local"
    assert finding.reason is Reason.DISTURBED


def test_of_several_strangers_the_greatest_are_named_with_what_all_took() -> None:
    rows = (("cc1", 0.3), ("ld", 0.1), ("make", 0.05), ("sh", 0.01))
    (finding,) = judge_round(REQUEST, (done(0.0), done(0.0)), (shared(0.46, 0.1, 0.3, *rows),), Thresholds()).findings
    assert finding.text == (
        "programs outside the test took 46.0 % of the CPU time of local (cc1 30.0 %, ld 10.0 %, make 5.0 %, ...)"
    )


@pytest.mark.parametrize(
    ("strangers", "idle", "pressure", "valid"),
    [
        (0.04, 0.0, 0.5, True),  # the test itself keeps the machine busy
        (0.06, 0.7, 0.0, False),  # at times more CPUs are busy than there are cores
        (0.06, 0.9, 0.0, True),  # there is room for everybody, and nobody waited
        (0.06, 0.9, 0.02, False),  # there is room, and somebody waited nonetheless
        (0.06, 0.9, None, True),
        (0.06, 0.4, None, False),
        (0.2, 0.76, 0.001, True),
    ],
)
def test_strangers_disturb_where_cpus_were_short(
    strangers: float, idle: float, pressure: float | None, valid: bool
) -> None:
    cpu = (shared(strangers, idle, pressure),)
    assert judge_round(REQUEST, (done(0.0), done(0.0)), cpu, Thresholds()).valid is valid


def test_on_two_cpus_there_is_no_room_beside_the_test() -> None:
    assert not judge_round(REQUEST, (done(0.0), done(0.0)), (shared(0.06, 0.9, 0.0, cpus=2),), Thresholds()).valid


BOUND = RoundRequest(
    jobs=tuple(
        job.replace(client_placement=Placement(cpus=(4,)), server_placement=Placement(cpus=(8, 9)))
        for job in REQUEST.jobs
    ),
    duration_s=10.0,
)
ON_ONE_MACHINE = {"c0": "local", "c1": "local", "s0": "local"}


@pytest.mark.parametrize(
    ("cpu", "said"),
    [
        (4, ["stress-ng took 50.0 % of the time of CPU 4 of local, to which the client is bound"]),
        (9, ["stress-ng took 25.0 % of the time of CPUs 8-9 of local, to which the server is bound"]),
        (5, []),
    ],
)
def test_a_stranger_on_a_cpu_to_which_a_side_is_bound_disturbs_a_machine_with_room(cpu: int, said: list[str]) -> None:
    row = ProcessShare(user="stranger", name="stress-ng", share=0.5 / 64, on_cpus={cpu: 0.5 / 64})
    machine = MachineCpu(machine="local", cpus=64, strangers=0.5 / 64, idle=0.98, processes=(row,))
    outcomes = (done(0.0), done(0.0))
    verdict = judge_round(BOUND, outcomes, (machine,), Thresholds(), machines=ON_ONE_MACHINE)
    assert [finding.text for finding in verdict.findings] == said


def test_a_machine_that_nobody_told_apart_is_no_reason() -> None:
    assert judge_round(REQUEST, (done(0.0), done(0.0)), (MachineCpu(machine="local", mean=1.0),), Thresholds()).valid


def test_the_thresholds_that_the_report_prints_are_those_of_the_table() -> None:
    assert {row.name for row in Thresholds().rows()} >= OF_ROUNDS


FAILURE = LinkFailure(port="s0", link=2, after=3.0, lasts=4.0)
FAILED = LinkFailureOutcome(asked=FAILURE, link="s0p2", taken_down="p-s0p2 of switch", down_at_s=3.0, up_at_s=7.0)
WITH_FAILURE = REQUEST.replace(failure=FAILURE)


def links(**changes: int) -> dict[str, dict[str, int]]:
    return {"s0": {f"carrier_changes of {device}": count for device, count in changes.items()}}


def test_a_link_that_changes_by_itself_spoils_the_round() -> None:
    verdict = judge_round(REQUEST, (done(0.0), done(0.0)), (), Thresholds(), links(s0p3=1))
    assert verdict.reasons == (Reason.LINK_CHANGED,)
    assert verdict.findings[0].text == "the link of s0p3 (s0) went down or came up by itself, once"


def test_a_link_that_was_to_fail_spoils_nothing() -> None:
    ends = {**links(s0p2=2), "c0": {"carrier_changes of p-s0p2": 2}}
    assert judge_round(WITH_FAILURE, (done(0.0), done(0.0)), (), Thresholds(), ends, FAILED).valid


def test_beside_one_that_was_to_fail_another_one_still_does() -> None:
    verdict = judge_round(WITH_FAILURE, (done(0.0), done(0.0)), (), Thresholds(), links(s0p2=2, s0p4=2), FAILED)
    assert [finding.text for finding in verdict.findings] == [
        "the link of s0p4 (s0) went down or came up by itself, 2 times"
    ]


def test_one_that_was_to_fail_once_and_fell_again_is_told() -> None:
    verdict = judge_round(WITH_FAILURE, (done(0.0), done(0.0)), (), Thresholds(), links(s0p2=4), FAILED)
    assert not verdict.valid


@pytest.mark.parametrize(
    ("failed", "why"),
    [
        (None, "the round was over before"),
        (FAILED.replace(up_at_s=None), "the round was over before"),
        (FAILED.replace(down_at_s=None, trouble="RTNETLINK answers"), "RTNETLINK answers"),
    ],
)
def test_a_failure_that_did_not_take_place_is_no_measurement_of_one(
    failed: LinkFailureOutcome | None, why: str
) -> None:
    verdict = judge_round(WITH_FAILURE, (done(0.0), done(0.0)), (), Thresholds(), {}, failed)
    assert verdict.findings[0].text == f"link 2 of s0 did not go down and come back as asked: {why}"
