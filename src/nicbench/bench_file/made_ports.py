"""What is to be made for ports (``create: true``, ``ip`` with a prefix length, ``rdma``): that it can be, and once."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any, Final

from nicbench.bench_file.models import BenchFile, Port
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Problem, quote
from nicbench.hosts._specs import spec_of

_POINT_TO_POINT: Final = 31
"""Prefixes from this one on have no addresses of the network and of all (RFC 3021)."""


def made_port_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Namespaces and addresses."""
    yield from _namespace_problems(bench, root)
    first: list[tuple[str, Port]] = []
    for name, port in bench.ports.items():
        if port.host not in bench.hosts:
            continue
        given = port.given_ip
        path = ("ports", name)
        if port.bond is not None and bench.measures != "rounds":
            message = f"frames are sent on interfaces themselves, so {quote('bond')} has no meaning"
            yield Problem(root.position_of_key((*path, "bond")), message, "write `device`, or a method of workloads")
        if port.rdma is not None:
            yield from _rdma_problems(bench, port, root, path)
        if given is None:
            if bench.measures == "rounds" and _is_created(bench, port.host):
                message = f"nicbench makes the namespace of {quote(name)}, and nothing gives the port an address there"
                step = "write `ip: 198.18.0.1/24`, with the length of its prefix"
                yield Problem(root.position_of_key(path), message, step)
            continue
        network = given.network
        is_wide = isinstance(network, IPv4Network) and network.prefixlen < _POINT_TO_POINT
        if is_wide and given.ip in (network.network_address, network.broadcast_address):
            message = f"{quote(str(given))} is the address of a whole network"
            yield Problem(root.position_of((*path, "ip")), message, f"write `{network[1]}/{network.prefixlen}`")
            continue
        for other, earlier in first:
            same = network_of(bench, earlier.host) == network_of(bench, port.host)
            if same and earlier.given_ip is not None and earlier.given_ip.network.overlaps(network):
                message = f"{quote(other)} and {quote(name)} are ports of one network stack, and both in {network}"
                step = "give each a network of its own, or a host with a namespace of its own"
                yield Problem(root.position_of((*path, "ip")), message, f"{step}: the kernel sends by one of them only")
        first.append((name, port))


def _rdma_problems(bench: BenchFile, port: Port, root: Node, path: tuple[str, ...]) -> Iterator[Problem]:
    """Soft RoCE is of workloads, found by the port's address, and in the first network namespace of a machine."""
    at = root.position_of_key((*path, "rdma"))
    if bench.measures != "rounds":
        yield Problem(at, f"frames are not sent by RDMA, so {quote('rdma')} has no meaning", f"remove {quote('rdma')}")
    elif port.ip is None:
        yield Problem(at, "soft RoCE bears the address of its port", "write `ip: 198.18.0.1/24`")
    elif network_of(bench, port.host)["kind"] == "netns":
        message = f"{quote(port.host)} is in a network namespace, and soft RoCE knows the first one of a machine alone"
        yield Problem(at, message, "give the port a host that is a machine: `{kind: vm}`, `{kind: ssh}`")


def network_of(bench: BenchFile, name: str) -> dict[str, Any]:
    """What tells the network stack of a host from others: a container is mostly in that of what it is made on."""
    spec = spec_of(bench.hosts, name)
    while spec["kind"] == "container" and spec.get("network") == "host":
        spec = spec["inner"]
    if spec["kind"] == "container" and str(spec.get("network")).startswith("ns:"):
        inside = spec["inner"]
        machine = inside.get("inner", {"kind": "local"}) if inside["kind"] == "netns" else inside
        return {"kind": "netns", "namespace": str(spec["network"]).rpartition("/")[2], "inner": machine}
    if spec["kind"] == "netns":
        return {"kind": "netns", "namespace": spec["namespace"], "inner": spec.get("inner", {"kind": "local"})}
    return spec


def origin_of(bench: BenchFile, name: str) -> dict[str, Any]:
    """Where the interfaces of a host's ports are before a run."""
    network = network_of(bench, name)
    machine: dict[str, Any] = network["inner"] if _is_created(bench, name) else network
    return machine


def _is_created(bench: BenchFile, name: str) -> bool:
    """Whether the network namespace of a host is one that nicbench makes."""
    network = network_of(bench, name)
    return any(network_of(bench, other) == network for other in _creating(bench))


def _creating(bench: BenchFile) -> list[str]:
    return [name for name, host in bench.hosts.items() if getattr(host.options, "create", False)]


def _namespace_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    made: list[dict[str, Any]] = []
    for name in _creating(bench):
        network = network_of(bench, name)
        if network in made:
            message = f"the namespace {quote(network['namespace'])} is made by two hosts"
            yield Problem(root.position_of_key(("hosts", name, "create")), message, "give each a namespace of its own")
        made.append(network)
