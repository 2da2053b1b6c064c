"""Traffic that contradicts itself: fields of headers that no frame has, a capture or a raw frame beside headers."""

from __future__ import annotations

from collections.abc import Iterator

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.nodes import Node
from nicbench.bench_file.problems import Position, Problem, quote, suggest
from nicbench.bench_file.wording import Step
from nicbench.model.frame_size import IMIX, STREAMS
from nicbench.model.traffic import StreamSpec, Traffic

_NEEDS = {
    "vlan": ("a tag", "`vlan: 100`"),
    "vlan_priority": ("a tag", "`vlan: 100`"),
    "flow_label": ("IPv6", "`ip: 6`"),
    "identification": ("IPv4", "`ip: 4`"),
    "vni": ("VXLAN", "`vxlan: {vni: 1}`"),
    "tcp_sequence": ("TCP", "`protocol: tcp`"),
    "tcp_acknowledgement": ("TCP", "`protocol: tcp`"),
    "tcp_flags": ("TCP", "`protocol: tcp`"),
}
_OF_HEADERS = (
    "protocol",
    "flows",
    "vlan",
    "vxlan",
    "udp_checksum",
    "fields",
    "raw",
    "source_port",
    "destination_port",
    "hop_limit",
)


def traffic_problems(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """What of each stream cannot be."""
    streams = bench.traffic.each_stream()
    for index, stream in enumerate(streams):
        own: tuple[Step, ...] = ("traffic", "streams", index) if bench.traffic.streams else ("traffic",)
        yield from _field_problems(bench.traffic.ip, stream, root, own)
        yield from _whole_frame_problems(stream, root, own)
        yield from _size_problems(bench.traffic, stream, root, own)


def _field_problems(ip: int, stream: StreamSpec, root: Node, own: tuple[Step, ...]) -> Iterator[Problem]:
    has = {
        "a tag": stream.vlan is not None,
        "IPv6": ip == 6,
        "IPv4": ip == 4,
        "VXLAN": stream.vxlan is not None,
        "TCP": stream.protocol == "tcp",
    }
    for name in stream.fields.given() if stream.pcap is None and stream.raw_frame is None else ():
        needed, instead = _NEEDS.get(name, (None, None))
        if needed is not None and not has[needed]:
            message = f"the frames have no {needed.removeprefix('a ')}, so {quote(f'fields.{name}')} has no meaning"
            yield Problem(_position(root, own, "fields", name), message, f"remove it, or add {instead}")


def _whole_frame_problems(stream: StreamSpec, root: Node, own: tuple[Step, ...]) -> Iterator[Problem]:
    written = (root.find(own).entries or {}) if root.child("traffic") is not None else {}
    if stream.pcap is None and stream.signature_offset is not None:
        message = "`signature_offset` says where in a capture's frames the signature goes, and there is no capture"
        yield Problem(_position(root, own, "signature_offset"), message, "remove it, or add `pcap: FILE`")
    if stream.pcap is None and stream.raw_frame is None:
        return
    whole = "pcap" if stream.pcap is not None else "raw_frame"
    what = "the frames of a capture have" if stream.pcap is not None else "a raw frame has"
    for name in _OF_HEADERS if whole == "raw_frame" else (*_OF_HEADERS, "raw_frame"):
        if name in written:
            message = f"{what} headers of {'their' if whole == 'pcap' else 'its'} own, so {quote(name)} has no meaning"
            yield Problem(
                root.position_of_key((*own, name)), message, f"remove {quote(name)}, or remove {quote(whole)}"
            )


def _size_problems(traffic: Traffic, stream: StreamSpec, root: Node, own: tuple[Step, ...]) -> Iterator[Problem]:
    """A size of a stream's own is a number or a mix, of streams whose mean does not follow the load."""
    if stream.frame_bytes is None:
        return
    position = root.position_of((*own, "frame_bytes"))
    if stream.frame_bytes == STREAMS or traffic.size_of(stream) is None:
        known = [IMIX.name, *traffic.mixes]
        message = f"there is no mix of sizes called {quote(stream.frame_bytes)} for a stream"
        yield Problem(position, message, suggest(str(stream.frame_bytes), known, "mix"))
    elif any(other.rate is not None for other in traffic.streams):
        message = (
            "with a stream of a `rate` of its own the mean size, and with it the line rate, would change with the load"
        )
        yield Problem(
            position, message, "give all streams a `share`, or remove `frame_bytes` and size them by the tests"
        )


def _position(root: Node, own: tuple[Step, ...], *path: Step) -> Position:
    """In the stream, or in the traffic that it takes its defaults from."""
    inside = root.find(own)
    is_own = inside.child(path[0]) is not None
    return root.position_of((*own, *path)) if is_own else root.position_of(("traffic", *path))
