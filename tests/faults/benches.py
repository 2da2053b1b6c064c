"""The bench files of the table of faults: runs of a second or two, whose truth is known.

No DUT of theirs loses a frame at these loads, and every port of clients carries its rate: other results are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from .places import inside, ip

EMULATED, SLOW, FAST = 8e6, 20e6, 100e6
"""Of each port of the clients, in bits/s: what an emulated machine and a busy one carry in any case, and what a lie
stands out from."""
PAYLOAD = {EMULATED: 0.3, SLOW: 0.85, FAST: 0.5}
"""The least share of it that TCP carries beside other tests."""

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
    trial: {duration: 800 ms, drain: 50 ms, settle: 20 ms}
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
lab: {kind: clients, ports: 2, rate: RATE}
dut: {kind: server}
monitor: MONITOR
tests: [{name: tcp, method: stream, workload: TOOL, at_once: [port], duration: 1 s}]
"""
_SHARED = """
nicbench: 1
title: Two clients of one port
lab: {kind: clients, ports: 1, clients_per_port: 2, rate: RATE}
dut: {kind: server}
monitor: off
tests: [{name: tcp, method: stream, workload: iperf3, at_once: [port], duration: 3 s}]
"""
_FAR = """
nicbench: 1
title: Another machine
hosts: {rack: RACK}
lab: {kind: clients, on: rack, ports: 2, rate: RATE}
dut: {kind: server}
monitor: off
tests: [{name: tcp, method: stream, at_once: [port], duration: 1 s}]
"""
_GUEST = """
nicbench: 1
title: A virtual machine
hosts: {guest: {kind: vm, cpus: 2, memory: 512 MiB}}
lab: {kind: clients, on: guest, ports: 2, rate: RATE}
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
    bits_per_s: float = SLOW

    @property
    def boots_a_machine(self) -> bool:
        return "kind: vm" in self.text

    @property
    def has_own_namespaces(self) -> bool:
        return "NEAR" in self.text


_DRIVERS = {"DRIVER": ("net_af_xdp", "xdp")}
CABLES = Bench("cables", _CABLES + _TOLERANT + _SWEEP, "frames", 2, 0.8, _DRIVERS)
AF_XDP = replace(CABLES, name="af_xdp", drawn={"DRIVER": ("net_af_xdp",)})
"""Its XDP program can be taken off by anybody; that of the other driver is held by a link."""
LAB = Bench("lab", _LAB + _TOLERANT + _SWEEP, "frames", 2, 0.8, _DRIVERS)
RINGS = Bench("rings", _RINGS + _TOLERANT + _SWEEP, "frames", 2, 0.8, {})
_OFF, _ON = "off", "{interval: 100 ms}"


def _clients(name: str, text: str, results: int, tool: str = "iperf3", monitor: tuple[str, ...] = (_OFF,)) -> Bench:
    rate = {"fast": FAST, "shared": FAST, "guest": EMULATED}.get(name, SLOW)
    words = {"MONITOR": monitor, "TOOL": (tool,), "RATE": (f"{rate / 1e6:g} Mb/s",)}
    return Bench(name, text + _TOLERANT, "rounds", results, 1.0, words, rate)


CLIENTS = _clients("clients", _CLIENTS, 4, monitor=(_OFF, _ON))
WATCHED = _clients("watched", _CLIENTS, 4, monitor=(_ON,))
NUTTCP = _clients("nuttcp", _CLIENTS, 4, "nuttcp")
FAR = _clients("far", _FAR, 4)
# Long enough for a lie of half to stand out from what the senders' buffers hold at the end.
LIARS = _clients("fast", _CLIENTS.replace("duration: 1 s", "duration: 3 s"), 4)
SHARED = _clients("shared", _SHARED, 3)
GUEST = _clients("guest", _GUEST, 4)


@contextmanager
def two_machines(near: str, far: str) -> Iterator[None]:
    """Two namespaces with two cables between them, as somebody set them up who tests cards of his own."""
    try:
        for name in (near, far):
            ip("netns", "add", name)
            # A namespace begins with the machine's forwarding, which podman switches on and leaves so.
            settings = (
                "net.ipv6.conf.all.disable_ipv6=1",
                "net.ipv6.conf.default.disable_ipv6=1",
                "net.ipv4.ip_forward=0",
            )
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
