"""What makes a trial invalid, and what may never matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nicbench.core.clocks import ClockMapping
from nicbench.core.judging import Reason, Thresholds, Verdict
from nicbench.core.reading import Counts, Stamps
from nicbench.core.trial import CpuTime, Health, PortReading, Reading, WorkerHealth
from nicbench.measure.trial_verdict import Evidence, judge

MakeReading = Callable[..., Reading]
MakeCpu = Callable[..., CpuTime]


def stamps(**changes: int) -> Stamps:
    """A card's clock that did nothing wrong, with these changes."""
    zero = dict.fromkeys(
        ("readings", "outliers", "steps", "stamped", "unstamped", "implausible", "early", "early_maximum_ns"), 0
    )
    return Stamps(source="card", **{**zero, **changes})


def verdict_on(reading: Reading, thresholds: Thresholds | None = None) -> Verdict:
    return judge(Evidence.of(reading, dut_cpus={1}), thresholds or Thresholds())


def test_a_quiet_trial_is_valid_however_much_the_dut_lost(reading: MakeReading) -> None:
    assert verdict_on(reading(lost=900_000, received=100_000)).valid


@pytest.mark.parametrize(
    ("change", "reason", "says"),
    [
        ({"longest_gap_ns": 50_000_000}, Reason.DISTURBED, "stalled for 50.0 ms at a stretch"),
        ({"total_gap_ns": 80_000_000}, Reason.DISTURBED, "stalled for 8.0 % of the transmission"),
        ({"clock_step_ns": -3_000_000}, Reason.CLOCK_STEP, "moved by 3.000 ms"),
        ({"unsent_tester": 20_000, "sent": 980_000}, Reason.UNSENT, "did not send 2.0 %"),
        ({"receive_overrun": 500}, Reason.RECEIVE_OVERRUN, "own port t0 dropped 500 arriving frames"),
        ({"link_changed": True}, Reason.LINK_CHANGED, "link of the tester's port t0"),
        ({"timestamps": stamps(steps=2)}, Reason.CLOCK_STEP, "stamps the frames of port t0 was set 2 times"),
    ],
)
def test_one_disturbance_gives_one_finding_in_plain_words(
    reading: MakeReading, change: dict[str, Any], reason: Reason, says: str
) -> None:
    verdict = verdict_on(reading(**change))
    assert verdict.reasons == (reason,)
    assert says in verdict.findings[0].text


@pytest.mark.parametrize(("step_ns", "is_valid"), [(0.0, True), (90_000.0, True), (1_000_000.0, False)])
def test_a_clock_of_two_tester_machines_that_left_its_line_makes_a_trial_invalid(
    reading: MakeReading, step_ns: float, is_valid: bool
) -> None:
    mapping = ClockMapping(
        by="test links",
        offset_ns=0,
        drift_ppm=0.0,
        asymmetry_bound_ns=5000.0,
        fit_error_ns=step_ns,
        step_ns=step_ns,
        comparisons=4,
    )
    verdict = verdict_on(reading().replace(clocks=mapping))
    assert verdict.valid == is_valid
    if not is_valid:
        assert verdict.reasons == (Reason.CLOCK_STEP,)
        assert "left the line between them by 1.000 ms" in verdict.findings[0].text


@pytest.mark.parametrize("link_changed", [True, False])
def test_a_link_that_a_reset_takes_down_spoils_nothing(reading: MakeReading, link_changed: bool) -> None:
    """What could not be sent meanwhile is no fault of the tester's; where the link stayed up it is."""
    read = reading(link_changed=link_changed, unsent_tester=20_000, sent=980_000)
    verdict = judge(Evidence.of(read, link_may_change=True), Thresholds())
    assert verdict.valid == link_changed
    assert Reason.LINK_CHANGED not in verdict.reasons


@pytest.mark.parametrize(
    ("busy", "threshold"),
    [
        ({"user": 1_600}, "dut_foreign_cpu_share"),
        ({"nice": 1_600}, "dut_foreign_cpu_share"),
        ({"steal": 300}, "dut_steal_share"),
    ],
)
def test_somebody_else_on_the_duts_core_disturbs_it(
    reading: MakeReading, cpu: MakeCpu, busy: dict[str, int], threshold: str
) -> None:
    verdict = verdict_on(reading(cpus=(cpu(0), cpu(1, **busy))))
    assert [finding.threshold for finding in verdict.findings] == [threshold]
    assert verdict.reasons == (Reason.DUT_DISTURBED,)
    assert "core 1" in verdict.findings[0].text


def test_a_neighbour_on_the_duts_physical_core_disturbs_it(reading: MakeReading, cpu: MakeCpu) -> None:
    shared = cpu(1).replace(speed_samples=50, slow_samples=20)
    (finding,) = verdict_on(reading(cpus=(cpu(0), shared))).findings
    assert (finding.threshold, finding.value) == ("dut_contended_share", 0.4)
    assert verdict_on(reading(cpus=(cpu(0), shared.replace(slow_samples=2)))).valid


def test_a_pause_of_the_duts_core_disturbs_it(reading: MakeReading, cpu: MakeCpu) -> None:
    paused = cpu(1).replace(longest_pause_ns=9_000_000)
    (finding,) = verdict_on(reading(cpus=(cpu(0), paused))).findings
    assert (finding.threshold, finding.value) == ("dut_pause_ms", 9.0)
    assert verdict_on(reading(cpus=(cpu(0), paused.replace(longest_pause_ns=2_000_000)))).valid


