"""Rounds between the hosts of a testbed (workloads.play), what they need beforehand, and interfaces' counters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nicbench.core.base import WorkloadChoice
from nicbench.core.bond import BondObservation, LinkFailureOutcome
from nicbench.core.connections import ConnectionTable
from nicbench.core.errors import HostError, NicbenchError, NotReadyError
from nicbench.core.machine import cpu_list
from nicbench.core.plan import Values
from nicbench.core.redaction import Redactor
from nicbench.core.round import (
    HostCommand,
    Job,
    JobOutcome,
    JobSpec,
    OwnFolder,
    Preparation,
    RestartServers,
    Round,
    RoundRequest,
    SenderTrace,
    ToolEnvironment,
)
from nicbench.engine.binaries import deploy_binary
from nicbench.hosts.asking import join_scripts, split_sections
from nicbench.hosts.base import Host
from nicbench.measure.bonds import Bonds
from nicbench.measure.host_files import LeftFiles, OwnFolders, RoundFiles, file_system_at
from nicbench.measure.host_readings import COUNTERS_SCRIPT, parse_counters
from nicbench.measure.round_watches import FailureWatch, SenderWatch
from nicbench.measure.rounds import Player, ServingDut
from nicbench.system.adapters.conntrack import LOOK_SCRIPT, TableLook, read_look
from nicbench.testbed.labs.base import Endpoint, EndpointTestbed
from nicbench.tuning.changes import Changes
from nicbench.tuning.items.steering import IrqAffinity, IrqAffinityOptions
from nicbench.tuning.setting import CannotSetError, Place
from nicbench.workloads.base import End, Watch, last_words
from nicbench.workloads.play import kinds, play
from nicbench.workloads.processes import Programs, RawFolder

_STEP: Final = (
    "run it there by hand; what it leaves in the background keeps its output open, unless that is redirected "
    "(`>/dev/null 2>&1 &`), and so does what it prints without end; or give it a longer `timeout` in `before_each`"
)
_STEP_OF_CACHES: Final = "run it there by hand: a disk may hang, or have much to write; or write `drop_caches: false`"
_TIMEOUT_S: Final = 10.0
_OVERDUE_S: Final = 5.0
_RESUME: Final = "when that is fixed, `nicbench resume` goes on after the last round that was finished"


class Interrupts:
    """Moves interrupts of interfaces from round to round, by the tuning item, and back to where they were at first."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._first: dict[tuple[str, str], Values] = {}

    async def steer(self, host: Host, device: str, cpus: tuple[int, ...] | None) -> None:
        """To these CPUs, in turn; None: back. NotReadyError where they cannot be moved, or did not."""
        key = (host.name, device)
        if cpus is None and key not in self._first:
            return
        item = IrqAffinity(IrqAffinityOptions(cpus=cpu_list(cpus) if cpus else "spread"))
        place = Place(host, device)
        try:
            now = await item.read_checked(place)
            wanted = item.target_values(now) if cpus else self._first[key]
            self._first.setdefault(key, {name: value for name, value in now.items() if " queue " in name})
            asked = item.find_differing(wanted, now)
            if asked:
                await item.apply(self._changes, place, {name: now[name] for name in asked}, asked)
            wrong = item.find_differing(wanted, await item.read_checked(place))
        except (CannotSetError, HostError) as error:
            raise _not_ready_error(place, str(error)) from error
        if wrong:
            raise _not_ready_error(place, f"they read {wrong} after they were set")


def _not_ready_error(place: Place, why: str) -> NotReadyError:
    return NotReadyError(
        f"the interrupts of the port cannot be moved: {why}",
        place=str(place),
        next_step="stop irqbalance (`tuning: {dut: {irqbalance: ..}}`), or write `interrupts: stay`",
    )


def unfinished_command_error(command: HostCommand, host: str, error: HostError) -> HostError:
    """The error of a command before a round that did not come to its end, in the words of the bench file."""
    option = "drop_caches" if command.on_machine else "before_each"
    why = error.message.rpartition(": ")[2]  # a host's message begins with the command as it was wrapped
    return HostError(
        f"`{option}`, the command {command.run!r} before a round, which has {command.timeout_s:g} s: {why}",
        place=host,
        next_step=_STEP_OF_CACHES if command.on_machine else _STEP,
    )


