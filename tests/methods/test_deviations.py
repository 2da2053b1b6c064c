"""What a report must say of options that fall short of the RFC, and that it says nothing where they do not."""

from __future__ import annotations

import pytest

from nicbench.methods._loads import TrialTimes
from nicbench.methods.throughput import BESIDE_S, SearchChoice, Throughput


def deviations(search: SearchChoice, trial: TrialTimes | None = None) -> tuple[str, ...]:
    options = Throughput.Options(search=search, trial=trial or TrialTimes())
    return Throughput("throughput", options).deviations()


def test_a_search_by_the_letter_of_the_rfc_has_no_deviations() -> None:
    assert deviations(SearchChoice(trials_per_bound=1)) == ()


def test_more_trials_than_one_at_a_load_are_a_deviation() -> None:
    said = "up to 2 trials confirm each end of the interval, RFC 2544 section 26.1 uses one"
    assert deviations(SearchChoice()) == (said,)


NO_VALIDATION = SearchChoice(trials_per_bound=1, validation=0.0)


def test_each_time_that_is_shorter_than_the_rfcs_is_named() -> None:
    assert deviations(NO_VALIDATION, TrialTimes(duration=1.0, drain=0.2)) == (
        "trial duration 1 s, RFC 2544 section 24 asks for 60 s",
        "drain 0.2 s, RFC 2544 section 23 asks for 2 s",
    )


def test_short_trials_whose_answer_is_confirmed_by_a_long_one_are_no_deviation() -> None:
    assert deviations(SearchChoice(trials_per_bound=1), TrialTimes(duration=1.0)) == ()


def test_a_short_validation_trial_is_one() -> None:
    said = deviations(SearchChoice(trials_per_bound=1, validation=10.0), TrialTimes(duration=1.0))
    assert said == ("validation trial 10 s, RFC 2544 section 24 asks for 60 s",)


def test_the_time_that_is_said_to_be_the_most_holds_where_every_trial_has_to_be_long() -> None:
    times = TrialTimes(duration=1.0, drain=2.0, settle=5.0)
    search = SearchChoice(kind="step-down", maximum_trials=10)
    options = Throughput.Options(frame_bytes=(64,), search=search, trial=times)
    assert Throughput("throughput", options).estimate_s() == 10 * 72.0
    unvalidated = options.replace(search=search.replace(validation=0.0))
    assert Throughput("throughput", unvalidated).estimate_s() == 10 * 13.0


@pytest.mark.parametrize("kind", ["guided", "step-down"])
def test_the_time_that_is_given_is_the_most_for_all_sizes(kind: str) -> None:
    options = Throughput.Options(frame_bytes=(64, 512), search=SearchChoice(kind=kind, time=60.0))
    assert Throughput("throughput", options).estimate_s() == 60.0


def test_the_default_search_has_time_for_twelve_trials_at_each_size_and_the_validation_of_each_goal() -> None:
    times = TrialTimes(duration=1.0, drain=0.1, settle=0.1)
    short = Throughput.Options(frame_bytes=(64, 512), search=SearchChoice(validation=0.0), trial=times)
    assert Throughput("throughput", short).estimate_s() == pytest.approx(2 * 12 * (1.3 + BESIDE_S))
    validated = short.replace(search=SearchChoice())
    longer_s = Throughput("throughput", validated).estimate_s() - Throughput("throughput", short).estimate_s()
    assert longer_s == pytest.approx(2 * 2 * 60.0)


def test_each_frame_size_of_the_rfc_that_is_not_measured_is_named() -> None:
    options = Throughput.Options(frame_bytes=(64, 512, 1518, "imix"), search=SearchChoice(trials_per_bound=1))
    said = "no frames of 128, 256, 1024, 1280 bytes, RFC 2544 section 9.1 asks for seven"
    assert Throughput("throughput", options).deviations() == (said,)
