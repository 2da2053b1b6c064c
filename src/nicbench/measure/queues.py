"""What receive queues and cores got in a trial, and what the hash of the adapter lets expect."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import shlex
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from nicbench.core.errors import NicbenchError
from nicbench.core.frozen import frozen
from nicbench.core.headers import FlowRule
from nicbench.core.machine import CoreFrames, PortQueues, QueueReading, QueueSide, ReceiveHash
from nicbench.core.pattern import way_of_stream
from nicbench.core.traffic import StreamSpec, Traffic
from nicbench.core.trial import Reading, StreamReading
from nicbench.hosts.asking import join_scripts, split_sections
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import outermost
from nicbench.stats.queues import Toeplitz, queue_of
from nicbench.system.adapters.ethtool import parse_driver, parse_flow_rules, parse_hash_fields, parse_receive_hashing
from nicbench.system.xdp.abilities import parse_received, queues_command
from nicbench.testbed.addressing import FlowHeaders, UnknownHeadersError, flow_headers
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.labs.base import Testbed

# The counters of receive queues and cores, as drivers and the kernel print them. Pure.  Each driver has names of its
# own for the frames of a queue. A queue may have several counters that add up to its frames (unicast, multicast,
# broadcast).

_RX_QUEUE: Final = r"rx_queue_(\d+)_packets"

QUEUE_COUNTERS: Final = {
    # drivers/net/ethernet/intel: ixgbe_get_strings, igb_get_strings, igc_ethtool_get_strings, ice_get_strings;
    # i40e_gstrings_stats and iavf since 4.20, before that rx-N.rx_packets.
    "ixgbe": (_RX_QUEUE,),
    "ixgbevf": (_RX_QUEUE,),
    "igb": (_RX_QUEUE,),
    "igc": (_RX_QUEUE,),
    "ice": (_RX_QUEUE,),
    "i40e": (r"rx-(\d+)\.(?:rx_)?packets",),
    "iavf": (r"rx-(\d+)\.(?:rx_)?packets",),
    # en_stats.c, rq_stats_desc; en_ethtool.c of mlx4.
    "mlx5_core": (r"rx(\d+)_packets",),
    "mlx4_en": (r"rx(\d+)_packets",),
    # bnxt_ethtool.c, bnxt_ring_rx_stats_str.
    "bnxt_en": (r"\[(\d+)\]: rx_[umb]cast_packets",),
    # ena_ethtool.c, ena_stats_rx_strings.
    "ena": (r"queue_(\d+)_rx_cnt",),
    # virtio_net.c, virtnet_get_strings: rxN_packets since 6.9.
    "virtio_net": (_RX_QUEUE, r"rx(\d+)_packets"),
    # efx ethtool: efx_describe_per_queue_stats.
    "sfc": (r"rx-(\d+)\.rx_packets",),
    # gve_ethtool.c, gve_gstrings_rx_stats.
    "gve": (r"rx_packets\[(\d+)\]",),
    # netvsc_drv.c, netvsc_get_strings; mana_ethtool.c.
    "hv_netvsc": (_RX_QUEUE,),
    "mana": (r"rx_(\d+)_packets",),
    # ionic_stats.c; qede_ethtool.c.
    "ionic": (r"rx_(\d+)_pkts",),
    "qede": (r"(\d+): rx_rcv_pkts",),
    # veth.c, veth_rq_stats_desc: frames that the queue's poller took, which runs with GRO or an XDP program.
    "veth": (r"rx_queue_(\d+)_xdp_packets",),
}
"""By driver, patterns of the names in ``ethtool -S``; the group is the queue's number."""

_STATISTIC: Final = re.compile(r"^\s*(?P<name>\S.*?):\s+(?P<value>\d+)\s*$")
_CPU: Final = re.compile(r"^CPU(\d+)$")


