"""Checks of the tester: tests and traffic that it cannot do are refused before anything is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.problems import Position, Problem, quote
from nicbench.bench_file.reader import Node
from nicbench.bench_file.wording import Step
from nicbench.core.frame_size import STREAMS, Mix
from nicbench.core.registry import find
from nicbench.core.traffic import Ability, StreamSpec
from nicbench.testbed.testers.base import TesterKind

_HEADER_KEYS: Final = ("vlan", "vxlan", "udp_checksum", "raw", "raw_frame", "pcap")


def check_tester(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields every test, and every part of the traffic, that the tester cannot do."""
    tester = bench.tester_kind()
    for index, test in enumerate(bench.tests):
        needed = [*sorted(test.build().abilities(), key=list(Ability).index), *_abilities_of_sizes(bench, index)]
        for ability in needed:
            if ability in tester.cannot:
                subject = f"the test {quote(test.name)} ({test.method_kind})"
                step = f"remove the test, or {_suggest_testers(ability)}"
                position = root.position_of(("tests", index, "method"))
                if ability is Ability.MIX:
                    position = root.position_of(("tests", index, "frame_bytes"))
                yield Problem(position, _explain_refusal(subject, ability, bench, tester), step)
    for ability, position in _abilities_of_traffic(bench, root):
        if ability in tester.cannot:
            step = f"change the traffic, or {_suggest_testers(ability)}"
            yield Problem(position, _explain_refusal("this traffic", ability, bench, tester), step)
    if Ability.NEIGHBOURS in tester.cannot and _needs_neighbours(bench):
        step = "give the DUT static neighbours in place of `tester` and `answer_for_flows`"
        refusal = _explain_refusal("this DUT", Ability.NEIGHBOURS, bench, tester)
        yield Problem(root.position_of_key(("dut",)), refusal, f"{step}, or {_suggest_testers(Ability.NEIGHBOURS)}")


def _explain_refusal(subject: str, ability: Ability, bench: BenchFile, tester: TesterKind) -> str:
    kind = quote(bench.tester.kind)
    return f"{subject} needs {ability.value}, and the tester {kind} cannot: {tester.cannot[ability]}"


def _suggest_testers(ability: Ability) -> str:
    """A next step that names the testers with this ability."""
    able = [
        kind for kind, tester in find("nicbench.testbed.testers", TesterKind).items() if ability not in tester.cannot
    ]
    return f"choose a tester that can: {', '.join(f'`tester: {{kind: {kind}}}`' for kind in able)}"


def _abilities_of_sizes(bench: BenchFile, index: int) -> list[Ability]:
    """The abilities that a test's frame sizes need; sizes of several streams are counted with the traffic."""
    for size in bench.tests[index].build().frame_sizes():
        if isinstance(size, str) and size != STREAMS and isinstance(bench.traffic.mix(size), Mix):
            return [Ability.MIX]
    return []


def _abilities_of_traffic(bench: BenchFile, root: Node) -> Iterator[tuple[Ability, Position]]:
    traffic = bench.traffic
    if traffic.ip == 6:
        yield Ability.IPV6, _position(root, ("traffic",), "ip")
    if not traffic.pattern.is_pairs:
        yield Ability.MANY_WAYS, _position(root, ("traffic",), "pattern")
    if traffic.streams:
        yield Ability.STREAMS, _position(root, ("traffic",), "streams")
    for index, stream in enumerate(traffic.port_streams()):
        own: tuple[Step, ...] = ("traffic", "streams", index) if traffic.streams else ("traffic",)
        for ability, key in _abilities_of_stream(stream):
            yield ability, _position(root, own, key)


def _abilities_of_stream(stream: StreamSpec) -> Iterator[tuple[Ability, str]]:
    if stream.protocol != "udp":
        yield Ability.HEADERS, "protocol"
    yield from ((Ability.HEADERS, key) for key in _HEADER_KEYS if getattr(stream, key))
    if stream.fields.given_fields():
        yield Ability.FIELDS, "fields"
    yield from ((Ability.STREAM_BURSTS, key) for key in ("burst_frames", "frames") if getattr(stream, key))


def _needs_neighbours(bench: BenchFile) -> bool:
    """Whether the DUT asks for its neighbours by ARP or neighbour discovery, which the tester must answer."""
    options = bench.dut.options
    return bool(getattr(options, "tester", ()) or getattr(options, "answer_for_flows", False))


def _position(root: Node, own: tuple[Step, ...], key: str) -> Position:
    """The position of the key in the stream, or in the traffic that the stream takes its defaults from."""
    has_own = root.child("traffic") is not None and root.find(own).child(key) is not None
    return root.position_of((*own, key) if has_own else ("traffic", key))
