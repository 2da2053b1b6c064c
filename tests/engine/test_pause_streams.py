"""Pause frames byte by byte as another program makes them, and the streams of a trial with them."""

from __future__ import annotations

import pytest
from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.l2 import Ether

from nicbench.core.errors import UsageError
from nicbench.core.headers import Codepoint, PauseTrain, Pausing, pause_frame, pause_seconds
from nicbench.core.traffic import Traffic
from nicbench.core.trial import Purpose, TrialRequest
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.testers._engine_streams import is_beside, pause_requests, stream_requests, with_codepoint
from nicbench.testbed.testers._packet_engine import transmission_s

MAC = "02:00:00:00:00:09"
WAY = Addressing(0, 1, "02:00:00:00:00:01", MAC, 4, "198.18.0.2", "198.19.0.2")
TO = "01:80:c2:00:00:01"


def matches(stream: dict[str, object], frame: bytes) -> bool:
    filters = stream["filter"]
    assert isinstance(filters, list)
    for one in filters:
        wanted = bytes.fromhex(one["hex"])
        mask = bytes.fromhex(one.get("mask", "ff" * len(wanted)))
        found = frame[one["at"] : one["at"] + len(wanted)]
        if any((a ^ b) & c for a, b, c in zip(found, wanted, mask, strict=True)):
            return False
    return True


def test_frames_are_those_that_scapy_makes() -> None:
    link = Ether(src=MAC, dst=TO)
    pfc = link / MACControlClassBasedFlowControl(c3_enabled=1, c3_pause_time=1000)
    pause = link / MACControlPause(pause_time=77)
    assert pause_frame(MAC, 3, 1000) == bytes(pfc).ljust(60, b"\0")
    assert pause_frame(MAC, None, 77) == bytes(pause).ljust(60, b"\0")


def test_quanta_last_longer_on_a_slower_link() -> None:
    assert pause_seconds(65_535, 100e9) == pytest.approx(0.000335539, rel=1e-4)


def test_frames_of_the_dut_are_told_from_our_own_and_by_their_priority() -> None:
    train = PauseTrain(priority=3, quanta=9, frames=2, frames_per_s=10.0, begins_s=0.5)
    ours, ended, heard = pause_requests(WAY, Pausing(trains=(train,), priority=3))
    assert [is_beside(one["name"]) for one in (ours, ended, heard)] == [True] * 3
    assert not is_beside("0->1 storage")
    assert {(one["transmit_port"], one["receive_port"]) for one in (ours, ended, heard)} == {(1, 0)}
    other = "02:00:00:00:00:0a"
    classes = MACControlClassBasedFlowControl(c3_enabled=1, c3_pause_time=5, c4_enabled=1)
    both = bytes(Ether(src=other, dst=TO) / classes)
    assert [matches(one, both) for one in (ours, ended, heard)] == [False, False, True]
    assert [matches(one, pause_frame(other, 3, 0)) for one in (ours, ended, heard)] == [False, True, True]
    assert [matches(one, pause_frame(other, 4, 5)) for one in (ours, ended, heard)] == [False] * 3
    assert matches(ours, pause_frame(MAC, 3, 9))


def test_the_transmission_lasts_until_the_last_pause_frame() -> None:
    train = PauseTrain(priority=None, quanta=9, frames=11, frames_per_s=10.0, begins_s=0.5)
    request = TrialRequest(
        frame_bytes=64, load_frames_per_s=10.0, duration_s=1.0, drain_s=0.0, settle_s=0.0, purpose=Purpose.PAUSE,
        pausing=Pausing(trains=(train,)),
    )  # fmt: skip
    assert transmission_s(request) == pytest.approx(1.51)


def test_the_codepoint_is_set_and_the_dscp_stays_that_of_the_stream() -> None:
    traffic = Traffic.model_validate({
        "fields": {"traffic_class": 0xB8},
        "streams": [
            {"name": "a", "share": 0.5},
            {"name": "b", "share": 0.5, "fields": {"traffic_class": 0x63}},
        ],
    })  # fmt: skip
    marked = with_codepoint(traffic, Codepoint.ECT_0)
    classes = [one["layers"][1]["traffic_class"] for one in stream_requests(marked, WAY, 128, (1.0, 1.0), 1.0)]
    assert classes == [0xBA, 0x62]
    assert with_codepoint(traffic, None) is traffic


def test_classes_that_vary_are_refused() -> None:
    traffic = Traffic.model_validate({"fields": {"traffic_class": {"first": 0, "count": 4}}})
    with pytest.raises(UsageError, match="ECN bits of every frame"):
        with_codepoint(traffic, Codepoint.CE)
