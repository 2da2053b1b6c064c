"""Meters as their tools print them, and what a window of readings comes to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.events import Bus
from nicbench.core.judging import Thresholds
from nicbench.core.machine import PowerPart
from nicbench.core.trial import Purpose, TrialRequest
from nicbench.hosts.base import Completed
from nicbench.measure.power import base
from nicbench.measure.power.base import Look, Sensed, over_window
from nicbench.measure.power.meter import LiveMeter, MeteredMachine
from nicbench.measure.samples import SampleLog
from nicbench.measure.surroundings import TrialSetup
from nicbench.measure.trials import TrialMaker
from nicbench.testbed.duts.simulated import Simulated, SimulatedOptions

from ..fake_tester import FakeTester

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text()


def test_a_package_does_not_contain_its_memory_and_psys_contains_both() -> None:
    assert [(each.part, each.name, each.joules) for each in base.parse_rapl(golden("rapl_psys"))] == [
        (PowerPart.PACKAGES, "package-0", 120.0),
        (PowerPart.PLATFORM, "psys of package 1", 300.0),
    ]
    assert base.parse_rapl(golden("rapl_refused")) == ()
    assert base.is_refused(golden("rapl_refused"))
    assert not base.is_refused(golden("rapl_psys"))


def test_hwmon_says_what_is_the_machine_a_supply_or_one_component() -> None:
    found = {each.name: each for each in base.parse_hwmon(golden("hwmon"))}
    assert {name: (each.part, each.watts, each.joules, each.averaging_s) for name, each in found.items()} == {
        "power_meter power1 (hwmon2)": (PowerPart.MACHINE, 212.0, None, 1.0),
        "pmbus pin (hwmon5)": (PowerPart.SUPPLIES, 118.0, None, None),
        "pmbus pout1 (hwmon5)": (PowerPart.COMPONENT, 109.5, None, None),
        "amdgpu PPT (hwmon6)": (PowerPart.COMPONENT, 33.0, None, None),
        "amd_energy Esocket0 (hwmon7)": (PowerPart.PACKAGES, None, 98765.4321, None),
    }


def test_a_controller_tells_whole_watts_and_nothing_where_it_does_not_measure() -> None:
    (found,) = base.parse_dcmi(golden("dcmi"))
    assert (found.part, found.watts, found.resolution_watts, found.averaging_s) == (PowerPart.MACHINE, 214.0, 1.0, None)
    assert base.parse_dcmi(golden("dcmi_off")) == ()


def energy(joules: float, range_j: float | None = 1000.0) -> Sensed:
    return Sensed("RAPL", PowerPart.PACKAGES, "package-0", joules=joules, range_j=range_j, averaging_s=0.001)


def power(watts: float) -> Sensed:
    return Sensed("IPMI", PowerPart.MACHINE, "dcmi", watts=watts, resolution_watts=1.0)


@pytest.mark.parametrize(
    ("joules", "range_j", "watts", "why"),
    [
        ((100.0, 300.0, 500.0), 1000.0, 20.0, None),
        ((900.0, 100.0, 900.0), 1000.0, 50.0, None),  # wrapped once: 200 J and 800 J
        ((900.0, 100.0, 500.0), None, None, "does not tell where it wraps"),
        ((900.0, 100.0, 500.0), 500.0, None, "does not tell where it wraps"),
        ((100.0, 100.0, 100.0), 1000.0, None, "stood still"),
        ((0.0, 1e9, 3e9), 1e12, None, "no power of a machine"),
    ],
    ids=["rises", "wraps", "range unknown", "range too small", "stands still", "absurd"],
)
def test_energy_is_followed_from_look_to_look(
    joules: tuple[float, ...], range_j: float | None, watts: float | None, why: str | None
) -> None:
    looks = [Look(10.0 * number, (energy(each, range_j),)) for number, each in enumerate(joules)]
    (found,) = over_window([energy(0.0).source("DUT", 5.0)], looks)
    assert (found.watts, found.at_s, found.window_s) == (watts, 10.0, 20.0)
    assert found.why is None if why is None else why in str(found.why)


def test_a_reading_that_averages_over_what_was_before_does_not_count() -> None:
    looks = [Look(float(at), (power(100.0 if at < 5 else 200.0),)) for at in range(11)]
    (found,) = over_window([power(0.0).source("DUT", 5.0)], looks)
    assert (found.watts, found.readings, found.source.averaging_is_told) == (200.0, 6, False)
    (short,) = over_window([power(0.0).source("DUT", 5.0)], looks[:4])
    assert short.watts is None
    assert "averaging time" in (short.why or "")


class Machine:
    """A host with RAPL and a controller; its time passes when the meter sleeps."""

    def __init__(self, **printed: str) -> None:
        self.now_s = 0.0
        self.host = FakeHost()
        self.printed = printed
        self.host.answer(("sh", "-c"), self._print)

    def _print(self, command: tuple[str, ...]) -> Completed:
        sections = {"RAPL": self.rapl(), **self.printed}
        asked = [(name, text) for name, text in sections.items() if f"section {name}" in command[-1]]
        stdout = "".join(f"\n=== nicbench section {name}\n{text}\n" for name, text in asked)
        return Completed(command=command, status=0, stdout=stdout, stderr="")

    def rapl(self) -> str:
        """60 W since the beginning."""
        folder = "/sys/class/powercap/intel-rapl:0"
        return f"{folder}/name:package-0\n{folder}/energy_uj:{60e6 * (1.0 + self.now_s):.0f}"

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    async def meter(self, *methods: str) -> LiveMeter:
        meter = LiveMeter(
            (MeteredMachine("DUT", self.host),),
            methods=methods,
            assumed_s=5.0,
            clock=lambda: self.now_s,
            sleep=self.sleep,
        )
        await meter.find()
        return meter


async def test_a_machine_is_read_by_what_it_has_over_the_whole_window() -> None:
    machine = Machine(IPMI=golden("dcmi"), hwmon="")
    meter = await machine.meter("rapl", "ipmi", "hwmon", "redfish")
    assert [source.row for source in meter.facts.sources] == ["processor packages (RAPL)", "whole machine (IPMI)"]
    asked_before = len(machine.host.commands)
    packages, whole = await meter.idle(1, 30.0)
    assert (packages.watts, packages.window_s) == (pytest.approx(60.0), 30.0)
    assert (whole.watts, whole.readings) == (214.0, 6)
    assert len(machine.host.commands) - asked_before == 7  # every averaging time, and once at the end
    assert "hwmon" not in machine.host.commands[-1][-1]  # which has nothing here


async def test_counters_alone_are_left_alone_between_the_ends_of_a_window() -> None:
    machine = Machine(IPMI=golden("dcmi"))
    meter = await machine.meter("rapl")
    asked_before = len(machine.host.commands)
    (packages,) = await meter.idle(1, 25.0)
    assert packages.watts == pytest.approx(60.0)
    assert len(machine.host.commands) - asked_before == 2


async def test_a_meter_that_falls_silent_ends_no_run_and_says_nothing_more() -> None:
    machine = Machine(IPMI=golden("dcmi"))
    meter = await machine.meter("rapl", "ipmi")
    machine.printed["IPMI"] = "Error: no response"
    packages, whole = await meter.idle(1, 30.0)
    assert packages.watts == pytest.approx(60.0)
    assert (whole.watts, whole.readings) == (None, 0)
    machine.host.fail(("sh", "-c"), "connection lost", status=255)
    assert [over.watts for over in await meter.idle(2, 30.0)] == [None, None]


async def test_power_is_read_beside_a_transmission_and_while_nothing_is_sent() -> None:
    machine, tester = Machine(IPMI=golden("dcmi")), FakeTester(1e6)
    meter = await machine.meter("rapl", "ipmi")
    setup = TrialSetup(tester, Simulated(SimulatedOptions()), meter=meter)
    maker = TrialMaker(setup, Thresholds(), SampleLog({}, Bus()))
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=1000.0, duration_s=60.0, drain_s=0.1, settle_s=0.1, purpose=Purpose.POWER
    )
    loaded = await maker.make("p/0/0", "p", {}, request, 0)
    assert [over.source.method for over in loaded.reading.power] == ["RAPL", "IPMI"]
    assert [over.window_s for over in loaded.reading.power] == pytest.approx([58.0, 58.0])  # without its two ends
    idle_request = request.replace(purpose=Purpose.IDLE, load_frames_per_s=0.0, duration_s=30.0)
    idle = await maker.make("p/1/0", "p", {}, idle_request, 0)
    assert len(tester.requests) == 1
    assert (idle.reading.counts.sent, idle.verdict.valid) == (0, True)
    assert [over.watts for over in idle.reading.power] == [pytest.approx(60.0), 214.0]
