"""XDP programs: what bpftool and ip say is understood, and somebody else's program is never replaced."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from tests.commands import run_tried
from tests.fakes import FakeHost

import nicbench
from nicbench.core.errors import NotReadyError
from nicbench.engine.binaries import find_program
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

    assert not any("bpftool" in " ".join(command) for command in host.commands)


def test_every_xdp_program_of_the_package_is_compiled() -> None:
    sources = Path(nicbench.__file__).parent.rglob("*.bpf.c")
    names = {source.name.removesuffix(".bpf.c") for source in sources}
    assert {"pass", "policer", "sink"} <= names
    for name in names:
        assert find_program(name).read_bytes().startswith(b"\x7fELF")


def test_a_program_that_is_not_there_names_the_command_that_compiles_it() -> None:
    with pytest.raises(NotReadyError, match="nonsense is not compiled") as caught:
        find_program("nonsense")
    assert "make install" in str(caught.value.next_step)


OTHERS = {
    "none is mounted": "true",
    "one is out of reach": "mount -t bpf bpf $OTHER && mount -t tmpfs hidden ${OTHER%/*}",
    "one is read-only": "mount -t bpf bpf $OTHER && mount -o remount,ro $OTHER",
    "its usual place is taken": "mount -t bpf bpf /sys/fs/bpf && mount -o remount,ro /sys/fs/bpf",
}
"""BPF file systems of others, in a mount namespace of the test's own."""


@pytest.mark.lab
@pytest.mark.parametrize("others", OTHERS.values(), ids=[*OTHERS])
def test_programs_are_loaded_whatever_others_have_mounted_and_no_name_of_them_stays(
    others: str, tmp_path: Path
) -> None:
    other = tmp_path / "hidden" / "other"
    other.mkdir(parents=True)
    wire = "tc qdisc replace dev $1 clsact; tc filter replace dev $1 ingress bpf da pinned $NAMED"
    commands = [
        bpf.attachment(find_program("pass"), "one", "xdpdrv"),
        bpf.attachment(find_program("sink"), "one", "xdpdrv", replaces=True),
        bpf.with_program(find_program("wire"), wire, "two"),
    ]
    script = "; ".join(
        [
            "ip link add one type veth peer name two",
            others,
            *map(shlex.join, commands),
            "ip link show one; tc filter show dev two ingress; echo left $(ls /sys/fs/bpf)",
        ]
    )
    command = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", script]
    done = run_tried(command, env={**os.environ, "OTHER": str(other)})
    assert done.returncode == 0, done.stderr
    assert " xdp " in done.stdout
    assert "direct-action" in done.stdout
    assert "program" not in done.stdout.rpartition("left")[2]