def parse_queues(text: str, driver: str) -> tuple[int, ...]:
    """Frames of each receive queue, from 0 on, out of ``ethtool -S``; empty where the driver prints none of them."""
    patterns = [re.compile(pattern) for pattern in QUEUE_COUNTERS.get(driver, ())]
    found: dict[int, int] = defaultdict(int)
    for line in text.splitlines():
        statistic = _STATISTIC.match(line)
        if statistic is None:
            continue
        for pattern in patterns:
            if queue := pattern.fullmatch(statistic["name"]):
                found[int(queue[1])] += int(statistic["value"])
                break
    return tuple(found.get(queue, 0) for queue in range(max(found, default=-1) + 1))


def parse_softnet(text: str) -> dict[int, int]:
    """Frames that the stack handled, by CPU, out of ``/proc/net/softnet_stat`` (net/core/net-procfs.c).

    The number of the CPU is the thirteenth column since 5.10; before, lines are the CPUs that are online.
    """
    frames = {}
    for number, line in enumerate(text.splitlines()):
        columns = line.split()
        cpu = int(columns[12], 16) if len(columns) > 12 else number
        frames[cpu] = int(columns[0], 16)
    return frames


def parse_network_softirqs(text: str) -> dict[int, int]:
    """Returns softirqs of received frames by CPU, the row ``NET_RX`` of ``/proc/softirqs``; empty without that row."""
    rows = [line.split() for line in text.splitlines() if line.strip()]
    row = next((row[1:] for row in rows if row[0] == "NET_RX:"), [])
    cpus = [int(found[1]) for word in (rows[0] if rows else ()) if (found := _CPU.match(word))]
    return dict(zip(cpus, map(int, row), strict=False))


# To which queue the hash of an adapter sends each flow of a trial, by its own key and table. Pure.

TOEPLITZ: Final = "toeplitz"
ADDRESSES, ADDRESSES_AND_PORTS = "sd", "sdfn"
MOST_HASHED_FLOWS: Final = 65_536
"""The most flows of a stream whose queues are computed: a million would take seconds after each trial."""
_FIELDS: Final = (ADDRESSES, ADDRESSES_AND_PORTS)


class NotExpectedError(Exception):
    """No queue can be computed; the message completes a sentence after "because"."""


def require_known(known: ReceiveHash) -> None:
    """Raises NotExpectedError if a part of the hash is unknown, or is not computed here."""
    if not known.table:
        raise NotExpectedError("the driver shows no indirection table (ethtool -x)")
    if known.function not in (None, TOEPLITZ):
        raise NotExpectedError(f"the hash function is {known.function}")
    if known.key is None:
        raise NotExpectedError("neither the driver nor the kernel shows the key of the hash")
    if known.fields not in _FIELDS:
        fields = known.fields or "unknown"
        raise NotExpectedError(f"the fields of the hash are {fields}, not addresses with or without ports")
    if known.other_rules:
        raise NotExpectedError(f"{known.other_rules} of the adapter's flow rules are not understood")


def expected_frames(
    known: ReceiveHash, traffic: Traffic, streams: Iterable[StreamReading], ways: Sequence[Addressing], queues: int
) -> tuple[int, ...]:
    """Returns the frames of these streams for each queue; NotExpectedError if they cannot be computed.

    A stream sends a frame of each of its flows in turn, from the first on.
    """
    require_known(known)
    specs = {stream.name: stream for stream in traffic.port_streams()}
    by_ports = {(way.transmit, way.receive): way for way in ways}
    frames = [0] * (1 + max(queues - 1, *known.table, *(rule.queue or 0 for rule in known.rules)))
    for stream in streams:
        spec, way = specs.get(_name_of(stream, specs)), by_ports.get(way_of_stream(stream.name) or (-1, -1))
        if spec is None or way is None:
            raise NotExpectedError(f"the stream {stream.name} is none of the traffic's")
        if spec.flows > MOST_HASHED_FLOWS:
            raise NotExpectedError(
                f"the hash is computed of {MOST_HASHED_FLOWS} flows at most, and these are {spec.flows}"
            )
        each, more = divmod(stream.counts.sent, spec.flows)
        try:
            for flow, queue in enumerate(queues_of_flows(known, spec, way)):
                if queue is not None:
                    frames[queue] += each + (flow < more)
        except UnknownHeadersError as error:
            raise NotExpectedError(str(error)) from error
    return tuple(frames)


