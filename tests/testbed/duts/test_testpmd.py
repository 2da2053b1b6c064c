"""testpmd: its command line, what it prints, and how it is talked to, without one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost, FakeProcess

from nicbench.core.errors import HostError, UsageError
from nicbench.core.pattern import Way
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.duts import _dpdk as output
from nicbench.testbed.duts._dpdk import DutCores, Scheduling, address_ways, dut_cores, file_prefix, paired_ways
from nicbench.testbed.duts._process import parse_waiting_ns
from nicbench.testbed.duts.reflector import ReflectorOptions, configuration
from nicbench.testbed.duts.testpmd import Testpmd, TestpmdOptions, command_line
from nicbench.testbed.labs.base import DutPort
from nicbench.testbed.labs.memif import MemifOptions
from nicbench.tuning.stack import UndoStack

from .lab import described_testbed
from .memif_testbed import memif_testbed

GOLDEN = Path(__file__).with_name("golden")
ONE_CORE = DutCores(main=0, workers=(1,))


def lines(name: str) -> list[str]:
    return (GOLDEN / f"{name}.txt").read_text().splitlines()


def test_forward_statistics_give_each_ports_counters_and_the_record_of_cycles() -> None:
    statistics = output.forward_statistics(lines("testpmd_fwd_stats"))
    assert statistics.ports[1]["TX-packets"] == 300_008
    assert (statistics.cycles, statistics.packets, statistics.tsc_hz) == (128_618_384, 300_016, 2.6e9)
    assert output.count_drops(statistics) == {"testpmd d0 RX-dropped": 0, "testpmd d1 RX-dropped": 0}
    assert output.count_overruns(statistics) == {0: 0, 1: 32}


def test_before_the_first_packet_there_are_no_cycles() -> None:
    statistics = output.forward_statistics(lines("testpmd_fwd_stats_idle"))
    assert statistics.cycles is None
    assert statistics.packets is None
    assert list(statistics.ports) == [0]


def test_the_map_of_ports_queues_and_cores_is_read_back() -> None:
    assert output.list_streams(lines("testpmd_config_fwd")) == (
        "port 0 queue 0 to port 1 queue 0 on lcore 1",
        "port 1 queue 0 to port 0 queue 0 on lcore 1",
    )


def test_a_refused_command_is_seen_and_an_answered_one_is_not() -> None:
    assert output.refusal(["testpmd> set fwd nonsense", "Bad arguments"]) == "Bad arguments"
    assert output.refusal(lines("testpmd_fwd_stats")) is None


def test_the_version_is_the_eals_own() -> None:
    assert output.version("EAL: Detected NUMA nodes: 1\nEAL: RTE Version: 'DPDK 22.11.11'\n") == "DPDK 22.11.11"
    assert output.version("") is None


def test_the_command_line_says_every_setting() -> None:
    options = TestpmdOptions(
        forward_mode="csum", receive_descriptors=4096, transmit_descriptors=2048, burst=64, mbuf_cache=512,
        devargs="mprq_en=1", eal=("--log-level=debug",), scheduling=Scheduling(policy="fifo", priority=50),
    )  # fmt: skip
    command = command_line(options, memif_testbed(FakeHost()), ONE_CORE, "prefix")
    assert command[:6] == ("chrt", "--fifo", "50", "stdbuf", "-oL", "dpdk-testpmd")
    for word in (
        "--lcores=0@0,1@1", "--file-prefix=prefix", "--in-memory", "--no-pci", "--log-level=debug",
        "--forward-mode=csum", "--rxd=4096", "--txd=2048", "--burst=64", "--mbcache=512", "--total-num-mbufs=16384",
        "--port-topology=paired", "--record-core-cycles",
    ):  # fmt: skip
        assert word in command
    devices = [word for word in command if word.startswith("--vdev=net_memif")]
    assert len(devices) == 2
    assert all(device.endswith(",mprq_en=1") and "role=server" in device for device in devices)


def test_one_port_is_looped_and_frames_come_back_on_it() -> None:
    testbed = memif_testbed(FakeHost(), MemifOptions(topology="same-port"))
    assert "--port-topology=loop" in command_line(TestpmdOptions(), testbed, ONE_CORE, "prefix")
    (way,) = address_ways(testbed, 4, paired_ways(testbed))
    assert (way.transmit, way.receive) == (0, 0)
    assert way.destination_address.startswith("198.19.")


@pytest.mark.parametrize(
    ("topology", "word", "expected"),
    [
        ("crossed", "--port-topology=paired", [(0, 1), (1, 0), (2, 3), (3, 2)]),
        ("same-port", "--port-topology=loop", [(0, 0), (1, 1), (2, 2), (3, 3)]),
    ],
)
def test_four_ports_are_two_pairs_or_four_loops(topology: str, word: str, expected: list[Way]) -> None:
    testbed = memif_testbed(FakeHost(), MemifOptions.model_validate({"topology": topology, "ports": 4}))
    assert word in command_line(TestpmdOptions(), testbed, ONE_CORE, "prefix")
    ways = Testpmd(TestpmdOptions()).addressing(testbed, 4)
    assert [(way.transmit, way.receive) for way in ways] == expected
    swept = {address for way in ways for address in (way.source_address, way.destination_address)}
    assert len(swept) == (4 if topology == "crossed" else 8)


def test_without_huge_pages_the_eal_is_told_so() -> None:
    command = command_line(TestpmdOptions(huge_pages=False), memif_testbed(FakeHost()), ONE_CORE, "prefix")
    assert "--no-huge" in command
    assert "--in-memory" not in command


def test_the_time_it_waited_is_that_of_all_its_threads() -> None:
    assert parse_waiting_ns("500 20 3\n700 5 9\n") == 25
    assert parse_waiting_ns("") is None


def test_two_runs_share_no_files() -> None:
    assert file_prefix("one") != file_prefix("other")


def test_a_real_time_policy_needs_a_priority_and_no_other_has_one() -> None:
    with pytest.raises(ValidationError, match="needs a `priority`"):
        Scheduling(policy="rr")
    with pytest.raises(ValidationError, match="has no priority"):
        Scheduling(priority=5)
    assert Scheduling().prefix() == ()


def test_the_thread_that_answers_has_a_cpu_of_its_own_where_there_is_one() -> None:
    many = CoreMap(worker=0, dut=(1,), housekeeping=(2, 3), shared=False)
    assert dut_cores(memif_testbed(FakeHost(), cores=many), 2, "testpmd") == DutCores(main=3, workers=(1, 2))
    assert dut_cores(memif_testbed(FakeHost()), 1, "testpmd") == DutCores(main=0, workers=(1,))


def test_more_cores_than_there_are_is_refused_with_what_there_is() -> None:
    with pytest.raises(UsageError, match="this machine has 1") as refused:
        dut_cores(memif_testbed(FakeHost()), 2, "testpmd")
    assert "`share_cpus: true`" in str(refused.value.next_step)
    assert dut_cores(memif_testbed(FakeHost()), 2, "testpmd", share_cpus=True).workers == (1, 1)


def test_queues_come_with_their_hash_and_with_buffers_for_all_their_rings() -> None:
    options = TestpmdOptions(queues=4, receive_descriptors=4096, transmit_descriptors=2048, rss="udp")
    command = command_line(options, memif_testbed(FakeHost()), ONE_CORE, "prefix")
    assert {"--rxq=4", "--txq=4", "--rss-udp"} <= set(command)
    (buffers,) = (int(word.partition("=")[2]) for word in command if word.startswith("--total-num-mbufs="))
    assert buffers >= 2 * 4 * (4096 + 2048)


def test_frames_by_queue_and_lengths_of_rings_are_read_back() -> None:
    assert output.queue_frames(lines("testpmd_xstats")) == ((1500, 1750, 2375, 2375), (0, 7, 0, 0))
    assert output.queue_frames(["###### NIC extended statistics for port 0", "rx_good_packets: 5"]) == ()
    assert output.rings(["      RX desc=4096 - RX free", "      TX desc=2048 - TX free"]) == output.Rings(4096, 2048)
    assert output.rings(["      RX desc=0 - RX free", "      TX desc=0 - TX free"]) is None


async def test_a_testbed_of_kernel_interfaces_is_no_place_for_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="shared memory"):
        await Testpmd(TestpmdOptions()).up(described_testbed(), UndoStack("nb-test", None, tmp_path))


async def test_one_that_dies_at_its_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    host = FakeHost()
    host.process("stdbuf", FakeProcess(status=1, stderr="EAL: no free huge pages"))
    with pytest.raises(HostError, match=r"(?s)testpmd exited with status 1.*no free huge pages"):
        await Testpmd(TestpmdOptions(huge_pages=False)).up(memif_testbed(host), UndoStack("nb-test", None, tmp_path))


def test_cards_are_given_by_their_addresses_and_frames_bear_theirs() -> None:
    rings = memif_testbed(FakeHost())
    card = DutPort("d0", mac="02:00:00:00:00:07", address="0000:65:02.0")
    testbed = replace(rings, tester_ports=rings.tester_ports[:1], dut_ports=(card,))
    command = command_line(TestpmdOptions(devargs="mprq_en=1"), testbed, ONE_CORE, "prefix")
    assert "--allow=0000:65:02.0,mprq_en=1" in command
    assert "--no-pci" not in command
    (way,) = Testpmd(TestpmdOptions()).addressing(testbed, 4)
    assert (way.transmit, way.receive, way.destination_mac) == (0, 0, "02:00:00:00:00:07")
    reflected = configuration(ReflectorOptions(devargs="mprq_en=1"), testbed, ONE_CORE)
    assert reflected["ports"] == [{"name": "d0", "kind": "pci", "address": "0000:65:02.0", "devargs": "mprq_en=1"}]
