"""Which port sends to which: that there are ports for it, that the DUT can do it, and that the engine can send it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Position, Problem, quote
from nicbench.bench_file.wiring import TESTER, wiring_problems
from nicbench.duts.base import Dut
from nicbench.model.pattern import Pattern, Ways, ways_of
from nicbench.registry import find

MOST_STREAMS: Final = 64
"""Of all ways together: as many as the engine sends at once."""


def pattern_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """What of the pattern, the number of ports and the DUT do not go together."""
    if any(wiring_problems(bench, root)):
        return  # of ports that are not what was meant there is nothing to say
    ports = _ports(bench)
    dut, pattern = bench.dut.plugin, bench.traffic.pattern
    position = _position(root)
    if not dut.fewest_ports <= ports <= dut.most_ports:
        number = "two ports" if dut.most_ports == 2 else f"{dut.fewest_ports} to {dut.most_ports} ports"
        yield Problem(
            root.position_of(("dut", "kind")),
            f"a DUT of the kind {quote(bench.dut.kind)} joins {number}, and there {_are(ports)}",
            f"give it {number}, or choose among {_kinds(bench, ports)}",
        )
        return
    if pattern is Pattern.SAME_PORT and ports > 1 and not dut.returns_on_same_port:
        yield Problem(
            position,
            f"a DUT of the kind {quote(bench.dut.kind)} sends no frame back by the port that it came in at",
            f"choose another pattern, or a DUT that does: {_kinds(bench, ports, same_port=True)}",
        )
        return
    refusal = dut(bench.dut.options).refusal(ports, pattern)
    if refusal is not None:
        yield Problem(root.position_of(("dut",)), refusal.message, refusal.next_step)
        return
    try:
        ways = ways_of(pattern, ports, bidirectional=bench.traffic.bidirectional)
    except ValueError:
        yield _wrong_number(pattern, ports, position)
        return
    yield from _overloads(bench, root, ways)
    streams = len(ways.every) * max(1, len(bench.traffic.streams))
    if streams > MOST_STREAMS:
        yield Problem(
            position,
            f"{pattern.value} between {ports} ports comes to {streams} streams, and the tester sends at most "
            f"{MOST_STREAMS} at once",
            "use fewer ports, or fewer `streams`",
        )


def _overloads(bench: BenchFile, root: Node, ways: Ways) -> Iterator[Problem]:
    """Loads above what the senders' lines carry; of a rate of one's own only the run knows what that is."""
    most = 100.0 * ways.most_line_rates
    for index, test in enumerate(bench.tests):
        loads: Any = getattr(test.options, "loads", ())
        for number, load in enumerate(loads if getattr(test.options, "of", None) == "line_rate" else ()):
            if load > most:
                yield Problem(
                    root.position_of(("tests", index, "loads", number)),
                    f"{load:g} % of line rate is more than the ports that send can offer: {most:g} %",
                    "lower it" if most > 100.0 else "lower it, or overload one port with `pattern: many-to-one`",
                )


def _wrong_number(pattern: Pattern, ports: int, position: Position) -> Problem:
    if pattern is Pattern.ONE_TO_ONE:
        message = f"one-to-one joins pairs of ports, and {ports} is an odd number of them"
        return Problem(position, message, "add or remove a port, or choose a `pattern` under `traffic`")
    message = f"{pattern.value} needs {pattern.fewest_ports} ports or more, and there {_are(ports)}"
    two = ", or write `bidirectional: true` for two ports that send to each other" if ports == 2 else ""
    return Problem(position, message, f"add ports (in a lab: `ports: {pattern.fewest_ports}`){two}")


def _ports(bench: BenchFile) -> int:
    """Of the tester: the lab's, or those of the host ``tester``."""
    if own := bench.tester_kind().own_ports():
        return len(own)
    if bench.lab is not None:
        return int(getattr(bench.lab.options, "ports", 2))
    return sum(1 for port in bench.ports.values() if port.host == TESTER)


def _position(root: Node) -> Position:
    """Of the pattern; where it is left out, of the lab or the ports that do not suit the usual one."""
    if root.child("traffic") is not None and root.find(("traffic",)).child("pattern") is not None:
        return root.position_of(("traffic", "pattern"))
    if root.child("lab") is None and root.child("ports") is None:
        return root.position_of(("tester", "ports"))  # of a tester that brings them along
    if root.child("lab") is not None and root.find(("lab",)).child("ports") is not None:
        return root.position_of(("lab", "ports"))
    return root.position_of_key(("lab",)) if root.child("lab") is not None else root.position_of_key(("ports",))


def _kinds(bench: BenchFile, ports: int, *, same_port: bool = False) -> str:
    """The DUTs that can stand here with so many ports."""
    fitting = [
        kind
        for kind, dut in find("nicbench.duts", Dut).items()
        if dut.port_kind == bench.dut.plugin.port_kind
        and dut.fewest_ports <= ports <= dut.most_ports
        and (dut.returns_on_same_port or not same_port)
    ]
    return ", ".join(fitting)


def _are(ports: int) -> str:
    return f"{'is' if ports == 1 else 'are'} {ports}"
