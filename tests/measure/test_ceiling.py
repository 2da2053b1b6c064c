"""The tester by itself is measured once for each frame size, all sizes together, and never twice."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from nicbench.bench_file import load
from nicbench.core.events import Bus, CeilingFound, TesterLatencyFound, TrialFinished
from nicbench.core.frame_size import IMIX, Size
from nicbench.core.judging import Thresholds
from nicbench.core.pattern import Pattern, Ways, ways_of
from nicbench.core.trial import CALIBRATION, Latency, Purpose, Reading, Trial, TrialRequest
from nicbench.measure.ceiling import FLOODS, Ceilings
from nicbench.measure.samples import SampleLog
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.stages.tester import plan_calibration
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.duts.simulated import Simulated, SimulatedOptions
from nicbench.testbed.labs.base import Testbed
from nicbench.testbed.labs.simulated import SimulatedLab
from nicbench.testbed.labs.simulated import SimulatedOptions as LabOptions
from nicbench.testbed.testers.base import During
from nicbench.tuning.stack import UndoStack

from .fake_tester import FakeTester

TESTER_MPPS = 11.0
ONE_WAY = ways_of(Pattern.ONE_TO_ONE, 2)
OWN_NS = 9_000


class Timed(FakeTester):
    """Every frame takes as long as the tester itself does; both ports send where they are asked to."""

    async def trial(self, number: int, request: TrialRequest, addressing: Any, during: During | None = None) -> Reading:
        reading = await super().trial(number, request, addressing)
        latency = Latency(
            source="software", count=1, minimum_ns=1, mean_ns=1.0, maximum_ns=2 * OWN_NS,
            percentiles_ns={"50": OWN_NS},
        )  # fmt: skip
        return reading.replace(latency=latency)


class Bench(SimulatedLab):
    """A lab that knows what was put in the DUT's place, in order."""

    def __init__(self, *, there_is_a_sink: bool = True) -> None:
        super().__init__(LabOptions())
        self.there_is_a_sink = there_is_a_sink
        self.laid: list[str] = []

    @asynccontextmanager
    async def without_dut(self, testbed: Testbed, changes: Any) -> AsyncIterator[bool]:
        self.laid.append("sink")
        yield self.there_is_a_sink

    @asynccontextmanager
    async def cable(self, testbed: Testbed, changes: Any) -> AsyncIterator[bool]:
        self.laid.append("cable")
        yield self.there_is_a_sink


def calibration(
    lab: Bench | None,
    journaled: dict[str, Trial] | None = None,
    ways: Ways = ONE_WAY,
    tester: FakeTester | None = None,
) -> tuple[Ceilings, list[Any]]:
    bus, published = Bus(), list[Any]()
    bus.subscribe(published.append)
    setup = TrialSetup(tester or Timed(1e9, TESTER_MPPS * 1e6), Simulated(SimulatedOptions()))
    maker = TrialMaker(setup, Thresholds(), SampleLog(journaled or {}, bus))
    testbed = Testbed(
        tester=None, dut=None, tester_ports=(), dut_ports=(), cores=CoreMap(0, (1,), (), False),  # type: ignore[arg-type]
        link_bits_per_s=10e9, link_is_nominal=True,
    )  # fmt: skip
    return Ceilings(maker, lab, testbed, UndoStack("x", None), ways), published


def trials_in(published: list[Any]) -> list[Trial]:
    return [event.trial for event in published if isinstance(event, TrialFinished)]


async def calibrate(ceilings: Ceilings, *sizes: Size) -> None:
    """Finds the ceiling and the latency at each size."""
    await ceilings.calibrate(sizes, sizes)


async def test_every_size_and_mix_is_measured_with_the_sink_and_the_cable_laid_once() -> None:
    lab = Bench()
    ceilings, published = calibration(lab)
    await calibrate(ceilings, 64, 1518, IMIX, 64)
    assert lab.laid == ["sink", "cable"]
    trials = trials_in(published)
    assert [trial.test for trial in trials] == [CALIBRATION] * 3 * (FLOODS + 1)
    assert [trial.request.purpose for trial in trials[-3:]] == [Purpose.TESTER_LATENCY] * 3
    assert [event.mix or event.frame_bytes for event in published if isinstance(event, CeilingFound)] == [
        64,
        1518,
        "imix",
    ]
    told = [event for event in published if isinstance(event, TesterLatencyFound)]
    assert [event.latency_p50_ns for event in told] == [OWN_NS] * 3
    assert told[0].text.endswith("64 bytes take 9.0 µs (median)")


async def test_a_cable_that_loses_frames_is_told() -> None:
    ceilings, published = calibration(Bench(), tester=Timed(2500.0, TESTER_MPPS * 1e6))
    await calibrate(ceilings, 64)
    (told,) = [event for event in published if isinstance(event, TesterLatencyFound)]
    assert re.search(r"; \d+ of \d+ were lost on it, by the tester or the lab:", told.text)


class Waiting(FakeTester):
    """A tenth of what it takes is still in its rings when the sending ends, and leaves a while later."""

    async def trial(self, number: int, request: TrialRequest, addressing: Any, during: During | None = None) -> Reading:
        reading = await super().trial(number, request, addressing)
        sending_ns = reading.transmit_ns
        return reading.replace(
            transmit_ns=sending_ns + 8_000_000,
            sending_ns=sending_ns,
            sent_while_sending=reading.counts.sent * 9 // 10,
        )


async def test_frames_that_leave_after_the_sending_and_the_wait_for_them_are_not_in_the_ceiling() -> None:
    ceilings, _ = calibration(Bench(), tester=Waiting(1e9, TESTER_MPPS * 1e6))
    assert await ceilings.ceiling_frames_per_s(64) == pytest.approx(0.9 * TESTER_MPPS * 1e6, rel=1e-5)


