"""What the chosen tester cannot do, found before anything is touched; and ports that it brings along, or does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Position, Problem, quote
from nicbench.bench_file.wording import Step
from nicbench.model.ability import Ability
from nicbench.model.frame_size import STREAMS, Mix
from nicbench.model.traffic import StreamSpec
from nicbench.registry import find
from nicbench.testers.base import TesterKind

_HEADER_KEYS: Final = ("vlan", "vxlan", "udp_checksum", "raw", "raw_frame", "pcap")


def tester_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Every test, and every part of the traffic, that the tester cannot do."""
    tester = bench.tester_kind()
    for index, test in enumerate(bench.tests):
        needed = [*sorted(test.build().abilities(), key=list(Ability).index), *_of_sizes(bench, index)]
        for ability in needed:
            if ability in tester.cannot:
                subject = f"the test {quote(test.name)} ({test.method_kind})"
                step = f"remove the test, or {_others(ability)}"
                position = root.position_of(("tests", index, "method"))
                if ability is Ability.MIX:
                    position = root.position_of(("tests", index, "frame_bytes"))
                yield Problem(position, _refusal(subject, ability, bench, tester), step)
    for ability, position in _of_traffic(bench, root):
        if ability in tester.cannot:
            step = f"change the traffic, or {_others(ability)}"
            yield Problem(position, _refusal("this traffic", ability, bench, tester), step)
    if Ability.NEIGHBOURS in tester.cannot and _answers(bench):
        step = "give the DUT static neighbours in place of `tester` and `answer_for_flows`"
        refusal = _refusal("this DUT", Ability.NEIGHBOURS, bench, tester)
        yield Problem(root.position_of_key(("dut",)), refusal, f"{step}, or {_others(Ability.NEIGHBOURS)}")


def _refusal(subject: str, ability: Ability, bench: BenchFile, tester: TesterKind) -> str:
    kind = quote(bench.tester.kind)
    return f"{subject} needs {ability.value}, and the tester {kind} cannot: {tester.cannot[ability]}"


def _others(ability: Ability) -> str:
    """Which testers can."""
    able = [kind for kind, tester in find("nicbench.testers", TesterKind).items() if ability not in tester.cannot]
    return f"choose a tester that can: {', '.join(f'`tester: {{kind: {kind}}}`' for kind in able)}"


def _of_sizes(bench: BenchFile, index: int) -> list[Ability]:
    """A mix of one stream; sizes of several streams are those of the traffic."""
    for size in bench.tests[index].build().frame_sizes():
        if isinstance(size, str) and size != STREAMS and isinstance(bench.traffic.mix(size), Mix):
            return [Ability.MIX]
    return []


def _of_traffic(bench: BenchFile, root: Node) -> Iterator[tuple[Ability, Position]]:
    traffic = bench.traffic
    if traffic.ip == 6:
        yield Ability.IPV6, _position(root, ("traffic",), "ip")
    if not traffic.pattern.is_pairs:
        yield Ability.MANY_WAYS, _position(root, ("traffic",), "pattern")
    if traffic.streams:
        yield Ability.STREAMS, _position(root, ("traffic",), "streams")
    for index, stream in enumerate(traffic.each_stream()):
        own: tuple[Step, ...] = ("traffic", "streams", index) if traffic.streams else ("traffic",)
        for ability, key in _of_stream(stream):
            yield ability, _position(root, own, key)


def _of_stream(stream: StreamSpec) -> Iterator[tuple[Ability, str]]:
    if stream.protocol != "udp":
        yield Ability.HEADERS, "protocol"
    yield from ((Ability.HEADERS, key) for key in _HEADER_KEYS if getattr(stream, key))
    if stream.fields.given():
        yield Ability.FIELDS, "fields"
    yield from ((Ability.STREAM_BURSTS, key) for key in ("burst_frames", "frames") if getattr(stream, key))


def _answers(bench: BenchFile) -> bool:
    options = bench.dut.options
    return bool(getattr(options, "tester", ()) or getattr(options, "answer_for_flows", False))


def _position(root: Node, own: tuple[Step, ...], key: str) -> Position:
    """Of the key in the stream, or in the traffic that it takes its defaults from."""
    has_own = root.child("traffic") is not None and root.find(own).child(key) is not None
    return root.position_of((*own, key) if has_own else ("traffic", key))
