"""The self-check: a rate that was found beside one that is known."""

from __future__ import annotations

import pytest

from nicbench.core.result import Bounded
from nicbench.methods.throughput import known_rate_values
from nicbench.search.base import Outcome

from .known import KnownContext


class KnownRate(KnownContext):
    """Of a DUT that passes 200 kpps, and 4000 frames at once besides."""

    def known_rate_frames_per_s(self, trial_s: float) -> float:
        return 200_000.0 + 4_000 / trial_s

    def read(self, point: object, request: object) -> object:  # type: ignore[override]
        raise AssertionError("nothing is measured here")


def checked(lower: float | None, upper: float | None, *, passed_for_s: float | None = 2.0) -> tuple[object, object]:
    rate = Bounded(value=lower, lower=lower, upper=upper)
    outcome = Outcome(goal="NDR", rate=rate, is_settled=True, passed_for_s=passed_for_s)
    values = known_rate_values(KnownRate(), 64, outcome, 1.0)
    return values["agreement"], values["self_check"]


@pytest.mark.parametrize(
    ("lower", "upper", "agreement", "said"),
    [
        (201_500.0, 202_500.0, "agree", "found 201.5 to 202.5 kpps: agrees"),
        (201_200.0, 201_999.6, "agree", "found 201.2 to 202.0 kpps: agrees"),  # to a frame of a trial of 2 s
        (201_000.0, 201_900.0, "do not agree", "found 201.0 to 201.9 kpps: does not agree"),
        (202_100.0, 202_300.0, "do not agree", "found 202.1 to 202.3 kpps: does not agree"),
        (200_200.0, 204_700.0, "cannot be told", "found 200.2 to 204.7 kpps: cannot be told"),  # too wide
        (190_000.0, 195_000.0, "do not agree", "found 190.0 to 195.0 kpps: does not agree"),
        (210_000.0, None, "do not agree", "found at least 210.0 kpps: does not agree"),
        (150_000.0, None, "cannot be told", "found at least 150.0 kpps: cannot be told"),
        (None, None, "cannot be told", "found no rate: cannot be told"),
    ],
)
def test_an_interval_agrees_that_holds_the_known_rate_and_is_narrow(
    lower: float | None, upper: float | None, agreement: str, said: str
) -> None:
    assert checked(lower, upper) == (agreement, f"at 64 bytes expected 202.0 kpps, {said}")


def test_the_burst_counts_over_the_longest_trial_that_passed() -> None:
    assert "expected 200.1 kpps" in str(checked(200_000.0, 200_200.0, passed_for_s=60.0)[1])
    assert "expected 204.0 kpps" in str(checked(None, 210_000.0, passed_for_s=None)[1])


def test_of_other_duts_nothing_is_said() -> None:
    outcome = Outcome(goal="NDR", rate=Bounded(value=None), is_settled=False)

    class Unknown(KnownRate):
        def known_rate_frames_per_s(self, trial_s: float) -> None:  # type: ignore[override]
            return None

    assert known_rate_values(Unknown(), 64, outcome, 1.0) == {}
