"""Texts of ethtool from several drivers and versions in, plain data out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicbench.system.adapters.ethtool import (
    Feature,
    describe_table,
    parse_coalescing,
    parse_driver,
    parse_energy,
    parse_features,
    parse_fec,
    parse_limits,
    parse_link_settings,
    parse_module,
    parse_pause,
    parse_private_flags,
    parse_receive_hashing,
    parse_time_stamping,
)

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


@pytest.mark.parametrize(
    ("file", "name", "firmware", "bus"),
    [
        ("mlx5/i.txt", "mlx5_core", "16.35.2000 (MT_0000000013)", "0000:af:00.0"),
        ("i40e/i.txt", "i40e", "9.20 0x8000d95e 22.0.9", "0000:3b:00.1"),
        ("bnxt/i.txt", "bnxt_en", "220.0.57.0/pkg 22.00.07.60", "0000:ca:00.0"),
        ("ena/i.txt", "ena", None, "0000:00:05.0"),
        ("virtio_net/i.txt", "virtio_net", None, "0000:00:03.0"),
        ("veth/i.txt", "veth", None, None),
    ],
)
def test_a_driver_is_named_and_empty_fields_are_unknown(
    file: str, name: str, firmware: str | None, bus: str | None
) -> None:
    driver = parse_driver(golden(file))
    assert (driver["name"], driver["firmware"], driver["bus"]) == (name, firmware, bus)


@pytest.mark.parametrize(
    ("file", "limits"),
    [
        ("mlx5/g.txt", {"rx": {"maximum": 8192, "current": 1024}, "tx": {"maximum": 8192, "current": 1024}}),
        ("mlx5/l.txt", {"combined": {"maximum": 56, "current": 56}}),
        ("veth/l.txt", {"rx": {"maximum": 2, "current": 1}, "tx": {"maximum": 2, "current": 1}}),
        ("virtio_net/g.txt", {"rx": {"maximum": 256, "current": 256}, "tx": {"maximum": 256, "current": 256}}),
    ],
)
def test_rings_and_channels_have_a_maximum_and_a_current_value(file: str, limits: dict[str, Any]) -> None:
    assert parse_limits(golden(file)) == limits


def test_a_ring_that_a_driver_calls_0_is_kept_and_one_that_it_lacks_is_not() -> None:
    rings, channels = parse_limits(golden("ixgbe/g.txt")), parse_limits(golden("ice/l.txt"))
    assert (rings["rx_mini"]["current"], rings["tx"]["current"]) == (0, 512)
    assert {name: limit["current"] for name, limit in channels.items() if limit["current"] is not None} == {
        "rx": 0,
        "tx": 0,
        "other": 1,
        "combined": 64,
    }


def test_offloads_read_the_same_from_json_and_from_text() -> None:
    text, of_json = parse_features(golden("veth/k.txt")), parse_features(golden("veth/k.json"))
    assert {name: (one.on, one.fixed) for name, one in of_json.items()} == {
        name: (one.on, one.fixed) for name, one in text.items()
    }
    assert text["rx-gro-hw"] == Feature(on=False, fixed=True)


def test_an_offload_that_was_asked_for_and_refused_says_so() -> None:
    text = "Features for eth0:\nrx-lro: off [requested on]\ntx-nocache-copy: off\n"
    assert parse_features(text) == {"rx-lro": Feature(False, requested=True), "tx-nocache-copy": Feature(False)}
    of_json = '[{"ifname": "eth0", "rx-lro": {"active": false, "fixed": false, "requested": true}}]'
    assert parse_features(of_json) == {"rx-lro": Feature(False, requested=True)}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            "mlx5/c.txt",
            {
                "adaptive_rx": True,
                "adaptive_tx": True,
                "cqe_mode_rx": True,
                "cqe_mode_tx": False,
                "rx_usecs": 8,
                "rx_frames": 128,
                "tx_usecs": 8,
                "tx_frames": 128,
            },
        ),
        ("ena/c.txt", {"adaptive_rx": True, "rx_usecs": 20, "tx_usecs": 64}),
        (
            "virtio_net/c.txt",
            {"adaptive_rx": False, "rx_usecs": 0, "rx_frames": 1, "tx_usecs": 0, "tx_frames": 1},
        ),
    ],
)
def test_coalescing_holds_what_the_driver_has_and_no_more(file: str, expected: dict[str, Any]) -> None:
    assert parse_coalescing(golden(file)) == expected


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("mlx5/a.json", {"autonegotiate": False, "rx": True, "tx": True}),
        ("ixgbe/a.txt", {"autonegotiate": False, "rx": True, "tx": True}),
        (
            "ice/a.txt",
            {"autonegotiate": True, "rx": False, "tx": False, "rx_negotiated": True, "tx_negotiated": True},
        ),
    ],
)
def test_flow_control_tells_what_is_set_from_what_was_negotiated(file: str, expected: dict[str, Any]) -> None:
    assert parse_pause(golden(file)) == expected


@pytest.mark.parametrize(
    ("file", "configured", "active"),
    [
        ("mlx5/fec.txt", ["Auto"], ["RS"]),
        ("mlx5/fec.json", ["Auto", "RS"], ["RS"]),
        ("ice/fec.txt", ["Auto", "RS", "BaseR"], ["RS"]),
        ("bnxt/fec.txt", ["RS", "BaseR"], ["RS"]),
    ],
)
def test_fec_is_read_in_the_words_of_every_version(file: str, configured: list[str], active: list[str]) -> None:
    assert parse_fec(golden(file)) == {"configured": configured, "active": active}


def test_a_link_has_a_speed_in_bits_per_second_and_the_partners_modes() -> None:
    link = parse_link_settings(golden("mlx5/settings.txt"))
    assert (link["link"], link["speed_bits_per_s"], link["lanes"], link["duplex"]) == (True, 100e9, 4, "full")
    assert link["partner_modes"] == ["25000baseCR/Full", "100000baseCR4/Full"]
    assert link["supported_fec"] == ["None", "RS", "BASER"]
    assert link["autonegotiation"] is True


def test_a_link_that_is_down_says_why_and_has_no_speed() -> None:
    link = parse_link_settings(golden("ice/settings.txt"))
    assert (link["link"], link["why_no_link"], link["speed_bits_per_s"], link["duplex"]) == (
        False,
        "No cable",
        None,
        None,
    )
    assert link["advertised_modes"] == []


def test_several_modes_may_stand_in_a_row() -> None:
    modes = parse_link_settings(golden("igb/settings.txt"))["supported_modes"]
    assert modes == ["10baseT/Half", "10baseT/Full", "100baseT/Half", "100baseT/Full", "1000baseT/Full"]


def test_a_driver_that_knows_only_of_its_link_gives_null_for_the_rest() -> None:
    link = parse_link_settings(golden("ena/settings.txt"))
    assert link["link"] is True
    assert link["speed_bits_per_s"] is None
    assert parse_link_settings(golden("veth/settings.txt"))["speed_bits_per_s"] == 10e9
    assert parse_link_settings(golden("virtio_net/settings.txt"))["duplex"] is None


def test_receive_hashing_has_table_key_and_function() -> None:
    hashing = parse_receive_hashing(golden("mlx5/x.txt"))
    assert (hashing.queues, len(hashing.table), hashing.function) == (8, 128, "toeplitz")
    assert hashing.key.count(":") == 39
    assert describe_table(hashing.table) == "0 to 7, again and again to 128 entries"


def test_an_older_ethtool_has_no_function_and_a_table_in_runs_is_described_as_runs() -> None:
    hashing = parse_receive_hashing(golden("ixgbe/x.txt"))
    assert hashing.function is None
    assert describe_table(hashing.table) == "0x16 1x16 2x16 3x16 4x16 5x16 6x16 7x16"


def test_a_driver_with_a_hash_and_no_table_has_an_empty_table() -> None:
    hashing = parse_receive_hashing(golden("virtio_net/x.txt"))
    assert (hashing.table, hashing.key, hashing.function) == ((), None, "toeplitz")
    assert describe_table(hashing.table) is None


def test_a_table_with_a_missing_row_is_refused() -> None:
    rows = golden("mlx5/x.txt").splitlines(keepends=True)
    with pytest.raises(ValueError, match="follows after 8 entries"):
        parse_receive_hashing("".join(rows[:2] + rows[3:]))


@pytest.mark.parametrize(
    ("file", "flag", "on", "count"),
    [
        ("mlx5/priv.txt", "rx_striding_rq", True, 8),
        ("i40e/priv.txt", "disable-source-pruning", True, 13),
        ("ice/priv.txt", "fw-lldp-agent", False, 6),
    ],
)
def test_private_flags_keep_the_drivers_names(file: str, flag: str, on: bool, count: int) -> None:
    flags = parse_private_flags(golden(file))
    assert flags[flag] is on
    assert len(flags) == count


def test_energy_efficient_ethernet_tells_enabled_from_active() -> None:
    on, off, none = (parse_energy(golden(f"igb/eee{which}.txt")) for which in ("", "_off", "_none"))
    assert (on["enabled"], on["active"], on["transmit_idle_timer_ns"]) == (True, True, 17_000)
    assert (off["supported"], off["enabled"], off["active"], off["transmit_idle"]) == (True, False, False, False)
    assert none["supported"] is False


@pytest.mark.parametrize(
    ("file", "clock", "capability", "filters"),
    [
        ("mlx5/T.txt", 2, "hardware-raw-clock", ["none", "all"]),
        ("ice/T.txt", 0, "software-transmit", ["none", "all"]),
        ("ixgbe/T.txt", 1, "hardware-transmit", ["none", "ptpv1-l4-sync"]),
        ("veth/T.txt", None, "software-system-clock", []),
    ],
)
def test_time_stamps_are_named_and_a_virtual_interface_has_no_clock(
    file: str, clock: int | None, capability: str, filters: list[str]
) -> None:
    stamps = parse_time_stamping(golden(file))
    assert stamps["clock"] == clock
    assert capability in stamps["capabilities"]
    assert stamps["receive_filters"] == filters


def test_a_copper_cable_has_a_length_and_a_module_for_fibre_has_light() -> None:
    cable, optics = parse_module(golden("mlx5/m.txt")), parse_module(golden("i40e/m.txt"))
    assert (cable["identifier"], cable["part"], cable["cable_m"]) == ("QSFP28", "MCP1600-C002", 2.0)
    assert cable["receive_power_dbm"] is None
    assert (optics["cable_m"], optics["wavelength_nm"], optics["temperature_c"]) == (None, 850.0, 40.01)
    assert (optics["transmit_power_dbm"], optics["receive_power_dbm"]) == (-2.88, -2.24)
    assert optics["types"] == ["10G Ethernet: 10G Base-SR", "Ethernet: 1000BASE-SX"]


@pytest.mark.parametrize(
    "parse",
    [
        parse_pause,
        parse_fec,
        parse_link_settings,
        parse_receive_hashing,
        parse_energy,
        parse_time_stamping,
        parse_module,
    ],
)
def test_a_text_of_something_else_is_refused_and_never_taken_for_unknown_values(parse: Callable[[str], Any]) -> None:
    with pytest.raises(ValueError, match="in it"):
        parse("ethtool: bad command line argument(s)\nFor more information run ethtool -h\n")
