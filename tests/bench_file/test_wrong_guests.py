"""Ports of virtual machines: what shows in the bench file is refused there, before anything is booted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]

TEXT = """nicbench: 1
title: x
hosts:
  a: {kind: vm, cards: {n0: {model: igb, network: x}, n1: {network: y}}}
  b: {kind: vm, cards: {n0: {network: x}, n1: {network: x}}}
  inside: {kind: netns, namespace: i, on: b, create: true}
ports:
  s0: {host: a, device: n0, ip: 198.18.0.1/24}
  c0: {host: b, device: n0, ip: 198.18.0.2/24}
  c1: {host: inside, device: n1, ip: 198.18.0.3/24}
links: [c0 <-> s0, c1 <-> s0]
dut: {kind: server, host: a}
tests: [{name: t, method: stream}]
"""
S0 = "device: n0, ip: 198.18.0.1/24"
WRONG: dict[str, tuple[tuple[str, str], int, str, str]] = {
    "a card that is not there": (
        *(("b, device: n0", "b, device: n7"), 9),
        *("the virtual machine `b` has no card `n7`", "known cards: `n0`, `n1`"),
    ),
    "the machine's own interface": (
        *(("a, device: n0", "a, device: eth0"), 8),
        *("the virtual machine `a` has no card `eth0`", ""),
    ),
    "a card that is not there, of a namespace in the guest": (
        *(("inside, device: n1", "inside, device: e1"), 10),
        *("the virtual machine `b` has no card `e1`", ""),
    ),
    "a bond of cards that are not there": (
        *((S0, "bond: {of: [n0, n5]}, ip: 198.18.0.1/24"), 8),
        *("has no card `n5`", ""),
    ),
    "a guest without cards": (
        *(("a: {kind: vm, cards: {n0: {model: igb, network: x}, n1: {network: y}}}", "a: {kind: vm}"), 8),
        *("has no card `n0`", "write `cards: {n0: {}}` of a"),
    ),
    "more cards than a guest takes": (
        *(("n1: {network: y}", ", ".join(f"m{number}: {{}}" for number in range(16))), 4),
        *("`hosts.a.cards` is too long", "write at most 16"),
    ),
    "an address without a prefix": (
        *(("198.18.0.2/24", "198.18.0.2"), 9),
        *("`c0` is a card of a virtual machine, and it needs an address there", "write `ip: 198.18.0.1/24`"),
    ),
    "a virtual function of a card that has none": (
        *((S0, "virtual_function: {of: n1, number: 0}, ip: 198.18.0.1/24"), 8),
        *("a card `virtio-net-pci` has no virtual functions", "write `model: igb`"),
    ),
    "the eighth virtual function": (
        *((S0, "virtual_function: {of: n0, number: 7}, ip: 198.18.0.1/24"), 8),
        *("virtual functions of a card `igb` are 0 to 6", "write `number: 6` or less"),
    ),
    "a link between networks": (
        *(("a, device: n0", "a, device: n1"), 11),
        *("no network joins the cards of `c0` and `s0`", "write the same `network`"),
    ),
    "a link of a card whose cable ends nowhere": (
        *(("n0: {network: x}", "n0: {}"), 11),
        *("no network joins the cards of `c0` and `s0`", ""),
    ),
    "ends of a link in two networks": (
        *(("198.18.0.2/24", "198.19.0.2/24"), 11),
        *("have addresses of two networks, 198.19.0.0/24 and 198.18.0.0/24", "addresses of one network"),
    ),
    "one address of two guests": (
        *(("n1: {network: y}", "n1: {network: y, mac: '02:00:00:00:00:09'}"), 5),
        *("`a` and `b` both have a card with the address 02:00:00:00:00:09", "of its own"),
    ),
}


@pytest.mark.parametrize(("change", "line", "message", "step"), WRONG.values(), ids=WRONG)
def test_what_no_guest_can_be_is_refused(
    read: Read, change: tuple[str, str], line: int, message: str, step: str
) -> None:
    assert change[0] in TEXT
    text = TEXT.replace(*change)
    if "mac" in change[1]:
        text = text.replace("n1: {network: x}", "n1: {network: x, mac: '02:00:00:00:00:09'}")
    with pytest.raises(WrongBenchFileError) as wrong:
        read(text)
    problem = wrong.value.problems[0]
    assert message in problem.message
    assert problem.position.line == line
    assert step in (problem.next_step or "")


def test_guests_whose_ports_fit_are_accepted(read: Read) -> None:
    assert read(TEXT).ports["c1"].device == "n1"
    assert read(TEXT.replace(S0, "virtual_function: {of: n0, number: 6}, ip: 198.18.0.1/24")).ports["s0"].is_made
    two = "a: {kind: vm, cards: {n0: {pci: '0000:65:02.0'}, n1: {pci: '0000:65:02.1'}}}"
    given = TEXT.replace("a: {kind: vm, cards: {n0: {model: igb, network: x}, n1: {network: y}}}", two)
    assert read(given).links  # where the machine's cables lead is not known


def test_one_card_of_the_machine_is_not_given_to_two_guests(read: Read) -> None:
    card = "n0: {pci: '0000:65:02.0'}"
    text = TEXT.replace("n0: {model: igb, network: x}", card).replace("n0: {network: x}", card)
    with pytest.raises(WrongBenchFileError, match=r"both have the machine's card 0000:65:02\.0"):
        read(text)