async def test_what_was_calibrated_beforehand_is_not_measured_again_and_other_sizes_are_when_asked_for() -> None:
    lab = Bench()
    ceilings, published = calibration(lab)
    await calibrate(ceilings, 64)
    made = len(trials_in(published))
    assert await ceilings.ceiling_frames_per_s(64) == pytest.approx(TESTER_MPPS * 1e6, rel=0.01)
    own = await ceilings.latency(64)
    assert (own.percentiles_ns["50"], len(trials_in(published))) == (OWN_NS, made)
    assert await ceilings.ceiling_frames_per_s(512) is not None
    assert len(trials_in(published)) == made + FLOODS
    assert lab.laid == ["sink", "cable", "sink"]


@pytest.mark.parametrize(
    ("ceilings_at", "latencies_at", "laid", "made"),
    [((64, 512), (), ["sink"], 2 * FLOODS), ((), (64,), ["cable"], 1), ((), (), [], 0)],
    ids=["ceilings alone", "latencies alone", "nothing"],
)
async def test_only_what_tests_ask_for_is_measured(
    ceilings_at: tuple[int, ...], latencies_at: tuple[int, ...], laid: list[str], made: int
) -> None:
    lab = Bench()
    ceilings, published = calibration(lab)
    await ceilings.calibrate(ceilings_at, latencies_at)
    assert lab.laid == laid
    assert len(trials_in(published)) == made


async def test_a_resumed_calibration_goes_on_where_it_was_and_touches_nothing_where_it_was_complete() -> None:
    ceilings, published = calibration(Bench())
    await calibrate(ceilings, 64, 512)
    whole = trials_in(published)
    for kept in range(len(whole) + 1):
        lab = Bench()
        ceilings, published = calibration(lab, {trial.key: trial for trial in whole[:kept]})
        await calibrate(ceilings, 64, 512)
        made = trials_in(published)
        assert [(trial.id, trial.key) for trial in made] == [(trial.id, trial.key) for trial in whole[kept:]]
        assert (lab.laid == []) is (kept == len(whole))
        assert await ceilings.ceiling_frames_per_s(512) is not None


async def test_a_trial_made_after_a_journal_in_another_order_has_a_number_of_its_own() -> None:
    ceilings, published = calibration(Bench())
    await calibrate(ceilings, 64)
    whole = trials_in(published)
    ceilings, published = calibration(Bench(), {trial.key: trial for trial in whole[1:]})
    await calibrate(ceilings, 64)
    (made,) = trials_in(published)
    assert made.id not in {trial.id for trial in whole}


@pytest.mark.parametrize(
    ("ways", "share", "words"),
    [
        (ways_of(Pattern.ONE_TO_ONE, 2, bidirectional=True), 2, "on each of 2 ports"),
        (ways_of(Pattern.ONE_TO_ONE, 4), 2, "on each of 2 ports"),
        (ways_of(Pattern.FULL_MESH, 4), 4, "on each of 4 ports"),
        (ways_of(Pattern.MANY_TO_ONE, 4), 1, "on 3 ports together"),
        (ways_of(Pattern.ONE_TO_MANY, 4), 1, "on a port"),
    ],
    ids=["both ways", "two pairs", "full mesh", "many to one", "one to many"],
)
async def test_the_ceiling_is_of_what_a_load_is_of(ways: Ways, share: int, words: str) -> None:
    ceilings, published = calibration(Bench(), ways=ways)
    ceiling = await ceilings.ceiling_frames_per_s(64)
    assert {trial.request.bidirectional for trial in trials_in(published)} == {ways.bidirectional}
    assert ceiling == pytest.approx(TESTER_MPPS * 1e6 / share, rel=0.01)
    assert words in next(event.text for event in published if isinstance(event, CeilingFound))


async def test_the_testers_own_latency_is_unknown_where_frames_come_back_on_their_port() -> None:
    ceilings, _ = calibration(Bench(), ways=ways_of(Pattern.SAME_PORT, 2))
    assert await ceilings.latency(64) is None


@pytest.mark.parametrize("lab", [None, Bench(there_is_a_sink=False)], ids=["real ports", "a lab without a sink"])
async def test_where_nothing_can_stand_in_the_duts_place_both_are_unknown(lab: Bench | None) -> None:
    ceilings, published = calibration(lab)
    await calibrate(ceilings, 64)
    assert await ceilings.ceiling_frames_per_s(64) is None
    assert await ceilings.latency(64) is None
    assert published == []


BENCH = """
nicbench: 1
title: Calibration
lab: {{kind: veth}}
dut: {{kind: kernel-forward}}
tests: [{tests}]
"""
SEARCHED = "{name: rate, method: throughput, frame_bytes: [64, 512]}"
TIMED = "{name: delay, method: latency, frame_bytes: [512], at: rate}"
SWEPT = "{name: sweep, method: load-sweep, frame_bytes: [1518], of: line_rate}"


@pytest.mark.parametrize(
    ("tests", "told"),
    [
        ((SEARCHED,), "no calibration before the first test"),
        ((SEARCHED, TIMED), "the tester's own latency at 1 frame size, "),
        ((SEARCHED, SWEPT), "the tester's own ceiling at 1 frame size, "),
        ((SEARCHED, TIMED, SWEPT), "the tester's own ceiling at 1 frame size and latency at 1 frame size, "),
    ],
    ids=["a search", "latency", "given loads", "all"],
)
def test_before_the_first_test_only_what_its_loads_or_latencies_need_is_calibrated(
    tests: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "bench.yaml"
    file.write_text(BENCH.format(tests=", ".join(tests)))
    plan = plan_calibration(load(file))
    assert told in str(plan)
    assert (plan.estimate_s > 0) is (len(tests) > 1)
