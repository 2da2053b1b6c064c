"""``lab shell``: commands that are given by a pipe give their output alone; who types sees where."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import pytest

from nicbench.hosts.kinds.local import LocalHost
from nicbench.stages.lab_shell import run_in_lab

COMMANDS = "echo here; echo there >&2\ncd /\nexit 7\n"


async def run(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    shown = bytearray()
    with os.fdopen(descriptor) as typed:
        monkeypatch.setattr("sys.stdin", typed)
        status = await run_in_lab(LocalHost("guest"), (), shown.extend)
    return status, shown.decode()


async def test_commands_of_a_file_give_their_output_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "commands").write_text(COMMANDS)
    assert await run(os.open(tmp_path / "commands", os.O_RDONLY), monkeypatch) == (7, "here\nthere\n")


async def test_who_types_is_told_on_which_host(monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, terminal = pty.openpty()
    os.write(keyboard, COMMANDS.encode())
    status, shown = await run(terminal, monkeypatch)
    os.close(keyboard)
    assert status == 7
    assert "guest:/# " in shown  # after cd
    assert "echo here" not in shown  # the terminal here shows what is typed
