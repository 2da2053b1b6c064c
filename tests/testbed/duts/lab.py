"""Two namespaces with two veth pairs for the lab tests of DUTs, and the testbed that describes them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.commands import run_captured, run_tried
from tests.testbed.duts.wire import raw_socket, receive

from nicbench.core.reading import Counts
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.testbed.cores import CoreMap
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.labs.base import DutPort, Testbed, TesterPort

TESTER_MACS = ("02:00:00:00:10:01", "02:00:00:00:11:01")
DUT_MACS = ("02:00:00:00:10:02", "02:00:00:00:11:02")


@dataclass(frozen=True)
class Wires:
    """The namespaces; devices are t0, t1 in the tester's and d0, d1 in the DUT's."""

    tester: str
    dut: str
    testbed: Testbed

    def received_frames(self, device: str) -> int:
        """What the tester's device has received, by its own counter."""
        shown = _ip("-n", self.tester, "-j", "-s", "link", "show", "dev", device)
        return int(json.loads(shown)[0]["stats64"]["rx"]["packets"])

    def passed(
        self, frame: bytes, wanted: Callable[[bytes], bool], times: int, start: str = "t0", end: str = "t1"
    ) -> list[bytes]:
        """Sends a frame from one of the tester's devices; gives what is wanted of all that comes in at another."""
        with raw_socket(self.tester, end) as listening, raw_socket(self.tester, start) as sending:
            for _ in range(times):
                sending.send(frame)
            return receive(listening, wanted, enough=times)

    def passed_this_way(
        self, way: Addressing, frame: bytes, wanted: Callable[[bytes], bool], times: int
    ) -> list[bytes]:
        """The same between the ports of a way."""
        return self.passed(frame, wanted, times, f"t{way.transmit}", f"t{way.receive}")


@contextmanager
def wires() -> Iterator[Wires]:
    """Makes them, without a default route or forwarding, and removes them."""
    tag = secrets.token_hex(3)
    tester, dut = f"nbt{tag}", f"nbd{tag}"
    try:
        for namespace in (tester, dut):
            _ip("netns", "add", namespace)
            for name in ("all", "default"):
                _in(namespace, "sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1")
        for index in (0, 1):
            here, there = f"t{index}", f"d{index}"
            _ip("-n", tester, "link", "add", here, "type", "veth", "peer", "name", there, "netns", dut)
            _ip("-n", tester, "link", "set", here, "address", TESTER_MACS[index], "up")
            _ip("-n", dut, "link", "set", there, "address", DUT_MACS[index], "up")
            # Frames of several hundred bytes must not be merged or split on their way to a packet socket.
            for namespace, device in ((tester, here), (dut, there)):
                _in(namespace, "ethtool", "-K", device, "tx", "off", "gso", "off", "tso", "off")
        yield Wires(tester, dut, described_testbed(tester, dut))
    finally:
        for namespace in (tester, dut):
            run_tried(("ip", "netns", "del", namespace))


def described_testbed(tester: str = "tester", dut: str = "dut") -> Testbed:
    """The testbed of such a lab; the namespaces need not exist."""
    local = LocalHost()
    return Testbed(
        tester=NetnsHost(local, tester),
        dut=NetnsHost(local, dut),
        tester_ports=tuple(
            TesterPort(f"t{i}", {"kind": "af_packet", "device": f"t{i}"}, f"t{i}", TESTER_MACS[i]) for i in (0, 1)
        ),
        dut_ports=tuple(DutPort(f"d{i}", f"d{i}", DUT_MACS[i]) for i in (0, 1)),
        cores=CoreMap(worker=0, dut=(1,), housekeeping=(1,), shared=True),
        link_bits_per_s=10e9,
        link_is_nominal=True,
    )


def _ip(*arguments: str) -> str:
    return run_captured(("ip", *arguments)).stdout


def _in(namespace: str, *command: str) -> str:
    return _ip("netns", "exec", namespace, *command)


def come_back(counts: Counts) -> bool:
    """Whether frames come back, in time or late, and all others are counted as lost.

    How many is not asked: other tests may keep a DUT that polls from its core for most of a trial.
    """
    return counts.received + counts.late > 0 and counts.received + counts.late + counts.lost == counts.sent
