"""A card stamps all frames while it is needed, and afterwards what it stamped before; the outputs are hwstamp_ctl's."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Completed
from nicbench.system.adapters.ethtool import StampSetting, parse_stamp_setting
from nicbench.tuning.preparation import stamp_all_frames
from nicbench.tuning.stack import UndoStack

READ = ("hwstamp_ctl", "-i", "p0")
SET_ALL = (*READ, "-t", "0", "-r", "1")
PTP, ALL = "current settings:\ntx_type 0\nrx_filter 12\n", "current settings:\ntx_type 0\nrx_filter 1\n"
# What the driver of an emulated igb and a kernel without the ioctl say.
OUT_OF_RANGE = Completed((), 34, "", "SIOCSHWTSTAMP failed: Numerical result out of range\n")
SILENT = Completed((), 95, "", "Device driver does not have support for non-destructive SIOCGHWTSTAMP.\n")
MISSING = Completed((), 127, "", "hwstamp_ctl: not found\n")


def card(now: str | Completed, made: str | Completed = ALL) -> FakeHost:
    host = FakeHost()
    host.answer("hwstamp_ctl -i p0", now)
    host.answer("hwstamp_ctl -i p0 -t", made)
    host.answer("ip -j link show", '[{"ifname": "p0", "flags": ["UP"]}]')
    return host


def changed(host: FakeHost) -> list[tuple[str, ...]]:
    return [command for command in host.commands if "-r" in command]


def test_of_two_settings_the_new_one_counts() -> None:
    assert parse_stamp_setting(PTP + "new settings:\ntx_type 1\nrx_filter 1\n") == StampSetting(1, 1)
    with pytest.raises(ValueError, match="neither"):
        parse_stamp_setting("")


async def test_the_card_gets_its_own_setting_back(tmp_path: Path) -> None:
    host, stack = card(PTP, PTP + "new settings:\ntx_type 0\nrx_filter 1\n"), UndoStack("run", None, tmp_path)
    await stamp_all_frames(stack, host, "p0")
    host.answer("hwstamp_ctl -i p0", ALL)
    host.answer("hwstamp_ctl -i p0 -t", PTP)
    assert await stack.undo_all() == []
    assert changed(host) == [SET_ALL, (*READ, "-t", "0", "-r", "12")]


async def test_what_somebody_set_meanwhile_is_left(tmp_path: Path) -> None:
    host, stack = card(PTP), UndoStack("run", None, tmp_path)
    await stamp_all_frames(stack, host, "p0")
    host.answer("hwstamp_ctl -i p0", "current settings:\ntx_type 1\nrx_filter 9\n")
    await stack.undo_all()
    assert changed(host) == [SET_ALL]


async def test_a_card_that_stamps_all_frames_is_left_alone(tmp_path: Path) -> None:
    host, stack = card(ALL), UndoStack("run", None, tmp_path)
    await stamp_all_frames(stack, host, "p0")
    assert await stack.undo_all() == []
    assert changed(host) == []


@pytest.mark.parametrize(
    ("now", "made", "words"),
    [
        (MISSING, ALL, "apt-get install linuxptp"),
        (SILENT, ALL, "cannot be read: Device driver"),
        (PTP, OUT_OF_RANGE, "cannot be set: SIOCSHWTSTAMP failed: Numerical result out of range"),
        (PTP, PTP + "new settings:\ntx_type 0\nrx_filter 12\n", "only some of the frames"),
    ],
    ids=["no tool", "a driver that does not say", "a driver that refuses", "a driver that stamps less"],
)
async def test_a_card_that_cannot_is_refused_with_the_next_step(
    now: str | Completed, made: str | Completed, words: str, tmp_path: Path
) -> None:
    host, stack = card(now, made), UndoStack("run", None, tmp_path)
    with pytest.raises(NotReadyError) as caught:
        await stamp_all_frames(stack, host, "p0")
    assert words in f"{caught.value.message} {caught.value.next_step}"
    assert "`timestamps: tsc`" in str(caught.value.next_step)
