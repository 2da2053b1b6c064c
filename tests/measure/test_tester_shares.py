"""A tester that sends a constant share of what it is asked for: its trials are valid, at the load that was sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.core.judging import Thresholds
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import Reading
from nicbench.measure.trial_verdict import Evidence, judge
from nicbench.methods.loss import FrameLoss

from .fake_tester import FakeTester
from .rig import TIMES, Rig

DUT = 4e6
every_search = pytest.mark.parametrize("search", ["guided", "mlr", "step-down"])
shares = pytest.mark.parametrize("share", [0.6, 0.997, 0.9985])


def rate_of(result: Result, name: str = "ndr_frames_per_s") -> Bounded:
    rate = result.values[name]
    assert isinstance(rate, Bounded)
    return rate


@every_search
@shares
async def test_a_search_gives_the_rate_of_the_dut_and_one_sentence(search: str, share: float) -> None:
    rig = Rig(FakeTester(DUT, sent_share=share))
    result = await rig.throughput(search)
    assert rate_of(result).value == pytest.approx(DUT, rel=0.012)
    assert rate_of(result).limited_by is LimitedBy.DUT
    assert result.verdict is ResultVerdict.VALID
    assert result.values["ceiling_frames_per_s"] is None
    assert not rig.ceilings
    said = f"the tester sent {100 * share:.4g} % of what it was asked for at every load"
    assert all(said in text for text in result.disturbances if "the tester" in text)
    assert any(said in text for text in result.disturbances)


@every_search
async def test_a_ceiling_is_still_a_ceiling_and_published(search: str) -> None:
    rig = Rig(FakeTester(100e6, ceiling_frames_per_s=5e6))
    result = await rig.throughput(search)
    assert rate_of(result).limited_by is LimitedBy.TESTER
    assert rate_of(result).value == pytest.approx(5e6, rel=0.02)
    assert [event.ceiling_frames_per_s for event in rig.ceilings] == [pytest.approx(5e6)]
    assert not any("of what it was asked for" in text for text in result.disturbances)


async def test_a_method_without_a_search_offers_its_load_as_far_as_the_line_carries_what_is_asked_for() -> None:
    rig = Rig(FakeTester(DUT, sent_share=0.6))
    options = FrameLoss.Options(frame_bytes=(64,), trial=TIMES)
    results = [rig.context.complete(result) for result in await FrameLoss("t", options).run(rig.context)]
    line_rate = 14_880_952.38
    loads = {round(result.values["percent_of_line_rate"]): result for result in results}  # type: ignore[arg-type]
    half = loads[50]
    assert half.values["offered_frames"] == pytest.approx(0.5 * line_rate, rel=1e-3)
    assert half.values["loss_percent"] == pytest.approx(100 * (1 - DUT / (0.5 * line_rate)), rel=1e-2)
    assert half.verdict is ResultVerdict.VALID
    assert all("60 % of what it was asked for" in " ".join(result.disturbances) for result in results if result.trials)
    assert not rig.ceilings


@pytest.mark.parametrize(("unsent", "valid"), [(400_000, True), (430_000, True), (500_000, False), (0, True)], ids=str)
def test_what_the_tester_always_falls_short_by_is_no_disturbance_and_more_is(
    reading: Callable[..., Reading], unsent: int, valid: bool
) -> None:
    evidence = Evidence.of(reading(sent=1_000_000 - unsent, unsent_tester=unsent), sent_share=0.6)
    assert judge(evidence, Thresholds()).valid is valid
