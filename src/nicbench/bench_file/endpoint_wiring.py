"""Hosts, ports and links of workloads: one host is measured, every other port leads to one of its ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nicbench.bench_file.function_problems import function_problems
from nicbench.bench_file.guest_problems import guest_problems
from nicbench.bench_file.made_ports import made_port_problems
from nicbench.bench_file.models import BenchFile, TestSpec
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.port_devices import device_problems
from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.bench_file.wiring import BY_HAND, beside_lab_problems
from nicbench.duts.base import Dut
from nicbench.labs.base import EndpointLab, Lab
from nicbench.registry import find

_OF_FRAMES: Final = ("traffic", "tester")
_OF_DPDK: Final = ("address", "vdev", "driver", "devargs", "queue", "lossless", "mac", "bind")

_KINDS: Final = {
    "unspecified": "the unspecified address",
    "multicast": "a multicast address",
    "loopback": "a loopback address",
}


def endpoint_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """A lab or hosts, ports and links, but not both; links from each client's port to a port of the measured host."""
    for key in _OF_FRAMES:
        if root.child(key) is not None:
            message = f"no frames are sent by a tester here, so {quote(key)} has no meaning"
            yield Problem(root.position_of_key((key,)), message, f"remove `{key}`")
    given = EndpointLab.port_kind if bench.lab is None else bench.lab.plugin.port_kind
    if given != EndpointLab.port_kind or bench.dut.plugin.port_kind != EndpointLab.port_kind:
        yield from _kind_problems(bench, root)
        return
    yield from _test_problems(bench, root)
    written = [key for key in BY_HAND if root.child(key) is not None]
    if bench.lab is not None:
        yield from beside_lab_problems(bench, root)
        lab: EndpointLab = bench.lab.plugin(bench.lab.options)
        of_ports = lab.clients_of_ports()
        hosts = [lab.measured_host, *(name for clients in of_ports.values() for name in clients)]
        yield from _misfits(bench, root, of_ports, hosts, dict.fromkeys(of_ports, lab.bond_links))
        return
    if len(written) < len(BY_HAND):
        missing = ", ".join(f"`{key}`" for key in BY_HAND if key not in written)
        step = "add `lab: {kind: clients}`, or `hosts`, `ports` and `links` for real machines"
        yield Problem(root.position, f"neither a lab nor all of hosts, ports and links are given ({missing})", step)
        return
    yield from _port_problems(bench, root)
    yield from device_problems(bench, root)
    yield from _address_problems(bench, root)
    yield from made_port_problems(bench, root)
    yield from function_problems(bench, root)
    yield from guest_problems(bench, root)
    wrong_links = list(_link_problems(bench, root))
    yield from wrong_links
    if not wrong_links:
        clients = _clients_of_ports(bench)
        bonds = {name: bench.ports[name].bond for name in clients}
        links = {name: None if bond is None else len(bond.of) for name, bond in bonds.items()}
        yield from _misfits(bench, root, clients, list(bench.hosts), links)


def measured_host(bench: BenchFile) -> str:
    """The name of the host whose ports are measured."""
    return str(bench.dut.options.model_dump()["host"])


def _kind_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """The method decides: workloads need hosts with addresses."""
    test = bench.tests[0]
    if bench.dut.plugin.port_kind != EndpointLab.port_kind:
        duts = [kind for kind, dut in find("nicbench.duts", Dut).items() if dut.port_kind == EndpointLab.port_kind]
        message = (
            f"the method {quote(test.method_kind)} runs workloads against a host, and {quote(bench.dut.kind)} is none"
        )
        yield Problem(root.position_of(("dut", "kind")), message, f"write `dut: {{kind: {' | '.join(duts)}}}`")
    if bench.lab is not None and bench.lab.plugin.port_kind != EndpointLab.port_kind:
        labs = [kind for kind, lab in find("nicbench.labs", Lab).items() if lab.port_kind == EndpointLab.port_kind]
        message = (
            f"the method {quote(test.method_kind)} needs hosts with addresses, which the lab {quote(bench.lab.kind)} "
            "does not make"
        )
        yield Problem(root.position_of(("lab", "kind")), message, f"write `lab: {{kind: {' | '.join(labs)}}}`")