def test_interrupt_time_on_the_duts_core_is_its_own_work(reading: MakeReading, cpu: MakeCpu) -> None:
    assert verdict_on(reading(cpus=(cpu(1, softirq=5_000, irq=500),))).valid


def test_the_testers_own_core_may_be_busy(reading: MakeReading, cpu: MakeCpu) -> None:
    assert verdict_on(reading(cpus=(cpu(0, user=5_000), cpu(1)))).valid


def test_back_pressure_of_the_dut_is_not_the_testers_shortfall(reading: MakeReading) -> None:
    assert verdict_on(reading(unsent_backpressure=500_000, sent=500_000)).valid


def test_a_failed_peer_is_named(reading: MakeReading) -> None:
    verdict = judge(Evidence.of(reading(), peer_failure="b: connection closed"), Thresholds())
    assert verdict.reasons == (Reason.PEER_FAILED,)
    assert "b: connection closed" in verdict.findings[0].text


@pytest.mark.parametrize(
    ("lasting_s", "step_ns", "is_valid"),
    [
        (1, 1_010_000, True),
        (1, 1_030_000, False),
        (300, -1_215_000, True),
        (300, 6_900_000, True),
        (300, 7_100_000, False),
    ],
)
def test_clocks_that_nobody_set_may_drift_apart_by_the_length_of_the_trial(
    reading: MakeReading, lasting_s: int, step_ns: int, is_valid: bool
) -> None:
    verdict = verdict_on(reading(clock_step_ns=step_ns).replace(transmit_ns=lasting_s * 10**9))
    assert verdict.valid == is_valid
    if not is_valid:
        assert verdict.findings[0].limit == pytest.approx(1.0 + 0.02 * lasting_s)


def test_an_unknown_clock_step_is_no_finding(reading: MakeReading) -> None:
    assert verdict_on(reading(clock_step_ns=None)).valid


def test_a_bench_file_may_move_a_threshold(reading: MakeReading) -> None:
    assert verdict_on(reading(longest_gap_ns=50_000_000), Thresholds(longest_gap_ms=60.0)).valid


numbers = st.integers(min_value=0, max_value=2_000_000)


@given(
    unsent=st.integers(min_value=0, max_value=1_000_000),
    longest=st.integers(min_value=0, max_value=100_000_000),
    overrun=st.integers(min_value=0, max_value=100),
    fates=st.lists(st.tuples(numbers, numbers, numbers, numbers, numbers, numbers, numbers), min_size=2, max_size=2),
)
def test_a_verdict_never_depends_on_what_was_lost_received_or_corrupted(
    unsent: int, longest: int, overrun: int, fates: list[tuple[int, ...]]
) -> None:
    names = ("received", "lost", "unattributed", "duplicated", "reordered", "corrupted", "foreign")
    verdicts = []
    for fate in fates:
        reading = Reading(
            transmit_ns=1_000_000_000,
            counts=Counts(
                intended=1_000_000,
                sent=1_000_000 - unsent,
                unsent_tester=unsent,
                **dict(zip(names, fate, strict=True)),
            ),
            streams=(),
            ports=(PortReading(name="t0", foreign=fate[6], corrupted_unattributed=fate[5], receive_overrun=overrun),),
            latency=None,
            health=Health(
                longest_gap_ns=longest,
                total_gap_ns=longest,
                gap_floor_ns=100_000,
                gaps=1,
                iterations=1,
                idle_iterations=0,
            ),
            unexplained=fate[1],
        )
        verdicts.append(verdict_on(reading))
    assert verdicts[0] == verdicts[1]


@pytest.mark.parametrize(("each_ns", "is_valid"), [(15_000_000, True), (60_000_000, False)])
def test_each_of_several_workers_may_be_away_as_long_as_one_alone(
    each_ns: int, is_valid: bool, reading: Callable[..., Reading]
) -> None:
    worker = WorkerHealth(
        longest_gap_ns=1_000_000, total_gap_ns=each_ns, gaps=60, iterations=10**6, idle_iterations=10**5, sent=10**6
    )
    together = reading(workers=(worker,) * 4, total_gap_ns=4 * each_ns)
    assert verdict_on(together).valid is is_valid


def test_the_evidence_has_no_place_for_the_fate_of_a_frame() -> None:
    assert not set(Evidence.model_fields) & {"counts", "received", "lost", "corrupted", "late", "duplicated"}


def test_the_table_of_thresholds_can_be_printed_and_holds_no_zero() -> None:
    rows = Thresholds(longest_gap_ms=7.0).rows()
    assert [row.name for row in rows] == list(Thresholds.model_fields)
    assert (rows[0].value, rows[0].default, rows[0].unit) == (7.0, 20.0, "ms")
    assert all(row.default > 0 and row.unit and row.why for row in rows)


def test_a_threshold_of_zero_is_refused() -> None:
    with pytest.raises(ValidationError):
        Thresholds(longest_gap_ms=0.0)


def test_a_dut_in_user_space_that_others_kept_from_running_is_disturbed(reading: MakeReading) -> None:
    def waiting(share: float | None) -> Verdict:
        return verdict_on(reading().replace(dut_waiting_share=share))

    assert waiting(0.5).reasons == (Reason.DUT_DISTURBED,)
    assert "kept the DUT from running for 50.0 % of the trial" in waiting(0.5).findings[0].text
    assert waiting(0.01).valid
    assert waiting(None).valid


def test_what_a_lossless_port_refused_is_no_shortfall_of_the_tester(reading: MakeReading) -> None:
    refused = reading(unsent_backpressure=400_000, sent=600_000, received=600_000)
    assert verdict_on(refused).valid
    assert refused.counts.loss_ratio == pytest.approx(0.4)
