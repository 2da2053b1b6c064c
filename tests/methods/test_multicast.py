"""Methods of multicast: the capacity and the delays of a known switch are found, and a wrong one is reported."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nicbench.core.headers import Burden, Groups
from nicbench.core.pattern import Pattern
from nicbench.core.reading import Arrivals, Counts
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import Latency, PortReading, Purpose, Reading, StreamReading, TrialRequest
from nicbench.methods._loads import TrialTimes
from nicbench.methods.multicast import MulticastLatency, MulticastThroughput, ports_objection
from nicbench.methods.multicast_membership import GroupTimes, MulticastCapacity, MulticastMembership
from nicbench.report.tables import sections

from .known import KnownContext, reading_of, run

PORTS = tuple(PortReading(name=f"t{port}") for port in range(4))


class Switch(KnownContext):
    """Keeps some groups, floods all with one more, or drops those; forwards between two delays, in nanoseconds."""

    ports, pattern = 4, Pattern.ONE_TO_MANY

    def __init__(
        self, keeps: int = 100, *, floods: bool = True, joins_ns: float | None = 0.0, leaves_ns: float = 0.0,
        unsent: int = 0, **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(**more)
        self.keeps, self.floods, self.joins_ns, self.leaves_ns = keeps, floods, joins_ns, leaves_ns
        self.unsent = unsent

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        groups = request.groups
        too_many = max(0, groups.groups - self.keeps)
        lost = 0 if self.floods else too_many
        flooded = groups.groups if self.floods and too_many else 0
        sent = request.frames or 1000
        counts = Counts(intended=sent, sent=sent, received=sent - lost, lost=lost)
        seen = Counts(intended=sent, sent=sent, received=flooded, lost=sent - flooded)
        join = Counts(intended=1, sent=1 - self.unsent, unsent_tester=self.unsent, received=0, lost=1)
        data = StreamReading(name="0->1", counts=counts, arrivals=self._arrivals(request), latency=self._latency())
        other = StreamReading(name="0->2", counts=counts, latency=self._latency(2_000))
        beside = (StreamReading(name="0->2 watched", counts=seen), StreamReading(name="1->0 0 join", counts=join))
        members = [data, other] if groups.members > 1 else [data]
        return reading_of(request.duration_s, members, beside=beside, ports=PORTS)

    def _arrivals(self, request: TrialRequest) -> Arrivals | None:
        """Frames come at multiples of the interval, from the join on and until after the leave."""
        groups = request.groups
        if groups is None or groups.leave_s is None or self.joins_ns is None:
            return None
        every_ns = 1e9 / (request.load_frames_per_s or 1.0)
        begins_ns, ends_ns = 1e9 * groups.join_s + self.joins_ns, 1e9 * groups.leave_s + self.leaves_ns
        first = -(-begins_ns // every_ns) * every_ns
        last = min(ends_ns, 1e9 * request.duration_s) // every_ns * every_ns
        return Arrivals(first_ns=round(first), last_ns=round(last))

    def _latency(self, more_ns: int = 0) -> Latency:
        times = {"minimum_ns": 900 + more_ns, "mean_ns": 1000.0 + more_ns, "maximum_ns": 5000 + more_ns}
        return Latency(source="software", count=10, percentiles_ns={"99": 3000 + more_ns}, **times)


async def capacity(switch: Switch, most: int = 500, attempts: int = 1) -> Result:
    options = MulticastCapacity.Options(most=most, trial=GroupTimes(attempts=attempts))
    (result,) = await run(MulticastCapacity("groups", options), switch)
    return result


def bounds(result: Result, name: str) -> Bounded:
    value = result.values[name]
    assert isinstance(value, Bounded)
    return value


async def test_what_a_disturbed_trial_lost_is_no_limit_of_the_table() -> None:
    switch = Switch(keeps=100)
    switch.disturbed = set(range(1, 1000))
    result = await capacity(switch)
    found = bounds(result, "capacity_groups")
    assert (result.verdict, found.upper, found.limited_by) == (ResultVerdict.DISTURBED, None, None)


@given(keeps=st.integers(1, 499), floods=st.booleans())
async def test_the_last_group_that_is_kept_is_found(keeps: int, floods: bool) -> None:
    result = await capacity(Switch(keeps, floods=floods))
    found = bounds(result, "capacity_groups")
    assert (found.value, found.upper) == (keeps, keeps + 1)
    assert (result.values["flooded_frames"], result.values["missing_frames"]) == ((keeps + 1, 0) if floods else (0, 1))


async def test_a_switch_that_keeps_more_has_a_bound_and_one_that_keeps_none_a_reason() -> None:
    assert bounds(await capacity(Switch(1000)), "capacity_groups").at_least
    none = bounds(await capacity(Switch(0)), "capacity_groups")
    assert none.reason_null == "not even one group went to its member alone"
    (section,) = sections([await capacity(Switch(300))], {})
    assert section.sentence == "keeps 300\u00a0groups"


async def test_a_report_that_was_not_sent_is_no_group_that_was_kept_and_none_that_was_not() -> None:
    none = bounds(await capacity(Switch(100, unsent=1)), "capacity_groups")
    assert (none.value, none.upper, none.limited_by) == (None, None, LimitedBy.TESTER)
    assert "the tester did not send the join" in str(none.reason_null)


async def test_groups_whose_frames_were_not_all_sent_are_not_kept_by_that() -> None:
    class Short(Switch):
        def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
            whole = super().read(point, request)
            (stream,) = whole.streams
            if stream.counts.intended < 50:
                return whole
            less = {"sent": stream.counts.sent - 1, "unsent_tester": 1, "received": stream.counts.received - 1}
            counts = stream.counts.replace(**less)
            return whole.replace(streams=(stream.replace(counts=counts),), counts=counts)

    found = bounds(await capacity(Short(1000)), "capacity_groups")
    assert (found.value, found.upper, found.limited_by) == (49, None, LimitedBy.TESTER)


async def membership(switch: Switch, rate: float = 1000.0) -> Result:
    options = MulticastMembership.Options(rate=rate, repetitions=3)
    (result,) = await run(MulticastMembership("delays", options), switch)
    return result


@example(joins_ns=0.0, leaves_ns=0.0, rate=180.0)  # the last frame is due at the leave, and rounds to the one before
@given(joins_ns=st.floats(0.0, 0.9e9), leaves_ns=st.floats(0.0, 4.9e9), rate=st.floats(100.0, 100_000.0))
async def test_both_delays_lie_in_their_intervals(joins_ns: float, leaves_ns: float, rate: float) -> None:
    result = await membership(Switch(joins_ns=joins_ns, leaves_ns=leaves_ns), rate)
    for name, known_ns in (("join_delay_ns", joins_ns), ("leave_delay_ns", leaves_ns)):
        found = bounds(result, name)
        assert found.lower is not None, found.reason_null
        assert found.upper is not None
        assert found.lower - 2.0 <= known_ns <= found.upper + 2.0
        assert found.upper - found.lower <= 1e9 / rate + 4.0


@pytest.mark.parametrize(
    ("switch", "name", "reason"),
    [
        (Switch(joins_ns=-1e8), "join_delay_ns", "frames came before the join: they are flooded"),
        (Switch(joins_ns=None), "join_delay_ns", "no frame came after the join"),
        (Switch(leaves_ns=9e9), "leave_delay_ns", "frames still came 5 s after the leave"),
        (Switch(leaves_ns=-5e8), "leave_delay_ns", "frames ended before the leave"),
        (Switch(unsent=1), "join_delay_ns", "a report of membership did not leave the tester"),
    ],
    ids=["floods", "does not join", "does not end", "ends early", "not asked"],
)
async def test_a_switch_that_does_otherwise_is_told(switch: Switch, name: str, reason: str) -> None:
    assert bounds(await membership(switch), name).reason_null == f"in 3 of 3 trials: {reason}"


async def test_latency_has_a_row_for_each_port_and_how_far_they_are_apart() -> None:
    options = MulticastLatency.Options(at="t", load=50.0)
    results = await run(MulticastLatency("latency", options), Switch(throughput=1000.0))
    assert [(one.parameters["port"], one.values["latency_mean_ns"]) for one in results] == [
        ("t1", 1000.0),
        ("t2", 3000.0),
    ]
    assert {one.values["ports_apart_ns"] for one in results} == {2000.0}


class Mixed(Switch):
    """Loses half of the frames to single stations, and a quarter of the burden, of which nothing is unsent."""

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        reading = super().read(point, request)
        half = Counts(intended=100, sent=100, received=50, lost=50)
        burden = Counts(intended=400, sent=400, received=300, lost=100)
        unicast = StreamReading(name="0->1 unicast", counts=half, latency=self._latency(9_000))
        beside = (*reading.beside, StreamReading(name="2->3 burden", counts=burden))
        counts = Counts.sum_of(stream.counts for stream in (*reading.streams, unicast))
        update = {"streams": (*reading.streams, unicast), "beside": beside, "counts": counts}
        return reading.replace(**update)


async def test_latency_is_of_frames_to_groups_and_the_burden_is_told_beside() -> None:
    switch = Mixed(throughput=1000.0, floods=False)
    options = MulticastLatency.Options(at="t", burden=Burden(rate=500.0), unicast=0.5)
    (result,) = await run(MulticastLatency("latency", options), switch)
    asked = switch.requests[0].groups
    assert (asked.members, asked.unicast) == (1, 0.5)
    told = [result.values[name] for name in ("latency_mean_ns", "burden_frames_per_s", "burden_loss_percent")]
    assert told == [1000.0, 500.0, 25.0]
    assert result.values["flooded_frames"] == 0


async def test_the_class_that_was_lost_first_is_told() -> None:
    switch = Mixed()
    request = TrialTimes().request(64, 1000.0, Purpose.SEARCH).replace(groups=Groups(groups=1, members=3))
    trial, _ = await switch.measure({}, request)
    result = Result(id="t/64", method="multicast-throughput", parameters={}, values={}, trials=(trial.id,))
    told = MulticastThroughput.table_values(result, {trial.id: trial})["lost_first"]
    assert told == (
        "at 1.000 kpps 0 of 2000 frames to groups and 50 of 100 to single stations, counted at the receiving ports"
    )


def test_a_burden_leaves_a_port_that_receives() -> None:
    options = MulticastMembership.Options(burden=Burden(rate=1000.0, ports=3))
    refused = MulticastMembership("m", options).objection(Switch())
    assert refused.next_step == "add ports (5 at least), or lower `ports` under `burden`"


def test_what_does_not_suit_is_refused_with_a_way_out() -> None:
    switch = Switch()
    options = MulticastCapacity.Options(most=5000)
    assert MulticastCapacity("groups", options).objection(switch) is None
    switch.ip = 6
    refused = MulticastCapacity("groups", options).objection(switch)
    assert "reports of 70" in refused.message
    switch.pattern = Pattern.ONE_TO_ONE
    other = ports_objection(switch, MulticastMembership("m", MulticastMembership.Options())._groups)
    assert "one-to-many" in other.next_step
