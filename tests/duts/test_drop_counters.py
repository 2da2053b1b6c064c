"""Drop counters: recorded outputs in, rows of the loss ledger out."""

from __future__ import annotations

import json
from pathlib import Path

from nicbench.duts._backlog import BacklogLedger, attribute, growth
from nicbench.duts._drop_counters import device_losses, snmp_ipv6, snmp_table, softnet_dropped
from nicbench.hosts._fake import FakeHost

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def test_the_backlog_column_is_read_as_hex_per_cpu() -> None:
    assert softnet_dropped(golden("softnet_stat_two_cpus.txt")) == {0: 0, 1: 0x1AB61}


def test_a_cpu_that_is_offline_does_not_shift_the_others() -> None:
    second = golden("softnet_stat_two_cpus.txt").splitlines()[1]
    assert softnet_dropped(second) == {1: 0x1AB61}


def test_an_old_kernel_that_does_not_name_the_cpu_is_read_by_order() -> None:
    assert softnet_dropped(golden("softnet_stat_before_5_14.txt")) == {0: 0, 1: 0x10}


def test_an_empty_softnet_file_gives_no_counter_instead_of_zero() -> None:
    assert softnet_dropped("") == {}


def test_the_ip_tables_give_names_with_values() -> None:
    table = snmp_table(golden("snmp_no_route.txt"), "Ip")
    assert (table["Forwarding"], table["InReceives"], table["InDiscards"]) == (1, 7, 0)
    assert snmp_ipv6(golden("snmp6_no_route.txt"))["Ip6InNoRoutes"] == 7


def test_a_table_that_is_not_there_gives_nothing() -> None:
    assert snmp_table(golden("snmp_no_route.txt"), "IpExt") == {}
    assert snmp_table("Ip: Forwarding DefaultTTL\nIp: 1\n", "Ip") == {}


def test_device_losses_leave_out_the_parts_of_other_counters() -> None:
    text = golden("ip_link_statistics.json")
    changed = json.loads(text)
    changed[0]["stats64"]["rx"]["dropped"] = 12
    losses = device_losses(json.dumps(changed))
    assert losses == {"rx_errors": 0, "rx_dropped": 12, "rx_missed_errors": 0, "tx_errors": 0, "tx_dropped": 0}


def test_a_frame_dropped_at_the_backlog_is_in_one_row_only() -> None:
    backlog, others = attribute({"d0 rx_dropped": 100, "d1 rx_dropped": 0}, {0: 0, 1: 100})
    assert backlog == {"softnet_backlog cpu0": 0, "softnet_backlog cpu1": 100}
    assert others == {"d0 rx_dropped": 0, "d1 rx_dropped": 0}


def test_drops_of_other_traffic_of_the_machine_are_not_charged_to_the_dut() -> None:
    backlog, others = attribute({"d0 rx_dropped": 10}, {1: 5000})
    assert (backlog, others) == ({"softnet_backlog cpu1": 10}, {"d0 rx_dropped": 0})


def test_what_a_device_dropped_for_another_reason_stays_its_own() -> None:
    backlog, others = attribute({"d0 rx_dropped": 30, "d1 rx_dropped": 12}, {0: 3, 1: 20})
    assert backlog == {"softnet_backlog cpu0": 3, "softnet_backlog cpu1": 20}
    assert others == {"d0 rx_dropped": 7, "d1 rx_dropped": 12}


def test_a_counter_that_began_anew_does_not_count_backwards() -> None:
    assert growth({"a": 10, "b": 5}, {"a": 3, "b": 6, "c": 9}) == {"a": 0, "b": 1, "c": 9}


def softnet(dropped: int) -> str:
    return f"00000000 {dropped:08x} " + " ".join(["00000000"] * 10) + " 00000001 00000000 00000000\n"


def statistics(receive_dropped: int, transmit_dropped: int) -> str:
    link = json.loads(golden("ip_link_statistics.json"))
    link[0]["stats64"]["rx"]["dropped"] = receive_dropped
    link[0]["stats64"]["tx"]["dropped"] = transmit_dropped
    return json.dumps(link)


async def test_over_a_trial_the_ledger_grows_by_what_the_dut_lost_and_no_more() -> None:
    host = FakeHost(files={"/proc/net/softnet_stat": softnet(70_000)})
    host.answer("ip -j -s -s link show dev d0", statistics(900, 5))
    ledger = BacklogLedger(host, ("d0",))
    before = await ledger.read()
    host.files["/proc/net/softnet_stat"] = softnet(70_130)
    host.answer("ip -j -s -s link show dev d0", statistics(1020, 8))
    after = await ledger.read()
    assert {name: after[name] - before[name] for name in after if after[name] != before[name]} == {
        "softnet_backlog cpu1": 120,
        "d0 tx_dropped": 3,
    }
