"""Ports that are virtual functions, and cards of a DUT of DPDK: what cannot be is refused where it stands."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]

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
