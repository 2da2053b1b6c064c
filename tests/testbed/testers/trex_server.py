"""A stand-in for a TRex server, with a DUT of arithmetic behind its ports, and for what its client knows of it.

The DUT forwards a number of frames a second in each direction and keeps a queue, as the simulated port of our own
engine does. A transmission takes its time: counters rise meanwhile. ``fake_trex`` is the library that asks this server,
in a process of its own. A test sets ``SERVER`` before a run, and finds in it afterwards what was asked for.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hdrh.histogram import HdrHistogram

FAKE = Path(__file__).parent / "fake_trex"
sys.path.append(str(FAKE / "automation/trex_control_plane/interactive"))

from trex.stl.api import (  # noqa: E402
    OwnedPort,
    StatNotAvailable,
    STLFlowLatencyStats,
    STLStream,
    STLTXSingleBurst,
    TRexError,
    TRexTimeoutError,
)

SILENT = "*** [RPC] - Failed to get server response from tcp://127.0.0.1:4501"


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
    """The truth.

    ``limit`` is what TRex itself can send: it then sends every frame, only later. ``dies_at`` is the number of the
    start at which it dies, ``start_takes_s`` how long that call takes, ``end_told_after_s`` how late its end is
    reported. ``time_factor`` is by how much longer than asked it sends. ``at_start`` is called with the number of each
    start. At ``blind_ports`` flow counters do not work. ``strays`` frames of others come to each port in a
    transmission. The DUT passes nothing where its ``capacity`` is 0, and of a trial ``held`` frames only ``held_s``
    after its end.
    """

    ports: dict[int, Port] = field(default_factory=lambda: {n: Port(mac=f"00:00:00:aa:00:0{n}") for n in range(4)})
    async_port: int = 4500
    release: str = "v3.06"
    capacity: float = 10_000.0
    queue: int = 16
    delay_us: int = 25
    limit: float = 1e12
    time_factor: float = 1.0
    start_takes_s: float = 0.0
    end_told_after_s: float = 0.0
    refuses: str | None = None
    dies_at: int | None = None
    hdrh: bool = True
    cpu_util: float = 20.0
    queue_full: int = 0
    dropped_in_queue: float = 0.0
    ierrors: int = 0
    copies: float = 0.0
    blind_ports: frozenset[int] = frozenset()
    strays: int = 0
    held: int = 0
    held_s: float = 0.0
    dead: bool = False
    at_start: Any = None
    starts: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    sending: Sending | None = None

    def tell(self, text: str, kind: str = "info") -> None:
        """Has the server publish an event."""
        self.events.append(SimpleNamespace(ev_type=kind, msg=text))

    def steal(self, number: int, who: str) -> None:
        """Gives a port to somebody who takes it by force."""
        self.ports[number].owner = who
        self.tell(f"Port {number} was forcely taken by '{who}'", "warning")

    def flap(self, number: int) -> None:
        """Takes a link down and up."""
        self.tell(f"port {number} attributes changed\n  link: UP -> DOWN")
        self.tell(f"port {number} attributes changed\n  link: DOWN -> UP")


SERVER = Server()


class Sending:
    """One transmission, as far as it has come by now. A burst without a time, such as that of learning, is at once."""

    def __init__(self, truth: Server, streams: list[tuple[int, STLStream]], duration_s: float) -> None:
        self.streams, self.duration_s = streams, duration_s
        load = sum(stream.mode.pps for _, stream in streams)
        self._share = min(1.0, truth.limit / load) if load else 1.0
        self.length_s = 0.0 if duration_s < 0 else duration_s * truth.time_factor / self._share
        self._begun = time.monotonic() + truth.start_takes_s / 2
        self._told_after_s = truth.end_told_after_s
        self._stopped: float | None = None
        self.uncounted_since: float | None = None

    def progress(self) -> float:
        """The share of its frames that were sent."""
        now = time.monotonic() if self._stopped is None else self._stopped
        return 1.0 if self.length_s == 0.0 else min(1.0, max(0.0, (now - self._begun) / self.length_s))

    def is_over_for(self, seconds: float) -> bool:
        """Whether it had ended that time before now, or before groups were counted no more."""
        return (self.uncounted_since or time.monotonic()) >= self._begun + self.length_s + seconds

    def stop(self) -> None:
        self._stopped = time.monotonic() if self._stopped is None else self._stopped

    def is_active(self) -> bool:
        ended = self._begun + self.length_s + self._told_after_s
        return self._stopped is None and self.length_s > 0.0 and time.monotonic() < ended

    def frames(self, stream: STLStream) -> int:
        if isinstance(stream.mode, STLTXSingleBurst):
            return int(stream.mode.total_pkts * self.progress())
        return int(stream.mode.pps * self.duration_s * self.progress() + 1e-9)


class Session:
    """What the server knows of one client, and the methods of ``STLClient``."""

    def __init__(self, username: str = "ada", **options: Any) -> None:
        self._server = SERVER
        self._owner = username
        self._connected = False

    def _alive(self, call: str) -> None:
        if self._owner != "nicbench-watch":
            self._server.calls.append(call)
        if self._server.dead or not self._connected:
            raise TRexError(SILENT)

    def connect(self) -> None:
        if self._server.refuses is not None or self._server.dead:
            raise TRexError(self._server.refuses or SILENT)
        self._connected = True

    def disconnect(self) -> None:
        self._server.calls.append("disconnect")
        self._connected = False

    def probe_server(self) -> dict[str, str]:
        return {"version": self._server.release, "mode": "STL"}

    def publishes_at(self, port: int) -> bool:
        return port == self._server.async_port

    def get_server_version(self) -> dict[str, str]:
        return self.probe_server()

    def get_all_ports(self) -> list[int]:
        return list(self._server.ports)

    def get_acquired_ports(self) -> list[int]:
        return [number for number, port in self._server.ports.items() if port.owner == self._owner]

    def get_active_ports(self) -> list[int]:
        sending = self._server.sending
        return [number for number, _ in sending.streams] if sending is not None and sending.is_active() else []

    def get_events(self) -> list[Any]:
        return self._server.events

    def clear_events(self) -> None:
        self._server.events.clear()

    def acquire(self, ports: list[int], force: bool = False) -> None:
        self._alive("acquire")
        for number in ports:
            owner = self._server.ports[number].owner
            if owner not in ("", self._owner) and not force:
                raise TRexError(f"Port {number} is already taken by '{owner}'")
        for number in ports:
            self._server.ports[number].owner = self._owner

    def release(self, ports: list[int]) -> None:
        self._alive("release")
        self._require_owned(ports)
        for number in ports:
            self._server.ports[number].owner = ""

    def _require_owned(self, ports: list[int]) -> None:
        for number in ports:
            if self._server.ports[number].owner != self._owner:
                raise TRexError(f"port {number} is not owned")

    def set_service_mode(self, ports: list[int], enabled: bool) -> None:
        self._alive("set_service_mode")

    def set_port_attr(self, ports: list[int], promiscuous: bool) -> None:
        self._alive("set_port_attr")
        self._require_owned(ports)
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

    def get_port(self, number: int) -> OwnedPort:
        return OwnedPort(self._server.ports[number].owner)

    def remove_all_streams(self, ports: list[int]) -> None:
        self._alive("remove_all_streams")
        self._require_owned(ports)
        self._server.sending = None
        for number in ports:
            self._server.ports[number].streams.clear()

    def add_streams(self, streams: list[STLStream], ports: list[int]) -> None:
        self._alive("add_streams")
        self._require_owned(ports)
        for number in ports:
            self._server.ports[number].streams += streams

    def clear_stats(self, ports: list[int]) -> None:
        self._alive("clear_stats")

    def start(self, ports: list[int], mult: str, duration: float, force: bool) -> None:
        self._alive("start")
        truth = self._server
        streams = [(number, stream) for number in ports for stream in truth.ports[number].streams]
        truth.starts.append({"ports": list(ports), "duration": duration, "streams": streams})
        if truth.dies_at == len(truth.starts):
            truth.dead = True
        truth.sending = Sending(truth, streams, duration)
        time.sleep(truth.start_takes_s)
        if truth.at_start is not None:
            truth.at_start(len(truth.starts))

    def wait_on_traffic(self, ports: list[int], timeout: float, rx_delay_ms: int) -> None:
        self._alive("wait_on_traffic")
        self._require_owned(ports)
        end = time.monotonic() + timeout
        while self.get_active_ports():
            if time.monotonic() > end:
                raise TRexTimeoutError(f"Timeout: operation took more than '{timeout}' seconds")
            time.sleep(0.001)
        if self._server.sending is not None:
            self._server.sending.uncounted_since = time.monotonic()

    def stop(self, ports: list[int], rx_delay_ms: int | None = None) -> None:
        self._alive("stop")
        self._require_owned(ports)
        if self._server.sending is not None:
            self._server.sending.stop()

    def _sent(self) -> dict[int, list[tuple[STLStream, int, int]]]:
        """Of each port its streams, with the frames sent by each and those that passed the DUT."""
        truth, found = self._server, {}
        sending = truth.sending
        for number in {number for number, _ in sending.streams} if sending is not None else ():
            own = [stream for port, stream in sending.streams if port == number]
            sent = [sending.frames(stream) for stream in own]
            left = sum(sent) - int(sum(sent) * truth.dropped_in_queue)
            lasted = sending.length_s * sending.progress()
            passes = left if sending.duration_s < 0 else min(left, int(truth.capacity * lasted) + truth.queue)
            passes = passes if truth.capacity else 0
            if sending.duration_s >= 0 and not sending.is_over_for(truth.held_s):
                passes = max(0, passes - truth.held)
            lost = sum(sent) - passes
            parts = [round(lost * frames / sum(sent)) if sum(sent) else 0 for frames in sent]
            found[number] = list(
                zip(own, sent, [each - part for each, part in zip(sent, parts, strict=True)], strict=True)
            )
        return found

    def _counts(self, group: Any, number: int, far: int, sent: int, received: int) -> dict[str, dict[Any, Any]]:
        every = list(self._server.ports)
        arrived = 0 if far in self._server.blind_ports else received + int(received * self._server.copies)
        flow = {
            "tx_pkts": {port: sent if port == number else 0 for port in every},
            "rx_pkts": {port: arrived if port == far else 0 for port in every},
            "rx_bytes": {port: StatNotAvailable() for port in every},
        }
        return {
            name: {**counts, "total": 0 if name == "rx_bytes" else sum(counts.values())}
            for name, counts in flow.items()
        }

    def _latency(self, frames: int) -> dict[str, Any]:
        delay = self._server.delay_us
        counted = {delay + step: frames // 10 for step in range(1, 10)}
        counted[delay] = frames - sum(counted.values())
        bins = {}
        fine = HdrHistogram(1, 10_000_000, 3)
        for latency_us, count in counted.items():
            low = 0 if latency_us < 10 else latency_us // 10 * 10
            bins[low] = bins.get(low, 0) + count
            if count:
                fine.record_value(latency_us, count)
        encoded = fine.encode()
        told = {
            "histogram": {low: count for low, count in bins.items() if count},
            "total_max": max((latency for latency, count in counted.items() if count), default=0),
            "average": 1.0,  # a running mean of the last looks, and no mean of the trial
            "jitter": 0,
        }
        return (
            {**told, "hdrh": encoded.decode() if isinstance(encoded, bytes) else encoded} if self._server.hdrh else told
        )

    def get_stats(self, ports: list[int]) -> dict[Any, Any]:
        self._alive("get_stats")
        truth = self._server
        told = {n: {"opackets": 0, "ipackets": 0, "oerrors": 0, "ierrors": 0} for n in truth.ports}
        for number, streams in self._sent().items():
            sent = sum(frames for _, frames, _ in streams)
            told[number]["opackets"] += sent - int(sent * truth.dropped_in_queue)
            told[number ^ 1]["ipackets"] += sum(passed for _, _, passed in streams)
            told[number ^ 1]["ipackets"] += truth.strays
            told[number ^ 1]["ierrors"] += truth.ierrors
        told["global"] = {"cpu_util": truth.cpu_util, "rx_cpu_util": 3.0, "queue_full": truth.queue_full}
        return {name: told[name] for name in (*ports, "global")}

    def get_pgid_stats(self, pgid_list: list[int]) -> dict[str, Any]:
        self._alive("get_pgid_stats")
        told = {"flow_stats": {"global": {}}, "latency": {"global": {"bad_hdr": 0}}, "ver_id": {}}
        for number, streams in self._sent().items():
            for stream, sent, passed in streams:
                group = stream.flow_stats
                if group is None or group.pg_id not in pgid_list:
                    continue
                told["flow_stats"][group.pg_id] = self._counts(group, number, number ^ 1, sent, passed)
                if isinstance(group, STLFlowLatencyStats):
                    errors = {"out_of_order": 0, "seq_too_high": 0, "seq_too_low": 0}
                    copies = int(passed * self._server.copies)
                    told["latency"][group.pg_id] = {
                        "err_cntrs": {"dropped": sent - passed, "dup": copies, **errors},
                        "latency": self._latency(passed),
                    }
        return told


@contextmanager
def serving(address: str) -> Iterator[None]:
    """Answers clients at this socket (a path), each in a thread of its own."""
    listener = Listener(address)

    def accept() -> None:
        while True:
            try:
                connection = listener.accept()
            except OSError:  # it was closed
                return
            threading.Thread(target=_answer, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield
    finally:
        listener.close()


def _answer(connection: Connection) -> None:
    session = Session()
    with connection, suppress(EOFError, OSError):  # the client ended, or was killed
        while True:
            name, given, named = connection.recv()
            try:
                reply = (True, getattr(session, name)(*given, **named))
            except Exception as error:
                reply = (False, error)
            connection.send(reply)
