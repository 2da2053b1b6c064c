"""From samples to an outcome, by hand."""

from __future__ import annotations

import pytest

from nicbench.core.reading import Counts
from nicbench.core.result import LimitedBy
from nicbench.search._interval import bounds_so_far, outcome_of
from nicbench.search.base import NDR, PDR, Limits, Outcome, Sample

LIMITS = Limits(
    minimum_load_frames_per_s=10_000,
    maximum_load_frames_per_s=1_000_000,
    maximum_limited_by=LimitedBy.LINE_RATE,
    precision=0.05,
    trial_duration_s=1.0,
    maximum_trials=8,
)


def sample(load: int, lost: int, *, duration_s: float = 1.0, valid: bool = True, name: str = "t") -> Sample:
    frames = int(load * duration_s)
    counts = Counts(intended=frames, sent=frames, received=frames - lost, lost=lost)
    return Sample(load_frames_per_s=load, duration_s=duration_s, counts=counts, valid=valid, trial_ids=(name,))


def ndr(*samples: Sample, limits: Limits = LIMITS) -> Outcome:
    return outcome_of(samples, NDR, limits)


def bounds(outcome: Outcome) -> tuple[float | None, float | None]:
    return outcome.rate.lower, outcome.rate.upper


def test_the_interval_is_the_highest_load_that_passed_and_the_lowest_that_failed() -> None:
    outcome = ndr(sample(1_000_000, 9), sample(500_000, 0), sample(750_000, 1), sample(625_000, 0))
    assert outcome.outcome == "interval"
    assert bounds(outcome) == (625_000, 750_000)
    assert outcome.rate.value == 625_000
    assert outcome.rate.limited_by is LimitedBy.DUT
    assert not outcome.converged
    assert "16.7 % wide" in outcome.notes[0]


def test_an_interval_within_the_precision_is_converged() -> None:
    assert ndr(sample(500_000, 0), sample(520_000, 1)).converged


def test_one_failure_outweighs_one_pass_above_it() -> None:
    outcome = ndr(sample(400_000, 0), sample(500_000, 1), sample(600_000, 0), sample(700_000, 3))
    assert bounds(outcome) == (400_000, 500_000)
    assert [one.load_frames_per_s for one in outcome.contradictions] == [600_000]
    assert outcome.contradictions[0].passed


def test_a_lone_loss_far_below_loads_that_pass_again_and_again_is_outvoted_and_listed() -> None:
    outcome = ndr(
        sample(400_000, 1, name="odd"), *(sample(load, 0) for load in (500_000, 600_000, 690_000)), sample(700_000, 3)
    )
    assert bounds(outcome) == (690_000, 700_000)
    assert [one.trial_ids for one in outcome.contradictions] == [("odd",)]
    assert any("outvoted" in note for note in outcome.notes)


def test_a_load_that_fails_as_often_as_it_passes_is_no_lower_bound() -> None:
    assert bounds(ndr(sample(400_000, 0), sample(500_000, 0), sample(500_000, 1))) == (400_000, 500_000)


def test_a_dut_that_passes_the_maximum_has_at_least_that_rate_and_says_what_bounded_it() -> None:
    outcome = ndr(sample(1_000_000, 0))
    assert (outcome.outcome, outcome.converged) == ("at_least", True)
    assert bounds(outcome) == (1_000_000, None)
    assert outcome.rate.limited_by is LimitedBy.LINE_RATE


def test_a_pass_below_an_untried_maximum_does_not_say_what_limits_the_dut() -> None:
    outcome = ndr(sample(500_000, 0))
    assert (outcome.outcome, outcome.converged, outcome.rate.limited_by) == ("at_least", False, None)


def test_nothing_that_passes_is_none_with_the_reason() -> None:
    outcome = ndr(sample(1_000_000, 1_000_000), sample(10_000, 10_000))
    assert (outcome.outcome, outcome.converged) == ("none", True)
    assert outcome.rate.value is None
    assert outcome.rate.upper == 10_000
    assert outcome.rate.reason_null == "passes nothing: no frame came back at 10000 frames/s, the lowest load tried"


def test_nothing_that_passes_above_the_minimum_says_that_the_trials_were_spent() -> None:
    outcome = ndr(sample(1_000_000, 5), sample(400_000, 5))
    assert not outcome.converged
    assert outcome.rate.reason_null is not None
    assert "spent before the minimum load" in outcome.rate.reason_null


def test_no_trial_is_no_rate() -> None:
    assert ndr().rate.reason_null == "no trial was made"


VALIDATED = LIMITS.model_copy(update={"validation_duration_s": 60.0})