def queues_of_flows(known: ReceiveHash, stream: StreamSpec, way: Addressing) -> Iterable[int | None]:
    """Yields the queue of each flow of a stream: by the first rule that is for it, else by the hash; None: dropped."""
    with_ports = known.fields == ADDRESSES_AND_PORTS
    size = 2 * (4 if way.ip == 4 else 16) + (4 if with_ports else 0)
    try:
        hashes = Toeplitz(bytes.fromhex((known.key or "").replace(":", "")), size)
    except ValueError as error:
        raise NotExpectedError(str(error)) from error
    rules = [rule for rule in known.rules if rule.flow == f"{stream.protocol}{way.ip}"]
    for headers in flow_headers(stream, way):
        rule = next((rule for rule in rules if _is_for(rule, headers)), None)
        if rule is not None:
            yield rule.queue
            continue
        yield queue_of(hashes(_input(headers, with_ports=with_ports)), known.table)


def _is_for(rule: FlowRule, headers: FlowHeaders) -> bool:
    """Whether every field that a rule gives is that of the flow."""
    pairs = (
        (rule.source_address, str(ipaddress.ip_address(headers.source))),
        (rule.destination_address, str(ipaddress.ip_address(headers.destination))),
        (rule.source_port, headers.source_port),
        (rule.destination_port, headers.destination_port),
    )
    return all(given is None or given == own for given, own in pairs)


def _input(headers: FlowHeaders, *, with_ports: bool) -> bytes:
    addresses = headers.source + headers.destination
    if not with_ports:
        return addresses
    return addresses + headers.source_port.to_bytes(2) + headers.destination_port.to_bytes(2)


def _name_of(stream: StreamReading, specs: Iterable[str]) -> str:
    """The stream's name in the traffic: behind its ports, or the only one."""
    _, _, name = stream.name.partition(" ")
    return name or next(iter(specs))


# Reads receive queues and cores of DUT and tester around a trial: one command on each host before and after.  What
# each adapter says of its hash is read once, before the first trial that asks for it.

_TIMEOUT_S: Final = 20.0
_KEY: Final = "/proc/sys/net/core/netdev_rss_key"
_KERNEL, _SOFTNET, _SOFTIRQS = "queues of the kernel", "softnet", "softirqs"


@frozen
class Look:
    """Everything of one host at one time: frames by device and queue, frames and softirqs by CPU.

    The frames are those that the driver tells the kernel (Linux 6.9), of the devices in ``of_kernel``, or that
    ``ethtool -S`` has.
    """

    queues: Mapping[str, tuple[int, ...]]
    of_kernel: frozenset[str]
    frames: Mapping[int, int]
    softirqs: Mapping[int, int]


