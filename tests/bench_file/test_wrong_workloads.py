"""Tests of workloads that DUT, ports or tools cannot do: refused before anything is touched, with place and way out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError

Read = Callable[[str], BenchFile]

HEAD = "nicbench: 1\ntitle: x\n"
LAB = "lab: {kind: clients, ports: 2, clients_per_port: 2}\n"

BY_HAND = (
    "hosts: {server: local, peer: {kind: ssh, address: 192.0.2.1}}\ndut: {kind: server}\nlinks: [c0 <-> s0]\n"
    "tests: [{name: t, method: stream}]\n"
)

WRONG: dict[str, tuple[str, tuple[int, int], str, str]] = {
    "forwarding by a host that forwards nothing": (
        LAB + "dut: {kind: server}\ntests:\n  - {name: t, method: forwarding}\n",
        (6, 23),
        "sends through the DUT, and `server` does not forward",
        "router",
    ),
    "forwarding between the ports of a lab with one": (
        "lab: {kind: clients}\ndut: {kind: router}\ntests:\n  - {name: t, method: forwarding}\n",
        (6, 23),
        "needs 2 ports, and there is 1",
        "ports: 2",
    ),
    "forwarding by a tool that there is not": (
        LAB + "dut: {kind: router}\ntests:\n  - {name: t, method: forwarding, workload: iperf33}\n",
        (6, 45),
        "unknown workload `iperf33`",
        "iperf3",
    ),
    "a placement of a test that sends frames": (
        LAB + "dut: {kind: server}\ntests:\n  - {name: t, method: placement, of: {method: throughput}}\n",
        (6, 38),
        "`of` needs a `method`",
        "",
    ),
    "a folder of a host that there is not": (
        LAB + "dut: {kind: server}\ntests:\n  - name: t\n    method: transfer\n    source: {c0: /mnt/data}\n",
        (8, 14),
        "there is no host `c0`",
        "did you mean `c0",
    ),
    "incast to a port that there is not": (
        LAB + "dut: {kind: server}\ntests:\n  - {name: t, method: incast, receiver: s9}\n",
        (6, 31),
        "the measured host has no port `s9`",
        "`s0`, `s1`",
    ),
    "incast of more senders than there are": (
        LAB + "dut: {kind: server}\ntests:\n  - {name: t, method: placement, of: {method: incast, senders: 3}}\n",
        (6, 55),
        "3 clients are to send to `s0`, and it has 2",
        "clients_per_port",
    ),
    "incast of one sender": (
        BY_HAND.replace("stream", "incast")
        + "ports:\n  s0: {host: server, device: e0}\n  c0: {host: peer, device: e1}\n",
        (6, 19),
        "2 clients are to send to `s0`, and it has 1",
        "link more clients",
    ),
    "an interface that cannot be": (
        BY_HAND + "ports:\n  s0: {host: server, device: e0}\n  c0: {host: peer, device: a/b}\n",
        (9, 28),
        "`a/b` cannot be the name of an interface",
        "as `ip link` shows them",
    ),
    "an address that no other host reaches": (
        BY_HAND + "ports:\n  s0: {host: server, device: e0}\n  c0: {host: peer, device: e1, ip: 127.0.0.1}\n",
        (9, 36),
        "`127.0.0.1` is a loopback address",
        "remove `ip`",
    ),
    "an address that two ports have": (
        BY_HAND + "ports:\n  s0: {host: server, device: e0, ip: 192.0.2.2}\n"
        "  c0: {host: peer, device: e1, ip: 192.0.2.2}\n",
        (9, 36),
        "both have the address `192.0.2.2`",
        "an address of its own",
    ),
    "an interface that two ports have": (
        BY_HAND.replace("[c0 <-> s0]", "[c0 <-> s0, c1 <-> s0]")
        + "ports:\n  s0: {host: server, device: e0}\n  c0: {host: peer, device: e1}\n"
        "  c1: {host: peer, device: e1}\n",
        (10, 28),
        "are both the interface `e1`",
        "of its own",
    ),
}


@pytest.mark.parametrize(("text", "place", "message", "step"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_is_refused(text: str, place: tuple[int, int], message: str, step: str, read: Read) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read(HEAD + text)
    (problem,) = refused.value.problems
    assert (problem.position.line, problem.position.column) == place
    assert message in problem.message
    assert step in (problem.next_step or "")
