"""Every DUT of the veth lab passes what the tester sends, whole and in order, whatever the frames and the driver."""

from __future__ import annotations

import asyncio

import pytest

from nicbench.core.frame_size import IMIX, Mix, Size, SizeSweep, mean_bytes
from nicbench.core.trial import Purpose, TrialRequest

from .lab_bench import short
from .one_trial import readings

pytestmark = pytest.mark.lab

EVERY_SIZE = Mix(name="every", sweep=SizeSweep(smallest=64, largest=1518))
CASES = {
    "kernel forwarding, IPv4": ("{kind: kernel-forward}", "traffic: {flows: 64}", 64, False),
    "kernel forwarding, IPv6, 8192 flows": ("{kind: kernel-forward}", "traffic: {ip: 6, flows: 8192}", 82, False),
    "kernel forwarding, both ways": ("{kind: kernel-forward}", "traffic: {flows: 8}", 512, True),
    "bridge, IPv4": ("{kind: bridge}", "", 1518, False),
    "policer, IPv6, both ways": ("{kind: policer, rate: 100 kpps}", "traffic: {ip: 6}", 128, True),
    "AF_PACKET sockets": ("{kind: kernel-forward}", "tester: {driver: net_af_packet}", 64, False),
    "huge pages": ("{kind: kernel-forward}", "tester: {huge_pages: true}", 64, False),
    "sent by one core, received by another": (
        "{kind: kernel-forward}",
        "tester: {workers: [{cpu: 0, transmit: [t0, t1]}, {cpu: 1, receive: [t0, t1]}]}",
        64,
        False,
    ),
    "IMIX": ("{kind: kernel-forward}", "traffic: {flows: 32}", IMIX, False),
    "every size in turn": ("{kind: kernel-forward}", "traffic: {flows: 32}", EVERY_SIZE, False),
    "a raw frame": ("{kind: bridge}", "traffic: {raw_frame: '020000000a01 020000000a02 88b5 0102'}", 64, False),
    "a fixed number of frames": ("{kind: bridge}", "traffic: {frames: 5000}", 64, True),
    "one tag": ("{kind: bridge}", "traffic: {vlan: 100}", 66, False),
    "two tags and TCP": ("{kind: bridge}", "traffic: {vlan: [200, 100], protocol: tcp}", 128, False),
    "VXLAN over IPv6": ("{kind: kernel-forward}", "traffic: {ip: 6, vxlan: {vni: 7}}", 256, False),
    "TCP over IPv6 with drawn ports": (
        "{kind: kernel-forward}",
        "traffic: {ip: 6, protocol: tcp, fields: {source_port: {first: 1024, count: 9999, seed: 3}}}",
        128,
        True,
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("dut", "more", "frame_bytes", "bidirectional"),
    [pytest.param(*case, id=name, marks=[pytest.mark.alone] * (name == "huge pages")) for name, case in CASES.items()],
)
def test_frames_pass_whole_and_in_order(dut: str, more: str, frame_bytes: Size, bidirectional: bool) -> None:
    request = TrialRequest(
        frame_bytes=mean_bytes(frame_bytes),
        mix=None if isinstance(frame_bytes, int) else frame_bytes,
        load_frames_per_s=20_000,
        duration_s=0.5,
        drain_s=0.2,
        settle_s=0.05,
        purpose=Purpose.LATENCY,
        bidirectional=bidirectional,
    )
    (reading,) = asyncio.run(readings("nb-test-traffic", short(dut, more=more, frame_bytes=256), [(request, None)]))
    counts = reading.counts
    assert len(reading.streams) == 1 + bidirectional
    assert counts.sent > 1_000  # of 10,000 or 20,000; a busy machine sends fewer
    assert counts.received > 0.99 * counts.sent  # a busy machine may drop a few in the DUT's queue, and is no fault
    assert counts.received + counts.lost == counts.sent
    assert (counts.duplicated, counts.reordered, counts.corrupted, counts.corrupted_unattributed) == (0, 0, 0, 0)
    assert reading.latency.count == counts.received
    assert 0 < reading.latency.minimum_ns <= reading.latency.mean_ns <= reading.latency.maximum_ns
