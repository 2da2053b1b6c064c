"""An interface that a killed engine left promiscuous is ended by the undo; one that was so before stays so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fakes import FakeHost

from nicbench.hosts.base import Completed
from nicbench.stages.tester import expect_promiscuity
from nicbench.tuning.stack import UndoStack

OFF = ("ip", "link", "set", "dev", "t0", "promisc", "off")


def shown(*flags: str) -> str:
    words = ", ".join(f'"{flag}"' for flag in ("UP", *flags))
    return f'[{{"ifname": "t0", "flags": [{words}]}}]'


async def undone(before: str | Completed, after: str | Completed, tmp_path: Path) -> list[tuple[str, ...]]:
    host, stack = FakeHost(), UndoStack("run", None, tmp_path)
    host.answer("ip -j link show", before)
    await expect_promiscuity(stack, host, "t0")
    host.answer("ip -j link show", after)
    assert await stack.undo_all() == []
    return [command for command in host.commands if "promisc" in command]


GONE = Completed((), 1, "", "Device t0 does not exist.")


@pytest.mark.parametrize(
    ("before", "after", "commands"),
    [
        (shown(), shown("PROMISC"), [OFF]),
        (shown(), shown(), []),
        (shown("PROMISC"), shown("PROMISC"), []),
        (shown(), GONE, []),
        (GONE, shown("PROMISC"), []),
    ],
    ids=["left behind", "taken back by the engine", "there before", "gone", "not there"],
)
async def test_only_what_the_engine_left_is_ended(
    before: str | Completed, after: str | Completed, commands: list[tuple[str, ...]], tmp_path: Path
) -> None:
    assert await undone(before, after, tmp_path) == commands
