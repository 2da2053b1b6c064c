"""Rounds of workloads: the jobs of each begin together, the machines are watched meanwhile, and it is judged.

``samples.py`` replays, repeats and journals them; ``LiveRoundContext`` is what a method asks for them.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from nicbench.core.base import WorkloadChoice
from nicbench.core.bond import BondObservation, LinkFailureOutcome
from nicbench.core.connections import ConnectionTable
from nicbench.core.errors import NicbenchError
from nicbench.core.events import RoundBegun, RoundFinished
from nicbench.core.judging import REPEATS_OF_ROUNDS, Finding, Reason, Thresholds
from nicbench.core.machine import NumaNode
from nicbench.core.reading import PathChanges
from nicbench.core.round import (
    HostCommand,
    JobOutcome,
    JobSpec,
    MachineCpu,
    Mount,
    Preparation,
    RestartServers,
    Round,
    RoundRequest,
    SenderTrace,
    ToolEnvironment,
)
from nicbench.measure.host_readings import is_telling
from nicbench.measure.round_verdict import LINK_CHANGED, judge_round
from nicbench.measure.samples import LiveContext, Maker, RepeatRule, SampleLog, Slot, TestSetting
from nicbench.measure.trial_verdict import leave_out_programs
from nicbench.measure.witnesses import (
    SETTLE_S,
    Interface,
    add_cpu_notes,
    find_contradicted_ports,
    find_lost_ports,
    has_bytes,
)
from nicbench.monitor.base import Monitors
from nicbench.stats.cpu import ENDED
from nicbench.testbed.labs.base import EndpointTestbed
from nicbench.workloads.base import Watch

# What makes a round's jobs run (``Player``): the one part of a round that touches hosts.
#
# ``HostPlayer`` (``host_player.py``) is the real one.


class ServingDut(Protocol):
    """A DUT with servers of its own in addition to those of the tools: see ``duts.base.EndpointDut``."""

    @property
    def survives_restart(self) -> bool:
        """Whether ``restart`` may be called."""

    async def restart(self) -> None:
        """Ends them and starts them anew; what clients have of them they then use again."""

    async def begin_round(self) -> None:
        """Says that a round begins: ``failure`` then tells of servers that end in it."""

    async def failure(self) -> str | None:
        """How one ended since then; None where all went on."""


class Player(ABC):
    """Starts every job of a round together and brings each to its end.

    ``own_folder`` is the name of a folder that no other run has.
    """

    own_folder: str

    @abstractmethod
    async def require_tools(self, asked: Iterable[tuple[WorkloadChoice, JobSpec]]) -> None:
        """NotReadyError where a tool that tests ask for is on none of the machines."""

    @abstractmethod
    async def prepare(self, preparation: Preparation) -> None:
        """Makes the missing part of it; what an earlier call made stays unchanged.

        NotReadyError where the directory is missing or has too little room, HostError where a job fails.
        """

    @abstractmethod
    async def run_before(self, command: HostCommand | RestartServers) -> None:
        """HostError where it fails, or takes too long."""

    async def rest(self, pause_s: float) -> None:
        """Lets the hosts come to rest before a round."""
        await asyncio.sleep(pause_s)

    @abstractmethod
    async def play(self, number: int, request: RoundRequest, watch: Watch) -> tuple[JobOutcome, ...]:
        """The outcomes in the order of the jobs, each of which fails alone; ``number`` is the round's place in the run.

        HostError where a host itself is gone.
        """

    def server_failure(self) -> str | None:
        """How a server of the DUT's own ended in the midst of the round that was played last; None: none did."""
        return None

    async def keep(self, one: Round) -> None:  # noqa: B027 - most workloads leave nothing
        """Writes into the run folder what the round that was played last left on its hosts; it is journaled next."""

    def bonds(self) -> tuple[BondObservation, ...]:
        """Of the round that was played last: its bonds, and which connection used which of their ports."""
        return ()

    def environments(self, request: RoundRequest) -> tuple[ToolEnvironment, ...]:
        """Of a round that was played: the environments that its tools ran in, as far as they are known."""
        return ()

    def failure(self) -> LinkFailureOutcome | None:
        """Of the round that was played last: the link that was taken down, where that was asked for."""
        return None

    def senders(self) -> tuple[SenderTrace, ...]:
        """Of the round that was played last: the connections of its clients over time, where that was asked for."""
        return ()

    def connection_table(self) -> ConnectionTable | None:
        """Of the round that was played last: the DUT's table of tracked connections, where jobs open connections."""
        return None

    @abstractmethod
    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        """A file of ours in a folder of this endpoint's host, and its path; it is gone when the run is.

        ``filled``: with that many random bytes, to be read; else empty, with room for them. NotReadyError where the
        folder is missing or has too little space.
        """

    @abstractmethod
    async def remove_file(self, endpoint: str, path: str) -> None:
        """Makes room before the end of the run; of a file that ``make_file`` made."""

    @abstractmethod
    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        """Gives the interrupts of this endpoint's queues to these CPUs; None: to those that had them before.

        NotReadyError where they cannot be moved.
        """

    @abstractmethod
    async def counters(self) -> dict[str, dict[str, int]]:
        """Cumulative counters of each endpoint's interface, by its name; what cannot be read is left out."""


