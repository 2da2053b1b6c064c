"""What nicbench is to make for ports: what cannot be is refused where it stands."""

from __future__ import annotations

import pytest
from tests.bench_file.conftest import Read, assert_refused

from nicbench.bench_file import WrongBenchFileError

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

WRONG = {
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
        *("nicbench makes the namespace of `c0`, and the port needs an address there", "write `ip: 198.18.0.1/24`"),
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
    change: tuple[str, str], line: int, column: int, message: str, step: str
) -> None:
    assert change[0] in TEXT
    assert_refused(TEXT.replace(*change), (line, column, message, step), and_more=True)


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


def test_two_ports_of_a_client_may_be_one_interface_in_two_networks(read: Read) -> None:
    """One cable that leads to two ports of the server, such as both halves of a card that two sockets share."""
    assert [port.device for port in read(TEXT.replace("device: e3", "device: e2")).ports.values()][2:] == ["e2", "e2"]
    with pytest.raises(WrongBenchFileError, match="are both the interface `e0`"):
        read(TEXT.replace("device: e1", "device: e0"))


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


RDMA_TEXT = """nicbench: 1
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

WRONG_RDMA = {
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
    ports = read(RDMA_TEXT).ports
    assert {name: (port.rdma, port.is_made) for name, port in ports.items()} == {
        "s0": ("rxe", True),
        "c0": ("rxe", True),
    }


@pytest.mark.parametrize(("change", "line", "column", "message", "step"), WRONG_RDMA.values(), ids=WRONG_RDMA)
def test_what_cannot_be_made_is_refused_of_rdma(
    change: tuple[str, str], line: int, column: int, message: str, step: str
) -> None:
    assert_refused(RDMA_TEXT.replace(*change, 1), (line, column, message, step))


FRAMES = """nicbench: 1
title: x
hosts:
  tester: {kind: netns, namespace: t, create: true}
  server: {kind: netns, namespace: s, create: true}
ports:
  t0: {host: tester, device: e0}
  d0: {host: server, virtual_function: {of: e1, number: 3}, bind: vfio-pci}
links: [t0 <-> d0]
dut: {kind: testpmd}
tests: [{name: t, method: throughput}]
"""
STREAMS = """nicbench: 1
title: x
hosts:
  server: {kind: netns, namespace: s, create: true}
  client: {kind: netns, namespace: c, create: true}
ports:
  s0: {host: server, virtual_function: {of: e1, number: 0}, ip: 198.18.0.1/24}
  c0: {host: client, device: e0, ip: 198.18.0.2/24}
links: [c0 <-> s0]
dut: {kind: server}
tests: [{name: t, method: stream}]
"""


def test_a_function_is_called_after_its_adapter_or_as_its_port_says(read: Read) -> None:
    assert read(STREAMS).ports["s0"].device == "e1v0"
    assert read(STREAMS.replace("server, virtual", "server, device: fast0, virtual")).ports["s0"].device == "fast0"
    assert read(FRAMES).ports["d0"].device is None


@pytest.mark.parametrize(
    ("text", "written", "wrong", "message", "step"),
    [
        (STREAMS, "number: 0}", "number: 0}, bind: vfio-pci", "so `bind` of a port has no effect", "device"),
        (STREAMS, "number: 0}", "number: 0}, address: 0000:65:00.0", "so `address` has no effect", "remove"),
        (STREAMS, "number: 0}", "number: 0, mac: '01:00:00:00:00:01'}", "is not a unicast MAC address", "hex"),
        (
            STREAMS,
            "of: e1",
            "of: enp101s0f10np0",
            "`enp101s0f10np0v0` cannot be the name",
            "name it by `device`: 1 to 15",
        ),
        (STREAMS, "device: e0", "virtual_function: {of: e1, number: 0}", "are both the interface `e1v0`", "its own"),
        (STREAMS, "namespace: s, create: true", "namespace: s", "a namespace that exists already", "`create: true`"),
        (FRAMES, "device: e0", "device: e0, driver: net_pcap, bind: vfio-pci", "by its own driver", "the other"),
        (FRAMES, "vfio-pci}", "vfio-pci, device: e9}", "has no kernel interface", "remove `device`"),
        (FRAMES, ", bind: vfio-pci", "", "drives cards by itself, and `d0` is a kernel interface", "bind: vfio-pci"),
        (FRAMES, "testpmd", "kernel-forward", "works on kernel interfaces, and `d0` is not one", "device"),
    ],
)
def test_what_cannot_be_is_refused(read: Read, text: str, written: str, wrong: str, message: str, step: str) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read(text.replace(written, wrong))
    said = str(refused.value)
    assert message in said
    assert step in said


def test_a_dut_of_dpdk_takes_cards_by_their_addresses(read: Read) -> None:
    card = FRAMES.replace("virtual_function: {of: e1, number: 3}, bind: vfio-pci", "address: 0000:65:00.0")
    assert read(card).ports["d0"].address == "0000:65:00.0"
    assert read(card.replace("testpmd", "reflector, huge_pages: false")).dut.kind == "reflector"


def test_a_forwarder_of_ours_stands_before_a_tester_in_the_kernel_and_another_does_not(read: Read) -> None:
    text = (
        "nicbench: 1\ntitle: t\nlab: {kind: veth}\ndut: {kind: reflector, huge_pages: false}\ntester: {driver: xdp}\n"
        "tests: [{name: t, method: throughput}]\n"
    )
    assert read(text).dut.kind == "reflector"
    with pytest.raises(WrongBenchFileError, match="the testpmd DUT works in the memif lab"):
        read(text.replace("reflector", "testpmd"))
