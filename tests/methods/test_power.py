"""Power against load: a machine whose power is known is found again, and a broken meter is reported."""

from __future__ import annotations

from typing import Any

import pytest

from nicbench.core.machine import PowerFacts, PowerPart, PowerSource
from nicbench.core.reading import Counts
from nicbench.core.result import Bounded, Result, ResultVerdict
from nicbench.core.trial import Purpose, Reading, StreamReading, Trial, TrialRequest
from nicbench.core.units import l2_bits_per_s
from nicbench.measure.power.meter import SimulatedMeter
from nicbench.methods.power import Power
from nicbench.report.tables import sections
from nicbench.stats.power import rows_of
from nicbench.testbed.labs.base import SimulatedPower

from .known import KnownContext, reading_of, run

JOULES = 12.0  # 11.8 W at 1 Gb/s of 1518-byte frames
IDLE = 90.0
WHOLE, PACKAGES = "whole machine (simulated)", "processor packages (simulated)"


class Machine(KnownContext):
    """Forwards everything; its meters are those of a simulated lab."""

    def __init__(self, power: SimulatedPower, seed: int = 1, **more: Any) -> None:
        super().__init__(**more)
        self.meter = SimulatedMeter(power, seed)
        self.power = self.meter.facts

    async def measure(self, point: dict[str, Any], request: TrialRequest) -> tuple[Trial, bool]:
        trial, disturbed = await super().measure(point, request)
        number, reading = len(self.requests), trial.reading
        idle = request.purpose is Purpose.IDLE
        power = await self.meter.idle(number, 60.0) if idle else self.meter.of_trial(number, trial.request, reading)
        return trial.replace(reading=reading.replace(power=power)), disturbed

    def read(self, point: dict[str, Any], request: TrialRequest) -> Reading:
        sent = round((request.load_frames_per_s or 0.0) * request.duration_s)
        counts = Counts(intended=sent, sent=sent, received=sent, lost=0)
        return reading_of(request.duration_s, [StreamReading(name="0->1 a", counts=counts)])


def machine(seed: int = 1, **options: Any) -> Machine:
    return Machine(SimulatedPower(**{"idle_watts": IDLE, "joules_per_gigabit": JOULES, **options}), seed)


def method(**options: Any) -> Power:
    return Power("power", Power.Options(**{"frame_bytes": (1518,), "loads": (100.0, 50.0), "passes": 4, **options}))


def at(results: tuple[Result, ...], percent: float, meter: str = WHOLE) -> Result:
    return next(
        each for each in results if (each.parameters["load_percent"], each.parameters["meter"]) == (percent, meter)
    )


def bounded(result: Result, name: str) -> Bounded:
    value = result.values[name]
    assert isinstance(value, Bounded)
    return value


def holds(result: Result, joules: float) -> bool:
    found = bounded(result, "joules_per_gigabit_above_idle_interval")
    assert found.lower is not None
    assert found.upper is not None
    return found.lower <= joules <= found.upper


async def test_what_a_gigabit_costs_is_found_ten_of_ten_by_both_meters_though_the_machine_gets_warm() -> None:
    for seed in range(10):
        test = method(confidence=0.99)
        results = await run(test, machine(seed, drift_watts_per_hour=3.0))
        assert {each.verdict for each in results} == {ResultVerdict.VALID}
        assert holds(at(results, 100.0), JOULES)
        assert holds(at(results, 100.0, PACKAGES), 0.6 * JOULES)


async def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    test = method(loads=(50.0,), confidence=0.9)
    found = [holds(at(await run(test, machine(seed)), 50.0), JOULES) for seed in range(50)]
    assert 39 <= sum(found) <= 49  # of 50 at 90 %: more or fewer, once in a hundred tries


async def test_idle_is_measured_around_each_pass_and_subtracted() -> None:
    results = await run(method(), dut := machine())
    assert [request.purpose for request in dut.requests] == 4 * [
        Purpose.IDLE, Purpose.POWER, Purpose.POWER, Purpose.IDLE
    ]  # fmt: skip
    full, idle = at(results, 100.0), at(results, 0.0)
    forwarded = l2_bits_per_s(dut.line_rate_frames_per_s(1518), 1518) / 1e9
    assert idle.values["watts"] == pytest.approx(IDLE, abs=0.2)
    assert full.values["watts"] == pytest.approx(IDLE + JOULES * forwarded, abs=0.2)
    assert full.values["above_idle_watts"] == pytest.approx(JOULES * forwarded, abs=0.2)
    assert full.values["joules_per_gigabit"] == pytest.approx(IDLE / forwarded + JOULES, rel=0.01)