Counters = Mapping[str, Mapping[str, int]]


class RoundMaker(Maker[Round, RoundRequest]):
    """Plays rounds, one at a time."""

    def __init__(
        self,
        player: Player,
        monitors: Monitors,
        thresholds: Thresholds,
        log: SampleLog[Round],
        machines: Mapping[str, str] | None = None,
        interfaces: Mapping[str, Interface] | None = None,
    ) -> None:
        """``machines`` has the machine of each endpoint, by the name that its monitor tells it under.

        ``interfaces`` has its interface, whose counters are witnesses of what tools say.
        """
        super().__init__(log)
        self.player = player
        self.preparation: Preparation | None = None
        """What must be there before the next round that is really played, as the test says whose turn it is."""
        self._monitors = monitors
        self._thresholds = thresholds
        self._machines = machines or {}
        self._interfaces = interfaces or {}
        self._readable: set[str] = set()
        """Endpoints of which the bytes that passed were read before."""

    def request_in_turn(self, request: RoundRequest) -> RoundRequest:
        return request.replace(warm_up=self.log.turn.warm_up)

    def started_event(self, slot: Slot, request: RoundRequest) -> RoundBegun:
        return RoundBegun(
            test=slot.test,
            parameters=slot.parameters,
            jobs=len(request.jobs),
            duration_s=request.duration_s,
            repeat=slot.repeat,
        )

    def finished_event(self, sample: Round) -> RoundFinished:
        return RoundFinished(round=sample)

    async def measure(self, slot: Slot, request: RoundRequest) -> tuple[Round, NicbenchError | None]:
        """One round, prepared for, between two readings of the interfaces' counters."""
        player = self.player
        if self.preparation is not None:
            await player.prepare(self.preparation)
        for command in request.before:
            await player.run_before(command)
        await player.rest(request.pause_s)
        before = await player.counters()
        watch = _Watch(self._monitors, slot.number)
        try:
            outcomes = await player.play(slot.number, request, watch)
        finally:
            await watch.end()
        outcomes = add_cpu_notes(request, outcomes, watch.cpu, self._machines)
        cpu = tuple(name_ended_tools(each, request) for each in watch.cpu)
        self._readable |= {name for name, counters in before.items() if has_bytes(counters)}
        after = await player.counters()
        of_ports = self._look_at_ports(request, outcomes, before, after)
        if of_ports:
            await player.rest(SETTLE_S)
            after = await player.counters()
            of_ports = self._look_at_ports(request, outcomes, before, after)
        counters, changes = _differences(before, after), _leave_out_hooks(watch.changes, request, self._interfaces)
        made = Round(
            id=Round.id_of(slot.number),
            **self.record_of(slot),
            request=request,
            outcomes=outcomes,
            cpu=cpu,
            counters=counters,
            bonds=player.bonds(),
            environments=player.environments(request),
            failure=player.failure(),
            changes=changes,
            senders=player.senders(),
            connection_table=player.connection_table(),
            verdict=judge_round(
                request,
                outcomes,
                cpu,
                self._thresholds,
                counters,
                player.failure(),
                player.server_failure(),
                self._machines,
                of_ports,
                changes,
            ),
        )
        await player.keep(made)
        return made, None

    def _look_at_ports(
        self, request: RoundRequest, outcomes: Sequence[JobOutcome], before: Counters, after: Counters
    ) -> tuple[Finding, ...]:
        return (
            *find_lost_ports(request, self._interfaces, self._readable, after),
            *find_contradicted_ports(request, outcomes, self._interfaces, before, after),
        )


def _leave_out_hooks(
    seen: PathChanges | None, request: RoundRequest, interfaces: Mapping[str, Interface]
) -> PathChanges | None:
    """Returns the changes without those that ends of connections cause as they enter and leave their driver's hook.

    These are their programs, and offloads, which a veth switches at both ends. A stranger's change of an offload looks
    the same and is left out, too.
    """
    hooked = [job for job in request.jobs if job.ask.connections is not None and job.ask.connections.driver == "xdp"]
    if seen is None or not hooked:
        return seen
    ends = {name for job in hooked for name in (job.client, job.server) if name is not None}
    here = [interfaces[name] for name in ends if name in interfaces]
    kept = leave_out_programs(seen, {each.carrier or each.device for each in here})
    if kept is None:
        return None
    return kept.replace(changes=tuple(each for each in kept.changes if each.what != "offloads"))


