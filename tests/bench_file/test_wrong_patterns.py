"""Patterns that ports, DUT or engine cannot do: refused before anything is touched, with the place and a way out."""

from __future__ import annotations

import pytest
from tests.bench_file.conftest import Read, assert_refused

HEAD = "nicbench: 1\ntitle: x\n"
THREE_PORTS = (
    "hosts: {tester: {kind: local}}\n"
    "ports: {t0: {host: tester, device: e0}, t1: {host: tester, device: e1}, t2: {host: tester, device: e2}}\n"
)
FOUR_TO_ONE = "lab: {kind: veth, ports: 4}\ndut: {kind: bridge}\ntraffic: {pattern: many-to-one}\n"
TO_MANY = "lab: {kind: veth, ports: 4}\ndut: {kind: bridge}\ntraffic: {pattern: one-to-many}\n"
TWO_STREAMS = "streams: [{name: a, share: 50 %}, {name: b, share: 50 %}]"
TESTS = "tests:\n  - {name: t, method: throughput}\n"

WRONG = {
    "a service on a stream that the traffic has not": (
        "lab: {kind: veth}\ndut: {kind: policer}\ntraffic: {" + TWO_STREAMS + "}\n"
        "tests:\n  - {name: s, method: service-activation, services: [{name: a, cir: 1 Mb/s, excess_stream: c}]}\n",
        (7, 92),
        "`traffic` has no stream c, which a service of s names",
        "`excess_stream`",
    ),
    "broadcasts among the frames of a test that chooses its own": (
        TO_MANY.replace("many}", "many, broadcasts: 1 %}") + TESTS.replace("throughput", "broadcast-throughput"),
        (7, 23),
        "the frames of `broadcast-throughput` cannot have `broadcasts` among them",
        "frame-loss, latency, throughput",
    ),
    "broadcasts to very many ports": (
        "lab: {kind: veth, ports: 8}\ndut: {kind: bridge}\ntraffic: {pattern: full-mesh, broadcasts: 1 %}\n",
        (5, 20),
        "comes to 112 streams",
        "fewer ports",
    ),
    "broadcasts by a tester in the kernel": (
        "lab: {kind: veth}\ndut: {kind: bridge}\ntester: {driver: xdp}\ntraffic: {broadcasts: 1 %}\n",
        (6, 23),
        "this traffic needs frames that arrive at several ports",
        "`driver: xdp`",
    ),
    "many to one between two ports": (
        "lab: {kind: veth}\ndut: {kind: bridge}\ntraffic: {pattern: many-to-one}\n",
        (5, 20),
        "many-to-one needs 3 ports or more, and there are 2",
        "`ports: 3`",
    ),
    "a full mesh of two ports": (
        "lab: {kind: veth}\ndut: {kind: bridge}\ntraffic: {pattern: full-mesh}\n",
        (5, 20),
        "full-mesh needs 3 ports or more",
        "`bidirectional: true`",
    ),
    "a port without a partner": (
        "lab: {kind: veth, ports: 3}\ndut: {kind: bridge}\n",
        (3, 26),
        "3 is an odd number",
        "`pattern`",
    ),
    "frames that come back from a bridge": (
        "lab: {kind: veth}\ndut: {kind: bridge}\ntraffic: {pattern: same-port}\n",
        (5, 20),
        "never sends a frame back out of the port that it came in on",
        "kernel-forward",
    ),
    "many to one through a policer": (
        "lab: {kind: veth, ports: 4}\ndut: {kind: policer}\ntraffic: {pattern: many-to-one}\n",
        (4, 6),
        "a policer only joins pairs of ports",
        "`pattern: one-to-one`",
    ),
    "many to one through testpmd": (
        "lab: {kind: memif, ports: 4}\ndut: {kind: testpmd}\ntraffic: {pattern: many-to-one}\n",
        (4, 6),
        "testpmd forwards between the two ports of a pair, or back out of each, so not many-to-one",
        "l3fwd",
    ),
    "both ways through address translation": (
        "lab: {kind: veth}\ndut: {kind: nat}\ntraffic: {bidirectional: true}\n",
        (5, 26),
        "a DUT of the kind `nat` lets nothing in that was not asked for from inside",
        "`bidirectional: false`",
    ),
    "frames that come back from address translation": (
        "lab: {kind: veth}\ndut: {kind: nat}\ntraffic: {pattern: same-port}\n",
        (5, 20),
        "never sends a frame back out of the port that it came in on",
        "kernel-forward",
    ),
    "more connections than flows": (
        "lab: {kind: veth}\ndut: {kind: nat}\ntests: [{name: t, method: connection-capacity, connections: 257}]\n",
        (5, 61),
        "257 connections need as many flows, and the traffic has 256",
        "`traffic: {flows: 257}`",
    ),
    "connections of several streams": (
        "lab: {kind: veth}\ndut: {kind: nat}\ntraffic: {" + TWO_STREAMS + "}\n"
        "tests: [{name: t, method: connection-capacity, connections: 2}]\n",
        (6, 61),
        "the flows of several streams are not counted as connections",
        "remove `streams`",
    ),
    "frames that come back from pairs": (
        "lab: {kind: memif, ports: 4}\ndut: {kind: reflector}\ntraffic: {pattern: same-port}\n",
        (3, 6),
        "the topology crossed does not go with the pattern same-port",
        "`topology: same-port`",
    ),
    "pairs of ports of which each gives back": (
        "lab: {kind: memif, topology: same-port, ports: 2}\ndut: {kind: l3fwd}\n",
        (3, 30),
        "the topology same-port does not go with the pattern one-to-one",
        "`topology: crossed`",
    ),
    "a policer of three ports": (
        "lab: {kind: veth, ports: 3}\ndut: {kind: policer}\n",
        (3, 26),
        "3 is an odd number",
        "`pattern`",
    ),
    "a bridge of one port": (
        "lab: {kind: veth, ports: 1}\ndut: {kind: bridge}\n",
        (4, 13),
        "joins 2 to 64 ports, and there is 1",
        "kernel-forward",
    ),
    "a router of three ports with two MAC addresses": (
        THREE_PORTS + "dut: {kind: external, macs: ['02:00:00:00:00:01', '02:00:00:00:00:02']}\n"
        "traffic: {pattern: many-to-one}\n",
        (5, 6),
        "has 3 links, but `macs` has 2 MAC addresses",
        "`macs`",
    ),
    "frames that come back from a switch of one's own": (
        THREE_PORTS + "dut: {kind: external}\ntraffic: {pattern: same-port}\n",
        (5, 6),
        "is taken for a switch",
        "`macs`",
    ),
    "more than three ports can offer": (
        FOUR_TO_ONE + "tests: [{name: t, method: load-sweep, loads: [100 %, 300 %, 301 %]}]\n",
        (6, 61),
        "301 % of line rate is more than the sending ports can offer: 300 %",
        "lower it",
    ),
    "more than a line carries": (
        "lab: {kind: veth}\ndut: {kind: bridge}\ntests: [{name: t, method: load-sweep, loads: [101 %]}]\n",
        (5, 47),
        "101 % of line rate is more than",
        "`pattern: many-to-one`",
    ),
    "more streams than the engine sends": (
        "lab: {kind: veth, ports: 8}\ndut: {kind: bridge}\ntraffic: {pattern: full-mesh, " + TWO_STREAMS + "}\n",
        (5, 20),
        "comes to 112 streams, and the tester sends at most 64",
        "fewer ports",
    ),
}


