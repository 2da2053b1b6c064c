"""Port shares: what each of 1 to N ports gets at once."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from nicbench.core.pattern import Pattern
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded
from nicbench.core.trial import Reading, StreamReading, TrialRequest
from nicbench.methods.port_shares import PortShares
from nicbench.report.tables import sections

from .known import KnownContext, reading_of, run

OPTIONS = PortShares.Options(frame_bytes=(64,), rate=400.0, repetitions=2)


class Limited(KnownContext):
    """Six ports in pairs, of which each passes no more than its limit."""

    ports, pattern = 6, Pattern.ONE_TO_ONE
    limits: tuple[int, ...] = (300, 200, 100)

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        return reading_of(1.0, [self.way(load.transmit, load.receive, load.load_frames_per_s) for load in request.ways])

    def way(self, transmit: int, receive: int, load: float) -> StreamReading:
        sent = round(load)
        passed = min(sent, self.limits[transmit // 2])
        counts = Counts(intended=sent, sent=sent, received=passed, lost=sent - passed)
        return StreamReading(name=f"{transmit}->{receive}", counts=counts)


async def test_the_shares_of_unequal_ports_are_found() -> None:
    results = await run(PortShares("shares", OPTIONS), Limited())
    together = {
        each.parameters["ports_at_once"]: each.values for each in results if each.parameters["part"] == "together"
    }
    assert set(together) == {1, 2, 3}
    index = together[3]["jain_index"]
    assert index.value == pytest.approx(600**2 / (3 * (300**2 + 200**2 + 100**2)))
    assert (together[3]["least_port"], together[3]["most_to_least"]) == ("port 4", 3.0)
    each_of_three = [each for each in results if each.id.startswith("shares/64/each/3/")]
    shares = [each.values["share_percent"] for each in each_of_three]
    assert [each.values["of_alone_percent"] for each in each_of_three] == [100.0, 100.0, 100.0]
    assert shares == pytest.approx([50.0, 100.0 / 3.0, 100.0 / 6.0])
    assert [section.table.title for section in sections(results, {})] == ["Ports at once", "Share of each port"]


async def test_frames_that_a_lossless_port_refuses_were_offered_and_are_lost_once() -> None:
    class Refuses(Limited):
        def way(self, transmit: int, receive: int, load: float) -> StreamReading:
            offered, passed = round(load), self.limits[transmit // 2]
            refused = max(0, offered - passed)
            sent = offered - refused
            counts = Counts(intended=offered, sent=sent, unsent_backpressure=refused, received=sent, lost=0)
            return StreamReading(name=f"{transmit}->{receive}", counts=counts)

    results = await run(PortShares("shares", OPTIONS), Refuses())
    (three,) = (one.values for one in results if one.id == "shares/64/together/3")
    assert (three["offered_frames_per_s"], three["loss_percent"]) == (1200.0, 50.0)
    each = [one.values["loss_percent"] for one in results if one.id.startswith("shares/64/each/3/")]
    assert each == [25.0, 50.0, 75.0]


async def test_the_share_of_its_rate_alone_is_known_in_whatever_order_numbers_are_given() -> None:
    options = PortShares.Options(frame_bytes=(64,), rate=400.0, repetitions=1, at_once=(3, 1))
    results = await run(PortShares("shares", options), Limited())
    of_alone = [each.values["of_alone_percent"] for each in results if each.parameters["part"] == "each"]
    assert of_alone == [100.0] * 6
    for at_once in ((2, 2), (0,)):
        with pytest.raises(ValidationError):
            PortShares.Options(at_once=at_once)


async def test_ports_that_share_a_limit_get_less_beside_others_than_alone() -> None:
    class Shared(Limited):
        def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
            self.limits = (240 // len(request.ways),) * 3
            return super().read(point, request)

    results = await run(PortShares("shares", OPTIONS), Shared())
    first = [
        each.values for each in results if each.parameters["part"] == "each" and each.parameters["port"] == "port 0"
    ]
    assert [values["of_alone_percent"] for values in first] == pytest.approx([100.0, 50.0, 100.0 / 3.0])
    assert len(first) == 3
    sums = [each.values["sum_frames_per_s"] for each in results if each.parameters["part"] == "together"]
    assert [value.value for value in sums if isinstance(value, Bounded)] == [240.0, 240.0, 240.0]


async def test_a_port_that_gets_nothing_is_named() -> None:
    context = Limited()
    context.limits = (300, 0, 300)
    results = await run(PortShares("shares", OPTIONS), context)
    last = [each.values for each in results if each.parameters["part"] == "together"][-1]
    assert (last["least_port"], last["least_share_percent"], last["most_to_least"]) == ("port 2", 0.0, None)


def test_one_sending_port_or_more_than_there_are_is_refused() -> None:
    context = Limited()
    context.ports = 2
    assert "has all of its share" in str(PortShares("shares", OPTIONS).objection(context))
    context.ports = 6
    four = PortShares("shares", OPTIONS.replace(at_once=(1, 4)))
    assert "3 send" in str(four.objection(context))
    assert PortShares("shares", OPTIONS).objection(context) is None