async def test_the_report_answers_by_the_widest_meter_at_the_highest_load() -> None:
    (section,) = sections(list(await run(method(), machine(noise_watts=0.0))), {})
    assert section.sentence == (
        "draws 102\u00a0W at 100 % of the line rate with 1518-byte frames, 11.8\u00a0W above idle: 103\u00a0J/Gb, of "
        "which 12.0\u00a0J/Gb are above idle"
    )
    assert ("Machines", "tester and DUT are one machine: every figure is what both draw") in [
        (note.about, note.text) for note in section.notes
    ]


async def test_a_meter_that_stands_still_gives_no_figure() -> None:
    results = await run(method(), machine(fault="still"))
    whole, packages = at(results, 100.0), at(results, 100.0, PACKAGES)
    assert {whole.verdict, packages.verdict} == {ResultVerdict.INCOMPLETE}
    assert "stands still" in whole.disturbances[0]
    assert "stood still" in packages.disturbances[0]
    assert (whole.values["above_idle_watts"], whole.values["joules_per_gigabit"]) == (None, None)


async def test_a_counter_that_wraps_is_followed_where_it_tells_its_range_and_told_where_it_does_not() -> None:
    good = await run(method(confidence=0.99), machine(counter_range_joules=2000.0))
    assert holds(at(good, 100.0, PACKAGES), 0.6 * JOULES)
    bad = at(await run(method(), machine(counter_range_joules=2000.0, fault="wraps")), 100.0, PACKAGES)
    assert (bad.verdict, bad.values["watts"]) == (ResultVerdict.INCOMPLETE, None)
    assert "does not tell where it wraps" in bad.disturbances[0]


async def test_idle_power_that_drifts_by_more_than_the_load_adds_is_told() -> None:
    results = await run(method(), machine(joules_per_gigabit=0.5, drift_watts_per_hour=60.0))
    assert at(results, 100.0).verdict is ResultVerdict.DISTURBED
    assert "the idle power drifted by +" in at(results, 100.0).disturbances[0]
    good = await run(method(), machine(drift_watts_per_hour=60.0))
    assert at(good, 100.0).verdict is ResultVerdict.VALID


async def test_windows_that_are_short_for_a_meter_and_machines_without_one_are_refused() -> None:
    short = method(idle=10.0).objection(machine(averaging=5.0))
    assert short.message == (
        "tester and DUT, whole machine (simulated): it averages over 5 s, as it tells, and windows of 10 s are too "
        "short for that"
    )
    assert short.next_step == "write `idle` and `duration` of at least 15 s, or leave it out of `meters`"
    assert method().objection(machine()) is None
    bare = machine()
    bare.power = PowerFacts(unread=("DUT: it has RAPL, which only root may read",))
    refused = method().objection(bare)
    assert refused.message == "no meter says what the DUT's machine draws; DUT: it has RAPL, which only root may read"


def source(method: str, part: PowerPart, name: str) -> PowerSource:
    return PowerSource(machine="DUT", method=method, part=part, name=name, counts_energy=True, averaging_s=1.0)


def test_nothing_is_added_up_that_contains_the_other() -> None:
    rows = rows_of(
        [
            source("RAPL", PowerPart.PACKAGES, "package-0"),
            source("RAPL", PowerPart.PACKAGES, "package-1"),
            source("RAPL", PowerPart.MEMORY, "dram of package 0"),
            source("hwmon", PowerPart.PACKAGES, "amd_energy Esocket0"),
            source("IPMI", PowerPart.MACHINE, "dcmi"),
            source("Redfish", PowerPart.MACHINE, "Power"),
            source("hwmon", PowerPart.COMPONENT, "amdgpu PPT"),
        ]
    )
    assert [(row.row, len(row.sources)) for row in rows] == [
        ("whole machine (Redfish)", 1),
        ("whole machine (IPMI)", 1),
        ("processor packages and memory (RAPL)", 3),
        ("processor packages (hwmon)", 1),
        ("processor packages (RAPL)", 2),
        ("memory (RAPL)", 1),
        ("component (hwmon): amdgpu PPT", 1),
    ]