class _HostQueues:
    """One side of a testbed; ``devices`` are its interfaces by the number of the tester's port."""

    def __init__(self, side: QueueSide, host: Host, devices: Mapping[int, str]) -> None:
        self.side, self.devices = side, devices
        self._host = host
        self.drivers: dict[str, str] = {}
        self.hashes: dict[str, ReceiveHash] = {}

    async def find(self, flow_type: str) -> None:
        """Reads driver and hash of each interface."""
        wanted: dict[str, str] = {}
        for device in self.devices.values():
            name = shlex.quote(device)
            wanted |= {
                f"driver {device}": f"ethtool -i {name}",
                f"hash {device}": f"ethtool -x {name}",
                f"fields {device}": f"ethtool -n {name} rx-flow-hash {flow_type}",
                f"rules {device}": f"ethtool -n {name}",
            }
        said = await self._ask(self._host, wanted)
        # The key is the machine's, which no other namespace shows.
        key = (await self._ask(outermost(self._host), {_KEY: f"cat {_KEY}"})).get(_KEY, "")
        for device in self.devices.values():
            self.drivers[device] = parse_driver(said.get(f"driver {device}", ""))["name"] or ""
            hashing = hash_of(said.get(f"hash {device}", ""), said.get(f"fields {device}", ""), key)
            self.hashes[device] = with_rules(hashing, said.get(f"rules {device}", ""))

    async def look(self) -> Look:
        command, program = queues_command(self._host)
        wanted = {device: f"ethtool -S {shlex.quote(device)}" for device in self.devices.values()}
        cores = {_SOFTNET: "cat /proc/net/softnet_stat", _SOFTIRQS: "cat /proc/softirqs"}
        said = await self._ask(self._host, {_KERNEL: shlex.join(command), **wanted, **cores}, program)
        return look_of(said, {device: self.drivers.get(device, "") for device in wanted})

    @staticmethod
    async def _ask(host: Host, wanted: Mapping[str, str], given: str = "") -> dict[str, str]:
        script = join_scripts(wanted)
        done = await host.run(("sh", "-c", script), input_text=given, check=False, timeout_s=_TIMEOUT_S)
        return split_sections(done.stdout)


def look_of(said: Mapping[str, str], drivers: Mapping[str, str]) -> Look:
    """What a host said of these devices; of their queues it is the kernel's word, else that of each device's driver."""
    told = parse_received(said.get(_KERNEL, ""))
    return Look(
        queues={
            device: told.get(device) or parse_queues(said.get(device, ""), driver) for device, driver in drivers.items()
        },
        of_kernel=frozenset(told),
        frames=parse_softnet(said.get(_SOFTNET, "")),
        softirqs=parse_network_softirqs(said.get(_SOFTIRQS, "")),
    )


def hash_of(hashing: str, fields: str, kernel_key: str) -> ReceiveHash:
    """What ``ethtool -x`` and ``rx-flow-hash`` say.

    A driver that has a table and shows no key took the kernel's (``netdev_rss_key_fill``).
    """
    try:
        found = parse_receive_hashing(hashing)
    except ValueError:
        return ReceiveHash()
    try:
        letters = parse_hash_fields(fields)
    except ValueError:
        letters = None
    key, key_from = found.key, "ethtool -x"
    if key is None and found.table and kernel_key.strip():
        key, key_from = kernel_key.strip().lower(), "the kernel's netdev_rss_key"
    return ReceiveHash(
        function=found.function,
        key=key,
        key_from=key_from if key is not None else None,
        table=found.table,
        fields=letters,
    )


def with_rules(known: ReceiveHash, shown: str) -> ReceiveHash:
    """The hash with the rules of ``ethtool -n``; without any where the driver has none."""
    try:
        rules = parse_flow_rules(shown)
    except ValueError:
        return known
    return known.replace(
        rules=tuple(each.rule for each in rules if each.rule is not None),
        other_rules=sum(each.rule is None for each in rules),
    )


