"""Address learning: the rate of a switch that learns so many addresses a second is found within its interval."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.reading import Counts, TransmitGaps
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.trial import PortReading, Reading, StreamReading, TrialRequest
from nicbench.methods.address_tables import AddressLearning, AddressTimes
from nicbench.report.tables import sections

from .known import LINE, KnownContext, reading_of, run


class Learner(KnownContext):
    """Learns ``rate`` addresses a second and forgets those that come faster; frames to these are flooded.

    Frames leave ``denser`` times as fast as is asked for, in bursts of ``burst``, from ``workers`` at once.
    """

    bidirectional, ports = True, 4

    def __init__(self, rate: float, *, denser: float = 1.0, burst: int = 1, workers: int = 1, **more: Any) -> None:
        super().__init__(**more)
        self.rate, self.denser, self.burst, self.workers = rate, denser, burst, workers

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.macs is not None
        number, sent_at = request.macs.addresses, request.macs.learning_frames_per_s * self.denser
        unknown = number - int(number * min(1.0, self.rate / sent_at))
        counts = Counts(intended=number, sent=number, received=number, lost=0)
        each = number // self.workers
        # From the first frame to the beginning of the last burst.
        sending_s = (each - self.burst) * self.workers / sent_at
        count = number - self.workers
        gaps = TransmitGaps(count=count, minimum_ns=0, mean_ns=1e9 * sending_s * self.workers / count, maximum_ns=1,
                            histogram="")  # fmt: skip
        learning = StreamReading(name="0->1 learning", counts=counts, transmit_gaps=gaps, maximum_burst=self.burst)
        streams = [learning, StreamReading(name="1->0 test", counts=counts)]
        ports = tuple(PortReading(name=f"t{port}", misdirected=unknown if port > 1 else 0) for port in range(4))
        return reading_of(request.duration_s, streams, ports=ports)


async def measured(learner: Learner) -> Result:
    options = AddressLearning.Options(addresses=1000, test_rate=10_000.0, trial=AddressTimes(ageing=2.0))
    (result,) = await run(AddressLearning("learning", options), learner)
    return result


def rate_of(result: Result) -> Bounded:
    value = result.values["learning_rate_frames_per_s"]
    assert isinstance(value, Bounded)
    return value


@given(rate=st.floats(10_000.0, 900_000.0))
async def test_the_rate_lies_in_an_interval_of_the_asked_width(rate: float) -> None:
    found = rate_of(await measured(Learner(rate, ceiling=1e6)))
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= rate <= found.upper * (1 + 1e-3)  # of a thousand addresses less than one may be forgotten
    assert found.upper - found.lower <= 0.01 * found.upper
    assert found.limited_by is LimitedBy.DUT


async def test_a_switch_that_learns_faster_than_the_tester_sends_has_at_least_that_rate() -> None:
    result = await measured(Learner(1e9, ceiling=1e6))
    assert (rate_of(result).at_least, rate_of(result).limited_by) == (True, LimitedBy.TESTER)
    (section,) = sections([result], {})
    assert section.sentence == "learns 1\u202f000\u00a0addresses from frames at at least 990\u00a0kpps"


@pytest.mark.parametrize("workers", [1, 4])
async def test_the_rate_is_that_at_which_frames_left_and_not_the_one_that_was_asked_for(workers: int) -> None:
    """A sender that was away makes good what is due: a thousand frames may leave within that time."""
    passed = rate_of(await measured(Learner(1e9, denser=0.5, workers=workers, ceiling=1e6)))
    assert passed.value == pytest.approx(495e3)
    assert passed.at_least
    found = rate_of(await measured(Learner(200e3, denser=1.25, workers=workers, ceiling=1e6)))
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= 200e3 <= found.upper * 1.001
    assert found.upper - found.lower <= 0.011 * found.upper


async def test_frames_in_bursts_may_have_left_at_a_range_of_rates_which_the_interval_holds() -> None:
    found = rate_of(await measured(Learner(200e3, burst=50, ceiling=1e6)))
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= 200e3 <= found.upper
    assert found.upper > 205e3  # a burst of 50 is 5 % of 1000 frames


@pytest.mark.parametrize("rate", [1e9, 0.0])
async def test_of_frames_that_left_at_once_no_rate_is_claimed(rate: float) -> None:
    found = rate_of(await measured(Learner(rate, burst=1000, ceiling=1e6)))
    assert (found.value, found.lower) == (None, None)
    said = "frames were flooded" if rate == 0.0 else "the frames that were learnt from left the tester at once"
    assert str(found.reason_null).startswith(said)
    assert found.upper == (LINE if rate == 0.0 else None)


async def test_a_rate_that_passed_above_one_that_failed_is_no_bound() -> None:
    class Wavering(Learner):
        """Sends what passes twice as fast as what fails."""

        def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
            assert request.macs is not None
            self.denser = 1.0 if request.macs.learning_frames_per_s > 300e3 else 8.0
            self.rate = 1e9 if self.denser > 1.0 else 0.0
            return super().read(point, request)

    found = rate_of(await measured(Wavering(0.0, ceiling=1e6)))
    assert (found.value, found.limited_by) == (None, None)
    assert "kept at higher rates than some at which they were not" in str(found.reason_null)


async def test_what_went_wrong_in_disturbed_trials_is_no_limit_of_the_switch() -> None:
    found = rate_of(await measured(Learner(100e3, ceiling=1e6, disturbed=range(1, 1000))))
    assert (found.upper, found.limited_by) == (None, None)


async def test_a_switch_that_learns_nothing_has_no_rate() -> None:
    result = await measured(Learner(0.0))
    assert rate_of(result).reason_null == "frames were flooded at every rate that was tried"


async def test_a_switch_that_drops_what_it_has_not_learnt_is_not_said_to_flood() -> None:
    class Dropping(Learner):
        def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
            reading = super().read(point, request)
            learning, test = reading.streams
            lost = test.counts.replace(received=test.counts.sent - 5, lost=5)
            ports = tuple(port.replace(misdirected=0) for port in reading.ports)
            streams = (learning, test.replace(counts=lost))
            return reading.replace(streams=streams, ports=ports)

    assert rate_of(await measured(Dropping(0.0))).reason_null == "frames were missing at every rate that was tried"
