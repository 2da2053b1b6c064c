"""Checks of hosts, ports and links for workloads: one host is measured, and every other port leads to one of its."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nicbench.bench_file.guest_checks import check_guests
from nicbench.bench_file.models import BenchFile, TestSpec
from nicbench.bench_file.port_checks import check_devices, check_made_ports, check_virtual_functions
from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.bench_file.reader import Node
from nicbench.bench_file.wiring import BY_HAND, check_lab_keys
from nicbench.core.registry import find
from nicbench.testbed.duts.base import Dut
from nicbench.testbed.labs.base import EndpointLab, Lab

_FRAME_KEYS: Final = ("traffic", "tester")
_DPDK_KEYS: Final = ("address", "vdev", "driver", "devargs", "queue", "lossless", "mac", "bind")

_UNREACHABLE_IN_WORDS: Final = {
    "unspecified": "the unspecified address",
    "multicast": "a multicast address",
    "loopback": "a loopback address",
}


def check_endpoints(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields what is wrong with a lab, or with hosts, ports and links from each client's port to the measured host."""
    for key in _FRAME_KEYS:
        if root.child(key) is not None:
            message = f"workloads need no tester that sends frames, so {quote(key)} has no effect"
            yield Problem(root.position_of_key((key,)), message, f"remove `{key}`")
    given = EndpointLab.port_kind if bench.lab is None else bench.lab.plugin.port_kind
    if given != EndpointLab.port_kind or bench.dut.plugin.port_kind != EndpointLab.port_kind:
        yield from _check_kinds(bench, root)
        return
    yield from _check_tests(bench, root)
    written = [key for key in BY_HAND if root.child(key) is not None]
    if bench.lab is not None:
        yield from check_lab_keys(bench, root)
        lab: EndpointLab = bench.lab.plugin(bench.lab.options)
        of_ports = lab.clients_of_ports()
        hosts = [lab.measured_host, *(name for clients in of_ports.values() for name in clients)]
        yield from _check_test_needs(bench, root, of_ports, hosts, dict.fromkeys(of_ports, lab.bond_links))
        return
    if len(written) < len(BY_HAND):
        missing = ", ".join(f"`{key}`" for key in BY_HAND if key not in written)
        step = "add `lab: {kind: clients}`, or `hosts`, `ports` and `links` for real machines"
        yield Problem(root.position, f"neither a lab nor all of hosts, ports and links are given ({missing})", step)
        return
    yield from _check_ports(bench, root)
    yield from check_devices(bench, root)
    yield from _check_addresses(bench, root)
    yield from check_made_ports(bench, root)
    yield from check_virtual_functions(bench, root)
    yield from check_guests(bench, root)
    wrong_links = list(_check_links(bench, root))
    yield from wrong_links
    if not wrong_links:
        clients = clients_of_ports(bench)
        bonds = {name: bench.ports[name].bond for name in clients}
        links = {name: None if bond is None else len(bond.of) for name, bond in bonds.items()}
        yield from _check_test_needs(bench, root, clients, list(bench.hosts), links)


def measured_host(bench: BenchFile) -> str:
    """The name of the host whose ports are measured: the option ``host`` of the DUT."""
    return str(bench.dut.options.model_dump()["host"])


