"""Counters of tools and of /proc in, counts with their places out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nicbench.measure.ledger.base import Count, Side, Stage, View
from nicbench.measure.ledger.losses import account
from nicbench.measure.ledger.sources.drivers import Drivers
from nicbench.measure.ledger.sources.kernel import (
    Conntrack,
    IpLayer,
    Links,
    Nftables,
    Qdisc,
    Softnet,
    snmp_ipv6,
    snmp_table,
    softnet_drops,
)

GOLDEN = Path(__file__).parent / "golden"
VETH = {"t0": "veth", "d0": "veth"}
DUT = View(Side.DUT, ("d0", "d1"), {"d0": (Side.TESTER, "t0")}, VETH, {"d0": "veth"})
TESTER = View(Side.TESTER, ("t0",), {"t0": (Side.DUT, "d0")}, VETH, {"t0": "veth"})


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def by_name(counts: tuple[Count, ...]) -> dict[str, int]:
    return {count.name: count.frames for count in counts}


def card(driver: str) -> View:
    return View(Side.DUT, ("eth2",), drivers={"eth2": driver})


def test_the_backlog_column_is_read_as_hex_per_cpu() -> None:
    assert softnet_drops(golden("softnet_stat_two_cpus.txt")) == {0: 0, 1: 0x1AB61}
    (_, second) = Softnet().read(golden("softnet_stat_two_cpus.txt"), DUT)
    assert (second.place, second.stage, second.machine_wide) == ("DUT, backlog of CPU 1", Stage.DUT_BACKLOG, True)


def test_a_cpu_that_is_offline_does_not_shift_the_others() -> None:
    second = golden("softnet_stat_two_cpus.txt").splitlines()[1]
    assert softnet_drops(second) == {1: 0x1AB61}


def test_an_old_kernel_that_does_not_name_the_cpu_is_read_by_order() -> None:
    assert softnet_drops(golden("softnet_stat_before_5_14.txt")) == {0: 0, 1: 0x10}


def test_the_ip_tables_give_names_with_values() -> None:
    table = snmp_table(golden("snmp_no_route.txt"), "Ip")
    assert (table["Forwarding"], table["InReceives"], table["InDiscards"]) == (1, 7, 0)
    assert snmp_ipv6(golden("snmp6_no_route.txt"))["Ip6InNoRoutes"] == 7


def test_the_ip_layer_reads_its_three_files_in_one_text() -> None:
    netstat = "TcpExt: IPReversePathFilter\nTcpExt: 6\nIpExt: InNoRoutes InOctets\nIpExt: 5 900\n"
    counts = by_name(IpLayer().read(golden("snmp_no_route.txt") + netstat + golden("snmp6_no_route.txt"), DUT))
    assert counts["ipv4 InNoRoutes"] == 5
    assert counts["ipv4 IPReversePathFilter"] == 6
    assert counts["ipv6 Ip6InNoRoutes"] == 7
    assert "ipv4 InReceives" not in counts


def test_a_table_that_is_not_there_gives_nothing() -> None:
    assert snmp_table(golden("snmp_no_route.txt"), "IpExt") == {}
    assert snmp_table("Ip: Forwarding DefaultTTL\nIp: 1\n", "Ip") == {}


def test_device_losses_leave_out_the_parts_of_other_counters() -> None:
    links = json.loads(golden("ip_link_statistics.json"))
    links[0]["stats64"]["rx"]["dropped"] = 12
    device = links[0]["ifname"]
    counts = by_name(Links().read(json.dumps(links), View(Side.DUT, (device,))))
    assert counts == {
        f"{device} rx_dropped": 12,
        f"{device} rx_missed_errors": 0,
        f"{device} rx_errors": 0,
        f"{device} rx_nohandler": 0,
        f"{device} tx_dropped": 0,
        f"{device} tx_errors": 0,
    }


def test_what_a_veth_cannot_send_is_lost_at_its_peers_queue() -> None:
    statistics = {"rx": {"dropped": 0}, "tx": {"dropped": 9}}
    counts = Links().read(json.dumps([{"ifname": "t0", "stats64": statistics}]), TESTER)
    (transmit,) = [count for count in counts if count.name == "t0 tx_dropped"]
    assert transmit.place == "DUT, queue of d0 (veth peer of t0)"


def test_a_veths_two_ends_count_what_xdp_cannot_send_in_both() -> None:
    counts = {count.name: count for count in Drivers().read(f"@ d0\n{golden('ethtool_veth.txt')}", DUT)}
    assert counts["d0 rx_queue_*_drops"].frames == 42
    assert counts["d0 rx_queue_*_drops"].also_in == ("DUT: d0 rx_dropped",)
    errors = counts["d0 tx_queue_*_xdp_xmit_errors"]
    assert (errors.frames, errors.also_in) == (7, ("DUT: d0 tx_dropped", "tester: t0 rx_dropped"))
    assert counts["d0 rx_queue_*_xdp_drops"].beside is not None


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("mlx5_core", {"rx_out_of_buffer": 4500, "rx_discards_phy": 300, "rx_steer_missed_packets": 3}),
        ("ixgbe", {"rx_missed_errors": 71234, "rx_no_dma_resources": 65, "rx_no_buffer_count": 812}),
        ("i40e", {"port.rx_dropped": 2200}),
        ("virtio_net", {"rx_queue_*_drops": 7}),
    ],
)
def test_cards_counters_are_known_by_their_drivers_names(driver: str, expected: dict[str, int]) -> None:
    counts = Drivers().read(f"@ eth2\n{golden('ethtool_' + driver.removesuffix('_core') + '.txt')}", card(driver))
    assert {count.name: count.frames for count in counts if count.frames} == {
        f"eth2 {name}": frames for name, frames in expected.items()
    }


def test_what_a_program_drops_at_a_virtio_card_found_room_in_its_ring() -> None:
    text = "@ eth2\n     rx_queue_0_drops: {}\n     rx_queue_0_xdp_drops: {}\n"
    before, after = (Drivers().read(text.format(*values), card("virtio_net")) for values in ((7, 7), (27, 25)))
    found = account(before, after)
    assert [(row.counter, row.frames) for row in found.rows] == [("eth2 rx_queue_*_drops", 2)]
    assert [(row.counter, row.frames) for row in found.beside] == [("eth2 rx_queue_*_xdp_drops", 18)]
    assert found.faults == ()


def test_an_unknown_driver_is_not_asked() -> None:
    assert Drivers().script(card("secret_nic")) == ""


def test_only_roots_of_queueing_disciplines_are_read_for_they_hold_their_leaves() -> None:
    counts = Qdisc().read(golden("tc_qdisc.json"), DUT)
    assert {(count.place, count.frames) for count in counts} == {
        ("DUT, tbf qdisc of d1", 812),
        ("DUT, htb qdisc of d0", 9),
        ("DUT, tc filter of d0", 4),
    }


def test_a_rule_counts_what_it_drops_only_where_its_counter_stands_right_before_the_verdict() -> None:
    counts = Nftables().read(golden("nft_table.json"), DUT)
    assert by_name(counts) == {
        "nft ip x forward, rule every tenth": 400,
        "nft ip x forward, counter foo": 44,
        "nft ip x forward, rule 6": 8,
    }


def test_a_listing_that_was_cut_off_is_an_error_and_no_number() -> None:
    with pytest.raises(ValueError, match="line 1"):
        Nftables().read(golden("nft_table.json")[:900], DUT)


def test_connection_tracking_sums_its_cpus() -> None:
    assert by_name(Conntrack().read(golden("nf_conntrack.txt"), DUT)) == {
        "nf_conntrack drop": 28,
        "nf_conntrack insert_failed": 0,
    }
    assert Conntrack().read("", DUT) == ()


def test_a_connection_that_could_not_be_inserted_is_lost_once_however_the_kernel_counts_it() -> None:
    head = golden("nf_conntrack.txt").splitlines()[0].split()

    def counted(drop: int, insert_failed: int) -> tuple[Count, ...]:
        own = {"drop": drop, "insert_failed": insert_failed}
        return Conntrack().read("\n".join([" ".join(head), " ".join(f"{own.get(name, 0):08x}" for name in head)]), DUT)

    for drop, full in ((7, 3), (4, 0), (0, 0)):
        rows = {row.counter: row.frames for row in account(counted(0, 0), counted(drop, 4)).rows}
        assert rows == {"nf_conntrack insert_failed": 4} | ({"nf_conntrack drop": full} if full else {})
