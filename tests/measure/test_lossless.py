"""A link that refuses instead of losing: what the DUT refused is its limit, what nobody sent is the tester's."""

from __future__ import annotations

import pytest

from nicbench.core.events import Bus
from nicbench.core.judging import Thresholds
from nicbench.core.pattern import Pattern, ways_of
from nicbench.core.result import Bounded, LimitedBy, Result
from nicbench.core.traffic import Traffic
from nicbench.core.trial import Reading, TrialRequest
from nicbench.measure.ceiling import Ceilings
from nicbench.measure.frame_context import LiveFrameContext, OfferedTraffic
from nicbench.measure.samples import SampleLog, TestSetting
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.methods._loads import TrialTimes
from nicbench.methods.single_core import SingleCore
from nicbench.methods.throughput import SearchChoice, Throughput
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.duts.simulated import Simulated, SimulatedOptions
from nicbench.testbed.labs.base import Testbed
from nicbench.testbed.testers.base import During
from nicbench.tuning.stack import UndoStack

from .fake_tester import FakeTester

TIMES = TrialTimes(duration=1.0, drain=0.1, settle=0.1)
DUT_MPPS, TESTER_MPPS = 4.0, 11.0
ONE_WAY = ways_of(Pattern.ONE_TO_ONE, 2)


class Lossless(FakeTester):
    """What the DUT cannot take is refused; beyond its own ceiling the tester sends nothing, whoever would take it."""

    async def trial(
        self, number: int, request: TrialRequest, addressing: tuple[Addressing, ...], during: During | None = None
    ) -> Reading:
        reading = await super().trial(number, request, addressing)
        counts = reading.counts
        taken = counts.replace(sent=counts.received, lost=0, unsent_backpressure=counts.lost)
        stream = reading.streams[0].replace(counts=taken)
        return reading.replace(counts=taken, streams=(stream,))


def context(tester: FakeTester) -> LiveFrameContext:
    bus = Bus()
    setup = TrialSetup(tester, Simulated(SimulatedOptions()))
    maker = TrialMaker(setup, Thresholds(), SampleLog({}, bus))
    testbed = Testbed(
        tester=None, dut=None, tester_ports=(), dut_ports=(), cores=CoreMap(0, (1,), (), False),  # type: ignore[arg-type]
        link_bits_per_s=10e9, link_is_nominal=True,
    )  # fmt: skip
    ceilings = Ceilings(maker, None, testbed, UndoStack("x", None), ONE_WAY)
    return LiveFrameContext(TestSetting("t", 1, 600.0), maker, ceilings, OfferedTraffic(Traffic(), ONE_WAY, 10e9))


async def throughput(tester: FakeTester, search: str) -> Bounded:
    choice = SearchChoice(kind=search, goals={"NDR": 0.0}, precision=0.01, trials_per_bound=1)
    options = Throughput.Options(frame_bytes=(64,), search=choice, trial=TIMES)
    (result,) = await Throughput("t", options).run(context(tester))
    rate = result.values["ndr_frames_per_s"]
    assert isinstance(rate, Bounded)
    return rate


@pytest.mark.parametrize("search", ["guided", "mlr"])
async def test_a_search_finds_the_rate_that_the_dut_takes_and_lays_the_limit_to_it(search: str) -> None:
    rate = await throughput(Lossless(DUT_MPPS * 1e6, TESTER_MPPS * 1e6), search)
    assert rate.limited_by is LimitedBy.DUT
    assert rate.value == pytest.approx(DUT_MPPS * 1e6, rel=0.011)


@pytest.mark.parametrize("search", ["guided", "mlr"])
async def test_a_dut_that_refuses_nothing_is_not_blamed_for_the_testers_ceiling(search: str) -> None:
    rate = await throughput(Lossless(100e6, TESTER_MPPS * 1e6), search)
    assert rate.limited_by is LimitedBy.TESTER
    assert rate.at_least
    assert rate.value == pytest.approx(TESTER_MPPS * 1e6, rel=0.02)


async def averaged(tester: FakeTester) -> Result:
    (result,) = await SingleCore("t", SingleCore.Options(frame_bytes=(64,), trial=TIMES)).run(context(tester))
    return result


async def test_an_average_is_limited_by_who_refused() -> None:
    by_dut = await averaged(Lossless(DUT_MPPS * 1e6, TESTER_MPPS * 1e6))
    by_tester = await averaged(Lossless(100e6, TESTER_MPPS * 1e6))
    assert by_dut.values["limited_by"] == "DUT"
    assert by_tester.values["limited_by"] == "tester"
