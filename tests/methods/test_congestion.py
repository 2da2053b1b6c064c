"""Congestion control and microbursts: what a known switch does with a port that is sent too much is found."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nicbench.core.pattern import Pattern, ways_of
from nicbench.core.reading import Arrivals, Counts
from nicbench.core.result import Bounded, LimitedBy, Result, ResultVerdict
from nicbench.core.trial import Reading, StreamReading, TrialRequest
from nicbench.methods._loads import TrialTimes
from nicbench.methods.congestion import CongestionControl, Microburst
from nicbench.methods.throughput import Throughput
from nicbench.report.tables import sections
from nicbench.stages.plan import statements_of

from .known import KnownContext, reading_of, run


class Switch(KnownContext):
    """Ports that send at a rate, from a queue each, or from one that they share; with one output for all it blocks."""

    ports, sending_ports, pattern, bidirectional, most_line_rates = 4, 4, Pattern.FULL_MESH, True, 1.0

    def __init__(
        self, rate: float, queue: int = 0, *, shares: bool = False, blocks: bool = False, holds_back: bool = False,
        **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(**more)
        self.rate, self.queue, self.shares, self.blocks, self.holds_back = rate, queue, shares, blocks, holds_back

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        sent = defaultdict(float)
        frames = {one: one.frames or round(one.load_frames_per_s * request.duration_s) for one in request.ways}
        sending_s = max(number / one.load_frames_per_s for one, number in frames.items())
        for one, number in frames.items():
            sent[one.receive] += number
        queue = self.queue / len(sent) if self.shares else self.queue
        room = dict.fromkeys(sent, self.rate * sending_s + queue)
        passes = {port: min(1.0, room[port] / number) for port, number in sent.items()}
        if self.blocks:
            passes = dict.fromkeys(passes, min(passes.values()))
        streams = []
        for one, number in frames.items():
            received = int(number * passes[one.receive] + 1e-9)
            lost, unsent = (0, number - received) if self.holds_back else (number - received, 0)
            counts = Counts(
                intended=number, sent=number - unsent, unsent_backpressure=unsent, received=received, lost=lost
            )
            last_ns = round(1e9 * sent[one.receive] / self.rate)
            name = f"{one.transmit}->{one.receive}"
            streams.append(
                StreamReading(
                    name=name, counts=counts, arrivals=Arrivals(first_ns=0, last_ns=last_ns) if received else None
                )
            )
        return reading_of(sending_s, streams)


async def congested(switch: Switch, rate: float = 1000.0) -> Result:
    options = CongestionControl.Options(frame_bytes=(64,), rate=rate, trial=TrialTimes(duration=10.0))
    (result,) = await run(CongestionControl("congestion", options), switch)
    return result


@pytest.mark.parametrize(
    ("switch", "blocking", "back_pressure"),
    [
        (Switch(1000.0), "no", "no"),
        (Switch(1000.0, blocks=True), "yes", "no"),
        (Switch(1000.0, holds_back=True), "no", "yes"),
    ],
    ids=["queues of outputs", "one output", "back pressure"],
)
async def test_what_a_congested_port_costs_another_is_told(switch: Switch, blocking: str, back_pressure: str) -> None:
    result = await congested(switch)
    assert (result.values["head_of_line_blocking"], result.values["back_pressure"]) == (blocking, back_pressure)
    (section,) = sections([result], {})
    lost = "33.3" if blocking == "yes" else "0"
    assert section.sentence == (f"loses {lost}\u00a0% of the frames to a port that is free when another is congested")


async def test_the_congested_port_is_offered_half_as_much_again_as_it_carries() -> None:
    result = await congested(Switch(1000.0))
    assert result.values["congested_loss_percent"] == pytest.approx(100 / 3, abs=0.01)
    assert result.values["congested_rate_frames_per_s"] == pytest.approx(1000.0, abs=0.2)
    assert result.values["uncongested_rate_frames_per_s"] == pytest.approx(500.0)


async def test_a_port_that_carries_all_of_it_was_not_congested() -> None:
    result = await congested(Switch(1500.0))
    assert (result.verdict, result.values.get("back_pressure")) == (ResultVerdict.INCOMPLETE, None)
    assert "give a higher one" in str(result.values["why"])


async def test_a_load_that_cannot_be_sent_is_no_statement_of_the_switch() -> None:
    result = await congested(Switch(1000.0, ceiling=500.0))
    assert (result.verdict, result.values.get("head_of_line_blocking")) == (ResultVerdict.INCOMPLETE, None)


async def bursts(switch: Switch, receivers: tuple[int, ...], rate: float, most: int = 4096) -> tuple[Result, ...]:
    options = Microburst.Options(receivers=receivers, rate=rate, most=most, loss_verification=0)
    return await run(Microburst("bursts", options), switch)


def bounds(result: Result, name: str) -> Bounded:
    value = result.values[name]
    assert isinstance(value, Bounded)
    return value


@given(queue=st.integers(20, 1000), rate=st.floats(1000.0, 5000.0), shares=st.booleans())
async def test_the_buffer_of_a_port_lies_in_its_interval_shared_or_not(queue: int, rate: float, shares: bool) -> None:
    for result in await bursts(Switch(rate, queue, shares=shares), (1, 2), 20_000.0):
        held, receivers = bounds(result, "buffer_frames"), result.parameters["receivers"]
        known = queue / receivers if shares else queue
        assert held.lower is not None
        assert held.upper is not None
        assert held.lower - 1.0 <= known <= held.upper + 1.0
        longest = bounds(result, "burst_frames")
        assert longest.value is not None
        assert longest.value >= known - 3


async def test_a_switch_that_takes_every_burst_has_a_bound_and_one_that_takes_none_a_reason() -> None:
    (result,) = await bursts(Switch(1000.0, 10_000), (1,), 20_000.0)
    assert bounds(result, "burst_frames").at_least
    (none,) = await bursts(Switch(1.0, 0), (1,), 20_000.0)
    assert bounds(none, "burst_frames").reason_null == "even the shortest burst lost"


async def test_what_a_disturbed_burst_lost_is_no_limit_of_the_switch() -> None:
    switch = Switch(1000.0, 100)
    switch.disturbed = set(range(1, 1000))
    (result,) = await bursts(switch, (1,), 20_000.0)
    assert result.verdict is ResultVerdict.DISTURBED
    for name in ("burst_frames", "buffer_frames"):
        assert (bounds(result, name).upper, bounds(result, name).limited_by) == (None, None)


class ShortOfOne(Switch):
    """Its tester leaves one frame of a stream unsent where the stream has this number or more."""

    least = 2000

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        whole = super().read(point, request)
        last, *others = whole.streams[::-1]
        if last.counts.intended < self.least:
            return whole
        counts = last.counts
        less = {"sent": counts.sent - 1, "unsent_tester": 1, "received": counts.received - 1}
        streams = (*others, last.replace(counts=counts.replace(**less)))
        return reading_of(1.0, streams).replace(transmit_ns=whole.transmit_ns)


async def test_a_burst_that_the_tester_does_not_send_whole_is_no_limit_of_the_switch() -> None:
    (result,) = await bursts(ShortOfOne(1000.0, 100_000), (1,), 20_000.0, most=12_000)
    longest = bounds(result, "burst_frames")
    assert (longest.value, longest.upper, longest.limited_by) == (5997, None, LimitedBy.TESTER)
    assert bounds(result, "buffer_frames").upper is None


async def test_a_frame_that_the_tester_leaves_out_is_no_back_pressure() -> None:
    switch = ShortOfOne(1500.0)
    result = await congested(switch)
    assert (result.verdict, result.values.get("back_pressure")) == (ResultVerdict.INCOMPLETE, None)


@pytest.mark.parametrize("receivers", [(0,), (1, 1), (-1,)])
def test_numbers_of_receivers_that_mean_nothing_are_refused(receivers: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError):
        Microburst.Options(receivers=receivers)


def test_what_does_not_suit_is_refused_with_a_way_out() -> None:
    switch = Switch(1.0)
    switch.ports = 3
    refused = CongestionControl("c", CongestionControl.Options()).objection(switch)
    assert refused.message == "it needs 4 ports, and has 3"
    switch.pattern = Pattern.ONE_TO_ONE
    other = Microburst("b", Microburst.Options()).objection(switch)
    assert "full-mesh" in other.next_step


def test_a_report_does_not_say_that_every_way_is_loaded_where_tests_choose_theirs() -> None:
    mesh = ways_of(Pattern.FULL_MESH, 4)
    (only,) = statements_of(Pattern.FULL_MESH, mesh, [Microburst])
    assert only.startswith("The tests choose themselves which ports of full-mesh (fully meshed, ")
    chosen, *usual = statements_of(Pattern.FULL_MESH, mesh, [Microburst, Throughput])
    assert chosen.startswith("Some tests choose themselves")
    assert tuple(usual) == statements_of(Pattern.FULL_MESH, mesh, [Throughput])
