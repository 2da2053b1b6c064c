"""XDP programs: what bpftool and ip say is understood, and somebody else's program is never replaced."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nicbench.core.errors import NotReadyError
from nicbench.hosts.base import Completed
from nicbench.hosts.fake import FakeHost
from nicbench.tuning import bpf, xdp
from nicbench.tuning.stack import UndoStack

SHOW = "ip -j link show dev d0"


def _link(program: int | None) -> str:
    xdp = {} if program is None else {"xdp": {"mode": 1, "prog": {"id": program}, "attached": []}}
    return json.dumps([{"ifname": "d0", **xdp}])


def test_the_program_of_a_link_is_found_in_either_place() -> None:
    assert bpf.program_of_link({"ifname": "d0"}) is None
    assert bpf.program_of_link({"xdp": {"mode": 1, "prog": {"id": 7}}}) == 7
    assert bpf.program_of_link({"xdp": {"mode": 4, "attached": [{"mode": 2, "prog": {"id": 9}}]}}) == 9


def test_the_value_of_a_map_is_read_in_the_machines_byte_order() -> None:
    number = 123_456_789_012
    listed = [f"0x{byte:02x}" for byte in number.to_bytes(8, sys.byteorder)]
    assert bpf.value_of_lookup(json.dumps({"key": ["0x00"] * 4, "value": listed})) == number


def test_the_values_of_a_per_cpu_map_are_summed() -> None:
    one = [f"0x{byte:02x}" for byte in (1).to_bytes(8, sys.byteorder)]
    text = json.dumps({"key": ["0x00"] * 4, "values": [{"cpu": 0, "value": one}, {"cpu": 1, "value": one}]})
    assert bpf.value_of_lookup(text) == 2


async def test_a_device_with_a_program_is_somebodys(tmp_path: Path) -> None:
    host = FakeHost()
    host.answer(SHOW, _link(7))
    with pytest.raises(NotReadyError, match="already has an XDP program"):
        await xdp.attach(UndoStack("run", None, tmp_path / "runtime"), host, "d0", Path("program.o"))

    assert not any(command[:3] == ("ip", "link", "set") for command in host.commands)


async def test_a_source_that_does_not_compile_names_what_to_install(tmp_path: Path) -> None:
    source = tmp_path / "bad.bpf.c"
    source.write_text("nonsense")
    host = FakeHost()
    host.fail("clang", "bad.bpf.c:1:1: error: unknown type name 'nonsense'")
    with pytest.raises(NotReadyError, match="unknown type name") as caught:
        await bpf.compile_program(host, source, tmp_path / "cache")

    assert "apt-get install clang" in str(caught.value)


async def test_a_source_is_compiled_once_and_anew_after_a_change(tmp_path: Path) -> None:
    source = tmp_path / "program.bpf.c"
    source.write_text("one")
    host = FakeHost()

    def clang(command: tuple[str, ...]) -> Completed:
        Path(command[-1]).write_text("object")
        return Completed(command, 0, "", "")

    host.answer("clang", clang)
    first = await bpf.compile_program(host, source, tmp_path / "cache")
    assert await bpf.compile_program(host, source, tmp_path / "cache") == first
    assert len(host.commands) == 1

    source.write_text("two")
    assert await bpf.compile_program(host, source, tmp_path / "cache") != first


@pytest.mark.parametrize("home", ["/dev/null", "/proc"])
async def test_a_cache_that_cannot_be_written_says_how_to_name_another(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "program.bpf.c"
    source.write_text("one")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    with pytest.raises(NotReadyError, match="cannot be kept") as caught:
        await bpf.compile_program(FakeHost(), source)

    assert "XDG_CACHE_HOME" in str(caught.value.next_step)
