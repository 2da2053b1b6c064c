"""The health gate: what hardware says of itself, and what rose between two readings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.core.judging import Reason, Thresholds
from nicbench.core.reading import HealthEvent, MachineHealth, Measure
from nicbench.hosts.asking import split_sections
from nicbench.hosts.base import Completed
from nicbench.measure.health.base import Counter, Energy, HealthView, Level, Probe, Speed, Value
from nicbench.measure.health.probes.adapters import CardTemperature, Carrier, Fec, Module, PcieErrors, PcieLink, Phy
from nicbench.measure.health.probes.processors import Power, ProcessorTemperature, Throttling
from nicbench.measure.health.reader import SLOW_EVERY_S, HealthReader, Snapshot, compare
from nicbench.measure.trial_verdict import Evidence, judge

# What tools and /sys print of hardware in, values out.

GOLDEN = Path(__file__).parent / "golden"
VIEW = HealthView("DUT", ("ens1f0np0",), {"ens1f0np0": "mlx5_core"})
NOTHING = HealthView("DUT")


def golden(name: str) -> str:
    return (GOLDEN / f"{name}.txt").read_text()


def risen(probe: Probe, text: str) -> dict[tuple[str, str], tuple[float, Measure]]:
    values = [value for value in probe.read(text, VIEW) if isinstance(value, Counter)]
    return {(value.where, value.what): (value.value, value.measure) for value in values if value.value}


def test_pcie_errors_are_told_by_kind_of_the_adapter_and_of_the_port_above_it() -> None:
    assert risen(PcieErrors(), golden("aer_mlx5")) == {
        ("PCI 0000:3b:00.0", "corrected PCIe error BadTLP"): (2, Measure.PCIE_CORRECTED),
        ("PCI 0000:3b:00.0", "uncorrected PCIe error CmpltTO"): (1, Measure.PCIE_UNCORRECTED),
        ("PCI 0000:3a:00.0", "corrected PCIe error RxErr"): (7, Measure.PCIE_CORRECTED),
    }


def test_a_pcie_link_is_its_speed_times_its_width_and_unknown_where_nobody_knows() -> None:
    (speed,) = PcieLink().read(golden("pcie_link"), VIEW)
    assert speed == Speed("PCI 0000:3b:00.0", "16.0 GT/s x16", 256e9, Measure.PCIE_LINK)


def test_changes_of_a_link_are_a_counter() -> None:
    assert risen(Carrier(), golden("carrier")) == {
        ("ens1f0np0", "changes of the link"): (2, Measure.LINK),
        ("enp4s0f0", "changes of the link"): (11, Measure.LINK),
    }


def test_fec_counts_blocks_and_not_their_lanes_again() -> None:
    assert risen(Fec(), golden("show_fec_mlx5")) == {
        ("ens1f0np0", "corrected FEC blocks"): (15213, Measure.FEC_CORRECTED),
        ("ens1f0np0", "uncorrectable FEC blocks"): (4, Measure.FEC_UNCORRECTED),
    }


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        (
            "mlx5",
            {
                "rx_crc_errors_phy": 3,
                "rx_symbol_err_phy": 11,
                "rx_pcs_symbol_err_phy": 9,
                "link_down_events_phy": 1,
                "eth-phy-SymbolErrorDuringCarrier": 11,
            },
        ),
        ("ixgbe", {"rx_crc_errors": 6}),
    ],
)
def test_errors_of_the_physical_layer_are_known_by_name(driver: str, expected: dict[str, int]) -> None:
    assert {what: value for (_, what), (value, _) in risen(Phy(), golden(f"phy_{driver}")).items()} == expected


def test_a_module_tells_its_temperature_and_when_it_warns() -> None:
    assert Module().read(golden("module_sff8472"), VIEW) == (Level("module of enp4s0f0", 71.5, "C", 70.0),)


def test_a_cable_without_thresholds_has_no_limit() -> None:
    assert Module().read(golden("module_qsfp_dac"), VIEW) == (Level("module of ens1f0np0", 0.0, "C", None),)


def test_of_several_sensors_the_one_nearest_to_its_limit_counts() -> None:
    assert CardTemperature().read(golden("hwmon_card"), VIEW) == (Level("ens1f0np0 (mlx5)", 63.0, "C", 105.0),)
    assert ProcessorTemperature().read(golden("hwmon_processor"), VIEW) == (
        Level("processor (coretemp, hwmon1)", 58.0, "C", 101.0),
        Level("processor (k10temp, hwmon2)", 47.875, "C", None),
    )


def test_throttling_sums_cores_and_counts_a_package_once() -> None:
    rows = risen(Throttling(), golden("throttling"))
    assert {where: value for (where, _), (value, _) in rows.items()} == {
        "processor, cores": 150,
        "processor, package": 450,
    }


def test_energy_is_of_packages_and_their_memory() -> None:
    assert Power().read(golden("rapl"), VIEW) == (
        Energy("package-0", 120.0, 262143.32885),
        Energy("dram of package 0", 5.0, 65712.999613),
    )


@pytest.mark.parametrize("probe", [PcieErrors, PcieLink, Carrier, Fec, Phy, Module, CardTemperature])
def test_a_host_without_interfaces_is_asked_nothing(probe: type[Probe]) -> None:
    assert probe().script(NOTHING) == ""
    assert probe().read("", NOTHING) == ()


# What rose between two readings, and what of it spoils a trial.


def between(before: list[Value], after: list[Value], elapsed_s: float = 2.0) -> MachineHealth:
    return compare(Snapshot(0.0, {"DUT": tuple(before)}), Snapshot(elapsed_s, {"DUT": tuple(after)}))


def errors(count: float, measure: Measure = Measure.PCIE_CORRECTED) -> Counter:
    return Counter("PCI 0000:3b:00.0", "corrected PCIe error BadTLP", count, measure)


def test_a_counter_that_rose_is_an_event_and_one_that_fell_or_stayed_is_none() -> None:
    (event,) = between([errors(3)], [errors(5)]).events
    assert (event.amount, event.where, event.host) == (2, "PCI 0000:3b:00.0", "DUT")
    assert between([errors(5)], [errors(5)]).events == between([errors(5)], [errors(1)]).events == ()


def test_what_was_there_before_nobody_looked_is_no_event() -> None:
    assert between([], [errors(5)]).events == ()


def test_a_pcie_link_that_was_trained_down_lost_a_share_of_its_bandwidth() -> None:
    was = Speed("PCI 0000:3b:00.0", "16.0 GT/s x16", 256e9, Measure.PCIE_LINK)
    now = Speed("PCI 0000:3b:00.0", "8.0 GT/s x16", 128e9, Measure.PCIE_LINK)
    (event,) = between([was], [now]).events
    assert (event.amount, event.what) == (0.5, "PCIe link went from 16.0 GT/s x16 to 8.0 GT/s x16")
    assert between([now], [was]).events == ()


def test_a_part_hotter_than_its_own_limit_is_an_event() -> None:
    hot = Level("module of eth2", 77.0, "C", 70.0)
    health = between([], [hot])
    assert health.events[0].amount == pytest.approx(1.1)
    assert [(level.value, level.limit) for level in health.levels] == [(77.0, 70.0)]


def test_power_is_energy_over_time_also_where_the_register_wrapped() -> None:
    before, after = Energy("package-0", 100.0, 1000.0), Energy("package-0", 400.0, 1000.0)
    assert [level.value for level in between([before], [after]).levels] == [150.0]
    assert [level.value for level in between([after], [before]).levels] == [350.0]
    assert between([Energy("package-0", 9.0)], [Energy("package-0", 1.0)]).levels == ()


def verdict(*events: HealthEvent, intended: int = 1_000_000, **more: Any) -> tuple[tuple[Reason, str], ...]:
    evidence = Evidence(transmit_ns=1_000_000_000, intended=intended, unsent_tester=0, hardware=events, **more)
    return tuple((finding.reason, finding.threshold) for finding in judge(evidence, Thresholds()).findings)


def event(measure: Measure, amount: float, unit: str = "errors") -> HealthEvent:
    return HealthEvent(host="DUT", where="eth2", what="something", measure=measure, amount=amount, unit=unit)


@pytest.mark.parametrize(
    ("measure", "tolerated", "too_much"),
    [
        (Measure.PCIE_CORRECTED, 1000, 1001),
        (Measure.PCIE_UNCORRECTED, 1, 2),
        (Measure.FEC_UNCORRECTED, 1, 2),
        (Measure.SYMBOL_ERRORS, 1, 2),
        (Measure.THROTTLED, 1.0, 1.5),
        (Measure.PCIE_LINK, 0.01, 0.5),
        (Measure.TEMPERATURE, 1.0, 1.01),
    ],
)
def test_a_rise_over_its_threshold_spoils_a_trial_and_a_smaller_one_is_a_warning(
    measure: Measure, tolerated: float, too_much: float
) -> None:
    assert verdict(event(measure, tolerated)) == ()
    assert verdict(event(measure, too_much)) == ((Reason.HARDWARE, measure.value),)


def test_corrected_blocks_never_spoil_a_trial() -> None:
    assert verdict(event(Measure.FEC_CORRECTED, 1e9)) == ()


def test_any_change_of_a_link_of_the_dut_spoils_a_trial() -> None:
    assert verdict(event(Measure.LINK, 2, "changes")) == ((Reason.LINK_CHANGED, "link_changed"),)


class Machine(FakeHost):
    """Prints what was put in ``printed`` for each section that it is asked for."""

    def __init__(self) -> None:
        super().__init__("machine")
        self.printed: dict[str, str] = {}
        self.asked: list[list[str]] = []
        self.answer("sh -c", self._print)

    def _print(self, command: tuple[str, ...]) -> Completed:
        wanted = [part.split("'")[0] for part in command[2].split("=== nicbench section ")[1:]]
        self.asked.append(wanted)
        text = "".join(f"=== nicbench section {kind}\n{self.printed.get(kind, '')}\n" for kind in wanted)
        return Completed(command, 0, text, "")


def reader(machine: Machine, clock: list[float]) -> HealthReader:
    return HealthReader(((machine, HealthView("DUT", ("eth2",), {"eth2": "mlx5_core"})),), clock=lambda: clock[0])


async def test_what_a_host_has_not_is_asked_for_once() -> None:
    machine = Machine()
    machine.printed["carrier"] = "/sys/class/net/eth2/carrier_changes:2"
    asking = reader(machine, [0.0])
    assert len((await asking.read()).values["DUT"]) == 1
    machine.printed["carrier"] = "/sys/class/net/eth2/carrier_changes:4"
    assert [value.value for value in (await asking.read()).values["DUT"] if isinstance(value, Counter)] == [4]
    assert {"carrier", "fec", "module", "pcie-errors"} <= set(machine.asked[0])
    assert machine.asked[1] == ["carrier"]


async def test_what_says_nothing_any_more_is_named_and_asked_again() -> None:
    machine = Machine()
    machine.printed["carrier"] = "/sys/class/net/eth2/carrier_changes:2"
    asking = reader(machine, [0.0])
    await asking.read()
    machine.printed["carrier"] = ""  # the card fell off the bus
    lost = await asking.read()
    assert (lost.values["DUT"], lost.unread) == ((), ("DUT, carrier: says nothing any more",))
    machine.printed["carrier"] = "/sys/class/net/eth2/carrier_changes:3"
    assert len((await asking.read()).values["DUT"]) == 1


async def test_a_module_is_read_seldom_for_that_takes_time() -> None:
    machine, clock = Machine(), [100.0]
    machine.printed["module"] = "@ eth2\nModule temperature : 41.00 degrees C / 105.80 degrees F"
    asking = reader(machine, clock)
    await asking.read()
    machine.printed["module"] = "@ eth2\nModule temperature : 55.00 degrees C / 131.00 degrees F"
    clock[0] += SLOW_EVERY_S - 1
    assert (await asking.read()).values["DUT"] == (Level("module of eth2", 41.0, "C"),)
    clock[0] += 2
    assert (await asking.read()).values["DUT"] == (Level("module of eth2", 55.0, "C"),)


async def test_text_that_is_not_understood_is_named_and_ends_nothing() -> None:
    machine = Machine()
    machine.printed["pcie-errors"] = "/sys/devices/x/aer_dev_fatal:DLP many"
    machine.printed["carrier"] = "/sys/class/net/eth2/carrier_changes:2"
    seen = await reader(machine, [0.0]).read()
    assert len(seen.values["DUT"]) == 1
    assert seen.unread[0].startswith("DUT, pcie-errors: not understood: ValueError")


def test_sections_are_told_apart_whatever_they_print() -> None:
    text = "noise\n\n=== nicbench section a\none\n\n=== nicbench section b\n\n=== nicbench section a\ntwo"
    assert {name: text.split() for name, text in split_sections(text).items()} == {"a": ["one", "two"], "b": []}
