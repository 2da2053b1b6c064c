"""A context of a test of frames with a tester and a DUT of one's own: what it publishes is kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicbench.core.events import Bus, CeilingFound, ResultReady, TrialFinished
from nicbench.core.judging import Thresholds
from nicbench.core.pattern import Pattern, ways_of
from nicbench.core.reading import Counts
from nicbench.core.result import Result
from nicbench.core.traffic import Traffic
from nicbench.core.trial import Reading, Trial
from nicbench.measure.ceiling import Ceilings
from nicbench.measure.frame_context import LiveFrameContext, OfferedTraffic
from nicbench.measure.samples import SampleLog, TestSetting
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.methods._loads import TrialTimes
from nicbench.methods.throughput import SearchChoice, Throughput
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.duts.simulated import Simulated, SimulatedOptions
from nicbench.testbed.labs.base import Testbed
from nicbench.tuning.stack import UndoStack

from .fake_tester import FakeTester

TIMES = TrialTimes(duration=1.0, drain=0.1, settle=0.1)
ONE_WAY = ways_of(Pattern.ONE_TO_ONE, 2)


class Rig:
    """One way between two ports of 10 Gb/s; ``journaled`` are the trials of a run that is resumed, by their keys."""

    def __init__(self, tester: FakeTester, journaled: Mapping[str, Trial] | None = None) -> None:
        self.published: list[Any] = []
        bus = Bus()
        bus.subscribe(self.published.append)
        setup = TrialSetup(tester, Simulated(SimulatedOptions()))
        maker = TrialMaker(setup, Thresholds(), SampleLog(journaled or {}, bus))
        testbed = Testbed(
            tester=None, dut=None, tester_ports=(), dut_ports=(), cores=CoreMap(0, (1,), (), False),  # type: ignore[arg-type]
            link_bits_per_s=10e9, link_is_nominal=False,
        )  # fmt: skip
        ceilings = Ceilings(maker, None, testbed, UndoStack("x", None), ONE_WAY)
        offered = OfferedTraffic(Traffic(), ONE_WAY, 10e9)
        self.context = LiveFrameContext(TestSetting("t", 1, 600.0), maker, ceilings, offered)

    @property
    def ceilings(self) -> list[CeilingFound]:
        return [event for event in self.published if isinstance(event, CeilingFound)]

    @property
    def trials(self) -> list[Trial]:
        return [event.trial for event in self.published if isinstance(event, TrialFinished)]

    @property
    def results(self) -> list[Result]:
        return [event.result for event in self.published if isinstance(event, ResultReady)]

    async def throughput(self, search: str = "guided") -> Result:
        """Searches at 64 bytes."""
        choice = SearchChoice(kind=search, goals={"NDR": 0.0, "PDR": 0.005}, precision=0.01, trials_per_bound=1)
        options = Throughput.Options(frame_bytes=(64,), search=choice, trial=TIMES)
        (result,) = await Throughput("t", options).run(self.context)
        return self.context.complete(result)


def with_counts(reading: Reading, counts: Counts) -> Reading:
    """Returns the reading of one stream with other counts."""
    (stream,) = reading.streams
    return reading.replace(counts=counts, streams=(stream.replace(counts=counts),))
