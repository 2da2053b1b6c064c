"""Time stamps that the tester's ports do not have, as far as their drivers tell before a host is touched."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.bench_file.models import BenchFile, Port
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Problem, quote

_TSC = "`timestamps: tsc`"
_ADVICE = {
    "kernel": f"write `driver: net_pcap` for a kernel interface, or {_TSC}",
    "card": f"give a card by its `address` whose DPDK driver stamps every frame (mlx5, ice, hns3), or write {_TSC}",
}


def time_stamp_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Every port without the stamps that were asked for. What a card can do, only its driver knows: the engine asks."""
    tester = bench.tester_kind()
    wanted = tester.timestamps
    if wanted == "tsc":
        return
    if bench.lab is not None:
        sources = bench.lab.plugin(bench.lab.options).time_stamps(tester.driver)
        if wanted not in sources:
            message = f"the ports of the {bench.lab.kind} lab{_by(bench)} have no time stamps of the {wanted}"
            step = bench.lab.plugin.time_stamp_advice.get(wanted, f"write {_TSC}")
            yield Problem(root.position_of(("tester", "timestamps")), message, step)
        return
    for name, port in bench.ports.items():
        if port.host == "tester" and not _may_stamp(wanted, port, tester.driver):
            what = _driver(port, tester.driver)
            message = f"the port {quote(name)} ({what}) has no time stamps of the {wanted}"
            yield Problem(root.position_of_key(("ports", name)), message, _ADVICE[wanted])


def _may_stamp(wanted: str, port: Port, default_driver: str) -> bool:
    if wanted == "card":
        return port.address is not None
    if port.vdev is not None:
        # Frames from a file bear the file's stamps.
        return port.vdev.startswith("net_pcap") and "rx_pcap=" not in port.vdev
    return port.device is not None and (port.driver or default_driver) == "net_pcap"


def _driver(port: Port, default_driver: str) -> str:
    if port.address is not None:
        return "a card that the kernel does not see"
    if port.vdev is not None:
        return port.vdev.partition(",")[0]
    return port.driver or default_driver


def _by(bench: BenchFile) -> str:
    """The driver, where the lab's ports leave a choice."""
    return (
        f" by {bench.tester_kind().driver}" if bench.lab is not None and bench.lab.plugin.port_kind == "kernel" else ""
    )
