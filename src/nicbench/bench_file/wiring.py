"""Checks of hosts, ports and links of a tester's frames: they fit together, or a lab takes their place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.guest_checks import check_guests
from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.peer_checks import TESTER, check_peer, check_peer_in_lab, is_testers
from nicbench.bench_file.port_checks import check_devices, check_dut_cards, check_made_ports, check_virtual_functions
from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.bench_file.reader import Node
from nicbench.core.registry import find
from nicbench.hosts.kinds.local import LocalHost
from nicbench.methods.base import Method
from nicbench.testbed.duts.base import Dut
from nicbench.testbed.labs.base import EndpointLab, Lab

BY_HAND: Final = ("hosts", "ports", "links")


def check_wiring(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields what is wrong with a lab, or with hosts, ports and links that join tester and DUT."""
    written = [key for key in BY_HAND if root.child(key) is not None]
    if bench.tester_kind().own_ports():
        yield from _check_own_ports(bench, root)
        return
    yield from _check_port_kind(bench, root)
    if bench.lab is not None:
        lab, has_huge_pages = bench.lab.plugin(bench.lab.options), bench.tester_kind().huge_pages_bytes > 0
        for objection in lab.objections(tester_has_huge_pages=has_huge_pages, pattern=bench.traffic.pattern):
            yield Problem(root.position_of(("lab", objection.key)), objection.message, objection.next_step)
        yield from check_lab_keys(bench, root)
        yield from check_peer_in_lab(bench, root)
        return
    if not written:
        simulated = bench.dut is not None and bench.dut.kind == "simulated"
        real = "add `lab: {kind: veth}`, or `hosts`, `ports` and `links` for real machines"
        step = "add `lab: {kind: simulated}`" if simulated else real
        yield Problem(root.position, "neither a lab nor hosts and ports are given", step)
        return
    yield from _check_hosts(bench, root)
    yield from check_peer(bench, root)
    yield from _check_ports(bench, root)
    yield from check_devices(bench, root)
    yield from check_made_ports(bench, root)
    yield from check_virtual_functions(bench, root)
    yield from check_guests(bench, root)
    yield from check_dut_cards(bench, root)
    yield from _check_links(bench, root)


