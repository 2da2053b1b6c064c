"""Two ports with a cable between them, or one with a loop, in a namespace of their own: where abilities are tried."""

from __future__ import annotations

import asyncio
import itertools
import json
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from nicbench.bench_file import load, parse
from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.reader import read
from nicbench.core.errors import HostError, UsageError
from nicbench.core.events import Bus
from nicbench.core.pattern import Pattern
from nicbench.core.traffic import Traffic
from nicbench.core.trial import Purpose, Reading, TrialRequest
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.netns import NetnsHost
from nicbench.measure.queues import QueueReader
from nicbench.stages.hosts import make_hosts, make_ports
from nicbench.stages.machine import undo_at_end
from nicbench.stages.testbed import lay_out_ways, make_dut
from nicbench.stages.tester import make_tester, start_tester
from nicbench.system.identity import driver_of
from nicbench.testbed.addressing import flow_headers
from nicbench.testbed.duts.base import Addressing
from nicbench.testbed.interfaces.base import Port
from nicbench.testbed.interfaces.namespaces import wait_for_carrier
from nicbench.testbed.labs.base import Testbed
from nicbench.testbed.real_hosts import TESTER, make_wired_testbed
from nicbench.testbed.testers.base import During, Tester
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.queues import OffloadOptions, Offloads
from nicbench.tuning.preparation import apply_item
from nicbench.tuning.setting import Place
from nicbench.tuning.stack import UndoStack

NAMESPACE: Final = "nicbench-prove"
RATES: Final = (20_000.0, 5_000.0, 1_250.0, 300.0)
"""Paces in frames a second. What fails at one is repeated at the next, as the machine may be slow."""
OVERRUN: Final = "the tester's own overrun"
NOT_TAKEN: Final = ("drop", "miss", "overrun", "overflow", "no_buf", "nobuf", "full", "fifo")
"""Parts of the names of counters of frames that nobody took in time."""
_DROPS: Final = (*NOT_TAKEN, "error", "discard")
"""Parts of the names of counters of frames that went no farther."""
_SETTLE_S: Final = 2.0
_SETTLINGS: Final = 4
_QUIET: Final = "for kind in all default; do echo 1 >/proc/sys/net/ipv6/conf/$kind/disable_ipv6; done"
"""The kernel sends frames of its own to every interface that has IPv6."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One transmission: the reading, and by how much each counter of each port rose, by device and name."""

    reading: Reading
    rose: tuple[Mapping[str, int], ...]

    def dropped(self, parts: tuple[str, ...] = _DROPS) -> dict[str, int]:
        """How many frames each counter of drops says were lost, of all ports together: the ports' and the tester's.

        ``parts`` are of the counters' names.
        """
        found: Counter[str] = Counter()
        for rose in self.rose:
            found.update({name: by for name, by in rose.items() if by and any(part in name for part in parts)})
        found[OVERRUN] = sum(port.receive_overrun or 0 for port in self.reading.ports)
        return {name: by for name, by in found.items() if by}

    def where_lost(self, parts: tuple[str, ...] = _DROPS) -> str | None:
        """The counter that counted every lost frame, or those that did together; None where no counter did."""
        drops, lost = self.dropped(parts), self.reading.counts.lost
        exact = next((name for name, by in drops.items() if by == lost), None)
        return exact or (" and ".join(drops) if lost and sum(drops.values()) == lost else None)


class Session:
    """A tester with one driver on the ports of a loop; each ``send`` is a transmission of its own.

    ``rate_frames_per_s`` is the rate of what is sent with a pace; ``ways`` are the addresses of the frames.
    """

    def __init__(
        self, loop: Loop, tester: Tester, testbed: Testbed, traffic: Traffic, ways: tuple[Addressing, ...]
    ) -> None:
        self._loop, self._tester, self._testbed = loop, tester, testbed
        self.traffic, self.ways = traffic, ways
        self._number = 0
        self.rate_frames_per_s = RATES[0]

    def headers(self) -> Iterator[bytes]:
        """Yields source and destination address and port of each flow, as they stand in a frame."""
        for way, stream in itertools.product(self.ways, self.traffic.port_streams()):
            for flow in flow_headers(stream, way):
                yield flow.source + flow.destination + struct.pack("!HH", flow.source_port, flow.destination_port)

    def slow_down(self) -> bool:
        """Goes on at the next slower pace; whether there is one."""
        slower = [rate for rate in RATES if rate < self.rate_frames_per_s]
        self.rate_frames_per_s = slower[0] if slower else self.rate_frames_per_s
        return bool(slower)

    async def send(
        self,
        frame_bytes: int,
        *,
        frames: int | None = None,
        is_paced: bool = True,
        duration_s: float = 1.0,
        both_ways: bool = False,
        during: During | None = None,
    ) -> Sent:
        """Sends ``frames``, or for ``duration_s``, and reads the counters and queues before and after.

        Without a pace it sends as many as it can.
        Of two ports the first sends, or each with ``both_ways``. Raises the tester's EngineError.
        """
        self._number += 1
        rate = self.rate_frames_per_s if is_paced else None
        request = TrialRequest(
            frame_bytes=frame_bytes,
            load_frames_per_s=rate,
            duration_s=duration_s if frames is None or rate is None else frames / rate,
            frames=frames,
            drain_s=0.3,
            settle_s=0.1,
            purpose=Purpose.LOSS,
            bidirectional=both_ways,
        )
        await self._tester.learn(self._number, request, self.ways)  # learning frames are in no difference
        queues = QueueReader(self._testbed, self.traffic, self.ways)
        before = await self._loop.read_counters()
        reading = await queues.around(lambda: self._tester.trial(self._number, request, self.ways, during))
        after = await self._loop.read_counters()
        rose = tuple(
            {name: value - old.get(name, 0) for name, value in new.items()}
            for old, new in zip(before, after, strict=True)
        )
        return Sent(reading, rose)


