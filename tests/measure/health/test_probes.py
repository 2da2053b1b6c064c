"""What tools and /sys print of hardware in, values out."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.reading import Measure
from nicbench.measure.health.base import Counter, Energy, HealthView, Level, Probe, Speed
from nicbench.measure.health.probes.adapters import CardTemperature, Carrier, Fec, Module, PcieErrors, PcieLink, Phy
from nicbench.measure.health.probes.processors import Power, ProcessorTemperature, Throttling

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
