"""The bench files of the table of faults: runs of a second or two, whose truth is known.

No DUT of theirs loses a frame at these loads, and every port carries ``RATE``: a valid result that differs is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from .places import inside, ip

RATE = 20e6
"""Of each port of the clients, in bits/s."""
PAYLOAD = (0.85 * RATE, 1.0 * RATE)
"""What TCP may carry of it."""

_TOLERANT = """
thresholds:
  {longest_gap_ms: 500, total_gap_share: 0.9, unsent_share: 0.2, dut_foreign_cpu_share: 0.99, dut_contended_share: 0.99,
   dut_pause_ms: 500, dut_waiting_share: 0.9, start_spread_share: 0.9, machine_steal_share: 0.9}
"""
_SWEEP = """
tests:
  - name: sweep
    method: load-sweep
    frame_bytes: [64]
    of: 4 kpps
    loads: [100 %, 50 %]
    trial: {duration: 600 ms, drain: 50 ms, settle: 20 ms}
"""
_CABLES = """
nicbench: 1
title: Cables
monitor: off
hosts: {tester: {kind: netns, namespace: NEAR}, router: {kind: netns, namespace: FAR}}
ports:
  t0: {host: tester, device: t0}
  t1: {host: tester, device: t1}
  d0: {host: router, device: d0}
  d1: {host: router, device: d1}
links: [t0 <-> d0, t1 <-> d1]
dut: {kind: kernel-forward}
tester: {driver: DRIVER}
"""
_LAB = """
nicbench: 1
title: Lab
monitor: off
lab: {kind: veth}
dut: {kind: kernel-forward}
tester: {driver: DRIVER}
"""
_RINGS = """
nicbench: 1
title: Rings
monitor: off
lab: {kind: memif}
dut: {kind: reflector, huge_pages: false, memory: 128 MiB}
"""
_CLIENTS = """
nicbench: 1
title: Clients
lab: {kind: clients, ports: 2, rate: 20 Mb/s}
dut: {kind: server}
monitor: MONITOR
tests: [{name: tcp, method: stream, workload: TOOL, at_once: [port], duration: 1 s}]
"""
_SHARED = """
nicbench: 1
title: Two clients of one port
lab: {kind: clients, ports: 1, clients_per_port: 2, rate: 20 Mb/s}
dut: {kind: server}
monitor: off
tests: [{name: tcp, method: stream, at_once: [all], duration: 1 s}]
"""
_FAR = """
nicbench: 1
title: Another machine
hosts: {rack: RACK}
lab: {kind: clients, on: rack, ports: 2, rate: 20 Mb/s}
dut: {kind: server}
monitor: off
tests: [{name: tcp, method: stream, at_once: [port], duration: 1 s}]
"""


@dataclass(frozen=True)
class Bench:
    """A bench file; ``results`` is how many results a run of it gives, ``span_s`` how long one sample lasts."""

    name: str
    text: str
    kind: Literal["frames", "rounds"]
    results: int
    span_s: float
    drawn: dict[str, tuple[str, ...]]
    """Words of the text, each with what a case may draw for it."""

    @property
    def has_own_namespaces(self) -> bool:
        return self.name == "cables"


_DRIVERS = {"DRIVER": ("net_af_xdp", "xdp")}
CABLES = Bench("cables", _CABLES + _TOLERANT + _SWEEP, "frames", 2, 0.6, _DRIVERS)
LAB = Bench("lab", _LAB + _TOLERANT + _SWEEP, "frames", 2, 0.6, _DRIVERS)
RINGS = Bench("rings", _RINGS + _TOLERANT + _SWEEP, "frames", 2, 0.6, {})
CLIENTS = Bench(
    "clients", _CLIENTS + _TOLERANT, "rounds", 4, 1.0, {"MONITOR": ("off", "{interval: 100 ms}"), "TOOL": ("iperf3",)}
)
WATCHED = Bench(
    "watched", _CLIENTS + _TOLERANT, "rounds", 4, 1.0, {"MONITOR": ("{interval: 100 ms}",), "TOOL": ("iperf3",)}
)
NUTTCP = Bench("nuttcp", _CLIENTS + _TOLERANT, "rounds", 4, 1.0, {"MONITOR": ("off",), "TOOL": ("nuttcp",)})
SHARED = Bench("shared", _SHARED + _TOLERANT, "rounds", 3, 1.0, {})
FAR = Bench("far", _FAR + _TOLERANT, "rounds", 4, 1.0, {})


@contextmanager
def two_machines(near: str, far: str) -> Iterator[None]:
    """Two namespaces with two cables between them, as somebody set them up who tests cards of his own."""
    try:
        for name in (near, far):
            ip("netns", "add", name)
            settings = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
            inside(name, "sysctl", "-q", "-w", *settings)
        for pair in "01":
            # Of other numbers than their peers: the kernel tells of their state at once.
            here, there = (f"t{pair}", "index", f"10{pair}"), (f"d{pair}", "index", f"20{pair}")
            ip("-n", near, "link", "add", *here, "type", "veth", "peer", "name", *there, "netns", far)
            inside(near, "ethtool", "-K", f"t{pair}", "gro", "on")
            inside(far, "ethtool", "-K", f"d{pair}", "gro", "on")
            ip("-n", near, "link", "set", f"t{pair}", "up")
            ip("-n", far, "link", "set", f"d{pair}", "up")
        yield
    finally:
        for name in (near, far):
            ip("netns", "delete", name, check=False)
