"""What nicbench is to make for ports: what cannot be is refused where it stands."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]

TEXT = """nicbench: 1
title: x
hosts:
  server: {kind: netns, namespace: s, create: true}
  client: {kind: container, root: /, on: space}
  space: {kind: netns, namespace: c, create: true}
ports:
  s0: {host: server, device: e0, ip: 198.18.0.1/24}
  s1: {host: server, device: e1, ip: 198.18.1.1/24}
  c0: {host: client, device: e2, ip: 198.18.0.2/24}
links: [c0 <-> s0, c0 <-> s1]
dut: {kind: server}
tests: [{name: t, method: stream}]
""".replace(", c0 <-> s1]", ", c1 <-> s1]").replace(
    "links:", "  c1: {host: client, device: e3, ip: 198.18.1.2/24}\nlinks:"
)

WRONG: dict[str, tuple[tuple[str, str], int, int, str, str]] = {
    "an address that is none": (
        *(("ip: 198.18.0.1/24", "ip: 198.18.0.1/240"), 8, 38),
        *("`198.18.0.1/240` is not an address", ""),
    ),
    "a network in place of an address": (
        *(("ip: 198.18.0.1/24", "ip: 198.18.0.0/24"), 8, 38),
        *("`198.18.0.0/24` is the network or the broadcast address of its network", "write `198.18.0.1/24`"),
    ),
    "nothing that gives an address in a new namespace": (
        *((", ip: 198.18.0.2/24", ""), 10, 3),
        *("nicbench makes the namespace of `c0`, and nothing gives the port an address", "write `ip: 198.18.0.1/24`"),
    ),
    "two ports of a host in one network": (
        *(("198.18.1.1/24", "198.18.0.9/24"), 9, 38),
        *("`s0` and `s1` are in one network stack, and both in 198.18.0.0/24", "give each a network of its own"),
    ),
    "a namespace that is made twice": (
        *(("namespace: c, create", "namespace: s, create"), 6, 38),
        *("the namespace `s` is made by two hosts", "give each a namespace of its own"),
    ),
    "one interface in two namespaces": (
        *(("device: e2", "device: e0"), 10, 30),
        *("the ports `s0` and `c0` are both the interface `e0`", "an interface or a card of its own"),
    ),
}


@pytest.mark.parametrize(("change", "line", "column", "message", "step"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_made_is_refused(
    read: Read, change: tuple[str, str], line: int, column: int, message: str, step: str
) -> None:
    assert change[0] in TEXT
    with pytest.raises(WrongBenchFileError) as wrong:
        read(TEXT.replace(*change))
    problem = wrong.value.problems[0]
    assert message in problem.message
    assert (problem.position.line, problem.position.column) == (line, column)
    assert step in (problem.next_step or "")


def test_a_port_with_a_prefix_is_given_its_address_and_one_without_is_not(read: Read) -> None:
    ports = read(TEXT.replace("s, create: true", "s").replace("198.18.1.1/24", "198.18.1.1")).ports
    assert (str(ports["s0"].given_ip), str(ports["s0"].own_ip)) == ("198.18.0.1/24", "198.18.0.1")
    assert (ports["s1"].given_ip, str(ports["s1"].own_ip)) == (None, "198.18.1.1")


def test_the_testers_interfaces_get_no_address(read: Read) -> None:
    text = """nicbench: 1
title: x
hosts: {tester: {kind: netns, namespace: t, create: true}, dut: {kind: netns, namespace: d, create: true}}
ports:
  t0: {host: tester, device: e0, ip: 198.18.0.1/24}
  d0: {host: dut, device: e1}
links: [t0 <-> d0]
dut: {kind: external}
tests: [{name: t, method: throughput}]
"""
    with pytest.raises(WrongBenchFileError, match="so its interfaces need no addresses"):
        read(text)
    read(text.replace(", ip: 198.18.0.1/24", ""))


BONDED = """
nicbench: 1
title: A bond
hosts: {server: {kind: ssh, address: a}, client: {kind: ssh, address: b}}
ports:
  s0: {host: server, bond: BOND, ip: 198.18.0.1/24}
  s1: {host: server, device: e4}
  c0: {host: client, device: e0}
  c1: {host: client, device: e1}
links: [c0 <-> s0, c1 <-> s1]
dut: {kind: server}
tests: [{name: tcp, method: stream}]
"""


def test_a_bond_has_a_name_and_stands_on_its_interfaces(read: Read) -> None:
    port = read(BONDED.replace("BOND", "{of: [e2, e3]}")).ports["s0"]
    assert (port.device, port.devices, port.is_made) == ("bond0", ("e2", "e3"), True)


@pytest.mark.parametrize(
    ("bond", "message"),
    [
        ("{of: [e3, e4]}", "the ports `s0` and `s1` are both the interface `e4`"),
        ("{of: [e3], mode: active-backup, policy: layer2}", "does not hash, so `policy` has no effect"),
        ("{of: []}", "at least 1"),
    ],
)
def test_a_bond_that_cannot_be_is_refused(read: Read, bond: str, message: str) -> None:
    with pytest.raises(WrongBenchFileError) as wrong:
        read(BONDED.replace("BOND", bond))
    assert message in str(wrong.value)
