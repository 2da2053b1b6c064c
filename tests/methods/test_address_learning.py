"""Address learning: the rate of a switch that learns so many addresses a second is found within its interval."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.trial import PortReading, Reading, StreamReading, TrialRequest
from nicbench.methods.tables._addresses import AddressTimes
from nicbench.methods.tables.address_learning import AddressLearning
from nicbench.report.tables import sections

from .known import KnownContext, reading_of, run


class Learner(KnownContext):
    """Learns ``rate`` addresses a second and forgets those that come faster; frames to these are flooded."""

    bidirectional, ports = True, 4

    def __init__(self, rate: float, **more: Any) -> None:
        super().__init__(**more)
        self.rate = rate

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.macs is not None
        number, sent_at = request.macs.addresses, request.macs.learning_frames_per_s
        unknown = number - int(number * min(1.0, self.rate / sent_at))
        counts = Counts(intended=number, sent=number, received=number, lost=0)
        streams = [StreamReading(name=name, counts=counts) for name in ("0->1 learning", "1->0 test")]
        ports = tuple(PortReading(name=f"t{port}", foreign=unknown if port > 1 else 0) for port in range(4))
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
            lost = test.counts.model_copy(update={"received": test.counts.sent - 5, "lost": 5})
            ports = tuple(port.model_copy(update={"foreign": 0}) for port in reading.ports)
            streams = (learning, test.model_copy(update={"counts": lost}))
            return reading.model_copy(update={"streams": streams, "ports": ports})

    assert rate_of(await measured(Dropping(0.0))).reason_null == "frames were missing at every rate that was tried"
