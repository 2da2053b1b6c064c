"""Hosts, ports and links: that they fit together, or that a lab takes their place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.port_devices import device_problems
from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.duts.simulated import Simulated
from nicbench.labs.simulated import SimulatedLab

TESTER: Final = "tester"
"""The host that the engine runs on bears this name; every other host is the DUT's side."""

_BY_HAND: Final = ("hosts", "ports", "links")


def wiring_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A lab or hosts, ports and links, but not both; names that exist; links that join tester and DUT."""
    written = [key for key in _BY_HAND if root.child(key) is not None]
    yield from _simulation_problems(bench, root)
    if bench.lab is not None:
        for key in written:
            step = f"remove `{key}`, or remove `lab`"
            yield Problem(
                root.position_of_key((key,)),
                f"`lab` makes its own hosts and links, so {quote(key)} has no meaning",
                step,
            )
        return
    if not written:
        step = "add `lab: {kind: veth}`, or `hosts`, `ports` and `links` for real machines"
        yield Problem(root.position, "neither a lab nor hosts and ports are given", step)
        return
    yield from _host_problems(bench, root)
    yield from _port_problems(bench, root)
    yield from device_problems(bench, root)
    yield from _link_problems(bench, root)


def _simulation_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """The simulated lab and the simulated DUT are two halves of one thing."""
    is_lab = bench.lab is not None and bench.lab.kind == SimulatedLab.kind
    is_dut = bench.dut.kind == Simulated.kind
    position = root.position_of(("dut", "kind"))
    if is_lab and not is_dut:
        message = f"no DUT of the kind {quote(bench.dut.kind)} can stand in the simulated lab"
        yield Problem(position, message, "write `dut: {kind: simulated}`, or `lab: {kind: veth}`")
    if is_dut and not is_lab:
        message = "the simulated DUT stands in the simulated lab alone"
        yield Problem(position, message, "write `lab: {kind: simulated}`, or another DUT")


def _host_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    if TESTER not in bench.hosts:
        position = root.position_of(("hosts",))
        yield Problem(
            position, "no host is called `tester`", "add `tester: {kind: local}` under `hosts`: the engine runs there"
        )
    if not any(port.host == TESTER for port in bench.ports.values()):
        position = root.position_of(("ports",))
        yield Problem(position, "no port belongs to the tester", "add a port with `host: tester` under `ports`")


def _port_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    for name, port in bench.ports.items():
        path = ("ports", name)
        if port.host not in bench.hosts:
            position = root.position_of((*path, "host"))
            yield Problem(
                position, f"there is no host {quote(port.host)}", suggest(port.host, list(bench.hosts), "host")
            )
        ways = [way for way in ("device", "address", "vdev") if getattr(port, way) is not None]
        if len(ways) != 1:
            given = " and ".join(f"`{way}`" for way in ways) or "none of them"
            yield Problem(
                root.position_of_key(path),
                f"the port {quote(name)} needs exactly one of `device`, `address` and `vdev`; it has {given}",
                "write `device: enp1s0f0`, `address: 0000:03:00.0` or `vdev: net_null0`",
            )
        if port.driver is not None and port.device is None:
            position = root.position_of((*path, "driver"))
            yield Problem(
                position, "`driver` is for ports given by `device`", "remove it: DPDK finds the driver by itself"
            )
        if port.vdev is not None and port.host != TESTER:
            position = root.position_of((*path, "vdev"))
            yield Problem(position, "only the tester's ports can be virtual devices of DPDK", "write `device: ...`")


def _link_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    linked: set[str] = set()
    for index, link in enumerate(bench.links):
        position = root.position_of(("links", index))
        unknown = [end for end in link if end not in bench.ports]
        for end in unknown:
            yield Problem(position, f"there is no port {quote(end)}", suggest(end, list(bench.ports), "port"))
        for end in link:
            if end in linked or link[0] == link[1]:
                yield Problem(position, f"the port {quote(end)} has two links", "a port has one cable")
                break
            linked.add(end)
        sides = [bench.ports[end].host == TESTER for end in link if end in bench.ports]
        if not unknown and sides.count(True) != 1:
            step = "write `tester_port <-> dut_port`"
            yield Problem(position, f"{quote(' <-> '.join(link))} does not join the tester and the DUT", step)
    for name in bench.ports:
        is_dut_port = bench.ports[name].host != TESTER
        if is_dut_port and name not in linked:
            yield Problem(
                root.position_of_key(("ports", name)), f"no link leads to the port {quote(name)}", "add it to `links`"
            )
