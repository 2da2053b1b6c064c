"""Checks of traffic: headers that contradict themselves, patterns that the ports cannot send, and time stamps that
they do not have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.reader import Node
from nicbench.bench_file.sections import Step
from nicbench.bench_file.wiring import check_wiring, is_testers
from nicbench.core.errors import Position, Problem, UsageError, quote, suggest
from nicbench.core.frame_size import IMIX, STREAMS
from nicbench.core.headers import OverIp, inner_version
from nicbench.core.pattern import MOST_STREAMS_AT_ONCE, Pattern, Ways, ways_of
from nicbench.core.registry import find
from nicbench.core.traffic import Ability, StreamSpec, Traffic
from nicbench.hosts.kinds.local import LocalHost
from nicbench.methods.base import FrameMethod, Method
from nicbench.testbed.duts.base import Dut, FrameDut
from nicbench.testbed.interfaces.base import Port
from nicbench.testbed.real_hosts import make_testbed_of_own_ports

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
_OWN_FRAMES = frozenset({Ability.MAC_ADDRESSES, Ability.COPIES})
_HEADER_KEYS = (
    "protocol",
    "flows",
    "vlan",
    "vxlan",
    "tunnels",
    "arrives",
    "udp_checksum",
    "fields",
    "raw",
    "source_port",
    "destination_port",
    "hop_limit",
)


def check_traffic(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields where a stream contradicts itself."""
    streams = bench.traffic.port_streams()
    for index, stream in enumerate(streams):
        own: tuple[Step, ...] = ("traffic", "streams", index) if bench.traffic.streams else ("traffic",)
        yield from _check_fields(bench.traffic.ip, stream, root, own)
        yield from _check_whole_frames(stream, root, own)
        yield from _check_tunnels(stream, root, own)
        yield from _check_size(bench.traffic, stream, root, own)
    yield from _check_broadcasts(bench, root)
    yield from _check_own_frames(bench, root)
    names = tuple(stream.name for stream in streams)
    for index, test in enumerate(bench.tests):
        method = test.build()
        for one in method.find_stream_misfits(names) if isinstance(method, FrameMethod) else ():
            yield Problem(root.position_of(("tests", index, *one.option)), one.message, one.next_step)