def _test_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Whether the DUT forwards where a test sends through it, and has as many ports as the tests need."""
    for index, test in enumerate(bench.tests):
        position = root.position_of(("tests", index, "method"))
        if test.plugin.through_dut and not bench.dut.plugin.forwards:
            message = f"{quote(test.method_kind)} sends through the DUT, and {quote(bench.dut.kind)} forwards nothing"
            yield Problem(position, message, "write `dut: {kind: router}`")
            continue
        yield from _share_problems(bench, test, root, index)
        ports = _count_of_ports(bench)
        if ports < test.plugin.fewest_ports:
            message = f"{quote(test.method_kind)} needs {test.plugin.fewest_ports} ports, and there is {ports}"
            lab = "write `lab: {kind: clients, ports: 2}`"
            yield Problem(position, message, lab if bench.lab else f"add ports of {measured_host(bench)} to `ports`")


def _share_problems(bench: BenchFile, test: TestSpec, root: Node, index: int) -> Iterator[Problem]:
    """Whether the DUT serves as many shares as a test works on."""
    wanted = test.build().shares_wanted()
    there = int(bench.dut.options.model_dump()["shares"]) if bench.dut.plugin.has_shares else 0
    if wanted <= there:
        return
    path = ("tests", index, "instances")
    position = root.position_of(path if root.find(path[:2]).child("instances") is not None else (*path[:2], "method"))
    if not there:
        message = f"nobody says where {quote(test.name)} works: {quote(bench.dut.kind)} serves no shares"
        step = "write `directories: /mnt/d{instance}`, or `dut: {kind: file-server, share: sftp, shares: N, ...}`"
    else:
        message = f"{wanted} instances are asked for, and {quote(bench.dut.kind)} serves {there} shares"
        step = f"write `shares: {wanted}` under `dut`, or fewer `instances`"
    yield Problem(position, message, step)


def _count_of_ports(bench: BenchFile) -> int:
    """Of the measured host."""
    if bench.lab is not None:
        return int(bench.lab.options.model_dump().get("ports", 1))
    return sum(port.host == measured_host(bench) for port in bench.ports.values())


def _port_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    measured = measured_host(bench)
    if measured not in bench.hosts:
        step = f"name it under `hosts`, or write `dut: {{kind: {bench.dut.kind}, host: NAME}}`"
        yield Problem(root.position_of(("dut",)), f"there is no host {quote(measured)} to be measured", step)
        return
    for name, port in bench.ports.items():
        path = ("ports", name)
        if port.host not in bench.hosts:
            message = f"there is no host {quote(port.host)}"
            yield Problem(root.position_of((*path, "host")), message, suggest(port.host, list(bench.hosts), "host"))
        for key in _OF_DPDK:
            if root.find(path).child(key) is not None:
                message = f"workloads go through the kernel, so {quote(key)} of a port has no meaning"
                yield Problem(root.position_of((*path, key)), message, "write `device: enp1s0f0`")
        if port.device is None:
            step = "write `device: enp1s0f0`, the kernel's name of the interface"
            yield Problem(root.position_of_key(path), f"the port {quote(name)} names no `device`", step)
    if not any(port.host == measured for port in bench.ports.values()):
        message = f"no port belongs to {quote(measured)}, the host that is measured"
        yield Problem(root.position_of(("ports",)), message, f"add a port with `host: {measured}` under `ports`")


def _clients_of_ports(bench: BenchFile) -> dict[str, list[str]]:
    """By the links, which are right."""
    measured = measured_host(bench)
    found: dict[str, list[str]] = {name: [] for name, port in bench.ports.items() if port.host == measured}
    for one, other in bench.links:
        server, client = (one, other) if one in found else (other, one)
        found[server].append(client)
    return found


def _misfits(
    bench: BenchFile,
    root: Node,
    clients: Mapping[str, Sequence[str]],
    hosts: Sequence[str],
    links: Mapping[str, int | None],
) -> Iterator[Problem]:
    """What each test names, how many clients it needs, and which links of bonds."""
    for index, test in enumerate(bench.tests):
        method = test.build()
        for one in (*method.misfits(clients, hosts), *method.bond_misfits(links)):
            position = root.position_of_key(("tests", index, *one.option))
            yield Problem(position, one.message, one.next_step)


def _address_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Addresses that no other host can reach, and two ports with one."""
    first: dict[str, str] = {}
    for name, port in bench.ports.items():
        if port.ip is None:
            continue
        position = root.position_of(("ports", name, "ip"))
        address = port.own_ip
        wrong = [kind for kind in ("unspecified", "multicast", "loopback") if getattr(address, f"is_{kind}")]
        earlier = first.setdefault(str(address), name)
        if wrong:
            message = f"{quote(str(address))} is {_KINDS[wrong[0]]}: no other host reaches the port by it"
            yield Problem(position, message, "write the address of its interface, or remove `ip`")
        elif earlier != name:
            message = f"the ports {quote(earlier)} and {quote(name)} both have the address {quote(str(address))}"
            yield Problem(position, message, "give each port an address of its own")


def _link_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Several clients may lead to one port, through a switch; a client's port leads to one."""
    measured = measured_host(bench)
    linked: set[str] = set()
    for index, link in enumerate(bench.links):
        position = root.position_of(("links", index))
        unknown = [end for end in link if end not in bench.ports]
        for end in unknown:
            yield Problem(position, f"there is no port {quote(end)}", suggest(end, list(bench.ports), "port"))
        if unknown:
            continue
        sides = [bench.ports[end].host == measured for end in link]
        if sides.count(True) != 1:
            step = f"write `client_port <-> port_of_{measured}`"
            yield Problem(position, f"{quote(' <-> '.join(link))} does not join a client and {quote(measured)}", step)
            continue
        client = link[sides.index(False)]
        if client in linked:
            message = f"the client's port {quote(client)} has two links"
            yield Problem(position, message, "keep the one to the port that it talks to")
        linked.update(link)
    for name in bench.ports:
        if name not in linked:
            message = f"no link leads to the port {quote(name)}"
            yield Problem(root.position_of_key(("ports", name)), message, "add it to `links`")
