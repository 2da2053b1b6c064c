"""Address caching: the capacity of a known table is found to the last address, whatever it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import PortReading, Reading, StreamReading, TrialRequest
from nicbench.methods.address_tables import AddressCaching, AddressTimes
from nicbench.report.tables import sections

from .known import KnownContext, reading_of, run


class Table(KnownContext):
    """Keeps so many addresses, floods frames to all others, or drops them; ``unsent`` learning frames never left."""

    bidirectional, ports = True, 4

    def __init__(self, keeps: int, *, floods: bool = True, unsent: int = 0, **more: Any) -> None:
        super().__init__(**more)
        self.keeps, self.floods, self.unsent = keeps, floods, unsent

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        assert request.macs is not None
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
    assert objection is not None
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


async def test_trials_of_a_run_from_before_flooded_frames_were_counted_apart_are_read_as_ever() -> None:
    class Earlier(Table):
        def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
            reading = super().read(point, request)
            ports = tuple(PortReading(name=port.name, foreign=port.misdirected) for port in reading.ports)
            return reading.replace(ports=ports)

    assert capacity_of(await measured(Earlier(300))).value == 300