class RoundRepeats(RepeatRule[Round]):
    """Of invalid rounds the one in which the fewest jobs failed is used, and of these the least disturbed one.

    A round in which a tool failed measures the others as well as any: its figures stand, and the result says
    which is missing.
    """

    policy = REPEATS_OF_ROUNDS

    def cost_s(self, sample: Round) -> float:
        return sample.request.duration_s

    def disturbance(self, sample: Round) -> tuple[float, ...]:
        """How many jobs failed, and how many times a limit the worst finding is."""
        failed = sum(outcome.failure is not None for outcome in sample.outcomes)
        return failed, max((finding.times_its_limit for finding in sample.verdict.findings), default=0.0)

    def may_help(self, sample: Round) -> bool:
        """Not where every failure would come again: a tool is missing, or cannot do what was asked."""
        failed = [outcome for outcome in sample.outcomes if outcome.failure is not None]
        return not failed or any(outcome.repeatable for outcome in failed)

    def useless(self, sample: Round) -> str | None:
        """What did not pass while a link was down by itself, or somebody changed the path, is charged to nobody."""
        told = (
            one.text for one in sample.verdict.findings if one.threshold == LINK_CHANGED or one.reason is Reason.CHANGED
        )
        return next(told, None)

    def is_owed(self, sample: Round) -> bool:
        """A test of few rounds has no time for repeats, and a peer that failed once must not cost it a whole round."""
        return any(outcome.failure is not None and outcome.repeatable for outcome in sample.outcomes)


class LiveRoundContext(LiveContext[Round, RoundRequest]):
    """The context of one test of workloads; see ``methods.base.RoundContext``."""

    def __init__(
        self,
        test: TestSetting,
        maker: RoundMaker,
        testbed: EndpointTestbed,
        nodes: tuple[NumaNode, ...] = (),
        mounts: tuple[Mount, ...] = (),
    ) -> None:
        super().__init__(test, maker, RoundRepeats())
        self.nodes = nodes
        self.mounts = mounts
        self.own_folder = maker.player.own_folder
        self.servers = tuple(end.facts for end in testbed.servers)
        self.clients = tuple(end.facts for end in testbed.clients)
        self._maker = maker
        self._preparation: Preparation | None = None

    def prepare(self, preparation: Preparation) -> None:
        """See ``methods.base.RoundContext``."""
        self._preparation = preparation

    async def play(self, point: dict[str, Any], request: RoundRequest) -> tuple[Round, bool]:
        """One judged round, repeated where that may help; True where an invalid one had to be used."""
        self._maker.preparation = self._preparation
        return await self.sample(point, request)

    async def make_file(self, endpoint: str, folder: str, purpose: str, size_bytes: int, *, filled: bool) -> str:
        """See ``Player``."""
        return await self._maker.player.make_file(endpoint, folder, purpose, size_bytes, filled=filled)

    async def remove_file(self, endpoint: str, path: str) -> None:
        """See ``Player``."""
        await self._maker.player.remove_file(endpoint, path)

    async def steer_interrupts(self, endpoint: str, cpus: tuple[int, ...] | None) -> None:
        """See ``Player``."""
        await self._maker.player.steer_interrupts(endpoint, cpus)


def name_ended_tools(cpu: MachineCpu, request: RoundRequest) -> MachineCpu:
    """Clients have ended when processes are counted: their time bears the names of the tools that were asked for."""
    tools = ", ".join(dict.fromkeys(job.workload for job in request.jobs))
    rows = (row.replace(name=f"{tools} (ended)") if row.name == ENDED else row for row in cpu.processes)
    return cpu.replace(processes=tuple(rows))


class _Watch:
    """The monitors from when clients begin until the last has ended; not while servers start or outputs are read."""

    def __init__(self, monitors: Monitors, number: int) -> None:
        self.cpu: tuple[MachineCpu, ...] = ()
        self.changes: PathChanges | None = None
        self._monitors = monitors
        self._number = number
        self._since: tuple[float, float] | None = None

    async def begin(self) -> None:
        await self._monitors.begin_round(self._number)
        await self._monitors.watch()
        self._since = time.process_time(), time.monotonic()

    async def end(self) -> None:
        """A second call changes nothing, nor does one before the beginning."""
        if self._since is None:
            return
        (own_s, began), self._since = self._since, None
        own_s, took_s = time.process_time() - own_s, time.monotonic() - began
        self.changes = await self._monitors.changes()
        self.cpu = tuple(_mark_controller(each, own_s, took_s) for each in await self._monitors.end_round())


def _mark_controller(cpu: MachineCpu, own_s: float, took_s: float) -> MachineCpu:
    """Nicbench itself runs on the machine that is called so."""
    if cpu.machine != "local" or not cpu.cpus or took_s <= 0:
        return cpu
    return cpu.replace(controller=own_s / took_s / cpu.cpus)


def _differences(before: Counters, after: Counters) -> dict[str, dict[str, int]]:
    """What rose, and of pauses, marks and drops also what did not; a counter that was reset meanwhile says nothing."""
    return {
        name: {
            counter: value - before[name][counter]
            for counter, value in counters.items()
            if counter in before[name]
            and (value > before[name][counter] or (is_telling(counter) and value == before[name][counter]))
        }
        for name, counters in after.items()
        if name in before
    }