class HostPlayer(Player):
    """See the module; what tools wrote is kept under ``raw`` of the run folder.

    ``redactor`` takes what identifies a machine out of their outputs, command lines and failures.
    """

    def __init__(
        self,
        testbed: EndpointTestbed,
        folder: Path,
        changes: Changes,
        redactor: Redactor | None = None,
        engine_folder: str | None = None,
        served: ServingDut | None = None,
    ) -> None:
        self.own_folder = f"nicbench-{changes.run_id}"
        self._redactor = redactor
        self._testbed = testbed
        self._served = served
        self._server_failure: str | None = None
        self._folder = folder
        self._changes = changes
        self._failed: LinkFailureOutcome | None = None
        self._senders: tuple[SenderTrace, ...] = ()
        self._table: ConnectionTable | None = None
        self._files = RoundFiles(changes)
        self._left = LeftFiles(changes, folder)
        self._programs = Programs(lambda host, name: deploy_binary(host, name, engine_folder))
        self._interrupts = Interrupts(changes)
        self._bonds = Bonds(testbed)
        self._seen: tuple[BondObservation, ...] = ()
        self._ends = {name: _end(each) for name, each in testbed.endpoints.items()}
        self._own = OwnFolders(changes)
        self._used: tuple[OwnFolder, ...] = ()
        """Folders of what was prepared for the next round."""
        self._done: list[Job] = []
        """Jobs of preparations."""

    async def require_tools(self, asked: Iterable[tuple[WorkloadChoice, JobSpec]]) -> None:
        tools = kinds()
        for choice, ask in asked:
            hosts = [end.host for end in self._ends.values()]
            await self._programs.require_somewhere(hosts, tools[choice.kind](choice.options), ask)

    async def prepare(self, preparation: Preparation) -> None:
        hosts = {name: end.host for name, end in self._ends.items()}
        await self._own.make(hosts, preparation.folders)
        self._used = preparation.folders
        left = tuple(job for job in preparation.jobs if job not in self._done)
        if not left:
            return
        raw = self._raw("preparation")
        request = RoundRequest(jobs=left, duration_s=0.0, timeout_s=preparation.timeout_s)
        for outcome in await play(request, self._ends, raw, programs=self._programs):
            if outcome.failure is not None:
                raise HostError(f"what is to be read cannot be prepared: {outcome.failure}", next_step=_RESUME)
        self._done += left

    async def run_before(self, command: HostCommand | RestartServers) -> None:
        if isinstance(command, RestartServers):
            if self._served is not None:
                await self._served.restart()
            return
        host = next(each.host for each in self._testbed.test_hosts if each.name == command.host)
        where = host.machine if command.on_machine else host
        try:
            done = await where.run(("sh", "-c", command.run), check=False, timeout_s=command.timeout_s)
        except HostError as error:
            raise unfinished_command_error(command, host.name, error) from error
        if done.status != 0:
            said = last_words(done.stderr or done.stdout)
            raise HostError(
                f"the command before a round, {command.run!r}, ended with {done.status}{f': {said}' if said else ''}",
                place=host.name,
                next_step=f"fix it (`before_each`, `drop_caches`), or what it needs there; {_RESUME}",
            )

    async def play(self, number: int, request: RoundRequest, watch: Watch) -> tuple[JobOutcome, ...]:
        name = f"r{number:04d}"
        self._left.begin(name)
        self._failed = None
        self._server_failure = None
        if self._served is not None:
            await self._served.begin_round()
        before = await self._look_at_table(request)
        async with self._bonds.watch_round(watch, request) as watching:
            failing = self._failure_watch(request, watching)
            looking = SenderWatch(failing or watching, request, self._ends) if request.looks_at_senders else None
            overdue = asyncio.create_task(self._see_servers_when_overdue(request))
            try:
                outcomes = await play(
                    request,
                    self._ends,
                    self._raw(name),
                    programs=self._programs,
                    watch=looking or failing or watching,
                    keeper=self._left,
                )
            finally:
                if self.server_failure() is None:
                    overdue.cancel()
                await asyncio.wait((overdue,))
                if failing is not None:
                    await failing.close()
                if looking is not None:
                    await looking.close()
            self._table = _table_between(before, await self._look_at_table(request))
            self._seen = self._bonds.observations()
            self._senders = () if looking is None else looking.traces()
            self._failed = None if failing is None else failing.outcome_of(self._seen)
        if self.server_failure() is None:
            await self._see_servers()
        else:
            await overdue
        failure = next((outcome.failure for outcome in outcomes if outcome.failure is not None), None)
        if failure is not None:
            await self._require_hosts()
            await self._own.require({name: end.host for name, end in self._ends.items()}, self._used, failure)
        self._used = ()
        for outcome in outcomes:
            if outcome.ends_run:
                raise HostError(f"no later round could go otherwise: {outcome.failure}", next_step=_RESUME)
        outcomes = await self._add_file_systems(request, outcomes)
        if self._redactor is None:
            return outcomes
        return tuple(JobOutcome.model_validate(self._redactor(each.model_dump(mode="json"))) for each in outcomes)

    async def _look_at_table(self, request: RoundRequest) -> TableLook | None:
        """What the DUT's kernel tracks now; None where no job opens connections, or nothing is tracked."""
        if all(job.ask.connections is None for job in request.jobs):
            return None
        done = await self._testbed.server.network.run(("sh", "-c", LOOK_SCRIPT), check=False, timeout_s=_TIMEOUT_S)
        return read_look(done.stdout)

    async def _see_servers_when_overdue(self, request: RoundRequest) -> None:
        """Nothing is asked while tools work; but what waits for a server that is gone cannot even be killed."""
        await asyncio.sleep(request.duration_s)
        while self._server_failure is None:
            await asyncio.sleep(_OVERDUE_S)
            await self._see_servers()

    async def _see_servers(self) -> None:
        """Where one of the DUT's ended, it is started again, so that the round can be repeated; HostError where not."""
        self._server_failure = None if self._served is None else await self._served.failure()
        if self._served is None or self._server_failure is None:
            return
        if not self._served.survives_restart:
            raise HostError(
                f"in the midst of a round {self._server_failure}", place=self._testbed.server.name, next_step=_RESUME
            )
        await self._served.restart()

    async def _add_file_systems(
        self, request: RoundRequest, outcomes: tuple[JobOutcome, ...]
    ) -> tuple[JobOutcome, ...]:
        """Where files were, as the client's kernel has it mounted: a share that is not mounted is the local disk."""
        told = []
        for job, outcome in zip(request.jobs, outcomes, strict=True):
            if job.ask.frames is None:
                told.append(outcome)
                continue
            where = await file_system_at(self._ends[job.client].host, job.ask.frames.directory)
            told.append(outcome.replace(file_system=where))
        return tuple(told)

    async def keep(self, one: Round) -> None:
        await self._left.keep(one)

    def _failure_watch(self, request: RoundRequest, watch: Watch) -> FailureWatch | None:
        """Takes down the link that is to fail; None where none is."""
        failure = request.failure
        if failure is None:
            return None
        endpoint = self._testbed.endpoints[failure.port]
        return FailureWatch(watch, failure, endpoint, endpoint.members[failure.link - 1], self._changes)

    def environments(self, request: RoundRequest) -> tuple[ToolEnvironment, ...]:
        known = self._programs.environments({job.workload for job in request.jobs})
        if self._redactor is None:
            return known
        return tuple(ToolEnvironment.model_validate(self._redactor(each.model_dump(mode="json"))) for each in known)

    def _raw(self, name: str) -> RawFolder:
        return RawFolder(self._folder, name, self._redactor.redact_text if self._redactor else None)

    def failure(self) -> LinkFailureOutcome | None:
        if self._redactor is None or self._failed is None:
            return self._failed
        return LinkFailureOutcome.model_validate(self._redactor(self._failed.model_dump(mode="json")))

    def senders(self) -> tuple[SenderTrace, ...]:
        return self._senders

    def connection_table(self) -> ConnectionTable | None:
        return self._table

    def server_failure(self) -> str | None:
        if self._server_failure is None or self._redactor is None:
            return self._server_failure
        return self._redactor.redact_text(self._server_failure)

    def bonds(self) -> tuple[BondObservation, ...]:
        if self._redactor is None:
            return self._seen
        return tuple(
            BondObservation.model_validate(self._redactor(each.model_dump(mode="json"))) for each in self._seen
        )

    async def _require_hosts(self) -> None:
        """HostError where a job failed because a host is gone: nothing could be measured any more.

        The round is not kept, so that a resumed run plays it again.
        """
        for test_host in self._testbed.test_hosts:
            await test_host.host.run(("true",), check=False, timeout_s=_TIMEOUT_S)

    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        host = self._testbed.endpoints[endpoint].host
        return await self._files.make(host, folder, f"{endpoint}-{purpose}", size_bytes, filled=filled)

    async def remove_file(self, endpoint: str, path: str) -> None:
        await self._files.remove(self._testbed.endpoints[endpoint].host, path)

    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        end = self._testbed.endpoints[endpoint]
        await self._interrupts.steer(end.host, str(end.facts.device), cpus)

    async def counters(self) -> dict[str, dict[str, int]]:
        """One command a host; a host that does not answer is left out."""
        found = {}
        for test_host in self._testbed.test_hosts:
            ends = [end for end in self._testbed.endpoints.values() if end.host is test_host.host]
            scripts = {end.name: COUNTERS_SCRIPT.format(device=end.facts.device) for end in ends if end.facts.device}
            try:
                done = await test_host.host.network.run(
                    ("sh", "-c", join_scripts(scripts)), check=False, timeout_s=_TIMEOUT_S
                )
            except NicbenchError:
                continue
            found.update({name: parse_counters(text) for name, text in split_sections(done.stdout).items()})
        return found


def _table_between(before: TableLook | None, after: TableLook | None) -> ConnectionTable | None:
    """What became of the table in a round; None where nothing is tracked there."""
    if before is None or after is None or not (before.held or after.held):
        return None
    return ConnectionTable(
        limit=after.limit,
        before=before.held,
        after=after.held,
        refused=max(0, after.refused - before.refused),
        replaced=max(0, after.replaced - before.replaced),
    )


def _end(each: Endpoint) -> End:
    facts = each.facts
    return End(
        host=each.host,
        address=facts.address,
        device=facts.device,
        vlan=facts.vlan,
        link_bits_per_s=facts.link_bits_per_s,
        rdma_device=None if each.rdma is None else each.rdma.device,
        rdma_port=1 if each.rdma is None else each.rdma.port,
        gid_index=None if each.rdma is None else each.rdma.gid_index,
    )
