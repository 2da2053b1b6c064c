"""The switch with priority flow control, without sockets: queues, pauses and watchdog, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from nicbench.core.headers import pause_frame
from nicbench.testbed.duts._lossless_switch import Queue, class_of, pauses_of
from nicbench.testbed.duts.lossless_switch import LosslessSwitch, LosslessSwitchOptions, Watchdog

MS = 1_000_000
FRAME = bytes(508)  # 512 with FCS


def queue(**given: Any) -> Queue:
    options = LosslessSwitchOptions(**{"lossless": (3,), "xoff": 2048, "xon": 1024, "head_room": 1024, **given})
    return Queue(3, options.settings(()))


def test_it_takes_what_head_room_allows_and_not_a_frame_more() -> None:
    one = queue()
    for _ in range(9):
        one.take(FRAME, 0)
    assert (len(one.frames), one.bytes, one.counts["full"]) == (6, 3072, 3)


def test_a_pause_lasts_as_long_as_its_quanta_and_ends_with_none() -> None:
    one = queue(rate=1e8)
    one.take(FRAME, 0)
    one.pause(1000, 0)
    assert (one.may_send(5 * MS), one.may_send(5_120_000)) == (False, True)
    one.pause(1000, 0)
    one.pause(0, 1 * MS)
    assert one.may_send(1 * MS)


def test_one_that_does_not_obey_sends_on() -> None:
    one = queue(obeys=False)
    one.take(FRAME, 0)
    one.pause(65_535, 0)
    assert one.may_send(1)


@pytest.mark.parametrize(("action", "left"), [("drop", 0), ("forward", 1)])
def test_the_watchdog_acts_after_its_time_and_restores_after_its_other(action: str, left: int) -> None:
    one = queue(watchdog=Watchdog(detect=0.1, restore=0.2, action=action))
    one.take(FRAME, 0)
    for at in (0, 99):
        one.pause(65_535, at * MS)
        one.watch(at * MS)
    storms = [one.storm]
    one.watch(100 * MS)
    assert (one.storm, len(one.frames), one.may_send(100 * MS)) == (True, left, left == 1)
    one.take(FRAME, 101 * MS)
    assert one.counts["watchdog"] == (2 if action == "drop" else 0)
    for at in (298, 299):
        one.watch(at * MS)
        storms.append(one.storm)
    assert storms == [False, True, False]


def test_frames_are_classed_by_dscp_and_pauses_read_by_class() -> None:
    ethernet = bytes(12)
    assert class_of(ethernet + bytes.fromhex("08004560")) == 3
    assert class_of(ethernet + bytes.fromhex("86dd6600")) == 3
    assert class_of(ethernet + bytes.fromhex("08060001")) == 0
    assert pauses_of(pause_frame("02:00:00:00:00:01", 4, 77)) == {4: 77}
    assert pauses_of(pause_frame("02:00:00:00:00:01", None, 5)) == dict.fromkeys(range(8), 5)
    assert pauses_of(ethernet + bytes.fromhex("08004560")) is None
    assert pauses_of(ethernet + bytes.fromhex("88080101")) == {}


def test_a_queue_that_pauses_later_than_it_lets_go_on_is_refused() -> None:
    with pytest.raises(ValidationError, match="xon"):
        LosslessSwitchOptions(xoff=1000, xon=1000)


def test_the_report_is_told_its_truth_and_its_fault() -> None:
    told = LosslessSwitch(LosslessSwitchOptions(obeys=False, head_room=512)).disclosure()
    assert (told["head_room"], told["faults"]) == (512, ["pause frames hold nothing back"])
