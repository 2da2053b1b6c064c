"""Checks of hosts, ports and links: those of a tester, which may stand on two machines, and the hosts of workloads,
where one host is measured and every other port leads to one of its clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nicbench.bench_file.models import BenchFile, TestSpec
from nicbench.bench_file.port_checks import (
    check_devices,
    check_dut_cards,
    check_guests,
    check_made_ports,
    check_virtual_functions,
)
from nicbench.bench_file.reader import Node
from nicbench.core.errors import Problem, quote, suggest
from nicbench.core.registry import find
from nicbench.hosts.kinds.local import LocalHost
from nicbench.methods.base import Method
from nicbench.testbed.duts.base import Dut
from nicbench.testbed.labs.base import EndpointLab, Lab

TESTER: Final = "tester"
"""The name of the host that the engine runs on; with `peer` there are two, and every other host belongs to the DUT."""

_PEER: Final = ("tester", "peer")


def is_testers(bench: BenchFile, host: str) -> bool:
    """Whether the ports of a host are the tester's."""
    return host == TESTER or (host == bench.tester_kind().peer)


def check_peer(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields what is wrong with the second machine, apart from hosts, ports and links."""
    peer = bench.tester_kind().peer
    if peer is None:
        return
    others = [name for name in bench.hosts if name != TESTER]
    if peer not in bench.hosts:
        yield Problem(root.position_of(_PEER), f"there is no host {quote(peer)}", suggest(peer, others, "host"))
    elif peer == TESTER:
        step = "name another host of `hosts`, or remove `peer`"
        yield Problem(root.position_of(_PEER), "the tester's second machine is its first one", step)
    elif not any(port.host == peer for port in bench.ports.values()):
        step = f"add a port with `host: {peer}` under `ports`"
        yield Problem(root.position_of(_PEER), f"no port belongs to the tester's second machine {quote(peer)}", step)
    for name, port in bench.ports.items():
        if port.host in (TESTER, peer) and port.driver in ("xdp", "net_pcap"):
            message = f"two machines cannot share a trial with `driver: {port.driver}`"
            step = "write `net_af_xdp` or `net_af_packet`, or remove `driver`"
            yield Problem(root.position_of(("ports", name, "driver")), message, step)


def check_peer_in_lab(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields a second machine along with a lab, which makes the ports of one tester."""
    if bench.tester_kind().peer is not None:
        step = "write `hosts`, `ports` and `links` in place of `lab`, or remove `peer`"
        yield Problem(root.position_of(_PEER), "a lab makes a tester on one machine", step)


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
    yield from _check_frame_ports(bench, root)
    yield from check_devices(bench, root)
    yield from check_made_ports(bench, root)
    yield from check_virtual_functions(bench, root)
    yield from check_guests(bench, root)
    yield from check_dut_cards(bench, root)
    yield from _check_frame_links(bench, root)


def check_lab_keys(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields keys that have no meaning with a lab, and a lab that cannot be made on the host of ``on``."""
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
    wrong_lab = bench.lab is not None and bench.lab.plugin.port_kind == EndpointLab.port_kind
    if not wrong_lab and bench.dut.plugin.port_kind != EndpointLab.port_kind:
        return
    method = quote(bench.tests[0].method_kind)
    rounds = [kind for kind, each in find("nicbench.methods", Method).items() if each.measures == "rounds"]
    other = f"choose a method of workloads: {', '.join(rounds)}"
    if bench.dut.plugin.port_kind == EndpointLab.port_kind:
        duts = [kind for kind, dut in find("nicbench.testbed.duts", Dut).items() if dut.port_kind == Lab.port_kind]
        message = f"{method} measures with the tester's frames, and the DUT {quote(bench.dut.kind)} is for workloads"
        yield Problem(
            root.position_of(("dut", "kind")), message, f"write `{_suggest_section('dut', duts)}`, or {other}"
        )
    if bench.lab is not None and wrong_lab:
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


def _check_frame_ports(bench: BenchFile, root: Node) -> Iterator[Problem]:
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


def _check_frame_links(bench: BenchFile, root: Node) -> Iterator[Problem]:
    linked = set()
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
