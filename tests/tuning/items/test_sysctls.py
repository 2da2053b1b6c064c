"""Sysctls by name: the kernel's spacing is no change, a missing one is refused, an undo writes what was there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.fakes import FakeHost

from nicbench.core.errors import NotReadyError
from nicbench.core.tuning import Outcome
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.tuning.items.kernel import SysctlOptions, Sysctls, path_of
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import Part, PlacedRequest, TuningRequest, place_requests, tune

RMEM = "/proc/sys/net/ipv4/tcp_rmem"
SWAPPINESS = "/proc/sys/vm/swappiness"
POLL = "/proc/sys/net/core/busy_poll"


def sysctls(host: FakeHost, **values: int | str) -> tuple[PlacedRequest, ...]:
    options = SysctlOptions(values={name.replace("__", "."): value for name, value in values.items()})
    return place_requests([TuningRequest("dut", Sysctls, options)], [Part("dut", host, ())])


async def test_several_are_set_and_put_back(tmp_path: Path) -> None:
    host = FakeHost(files={RMEM: "4096\t131072\t33554432\n", POLL: "0\n"})
    stack = UndoStack("run", None, tmp_path)
    (row,) = await tune(stack, sysctls(host, net__ipv4__tcp_rmem="4096 131072 7", net__core__busy_poll=50))
    assert row.outcome is Outcome.CHANGED
    assert row.before == {"net.ipv4.tcp_rmem": "4096 131072 33554432", "net.core.busy_poll": "0"}
    assert host.files == {RMEM: "4096 131072 7", POLL: "50"}
    assert await stack.undo_all() == []
    assert host.files == {RMEM: "4096 131072 33554432", POLL: "0"}


async def test_only_what_differs_is_written(tmp_path: Path) -> None:
    host = FakeHost(files={RMEM: "4096\t131072\t7\n", POLL: "0\n"})
    await tune(
        UndoStack("run", None, tmp_path), sysctls(host, net__ipv4__tcp_rmem="4096 131072 7", net__core__busy_poll=1)
    )
    assert host.writes == [(POLL, "1")]


async def test_one_that_the_kernel_lacks_refuses_the_run(tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match=r"there is no sysctl net\.core\.busy_polling"):
        await tune(UndoStack("run", None, tmp_path), sysctls(FakeHost(), net__core__busy_polling=1))


def test_names_are_those_of_sysctl() -> None:
    assert path_of("net.core.busy_poll") == POLL
    assert path_of("net.ipv4.conf.eth0/100.forwarding") == "/proc/sys/net/ipv4/conf/eth0.100/forwarding"


@pytest.mark.parametrize("name", ["kernel.//.//etc.passwd", "../../etc/passwd", "net..core", ".net", "net.core/"])
def test_a_name_stays_below_its_folder(name: str) -> None:
    with pytest.raises(ValidationError):
        SysctlOptions(values={name: 1})


async def test_one_of_the_machine_is_put_back_when_the_namespace_is_gone(tmp_path: Path) -> None:
    machine = FakeHost(files={SWAPPINESS: "60\n"})
    in_lab = ("ip", "netns", "exec", "lab")
    machine.answer((*in_lab, "cat", "--", RMEM), "4096 131072 1\n")

    def write(command: tuple[str, ...]) -> str:
        machine.answer((*in_lab, "cat", "--", RMEM), "4096 131072 7\n")
        return ""

    machine.answer((*in_lab, "tee", "--", RMEM), write)
    stack = UndoStack("run", None, tmp_path)
    asked = sysctls(NetnsHost(machine, "lab"), net__ipv4__tcp_rmem="4096 131072 7", vm__swappiness=1)
    (row,) = await tune(stack, asked)
    assert row.outcome is Outcome.CHANGED
    assert machine.files[SWAPPINESS] == "1"
    machine.fail("test -e", "")  # somebody deleted the namespace
    assert await stack.undo_all() == []
    assert machine.files[SWAPPINESS] == "60"
