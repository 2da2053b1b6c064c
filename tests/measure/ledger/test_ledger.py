"""The loss ledger: sources, readings, losses, and whether the account balances."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import HostError
from nicbench.core.reading import Counts
from nicbench.core.trial import Health, PortReading, Reading, StreamReading
from nicbench.hosts.base import Completed
from nicbench.measure.ledger.base import Count, Echo, Side, Stage, View
from nicbench.measure.ledger.losses import account, add_ledger
from nicbench.measure.ledger.reader import Counters, LedgerReader
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

# Counters of tools and of /proc in, counts with their places out.

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
    assert counts["d0 rx_queue_*_xdp_drops"].why_not_lost is not None


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
        "nf_conntrack early_drop": 0,
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


# Every host is asked once, in one command; what a host lacks or garbles is named and ends nothing.

LINK = '[{"ifname": "d0", "stats64": {"rx": {"dropped": 4}, "tx": {"dropped": 0}}}]'


class Machine(FakeHost):
    """Prints ``printed`` for each section that it is asked for, and keeps which these were."""

    def __init__(self, name: str, **printed: str) -> None:
        super().__init__(name)
        self.asked: list[str] = []
        self.printed = printed
        self.answer("sh -c", self._print)

    def _print(self, command: tuple[str, ...]) -> Completed:
        self.asked = [part.split("'")[0] for part in command[2].split("=== nicbench section ")[1:]]
        text = "".join(f"=== nicbench section {kind}\n{self.printed.get(kind, '')}\n" for kind in self.asked)
        return Completed(command, 0, text, "")


def reader(*hosts: tuple[FakeHost, Side]) -> LedgerReader:
    return LedgerReader(tuple((host, View(side, ("d0",))) for host, side in hosts))


async def test_both_sides_are_asked_each_with_one_command() -> None:
    tester, dut = Machine("one"), Machine("other", links=LINK)
    seen = await reader((tester, Side.TESTER), (dut, Side.DUT)).read()
    assert [(count.key, count.frames) for count in seen.counts if count.frames] == [("DUT: d0 rx_dropped", 4)]
    assert (len(tester.commands), len(dut.commands), seen.faults) == (1, 1, ())


async def test_what_frames_pass_on_the_dut_alone_is_not_read_beside_the_testers_sockets() -> None:
    tester, dut = Machine("one"), Machine("other")
    await reader((tester, Side.TESTER), (dut, Side.DUT)).read()
    assert set(dut.asked) - set(tester.asked) == {"conntrack", "ip", "nftables"}


async def test_of_two_sides_on_one_machine_one_is_asked_for_what_the_machine_counts() -> None:
    tester, dut = Machine("same"), Machine("same")
    await reader((tester, Side.TESTER), (dut, Side.DUT)).read()
    assert "softnet" in dut.asked
    assert "softnet" not in tester.asked


async def test_what_is_not_understood_is_a_fault_and_the_rest_is_read() -> None:
    dut = Machine("dut", links=LINK, qdisc='[{"kind": "tbf", "dev":')
    seen = await reader((dut, Side.DUT)).read()
    assert len(seen.counts) > 0
    assert len(seen.faults) == 1
    assert seen.faults[0].startswith("qdisc on dut was not understood: JSONDecodeError")


async def test_a_host_that_does_not_answer_is_a_fault() -> None:
    gone = FakeHost("gone")

    def dead(_command: tuple[str, ...]) -> Completed:
        raise HostError("no route to host", place="gone")

    gone.answer("sh -c", dead)
    assert (await reader((gone, Side.DUT)).read()).faults == (
        "the counters of gone could not be read: no route to host",
    )


# The loss ledger accounts for lost frames by the counters that rose.


def reading(lost: int, unsent: int = 0, **port: Any) -> Reading:
    sent = 1000 - unsent
    values = {"name": "t1", "foreign": 0, "corrupted_unattributed": 0, "receive_overrun": 0, **port}
    return Reading(
        transmit_ns=1_000_000_000,
        counts=Counts(intended=1000, sent=sent, unsent_tester=unsent, received=sent - lost, lost=lost),
        streams=(),
        ports=(PortReading(**values),),
        latency=None,
        health=Health(longest_gap_ns=0, total_gap_ns=0, gap_floor_ns=1, gaps=0, iterations=1, idle_iterations=0),
    )


def counters(**frames: int) -> Counters:
    return Counters(
        tuple(Count(name, name, value, stage=Stage.DUT_RECEIVE, place="somewhere") for name, value in frames.items())
    )


def test_frames_are_found_where_a_counter_of_the_dut_rose_and_the_rest_is_unexplained() -> None:
    judged = add_ledger(reading(lost=100), {"policer": 5, "other": 7}, {"policer": 95, "other": 7})
    assert [(row.place, row.counter, row.frames) for row in judged.ledger] == [("DUT", "policer", 90)]
    assert judged.unexplained == 10


def test_frames_beside_the_load_that_were_dropped_are_no_fault_and_more_than_these_are() -> None:
    report = StreamReading(name="1->0 0 join", counts=Counts(intended=20, sent=20, received=0, lost=20))
    for dropped, is_fault in ((110, False), (121, True)):
        lost = reading(lost=100).replace(beside=(report,))
        judged = add_ledger(lost, {"queue": 0}, {"queue": dropped})
        assert bool(judged.ledger_faults) is is_fault
        assert [row.frames for row in judged.ledger_beside] == ([] if is_fault else [10])


def test_counters_of_the_hosts_are_rows_too() -> None:
    judged = add_ledger(reading(lost=7), {}, {}, (counters(d0=3), counters(d0=10)))
    assert [(row.counter, row.frames) for row in judged.ledger] == [("d0", 7)]
    assert (judged.unexplained, judged.ledger_faults) == (0, ())


def test_an_overrun_of_the_testers_own_port_is_a_row_of_the_ledger() -> None:
    judged = add_ledger(reading(lost=40, receive_overrun=40), {}, {})
    assert [row.place for row in judged.ledger] == ["tester, receive ring of t1"]
    assert judged.unexplained == 0


def test_a_socket_that_is_full_is_counted_by_the_interface_again() -> None:
    view = View(Side.TESTER, ("veth1",), kinds={"veth1": "veth"}, ports={"t1": "veth1"})
    before, after = (
        Counters((Count("tester: veth1 rx_drops", "drops", frames, Stage.TESTER_RECEIVE, "poller"),))
        for frames in (0, 41)
    )
    full = reading(lost=41, receive_overrun=40, counters={"xdp_rx_dropped": 40})
    judged = add_ledger(full, {}, {}, (before, after), lambda _: view)
    assert [(row.place, row.frames) for row in judged.ledger] == [("poller", 1), ("tester, receive ring of t1", 40)]


def test_an_overrun_of_a_port_that_only_sends_stands_beside() -> None:
    judged = add_ledger(reading(lost=5, receive_overrun=40), {}, {}, receivers=(1,))
    assert (judged.ledger, judged.unexplained, judged.ledger_faults) == ((), 5, ())
    assert [(row.place, row.frames) for row in judged.ledger_beside] == [("tester, receive ring of t1", 40)]


def test_a_trial_without_loss_has_an_empty_ledger_whatever_the_counters_did() -> None:
    judged = add_ledger(reading(lost=0), {"d0 rx": 0}, {"d0 rx": 3})
    assert judged.ledger == ()
    assert judged.unexplained == 0


def test_what_was_not_sent_stands_at_the_transmit_ring_and_explains_no_loss() -> None:
    judged = add_ledger(reading(lost=5, unsent=30, counters={"xdp_tx_invalid_descs": 10}), {}, {})
    assert [(row.place, row.frames, row.unsent) for row in judged.ledger] == [
        ("tester, transmit ring of t1", 10, True),
        ("tester, transmit ring", 20, True),
    ]
    assert judged.unexplained == 5


def test_a_counter_that_counted_more_than_was_lost_is_a_fault_and_the_counts_stay() -> None:
    before = reading(lost=10)
    judged = add_ledger(before, {}, {}, (counters(d0=0), counters(d0=12)))
    assert judged.unexplained == -2
    assert judged.ledger_faults[0].startswith("2 more frames were counted as dropped than are missing (d0 12)")
    assert judged.counts == before.counts


def test_of_a_frame_that_came_in_copies_one_may_be_dropped_and_that_is_no_fault() -> None:
    copied = reading(lost=10)
    copied = copied.replace(counts=copied.counts.replace(duplicated=30))
    judged = add_ledger(copied, {}, {}, (counters(d0=0), counters(d0=12)))
    assert judged.unexplained == -2
    assert judged.ledger_faults == ()
    assert [(row.counter, row.frames) for row in judged.ledger_beside] == [("d0 12", 2)]


def test_counters_that_could_not_be_read_are_a_fault() -> None:
    judged = add_ledger(reading(lost=10), {}, {}, (Counters(faults=("no counters of dut: gone",)), Counters()))
    assert judged.ledger_faults == ("no counters of dut: gone",)
    assert judged.unexplained == 10


# No frame is in two rows; what contradicts itself is said.


def count(key: str, frames: int, **more: object) -> Count:
    values = {"stage": Stage.DUT_RECEIVE, "place": key, **more}
    return Count(key, key, frames, **values)  # type: ignore[arg-type]


def rows(before: list[Count], after: list[Count]) -> dict[str, int]:
    found = account(before, after)
    assert found.faults == ()
    return {row.counter: row.frames for row in found.rows}


def grown(*counts: Count) -> dict[str, int]:
    """Rows where every counter began at 0."""
    return rows([Count(one.key, one.name, 0) for one in counts], list(counts))


def test_a_frame_dropped_at_the_backlog_is_in_one_row_only() -> None:
    device = count("d0 rx_dropped", 100, has_machine_wide=True)
    assert grown(device, count("cpu0", 0, machine_wide=True), count("cpu1", 100, machine_wide=True)) == {"cpu1": 100}


def test_drops_of_other_traffic_of_the_machine_are_not_charged_to_the_dut() -> None:
    device = count("d0 rx_dropped", 10, has_machine_wide=True)
    assert grown(device, count("cpu1", 5000, machine_wide=True)) == {"cpu1": 10}


def test_what_a_device_dropped_for_another_reason_stays_its_own() -> None:
    devices = [count("d0", 30, has_machine_wide=True), count("d1", 12, has_machine_wide=True)]
    cpus = [count("cpu0", 3, machine_wide=True), count("cpu1", 20, machine_wide=True)]
    assert grown(*devices, *cpus) == {"cpu0": 3, "cpu1": 20, "d0": 7, "d1": 12}


def veth(backlog: int, received: int, sent: int, polled: int) -> dict[str, int]:
    return grown(
        count("t0 tx", sent, echo=Echo(of="d0 rx", unless="d0 polled")),
        count("d0 rx", received, has_machine_wide=True),
        count("d0 polled", polled, place=None),
        count("cpu1", backlog, machine_wide=True),
    )


def test_a_veth_that_hands_over_itself_counts_the_full_backlog_too() -> None:
    assert veth(backlog=90, received=90, sent=90, polled=0) == {"cpu1": 90}


def test_a_veth_whose_peer_polls_counts_the_peers_full_queue_alone() -> None:
    assert veth(backlog=90, received=90, sent=40, polled=500) == {"cpu1": 90, "t0 tx": 40}


def test_a_narrow_counter_is_taken_off_the_wider_ones_that_hold_it() -> None:
    socket = count("socket", 8, also_in=("poller",))
    poller = count("poller", 10, also_in=("t1 rx",))
    assert grown(socket, poller, count("t1 rx", 13)) == {"socket": 8, "poller": 2, "t1 rx": 3}


def test_a_part_that_is_more_than_its_whole_is_a_fault_that_names_both() -> None:
    socket, poller = count("socket", 8, also_in=("poller",)), count("poller", 5)
    found = account([count("socket", 0), count("poller", 0)], [socket, poller])
    assert found.faults == ("counted twice: poller rose by 5, and what it holds by more (socket 8)",)
    assert [row.frames for row in found.rows] == [8]


def test_a_driver_of_another_version_holds_its_frames_elsewhere() -> None:
    ring = count("rx_out_of_buffer", 45, within=("rx_missed_errors", "rx_dropped"))
    new = (count("rx_missed_errors", 45), count("rx_dropped", 0))
    old = (count("rx_missed_errors", 0), count("rx_dropped", 50))
    assert grown(ring, *new) == {"rx_out_of_buffer": 45}
    assert grown(ring, *old) == {"rx_out_of_buffer": 45, "rx_dropped": 5}


def test_a_counter_that_ran_backwards_is_a_fault_and_counts_nothing() -> None:
    found = account([count("d0 rx", 10)], [count("d0 rx", 3)])
    assert found.rows == ()
    assert found.faults[0].startswith("d0 rx ran backwards by 7")


def test_a_counter_that_was_not_there_before_counts_nothing() -> None:
    assert rows([], [count("d0 rx", 10)]) == {}


def test_rows_stand_in_the_order_of_the_path() -> None:
    late = count("a", 1, stage=Stage.RECEIVE_RING)
    early = count("z", 1, stage=Stage.TRANSMIT_RING)
    assert list(grown(late, count("m", 1), early)) == ["z", "m", "a"]
