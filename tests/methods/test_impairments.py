"""Impairments: shares of what was counted, with their exact intervals, and the delays, from a known trial."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import Latency, Reading, StreamReading, TrialRequest
from nicbench.methods.impairments import Impairments
from nicbench.stats.intervals import share_interval

from .known import KnownContext, reading_of, run


class KnownPath(KnownContext):
    """Its counts and latency are given."""

    def __init__(self, counts: Counts, latency: Latency | None, **more: Any) -> None:
        super().__init__(**more)
        self.counts, self.latency = counts, latency

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        return reading_of(
            1.0, [StreamReading(name="0->1", counts=self.counts, checked_bytes=478)], latency=self.latency
        )


COUNTS = Counts(
    intended=10_000, sent=10_000, received=9_780, lost=200, corrupted=15, unattributed=5, duplicated=98, reordered=489
)
LATENCY = Latency(
    source="software", count=9_780, minimum_ns=1_000_100, mean_ns=1_050_000.0, maximum_ns=2_000_000,
    percentiles_ns={"50": 1_040_000, "99": 1_300_000, "99.9": 1_500_000},
)  # fmt: skip


async def measured(context: KnownPath, rate: float = 10_000.0) -> Result:
    method = Impairments("path", Impairments.Options(rate=rate, frame_bytes=(512,)))
    (result,) = await run(method, context)
    return result


async def test_each_fate_is_a_share_of_the_frames_that_could_have_it() -> None:
    values = (await measured(KnownPath(COUNTS, LATENCY))).values
    shares = {name: values[f"{name}_percent"] for name in ("lost", "duplicated", "reordered", "altered")}
    assert shares == {"lost": 2.0, "duplicated": 1.0, "reordered": 5.0, "altered": pytest.approx(20 / 98)}
    # By the definition: were the share the lower bound, so many or more would be lost in 2.5 % of the trials.
    lower, upper = values["lost_lower_percent"], values["lost_upper_percent"]
    assert isinstance(lower, float)
    assert isinstance(upper, float)
    assert binom.sf(199, 10_000, lower / 100) == pytest.approx(0.025)
    assert binom.cdf(200, 10_000, upper / 100) == pytest.approx(0.025)


async def test_delays_are_those_of_every_frame() -> None:
    values = (await measured(KnownPath(COUNTS, LATENCY))).values
    assert (values["latency_minimum_ns"], values["latency_p50_ns"], values["pdv_ns"]) == (1_000_100, 1_040_000, 499_900)


async def test_what_the_tester_does_not_know_is_unknown_and_not_zero() -> None:
    counts = COUNTS.replace(duplicated=None, corrupted=None)
    values = (await measured(KnownPath(counts, None))).values
    for name in ("duplicated_percent", "altered_percent", "latency_p50_ns"):
        value = values[name]
        assert isinstance(value, Bounded)
        assert value.value is None


async def test_where_nothing_comes_back_only_the_loss_is_known() -> None:
    nothing = Counts(intended=100, sent=100, received=0, lost=100)
    values = (await measured(KnownPath(nothing, None))).values
    assert values["lost_percent"] == 100.0
    assert isinstance(values["reordered_percent"], Bounded)
    assert values["reordered_percent"].reason_null == "no frame came back"


async def test_more_copies_than_frames_are_a_share_without_an_interval() -> None:
    counts = Counts(intended=100, sent=100, received=100, lost=0, duplicated=250)
    values = (await measured(KnownPath(counts, LATENCY))).values
    assert (values["duplicated_percent"], values["duplicated_upper_percent"]) == (250.0, None)


async def test_a_load_beyond_the_tester_is_lowered_and_said() -> None:
    result = await measured(KnownPath(COUNTS, LATENCY, ceiling=5_000.0), rate=10_000.0)
    assert result.values["load_frames_per_s"] == pytest.approx(5_000.0)
    assert "no more than" in str(result.values["load_lowered"])
    assert result.verdict is ResultVerdict.VALID


@given(draws=st.integers(1, 100_000), share=st.floats(0, 1), confidence=st.floats(0.5, 0.999))
def test_an_interval_holds_what_was_counted_and_widens_with_confidence(
    draws: int, share: float, confidence: float
) -> None:
    hits = round(draws * share)
    lower, upper = share_interval(hits, draws, confidence)
    assert 0.0 <= lower <= hits / draws <= upper <= 1.0
    wider = share_interval(hits, draws, 1.0 - (1.0 - confidence) / 2.0)
    assert wider[0] <= lower
    assert wider[1] >= upper


def test_of_no_draws_nothing_is_known() -> None:
    assert share_interval(0, 0) == (0.0, 1.0)
    assert share_interval(0, 1000)[1] == pytest.approx(0.0036821, abs=1e-6)
    with pytest.raises(ValueError, match="no share"):
        share_interval(2, 1)
