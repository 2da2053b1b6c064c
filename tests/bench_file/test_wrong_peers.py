"""Wrong bench files of a tester on two machines: where the error points and what it says."""

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]

GOOD = """nicbench: 1
title: x
hosts: {tester: {kind: local}, far: {kind: ssh, address: 10.0.0.6}, dut: {kind: ssh, address: 10.0.0.7}}
ports:
  t0: {host: tester, device: e0}
  t1: {host: far, device: e0}
  d0: {host: dut, device: e0}
  d1: {host: dut, device: e1}
links: [t0 <-> d0, t1 <-> d1]
dut: {kind: bridge}
tester: {peer: far}
tests: [{name: t, method: throughput}]
"""
PORT = "t1: {host: far, device: e0}"

WRONG: dict[str, tuple[str, str, tuple[int, int, str, str]]] = {
    "a host that does not exist": (
        "{peer: far}",
        "{peer: fat}",
        (11, 16, "there is no host `fat`", "did you mean `far`?"),
    ),
    "the machine itself": (
        "{peer: far}",
        "{peer: tester}",
        (11, 16, "second machine is its first one", "remove `peer`"),
    ),
    "a machine without ports": (
        PORT,
        "t1: {host: tester, device: e9}",
        (11, 16, "no port belongs to the tester's second machine `far`", "`host: far`"),
    ),
    "a driver that makes frames in the kernel": (
        "{peer: far}",
        "{peer: far, driver: xdp}",
        (11, 9, "with `peer` the driver is `net_af_xdp`", ""),
    ),
    "a driver of a port that makes frames in the kernel": (
        PORT,
        "t1: {host: far, device: e0, driver: xdp}",
        (6, 39, "two machines cannot share a trial with `driver: xdp`", "net_af_xdp"),
    ),
    "workers": (
        "{peer: far}",
        "{peer: far, workers: [{cpu: 1, transmit: [t0], receive: [t0]}]}",
        (11, 9, "one worker on each machine: remove `workers`", ""),
    ),
    "time stamps of cards": ("{peer: far}", "{peer: far, timestamps: card}", (11, 9, "stamped by `tsc`", "")),
    "a wrong clock of nobody": ("{peer: far}", "{peer_clock: {ahead: 1 ms}}", (11, 9, "add `peer`, or remove it", "")),
}


def test_ports_of_both_machines_are_the_testers(read: Read) -> None:
    bench = read(GOOD)
    assert bench.tester_kind().peer == "far"
    assert bench.role_of("far") == "tester"


@pytest.mark.parametrize(("old", "new", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_second_machine_is_refused_with_place_message_and_next_step(
    read: Read, old: str, new: str, expected: tuple[int, int, str, str]
) -> None:
    with pytest.raises(WrongBenchFileError) as caught:
        read(GOOD.replace(old, new))
    line, column, message, step = expected
    problem = next(one for one in caught.value.problems if message in one.message)
    assert (problem.position.line, problem.position.column) == (line, column)
    assert step in (problem.next_step or "")


def test_a_lab_has_no_second_machine(read: Read) -> None:
    text = "nicbench: 1\ntitle: x\nlab: {kind: veth}\ndut: {kind: bridge}\ntester: {peer: far}\n"
    with pytest.raises(WrongBenchFileError, match="a lab makes a tester on one machine"):
        read(text + "tests: [{name: t, method: throughput}]\n")
