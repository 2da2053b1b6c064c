"""Between testbed and DUT: the hosts are tuned as the bench file says; tuning.json tells what came of each setting.

``plan_settings`` lists what a run would tune, as far as that can be found without a change: the ports of a lab do not
exist yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from nicbench.bench_file.models import BenchFile
from nicbench.bench_file.wiring import measured_host
from nicbench.core.errors import HostError, UsageError
from nicbench.core.events import Bus, Note, StageStarted
from nicbench.core.plan import Outcome, PlannedSetting, TunedSetting, TuningDocument
from nicbench.core.turn import Turn
from nicbench.hosts import build_hosts
from nicbench.hosts.base import Host
from nicbench.hosts.kinds.local import LocalHost
from nicbench.hosts.kinds.netns import NetnsHost, outermost
from nicbench.stages.hosts import machine_of_lab, makes_ports, starts_hosts
from nicbench.store.folder import RunFolder
from nicbench.testbed.labs.base import EndpointLab, Lab, TestHost
from nicbench.testbed.real_hosts import make_endpoint_testbed, make_testbed_of_own_ports, make_wired_testbed
from nicbench.tuning.setting import CannotSetError, values_in_words
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import (
    ALL,
    Part,
    PlacedRequest,
    find_strayed,
    look_again,
    place_requests,
    place_words,
    preview,
    refuse_failed,
    tune,
)
from nicbench.tuning.undo.files import RestoreSetting

TUNING = "tuning.json"


class TunedHosts:
    """The settings of one turn, from their application to what they read after the undo."""

    def __init__(
        self,
        hosts: tuple[TestHost, ...],
        every: tuple[PlacedRequest, ...],
        turn: Turn,
        changes: UndoStack,
        folder: RunFolder | None,
        bus: Bus,
    ) -> None:
        self.hosts = hosts
        self._every = every
        self._rows: list[TunedSetting] = []
        self._turn = turn
        self._changes = changes
        self._folder = folder
        self._bus = bus
        self._first_entry = len(changes.entries)

    async def apply(self) -> None:
        """Applies and verifies all; NotReadyError names what could not be set. What was done is undone in any case."""
        if not self._every:
            return
        self._bus.publish(StageStarted(stage="tuning", text=f"tuning: {len(self._every)} settings"))
        self._rows = [await preview(one, self._turn.configuration, self._turn.run) for one in self._every]
        refuse_failed(self._every, self._rows)
        self._changes.after_undoing(self._see_after)
        self._rows = await tune(self._changes, self._every, self._turn.configuration, self._turn.run)
        # Last, so that it is called first: while processes that hold a setting are still there.
        self._changes.before_undoing(self._see_end)
        for row in self._rows:
            if row.outcome is Outcome.SKIPPED:
                text = f"{place_words(row)}: {row.item} of the {row.source} was skipped: {row.reason}"
                self._bus.publish(Note(level="info", text=text))
            elif row.outcome is Outcome.NOT_MET:
                found, expected = values_in_words(row.before), values_in_words(row.asked)
                text = f"{place_words(row)}: {row.item} is not as expected: {found}; expected {expected}"
                self._bus.publish(Note(level="warning", text=text))

    async def see_start(self) -> None:
        """Reads all again once DUT and tester stand, and writes tuning.json."""
        await self._see(at_end=False)

    async def _see_end(self) -> None:
        await self._see(at_end=True)

    async def _see(self, *, at_end: bool) -> None:
        if len(self._rows) != len(self._every) or not self._rows:
            return
        self._rows = await look_again(self._every, self._rows, at_end=at_end)
        for sentence in find_strayed(self._every, self._rows, at_end=at_end):
            self._bus.publish(Note(level="warning", text=sentence))
        self._write()

    async def _see_after(self) -> None:
        """The undo of each setting has read it back; what was changed in another way is read once more."""
        settings = self._changes.entries[self._first_entry :]
        for number, (one, row) in enumerate(zip(self._every, self._rows, strict=False)):
            # A sysctl of the machine that was asked for in a namespace is undone at the machine.
            hosts = (one.place.host.spec(), outermost(one.place.host).spec())
            undone = [
                entry
                for entry in settings
                if isinstance(entry.undo, RestoreSetting)
                and (entry.undo.item, entry.undo.device) == (row.item, row.device)
                and entry.host in hosts
                and set(entry.undo.asked) <= set(row.asked or {})
            ]
            known = [entry.after for entry in reversed(undone) if entry.after is not None]
            after = {key: value for values in known for key, value in values.items()} if known else None
            if row.outcome is Outcome.CHANGED and not undone:
                try:
                    now = await one.item.read_checked(one.place)
                    after = {key: now.get(key) for key in row.asked or {}}
                except (CannotSetError, HostError):
                    after = None
            left = one.item.find_differing(row.before or {}, after) if after is not None else {}
            not_restored = None if after is None else tuple(key for key in left if key in after)
            self._rows[number] = row.replace(after=after, not_restored=not_restored)
        self._write()

    def _write(self) -> None:
        """Replaces the rows of this turn and keeps those of the others."""
        if self._folder is None or not self._folder.path.is_dir():
            return
        known = self._folder.read_json(TUNING)
        earlier = TuningDocument.model_validate(known).settings if known else ()
        mine = (self._turn.configuration, self._turn.run)
        others = tuple(row for row in earlier if (row.configuration, row.run) != mine)
        self._folder.write_json(TUNING, TuningDocument(settings=(*others, *self._rows)))


async def tune_hosts(
    bench: BenchFile, turn: Turn, hosts: Iterable[TestHost], changes: UndoStack, folder: RunFolder, bus: Bus
) -> TunedHosts:
    """Everything that the section `tuning` asks for of this configuration, applied and verified."""
    beside = hosts_beside(bench)

    async def close() -> None:
        await asyncio.gather(*(each.host.close() for each in beside))

    changes.before_undoing(close)
    every = (*hosts, *beside)
    tuned = TunedHosts(every, place_requests(bench.tuning, parts_of(bench, every)), turn, changes, folder, bus)
    await tuned.apply()
    return tuned


def hosts_beside(bench: BenchFile) -> tuple[TestHost, ...]:
    """The hosts that `tuning` names and that have no port: the hypervisor of a guest, for example."""
    hosts = build_hosts(bench.hosts)
    names = dict.fromkeys(wish.role for wish in bench.tuning if wish.role in bench.hosts)
    used = {port.host for port in bench.ports.values()}
    return tuple(TestHost(name, name, hosts[name], ()) for name in names if name not in used)


def parts_of(bench: BenchFile, hosts: Iterable[TestHost]) -> tuple[Part, ...]:
    """The hosts of the testbed with the interfaces of the test; UsageError where one is tuned that takes no part."""
    parts = tuple(
        Part(each.role, each.host, each.devices, bench.controller_of(each.role, each.host.name)) for each in hosts
    )
    known = {ALL, *(part.role for part in parts), *(part.host.name for part in parts)}
    for wish in bench.tuning:
        if wish.role not in known:
            raise UsageError(
                f"the host {wish.role!r} takes no part in the test, so it cannot be tuned",
                place="tuning",
                next_step=f"write one of: {', '.join(sorted(known))}",
            )
    return parts


_LATER = "for the lab's own ports: known once the lab is created"
_NOT_THERE = "for what the run creates: known once it exists"


async def plan_settings(bench: BenchFile) -> tuple[PlannedSetting, ...]:
    """Every setting of every configuration, in the order in which they would be applied."""
    return tuple([setting for each in bench.configurations for setting in await _plan_configuration(each)])


async def _plan_configuration(bench: BenchFile) -> list[PlannedSetting]:
    parts = await _parts(bench)
    return [await _plan_setting(bench, one) for one in place_requests(bench.tuning, parts)]


async def _plan_setting(bench: BenchFile, one: PlacedRequest) -> PlannedSetting:
    place = {
        "configuration": bench.configuration,
        "host": one.place.host.name,
        "device": one.place.device,
        "item": one.item.kind,
        "source": one.request.source,
    }
    if isinstance(one.place.host, NetnsHost) and bench.lab is not None:
        asked = one.request.options.model_dump(mode="json", exclude_none=True, exclude={"devices"})
        return PlannedSetting(**place, outcome=None, reason=_LATER, asked=asked)
    if await _is_made_later(one.place.host):
        asked = one.request.options.model_dump(mode="json", exclude_none=True, exclude={"devices"})
        return PlannedSetting(**place, outcome=None, reason=_NOT_THERE, asked=asked)
    row = await preview(one, bench.configuration)
    now = None if row.before is None else {key: row.before.get(key) for key in row.asked or row.before}
    return PlannedSetting(**place, outcome=row.outcome, reason=row.reason, now=now, asked=row.asked)


async def _is_made_later(host: Host) -> bool:
    """A virtual machine, or a namespace that is not there yet."""
    if host.machine.made_here:
        return True
    network = host.network
    return isinstance(network, NetnsHost) and not await network.exists()


def _parts_to_be_made(bench: BenchFile, hosts: Mapping[str, Host]) -> tuple[Part, ...]:
    """By the bench file alone, for what its ports stand on is not there."""
    found = []
    for name, host in hosts.items():
        devices = tuple(device for port in bench.ports.values() if port.host == name for device in port.devices)
        if devices:
            role = bench.role_of(name)
            clients = bench.measures == "rounds" and role != "dut"
            found.append(Part("clients" if clients else role, host, devices, bench.controller_of(role, name)))
    return (*found, *(Part(each.role, each.host, (), None) for each in hosts_beside(bench)))


async def _parts(bench: BenchFile) -> tuple[Part, ...]:
    local = LocalHost("local")
    if own := bench.tester_kind().own_ports():
        testbed_of_tester = make_testbed_of_own_ports(own, local, bench.tester.kind)
        return parts_of(bench, (*testbed_of_tester.test_hosts, *hosts_beside(bench)))
    hosts = build_hosts(bench.hosts)
    if bench.lab is None and (makes_ports(bench) or starts_hosts(bench)):
        return _parts_to_be_made(bench, hosts)
    if bench.lab is None and bench.measures == "rounds":
        testbed = await make_endpoint_testbed(hosts, bench.ports, bench.links, measured_host(bench))
        return parts_of(bench, (*testbed.test_hosts, *hosts_beside(bench)))
    if bench.lab is None:
        wired = await make_wired_testbed(hosts, bench.ports, bench.links, bench.tester_kind())
        return parts_of(bench, (*wired.test_hosts, *hosts_beside(bench)))
    machine = machine_of_lab(bench, hosts)
    in_namespaces = bench.lab.plugin.port_kind in (Lab.port_kind, EndpointLab.port_kind)
    return tuple(
        Part(
            role,
            NetnsHost(machine, f"nicbench-{role}", role) if in_namespaces else machine,
            (),
            bench.controller_of(role, role),
        )
        for role in (("tester", "dut") if bench.measures == "frames" else ("dut", "clients"))
    )
