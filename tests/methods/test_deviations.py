"""What a report must say of options that fall short of the RFC, and that it says nothing where they do not."""

from __future__ import annotations

from nicbench.methods._trial_times import TrialTimes
from nicbench.methods.throughput import SearchChoice, Throughput


def deviations(search: SearchChoice, trial: TrialTimes | None = None) -> tuple[str, ...]:
    options = Throughput.Options(search=search, trial=trial or TrialTimes())
    return Throughput("throughput", options).deviations()


def test_a_search_by_the_letter_of_the_rfc_has_no_deviations() -> None:
    assert deviations(SearchChoice(trials_per_bound=1)) == ()


def test_a_majority_of_trials_is_a_deviation() -> None:
    said = "a bound is settled by the majority of 3 trials, RFC 2544 section 26.1 uses one"
    assert deviations(SearchChoice()) == (said,)


def test_each_time_that_is_shorter_than_the_rfcs_is_named() -> None:
    said = deviations(SearchChoice(trials_per_bound=1), TrialTimes(duration=1.0, drain=0.2))
    assert said == (
        "trial duration 1 s, RFC 2544 section 24 asks for 60 s",
        "drain 0.2 s, RFC 2544 section 23 asks for 2 s",
    )