def test_a_rate_is_settled_when_a_trial_of_full_length_confirmed_it() -> None:
    short = [sample(500_000, 0), sample(520_000, 1)]
    unconfirmed = ndr(*short, limits=VALIDATED)
    assert (unconfirmed.converged, unconfirmed.passed_for_s) == (False, 1.0)
    assert unconfirmed.notes == ("the trials were spent before one of 60 s could confirm the rate",)
    confirmed = ndr(*short, sample(500_000, 0, duration_s=60.0), limits=VALIDATED)
    assert (confirmed.converged, confirmed.passed_for_s) == (True, 60.0)
    assert bounds(confirmed) == (500_000, 520_000)


def test_after_a_failed_validation_a_short_pass_counts_for_nothing() -> None:
    failed = [sample(480_000, 0), sample(500_000, 0), sample(520_000, 1), sample(500_000, 9, duration_s=60.0)]
    passed = sample(450_000, 0, duration_s=60.0)
    outcome = ndr(*failed, passed, limits=VALIDATED)
    assert bounds(outcome) == (450_000, 500_000)
    assert not outcome.contradictions
    assert "shorter trials met the goal and one of 60 s did not" in outcome.notes[-1]


def test_where_no_long_trial_passed_before_the_end_the_short_ones_are_reported_as_what_they_are() -> None:
    outcome = ndr(sample(480_000, 0), sample(500_000, 0), sample(500_000, 9, duration_s=60.0), limits=VALIDATED)
    assert bounds(outcome) == (480_000, 500_000)
    assert (outcome.converged, outcome.passed_for_s) == (False, 1.0)
    assert "could confirm the rate" in outcome.notes[-1]


def test_a_validation_that_failed_once_and_passed_twice_has_passed() -> None:
    long = [sample(500_000, lost, duration_s=60.0) for lost in (5, 0, 0)]
    outcome = ndr(sample(500_000, 0), sample(520_000, 1), *long, limits=VALIDATED)
    assert outcome.converged
    assert bounds(outcome) == (500_000, 520_000)


def test_goals_read_the_same_samples_differently() -> None:
    samples = [sample(500_000, 0), sample(600_000, 3_000), sample(620_000, 3_200)]
    assert bounds(outcome_of(samples, NDR, LIMITS)) == (500_000, 600_000)
    assert bounds(outcome_of(samples, PDR, LIMITS)) == (600_000, 620_000)


def test_back_pressure_of_the_dut_is_its_loss_and_the_testers_shortfall_is_not() -> None:
    def counts(**unsent: int) -> Sample:
        counts = Counts(intended=100_000, sent=99_900, received=99_900, lost=0, **unsent)
        return Sample(load_frames_per_s=100_000, duration_s=1.0, counts=counts)

    assert not NDR.passed_by(counts(unsent_backpressure=100))
    assert NDR.passed_by(counts(unsent_tester=100))


@pytest.mark.parametrize(("valid", "disturbed"), [(True, False), (False, True)])
def test_an_outcome_is_disturbed_when_a_trial_that_decides_it_is(valid: bool, disturbed: bool) -> None:
    decided = ndr(sample(500_000, 0, valid=valid, name="low"), sample(520_000, 1, name="high"))
    assert decided.disturbed is disturbed
    assert decided.deciding_trial_ids == ("low", "high")


def test_a_disturbed_trial_that_decides_nothing_does_not_taint_the_outcome() -> None:
    assert not ndr(sample(300_000, 0, valid=False), sample(500_000, 0), sample(520_000, 1)).disturbed


def test_an_upper_bound_is_raised_by_the_testers_longest_pause() -> None:
    failed = sample(200_000, lost=10).model_copy(update={"pacing_uncertainty": 0.001})
    outcome = ndr(sample(199_000, 0), failed)
    assert outcome.rate.lower == 199_000
    assert outcome.rate.upper == pytest.approx(200_200)


def test_whoever_watches_a_search_is_not_shown_a_load_that_was_not_sent_as_one_that_passes() -> None:
    """Of 900 000 frames the tester sent 300 000, which the DUT passed; of the last trial it sent none."""
    counts = Counts(intended=900_000, sent=300_000, unsent_tester=600_000, received=300_000, lost=0)
    short = sample(900_000, 0).model_copy(update={"counts": counts, "valid": False})
    none = sample(950_000, 0).model_copy(
        update={"counts": Counts(intended=950_000, sent=0, unsent_tester=950_000, received=0, lost=0)}
    )
    assert bounds_so_far([sample(500_000, 9), short, none], NDR, LIMITS) == (300_000, 500_000)