def here(devices: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Hosts and ports for interfaces of this machine: they are moved into a namespace that no other traffic reaches."""
    hosts = {TESTER: {"kind": NetnsHost.kind, "namespace": NAMESPACE, "create": True}}
    return hosts, {f"t{number}": {"host": TESTER, "device": each} for number, each in enumerate(devices)}


def of_bench_file(path: Path, names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Hosts and ports of a bench file; ``names`` are those of the ports. UsageError where one is missing."""
    bench = load(path, with_files=False, serves=True)
    tree = read(bench.source.encode(), str(path)).plain()
    ports = tree.get("ports") or {}
    for name in names:
        if ports.get(name, {}).get("device") is None or ports[name].get("host") != TESTER:
            step = f"name ports of the host `{TESTER}` that have a `device`: {', '.join(ports) or 'the file has none'}"
            raise UsageError(f"{name} is no such port", place=str(path), next_step=step)
    return tree.get("hosts") or {}, {name: ports[name] for name in names}


class Loop:
    """The ports while they are tried: one or two of the host ``tester``. Hosts and ports are as in a bench file."""

    def __init__(
        self,
        hosts: Mapping[str, Any],
        ports: Mapping[str, Mapping[str, Any]],
        run_id: str,
        bus: Bus,
        engine_folder: str | None = None,
    ) -> None:
        self.devices = tuple(str(port["device"]) for port in ports.values() if "device" in port)
        self._tree = {"hosts": hosts, "ports": ports}
        self._run_id, self._bus, self._engine_folder = run_id, bus, engine_folder
        self._numbers = itertools.count(1)
        self._hosts: Mapping[str, Host] = {}
        self._ports: Mapping[str, Port] = {}
        self.working: list[str] = []
        """The drivers that passed every frame, the fastest kind first."""
        self.rates: dict[str, float] = {}
        """The pace at which each of them did, in frames a second."""
        self.needs_gro = False
        """Whether a port takes redirected frames only with GRO: a veth, which has no program while none is attached."""

    async def make(self, changes: Changes) -> None:
        """Makes the hosts and ports of the bench file. NotReadyError where one is in use."""
        bench = self._bench({}, {})
        self._hosts = await make_hosts(bench, changes)
        self._ports = (await make_ports(bench, self._hosts, changes)).ports
        self.devices = tuple(port.device for port in self._ports.values() if port.device is not None)
        if isinstance(self.host, NetnsHost) or self.host.machine.made_here:
            await self.host.run(("sh", "-c", _QUIET), check=False)
        for place in self.places:
            if await driver_of(self.host, str(place.device)) == "veth":
                await _receive_redirected(place, changes)
                self.needs_gro = True

    def instead(self, **options: Any) -> Loop:
        """A loop of the same ports with further options of the bench file, to be made once these are given back."""
        ports = {name: {**port, **options} for name, port in self._tree["ports"].items()}
        made = Loop(self._tree["hosts"], ports, self._run_id, self._bus, self._engine_folder)
        made._numbers = self._numbers
        return made

    def of_functions(self) -> Loop:
        """A loop of the first virtual function (SR-IOV) of each port, to be made once these are given back."""
        made = self.instead()
        for port in made._tree["ports"].values():
            port["virtual_function"] = {"of": port.pop("device"), "number": 0}
        return made

    async def wait_for_links(self) -> None:
        """Waits up to 20 s until every port has its link, of a card also whether it keeps it.

        A driver that resets its card for a setting or a program takes the link down a moment later.
        """
        for _ in range(_SETTLINGS):
            await wait_for_carrier(self.host, self.devices)
            before = await self._carrier_changes()
            await asyncio.sleep(0.0 if self.needs_gro else _SETTLE_S)
            if before == await self._carrier_changes():
                return

    async def _carrier_changes(self) -> tuple[str | None, ...]:
        paths = [f"/sys/class/net/{device}/carrier_changes" for device in self.devices]
        return tuple([await self.host.read_file(path) for path in paths])

    def name_of(self, device: str) -> str:
        """A port's place in the proof: ``first`` or ``second``."""
        return ("first", "second")[self.devices.index(device)]

    def undo_id(self, part: str) -> str:
        """The name of the record of what a part of the proof changes; a later one is undone before an earlier one."""
        return f"{self._run_id}-{next(self._numbers):03}-{part}"

    @property
    def host(self) -> Host:
        """The namespace of the ports."""
        return self._hosts[TESTER]

    @property
    def places(self) -> tuple[Place, ...]:
        """The ports, as settings name them."""
        return tuple(Place(self.host, device) for device in self.devices)

    @asynccontextmanager
    async def session(
        self,
        driver: str | None = None,
        tester: Mapping[str, Any] | None = None,
        captures: Path | None = None,
        **traffic: Any,
    ) -> AsyncIterator[Session]:
        """A tester with this driver, by default the first that works; it leaves the ports as they were.

        ``tester`` and ``traffic`` are as in a bench file; captures of it go to the folder ``captures``.
        NotReadyError where the ports cannot carry it.
        """
        known = driver or next(iter(self.working), None)
        options = {**({"driver": known} if known else {}), **(tester or {})}
        bench = self._bench(options, traffic)
        await self.wait_for_links()  # drivers take the link down where a program comes or goes
        testbed = await make_wired_testbed(self._hosts, self._ports, (), bench.tester_kind())
        testbed = replace(testbed, same_port=bench.traffic.pattern is Pattern.SAME_PORT)
        async with undo_at_end(UndoStack(self.undo_id("session"), None), self._bus) as changes:
            dut = await make_dut(bench, testbed, changes)
            ways = tuple(replace(way, is_direct=True) for way in lay_out_ways(bench, testbed, dut)[1])
            made = make_tester(bench, testbed, (), self._run_id, self._engine_folder, run_folder=captures)
            try:
                await start_tester(made, bench, testbed, changes)
                session = Session(self, made, testbed, bench.traffic, ways)
                session.rate_frames_per_s = self.rates.get(str(known), RATES[0])
                yield session
            finally:
                await made.close()

    async def read_settings(self) -> tuple[tuple[str, ...], ...]:
        """What can be set of each port, as lines of ``ip`` and ``ethtool``, once the links are there."""
        await self.wait_for_links()
        return tuple([await settings_of(self.host, device) for device in self.devices])

    async def read_counters(self) -> tuple[Mapping[str, int], ...]:
        """Every counter of each port by name: those of ``ethtool -S``, and the kernel's own as ``link: rx packets``."""
        return tuple([await read_counters(self.host, device) for device in self.devices])

    def _bench(self, tester: Mapping[str, Any], traffic: Mapping[str, Any]) -> BenchFile:
        tree = {
            "nicbench": 1,
            "title": "prove",
            **self._tree,
            "dut": {"kind": "external"},
            "tester": dict(tester),
            "traffic": {"flows": 64, **traffic},
            "tests": [{"name": "proof", "method": "frame-loss", "frame_bytes": [512]}],
        }
        return parse(json.dumps(tree).encode(), Path("prove"))


async def _receive_redirected(place: Place, changes: Changes) -> None:
    """Has a veth take frames that a program redirects to it, as cards do while one is attached."""
    await apply_item(changes, Offloads(OffloadOptions(features={"gro": True})), place)


async def read_counters(host: Host, device: str) -> dict[str, int]:
    """The counters of one interface; without those that its driver does not give."""
    shown = await host.run(("ip", "-j", "-s", "link", "show", "dev", device))
    kernel = json.loads(shown.stdout)[0]["stats64"]
    found = {f"link: {way} {name}": int(value) for way, counts in kernel.items() for name, value in counts.items()}
    try:
        told = (await host.run(("ethtool", "-S", device))).stdout
    except HostError:
        return found
    for line in told.splitlines():
        name, _, value = line.strip().rpartition(": ")
        if name and value.strip().isdigit():
            found[name.strip()] = int(value)
    return found


_SETTINGS: Final = """
ip -j link show dev "$1" | tr ',' '\\n' | grep -E '"(mtu|qdisc|txqlen|address|flags)"'
for option in -k -g -l -c -a; do ethtool $option "$1"; done
"""


async def settings_of(host: Host, device: str) -> tuple[str, ...]:
    """What can be set of a port as lines of ``ip`` and ``ethtool``, to compare with those of a later time."""
    return tuple((await host.run(("sh", "-c", _SETTINGS, "sh", device), check=False)).stdout.splitlines())
