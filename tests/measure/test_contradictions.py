"""A rate that a later trial contradicts is demoted, and says by which trial."""

from __future__ import annotations

from nicbench.core.judging import Finding, Reason, Verdict
from nicbench.core.pattern import WayLoad
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import Purpose, Reading, Trial, TrialRequest
from nicbench.measure.completing import with_contradictions
from nicbench.methods.throughput import Throughput

from ..methods.known import HEALTH

RATE = 100_000.0
METHODS = {("default", "throughput"): Throughput("throughput", Throughput.Options())}
NDR = Bounded(value=RATE, lower=RATE, upper=1.01 * RATE, limited_by=LimitedBy.DUT)
RESULT = Result(
    id="throughput/64",
    test="throughput",
    method="throughput",
    run=1,
    parameters={"frame_bytes": 64},
    values={"ndr_frames_per_s": NDR, "pdr_frames_per_s": NDR},
    trials=("t0001", "t0002"),
)
DISTURBED = Verdict(
    findings=(Finding(reason=Reason.DISTURBED, threshold="longest_gap_ms", value=30.0, limit=20.0, text="held up"),)
)


def trial(
    number: int,
    lost: int,
    *,
    load: float = RATE,
    frame_bytes: int = 64,
    purpose: Purpose = Purpose.LATENCY,
    verdict: Verdict | None = None,
) -> Trial:
    counts = Counts(intended=10_000, sent=10_000, received=10_000 - lost, lost=lost)
    return Trial(
        id=f"t{number:04d}",
        key=f"latency/{number}/0",
        test="latency",
        configuration="default",
        parameters={},
        repeat=0,
        request=TrialRequest(
            frame_bytes=frame_bytes, load_frames_per_s=load, duration_s=1, drain_s=0, settle_s=0, purpose=purpose
        ),
        verdict=verdict or Verdict(),
        reading=Reading(transmit_ns=10**9, counts=counts, streams=(), ports=(), latency=None, health=HEALTH),
    )


def judged(*trials: Trial) -> Result:
    (result,) = with_contradictions([RESULT], METHODS, trials)
    return result


def test_a_later_trial_that_lost_too_much_demotes_every_rate_that_it_breaks() -> None:
    result = judged(trial(3, 20))
    assert result.verdict is ResultVerdict.DISTURBED
    assert result.disturbances == (
        "NDR: contradicted by t0003 of latency, which lost 20 of 10000 frames (0.2 %) at 100.0 kpps",
    )
    limits = [value.limited_by for value in result.values.values() if isinstance(value, Bounded)]
    assert limits == [None, LimitedBy.DUT]  # 0.2 % is within what the PDR allows


def test_the_worst_trial_is_named_and_both_rates_fall() -> None:
    result = judged(trial(3, 20), trial(4, 400, load=0.5 * RATE), trial(5, 30))
    assert [text.partition(":")[0] for text in result.disturbances] == ["NDR", "PDR"]
    assert all("t0004" in text and "50.00 kpps" in text for text in result.disturbances)


def test_what_says_nothing_about_the_rate_leaves_it_as_it_is() -> None:
    others = (
        trial(1, 400),  # of the search itself, which settled it
        trial(3, 0),
        trial(4, 400, load=1.2 * RATE),
        trial(5, 400, frame_bytes=128),
        trial(6, 400, purpose=Purpose.BURST),
        trial(7, 400, verdict=DISTURBED),
    )
    assert judged(*others) == RESULT


def test_a_trial_that_overloads_one_port_on_purpose_contradicts_no_rate() -> None:
    ways = tuple(WayLoad(transmit=port, receive=2, load_frames_per_s=RATE) for port in (0, 1))
    overload = trial(3, 2500, purpose=Purpose.LOSS)
    mixed = overload.replace(request=overload.request.replace(ways=ways))
    assert judged(mixed) == RESULT
    assert judged(overload) != RESULT
