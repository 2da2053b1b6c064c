"""Checks of a tester on two machines: the second one is a host of its own, with ports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.problems import Problem, quote, suggest
from nicbench.bench_file.reader import Node

TESTER: Final = "tester"
"""The name of the host that the engine runs on; with `peer` there are two, and every other host belongs to the DUT."""

_PEER: Final = ("tester", "peer")


def is_testers(bench: BenchFile, host: str) -> bool:
    """Whether the ports of a host are the tester's."""
    return host == TESTER or (host == bench.tester_kind().peer)


def check_peer(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields what is wrong with the second machine beside hosts, ports and links."""
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
    """Yields a second machine beside a lab, which makes the ports of one tester."""
    if bench.tester_kind().peer is not None:
        step = "write `hosts`, `ports` and `links` in place of `lab`, or remove `peer`"
        yield Problem(root.position_of(_PEER), "a lab makes a tester on one machine", step)
