"""Real frames are lost at known places: as many as the cause's own counter says, there and nowhere else."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.xdp_source import compile_xdp

from nicbench.core.trial import Reading

from .lab_trial import Lab, lab, lost_at, printed, request

pytestmark = pytest.mark.lab

QUEUE = "DUT, queue of d0 (veth peer of t0)"
FIREWALL = "DUT, firewall (ip lossy forward)"
QDISC = "DUT, tbf qdisc of d1"
TABLE = "DUT, connection tracking, its table full (nf_conntrack_max)"
OVERRUN = "tester, receive ring of t1"
RULES = """table ip lossy {
  chain forward {
    type filter hook forward priority 0; policy accept;
    numgen inc mod 8 0 counter drop
  }
}
"""
PAUSE = {"pause_receive_after_s": 0.03, "pause_receive_s": 0.15}
FEW = 64
SLOW_TBF = ("root", "tbf", "rate", "1mbit", "burst", "1600", "limit", "1600")


async def add_rules(up: Lab) -> None:
    await up.testbed.dut.run(("nft", "-f", "-"), input_text=RULES)


async def witness_of(up: Lab) -> dict[str, int]:
    """Each cause's own counter, by other commands and parsers than the ledger's."""
    rules = await up.on_dut("nft", "list", "ruleset")
    dropped = re.findall(r"counter packets (\d+) bytes \d+ drop", rules)
    qdiscs = json.loads(await up.on_dut("tc", "-s", "-j", "qdisc", "show", "dev", "d1"))
    near, far = await up.link("t0"), await up.link("d0")
    return {
        "left": near["tx_packets"],
        "queue": near["tx_dropped"],
        "received by the DUT": far["rx_dropped"],
        "firewall": sum(map(int, dropped)),
        "qdisc": sum(int(qdisc["drops"]) for qdisc in qdiscs),
    }


def assert_lost_at(reading: Reading, places: dict[str, int]) -> None:
    """The frames at these places, none elsewhere, none unexplained, and no counter that contradicts another."""
    assert lost_at(reading) == places, printed(reading)
    assert (reading.unexplained, reading.ledger_faults) == (0, ()), printed(reading)
    assert sum(places.values()) == reading.counts.lost


def unsent_of(reading: Reading) -> int:
    return sum(row.frames for row in reading.ledger if row.unsent)


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.alone  # a tester that others keep from its core sends too slowly to overflow a queue
async def test_what_is_lost_at_one_place_is_found_there_and_nowhere_else() -> None:
    async with lab() as up:

        async def witness() -> dict[str, int]:
            return await witness_of(up)

        # The tester's transmit ring: a load that nobody can send. What was not sent is not lost.
        reading, rose = await up.trial(request(20e6, 0.02), witness)
        assert unsent_of(reading) == reading.counts.intended - rose["left"] > 0, printed(reading)
        assert_lost_at(reading, {})

        await up.on_dut("tc", "qdisc", "add", "dev", "d1", *SLOW_TBF)
        reading, rose = await up.trial(request(), witness)
        assert rose["qdisc"] > 0
        assert_lost_at(reading, {QDISC: rose["qdisc"]})
        await up.on_dut("tc", "qdisc", "del", "dev", "d1", "root")

        await add_rules(up)
        reading, rose = await up.trial(request(), witness)
        assert rose["firewall"] == pytest.approx(reading.counts.sent / 8, abs=1)
        assert_lost_at(reading, {FIREWALL: rose["firewall"]})
        await up.on_dut("nft", "delete", "table", "ip", "lossy")

        reading, _ = await up.trial(request(), descriptors=FEW, fault=PAUSE)
        own = reading.ports[1].counters
        assert own["xdp_rx_ring_full"] + own["xdp_rx_dropped"] > 0
        assert_lost_at(reading, {OVERRUN: own["xdp_rx_ring_full"] + own["xdp_rx_dropped"]})

        await up.poll_slowly("d0", 20)
        reading, rose = await up.trial(request(), witness)
        assert rose["queue"] == reading.counts.sent - rose["left"] > 0
        assert_lost_at(reading, {QUEUE: rose["queue"]})


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.alone  # the size of the table is a setting of the whole machine
async def test_frames_that_a_full_table_of_connections_drops_are_found_there_and_those_of_others_come_back() -> None:
    async with lab(kind="nat", dut=", table_size: 2048, random: true", flows=4096) as up:
        disclosed = up.dut.disclosure()["connection_tracking"]
        assert disclosed["table_size"] == 2048
        # The first 2048 flows that come stay. Of the others, some find a place that the kernel takes from one of them.
        reading, _ = await up.trial(request(20_000.0, 0.5))
        assert reading.counts.received > 0
        assert reading.counts.lost > 0
        assert reading.counts.corrupted == 0  # address, port and both checksums are others
        assert_lost_at(reading, {TABLE: reading.counts.lost})


async def test_a_drop_that_no_counter_sees_stays_unexplained_and_a_drivers_word_on_it_stands_beside(
    tmp_path: Path,
) -> None:
    program = compile_xdp(
        '#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\nSEC("xdp")\nint drop(struct xdp_md *context)\n'
        '{\n\t(void)context;\n\treturn XDP_DROP;\n}\nchar _license[] SEC("license") = "GPL";\n',
        tmp_path,
    )
    async with lab() as up:
        assert up.testbed.dut is not None
        for mode in ("xdpgeneric", "xdpdrv"):
            await up.on_dut("ip", "link", "set", "dev", "d0", mode, "obj", str(program), "sec", "xdp")
            reading, _ = await up.trial(request(duration_s=0.1))
            await up.on_dut("ip", "link", "set", "dev", "d0", mode, "off")
            assert reading.unexplained == reading.counts.lost == reading.counts.sent > 0, printed(reading)
            assert (lost_at(reading), reading.ledger_faults) == ({}, ()), printed(reading)
            beside = {row.place: row.frames for row in reading.ledger_beside}
            assert beside == ({"DUT, XDP program of d0": reading.counts.lost} if mode == "xdpdrv" else {})


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.alone
async def test_a_full_backlog_is_counted_three_times_by_the_kernel_and_once_by_the_ledger() -> None:
    async with lab(rps=True, dut=", backlog_frames: 1") as up:
        (cpu,) = up.testbed.cores.dut
        backlog = f"DUT, backlog of CPU {cpu}"

        async def witness() -> dict[str, int]:
            return await witness_of(up)

        # Handed over by the sender itself: softnet_stat, the receiver's rx_dropped and the sender's tx_dropped.
        reading, rose = await up.trial(request(500_000.0, 0.1), witness)
        assert rose["queue"] == rose["received by the DUT"] > 0
        assert_lost_at(reading, {backlog: rose["queue"]})

        # Handed over by a poller, 100 frames at once: softnet_stat and rx_dropped.
        await up.poll_slowly("d0", 20)
        reading, rose = await up.trial(request(5000.0, 0.4), witness)
        assert rose["queue"] == 0 < rose["received by the DUT"]
        assert_lost_at(reading, {backlog: rose["received by the DUT"]})


@pytest.mark.sampled(3, of="alone in turn")
@pytest.mark.alone
async def test_losses_at_six_places_at_once_are_told_apart() -> None:
    async with lab(rps=True, dut=", backlog_frames: 100") as up:
        await up.poll_slowly("d0", 5)
        await add_rules(up)
        await up.on_dut(
            "tc", "qdisc", "add", "dev", "d1", "root", "tbf", "rate", "4mbit", "burst", "1600", "limit", "1600"
        )

        async def witness() -> dict[str, int]:
            return await witness_of(up)

        reading, rose = await up.trial(request(20e6), witness, descriptors=FEW, fault=PAUSE)
        own = reading.ports[1].counters
        places = {
            QUEUE: rose["queue"],
            f"DUT, backlog of CPU {up.testbed.cores.dut[0]}": rose["received by the DUT"],
            FIREWALL: rose["firewall"],
            QDISC: rose["qdisc"],
            OVERRUN: own["xdp_rx_ring_full"] + own["xdp_rx_dropped"],
        }
        assert min(places.values()) > 0, places
        assert unsent_of(reading) == reading.counts.unsent_tester > 0
        assert_lost_at(reading, places)