def check_lab_keys(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields keys that have no meaning beside a lab, and a lab that cannot be made on the host of ``on``."""
    for key in BY_HAND:
        if root.child(key) is not None and not (key == "hosts" and bench.lab is not None and bench.lab.on is not None):
            step = f"remove `{key}`, or remove `lab`"
            if key == "hosts":
                step += "; a lab is made on one of them by `on: NAME`"
            message = f"`lab` makes its own hosts and links, so {quote(key)} has no effect"
            yield Problem(root.position_of_key((key,)), message, step)
    if bench.lab is None or bench.lab.on is None or bench.hosts[bench.lab.on].kind == LocalHost.kind:
        return
    objection = bench.lab.plugin(bench.lab.options).objection_elsewhere()
    if objection is not None:
        yield Problem(root.position_of(("lab", objection.key)), objection.message, objection.next_step)


def check_frame_kinds(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields a DUT or a lab of workloads in a bench file whose methods send a tester's frames."""
    method = quote(bench.tests[0].method_kind)
    rounds = [kind for kind, each in find("nicbench.methods", Method).items() if each.measures == "rounds"]
    other = f"choose a method of workloads: {', '.join(rounds)}"
    if bench.dut.plugin.port_kind == EndpointLab.port_kind:
        duts = [kind for kind, dut in find("nicbench.testbed.duts", Dut).items() if dut.port_kind == Lab.port_kind]
        message = f"{method} measures with the tester's frames, and the DUT {quote(bench.dut.kind)} is for workloads"
        yield Problem(
            root.position_of(("dut", "kind")), message, f"write `{_suggest_section('dut', duts)}`, or {other}"
        )
    if bench.lab is not None and bench.lab.plugin.port_kind == EndpointLab.port_kind:
        labs = [kind for kind, lab in find("nicbench.testbed.labs", Lab).items() if lab.port_kind == Lab.port_kind]
        message = f"{method} measures with the tester's frames, and the lab {quote(bench.lab.kind)} is for workloads"
        yield Problem(
            root.position_of(("lab", "kind")), message, f"write `{_suggest_section('lab', labs)}`, or {other}"
        )


def _check_own_ports(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields what a tester with ports of its own cannot use: a lab, ports by hand, and a DUT that nicbench sets up."""
    kind = quote(bench.tester.kind)
    for key in ("lab", *BY_HAND):
        if root.child(key) is not None:
            message = f"the tester {kind} brings its own ports, so {quote(key)} has no effect"
            yield Problem(root.position_of_key((key,)), message, f"remove `{key}`, or choose another tester")
    if bench.dut.plugin.is_set_up:
        duts = find("nicbench.testbed.duts", Dut).items()
        there = [name for name, dut in duts if not dut.is_set_up and dut.port_kind == Lab.port_kind]
        message = f"the DUT {quote(bench.dut.kind)} is set up by nicbench on ports that the tester {kind} does not give"
        step = f"set it up by hand and write `{_suggest_section('dut', there)}`, or choose another tester"
        yield Problem(root.position_of(("dut", "kind")), message, step)


def _check_port_kind(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields a DUT that needs other ports than there are: the kernel's, a lab's shared memory, or simulated ones."""
    given = Lab.port_kind if bench.lab is None else bench.lab.plugin.port_kind
    needed = bench.dut.plugin.port_kind
    if given == needed or (bench.lab is None and bench.dut.plugin.takes_cards):
        return
    if bench.lab is not None and given == Lab.port_kind and bench.dut.plugin.takes_interfaces:
        return
    position = root.position_of(("dut", "kind"))
    fitting = [kind for kind, dut in find("nicbench.testbed.duts", Dut).items() if dut.port_kind == given]
    labs = [kind for kind, lab in find("nicbench.testbed.labs", Lab).items() if lab.port_kind == needed]
    step = f"write `{_suggest_section('dut', fitting)}`, or `{_suggest_section('lab', labs)}`"
    if bench.lab is None or given == Lab.port_kind:
        cards = bench.dut.plugin.takes_cards
        message = (
            f"the {bench.dut.kind} DUT works in the {' or '.join(labs)} lab{', or on cards' if cards else ' only'}"
        )
        by_hand = ", `hosts`, `ports` and `links`" if cards else ""
        step = f"write `{_suggest_section('lab', labs)}`{by_hand}, or another DUT"
    else:
        message = f"a DUT of the kind {quote(bench.dut.kind)} does not work in the {bench.lab.kind} lab"
    yield Problem(position, message, step)


def _suggest_section(key: str, kinds: list[str]) -> str:
    """A section to write with one of these kinds, as in ``dut: {kind: l3fwd | testpmd}``."""
    return f"{key}: {{kind: {' | '.join(kinds)}}}"


def _check_hosts(bench: BenchFile, root: Node) -> Iterator[Problem]:
    if TESTER not in bench.hosts:
        position = root.position_of(("hosts",))
        yield Problem(
            position, "no host is called `tester`", "add `tester: {kind: local}` under `hosts`: the engine runs there"
        )
    if not any(port.host == TESTER for port in bench.ports.values()):
        position = root.position_of(("ports",))
        yield Problem(position, "no port belongs to the tester", "add a port with `host: tester` under `ports`")


def _check_ports(bench: BenchFile, root: Node) -> Iterator[Problem]:
    for name, port in bench.ports.items():
        path = ("ports", name)
        if port.host not in bench.hosts:
            position = root.position_of((*path, "host"))
            yield Problem(
                position, f"there is no host {quote(port.host)}", suggest(port.host, list(bench.hosts), "host")
            )
        ways = [way for way in ("device", "address", "vdev") if getattr(port, way) is not None]
        if len(ways) != 1 and port.virtual_function is None:
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
        if port.bind is not None and (port.vdev is not None or port.driver is not None):
            position = root.position_of((*path, "bind"))
            yield Problem(
                position, "`bind` gives a card to DPDK, which then sends by its own driver", "remove the other driver"
            )
        if port.given_ip is not None and is_testers(bench, port.host):
            message = "the tester receives every frame of its ports, so its interfaces need no addresses"
            yield Problem(root.position_of((*path, "ip")), message, "remove `ip`")
        if port.vdev is not None and not is_testers(bench, port.host):
            position = root.position_of((*path, "vdev"))
            yield Problem(position, "only the tester's ports can be virtual devices of DPDK", "write `device: ...`")


def _check_links(bench: BenchFile, root: Node) -> Iterator[Problem]:
    linked: set[str] = set()
    for index, link in enumerate(bench.links):
        position = root.position_of(("links", index))
        unknown = [end for end in link if end not in bench.ports]
        for end in unknown:
            yield Problem(position, f"there is no port {quote(end)}", suggest(end, list(bench.ports), "port"))
        for end in link:
            if end in linked or link[0] == link[1]:
                yield Problem(position, f"the port {quote(end)} has two links", "remove one: a port has one cable")
                break
            linked.add(end)
        sides = [is_testers(bench, bench.ports[end].host) for end in link if end in bench.ports]
        if not unknown and sides.count(True) != 1:
            step = "write `tester_port <-> dut_port`"
            yield Problem(position, f"{quote(' <-> '.join(link))} does not join the tester and the DUT", step)
    for name in bench.ports:
        is_dut_port = not is_testers(bench, bench.ports[name].host)
        if is_dut_port and name not in linked:
            yield Problem(
                root.position_of_key(("ports", name)), f"no link leads to the port {quote(name)}", "add it to `links`"
            )