def _check_kinds(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields a DUT or a lab that the method cannot use: workloads need hosts with addresses."""
    test = bench.tests[0]
    if bench.dut.plugin.port_kind != EndpointLab.port_kind:
        duts = [
            kind for kind, dut in find("nicbench.testbed.duts", Dut).items() if dut.port_kind == EndpointLab.port_kind
        ]
        message = f"the method {quote(test.method_kind)} needs a host to measure: {quote(bench.dut.kind)} is none"
        yield Problem(root.position_of(("dut", "kind")), message, f"write `dut: {{kind: {' | '.join(duts)}}}`")
    if bench.lab is not None and bench.lab.plugin.port_kind != EndpointLab.port_kind:
        labs = [
            kind for kind, lab in find("nicbench.testbed.labs", Lab).items() if lab.port_kind == EndpointLab.port_kind
        ]
        message = (
            f"the method {quote(test.method_kind)} needs hosts with addresses, which the lab {quote(bench.lab.kind)} "
            "does not make"
        )
        yield Problem(root.position_of(("lab", "kind")), message, f"write `lab: {{kind: {' | '.join(labs)}}}`")


def _check_tests(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields tests that send through a DUT that does not forward, and tests that need more ports than it has."""
    for index, test in enumerate(bench.tests):
        position = root.position_of(("tests", index, "method"))
        if test.plugin.through_dut and not bench.dut.plugin.forwards:
            message = f"{quote(test.method_kind)} sends through the DUT, and {quote(bench.dut.kind)} does not forward"
            yield Problem(position, message, "write `dut: {kind: router}`")
            continue
        yield from _check_share_count(bench, test, root, index)
        ports = count_ports(bench)
        if ports < test.plugin.fewest_ports:
            message = f"{quote(test.method_kind)} needs {test.plugin.fewest_ports} ports, and there is {ports}"
            lab = "write `lab: {kind: clients, ports: 2}`"
            yield Problem(position, message, lab if bench.lab else f"add ports of {measured_host(bench)} to `ports`")


def _check_share_count(bench: BenchFile, test: TestSpec, root: Node, index: int) -> Iterator[Problem]:
    """Yields a problem where a test works on more shares than the DUT serves."""
    wanted = test.build().share_count()
    there = int(bench.dut.options.model_dump()["shares"]) if bench.dut.plugin.has_shares else 0
    if wanted <= there:
        return
    path = ("tests", index, "instances")
    position = root.position_of(path if root.find(path[:2]).child("instances") is not None else (*path[:2], "method"))
    if not there:
        message = f"{quote(test.name)} has no directory to work in: {quote(bench.dut.kind)} serves no shares"
        step = "write `directories: /mnt/d{instance}`, or `dut: {kind: file-server, share: sftp, shares: N, ...}`"
    else:
        message = f"{wanted} instances are asked for, and {quote(bench.dut.kind)} serves {there} shares"
        step = f"write `shares: {wanted}` under `dut`, or fewer `instances`"
    yield Problem(position, message, step)


def count_ports(bench: BenchFile) -> int:
    """The number of ports of the measured host."""
    if bench.lab is not None:
        return int(bench.lab.options.model_dump().get("ports", 1))
    return sum(port.host == measured_host(bench) for port in bench.ports.values())


def _check_ports(bench: BenchFile, root: Node) -> Iterator[Problem]:
    measured = measured_host(bench)
    if measured not in bench.hosts:
        step = f"name it under `hosts`, or write `dut: {{kind: {bench.dut.kind}, host: NAME}}`"
        yield Problem(root.position_of(("dut",)), f"there is no host {quote(measured)} to measure", step)
        return
    for name, port in bench.ports.items():
        path = ("ports", name)
        if port.host not in bench.hosts:
            message = f"there is no host {quote(port.host)}"
            yield Problem(root.position_of((*path, "host")), message, suggest(port.host, list(bench.hosts), "host"))
        for key in _DPDK_KEYS:
            if root.find(path).child(key) is not None:
                message = f"workloads go through the kernel, so {quote(key)} of a port has no effect"
                yield Problem(root.position_of((*path, key)), message, "write `device: enp1s0f0`")
        if port.device is None:
            step = "write `device: enp1s0f0`, the kernel's name of the interface"
            yield Problem(root.position_of_key(path), f"the port {quote(name)} names no `device`", step)
    if not any(port.host == measured for port in bench.ports.values()):
        message = f"no port belongs to {quote(measured)}, the host that is measured"
        yield Problem(root.position_of(("ports",)), message, f"add a port with `host: {measured}` under `ports`")


def clients_of_ports(bench: BenchFile) -> Mapping[str, Sequence[str]]:
    """The ports of clients by the measured host's port that they lead to; the links must have been checked."""
    if bench.lab is not None:
        lab: EndpointLab = bench.lab.plugin(bench.lab.options)
        return lab.clients_of_ports()
    measured = measured_host(bench)
    found: dict[str, list[str]] = {name: [] for name, port in bench.ports.items() if port.host == measured}
    for one, other in bench.links:
        server, client = (one, other) if one in found else (other, one)
        found[server].append(client)
    return found


def _check_test_needs(
    bench: BenchFile,
    root: Node,
    clients: Mapping[str, Sequence[str]],
    hosts: Sequence[str],
    links: Mapping[str, int | None],
) -> Iterator[Problem]:
    """Yields what each test asks of clients, hosts and links of bonds that are not there."""
    for index, test in enumerate(bench.tests):
        method = test.build()
        for one in (*method.find_misfits(clients, hosts), *method.find_bond_misfits(links)):
            position = root.position_of_key(("tests", index, *one.option))
            yield Problem(position, one.message, one.next_step)


def _check_addresses(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields addresses that no other host can reach, and addresses that two ports share."""
    first: dict[str, str] = {}
    for name, port in bench.ports.items():
        if port.ip is None:
            continue
        position = root.position_of(("ports", name, "ip"))
        address = port.own_ip
        wrong = [kind for kind in ("unspecified", "multicast", "loopback") if getattr(address, f"is_{kind}")]
        earlier = first.setdefault(str(address), name)
        if wrong:
            message = (
                f"{quote(str(address))} is {_UNREACHABLE_IN_WORDS[wrong[0]]}: no other host reaches the port by it"
            )
            yield Problem(position, message, "write the address of its interface, or remove `ip`")
        elif earlier != name:
            message = f"the ports {quote(earlier)} and {quote(name)} both have the address {quote(str(address))}"
            yield Problem(position, message, "give each port an address of its own")


def _check_links(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields wrong links. Several clients may share one port through a switch; a client's port has one link."""
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