class QueueReader:
    """The queues of a testbed's hosts, for one traffic."""

    def __init__(self, testbed: Testbed, traffic: Traffic, ways: Sequence[Addressing]) -> None:
        self._traffic, self._ways = traffic, tuple(ways)
        self._found = False
        sides = []
        if not testbed.simulated:
            dut = {number: port.device for number, port in enumerate(testbed.dut_ports) if port.device is not None}
            own = {
                number: port.device
                for number, port in enumerate(testbed.tester_ports)
                if port.device is not None and not port.on_peer
            }
            if testbed.dut is not None and dut:
                sides.append(_HostQueues("dut", testbed.dut, dut))
            if own:
                sides.append(_HostQueues("tester", testbed.tester, own))
        self._sides = tuple(sides)

    async def around(self, trial: Callable[[], Awaitable[Reading]]) -> Reading:
        """Makes the trial and adds what queues and cores got in it; what cannot be read is reported, and fails
        nothing.
        """
        try:
            before = await self._look()
        except NicbenchError as error:
            reading = await trial()
            return reading.replace(queues=QueueReading(unread=(error.message,)))
        reading = await trial()
        try:
            after = await self._look()
        except NicbenchError as error:
            return reading.replace(queues=QueueReading(unread=(error.message,)))
        pairs = zip(self._sides, before, after, strict=True)
        found = [self._compare(side, first, last, reading) for side, first, last in pairs]
        whole = QueueReading(
            ports=tuple(port for each in found for port in each.ports),
            cores=tuple(core for each in found for core in each.cores),
            unread=tuple(why for each in found for why in each.unread),
        )
        return reading.replace(queues=whole)

    async def _look(self) -> list[Look]:
        if not self._found:
            flow_type = f"{self._traffic.protocol}{self._traffic.ip}"
            await asyncio.gather(*(side.find(flow_type) for side in self._sides))
            self._found = True
        return list(await asyncio.gather(*(side.look() for side in self._sides)))

    def _compare(self, side: _HostQueues, before: Look, after: Look, reading: Reading) -> QueueReading:
        ports = []
        unread = []
        for port, device in side.devices.items():
            streams = [stream for stream in reading.streams if _arrives(stream, side.side, port)]
            if not streams:
                continue
            start, end = before.queues.get(device, ()), after.queues.get(device, ())
            of_kernel = device in after.of_kernel
            if not start or len(start) != len(end) or of_kernel != (device in before.of_kernel):
                unread.append(_why_unread(device, side.drivers.get(device, "")))
                continue
            frames = tuple(max(0, last - first) for first, last in zip(start, end, strict=True))
            ports.append(self._port(side, port, device, frames, streams, of_kernel=of_kernel))
        cores = tuple(
            CoreFrames(
                side=side.side,
                cpu=cpu,
                frames=max(0, frames - before.frames.get(cpu, frames)),
                softirqs=max(0, after.softirqs.get(cpu, 0) - before.softirqs.get(cpu, 0)),
            )
            for cpu, frames in sorted(after.frames.items())
        )
        return QueueReading(ports=tuple(ports), cores=cores, unread=tuple(unread))

    def _port(
        self,
        side: _HostQueues,
        port: int,
        device: str,
        frames: tuple[int, ...],
        streams: Sequence[StreamReading],
        *,
        of_kernel: bool,
    ) -> PortQueues:
        known = side.hashes.get(device, ReceiveHash())
        expected, why_not = None, None
        try:
            if side.side == "tester" and not all(way.is_direct for way in self._ways):
                raise NotExpectedError("what the DUT changes in the frames is not known")
            expected = expected_frames(known, self._traffic, streams, self._ways, len(frames))
            frames = (*frames, *[0] * (len(expected) - len(frames)))
        except NotExpectedError as error:
            why_not = str(error)
        return PortQueues(
            side=side.side,
            port=port,
            device=device,
            driver=side.drivers.get(device, ""),
            source="the kernel (netdev qstats)" if of_kernel else "ethtool -S",
            frames=frames,
            hash=known if known.table else None,
            expected=expected,
            why_not=why_not,
        )


def _arrives(stream: StreamReading, side: QueueSide, port: int) -> bool:
    """Whether frames of a stream reach this port: the DUT's that is linked to the sending one, or the receiving one."""
    way = way_of_stream(stream.name)
    return way is not None and way[0 if side == "dut" else 1] == port


def _why_unread(device: str, driver: str) -> str:
    if driver not in QUEUE_COUNTERS:
        known = ", ".join(sorted(QUEUE_COUNTERS))
        named = driver or "of this interface"
        return (
            f"{device}: the driver {named} does not tell the kernel what its queues got (Linux 6.9), and what it calls "
            f"that in `ethtool -S` is not known; known are {known}"
        )
    return f"{device}: neither the kernel (Linux 6.9) nor `ethtool -S` of the driver {driver} has frames of its queues"
