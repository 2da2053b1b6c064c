"""Soft RoCE that nicbench is to make for ports: what cannot be is refused where it stands."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]

TEXT = """nicbench: 1
title: x
hosts:
  receiver: {kind: vm, cards: {r0: {network: lan}}}
  sender: {kind: vm, cards: {r0: {network: lan}}}
  space: {kind: netns, namespace: c, on: sender}
ports:
  s0: {host: receiver, device: r0, ip: 198.18.0.1/24, rdma: rxe}
  c0: {host: sender, device: r0, ip: 198.18.0.2/24, rdma: rxe}
links: [c0 <-> s0]
dut: {kind: server, host: receiver}
tests: [{name: t, method: stream}]
"""

WRONG: dict[str, tuple[tuple[str, str], int, int, str, str]] = {
    "a kind that is none": (*(("rdma: rxe", "rdma: siw"), 8, 61), "`ports.s0.rdma` cannot be `siw`", "write 'rxe'"),
    "without an address": (
        *((", ip: 198.18.0.1/24", ""), 8, 36),
        *("soft RoCE needs the address of its port", "write `ip: 198.18.0.1/24`"),
    ),
    "in a network namespace": (
        *(("{host: sender", "{host: space"), 9, 52),
        *("`space` is a network namespace", "give the port a host that is a machine: `{kind: vm}`"),
    ),
}


def test_virtual_machines_that_are_made_alike_are_two_machines(read: Read) -> None:
    ports = read(TEXT).ports
    assert {name: (port.rdma, port.is_made) for name, port in ports.items()} == {
        "s0": ("rxe", True),
        "c0": ("rxe", True),
    }


@pytest.mark.parametrize(("change", "line", "column", "message", "step"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_made_is_refused(
    read: Read, change: tuple[str, str], line: int, column: int, message: str, step: str
) -> None:
    with pytest.raises(WrongBenchFileError) as caught:
        read(TEXT.replace(*change, 1))
    (problem,) = caught.value.problems
    assert (problem.position.line, problem.position.column) == (line, column)
    assert message in problem.message
    assert step in str(problem)
