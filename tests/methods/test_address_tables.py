"""Address caching: the capacity of a known table is found to the last address, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.reading import Counts, TransmitGaps
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import PortReading, Reading, StreamReading, TrialRequest
from nicbench.methods.address_tables import AddressCaching, AddressLearning, AddressTimes
from nicbench.report.tables import sections

from .known import LINE, KnownContext, reading_of, run


class Table(KnownContext):
    """Keeps some addresses, floods frames to all others, or drops them; ``unsent`` learning frames never left."""

    bidirectional, ports = True, 4

    def __init__(self, keeps: int, *, floods: bool = True, unsent: int = 0, **more: Any) -> None:
        super().__init__(**more)
        self.keeps, self.floods, self.unsent = keeps, floods, unsent

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        number = request.macs.addresses
        unknown = number - min(self.keeps, number - self.unsent)
        lost = 0 if self.floods else unknown
        learning = Counts(intended=number, sent=number - self.unsent, unsent_tester=self.unsent,
                          received=number - self.unsent, lost=0)  # fmt: skip
        test = Counts(intended=number, sent=number, received=number - lost, lost=lost)
        streams = [StreamReading(name="0->1 learning", counts=learning), StreamReading(name="1->0 test", counts=test)]
        flooded = unknown if self.floods else 0
        ports = tuple(
            PortReading(name=f"t{port}", foreign=0, misdirected=flooded if port > 1 else 0) for port in range(4)
        )
        return reading_of(request.duration_s, streams, ports=ports)


async def measured(table: Table, most: int = 1000) -> Result:
    options = AddressCaching.Options(most=most, rate=10_000.0, trial=AddressTimes(ageing=2.0))
    (result,) = await run(AddressCaching("macs", options), table)
    return result


def capacity_of(result: Result) -> Bounded:
    value = result.values["capacity_addresses"]
    assert isinstance(value, Bounded)
    return value


@given(keeps=st.integers(1, 999), floods=st.booleans())
async def test_the_last_address_that_is_kept_is_found(keeps: int, floods: bool) -> None:
    result = await measured(Table(keeps, floods=floods))
    assert (capacity_of(result).value, capacity_of(result).upper) == (keeps, keeps + 1)
    gone = (result.values["flooded_frames"], result.values["missing_frames"])
    assert gone == ((1, 0) if floods else (0, 1))
    assert result.values["numbers_tried"] <= 11  # type: ignore[operator]


async def test_of_a_table_that_is_larger_than_what_was_tried_only_a_bound_is_known() -> None:
    result = await measured(Table(5000))
    assert capacity_of(result).at_least
    assert (capacity_of(result).value, result.values["numbers_tried"]) == (1000, 1)
    (section,) = sections([result], {})
    assert section.rows[0].cells[1] == "≥ 1\u202f000"


async def test_a_hub_keeps_nothing_and_it_is_said() -> None:
    value = capacity_of(await measured(Table(0)))
    assert (value.value, value.reason_null) == (None, "not even one address was known")


async def test_addresses_that_were_never_sent_from_are_not_charged_to_the_switch() -> None:
    assert capacity_of(await measured(Table(5000, unsent=3))).value == 1000


async def test_half_the_ageing_time_passes_on_either_side_of_a_trial_and_disturbances_are_said() -> None:
    table = Table(500, disturbed=[2])
    result = await measured(table)
    assert {request.settle_s for request in table.requests} == {1.0}
    assert (result.verdict, result.disturbances) == (ResultVerdict.DISTURBED, ("the worker was held up",))
    # Another trial, which nothing disturbed, failed at the bound.
    assert capacity_of(result).upper == 501
    result = await measured(Table(500, disturbed=range(1, 1000)))
    assert (capacity_of(result).upper, capacity_of(result).limited_by) == (None, None)


async def test_the_report_has_the_capacity() -> None:
    (section,) = sections([await measured(Table(300))], {})
    assert section.sentence == "keeps 300\u00a0addresses"
    assert section.rows[0].cells[:5] == ("64", "300", "301", "1", "0")


@pytest.mark.parametrize(("ports", "bidirectional", "said"), [(2, True, "third port"), (4, False, "one way")])
def test_it_needs_a_third_port_and_both_ways(ports: int, bidirectional: bool, said: str) -> None:
    table = Table(1)
    table.ports, table.bidirectional = ports, bidirectional  # type: ignore[misc]
    objection = AddressCaching("macs", AddressCaching.Options()).objection(table)
    assert said in objection.message


def test_addresses_that_would_age_before_they_are_tested_are_refused() -> None:
    with pytest.raises(ValueError, match=r"write `rate` above 1.000 kpps, or fewer addresses"):
        AddressCaching.Options(most=1000, rate=900.0, trial=AddressTimes(ageing=2.0))


async def test_a_number_counts_as_not_kept_only_if_it_fails_twice() -> None:
    class Loses(Table):
        """Loses a frame of every third trial for another reason."""

        def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
            kept = self.keeps
            self.keeps = kept if len(self.requests) % 3 else kept - 1
            try:
                return super().read(point, request)
            finally:
                self.keeps = kept

    assert capacity_of(await measured(Loses(1000))).at_least
    for keeps in (17, 400, 998):
        assert capacity_of(await measured(Loses(keeps))).value == keeps


class Talkative(Table):
    """Sends a frame of its own every two seconds on each port, as spanning tree does."""

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        reading = super().read(point, request)
        own = round((request.duration_s + request.drain_s) / 2.0)
        ports = tuple(port.replace(foreign=(port.foreign or 0) + own) for port in reading.ports)
        return reading.replace(ports=ports)


@pytest.mark.parametrize("keeps", [300, 5000])
async def test_frames_of_the_switch_itself_change_nothing(keeps: int) -> None:
    quiet, talkative = Table(keeps), Talkative(keeps)
    assert await measured(talkative) == await measured(quiet)
    assert talkative.requests == quiet.requests


# Address learning: the rate of a switch that learns a known number of addresses a second is found within its interval.


class Learner(KnownContext):
    """Learns ``rate`` addresses a second and forgets those that come faster; frames to these are flooded.

    Frames leave ``denser`` times as fast as is asked for, in bursts of ``burst``, from ``workers`` at once.
    """

    bidirectional, ports = True, 4

    def __init__(self, rate: float, *, denser: float = 1.0, burst: int = 1, workers: int = 1, **more: Any) -> None:
        super().__init__(**more)
        self.rate, self.denser, self.burst, self.workers = rate, denser, burst, workers

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
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


async def measured_of_address_learning(learner: Learner) -> Result:
    options = AddressLearning.Options(addresses=1000, test_rate=10_000.0, trial=AddressTimes(ageing=2.0))
    (result,) = await run(AddressLearning("learning", options), learner)
    return result


def rate_of(result: Result) -> Bounded:
    value = result.values["learning_rate_frames_per_s"]
    assert isinstance(value, Bounded)
    return value


@given(rate=st.floats(10_000.0, 900_000.0))
async def test_the_rate_lies_in_an_interval_of_the_asked_width(rate: float) -> None:
    found = rate_of(await measured_of_address_learning(Learner(rate, ceiling=1e6)))
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= rate <= found.upper * (1 + 1e-3)  # of a thousand addresses less than one may be forgotten
    assert found.upper - found.lower <= 0.01 * found.upper
    assert found.limited_by is LimitedBy.DUT


async def test_a_switch_that_learns_faster_than_the_tester_sends_has_at_least_that_rate() -> None:
    result = await measured_of_address_learning(Learner(1e9, ceiling=1e6))
    assert (rate_of(result).at_least, rate_of(result).limited_by) == (True, LimitedBy.TESTER)
    (section,) = sections([result], {})
    assert section.sentence == "learns 1\u202f000\u00a0addresses from frames at at least 990\u00a0kpps"


@pytest.mark.parametrize("workers", [1, 4])
async def test_the_rate_is_that_at_which_frames_left_and_not_the_one_that_was_asked_for(workers: int) -> None:
    """A sender that was away makes good what is due: a thousand frames may leave within that time."""
    passed = rate_of(await measured_of_address_learning(Learner(1e9, denser=0.5, workers=workers, ceiling=1e6)))
    assert passed.value == pytest.approx(495e3)
    assert passed.at_least
    found = rate_of(await measured_of_address_learning(Learner(200e3, denser=1.25, workers=workers, ceiling=1e6)))
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= 200e3 <= found.upper * 1.001
    assert found.upper - found.lower <= 0.011 * found.upper


async def test_frames_in_bursts_may_have_left_at_a_range_of_rates_which_the_interval_holds() -> None:
    found = rate_of(await measured_of_address_learning(Learner(200e3, burst=50, ceiling=1e6)))
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower <= 200e3 <= found.upper
    assert found.upper > 205e3  # a burst of 50 is 5 % of 1000 frames


@pytest.mark.parametrize("rate", [1e9, 0.0])
async def test_of_frames_that_left_at_once_no_rate_is_claimed(rate: float) -> None:
    found = rate_of(await measured_of_address_learning(Learner(rate, burst=1000, ceiling=1e6)))
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

    found = rate_of(await measured_of_address_learning(Wavering(0.0, ceiling=1e6)))
    assert (found.value, found.limited_by) == (None, None)
    assert "kept at higher rates than some at which they were not" in str(found.reason_null)


async def test_what_went_wrong_in_disturbed_trials_is_no_limit_of_the_switch() -> None:
    found = rate_of(await measured_of_address_learning(Learner(100e3, ceiling=1e6, disturbed=range(1, 1000))))
    assert (found.upper, found.limited_by) == (None, None)


async def test_a_switch_that_learns_nothing_has_no_rate() -> None:
    result = await measured_of_address_learning(Learner(0.0))
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

    assert (
        rate_of(await measured_of_address_learning(Dropping(0.0))).reason_null
        == "frames were missing at every rate that was tried"
    )