def _check_broadcasts(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields tests that cannot have broadcasts among their frames."""
    if bench.traffic.broadcasts is None:
        return
    methods = find("nicbench.methods", Method)
    takes = [kind for kind, one in methods.items() if issubclass(one, FrameMethod) and one.takes_broadcasts]
    for index, test in enumerate(bench.tests):
        if test.method_kind not in takes:
            message = f"the frames of {quote(test.method_kind)} cannot have `broadcasts` among them"
            step = f"remove `broadcasts` under `traffic`, or choose among {', '.join(takes)}"
            yield Problem(root.position_of(("tests", index, "method")), message, step)


def _check_own_frames(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields tests that would send frames of their own in place of a capture's."""
    captures = bench.traffic.captures()
    for index, test in enumerate(bench.tests if captures else ()):
        if _OWN_FRAMES & test.build().abilities():
            message = f"{quote(test.method_kind)} sends frames of its own, and not those of {captures[0]}"
            step = "remove `pcap` under `traffic`, or put the test into a bench file of its own"
            yield Problem(root.position_of(("tests", index, "method")), message, step)


def _check_fields(ip: int, stream: StreamSpec, root: Node, own: tuple[Step, ...]) -> Iterator[Problem]:
    has = {
        "a tag": stream.vlan is not None,
        "IPv6": inner_version(stream.tunnels, ip) == 6,
        "IPv4": inner_version(stream.tunnels, ip) == 4,
        "VXLAN": stream.vxlan is not None,
        "TCP": stream.protocol == "tcp",
    }
    for name in stream.fields.given_fields() if stream.pcap is None and stream.raw_frame is None else ():
        needed, instead = _NEEDS.get(name, (None, None))
        if needed is not None and not has[needed]:
            message = f"the frames have no {needed.removeprefix('a ')}, so {quote(f'fields.{name}')} has no effect"
            yield Problem(_position(root, own, "fields", name), message, f"remove it, or add {instead}")


def _check_whole_frames(stream: StreamSpec, root: Node, own: tuple[Step, ...]) -> Iterator[Problem]:
    written = (root.find(own).entries or {}) if root.child("traffic") is not None else {}
    if stream.pcap is None and stream.signature_offset is not None:
        message = "`signature_offset` says where in a capture's frames the signature goes, and there is no capture"
        yield Problem(_position(root, own, "signature_offset"), message, "remove it, or add `pcap: FILE`")
    if not stream.signature and stream.pcap is None and stream.raw_frame is None:
        message = "frames without a signature are those of `raw_frame` or of `pcap`, and there is neither"
        yield Problem(_position(root, own, "signature"), message, "remove `signature`, or add `raw_frame`")
    if stream.filter and (stream.signature or stream.raw_frame is None):
        message = "`filter` counts the frames of a `raw_frame` without a signature, and here frames have one"
        if stream.raw_frame is None:
            message = "`filter` counts the frames of a `raw_frame`, and there is none"
        yield Problem(_position(root, own, "filter"), message, "remove it, or write `signature: false` and `raw_frame`")
    if stream.pcap is None and stream.raw_frame is None:
        return
    whole = "pcap" if stream.pcap is not None else "raw_frame"
    what = "the frames of a capture have" if stream.pcap is not None else "a raw frame has"
    for name in _HEADER_KEYS if whole == "raw_frame" else (*_HEADER_KEYS, "raw_frame"):
        if name in written:
            message = f"{what} headers of {'their' if whole == 'pcap' else 'its'} own, so {quote(name)} has no effect"
            yield Problem(
                root.position_of_key((*own, name)), message, f"remove {quote(name)}, or remove {quote(whole)}"
            )


def _check_tunnels(stream: StreamSpec, root: Node, own: tuple[Step, ...]) -> Iterator[Problem]:
    if stream.vxlan is not None and (stream.tunnels or stream.arrives):
        message = "`vxlan` is short for one tunnel, and there are `tunnels` besides"
        yield Problem(
            _position(root, own, "vxlan"), message, "write it as `{kind: vxlan, vni: ...}` among the `tunnels`"
        )
    for index, tunnel in enumerate(stream.arrives or ()):
        if isinstance(tunnel, OverIp) and tunnel.source is None:
            message = f"the addresses of the {tunnel.words} header that the DUT makes are not known"
            step = "add `source` and `destination`, those of the DUT's tunnel"
            yield Problem(_position(root, own, "arrives", index), message, step)


def _check_size(traffic: Traffic, stream: StreamSpec, root: Node, own: tuple[Step, ...]) -> Iterator[Problem]:
    """Yields a stream's own frame size that is not a known mix, or whose mean would change with the load."""
    others = [other.pcap for other in traffic.port_streams() if other.pcap is not None] if traffic.streams else []
    if others and stream.pcap is not None and stream.frame_bytes is not None:
        message = "the frames of a capture have sizes of their own, so `frame_bytes` has no effect"
        yield Problem(root.position_of_key((*own, "frame_bytes")), message, "remove it, or remove `pcap`")
        return
    if others and stream.pcap is None and stream.frame_bytes is None:
        message = f"the stream {quote(stream.name)} has no frame size, and those of {others[0]} have their own"
        yield Problem(root.position_of(own), message, "give it `frame_bytes`: the tests send streams as they are")
        return
    if others and stream.rate is not None:
        message = (
            f"beside the sizes of {others[0]} a stream with its own `rate` would change the mean frame size, and so "
            "the line rate, with the load"
        )
        yield Problem(root.position_of((*own, "rate")), message, "give it a `share`")
        return
    if stream.frame_bytes is None:
        return
    position = root.position_of((*own, "frame_bytes"))
    if stream.frame_bytes == STREAMS or traffic.size_of(stream) is None:
        known = [IMIX.name, *traffic.mixes]
        message = f"there is no mix of sizes called {quote(stream.frame_bytes)} for a stream"
        yield Problem(position, message, suggest(str(stream.frame_bytes), known, "mix"))
    elif any(other.rate is not None for other in traffic.streams):
        message = (
            "beside a stream with its own `rate` the mean frame size, and so the line rate, would change with the load"
        )
        yield Problem(
            position, message, "give all streams a `share`, or remove `frame_bytes` and size them by the tests"
        )


def _position(root: Node, own: tuple[Step, ...], *path: Step) -> Position:
    """A position in the stream, or in the traffic that the stream takes its defaults from."""
    inside = root.find(own)
    is_own = inside.child(path[0]) is not None
    return root.position_of((*own, *path)) if is_own else root.position_of(("traffic", *path))


# The traffic's pattern: enough ports, a DUT that can forward it, and an engine that can send it.


def check_pattern(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields where the pattern, the number of ports and the DUT do not fit together."""
    if any(check_wiring(bench, root)):
        return  # the ports are not what the author meant yet, so a problem with their number would mislead
    ports = _count_ports(bench)
    dut, pattern = bench.dut.plugin, bench.traffic.pattern
    position = _pattern_position(root)
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
            f"a DUT of the kind {quote(bench.dut.kind)} never sends a frame back out of the port that it came in on",
            f"choose another pattern, or a DUT that does: {_kinds(bench, ports, same_port=True)}",
        )
        return
    if bench.traffic.bidirectional and not dut.forwards_both_ways:
        yield Problem(
            root.position_of(("traffic", "bidirectional")),
            f"a DUT of the kind {quote(bench.dut.kind)} lets nothing in that was not asked for from inside, and "
            "frames of a test answer nothing",
            "write `bidirectional: false`: frames go from the first port, which is inside, to the second",
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
    yield from _check_loads(bench, root, ways)
    yield from _check_flows(bench, root)
    yield from _check_flows_of_own_ports(bench, root, ways)
    streams = len(ways.every) * max(1, len(bench.traffic.streams))
    if bench.traffic.broadcasts:
        streams += len({transmit for transmit, _ in ways.loaded}) * (ports - 1)
    if streams > MOST_STREAMS_AT_ONCE:
        yield Problem(
            position,
            f"{pattern.value} between {ports} ports comes to {streams} streams, and the tester sends at most "
            f"{MOST_STREAMS_AT_ONCE} at once",
            "use fewer ports, or fewer `streams`",
        )


def _check_loads(bench: BenchFile, root: Node, ways: Ways) -> Iterator[Problem]:
    """Yields loads above the line rate of the sending ports; loads of another rate are only known during the run."""
    most = 100.0 * ways.most_line_rates
    for index, test in enumerate(bench.tests):
        loads: Any = getattr(test.options, "loads", ())
        for number, load in enumerate(loads if getattr(test.options, "of", None) == "line_rate" else ()):
            if load > most:
                yield Problem(
                    root.position_of(("tests", index, "loads", number)),
                    f"{load:g} % of line rate is more than the sending ports can offer: {most:g} %",
                    "lower it" if most > 100.0 else "lower it, or overload one port with `pattern: many-to-one`",
                )


def _check_flows(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields tests that ask for more connections than the traffic has flows."""
    for index, test in enumerate(bench.tests):
        connections = getattr(test.options, "connections", 0)
        position = root.position_of(("tests", index, "connections"))
        if connections and bench.traffic.streams:
            message = "the flows of several streams are not counted as connections"
            yield Problem(position, message, "remove `streams` under `traffic`")
        elif connections > bench.traffic.flows:
            message = f"{connections} connections need as many flows, and the traffic has {bench.traffic.flows}"
            yield Problem(position, message, f"write `traffic: {{flows: {connections}}}`")


def _check_flows_of_own_ports(bench: BenchFile, root: Node, ways: Ways) -> Iterator[Problem]:
    """Yields flows that a tester with ports of its own cannot make of the addresses that there are."""
    tester, traffic = bench.tester_kind(), bench.traffic
    dut = bench.dut.plugin(bench.dut.options)
    if not (own := tester.own_ports()) or not isinstance(dut, FrameDut):
        return
    testbed = make_testbed_of_own_ports(own, LocalHost(), bench.tester.kind)
    try:
        known = (*dut.addressing(testbed, traffic.ip), *dut.returning(testbed, traffic.ip))
    except UsageError:
        return  # addresses that are wrong are refused where they are used
    used = [way for way in known if (way.transmit, way.receive) in ways.every]
    if (refusal := tester.refuse_flows(traffic, used)) is not None:
        yield Problem(_position(root, ("traffic",), "flows"), refusal.message, refusal.next_step)


def _wrong_number(pattern: Pattern, ports: int, position: Position) -> Problem:
    if pattern is Pattern.ONE_TO_ONE:
        message = f"one-to-one joins pairs of ports, and {ports} is an odd number of them"
        return Problem(position, message, "add or remove a port, or choose a `pattern` under `traffic`")
    if pattern is Pattern.GROUP_TO_GROUP and ports > pattern.fewest_ports:
        message = f"group-to-group sends from one half of the ports to the other, and {ports} is an odd number of them"
        return Problem(position, message, "add or remove a port")
    message = f"{pattern.value} needs {pattern.fewest_ports} ports or more, and there {_are(ports)}"
    two = ", or write `bidirectional: true` for two ports that send to each other" if ports == 2 else ""
    return Problem(position, message, f"add ports (in a lab: `ports: {pattern.fewest_ports}`){two}")


def _count_ports(bench: BenchFile) -> int:
    """The number of the tester's ports: its own, the lab's, or those of the host ``tester`` and its peer."""
    if own := bench.tester_kind().own_ports():
        return len(own)
    if bench.lab is not None:
        return int(getattr(bench.lab.options, "ports", 2))
    return sum(1 for port in bench.ports.values() if is_testers(bench, port.host))


def _pattern_position(root: Node) -> Position:
    """The position of the pattern; where it is left out, of the lab or the ports, which do not fit the default."""
    if root.child("traffic") is not None and root.find(("traffic",)).child("pattern") is not None:
        return root.position_of(("traffic", "pattern"))
    if root.child("lab") is None and root.child("ports") is None:
        return root.position_of(("tester", "ports"))  # of a tester that brings them along
    if root.child("lab") is not None and root.find(("lab",)).child("ports") is not None:
        return root.position_of(("lab", "ports"))
    return root.position_of_key(("lab",)) if root.child("lab") is not None else root.position_of_key(("ports",))


def _kinds(bench: BenchFile, ports: int, *, same_port: bool = False) -> str:
    """The kinds of DUT that fit here with this number of ports, as a list in words."""
    fitting = [
        kind
        for kind, dut in find("nicbench.testbed.duts", Dut).items()
        if dut.port_kind == bench.dut.plugin.port_kind
        and dut.fewest_ports <= ports <= dut.most_ports
        and (dut.returns_on_same_port or not same_port)
    ]
    return ", ".join(fitting)


def _are(ports: int) -> str:
    return f"{'is' if ports == 1 else 'are'} {ports}"


# Time stamps that the tester's ports cannot have, as far as is known before a host is touched.


_TSC = "`timestamps: tsc`"
_ADVICE = {
    "kernel": f"write `driver: net_pcap` for a kernel interface, or {_TSC}",
    "card": "give a card by its `address` whose DPDK driver stamps every frame (mlx5, ice, hns3), write"
    f" `driver: xdp` for an interface of a card that does, or write {_TSC}",
}


def check_time_stamps(bench: BenchFile, root: Node) -> Iterator[Problem]:
    """Yields every port without the time stamps asked for; what a card can do only its driver knows."""
    tester = bench.tester_kind()
    wanted = tester.timestamps
    if wanted == "tsc":
        return
    if bench.lab is not None:
        sources = bench.lab.plugin(bench.lab.options).time_stamps(tester.driver)
        if wanted not in sources:
            message = (
                f"the ports of the {bench.lab.kind} lab{_driver_in_words(bench)} have no time stamps of the {wanted}"
            )
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
        # What the card of an interface can do is asked before the run.
        by_program = port.device is not None and (port.driver or default_driver) == "xdp"
        return port.address is not None or by_program
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


def _driver_in_words(bench: BenchFile) -> str:
    """The driver in words (" by net_pcap") where the lab's ports leave a choice, else an empty text."""
    return (
        f" by {bench.tester_kind().driver}" if bench.lab is not None and bench.lab.plugin.port_kind == "kernel" else ""
    )