@pytest.mark.parametrize(("text", "place", "message", "step"), WRONG.values(), ids=list(WRONG))
def test_what_cannot_be_is_refused(text: str, place: tuple[int, int], message: str, step: str) -> None:
    assert_refused(HEAD + text + ("" if "tests:" in text else TESTS), (*place, message, step))


@pytest.mark.parametrize(
    "text",
    [
        "lab: {kind: veth, ports: 4}\ndut: {kind: kernel-forward}\n",
        "lab: {kind: veth, ports: 4}\ndut: {kind: policer}\n",
        "lab: {kind: veth, ports: 3}\ndut: {kind: bridge}\ntraffic: {pattern: many-to-one, bidirectional: true}\n",
        "lab: {kind: veth, ports: 8}\ndut: {kind: kernel-forward}\ntraffic: {pattern: full-mesh}\n",
        "lab: {kind: veth, ports: 1}\ndut: {kind: kernel-forward}\n",
        "lab: {kind: memif, topology: same-port}\ndut: {kind: testpmd}\ntraffic: {pattern: same-port}\n",
        "lab: {kind: memif, topology: same-port, ports: 4}\ndut: {kind: testpmd}\ntraffic: {pattern: same-port}\n",
        "lab: {kind: memif, ports: 4}\ndut: {kind: reflector}\n",
        "lab: {kind: memif, ports: 4}\ndut: {kind: l3fwd}\ntraffic: {pattern: full-mesh}\n",
    ],
)
def test_what_can_be_is_valid(text: str, read: Read) -> None:
    assert read(HEAD + text + TESTS).tests
