"""Behaves like ``trex.stl.api`` as far as its documentation and its source say, with a server and a DUT of arithmetic.

The DUT forwards so many frames a second in each direction and keeps a queue, as the simulated port of our own engine
does. A test sets ``SERVER`` before a run, and finds in it afterwards what the client asked for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from hdrh.histogram import HdrHistogram


class TRexError(Exception):
    """Whatever the client or the server refuses."""


class TRexTimeoutError(TRexError):
    """The traffic went on for longer than was waited."""


STLError = TRexError


class StatNotAvailable:
    """A statistic that this card does not give."""

    def __repr__(self) -> str:
        return "N/A"


@dataclass
class Port:
    owner: str = ""
    link: str = "UP"
    speed: float = 0.01
    mac: str = "00:00:00:aa:00:00"
    promiscuous: bool = False
    streams: list[STLStream] = field(default_factory=list)


@dataclass
class Server:
    """The truth. ``limit`` is what TRex itself can send, ``dies_at`` the number of the start at which it dies."""

    ports: dict[int, Port] = field(default_factory=lambda: {n: Port(mac=f"00:00:00:aa:00:0{n}") for n in range(4)})
    capacity: float = 10_000.0
    queue: int = 16
    delay_us: int = 25
    limit: float = 1e12
    refuses: bool = False
    dies_at: int | None = None
    hdrh: bool = True
    cpu_util: float = 20.0
    queue_full: int = 0
    ierrors: int = 0
    copies: float = 0.0
    blind_flow_counters: bool = False
    dead: bool = False
    starts: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)


SERVER = Server()


class STLTXCont:
    def __init__(self, pps: float) -> None:
        self.pps = pps


class STLTXSingleBurst:
    def __init__(self, pps: float, total_pkts: int) -> None:
        if not isinstance(total_pkts, int) or total_pkts < 1:
            raise TRexError("single_burst: 'total_pkts' cannot be zero.")
        self.pps, self.total_pkts = pps, total_pkts


class STLFlowStats:
    def __init__(self, pg_id: int) -> None:
        self.pg_id = pg_id


class STLFlowLatencyStats:
    def __init__(self, pg_id: int) -> None:
        self.pg_id = pg_id


class STLVmFlowVar:
    def __init__(self, name: str, min_value: int, max_value: int, size: int, op: str) -> None:
        self.name, self.count = name, max_value - min_value + 1


class STLVmWrFlowVar:
    def __init__(self, fv_name: str, pkt_offset: int) -> None:
        self.name, self.offset = fv_name, pkt_offset


class STLVmFixIpv4:
    def __init__(self, offset: int) -> None:
        self.offset = offset


class STLScVmRaw:
    def __init__(self, list_of_commands: list[Any]) -> None:
        self.commands = list_of_commands


class STLPktBuilder:
    def __init__(self, pkt_buffer: bytes, vm: STLScVmRaw) -> None:
        self.packet, self.vm = pkt_buffer, vm


class STLStream:
    def __init__(
        self,
        packet: STLPktBuilder,
        mode: STLTXCont | STLTXSingleBurst,
        flow_stats: STLFlowStats | STLFlowLatencyStats | None,
        mac_src_override_by_pkt: bool,
        mac_dst_override_mode: int,
    ) -> None:
        self.packet, self.mode, self.flow_stats = packet, mode, flow_stats


class STLClient:
    def __init__(self, server: str, sync_port: int, async_port: int, verbose_level: str) -> None:
        self._server = SERVER
        self._connected = False
        self._active = False
        self._begun = 0.0
        self._sent: list[tuple[int, STLStream, float]] = []
        self._groups: dict[str, Any] = {"flow_stats": {}, "latency": {}}
        self._stats: dict[Any, Any] = {}

    def _alive(self, call: str) -> None:
        self._server.calls.append(call)
        if self._server.dead or not self._connected:
            raise TRexError("*** [RPC] - Failed to get server response from tcp://127.0.0.1:4501")

    def connect(self) -> None:
        if self._server.refuses:
            raise TRexError("*** [RPC] - Failed to get server response from tcp://127.0.0.1:4501")
        self._connected = True

    def disconnect(self, stop_traffic: bool = True, release_ports: bool = True) -> None:
        self._server.calls.append("disconnect")
        self._connected = False

    def get_all_ports(self) -> list[int]:
        return list(self._server.ports)

    def get_acquired_ports(self) -> list[int]:
        return [number for number, port in self._server.ports.items() if port.owner == "nicbench"]

    def get_server_version(self) -> dict[str, str]:
        return {"version": "v3.06", "mode": "STL"}

    def acquire(self, ports: list[int], force: bool = False) -> None:
        self._alive("acquire")
        for number in ports:
            owner = self._server.ports[number].owner
            if owner not in ("", "nicbench") and not force:
                raise TRexError(f"Port {number} is already taken by '{owner}'")
        for number in ports:
            self._server.ports[number].owner = "nicbench"

    def release(self, ports: list[int]) -> None:
        self._alive("release")
        for number in ports:
            self._server.ports[number].owner = ""

    def set_service_mode(self, ports: list[int], enabled: bool) -> None:
        self._alive("set_service_mode")

    def set_port_attr(self, ports: list[int], promiscuous: bool) -> None:
        self._alive("set_port_attr")
        for number in ports:
            self._server.ports[number].promiscuous = promiscuous

    def get_port_info(self, ports: list[int]) -> list[dict[str, Any]]:
        self._alive("get_port_info")
        return [
            {
                "driver": "net_i40e",
                "description": "a card of the tests",
                "link": (port := self._server.ports[number]).link,
                "speed": port.speed,
                "src_mac": port.mac,
                "prom": "on" if port.promiscuous else "off",
                "prom_supported": "yes",
            }
            for number in ports
        ]

    def remove_all_streams(self, ports: list[int]) -> None:
        self._alive("remove_all_streams")
        for number in ports:
            self._server.ports[number].streams.clear()

    def add_streams(self, streams: list[STLStream], ports: list[int]) -> None:
        self._alive("add_streams")
        for number in ports:
            if self._server.ports[number].owner != "nicbench":
                raise TRexError(f"port {number} is not owned")
            self._server.ports[number].streams += streams

    def clear_stats(self, ports: list[int]) -> None:
        self._alive("clear_stats")
        self._groups, self._stats = {"flow_stats": {}, "latency": {}}, {}

    def start(self, ports: list[int], mult: str, duration: float, force: bool) -> None:
        self._alive("start")
        streams = [(number, stream) for number in ports for stream in self._server.ports[number].streams]
        self._server.starts.append({"ports": list(ports), "duration": duration, "streams": streams})
        if self._server.dies_at == len(self._server.starts):
            self._server.dead = True
        self._sent = [(number, stream, duration) for number, stream in streams]
        self._begun, self._active = time.monotonic(), True
        if self._share() >= 1.0:
            self._finish(1.0)

    def _share(self) -> float:
        """What TRex can send of the load."""
        load = sum(stream.mode.pps for _, stream, duration in self._sent if duration > 0)
        return min(1.0, self._server.limit / load) if load else 1.0

    def wait_on_traffic(self, ports: list[int], timeout: float, rx_delay_ms: int) -> None:
        self._alive("wait_on_traffic")
        if self._active:
            time.sleep(timeout)
            raise TRexTimeoutError(f"Timeout: operation took more than '{timeout}' seconds")

    def stop(self, ports: list[int], rx_delay_ms: int | None = None) -> None:
        self._alive("stop")
        if self._active:
            duration = self._sent[0][2]
            self._finish(self._share() * (time.monotonic() - self._begun) / duration)

    def _finish(self, share: float) -> None:
        """Every stream's frames through the DUT, whose capacity each sending port has for itself."""
        self._active = False
        truth = self._server
        for number in {number for number, _, _ in self._sent}:
            own = [(stream, duration) for port, stream, duration in self._sent if port == number]
            sent = [self._frames(stream, duration, share) for stream, duration in own]
            lasted = max(duration for _, duration in own)
            passes = sum(sent) if lasted < 0 else min(sum(sent), int(truth.capacity * lasted) + truth.queue)
            lost = sum(sent) - passes
            far = number ^ 1
            self._stats.setdefault(number, self._zeros())["opackets"] += sum(sent)
            self._stats.setdefault(far, self._zeros())["ipackets"] += passes
            self._stats[far]["ierrors"] += truth.ierrors
            for (stream, _), frames in zip(own, sent, strict=True):
                if stream.flow_stats is not None:
                    part = round(lost * frames / sum(sent))
                    self._count(stream.flow_stats, number, far, frames, frames - part)

    def _frames(self, stream: STLStream, duration: float, share: float) -> int:
        if isinstance(stream.mode, STLTXSingleBurst):
            return int(stream.mode.total_pkts * share)
        return int(stream.mode.pps * duration * share)

    def _count(self, group: Any, number: int, far: int, sent: int, received: int) -> None:
        every = list(self._server.ports)
        copies = int(received * self._server.copies)
        flow: dict[str, dict[Any, Any]] = {
            "tx_pkts": {port: sent if port == number else 0 for port in every},
            "rx_pkts": {port: received + copies if port == far else 0 for port in every},
            "rx_bytes": {port: StatNotAvailable() for port in every},
        }
        if self._server.blind_flow_counters:
            flow["rx_pkts"] = dict.fromkeys(every, 0)
        self._groups["flow_stats"][group.pg_id] = {
            name: {**counts, "total": 0 if name == "rx_bytes" else sum(counts.values())}
            for name, counts in flow.items()
        }
        if isinstance(group, STLFlowLatencyStats):
            self._groups["latency"][group.pg_id] = {
                "err_cntrs": {
                    "dropped": sent - received,
                    "dup": copies,
                    "out_of_order": 0,
                    "seq_too_high": 0,
                    "seq_too_low": 0,
                },
                "latency": self._latency(received),
            }

    def _latency(self, frames: int) -> dict[str, Any]:
        delay = self._server.delay_us
        counted = {delay + step: frames // 10 for step in range(1, 10)}
        counted[delay] = frames - sum(counted.values())
        bins: dict[int, int] = {}
        fine = HdrHistogram(1, 10_000_000, 3)
        for latency_us, count in counted.items():
            low = 0 if latency_us < 10 else latency_us // 10 * 10
            bins[low] = bins.get(low, 0) + count
            if count:
                fine.record_value(latency_us, count)
        encoded = fine.encode()
        told: dict[str, Any] = {
            "histogram": {low: count for low, count in bins.items() if count},
            "total_max": max((latency for latency, count in counted.items() if count), default=0),
            "average": 1.0,  # a running mean of the last looks, and no mean of the trial
            "jitter": 0,
        }
        return (
            {**told, "hdrh": encoded.decode() if isinstance(encoded, bytes) else encoded} if self._server.hdrh else told
        )

    def _zeros(self) -> dict[str, int]:
        return {"opackets": 0, "ipackets": 0, "oerrors": 0, "ierrors": 0}

    def get_stats(self, ports: list[int]) -> dict[Any, Any]:
        self._alive("get_stats")
        told: dict[Any, Any] = {number: dict(self._stats.get(number, self._zeros())) for number in ports}
        told["global"] = {
            "cpu_util": self._server.cpu_util,
            "rx_cpu_util": 3.0,
            "queue_full": self._server.queue_full,
        }
        return told

    def get_pgid_stats(self, pgid_list: list[int]) -> dict[str, Any]:
        self._alive("get_pgid_stats")
        flows = {group: self._groups["flow_stats"][group] for group in pgid_list}
        latency = {group: self._groups["latency"][group] for group in pgid_list if group in self._groups["latency"]}
        return {"flow_stats": {**flows, "global": {}}, "latency": {**latency, "global": {"bad_hdr": 0}}, "ver_id": {}}
